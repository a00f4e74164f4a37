"""The working directory by an empty path: what the *at() calls say of it."""

import ctypes
import os
import struct

HERE, EMPTY, NOFOLLOW = -100, 0x1000, 0x100
libc = ctypes.CDLL(None, use_errno=True)


def call(number, *words):
    ctypes.set_errno(0)
    words = [ctypes.c_long(word) if isinstance(word, int) else word for word in words]
    return libc.syscall(number, *words), ctypes.get_errno()


def look(wanted):
    """stat, statx, access, chmod, chown, times and what has no such flag."""
    for path in b"", None:
        room = ctypes.create_string_buffer(256)
        for flags in 0, EMPTY, EMPTY | NOFOLLOW:
            print(path, flags, call(262, HERE, path, room, flags))
        print(struct.unpack_from("Q", room, 8)[0] == wanted.st_ino)
        room = ctypes.create_string_buffer(256)
        print(call(332, HERE, path, EMPTY, 0x7FF, room), call(332, HERE, path, 0, 0x7FF, room))
        print(struct.unpack_from("Q", room, 32)[0] == wanted.st_ino)
    for flags in 0, EMPTY:
        print(call(439, HERE, b"", os.W_OK, flags), call(452, HERE, b"", 0o751, flags))
        print(call(260, HERE, b"", os.getuid(), -1, flags), call(280, HERE, b"", bytes(32), flags))
        print(call(265, HERE, b"", HERE, b"linked", flags), call(322, HERE, b"", None, None, flags))
    for flags in os.O_RDONLY, os.O_PATH, os.O_DIRECTORY, os.O_TMPFILE | os.O_RDWR:
        print(call(257, HERE, b"", flags, 0o600), call(2, b"", flags, 0o600))
    print(call(267, HERE, b"", ctypes.create_string_buffer(9), 9), call(263, HERE, b"", 0))
    print(call(258, HERE, b"", 0o700), call(264, HERE, b"", HERE, b"x"), call(4, b"", room))
    print(oct(os.stat(".").st_mode), os.stat(".").st_mtime == 0)


look(os.stat("."))
os.mkdir("d")
os.chdir("d")
look(os.stat("."))
os.mkdir("../d/e")
os.chdir("e")
held = os.open(".", os.O_RDONLY)
os.rename("../../d", "../../f")
look(os.fstat(held))
os.chdir("/proc/self")
look(os.stat("/proc/self"))
