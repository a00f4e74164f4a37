"""How many instructions of the core a call that needs no trip takes, and of the server a question
of which nothing is kept: the same beside any load.

A quarter more than it was when this was written (GCC 12), for other compilers. Who needs more says
here what for: an open links the descriptions of a file (50).
"""

import subprocess
import sys
from pathlib import Path

import pytest

STEPS = Path(__file__).parents[2] / "benchmarks/steps.py"


def _instructions_of(where, *arguments):
    done = subprocess.run(
        [sys.executable, STEPS, *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    rows = [line.split(maxsplit=1) for line in done.stdout.splitlines()]
    counts = [int(count) for count, name in rows if name.endswith(f"({where})")]
    assert counts, done.stdout
    return sum(counts)


@pytest.mark.parametrize(
    ("arguments", "budget"),
    [
        pytest.param(["fstat"], 190, id="not ours"),
        pytest.param(["fstat", "memfs"], 460, id="fstat"),
        pytest.param(["stat", "memfs"], 1030, id="stat"),
        pytest.param(["access", "memfs"], 1070, id="access"),
        pytest.param(["stat"], 1020, id="stat, not ours"),
    ],
)
def test_warm_calls_keep_to_their_budget(arguments, budget):
    assert _instructions_of("directfuse-exec", *arguments) <= budget


@pytest.mark.parametrize(
    ("call", "budget"),
    [("fstatat", 930), ("access", 1090), ("chmod", 1650), ("open", 2230)],
)
def test_questions_keep_to_their_budget_in_the_server(call, budget, tmp_path):
    counted = ["--server", call, "passthrough", tmp_path]
    assert _instructions_of("libdirectfuse.so", *counted) <= budget
