"""`directfuse run` where what a process may have is limited."""

import os
import resource
import shlex
import subprocess

import needs
import pytest

from .conftest import COMMAND, said_clearly, shell

pytestmark = needs.run


def test_a_limit_of_open_files_is_named(memory):
    words = shlex.join([*COMMAND, "run", *map(str, memory[1]), "--", "/bin/true"])
    status = {}
    for limit in (6, 9, 12, 15, 20, 24):
        script = f"ulimit -n {limit}; exec {words}"
        done = subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, timeout=50)
        status[limit] = done.returncode
        named = f"a process may have {limit} open files here" in done.stderr
        assert named == (done.returncode == 125), done.stderr
    assert status == {6: 125, 9: 125, 12: 125, 15: 125, 20: 0, 24: 0}


#: A command that inherits more descriptors than select(2) takes, and small limits allow.
MANY_OPEN = """ulimit -n 4096 && exec 3<&0 4<&0 5<&0 6<&0 7<&0 8<&0 9<&0
for _ in {1..1100}; do exec {fd}<&0; done
exec "$@"
"""


def test_a_thousand_descriptors_may_be_in_use(memory):
    point, mount = memory
    words = [*COMMAND, "run", *mount, *shell(f"echo a >{point}/f; cat {point}/f")]
    done = subprocess.run(
        ["/bin/bash", "-c", MANY_OPEN, "bash", *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )
    assert (done.returncode, done.stdout) == (0, "a\n"), done.stderr


@pytest.mark.parametrize("size", ["foo", "1g", "-5", "999T"])
@pytest.mark.parametrize("variable", ["DIRECTFUSE_CACHE", "DIRECTFUSE_MAPPED"])
def test_a_size_that_is_none_is_not_taken_for_a_small_one(run, memory, variable, size):
    told = os.environ | {variable: size}
    for words in (["run", *memory[1], "--", "true"], ["env", *memory[1]]):
        done = run(*words, env=told)
        assert done.returncode == 125 and said_clearly(done)
        assert f"{variable}={size}: is no size; a number" in done.stderr
    told[variable] = "1MB"
    assert run("run", *memory[1], "--", "true", env=told).returncode == 0


@pytest.mark.parametrize("size", [0, 100_000, 10_000_000])
def test_a_limit_of_files_sizes_is_named(run, memory, size):
    limits = (size, size)
    done = run(
        "run",
        *memory[1],
        *shell("echo started"),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limits),
    )
    assert done.returncode == 125 and said_clearly(done)
    assert f"(a file may have {size >> 10} KiB here; " in done.stderr
    assert done.stderr.endswith("`ulimit -f unlimited`)\n")


@pytest.mark.parametrize("inside", [False, True])
def test_a_limit_of_address_space_is_named(run, memory, inside):
    script = shlex.join([*COMMAND, "run", *map(str, memory[1]), "--", "/bin/true"])
    if inside:  # by another process, which does not know what is the run's
        limited = "prlimit --pid $$ --as=400000000; exec /bin/true"
        done = run("run", *memory[1], *shell(limited))
        assert "RLIMIT_AS, `ulimit -v`; RLIMIT_DATA, `ulimit -d`) (errno 12)\n" in done.stderr
        assert done.returncode == 125
    else:
        done = subprocess.run(
            ["/bin/sh", "-c", f"ulimit -v 400000; exec {script}"],
            capture_output=True,
            text=True,
            timeout=50,
        )
        assert "(a process may have 400000 KiB of address space here;" in done.stderr
        assert done.returncode == 125
