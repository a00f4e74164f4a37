"""Vectors, listings and fcntl(2) with words that are wrong, too large, or not looked at."""

import ctypes
import itertools
import os

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
READV, WRITEV, PREADV, PWRITEV, PREADV2, PWRITEV2 = 19, 20, 295, 296, 327, 328
GETDENTS, GETDENTS64, FCNTL = 78, 217, 72
ADD_SEALS, GET_SEALS, GETLK, CREATED_QUERY = 1033, 1034, 5, 1028
NOWAIT, UNKNOWN = 8, 1 << 31
ROOM = ctypes.create_string_buffer(b"word", 4096)
BAD = ctypes.c_void_p(1)


def call(number, *words):
    ctypes.set_errno(0)
    words = [ctypes.c_long(word) if isinstance(word, int) else word for word in words]
    ret = libc.syscall(number, *words)
    return f"error {ctypes.get_errno()}" if ret < 0 else ret


def vector(*sizes):
    pairs = ((ctypes.addressof(ROOM), size) for size in sizes)
    return (ctypes.c_uint64 * (2 * len(sizes)))(*itertools.chain.from_iterable(pairs))


with open("f", "wb") as file:
    file.write(b"bytes" * 10)
fds = {"r": os.O_RDONLY, "w": os.O_WRONLY, "rw": os.O_RDWR, "path": os.O_PATH}
fds = {name: os.open("f", flags) for name, flags in fds.items()} | {"none": 999}
vectors = {"NULL": None, "1": BAD, "empty": vector(0, 0), "negative": vector(3, 1 << 63)}
vectors["two"] = vector(3, 4)
counts = 0, 1, 2, 1025, 1 << 32, (1 << 32) + 2, -1
for (name, fd), (v, what), count in itertools.product(fds.items(), vectors.items(), counts):
    print(name, v, count, call(READV, fd, what, count), call(WRITEV, fd, what, count))
    for offset in 0, -1, -2:
        print(offset, *(call(n, fd, what, count, offset, 0) for n in (PREADV, PWRITEV)))
        print(
            *(
                call(number, fd, what, count, offset, 0, flags)
                for number, flags in itertools.product((PREADV2, PWRITEV2), (0, UNKNOWN))
            )
        )
    os.lseek(fds["r"], 0, os.SEEK_SET)
    os.lseek(fds["rw"], 0, os.SEEK_SET)
print(call(PREADV2, fds["r"], vectors["two"], 2, 0, 0, 0x10))
os.mkdir("d")
directory = os.open("d", os.O_RDONLY)
for number, size in itertools.product((GETDENTS, GETDENTS64), (0, 1, 23, -1, 1 << 31, 1 << 32)):
    print(number, size, call(number, directory, ROOM, size), call(number, directory, BAD, size))
for name, fd in fds.items():
    print(name, call(FCNTL, fd, ADD_SEALS, 1 << 20), call(FCNTL, fd, GETLK, BAD))
print(call(FCNTL, fds["path"], GET_SEALS))
if tuple(map(int, os.uname().release.split(".")[:2])) >= (6, 12):
    print(call(FCNTL, directory, CREATED_QUERY), call(FCNTL, fds["path"], CREATED_QUERY))
