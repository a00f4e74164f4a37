"""Calls of which a part can be done, and calls of which more than one thing is wrong."""

import ctypes
import errno
import mmap
import os
import sys

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
PAGE, LAST = 4096, (1 << 63) - 1
READ, WRITE, PREAD, PWRITE, READV, WRITEV = 0, 1, 17, 18, 19, 20
PREADV, PREADV2 = 295, 327


def call(number, *args):
    words = [ctypes.c_long(arg) if isinstance(arg, int) else arg for arg in args]
    result = libc.syscall(number, *words)
    return errno.errorcode[ctypes.get_errno()] if result < 0 else result


def ends(name, *results):
    print(name, *results)


# ---- memory that ends ----

memory = call(9, 0, 65 * PAGE, 3, 0x22, -1, 0)
edge = memory + 64 * PAGE
call(10, edge, PAGE, 0)


class Iovec(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]


def vector(*parts):
    return ctypes.byref((Iovec * len(parts))(*parts)), len(parts)


def bytes_of(fd):
    data = os.pread(fd, 1 << 20, 0)
    return len(data), sum(data), data[-3:]


def partial(fd):
    """Each kind of call whose buffer ends in the middle, at its beginning, in a second one."""
    ctypes.memset(memory, ord("m"), 64 * PAGE)
    for there in 1, 100, 4096, 5000, 200_000:
        ends("pwrite", there, call(PWRITE, fd, edge - there, there + 3000, 70_000), bytes_of(fd))
    ends("write", os.lseek(fd, 3, 0), call(WRITE, fd, edge - 77, 9000), os.lseek(fd, 0, 1))
    ends("writev", call(WRITEV, fd, *vector((memory, 10), (edge - 20, 50), (memory, 5))))
    ends("nothing of it", call(WRITEV, fd, *vector((edge, 10), (memory, 5))), bytes_of(fd))
    ends("behind", call(WRITEV, fd, *vector((memory, 5), (edge, 10))), os.lseek(fd, 0, 1))
    for there in 1, 100, 4096, 5000, 200_000:
        ctypes.memset(memory, 0, 64 * PAGE)
        got = call(PREAD, fd, edge - there, there + 3000, 10)
        ends("pread", there, got, sum(ctypes.string_at(edge - there, there)))
    ends("read", os.lseek(fd, 3, 0), call(READ, fd, edge - 77, 9000), os.lseek(fd, 0, 1))
    ends("readv", call(READV, fd, *vector((memory, 10), (edge - 20, 50), (memory, 5))))
    ends("nothing of it", call(READV, fd, *vector((edge, 10), (memory, 5))))
    ends("at the end", call(PREAD, fd, edge, 10, 1 << 40))
    for at in 8, 1 << 47, 1 << 62, -4096, LAST - 5:
        ends("no memory", call(PWRITE, fd, at, 10, 0), call(PREAD, fd, at, 10, 0))


# ---- offsets that cannot be ----


