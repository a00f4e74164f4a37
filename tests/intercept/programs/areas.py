"""What /proc/self/maps and its like say of memory that shows files of the working directory."""

import _ctypes
import ctypes
import mmap
import os
import shutil
import subprocess
import threading
from pathlib import Path

PAGE = mmap.PAGESIZE
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, *[ctypes.c_size_t] * 5]
libc.munmap.argtypes = libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
libc.mremap.argtypes = [ctypes.c_void_p, *[ctypes.c_size_t] * 3]
libc.mremap.restype = ctypes.c_void_p


def lines_of(path):
    """Those of our files: name, offset, bytes, rights, whether device and inode are the file's.

    What lies side by side is one: the kernel may have two areas, of what was written to before.
    """
    here = os.getcwd()
    found = []
    last = 0
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        words = line.split(None, 5)
        if len(words) < 6 or not words[5].startswith(here + "/"):
            continue
        name = words[5].replace("\\012", "\n")
        start, end = (int(number, 16) for number in words[0].split("-"))
        same = "gone"
        if not name.endswith(" (deleted)"):
            status = Path(name).stat()
            device = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}"
            same = (words[3], words[4]) == (device, str(status.st_ino))
        area = (name[len(here) + 1 :], int(words[2], 16), end - start, words[1], same)
        if found and last == start and continues(area, found[-1]):
            found[-1] = (*found[-1][:2], found[-1][2] + area[2], *area[3:])
        else:
            found.append(area)
        last = end
    return sorted(found)


def continues(area, before):
    return area[::3] == before[::3] and area[1] == before[1] + before[2]


def tell(what, path="/proc/self/maps", whole=True):
    """Not whole: without what is told there in parts, or together with other memory."""
    print(what)
    for area in lines_of(path):
        if whole or (area[0] != "large" and area[3] != "rw-p"):
            print("  ", *map(repr, area))


def map_file(name, size, prot, flags, offset=0):
    fd = os.open(name, os.O_RDWR)
    at = libc.mmap(None, size, prot, flags, fd, offset)
    os.close(fd)
    return at


def make():
    Path("small").write_bytes(b"s" * 5 * PAGE)
    Path("large").write_bytes(b"l" * (20 << 20))
    Path("two words\nand a line").write_bytes(b"n" * PAGE)
    shutil.copy(_ctypes.__file__, "library.so.1")
    os.symlink("library.so.1", "library.so")


def map_some():
    read, write = mmap.PROT_READ, mmap.PROT_READ | mmap.PROT_WRITE
    for name, size in ("small", 5 * PAGE), ("large", 20 << 20), ("two words\nand a line", PAGE):
        for prot in read, write:
            for flags in mmap.MAP_PRIVATE, mmap.MAP_SHARED:
                at = map_file(name, size, prot, flags)
                ctypes.string_at(at, 1)
    tell("mapped")


def change():
    """A hole in one, other rights for a part, another place, a part that was not mapped before."""
    read, write = mmap.PROT_READ, mmap.PROT_READ | mmap.PROT_WRITE
    for flags in mmap.MAP_PRIVATE, mmap.MAP_SHARED:
        at = map_file("small", 5 * PAGE, read, flags)
        libc.munmap(at + 2 * PAGE, PAGE, 0)
        at = map_file("small", 3 * PAGE, write, flags, 2 * PAGE)
        libc.mprotect(at + PAGE, PAGE, read)
        at = map_file("small", 4 * PAGE, write, flags)
        libc.mremap(at + PAGE, 3 * PAGE, 2 * PAGE, 1)
        map_file("small", 3 * PAGE, read, flags, 4 * PAGE)  # and behind its end
        map_file("small", PAGE, read, flags, 8 * PAGE)
    tell("changed")


def by_links():
    """Of a library that is found by ../lib, or in a lib that is a link to usr/lib."""
    os.makedirs("usr/lib")
    os.symlink("usr/lib", "lib")
    os.symlink("./../lib//inside", "usr/lib/dots")
    os.symlink("../small", "usr/up")
    Path("usr/lib/inside").write_bytes(b"i" * PAGE)
    for name in "lib/inside", "lib/dots", "usr/lib/../up":
        map_file(name, PAGE, mmap.PROT_READ, mmap.MAP_PRIVATE)
        tell(name)


def rename():
    Path("before").write_bytes(b"b" * PAGE)
    map_file("before", PAGE, mmap.PROT_READ, mmap.MAP_SHARED)
    os.rename("before", "behind")
    print("renamed", [area for area in lines_of("/proc/self/maps") if area[0].startswith("be")])
    os.remove("behind")
    print("and removed", [area for area in lines_of("/proc/self/maps") if area[0].startswith("be")])


def main():
    make()
    tell("nothing")
    map_some()
    tell("thread-self", "/proc/thread-self/maps")
    tell("by number", f"/proc/{os.getpid()}/maps")
    tell("smaps", "/proc/self/smaps", whole=False)
    thread = threading.Thread(
        target=lambda: tell("of a thread", f"/proc/self/task/{threading.get_native_id()}/maps")
    )
    thread.start()
    thread.join()
    change()
    by_links()
    ctypes.CDLL("./library.so")
    tell("a library")
    os.remove("small")
    tell("removed")
    rename()
    shutil.copy(shutil.which("cat"), "program")
    told = subprocess.run(["./program", "/proc/self/maps"], capture_output=True, check=True).stdout
    Path("told").write_bytes(told)
    tell("a program", "told")
    with open("/proc/self/maps", "rb") as maps:
        first = maps.read(100)
        maps.seek(0)
        print("read again", maps.read(100) == first, maps.readable(), maps.fileno() > 2)


main()
