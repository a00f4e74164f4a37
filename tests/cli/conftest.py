"""What the tests of the command line share."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from directfuse import _kernel

#: As users start it, but surely the package under test.
COMMAND = [sys.executable, "-m", "directfuse"]


def shell(script):
    """As the words of a run's command."""
    return ("--", "/bin/sh", "-c", script)


def processes_with(word):
    """Those that have it as a word of their command lines, as mount servers have mountpoints."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = file.read_bytes().split(b"\0")
        except OSError:  # it has ended
            continue
        if os.fsencode(word) in words:
            found.append(file.parent.name)
    return found


def wait_until(condition):
    """The test's own time-out ends what never becomes so."""
    while not condition():
        time.sleep(0.01)


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
def memory(tmp_path):
    """A mountpoint that does not exist, and the option that mounts memfs there."""
    point = tmp_path / "scratch"
    return point, ("-m", f"memfs {point}")


#: It writes what it holds when it is unmounted, and takes its time.
_SLOW = """
import time

class Slow:
    def getattr(self, path, fh=None):
        return dict(st_mode=0o40755, st_nlink=2)

    def readdir(self, path, fh):
        return [".", ".."]

    def destroy(self, path):
        time.sleep(0.5)
        open({written!r}, "x").close()
"""


@pytest.fixture
def slow(tmp_path, monkeypatch):
    """The option that mounts a file system, and a file that is there when that has ended."""
    written = tmp_path / "written"
    (tmp_path / "slow.py").write_text(_SLOW.format(written=str(written)))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return ("-m", f"slow:Slow {tmp_path}/mnt"), written


@pytest.fixture
def kernel():
    """Skips where nothing can be mounted through the kernel."""
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("no access to /dev/fuse")


#: A name space in which /dev/fuse is nobody's to open, and a process without any capability.
HIDDEN = 'touch $0/no && chmod 0 $0/no && mount --bind $0/no /dev/fuse && exec "$@"'
NO_RIGHTS = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"]


@pytest.fixture
def without_fuse(tmp_path):
    """What runs a command so."""
    if os.geteuid() != 0:
        pytest.skip("only root can make a mount name space")
    if not os.path.exists("/dev/fuse"):
        pytest.skip("nothing to hide")
    return ["unshare", "-m", "sh", "-c", HIDDEN, str(tmp_path), *NO_RIGHTS]


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
