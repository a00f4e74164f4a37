"""Relative paths that lead out of where it stands, into the real directory argv[1], in calls that
know nothing of mounts; and the working directory after setns(2)."""

import contextlib
import ctypes
import os
import struct
import sys

IN_CREATE, MS_BIND = 0x100, 0x1000
NEWNS, NEWUSER = 0x20000, 0x10000000
NAME_TO_HANDLE_AT, OPEN_TREE = 303, 428
libc = ctypes.CDLL(None, use_errno=True)


def call(function, *words):
    ctypes.set_errno(0)
    return function(*words) >= 0 or os.strerror(ctypes.get_errno())


def watch(path):
    """The name of what is made there, as inotify(7) tells it."""
    fd = libc.inotify_init1(os.O_NONBLOCK)
    added = call(libc.inotify_add_watch, fd, path.encode(), IN_CREATE)
    open(f"{path}/made", "w").close()
    os.unlink(f"{path}/made")
    event = b""
    with contextlib.suppress(BlockingIOError):
        event = os.read(fd, 4096)
    print("watch", added, event[struct.calcsize("iIII") :].rstrip(b"\0"))
    os.close(fd)


def in_child(act):
    """What it changes ends with the child."""
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        act()
        sys.stdout.flush()
        os._exit(0)
    os.waitpid(pid, 0)


def root(path):
    print("chroot", call(libc.chroot, path.encode()), os.listdir("/"))


def namespace():
    """Mounts of its own, without rights too."""
    print("unshare", call(libc.unshare, NEWNS | NEWUSER))


def find_nothing():
    """What a path leads to is looked for before it is judged."""
    namespace()
    for path in b"none", b"none/x", b"link/none":
        print(path, call(libc.mount, path, b"link", None, MS_BIND, None))
        print(path, call(libc.mount, b"link", path, None, MS_BIND, None))
        print(path, call(libc.umount2, path, 0))
        print(path, call(libc.syscall, OPEN_TREE, -100, path, 0))
        print(path, call(libc.syscall, NAME_TO_HANDLE_AT, -100, path, bytes(136), bytes(8), 0))


def bind(path):
    namespace()
    print(
        "mount", call(libc.mount, path.encode() + b"/d", path.encode() + b"/e", None, MS_BIND, None)
    )
    print(
        os.listdir(f"{path}/e"),
        call(libc.umount2, path.encode() + b"/e", 0),
        os.listdir(f"{path}/e"),
    )


def move():
    namespace()
    with open("here", "w"):
        pass
    own = os.open("/proc/self/ns/mnt", os.O_RDONLY)
    print(
        "setns",
        call(libc.setns, own, NEWNS),
        os.getcwd(),
        os.path.exists("here"),
        os.path.isdir("proc"),
    )


os.makedirs(f"{sys.argv[1]}/d/f", exist_ok=True)
os.makedirs(f"{sys.argv[1]}/e", exist_ok=True)
real = os.path.relpath(sys.argv[1])
os.symlink(sys.argv[1], "link")
watch(real)
watch("link/d")
in_child(lambda: root(real))
in_child(lambda: bind(real))
in_child(lambda: bind("link"))
in_child(find_nothing)
in_child(move)
