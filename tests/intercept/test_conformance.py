"""The conformance suite's cases for a plain directory, on a mount under `directfuse run`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import environment

SUITE = Path(__file__).resolve().parent.parent / "conformance"

#: A bind mount of the kernel makes a directory read-only for them; ours is none of the kernel's.
_KERNEL_ONLY = ("test_readonly.py", "test_suite.py")

_QUICK = ("test_open.py", "test_dirfd.py", "test_unlinked.py", "test_copy.py")

_FILES = sorted(p.name for p in SUITE.glob("test_*.py") if p.name not in _KERNEL_ONLY)


def run_suite(point, files):
    mount = f"memfs {point} -o allow_other,default_permissions"
    suite = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "plain"]
    return subprocess.run(
        [sys.executable, "-m", "directfuse", "run", "-m", mount, "--", *suite, *files],
        cwd=SUITE.parent.parent,
        env=environment() | {"DIRECTFUSE_TEST_DIRECTORY": str(point)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        stdin=subprocess.DEVNULL,
    )


def check(tmp_path, names):
    point = tmp_path / "mount"
    done = run_suite(point, [str(SUITE / name) for name in names])
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert " passed" in done.stdout
    assert not os.path.lexists(point)


def test_some_of_the_suite(tmp_path):
    check(tmp_path, _QUICK)


@pytest.mark.sweep
@pytest.mark.timeout(400)
def test_the_suite(tmp_path):
    check(tmp_path, _FILES)
