"""What the tests of the command line share."""

import os
import subprocess
import sys

import pytest

from directfuse import _kernel

#: As users start it, but surely the package under test.
COMMAND = [sys.executable, "-m", "directfuse"]


@pytest.fixture
def run(tmp_path):
    """Runs the command line in an empty directory; the result has returncode, stdout, stderr."""

    def call(*words, **options):
        options = {"timeout": 50, "cwd": tmp_path} | options
        return subprocess.run(
            [*COMMAND, *map(str, words)], capture_output=True, text=True, check=False, **options
        )

    return call


@pytest.fixture
def kernel():
    """Skips where nothing can be mounted through the kernel."""
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("no access to /dev/fuse")


@pytest.fixture
def point(kernel, tmp_path):
    """An empty directory to mount on; whatever is left there afterwards is unmounted."""
    directory = tmp_path / "mnt"
    directory.mkdir()
    yield directory
    while _kernel.fuse_mount_at(str(directory)):
        _kernel.unmount(str(directory), lazy=True)


def said_clearly(done):
    """A user's error: a message, no traceback, nothing on standard output."""
    return done.stderr.startswith(("Error:", "Usage:")) and "Traceback" not in done.stderr
