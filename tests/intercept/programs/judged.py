"""Which error a call has of which several arguments are wrong at a time: flags and other words,
descriptors, and paths that cannot be taken, are empty, too long or lead nowhere."""

import ctypes
import itertools
import os

libc = ctypes.CDLL(None, use_errno=True)
EMPTY_PATH, NOFOLLOW, REMOVEDIR, FOLLOW, UNKNOWN = 0x1000, 0x100, 0x200, 0x400, 1 << 20
FLAGS = 0, EMPTY_PATH, NOFOLLOW, UNKNOWN, UNKNOWN | EMPTY_PATH
OMIT = (1 << 30) - 2
LONG = b"x" * 300
BAD = ctypes.c_void_p(1)
ROOM = ctypes.create_string_buffer(4096)
TOP = os.getcwd()


def times(first, second):
    """Two struct timespec or timeval."""
    return (ctypes.c_long * 4)(5, first, 6, second)


def how(*words):
    """struct open_how; or xattr_args, whose second word is size and flags."""
    return (ctypes.c_uint64 * 4)(*words)


NANOSECONDS = (1, 1), (10**9, 1), (1, -1), (OMIT, OMIT), (OMIT, -1)
TIMES = None, BAD, *itertools.starmap(times, NANOSECONDS)
OLD_TIMES = None, BAD, times(1, 1), times(10**6, 1), times(1, -1)
HOWS = how(), how(1 << 40), how(0, 0o644), how(0, 0, 1 << 40), BAD
VALUE = ctypes.addressof(ROOM)
READ = how(VALUE, 9), how(1, 9), how(1, 1 << 32 | 9), how(1, 9, 1), BAD
REPLACED = how(VALUE, 2 << 32 | 9), how(1, 2 << 32), how(1, 8 << 32), how(1, 2 << 32, 1), BAD
NAMES = b"user.x", b"", LONG, b"nothing", BAD

#: Number, and what may stand behind descriptor and path.
AT = {
    "newfstatat": (262, (ROOM, BAD), FLAGS),
    "statx": (332, (*FLAGS, 0x6000), (0x7FF, 1 << 31 | 1), (ROOM, BAD)),
    "faccessat2": (439, (0, 4, 8, -1), (*FLAGS, 0x200)),
    "faccessat": (269, (0, 4, 8, -1)),
    "fchmodat": (268, (0o644, 0o170644)),
    "fchmodat2": (452, (0o644,), FLAGS),
    "fchownat": (260, (-1,), (-1,), FLAGS),
    "utimensat": (280, TIMES, FLAGS),
    "futimesat": (261, OLD_TIMES),
    "mkdirat": (258, (0o755,)),
    "mknodat": (259, (0, 0o100644, 0o010644, 0o040755, 0o120777, 0o050000, 0o170000), (0,)),
    "unlinkat": (263, (0, REMOVEDIR, *FLAGS[1:])),
    "readlinkat": (267, (ROOM, BAD), (0, -1, 9)),
    "openat": (257, (0, 0o3, 0o100, 0o300, 0o10000000, 0o20200000, 0o20200001), (0o644,)),
    "openat2": (437, HOWS, (24, 8, 32)),
}
if tuple(map(int, os.uname().release.split(".")[:2])) >= (6, 13):
    AT["setxattrat"] = 463, FLAGS, (b"user.x",), REPLACED, (16, 8, 24, 5000)
    AT["getxattrat"] = 464, FLAGS, (b"user.x",), READ, (16, 24)
    AT["listxattrat"] = 465, FLAGS, (None, BAD), (0, 9)
    AT["removexattrat"] = 466, FLAGS, (b"user.x", b"", BAD)
PLAIN = {
    "truncate": (76, (-1, 0)),
    "chdir": (80,),
    "statfs": (137, (ROOM, BAD)),
    "getxattr": (191, NAMES, (None, BAD), (0, 9)),
    "setxattr": (188, NAMES, (BAD,), (0, 9, 1 << 20), (0, 8)),
    "listxattr": (194, (None, BAD), (0, 9)),
    "removexattr": (197, NAMES[1:]),
    "utime": (132, (None, BAD, times(1, 1))),
    "utimes": (235, OLD_TIMES),
}
TWO = {
    "linkat": (265, (0, FOLLOW, EMPTY_PATH, UNKNOWN, UNKNOWN | EMPTY_PATH)),
    "renameat2": (316, (0, 1, 2, 3, 6, 1 << 10)),
}


def directories():
    """By what stands for them in the output."""
    return {
        "cwd": -100,
        "here": os.open(".", os.O_RDONLY),
        "none": 999,
        "else": os.memfd_create("else"),
        "path": os.open(".", os.O_PATH),
        "file": os.open("file", os.O_RDONLY),
        "-1": -1,
        "link": os.open("loop", os.O_PATH | os.O_NOFOLLOW),
    }


def paths():
    top = TOP.encode()
    bad = {"NULL": None, "1": BAD, "empty": b"", "long": b"x" * 4096, "x/x": b"x/" * 2050}
    real = {"long real": b"/dev/shm/" + b"x" * 5000, "real none": b"/dev/shm/none/x"}
    names = b"file", b"none", b"none/x", b"file/x", b"d", b"d/.", b"loop", b"dangling"
    whole = {"/": top, "/none": top + b"/none", "/file/x": top + b"/file/x"}
    return bad | real | {name.decode(): name for name in names} | whole


def remove(path):
    if os.path.isdir(path) and not os.path.islink(path):
        os.rmdir(path)
    elif os.path.lexists(path):
        os.unlink(path)


def tidy():
    """What is there is again as it was before a call that was done."""
    os.chdir(TOP)
    remove("none")
    for name in os.listdir("d") if os.path.isdir("d") else ():
        remove(f"d/{name}")
    if not os.path.isdir("d") or os.path.islink("d"):
        remove("d")
        os.mkdir("d")
    if not os.path.isfile("file"):
        remove("file")
        open("file", "w").close()
    for link, target in ("loop", "loop"), ("dangling", "gone/gone"):
        if not os.path.islink(link):
            remove(link)
            os.symlink(target, link)


def call(number, *words):
    ctypes.set_errno(0)
    words = [ctypes.c_long(word) if isinstance(word, int) else word for word in words]
    ret = libc.syscall(number, *words)
    if ret < 0:
        return ctypes.get_errno()
    if number in (257, 437):
        os.close(ret)
    tidy()
    return "done"


tidy()
fds, short = directories(), paths()
names = short | {"long name": LONG}
for name, (number, *columns) in AT.items():
    for (d, fd), (p, path) in itertools.product(fds.items(), names.items()):
        words = itertools.product(*columns)
        print(name, d, p, *(call(number, fd, path, *rest) for rest in words))
for name, (number, *columns) in PLAIN.items():
    for p, path in names.items():
        words = itertools.product(*columns)
        print(name, p, *(call(number, path, *rest) for rest in words))
for (d, fd), (t, target) in itertools.product(fds.items(), names.items()):
    print("symlinkat", t, d, *(call(266, target, fd, path) for path in names.values()))
few = dict(itertools.islice(fds.items(), 4))
for name, (number, flags) in TWO.items():
    for flag, (d, fd), (p, path) in itertools.product(flags, few.items(), short.items()):
        words = itertools.product(few.values(), short.values())
        print(name, flag, d, p, *(call(number, fd, path, *rest, flag) for rest in words))
