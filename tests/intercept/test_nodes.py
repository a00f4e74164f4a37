"""FIFOs and sockets of mounts, which stand for objects of the kernel."""

import os
import subprocess
import sys

import pytest
from building import build, fuse

from .conftest import PROGRAMS, environment

#: Each has the inode number of the one that was removed before.
_BY_TURNS = """
import os, socket, sys
os.chdir(sys.argv[1])
def bound():
    one = socket.socket(socket.AF_UNIX)
    one.bind("object")
    one.listen()
    socket.socket(socket.AF_UNIX).connect("object")
    os.unlink("object")
def fifo():
    os.mkfifo("object")
    fd = os.open("object", os.O_RDWR | os.O_NONBLOCK)
    os.write(fd, b"through")
    print(os.read(fd, 9))
    os.unlink("object")
for make in bound, fifo, bound, bound, fifo, fifo:
    make()
kept = []
for text in b"one", b"two":
    os.mkfifo("object")
    kept.append(os.open("object", os.O_RDWR | os.O_NONBLOCK))
    os.write(os.open("object", os.O_WRONLY), text)
    os.unlink("object")
print([os.read(fd, 9) for fd in kept])
"""


def _python(mount, point, script):
    """Runs it inside, with the mountpoint: its status, and what it said."""
    run = [sys.executable, "-m", "directfuse", "run", "-m", mount, "--"]
    done = subprocess.run(
        [*run, sys.executable, "-S", "-c", script, point],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=60,
    )
    return done.returncode, done.stdout, done.stderr


def test_numbers_of_inodes_that_are_used_again(tmp_path):
    """What stood for a removed object is in the way of none that comes after it."""
    server = build(PROGRAMS / "one_inode.c", tmp_path / "one_inode", *fuse("fuse3"))
    (point := tmp_path / "mount").mkdir()
    wanted = "b'through'\n" * 3 + "[b'one', b'two']\n"
    assert _python(f"{server} {point}", point, _BY_TURNS) == (0, wanted, "")


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user needs root")
def test_a_fifo_is_left_its_times_by_its_owner_alone(tmp_path):
    """The file system is a high-level one, which is not asked to open it."""
    script = """if True:
        import os, sys
        os.chdir(sys.argv[1])
        os.umask(0)
        os.mkfifo("fifo", 0o666)
        os.setresuid(-1, 65534, -1)
        for flags in os.O_RDWR, os.O_RDONLY | os.O_NONBLOCK, os.O_WRONLY:
            try:
                os.open("fifo", flags | os.O_NOATIME)
            except OSError as error:
                print(error.strerror)
        os.close(os.open("fifo", os.O_RDWR))
    """
    (source := tmp_path / "source").mkdir()
    point = tmp_path / "mount"
    mount = f"passthrough {source} {point} -o allow_other,default_permissions"
    wanted = "Operation not permitted\n" * 3
    assert _python(mount, point, script) == (0, wanted, "")
