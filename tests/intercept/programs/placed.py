"""Where pwritev2(2) writes that says so: at the end, or at its offset in spite of O_APPEND."""

import ctypes
import errno
import mmap
import os
import resource
import signal

HIPRI, DSYNC, NOWAIT, APPEND, NOAPPEND, UNKNOWN = 1, 2, 8, 16, 32, 1 << 20
libc = ctypes.CDLL(None, use_errno=True)


class Vector(ctypes.Structure):
    """struct iovec."""

    _fields_ = [("base", ctypes.c_char_p), ("size", ctypes.c_size_t)]


def write(fd, offset, flags, data=b"new"):
    """pwritev2(2), or its error."""
    ctypes.set_errno(0)
    words = ctypes.byref(Vector(data, len(data))), 1, ctypes.c_long(offset), 0, flags
    ret = libc.syscall(328, fd, *words)
    return ret if ret >= 0 else errno.errorcode[ctypes.get_errno()]


def look(name, fds, memory=None):
    """Each way of placing it, by each descriptor, at an offset and at the position."""
    for how, fd in fds.items():
        for flags in APPEND, NOAPPEND, APPEND | DSYNC, APPEND | NOAPPEND, APPEND | UNKNOWN, HIPRI:
            for offset in 2, -1:
                os.lseek(fd, 4, os.SEEK_SET)
                said = write(fd, offset, flags)
                shown = os.pread(fds["both"], 99, 0)
                at = os.lseek(fd, 0, os.SEEK_CUR)
                print(name, how, flags, offset, said, at, shown, memory and memory[:10])
                os.ftruncate(fds["both"], 10)
        print(
            write(fd, 0, APPEND, b""), write(fd, -2, APPEND), write(fd, 0, APPEND | NOAPPEND, b"")
        )


def open_all():
    """For both, to append, and for reading."""
    flags = {
        "both": os.O_RDWR | os.O_CREAT,
        "append": os.O_WRONLY | os.O_APPEND,
        "read": os.O_RDONLY,
    }
    return {how: os.open("f", flag) for how, flag in flags.items()}


fds = open_all()
os.write(fds["both"], b"0123456789")
look("file", fds)
with mmap.mmap(fds["both"], 10) as memory:
    look("mapped", fds, memory)
large = b"x" * (3 << 20)
print(write(fds["both"], 0, APPEND, large), os.fstat(fds["both"]).st_size)
print(write(fds["append"], 5, NOAPPEND, large), os.fstat(fds["both"]).st_size)
print(os.pread(fds["both"], 20, 0))
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
os.ftruncate(fds["both"], 10)
resource.setrlimit(resource.RLIMIT_FSIZE, (12, 12))
print(
    write(fds["both"], 0, APPEND), write(fds["both"], 0, APPEND), write(fds["append"], 0, NOAPPEND)
)
