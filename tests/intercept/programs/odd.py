"""Calls that random ones found answered otherwise than by Linux."""

import ctypes
import errno
import os
import socket

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long


def call(number, *args):
    words = [ctypes.c_long(arg) if isinstance(arg, int) else arg for arg in args]
    result = libc.syscall(number, *words)
    return errno.errorcode[ctypes.get_errno()] if result < 0 else result


top = os.getcwd()
os.mkdir("d")
os.symlink("d", "l")
os.symlink("f", "d/s")
os.symlink("d/f", "k")
fd = os.open("d/f", os.O_RDWR | os.O_CREAT)
reads, writes = os.pipe()
where = os.open(".", os.O_RDONLY)

print("attributes of nothing")
print(call(191, b"", b"user.a", None, 0), call(188, b"", b"user.a", b"x", 1, 0))
print(call(194, b"", None, 0), call(197, b"", b"user.a"), call(192, b"", b"user.a", None, 0))

print("from a directory to a pipe")
print(call(275, where, None, writes, None, 10, 0))

print("not appended")
data = ctypes.create_string_buffer(b"word")
vector = (ctypes.c_ulong * 2)(ctypes.addressof(data), 4)
if tuple(map(int, os.uname().release.split(".")[:2])) >= (6, 9):
    print(call(328, fd, vector, 1, 5, 0, 0x20), os.pread(fd, 99, 0))
    print(call(327, fd, vector, 1, 0, 0, 0x20))

print("flags that are refused of what would end beyond the largest offset")
for offset in (1 << 63) - 1, (1 << 63) - 5, -2:
    for flags in 0x40000, 0x30:
        print([call(number, fd, vector, 1, offset, 0, flags) for number in (327, 328)])

print("flags of mappings that say MAP_SHARED_VALIDATE")
os.ftruncate(fd, 5)
for bit in *range(5, 8), *range(9, 18), *range(19, 20), *range(21, 33):
    mapped = call(9, 0, 4096, 1, 3 | 1 << bit, fd, 0)
    print(bit, mapped if isinstance(mapped, str) else call(11, mapped, 4096))

print("names through symlinks")
for name in "d/f", "l/f", "l/s", "k", "l", "l/.", "l/../l/f", ".//l//f", f"{top}/l/f":
    found = os.open(name, os.O_RDONLY)
    print(name.replace(top, ""), os.readlink(f"/proc/self/fd/{found}").replace(top, ""))
    os.close(found)

print("names of what was removed, through symlinks")
os.symlink("d/gone", "m")
for name in "d/gone", "l/gone", "m", "l/../l/gone", f"{top}/l/.//gone":
    found = os.open(name, os.O_RDWR | os.O_CREAT)
    os.unlink("d/gone")
    print(name.replace(top, ""), os.readlink(f"/proc/self/fd/{found}").replace(top, ""))
    os.close(found)

print("numbers that are no descriptors")
for number in 999, where + (1 << 30), *range((1 << 30) + (1 << 20), (1 << 30) + (1 << 20) + 3):
    print(
        call(257, number, b"d/f", 0), call(262, number, b"", ctypes.create_string_buffer(144), 4096)
    )
    print(
        call(280, number, None, None, 0),
        call(258, number, b"new", 0o700),
        call(257, number, b"", 0),
    )
    print(call(264, number, b"d", where, b"new"), call(322, number, b"", None, None, 4096))
    print(call(437, number, b"d/f", (ctypes.c_ulong * 3)(0, 0, 4), 24))

print("mapped without the right to read")
other = os.open("d/f", os.O_ACCMODE)
print(call(9, 0, 4096, 0, 1, other, 0), call(9, 0, 4096, 1, 2, other, 0))

print("copied without the right to read, to no pipe, with flags")
named = os.open("d/f", os.O_PATH)
print(call(40, writes, other, None, 0), call(275, other, None, other, None, 1, 0))
print(call(326, fd, None, named, None, 1, 1), call(326, fd, None, fd, None, 1, 1))

print("made again by its descriptor")
for flags in os.O_CREAT, os.O_CREAT | os.O_DIRECTORY:
    print(call(2, b"/proc/self/fd/%d" % where, flags, 0), end=" ")
    print(call(2, b"/proc/self/fd/%d" % fd, flags | os.O_EXCL, 0))

print("attributes by statx's flags")
print([call(262, where, b"d", ctypes.create_string_buffer(144), f << 13) for f in range(4)])

print("linked by a descriptor")
print(call(265, fd, b"", -100, b"new", 0x1000), call(265, where, b"", -100, b"new", 0x1000))
if tuple(map(int, os.uname().release.split(".")[:2])) >= (6, 10) and os.geteuid() == 0:
    os.unlink("new")
    os.chmod(".", 0o777)
    os.setresuid(-1, 65534, -1)
    own, path = os.open("new", os.O_RDWR | os.O_CREAT), os.open("d", os.O_PATH)
    for flags in 0x1000, 0x1400, 0:
        for opened in fd, own, path:
            print(call(265, opened, b"", -100, b"other", flags))
            print(call(265, opened, b"", -100, b"other", flags))
    if (child := os.fork()) == 0:
        print(call(265, own, b"", -100, b"by the child", 0x1000), flush=True)
        os._exit(0)
    os.waitpid(child, 0)
    os.setresuid(-1, 0, -1)

print("a message without an address, and no place for one")
ours, theirs = socket.socketpair()
theirs.send(b"word")
length, text = ctypes.c_int(99), ctypes.create_string_buffer(4)
print(call(45, ours.fileno(), text, 4, 0, -1, ctypes.byref(length)), text.raw, length.value)

print("whose ids access asks by")
os.chmod(".", 0o755)
os.chmod("d/f", 0o604)
if os.geteuid() == 0:
    os.setresuid(65534, 0, 0)
for wanted in [os.R_OK, os.W_OK] * 2:
    print(os.access("d/f", wanted), os.access("d/f", wanted, effective_ids=True))

print("what is made for a program whose umask leaves it nothing")
os.umask(0o777)
if os.geteuid() == 0:
    os.setresuid(-1, 65534, -1)
with open("/proc/mounts") as file:
    print(len(file.read()) > 0)
