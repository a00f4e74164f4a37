"""Files that one thread closes while another one is in a call on them."""

import os
import subprocess
import sys

import pytest
from building import build, fuse

from directfuse import _kernel

from .conftest import PROGRAMS, environment

WANTED = {
    "read": "slow 5 abcde\nquick 5 abcde\n",
    "mapped": "mapped abcde\nquick 5 abcde\n",
    "killed": "back to 0\nslow 5 abcde\n",
}


@pytest.fixture
def awaited(tmp_path):
    return build(PROGRAMS / "awaited.c", tmp_path / "awaited", *fuse("fuse3"), "-pthread")


def outcome(command):
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment(), timeout=50, check=False
    )
    return done.returncode, done.stdout


@pytest.fixture
def point(tmp_path):
    made = tmp_path / "mount"
    made.mkdir()
    return made


@pytest.fixture
def by_run(awaited, point):
    """What a command does, whose last word is the directory where awaited.c is mounted."""
    mount = ["-m", f"{awaited} {point}"]
    run = [sys.executable, "-m", "directfuse", "run", *mount, "--"]
    return lambda *command: outcome([*run, *command, point])


@pytest.fixture
def by_kernel(awaited, point):
    def by_kernel(*command):
        with _kernel.Program([awaited, os.fspath(point), "-f"]) as daemon:
            daemon.wait_mounted(30)
            return outcome([*command, point])

    return by_kernel


@pytest.fixture(params=["run", pytest.param("kernel", marks=pytest.mark.kernel_fuse)])
def by_route(request):
    return request.getfixturevalue(f"by_{request.param}")


@pytest.mark.parametrize("part", WANTED)
def test_a_file_is_its_callers_until_the_call_has_ended(compiled, by_route, part):
    """Its position is not that of the next file, nor locked for ever by who was killed."""
    assert by_route(compiled("closed_meanwhile"), part) == (0, WANTED[part])


def test_what_is_written_meanwhile_is_not_the_next_files(compiled, by_run):
    """Of a kernel mount, close(2) waits for the pwrite(2)."""
    wanted = "written 3\nquick 5 abcde\nquick abcde\n"
    assert by_run(compiled("closed_meanwhile"), "written") == (0, wanted)
