"""How many instructions of the core a call that needs no trip takes: the same beside any load.

A quarter more than it was when this was written (GCC 12), for other compilers. Who needs more says
here what for.
"""

import subprocess
import sys
from pathlib import Path

import pytest

STEPS = Path(__file__).parents[2] / "benchmarks/steps.py"


def _instructions_of_the_core(*arguments):
    done = subprocess.run(
        [sys.executable, STEPS, *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    rows = [line.split(maxsplit=1) for line in done.stdout.splitlines()]
    counts = [int(count) for count, name in rows if name.endswith("(directfuse-exec)")]
    assert counts, done.stdout
    return sum(counts)


@pytest.mark.parametrize(
    ("arguments", "budget"),
    [
        pytest.param(["fstat"], 190, id="not ours"),
        pytest.param(["fstat", "memfs"], 670, id="fstat"),
        pytest.param(["stat", "memfs"], 1360, id="stat"),
    ],
)
def test_warm_calls_keep_to_their_budget(arguments, budget):
    assert _instructions_of_the_core(*arguments) <= budget
