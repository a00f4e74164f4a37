"""A child of fork(2) has none of the memory that its parent keeps for itself (MADV_DONTFORK), and
all else of the mapping: argument 1 says how many bytes of a file are mapped."""

import ctypes
import mmap
import os
import signal
import sys

PAGE, SIZE = mmap.PAGESIZE, int(sys.argv[1])
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
FIXED_NOREPLACE, ANONYMOUS = 0x100000, 0x20


def child(function, *args):
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        function(*args)
        sys.stdout.flush()
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    print(function.__name__, signal.Signals(-status).name if status < 0 else status)


def at(page):
    return ctypes.string_at(start + page * PAGE, 1)


def look_beside():
    print(at(0), at(2), at(5), at(SIZE // PAGE - 1))


def look_there():
    at(3)


def map_there():
    size = ctypes.c_size_t(2 * PAGE)
    flags = mmap.MAP_PRIVATE | ANONYMOUS | FIXED_NOREPLACE
    own = libc.mmap(ctypes.c_void_p(start + 3 * PAGE), size, 3, flags, -1, ctypes.c_long(0))
    ctypes.memset(own, ord("o"), 2 * PAGE)
    print(own == start + 3 * PAGE, at(2), at(3), at(4), at(5))
    libc.madvise(ctypes.c_void_p(own), size, mmap.MADV_DONTNEED)
    print(at(3), at(5), libc.munmap(ctypes.c_void_p(own), size))
    at(4)


with open("f", "wb") as file:
    file.write(b"".join(b"%c" % (97 + i % 26) * PAGE for i in range(SIZE // PAGE)))
fd = os.open("f", os.O_RDWR)
start = libc.mmap(None, ctypes.c_size_t(SIZE), 3, mmap.MAP_SHARED, fd, ctypes.c_long(0))
print(
    libc.madvise(ctypes.c_void_p(start + 3 * PAGE), ctypes.c_size_t(2 * PAGE), mmap.MADV_DONTFORK)
)
for function in look_beside, look_there, map_there:
    child(function)
print(at(3), at(4))
