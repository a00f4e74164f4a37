"""openat2(2): each restriction on each kind of way, from directories and the working directory.

Prints what came of it: what the file is, or the error's number.
"""

import contextlib
import ctypes
import errno
import itertools
import os
import struct
import sys

NO_XDEV, NO_MAGICLINKS, NO_SYMLINKS, BENEATH, IN_ROOT, CACHED = (1 << bit for bit in range(6))
RESOLVE = (0, NO_XDEV, NO_MAGICLINKS, NO_SYMLINKS, BENEATH, IN_ROOT, BENEATH | NO_SYMLINKS,
           IN_ROOT | NO_XDEV, IN_ROOT | NO_SYMLINKS)  # fmt: skip
PATHS = """
    f d d/ d/. d/.. d/../f f/ f/. f/.. f/x . .. ../ ./f //f none none/x none/.. / /f /d/g /.. /../f
    /none d/g d/../../f d/../../top/f ../top/d/g link link/ linked linked/ linked/g linked/../f
    linked/. linked/.. d/up d/up/f d/above d/above/f d/above/top/f rooted rooted/x absolute
    absolute/ dangling dangling/x circle chain/f chain/g"""
LONG = "", "n" * 255, "n" * 256, "d/" + "n" * 256, "d/" + "../d/" * 300 + "g", "d/" * 2100
NEW = """
    new d/new /new d/../new ../new ../top/new linked/new linked/../new dangling absolute new/ f d
    d/. link none/new f/new/ none/new/ linked/../f/new/ link/"""
FLAGS = {
    "r": os.O_RDONLY,
    "path": os.O_PATH,
    "itself": os.O_PATH | os.O_NOFOLLOW,
    "nofollow": os.O_NOFOLLOW,
    "directory": os.O_DIRECTORY,
    "nameless": os.O_TMPFILE | os.O_RDWR,
}
LINKS = {
    "link": "f",
    "linked": "d",
    "d/up": "..",
    "d/above": "../..",
    "rooted": "/",
    "dangling": "none",
    "circle": "circle",
    "absolute": "/d/g",
    "chain": "d/e/../../linked/up/linked/../d/up",
}
ARGUMENTS = [
    *({"size": size} for size in (0, 23, 25, 1 << 62)),
    *({"more": more} for more in (b"\0" * 8, b"\0\1", b"\0" * 4072, b"\0" * 4073)),
    *({"mode": mode, "flags": os.O_CREAT} for mode in (0o10000, 1 << 40)),
    *({"flags": flags} for flags in (1 << 40, 1 << 30, os.O_PATH | os.O_RDWR)),
    *({"resolve": resolve} for resolve in (1 << 6, 1 << 40, BENEATH | IN_ROOT)),
    {"mode": 0o600},
    {"flags": os.O_CREAT | os.O_DIRECTORY},
    {"flags": os.O_TMPFILE | os.O_RDONLY, "mode": 0o600},
    {"flags": os.O_CREAT, "mode": 0o600, "resolve": CACHED},
    {"flags": os.O_TRUNC, "resolve": CACHED},
]

#: Where somebody on the machine renames something meanwhile, ".." may be EAGAIN: openat2(2).
TRIES = 1000

libc = ctypes.CDLL(None, use_errno=True)


def openat2(dirfd, path, flags=0, mode=0, resolve=0, more=b"", size=None):
    how = struct.pack("QQQ", flags, mode, resolve) + more
    name = path.encode() if isinstance(path, str) else path
    length = ctypes.c_size_t(len(how) if size is None else size)
    for _ in range(TRIES):
        fd = libc.syscall(437, dirfd, name, how, length)
        if fd >= 0 or ctypes.get_errno() != errno.EAGAIN or resolve & CACHED:
            break
    return fd


def found(fd, name=True):
    """What was opened; closes it."""
    if fd < 0:
        return ctypes.get_errno()
    try:
        kind = oct(os.fstat(fd).st_mode >> 12)
        flags = libc.fcntl(fd, 3)
        path = os.readlink(f"/proc/self/fd/{fd}").removeprefix(os.path.dirname(TOP))
        return kind, oct(flags), path[:40] if name and flags & os.O_TMPFILE != os.O_TMPFILE else ""
    finally:
        os.close(fd)


def make_tree():
    os.makedirs("top/d/e")
    os.chdir("top")
    for name in "f", "d/g", "d/e/h":
        with open(name, "w") as file:
            file.write(name)
    for name, target in LINKS.items():
        os.symlink(target, name)


def look_at_ways(dirfds):
    for path, (start, dirfd), resolve in itertools.product(
        [*PATHS.split(), *LONG], dirfds.items(), RESOLVE
    ):
        for word, flags in FLAGS.items():
            if "rooted" in path and resolve & IN_ROOT == 0 and word == "nameless":
                continue  # in whatever the root is
            if ".." in path and resolve & (BENEATH | IN_ROOT) == 0 and word == "nameless":
                continue  # above the mount there may be none
            fd = openat2(dirfd, path, flags, 0o600 * (word == "nameless"), resolve)
            print(start, path[:30], resolve, word, found(fd, name=resolve != 0))


