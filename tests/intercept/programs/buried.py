"""Children store in mapped memory, lock the file and are killed: what is there when they have been
waited for? Arguments: a directory in which files of the working directory lie, outside of any
mount; the size of one.
"""

import fcntl
import glob
import mmap
import os
import signal
import sys

ROUNDS = 10
name, size = "f", int(sys.argv[2])
with open(name, "wb") as file:
    file.truncate(size)
(real,) = glob.glob(f"{sys.argv[1]}/**/{name}", recursive=True)


def store_and_die(byte):
    with open(name, "r+b") as file, mmap.mmap(file.fileno(), size) as memory:
        fcntl.flock(file, fcntl.LOCK_EX)
        memory[size // 2] = byte
        memory[size - 1] = byte
        os.kill(os.getpid(), signal.SIGKILL)


def look():
    with open(real, "rb") as file:
        return [os.pread(file.fileno(), 1, at)[0] for at in (size // 2, size - 1)]


for byte in range(1, ROUNDS + 1):
    child = os.fork()
    if child == 0:
        store_and_die(byte)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    print(byte, look() == [byte, byte])
    with open(name, "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
