"""Maps files again and again, each time in a process of its own: remapped.py SIZE [CHANGE...].

A SIZE that begins with "p" is that of a file that is mapped privately only.

Each CHANGE is made between two mappings, by a process of its own, too: none, write, same (by writes
of the same bytes), append, truncate, again (another file of that name), stored (through memory),
killed (stored, and killed), elsewhere (in the directory DIRECTFUSE_SOURCE, if that is set).
"""

import glob
import hashlib
import mmap
import os
import signal
import sys

SIZE = int(sys.argv[1].removeprefix("p"))
SHARED = mmap.MAP_PRIVATE if sys.argv[1].startswith("p") else mmap.MAP_SHARED


def child(function, *args):
    pid = os.fork()
    if pid == 0:
        function(*args)
        os._exit(0)
    os.waitpid(pid, 0)


def fill(path, first):
    with open(path, "wb") as file:
        file.write((first + bytes(range(256)) * 257)[: 1 << 16] * (SIZE >> 16))


def show(what):
    fd = os.open("f", os.O_RDONLY)
    with mmap.mmap(fd, 0, SHARED, mmap.PROT_READ) as memory:
        with mmap.mmap(fd, 0, mmap.MAP_PRIVATE, mmap.PROT_READ) as other:
            digests = [hashlib.sha256(m).hexdigest()[:16] for m in (memory, other)]
            print(what, len(memory), digests[0], digests[0] == digests[1], flush=True)


def store(end):
    fd = os.open("f", os.O_RDWR)
    memory = mmap.mmap(fd, 0)
    memory[SIZE // 2 : SIZE // 2 + 3] = b"new"
    end()


def write(path, text, at):
    fd = os.open(path, os.O_WRONLY)
    os.pwrite(fd, text, at)


def elsewhere():
    (path,) = glob.glob(os.environ.get("DIRECTFUSE_SOURCE", ".") + "/**/f", recursive=True)
    write(path, b"elsewhere", 70000)


CHANGES = {
    "none": lambda: None,
    "write": lambda: write("f", b"written", SIZE - 100),
    "same": lambda: write("f", b"written", SIZE - 100),
    "append": lambda: write("f", b"more", os.stat("f").st_size),
    "truncate": lambda: os.truncate("f", SIZE - 5000),
    "again": lambda: (os.unlink("f"), fill("f", b"again")),
    "stored": lambda: store(lambda: os._exit(0)),
    "killed": lambda: store(lambda: os.kill(os.getpid(), signal.SIGKILL)),
    "elsewhere": elsewhere,
}

child(fill, "f", b"first")
child(show, "first")
for change in sys.argv[2:]:
    child(CHANGES[change])
    child(show, change)
