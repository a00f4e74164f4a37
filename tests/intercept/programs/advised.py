"""What madvise(2) says of private mappings of a file, and of what takes their place."""

import ctypes
import mmap
import os

PAGE, SIZE = mmap.PAGESIZE, 16 * mmap.PAGESIZE
PRIVATE, FIXED, ANONYMOUS, MAYMOVE = 2, 16, 32, 1
READ, WRITE = 1, 2
NAMES = """NORMAL WILLNEED DONTNEED FREE REMOVE DONTFORK DOFORK WIPEONFORK KEEPONFORK
    DONTNEED_LOCKED unknown"""
ADVICE = dict(zip(NAMES.split(), (0, 3, 4, 8, 9, 10, 11, 18, 19, 24, 1212), strict=True))
libc = ctypes.CDLL(None, use_errno=True)
for function in "mmap", "mremap":
    getattr(libc, function).restype = ctypes.c_void_p


def madvise(at, size, advice):
    ctypes.set_errno(0)
    return libc.madvise(ctypes.c_void_p(at), ctypes.c_size_t(size), advice), ctypes.get_errno()


def map_file(fd, prot=READ | WRITE, size=SIZE):
    return libc.mmap(None, ctypes.c_size_t(size), prot, PRIVATE, fd, ctypes.c_long(0))


def shown(at, size=SIZE):
    """The first byte of each page."""
    return "".join(
        chr(ctypes.string_at(at + page, 1)[0] or ord(".")) for page in range(0, size, PAGE)
    )


def drop(at, size=SIZE):
    print(madvise(at, size, ADVICE["DONTNEED"]), shown(at, size))


def cover(at, size):
    """Memory of nobody's in its place, with something in it."""
    libc.mmap(
        ctypes.c_void_p(at),
        ctypes.c_size_t(size),
        READ | WRITE,
        PRIVATE | ANONYMOUS | FIXED,
        -1,
        ctypes.c_long(0),
    )
    ctypes.memset(at, ord("x"), size)


with open("f", "wb") as file:
    file.write(b"".join(bytes([letter]) * PAGE for letter in b"abcdefghijklmnop"))
fd = os.open("f", os.O_RDWR)
for prot in READ, READ | WRITE:
    at = map_file(fd, prot)
    for name, advice in ADVICE.items():
        print(
            name,
            madvise(at, SIZE, advice),
            madvise(at + 1, SIZE, advice),
            madvise(at, 0, advice),
            shown(at),
        )
    drop(at + 2 * PAGE, 3 * PAGE)
    libc.munmap(ctypes.c_void_p(at), ctypes.c_size_t(SIZE))
# What is no file's any more is dropped, and what is between two that are.
at = map_file(fd)
cover(at + 4 * PAGE, 4 * PAGE)
print(shown(at))
drop(at)
libc.munmap(ctypes.c_void_p(at + 10 * PAGE), ctypes.c_size_t(2 * PAGE))
print(madvise(at, SIZE, ADVICE["DONTNEED"]), shown(at, 10 * PAGE), shown(at + 12 * PAGE, 4 * PAGE))
cover(at + 8 * PAGE, 8 * PAGE)
drop(at)
cover(at, SIZE)
drop(at)
# Moved, shortened, and split.
at = map_file(fd)
room = libc.mmap(None, ctypes.c_size_t(SIZE), 0, PRIVATE | ANONYMOUS, -1, ctypes.c_long(0))
to = libc.mremap(
    ctypes.c_void_p(at),
    ctypes.c_size_t(SIZE),
    ctypes.c_size_t(SIZE),
    MAYMOVE | 2,
    ctypes.c_void_p(room),
)
print(to == room)
drop(to)
cover(at, SIZE)
drop(at)
print(libc.mremap(ctypes.c_void_p(to), ctypes.c_size_t(SIZE), ctypes.c_size_t(8 * PAGE), 0) == to)
cover(to + 8 * PAGE, 8 * PAGE)
drop(to)
# Of a child, which has its own.
if (child := os.fork()) == 0:
    cover(to, PAGE)
    drop(to)
    os._exit(0)
os.waitpid(child, 0)
drop(to)
for _ in range(40):
    drop(map_file(fd), SIZE)
# Of many parts, which Linux moves in one call since 6.17.
if tuple(map(int, os.uname().release.split(".")[:2])) >= (6, 17):
    at = map_file(fd)
    for page in range(0, SIZE, PAGE):
        part = ctypes.c_void_p(at + page), ctypes.c_size_t(PAGE)
        libc.mmap(*part, READ | WRITE, PRIVATE | FIXED, fd, ctypes.c_long(SIZE - PAGE - page))
    room = map_file(fd)
    size = ctypes.c_size_t(SIZE)
    to = libc.mremap(ctypes.c_void_p(at), size, size, MAYMOVE | 2, ctypes.c_void_p(room))
    print(to == room)
    drop(to)
