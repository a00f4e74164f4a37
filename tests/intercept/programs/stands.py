"""Programs stand in directories that are renamed, replaced and removed, by all kinds of names.

Prints where they are by then.
"""

import ctypes
import os

HERE = os.getcwd()
EXCHANGE = 2
libc = ctypes.CDLL(None)


def said(call, *words):
    try:
        found = call(*words)
    except OSError as error:
        return error.errno
    return sorted(found) if isinstance(found, list) else str(found).replace(HERE, "HERE")


class Stander:
    """A child in that directory, which says where it is whenever it is asked."""

    def __init__(self, directory):
        asked, self.asks = os.pipe()
        self.told, tells = os.pipe()
        if os.fork() == 0:
            os.close(self.asks)
            os.chdir(directory)
            while os.read(asked, 1):
                place = said(os.getcwd), said(os.listdir, "."), said(os.listdir, "..")
                os.write(tells, repr(place).encode())
            os._exit(0)
        os.close(asked)
        os.close(tells)
        self.ask()  # it stands there

    def ask(self):
        os.write(self.asks, b"?")
        return os.read(self.told, 9999).decode()


def look(what, *standers):
    for stander in standers:
        print(what, stander.ask())


os.makedirs("real/d/sub")
os.makedirs("other/deep")
for name in "empty", "swap/in":
    os.makedirs(name)
os.symlink("real", "link")
standers = Stander("real/d"), Stander("real/d/sub")
at = os.open("link", os.O_RDONLY)
os.rename("link/d", "link/e")
look("through a link", *standers)
os.rename("e", "d", src_dir_fd=at, dst_dir_fd=at)
look("at a descriptor", *standers)
os.rename("real/d", "other/deep/e")
look("where nobody stood", *standers)
os.chdir("other/deep/e/sub")
os.rename("../../e", "../../../../real/d")
os.chdir(HERE)
look("from below", *standers)
for _ in range(2):
    print(libc.renameat2(-100, b"swap", -100, b"link/d", EXCHANGE))
    look("in exchange", *standers)
replaced = Stander("empty")
os.rename("real/d/", ".//empty/")
look("replaced", *standers, replaced)
replaced = Stander("other/deep")
os.mkdir("plain")
os.rename("plain", "other/deep")
look("replaced by what nobody stands in", replaced)
os.rename("real", "moved")
os.mkdir("moved/k")
removed = Stander("moved/k")
os.rmdir("k", dir_fd=at)
look("removed at a directory that was renamed", removed)
os.symlink("../empty", "moved/way")
os.rmdir("moved/way/sub")
look("removed through a link", *standers)
