"""A program that has restricted itself by landlock(7): to the working directory, or to nothing."""

import ctypes
import errno
import mmap
import os
import socket
import struct
import sys

RIGHTS = 0x7FFF  # of the third version, Linux 6.2
FILE, DIRECTORY = 0b110, 0b1000
libc = ctypes.CDLL(None, use_errno=True)


def call(number, *words):
    """Its result, or its error."""
    ctypes.set_errno(0)
    words = [ctypes.c_long(word) if isinstance(word, int) else word for word in words]
    ret = libc.syscall(number, *words)
    return ret if ret >= 0 else errno.errorcode[ctypes.get_errno()]


def add(rules, allowed, fd, flags=0, kind=1):
    """A rule for what is beneath fd."""
    return call(445, rules, kind, struct.pack("=Qi", allowed, fd), flags)


def tell(word, do):
    """What it says."""
    try:
        print(word, do())
    except OSError as error:
        print(word, errno.errorcode[error.errno])


def use(allowed):
    """All that a file system is for. Where the kernel's rules forbid it, nothing is to be seen."""
    if not allowed:
        return
    with open("new", "w+b") as file:
        file.write(b"text")
        file.flush()
        with mmap.mmap(file.fileno(), 0) as memory:
            memory[:1] = b"T"
            print(memory[:])
    print(open("new").read(), sorted(os.listdir(".")), os.stat("new").st_size)
    os.mkdir("d")
    os.chdir("d")
    print(open("../new").read(), os.path.basename(os.getcwd()))
    os.chdir("..")
    os.rename("new", "d/new")
    os.mkfifo("fifo")
    os.close(os.open("fifo", os.O_RDWR))
    with socket.socket(socket.AF_UNIX) as end:
        end.bind("socket")
        end.listen()
    for name in "fifo", "socket", "d/new":
        os.unlink(name)
    os.rmdir("d")


fd, file, place = (
    os.open("f", os.O_RDWR | os.O_CREAT),
    os.open("f", os.O_PATH),
    os.open(".", os.O_PATH),
)
here = os.open(".", os.O_RDONLY)
for how in sys.argv[1:]:
    rules = call(444, struct.pack("=Q", RIGHTS), 8, 0)
    if isinstance(rules, str):
        sys.exit(77)
    print(how, add(rules, 0, here), add(rules, 1 << 40, here), add(rules, RIGHTS, here, flags=1))
    print(add(rules, DIRECTORY, fd), add(rules, FILE, fd), add(rules, FILE, file))
    print(add(rules, RIGHTS, -1), add(rules, RIGHTS, 999), add(fd, RIGHTS, here), call(446, fd, 0))
    if how == "here":
        print(
            add(rules, RIGHTS, here), add(rules, RIGHTS, place), add(rules, RIGHTS, here, kind=77)
        )
    libc.prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
    print(call(446, rules, 0))
    os.close(rules)
    tell("outside", lambda: open("/etc/passwd").read(0))
    tell("outside", lambda: os.mkdir("/dev/shm/landlocked"))
    print(os.write(fd, b"more"), os.pread(fd, 9, 0))
    use(how == "here")
    if os.fork() == 0:
        use(how == "here")
        sys.stdout.flush()
        os._exit(0)
    print(os.wait()[1])
