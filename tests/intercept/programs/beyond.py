"""Maps far more than the file has, as databases do, and syncs: beyond.py MAPPED [ROUNDS].

MAPPED: "read" or "write", how the memory is mapped at first. What it shows and what comes to the
file; ROUNDS: how often it is written to and synced beside.
"""

import ctypes
import mmap
import os
import sys

SIZE, PAGE = 16 << 40, mmap.PAGESIZE
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p


def call(function, at, size, *more):
    ret = function(ctypes.c_void_p(at), ctypes.c_size_t(size), *more)
    return os.strerror(ctypes.get_errno()) if ret in (-1, 2**64 - 1) else ret


def said(what):
    with open("f", "rb") as file:
        text = file.read()
    print(what, len(text), text[:3], text[PAGE : PAGE + 3], text[5 * PAGE : 5 * PAGE + 3])


fd = os.open("f", os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
os.write(fd, b"abc" * PAGE)
access = {"read": 0, "write": mmap.PROT_WRITE}[sys.argv[1]]
at = call(libc.mmap, 0, SIZE, mmap.PROT_READ | access, mmap.MAP_SHARED, fd, ctypes.c_long(0))
for number in range(int(sys.argv[2]) if len(sys.argv) > 2 else 3):
    os.pwrite(fd, b"%d" % (number % 10), 0)
    os.fdatasync(fd)
print(ctypes.string_at(at, 3))
print(call(libc.mprotect, at + PAGE, PAGE, mmap.PROT_READ | mmap.PROT_WRITE))
ctypes.memmove(at + PAGE, b"XYZ", 3)
os.fsync(fd)
said("stored")
os.ftruncate(fd, 6 * PAGE)
print(call(libc.mprotect, at, SIZE, mmap.PROT_READ | mmap.PROT_WRITE))
ctypes.memmove(at + 5 * PAGE, b"new", 3)
print(call(libc.msync, at, SIZE, 4))
said("grown")
ctypes.memmove(at, b"end", 3)
print(call(libc.mprotect, at, SIZE, 0))
print(call(libc.munmap, at, SIZE))
os.close(fd)
said("left")
