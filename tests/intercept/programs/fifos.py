"""What a FIFO's descriptor is: that of the name, however the descriptor was come by."""

import array
import errno
import fcntl
import mmap
import os
import signal
import socket
import subprocess
import sys
import threading

from shown import show


def is_named(fd, name="fifo"):
    """Inode, device, times, owner, mode and links are those of the name."""
    return os.fstat(fd) == os.stat(name) == os.stat(f"/proc/self/fd/{fd}")


def called(fd):
    return os.path.basename(os.readlink(f"/proc/self/fd/{fd}"))


def change(fd):
    os.fchmod(fd, 0o604)
    os.fchown(fd, 12, 13)
    os.utime(fd, (1, 2))
    status = os.stat("fifo")
    return oct(status.st_mode), status.st_uid, status.st_gid, status.st_mtime, is_named(fd)


def by_copies(fd):
    for copy in os.dup(fd), fcntl.fcntl(fd, fcntl.F_DUPFD, 100), os.dup2(fd, 90):
        yield is_named(copy)
        os.close(copy)
    os.dup2(os.open("file", os.O_RDONLY), 90)
    yield is_named(90, "file")
    os.dup2(fd, 90)
    yield is_named(90)
    os.close(90)
    again = os.open(f"/proc/self/fd/{fd}", os.O_RDONLY | os.O_NONBLOCK)
    os.write(fd, b"through")
    yield (
        is_named(again),
        os.read(again, 99),
        oct(fcntl.fcntl(again, fcntl.F_GETFL) & ~os.O_CLOEXEC),
    )
    os.close(again)


def by_programs(fd):
    words = [sys.executable, "-S", sys.argv[0], "is"]
    yield subprocess.check_output([*words, "0"], stdin=fd)
    yield subprocess.check_output([*words, str(fd)], pass_fds=[fd])
    if not (child := os.fork()):
        os._exit(is_named(fd))
    yield os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def by_message(fd):
    here, there = socket.socketpair()
    if not (child := os.fork()):
        os.close(fd)
        got = array.array("i", there.recvmsg(1, socket.CMSG_LEN(4))[1][0][2])[0]
        there.recv(1)  # it was renamed
        os._exit(is_named(got, "renamed") + 2 * (called(got) == "renamed"))
    socket.send_fds(here, [b"x"], [fd])
    os.rename("fifo", "renamed")
    here.send(b"x")
    found = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.rename("renamed", "fifo")
    return found


def of_another(fd):
    """Under /proc of a process that has it: what it is called, and what it is."""
    reader, writer = os.pipe()
    if not (child := os.fork()):
        os.close(writer)
        os.read(reader, 1)
        os._exit(0)
    link = f"/proc/{child}/fd/{fd}"
    os.close(reader)
    found = os.path.basename(os.readlink(link)), os.path.samestat(os.stat(link), os.stat("fifo"))
    flags = [line for line in open(f"/proc/{child}/fdinfo/{fd}") if line.startswith("flags")]
    os.close(writer)
    os.waitpid(child, 0)
    return *found, flags


def waiting():
    """An open that waits for the other end; one that a signal ends; and one that need not wait."""
    ends = []
    thread = threading.Thread(target=lambda: ends.append(os.open("fifo", os.O_RDONLY)))
    thread.start()
    ends.append(os.open("fifo", os.O_WRONLY))
    thread.join()
    yield [is_named(end) for end in ends]
    for end in ends:
        os.close(end)
    signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        os.open("fifo", os.O_RDONLY)
    except TimeoutError:
        yield "ended"
    try:
        os.open("fifo", os.O_WRONLY | os.O_NONBLOCK)
    except OSError as error:
        yield errno.errorcode[error.errno]


def ring(number, frame):
    raise TimeoutError


def at_the_end(fd):
    os.unlink("fifo")
    yield called(fd), os.fstat(fd).st_nlink
    os.write(fd, b"still")
    yield os.read(fd, 99)
    os.close(fd)
    show("closed", os.fstat, fd)
    yield is_named(os.open("file", os.O_RDONLY), "file")


def main():
    os.umask(0)
    os.mkfifo("fifo", 0o640)
    open("file", "x").close()
    fd = os.open("fifo", os.O_RDWR)
    show("opened", is_named, fd)
    show("changed", change, fd)
    show("extended attributes", os.listxattr, fd)
    show("set", os.setxattr, fd, "user.a", b"")
    show("copies", list, by_copies(fd))
    show("programs", list, by_programs(fd))
    show("message", by_message, fd)
    show("another", of_another, fd)
    for name, call in (
        ("seek", lambda: os.lseek(fd, 0, 0)),
        ("truncate", lambda: os.ftruncate(fd, 0)),
        ("map", lambda: mmap.mmap(fd, 9)),
        ("copy", lambda: os.copy_file_range(fd, os.open("file", os.O_RDWR), 9)),
    ):
        show(name, call)
    show("directory", os.fchdir, fd)
    show("below", lambda: os.stat("x", dir_fd=fd))
    if sys.argv[1:] == ["end"]:
        show("end", list, at_the_end(fd))
    else:
        os.close(fd)
        show("waiting", list, waiting())


if sys.argv[1] == "is":
    print(is_named(int(sys.argv[2])), called(int(sys.argv[2])))
else:
    main()
