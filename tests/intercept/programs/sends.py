"""What sendfile(2) says of sources that are no plain files, and of such destinations."""

import errno
import os
import pty
import select
import socket

OFFSETS = None, 0, 50, 200


def sources():
    for how in os.O_RDONLY, os.O_WRONLY, os.O_RDWR, os.O_PATH:
        yield f"null {how}", os.open("/dev/null", how)
    for name in "/dev/zero", "/dev/full", "/dev/urandom", "/etc/passwd", "/", "/proc/version":
        yield name, os.open(name, os.O_RDONLY)
    for name in "status", "environ", "cmdline", "mem", "mounts", "auxv":
        yield name, os.open(f"/proc/self/{name}", os.O_RDONLY)
    for name in "/proc/sys/kernel/ostype", "/sys/kernel/mm/transparent_hugepage/enabled":
        yield name, os.open(name, os.O_RDONLY)
    yield from others()
    yield "mount", os.open("source", os.O_RDONLY)


def destinations():
    for how in os.O_RDONLY, os.O_WRONLY, os.O_WRONLY | os.O_APPEND, os.O_PATH:
        yield f"null {how}", os.open("/dev/null", how)
    for name in "/dev/zero", "/dev/full", "/proc/self/comm", "/proc/self/oom_score_adj":
        yield name, os.open(name, os.O_WRONLY)
    yield from others()
    yield "mount", os.open("other", os.O_RDWR | os.O_CREAT)
    yield "appended", os.open("other", os.O_WRONLY | os.O_APPEND)


def others():
    """With something to read, and room for more."""
    reader, writer = os.pipe()
    os.write(writer, b"pipe")
    yield "reader", reader
    yield "writer", writer
    for kind in socket.SOCK_STREAM, socket.SOCK_DGRAM:
        near, far = socket.socketpair(type=kind)
        far.send(b"socket")
        KEPT.append(far)
        yield f"socket {kind}", near.detach()
    yield "eventfd", os.eventfd(1)
    yield "memfd", os.memfd_create("memfd")
    KEPT.append(select.epoll())
    yield "epoll", KEPT[-1].fileno()
    yield "terminal", pty.openpty()[1]


KEPT = []


def send(to, source, offset, size):
    try:
        return os.sendfile(to, source, offset, size)
    except OSError as error:
        return errno.errorcode[error.errno]


with open("source", "wb") as file:
    file.write(b"x" * 100)
for name, source in sources():
    before = os.listdir("/proc/self/fd")
    for offset in OFFSETS:
        to = os.open("to", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        print("from", name, offset, [send(to, source, offset, size) for size in (0, 10)])
        print(os.fstat(to).st_size, os.lseek(to, 0, os.SEEK_CUR))
        os.close(to)
    assert os.listdir("/proc/self/fd") == before
for name, to in destinations():
    for offset in OFFSETS:
        source = os.open("source", os.O_RDONLY)
        print("to", name, offset, [send(to, source, offset, size) for size in (0, 10)])
        print(os.lseek(source, 0, os.SEEK_CUR))
        os.close(source)