def offsets(fd, directory, path_only):
    other = os.open("other", os.O_RDWR | os.O_CREAT)
    os.pwrite(other, b"o" * 10_000, 0)
    written = os.open("other", os.O_WRONLY)
    for at in -4096, LAST - 4095, 1, 0:
        for fd_of in fd, directory, path_only, written:
            for length in PAGE, 0, -1:
                if at or length <= 0 or fd_of != fd:
                    shared = call(9, 0, length, 3, 1, fd_of, at)
                    ends("mmap", at, length, shared, call(9, 0, length, 1, 2, fd_of, at))
    ends("MAP_SYNC", *(call(9, 0, PAGE, 3, 3 | flag, fd, 0) for flag in (0x80000, 0x100000)))
    for at in -1, -4096, -LAST, LAST, LAST - 5:
        one, two = (ctypes.byref(ctypes.c_long(offset)) for offset in (at, 0))
        for size in 0, 3, 70_000, -1:
            ends("copied from", at, size, call(326, other, one, fd, two, size, 0))
        if at < 0 or at == LAST:
            for size in 0, 3, 70_000, -1:
                ends("copied to", at, size, call(326, other, two, fd, one, size, 0))
    for fd_of in fd, path_only, written:
        for at in -1, LAST:
            ends("read there", at, call(PREAD, fd_of, memory, 10, at))
            ends("written there", at, call(PWRITE, fd_of, memory, 10, at))
        ends("allocated", call(285, fd_of, 0, LAST, 5), call(285, fd_of, 0, -1, 5))
        ends("readahead", call(187, fd_of, 0, 10))
        ends("syncfs", call(306, fd_of))
        ends("sync_file_range", call(277, fd_of, 0, 0, 8), call(277, fd_of, -1, 0, 0))
    ends("of a directory", call(187, directory, 0, 10), call(306, directory))
    for at in -1, LAST, 0:
        ends("bytes of it", *(call(PREAD, directory, memory, size, at) for size in (0, 10)))
        ends("a vector of it", call(PREADV, directory, *vector((memory, 10)), at, 0))
    for flags in 0, 1, 2, 4, 8, 0x10, 0x20, 0x30:
        for size in 0, 10:
            ends("flags", call(PREADV2, directory, *vector((memory, size)), 0, 0, flags))


def spliced(fd):
    """What cannot be written there stays in the pipe."""
    reader, writer = os.pipe2(os.O_NONBLOCK)
    for at, size in (-1, 4), (LAST, 4), (5, -1), (5, LAST):
        os.write(writer, b"kept")
        word = ctypes.byref(ctypes.c_long(at))
        ends("spliced to", at, size, call(275, reader, 0, fd, word, size, 2))
        ends("spliced from", at, size, call(275, fd, word, writer, 0, size, 2))
        ends("left", os.read(reader, 4))


def opened(path_only):
    for flags in 0, os.O_DIRECTORY, os.O_PATH, os.O_PATH | os.O_DIRECTORY:
        try:
            os.close(os.open("d", flags | os.O_DIRECT))
            ends("O_DIRECT", flags, "opened")
        except OSError as error:
            ends("O_DIRECT", flags, error.strerror)
    for flags in 0, os.O_DIRECTORY, os.O_NOFOLLOW, os.O_CLOEXEC:
        fd = os.open("d", os.O_PATH | flags)
        with open(f"/proc/self/fdinfo/{fd}") as file:
            ends("fdinfo", flags, file.read().split()[:4])
        os.close(fd)
    empty = ctypes.create_string_buffer(256)
    for flags, mask in (0x6000, 0), (0, 1 << 31):
        ends("statx", call(332, path_only, b"none", flags, mask, empty))


def replaced():
    """What cannot be mapped in its place leaves a mapping as it was: its stores reach the file."""
    fd = os.open("mapped", os.O_RDWR | os.O_CREAT)
    os.write(fd, b"m" * PAGE)
    at = call(9, 0, PAGE, 3, 1, fd, 0)
    for wrong in (
        (at + 1, PAGE, 3, 0x11, fd, 0),
        (at, PAGE, 3, 0x11, fd, 5),
        (at, 0, 3, 0x11, fd, 0),
    ):
        ends("in its place", call(9, *wrong))
    ctypes.memset(at, ord("s"), 1)
    os.close(fd)
    ends("munmap", call(11, at, PAGE))
    with open("mapped", "rb") as again:
        ends("stored", again.read(3))


os.mkdir("d")
file = os.open("file", os.O_RDWR | os.O_CREAT)
os.write(file, b"f" * 100_000)
only, place = os.open("file", os.O_PATH), os.open("d", os.O_RDONLY)
if sys.argv[1] == "memory":
    partial(file)
    mapped = mmap.mmap(file, 100_000)
    partial(file)
    print(sum(mapped[:]), mapped[70_000:70_003])
elif sys.argv[1] == "large":
    os.ftruncate(file, 40 << 20)
    mapped = mmap.mmap(file, 40 << 20)
    mapped[5] = 7
    partial(file)
    print(sum(mapped[:200_000]))
else:
    offsets(file, place, only)
    spliced(file)
    opened(only)
    replaced()
