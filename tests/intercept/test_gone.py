"""Mapped files whose file system is gone: as on a kernel mount whose program was killed."""

import subprocess
import sys

import pytest

from directfuse import _kernel, _paths

from .conftest import environment

#: In an empty mount, of which the path is given; the process that has it is killed on the way.
_SCRIPT = """
import ctypes, errno, mmap, os, select, signal, sys

point = sys.argv[1].encode()
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p] + [ctypes.c_size_t] * 5
libc.msync.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
SIZE, FAILED, MS_ASYNC, MS_SYNC = 8192, ctypes.c_void_p(-1).value, 1, 4
SMALL, LARGE = 8192, 32 << 20


def make(name, size):
    fd = os.open(point + name, os.O_CREAT | os.O_RDWR)
    os.ftruncate(fd, size)
    return fd


def mapped(fd, flags):
    at = libc.mmap(None, SIZE, mmap.PROT_READ | mmap.PROT_WRITE, flags, fd, 0)
    assert at != FAILED, errno.errorcode[ctypes.get_errno()]
    return at


def synced(at, flags):
    ctypes.set_errno(0)
    return libc.msync(at, SIZE, flags), errno.errorcode.get(ctypes.get_errno(), "")


def touched(at):
    pid = os.fork()
    if pid == 0:
        ctypes.memset(at, 1, 1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def kill(names):
    for number in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = open(f"/proc/{number}/cmdline", "rb").read().split(b"\\0")
        except OSError:
            continue
        if os.path.basename(words[0]) in names and point in words:
            end = select.poll()
            end.register(os.pidfd_open(int(number)), select.POLLIN)
            os.kill(int(number), signal.SIGKILL)
            assert end.poll(10000)


files = [make(b"/small", SMALL), make(b"/large", LARGE)]
before = make(b"/before", SMALL)
there = mapped(before, mmap.MAP_SHARED)
ctypes.memset(there, 1, SIZE)
kill((b"directfuse-server", b"memfs"))
print("stored before:", touched(there), synced(there, MS_SYNC), synced(there, MS_ASYNC))
for fd in files:
    for flags in (mmap.MAP_SHARED, mmap.MAP_PRIVATE):
        print("mapped now:", touched(mapped(fd, flags)))
"""


@pytest.mark.kernel_fuse
def test_mapped_files_without_their_file_system(mounted, tmp_path):
    """mmap asks nobody, memory that would have to be read is SIGBUS, msync says ENOTCONN."""
    point = tmp_path / "kernel"
    point.mkdir()
    with _kernel.Program([str(_paths.program("memfs")), str(point), "-f"]) as program:
        program.wait_mounted(20)
        wanted = subprocess.run(
            [sys.executable, "-c", _SCRIPT, str(point)],
            env=environment(),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert wanted.returncode == 0, wanted.stderr
    found = mounted(sys.executable, "-c", _SCRIPT, mounted.point)
    assert found.status == 0, found.err
    assert found.out.decode() == wanted.stdout
    assert wanted.stdout.count("mapped now: -7") == 4
    assert "(-1, 'ENOTCONN') (0, '')" in wanted.stdout
