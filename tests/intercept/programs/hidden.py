"""Descriptors that others see in /proc/<pid>/fd, and are none to dup(2), are the core's own."""

import ctypes
import errno
import fcntl
import mmap
import os
import select
import socket

libc = ctypes.CDLL(None, use_errno=True)


def refused(call, *words):
    try:
        call(*words)
    except OSError as error:
        return error.errno == errno.EBADF
    return False


def raw(number, *words):
    if libc.syscall(number, *words) < 0:
        raise OSError(ctypes.get_errno(), "")


def poll(fd):
    asked = select.poll()
    asked.register(fd)
    asked.register(1)
    if dict(asked.poll()).get(fd) == select.POLLNVAL:
        raise OSError(errno.EBADF, "")


def send(fd):
    with (pair := socket.socketpair())[0], pair[1]:
        socket.send_fds(pair[0], [b"x"], [fd])


def seen_by_another():
    """Without a pipe to it, whose number would be another file's when it has ended."""
    told = os.open("told", os.O_RDWR | os.O_CREAT)
    words, actions = ["ls", f"/proc/{os.getpid()}/fd"], [(os.POSIX_SPAWN_DUP2, told, 1)]
    os.waitpid(os.posix_spawn("/bin/ls", words, os.environ, file_actions=actions), 0)
    return map(int, os.pread(told, 4096, 0).split())


file = os.open("f", os.O_RDWR | os.O_CREAT)
own = [fd for fd in seen_by_another() if refused(os.dup, fd)]
calls = [
    *[(os.read, 1), (os.write, b"x"), (os.pread, 1, 0), (os.pwrite, b"x", 0), (os.lseek, 0, 1)],
    *[(os.fsync,), (os.fdatasync,), (os.ftruncate, 0), (os.readv, [bytearray(1)])],
    *[(os.writev, [b"x"]), (os.fstat,), (os.fchmod, 0), (fcntl.fcntl, fcntl.F_GETFD)],
    *[(fcntl.ioctl, 0x5451), (os.fchdir,), (os.listdir,), (os.getxattr, "user.x")],
    *[(select.epoll().register,), (poll,), (send,), (mmap.mmap, 4096)],
    (lambda fd: os.sendfile(fd, file, 0, 1),),
    (lambda fd: socket.socket(fileno=fd),),
    (lambda fd: select.select([], [file, fd], [file], 0),),
    (lambda fd: raw(280, fd, None, None, 0),),  # utimensat
    (lambda fd: raw(232, fd, bytes(99), 1, 0),),  # epoll_wait
    (lambda fd: raw(308, fd, 0),),  # setns
    (lambda fd: raw(289, fd, bytes(8), 8, 0),),  # signalfd4
    (lambda fd: raw(254, fd, b"f", 2),),  # inotify_add_watch
    (lambda fd: raw(254, fd, b"/", 2),),
    (lambda fd: raw(276, file, fd, 1, 0),),  # tee
    (lambda fd: raw(428, fd, b"", 0x1000),),  # open_tree
]
done = [(fd, call) for fd in own for call, *words in calls if not refused(call, fd, *words)]
names = ["self/fd", "thread-self/fd", f"self/task/{os.getpid()}/fd", f"{os.getpid()}/fdinfo"]
for name in [f"/proc/{name}" for name in names] + ["/dev/fd"]:
    done += [f"{name}/{fd}" for fd in own if os.path.lexists(f"{name}/{fd}")]
print(len(own) > 3, done)
