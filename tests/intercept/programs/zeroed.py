"""What a file holds that is mapped, or not, when some of it becomes zeros, and when it is full.

zeroed.py SIZE MAPPED: the answers must not depend on MAPPED. Its file system has no room left
behind the file; tmpfs knows no FALLOC_FL_ZERO_RANGE.
"""

import ctypes
import mmap
import os
import sys
import zlib

KEEP_SIZE, PUNCH_HOLE, COLLAPSE_RANGE, ZERO_RANGE = 1, 2, 8, 16
libc = ctypes.CDLL(None, use_errno=True)
size, mapped = map(int, sys.argv[1:])
fd = os.open("f", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
other = os.open("f", os.O_WRONLY)
os.pwrite(fd, b"x" * 300_000, 0)
os.ftruncate(fd, size)
memory = mmap.mmap(fd, size) if mapped else None


def look():
    """Size and bytes, as read and as mapped."""
    length = os.fstat(fd).st_size
    data = os.pread(fd, 400_000, 0)
    if memory:
        assert memory[: len(data)] == data[: len(memory)]
    print(length, zlib.crc32(data), os.pread(fd, 20_000, length - 9000)[-3:], flush=True)


def allocate(mode, at, length):
    done = libc.fallocate(fd, mode, ctypes.c_long(at), ctypes.c_long(length))
    print("fallocate", mode, done, ctypes.get_errno() if done else 0)
    look()


def write(descriptor, at, length):
    try:
        print("write", os.pwrite(descriptor, b"w" * length, at))
    except OSError as error:
        print("write", error.errno)
    look()


for mode in PUNCH_HOLE | KEEP_SIZE, ZERO_RANGE, ZERO_RANGE | KEEP_SIZE:
    os.pwrite(fd, b"y" * 60_000, 0)
    allocate(mode, 5000, 20_000)
allocate(ZERO_RANGE | KEEP_SIZE, size - 100, 5000)
if not mapped:
    print("fallocate", COLLAPSE_RANGE, -1, 95)
    look()
else:
    allocate(COLLAPSE_RANGE, 0, 4096)
os.pwrite(fd, b"z" * 300_000, 0)
with open("rest", "wb", buffering=0) as rest:
    try:
        while rest.write(b"r" * 4096):
            pass
    except OSError:
        pass
for descriptor in fd, other:
    write(descriptor, 310_000 if size > 400_000 else size, 70_000)
    write(descriptor, 290_000, 90_000)
    write(descriptor, size + 100_000, 10)
    allocate(0, size, 200_000)
