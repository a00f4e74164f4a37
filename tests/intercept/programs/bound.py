"""Unix sockets by their names. The arguments: what of them, and a directory on disk."""

import ctypes
import os
import socket
import stat
import sys

from shown import show

libc = ctypes.CDLL(None, use_errno=True)


def make(kind=socket.SOCK_STREAM, path=None):
    made = socket.socket(socket.AF_UNIX, kind)
    if path:
        made.bind(path)
    return made


def names(_):
    """Who has connected; and a name as long as it can be."""
    server, client = make(path="server"), make(path="client")
    server.listen()
    client.connect("server")
    connection, name = server.accept()
    print(name, connection.getsockname(), connection.getpeername())
    client = make()
    client.connect("server")
    before = len(os.listdir("/proc/self/fd"))
    print(libc.accept(server.fileno(), 8, ctypes.byref(ctypes.c_int(9))), ctypes.get_errno())
    print(client.recv(9), len(os.listdir("/proc/self/fd")) - before)
    for size in 107, 108:
        longest = make()
        libc.bind(longest.fileno(), b"\1\0" + b"n" * size, size + 2)
        for room in 20, 110, 111, 128:
            length = ctypes.c_int(room)
            to = ctypes.create_string_buffer(b"\xaa" * 256, 256)
            libc.getsockname(longest.fileno(), to, ctypes.byref(length))
            print(size, room, length.value, to.raw[:130])


def mode(_):
    """What fchmod(2) has made of the socket's."""
    for number, bits in enumerate((0o600, 0o666, 0o777, 0)):
        one = make()
        os.fchmod(one.fileno(), bits)
        one.bind(f"s{number}")
        print(oct(os.stat(f"s{number}").st_mode), oct(os.fstat(one.fileno()).st_mode))
    make(path="plain")
    print(oct(os.stat("plain").st_mode))


def disk(link):
    """By real links to the directory and to the socket, from outside of the mount."""
    here = os.getcwd()
    os.symlink(here, link)
    os.chdir("/")
    one, other = make(path=f"{link}/one"), make(socket.SOCK_DGRAM, f"{link}/other")
    one.listen()
    print(stat.S_ISSOCK(os.stat(f"{here}/one").st_mode), os.path.basename(one.getsockname()))
    for path in f"{link}/one", f"{here}/one":
        show("connect", make().connect, path)
    sender = make(socket.SOCK_DGRAM)
    show("sendto", sender.sendto, b"sent", f"{link}/other")
    show("sendmsg", sender.sendmsg, [b"by sendmsg"], [], 0, f"{link}/other")
    print(other.recv(9), other.recv(10))
    os.symlink(f"{here}/one", f"{link}-one")
    show("connect", make().connect, f"{link}-one")
    show("taken", make().bind, f"{link}-one")
    show("again", make().bind, f"{link}/one")
    show("missing", make().connect, f"{link}/missing")
    show("no directory", make().bind, f"{link}/missing/one")
    real = make(path=f"{link}-real")
    real.listen()
    os.symlink(f"{link}-real", f"{here}/out")
    show("out again", make().connect, f"{link}/out")
    os.unlink(f"{link}-real")
    os.unlink(link)
    os.unlink(f"{link}-one")


def outside(path):
    """What lies outside of the mount, from a working directory in it and by links in it."""
    one = make(path=path)
    one.listen()
    up = os.path.relpath("/") + path
    os.symlink(path, "link")
    os.symlink(os.path.dirname(path), "directory")
    named = os.path.basename(path)
    for way in up, "link", os.path.abspath("link"), f"directory/{named}":
        show("connect", make().connect, way)
        show("sendto", make(socket.SOCK_DGRAM).sendto, b"wrong", way)
    for way in f"{up}-", f"directory/{named}-":
        show("bind", make().bind, way)
        print(stat.S_ISSOCK(os.stat(f"{path}-").st_mode))
        show("again", make().bind, way)
        os.unlink(f"{path}-")
    show("missing", make().connect, f"directory/{named}-")
    os.unlink(path)
    show("gone", make().connect, "link")


def sends(_):
    """A name of a datagram's only is looked for: the others have one peer, or none."""
    server = make(path="server")
    server.listen()
    for kind in socket.SOCK_STREAM, socket.SOCK_SEQPACKET, socket.SOCK_DGRAM:
        one, other = socket.socketpair(socket.AF_UNIX, kind)
        for name in "missing", "server", "missing/one":
            for sender in make(kind), one:
                show("sendto", sender.sendto, b"sent", name)
                show("sendmsg", sender.sendmsg, [b"sent"], [], 0, name)
        other.settimeout(0)
        show("received", other.recv, 99)
    with open("file", "w"):
        shut, ready = make(socket.SOCK_DGRAM), make(socket.SOCK_DGRAM)
    shut.shutdown(socket.SHUT_WR)
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, b"\xff\0\0\0")]
    for name in "missing", "file", "file/one", "server":
        show("shut", shut.sendto, b"sent", name)
        show("too long", ready.sendto, bytes(1 << 20), name)
        show("out of band", ready.sendto, b"sent", socket.MSG_OOB, name)
        show("of no descriptor", ready.sendmsg, [b"sent"], rights, 0, name)
        show("connect", shut.connect, name)


def descriptors(_):
    """By descriptors of directories and of the socket, as where a name is too long."""
    os.makedirs(long := f"{'d' * 150}/to")
    by_path, by_file = os.open(long, os.O_PATH), os.open(long, os.O_RDONLY)
    one = make(path=f"/proc/self/fd/{by_path}/one")
    one.listen()
    itself = os.open(f"{long}/one", os.O_PATH)
    print(one.getsockname() == f"/proc/self/fd/{by_path}/one", os.listdir(long))
    for way in (
        f"/proc/self/fd/{by_file}/one",
        f"/proc/{os.getpid()}/fd/{by_path}//../to/one",
        f"/dev/fd/{by_path}/./one",
        f"/proc/thread-self/fd/{itself}",
        f"/proc/self/fd/{by_path}",
        f"/proc/self/fd/{by_path}/",
        f"/proc/self/fd/{by_path}/missing",
        f"/proc/self/fd/{itself}/one",
    ):
        show("connect", make().connect, way)
        show("bind", make().bind, way)
        show("sendto", make(socket.SOCK_DGRAM).sendto, b"sent", way)
    os.unlink(f"{long}/missing")
    os.rename("d" * 150, "moved")
    show("moved", make().connect, f"/proc/self/fd/{by_path}/one")
    os.unlink("moved/to/one")
    os.rmdir("moved/to")
    show("removed", make().bind, f"/proc/self/fd/{by_path}/one")


def deep(_):
    """In a working directory whose name is longer than any path."""
    for _ in range(20):
        os.mkdir("e" * 250)
        os.chdir("e" * 250)
    make(path="one").listen()
    os.symlink("one", "link")
    for name in "one", "link", "../missing", "/proc/self/cwd/one", "missing":
        show("connect", make().connect, name)


globals()[sys.argv[1]](sys.argv[2])
