"""Does to each file of liar.c what programs do, and writes what came of it: a value, or the error.

A call that does not come back ends the program after a while.
"""

import errno
import faulthandler
import mmap
import os
import shutil
import sys

POINT = sys.argv[1]
NAMES = [
    "back", "ahead", "blind", "huge", "negative", "more", "grows", "large", "empty", "link",
    "nothing",
]  # fmt: skip
ENDLESS = "huge", "negative", "grows"  # to who copies until the size that stat has told


def attempt(name, what, call):
    try:
        found = call()
    except OSError as error:
        found = errno.errorcode[error.errno]
    print(name, what, found if len(str(found)) < 60 else len(found), flush=True)


def opened(path, call):
    fd = os.open(path, os.O_RDWR)
    try:
        return call(fd)
    finally:
        os.close(fd)


def mapped(fd, access):
    with mmap.mmap(fd, 4096, access=access) as memory:
        return bytes(memory[:3])


def copied(fd):
    return opened(f"{POINT}/empty", lambda to: os.copy_file_range(fd, to, 5000))


def sent(fd):
    return opened("/dev/null", lambda to: os.sendfile(to, fd, 0, 1 << 20))


def listed(path):
    found = []
    try:
        found += (entry.name for entry in os.scandir(path))
    except OSError as error:
        found.append(errno.errorcode[error.errno])
    return " ".join(found)


def with_a_name(name):
    path = f"{POINT}/{name}"
    attempt(name, "stat", lambda: os.lstat(path).st_size >= 0)
    attempt(name, "readlink", lambda: os.readlink(path))
    attempt(name, "listxattr", lambda: os.listxattr(path))
    attempt(name, "getxattr", lambda: os.getxattr(path, "user.x"))
    attempt(name, "truncate", lambda: os.truncate(path, 10))
    if name not in ENDLESS:
        attempt(name, "cp", lambda: shutil.copyfile(path, "/dev/null"))


def with_a_descriptor(name):
    path = f"{POINT}/{name}"
    for size, at in ((5000, 0), (1 << 20, 0), (2 << 20, 50), (5000, 1 << 62)):
        attempt(name, "read", lambda: opened(path, lambda fd: os.pread(fd, size, at)))  # noqa: B023
        attempt(name, "write", lambda: opened(path, lambda fd: os.pwrite(fd, bytes(size), 3)))  # noqa: B023
    for whence, at in ((os.SEEK_DATA, 0), (os.SEEK_HOLE, 50000), (os.SEEK_END, 100)):
        attempt(name, "seek", lambda: opened(path, lambda fd: os.lseek(fd, at, whence)))  # noqa: B023
    attempt(name, "copy", lambda: opened(path, copied))
    attempt(name, "send", lambda: opened(path, sent))
    if name != "empty":  # the kernel sends SIGBUS
        for access in mmap.ACCESS_READ, mmap.ACCESS_WRITE, mmap.ACCESS_COPY:
            attempt(name, "map", lambda: opened(path, lambda fd: mapped(fd, access)))  # noqa: B023


faulthandler.dump_traceback_later(60, exit=True)
attempt(".", "list", lambda: len(os.listdir(POINT)))
attempt("partly", "list", lambda: listed(f"{POINT}/partly"))
for every in NAMES:
    with_a_descriptor(every)
    with_a_name(every)
    with_a_descriptor(every)
print("end")
