"""A file that a process has mapped is changed where it lies as soon as that process has ended: what
does the next one find? Arguments: a directory in which files of the working directory lie, outside
of any mount; how often.

Others keep the processors busy, so that who is told of the end of a process hears of it late.
"""

import glob
import mmap
import os
import signal
import sys

SIZE, AT, BUSY = 1 << 20, 70000, 6
with open("f", "wb") as file:
    file.write(bytes(SIZE))
(real,) = glob.glob(f"{sys.argv[1]}/**/f", recursive=True)


def fork(function, *arguments):
    pid = os.fork()
    if pid == 0:
        os._exit(function(*arguments))
    return pid


def spin():
    while True:
        pass


def change(byte):
    os.pwrite(os.open(real, os.O_WRONLY), byte, AT)
    return 0


def look(byte):
    """By a mapping that is ended, and by one that ends with the process."""
    fd = os.open("f", os.O_RDONLY)
    with mmap.mmap(fd, 0, mmap.MAP_SHARED, mmap.PROT_READ) as memory:
        found = [memory[AT : AT + 1]]
    found.append(mmap.mmap(fd, 0, mmap.MAP_SHARED, mmap.PROT_READ)[AT : AT + 1])
    return found != [byte, byte]


busy = [fork(spin) for _ in range(BUSY)]
wrong = 0
for n in range(int(sys.argv[2])):
    os.waitpid(fork(change, bytes([n % 256])), 0)
    wrong += os.waitpid(fork(look, bytes([n % 256])), 0)[1] != 0
for pid in busy:
    os.kill(pid, signal.SIGKILL)
print("wrong:", wrong)
