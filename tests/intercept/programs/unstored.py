"""Memory that a program cannot store in is not written back: what differs there from the file,
others have changed. Arguments: a directory in which files of the working directory lie, outside of
any mount; the size of one.

Each child maps the file and leaves; meanwhile the file is changed where it lies.
"""

import fcntl
import glob
import mmap
import os
import signal
import sys

name, size = "f", int(sys.argv[2])
os.close(os.open(name, os.O_CREAT, 0o644))
(real,) = glob.glob(f"{sys.argv[1]}/**/{name}", recursive=True)


def fill(byte):
    with open(real, "r+b") as f:
        f.write(byte * size)


def look(how, mapped, file):
    """What is mapped is read, so that it is there; then the file is changed."""
    wanted = [mapped[0:1], mapped[size - 1 : size]]
    fill(b"n")
    if how == "unmapped":
        mapped.close()
    elif how == "synced":
        mapped.flush()
        os.fsync(file)
    elif how == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    assert wanted == [b"o", b"o"], wanted
    os._exit(0)


for how in "unmapped", "synced", "left", "killed":
    fill(b"o")
    if (child := os.fork()) == 0:
        file = os.open(name, os.O_RDWR)
        fcntl.flock(file, fcntl.LOCK_EX)
        look(how, mmap.mmap(file, size, mmap.MAP_SHARED, mmap.PROT_READ), file)
    status = os.waitpid(child, 0)[1]
    file = os.open(name, os.O_RDONLY)
    fcntl.flock(file, fcntl.LOCK_EX)  # of one that is killed, when all that it had is closed
    os.close(file)
    with open(real, "rb") as f:
        print(how, status, set(f.read()))
