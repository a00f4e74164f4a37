"""The working directory by a link on disk to /proc/self/cwd, whose directory is the argument."""

import os
import socket
import sys

from shown import show


def names(directory):
    return sorted(os.listdir(directory))


def is_same(path, other):
    return [os.path.samestat(look(path), look(other)) for look in (os.stat, os.lstat)]


def bound(path):
    with socket.socket(socket.AF_UNIX) as there, socket.socket(socket.AF_UNIX) as here:
        there.bind(path)
        there.listen()
        here.connect(path)
        return os.path.exists(os.path.basename(path))


def make():
    show("mkdir", os.mkdir, f"{link}/d")
    show("again", os.mkdir, f"{link}/d/")
    show("mkfifo", os.mkfifo, f"{link}/p")
    show("symlink", os.symlink, "d", f"{link}/s")
    show("mknod", os.mknod, f"{link}/f")
    show("link", os.link, f"{link}/f", f"{link}/g")
    show("bind", bound, f"{link}/socket")
    show("made", names, ".")


def move():
    show("rename", os.rename, f"{link}/f", f"{link}/h")
    show("from here", os.rename, "g", f"{link}/d/g")
    show("to here", os.rename, f"{link}/d/g", "i")
    show("link here", os.link, "h", f"{link}/j")
    show("not here", os.rename, "h", "/proc/h")
    show("moved", names, link)


def look():
    show("file", is_same, f"{link}/i", "i")
    show("link", is_same, f"{link}/s", "s")
    show("target", os.readlink, f"{link}/s")
    show("access", os.access, f"{link}/i", os.W_OK)
    show("missing", os.stat, f"{link}/missing")
    show("chmod", os.chmod, f"{link}/i", 0o600)
    show("truncate", os.truncate, f"{link}/i", 3)
    show("mode and size", lambda: os.stat("i")[0:7:6])


def look_where_somebody_stood():
    os.chdir("d")
    os.chdir("..")
    show("stood in", is_same, f"{link}/d", "d")
    show("attributes", os.listxattr, f"{link}/d")
    show("above", is_same, f"{link}/..", "..")
    show("rename", os.rename, f"{link}/d", f"{link}/e")
    show("rmdir", os.rmdir, f"{link}/e")


def remove():
    for name in "h", "i", "j", "p", "s", "socket":
        show(name, os.unlink, f"{link}/{name}")
    show("left", names, ".")


link = os.path.join(sys.argv[1], "link")
if not os.path.lexists(link):
    os.symlink("/proc/self/cwd", link)
os.mkdir("top")
os.chdir("top")
make()
move()
look()
look_where_somebody_stood()
remove()
os.rmdir("../top")
show("removed", os.mkdir, f"{link}/d")