def make_files(dirfds):
    for path, (start, dirfd), resolve in itertools.product(NEW.split(), dirfds.items(), RESOLVE):
        if resolve == 0 or (path.startswith("/") and not resolve & (BENEATH | IN_ROOT)):
            continue
        for flags in (
            os.O_CREAT,
            os.O_CREAT | os.O_EXCL,
            os.O_CREAT | os.O_NOFOLLOW,
            os.O_TRUNC | os.O_WRONLY,
        ):
            print(
                start,
                path,
                resolve,
                flags,
                found(openat2(dirfd, path, flags, 0o640 * bool(flags & os.O_CREAT), resolve)),
            )
            print(sorted(os.listdir(".")), sorted(os.listdir("d")), sorted(os.listdir("..")))
            for made in "new", "d/new", "none", "../new":
                if os.path.lexists(made):
                    os.unlink(made)


def look_at_arguments():
    for how in ARGUMENTS:
        for path in b"f", b"", b"none", None:
            print(how, path, found(openat2(-100, path, **how)))
    for dirfd in (
        -1,
        999,
        os.open("f", os.O_RDONLY),
        os.open("f", os.O_PATH),
        os.open("/dev/null", os.O_RDONLY),
    ):
        for path, resolve in itertools.product((b"f", b"/f", b"", b".", None), RESOLVE):
            if path == b"." or resolve or path != b"/f":
                print(
                    "fd" if dirfd > 2 else dirfd,
                    path,
                    resolve,
                    found(openat2(dirfd, path, resolve=resolve)),
                )
    print(libc.syscall(437, -100, b"f", None, 24), ctypes.get_errno())
    os.stat("d/e/h")
    print(
        found(openat2(-100, "d/e/h", resolve=CACHED))
        in (("0o10", "0o100000", "/top/d/e/h"), errno.EAGAIN)
    )


def look_at_magic():
    """Links of /proc are no names."""
    fd, here = os.open("f", os.O_RDONLY), os.open(".", os.O_RDONLY)
    for path, resolve in itertools.product(
        (
            f"/proc/self/fd/{fd}",
            f"/proc/self/fd/{here}/f",
            "/proc/self/cwd/f",
            f"/dev/fd/{fd}",
            f"/proc/thread-self/fd/{fd}",
        ),
        (0, NO_MAGICLINKS, NO_SYMLINKS, BENEATH, IN_ROOT, NO_XDEV),
    ):
        print(path.split("/")[-2:], resolve, found(openat2(here, path, resolve=resolve)))


def look_at_a_race():
    """What is a directory now and a link to another one then: that one is never entered."""
    os.makedirs("../other/e")
    os.symlink(os.path.abspath("../other"), "swapped")
    with open("../other/e/h", "w") as file:
        file.write("outside")
    ends = os.pipe()
    if os.fork() == 0:
        os.close(ends[1])
        os.set_blocking(ends[0], False)
        while libc.syscall(316, -100, b"swapped", -100, b"d", 2) == 0:  # RENAME_EXCHANGE
            with contextlib.suppress(BlockingIOError):
                os._exit(len(os.read(ends[0], 1)))
        os._exit(1)
    outcomes = set()
    for turn in range(600):
        fd = openat2(starts["top"], "d/e/h", resolve=(BENEATH, IN_ROOT, NO_SYMLINKS)[turn % 3])
        outcomes.add(os.read(fd, 9) if fd >= 0 else errno.errorcode[ctypes.get_errno()])
        if fd >= 0:
            os.close(fd)
    os.close(ends[1])
    print(outcomes <= {b"d/e/h", "EXDEV", "ELOOP", "EAGAIN", "ENOENT", "ENOTDIR"}, os.wait()[1])


os.umask(0o022)
make_tree()
TOP = os.getcwd()
starts = {"here": -100, "top": os.open(".", os.O_PATH | os.O_DIRECTORY)}
look_at_ways({"here": -100, "d": os.open("d", os.O_RDONLY)})
make_files(starts)
look_at_arguments()
look_at_magic()
os.mkdir("gone")
gone = os.open("gone", os.O_RDONLY)
os.rmdir("gone")
for gone_path, gone_resolve in itertools.product(
    (b".", b"f", b"../f", b"..", b"/"), (BENEATH, IN_ROOT, NO_SYMLINKS)
):
    if gone_path[:1] == b"." and gone_resolve == NO_SYMLINKS:
        continue  # what was above it
    print(gone_path, gone_resolve, found(openat2(gone, gone_path, resolve=gone_resolve)))
os.mkdir("gone")
os.chdir("gone")
os.rmdir("../gone")
for gone_path, gone_resolve in itertools.product(
    (b".", b"f", b"..", b"../f", b"./../d/g", b".." + b"/" * 300 + b"f"), RESOLVE
):
    print(gone_path[:9], gone_resolve, found(openat2(-100, gone_path, resolve=gone_resolve)))
os.chdir(TOP)
sys.stdout.flush()
look_at_a_race()
