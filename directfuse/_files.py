"""Rare calls on descriptors: duplicates, flags, locks, readiness, syncing, allocating, copying."""

import errno
import math
import select
import struct
import time
from collections.abc import Sequence
from operator import index
from typing import TYPE_CHECKING, Any

from directfuse._call import c_int, c_long, checked, descriptor_of, is_ours, until_done
from directfuse._fast import fstat, pread, pwrite, readv
from directfuse._native import FD_BASE, ffi, lib
from directfuse._real import fcntl as _fcntl
from directfuse._real import os

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

__all__ = [
    "copy_file_range",
    "dup",
    "dup2",
    "fallocate",
    "fcntl",
    "fdatasync",
    "flock",
    "fsync",
    "ioctl",
    "lock_in_the_way",
    "lockf",
    "poll",
    "posix_fadvise",
    "posix_fallocate",
    "readinto",
]


# ---- duplicates ----------------------------------------------------------------------------------


def dup(fd: int, /) -> int:
    """os.dup: another, not inheritable descriptor of the same open file. Source: dup(2)."""
    if not is_ours(fd):
        return os.dup(fd)
    fd = index(fd)
    return checked(until_done(lambda: lib.df_call_fcntl(fd, _fcntl.F_DUPFD_CLOEXEC, FD_BASE)))


def dup2(fd: int, fd2: int, inheritable: bool = True) -> int:
    """os.dup2: makes fd2 a descriptor of fd's open file. Source: dup(2).

    Both virtual or both real, else EXDEV. Virtual descriptors do not survive exec(3), whatever
    inheritable says.
    """
    if not is_ours(fd) and not is_ours(fd2):
        return os.dup2(fd, fd2, inheritable)
    fd, fd2 = index(fd), index(fd2)
    if fd < 0 or fd2 < 0:
        checked(-errno.EBADF)
    fcntl(fd, _fcntl.F_GETFD)  # dup2(2): first of all it must be open
    if fd == fd2 and inheritable:  # else it is dup3(2), which says EINVAL of that
        return fd2
    flags = 0 if inheritable else os.O_CLOEXEC
    return _mixed(until_done(lambda: lib.df_call_dup3(fd, fd2, flags)))


def _mixed(result: int) -> int:
    """The result of a call on two descriptors; one real and one virtual have none."""
    return checked(-errno.EXDEV if result <= -4096 else result)


# ---- fcntl and ioctl -----------------------------------------------------------------------------

_FLOCK = struct.Struct("hhqqi4x")  # struct flock of <fcntl.h>: type, whence, start, length, process


_SMALL = 1024  # bytes of an argument; what is smaller is lent as much room, as by CPython

# Their argument is an address. The module fcntl cuts a number to 32 bits, so none is one, and the
# kernel says EFAULT; here, where no kernel looks, NULL has to stand for it.
_FLOCK_COMMANDS = {
    *(_fcntl.F_GETLK, _fcntl.F_SETLK, _fcntl.F_SETLKW),
    *(_fcntl.F_OFD_GETLK, _fcntl.F_OFD_SETLK, _fcntl.F_OFD_SETLKW),
}
_FICLONE = 0x40049409  # <linux/fs.h>: it says that it takes an int's address, and takes an int
_BY_ADDRESS = {0x2, 0x5421, 0x541B, 0x5460}  # FIGETBSZ, FIONBIO, FIONREAD, FIOQSIZE say nothing


def _bytes(arg: Any) -> bytes:
    if isinstance(arg, str):
        return arg.encode()
    view = memoryview(arg)
    if not view.c_contiguous:
        _fcntl.ioctl(FD_BASE, 0, arg)  # the module finds the words: they differ with Python
        raise TypeError("a contiguous buffer is required")
    return bytes(view)


def fcntl(fd: Any, cmd: int, arg: int | bytes | str = 0, /) -> Any:
    """fcntl.fcntl: flags and locks of an open file. Source: fcntl(2), docs/compat.md.

    arg and result are ints, or bytes that hold a C struct (1024 bytes at most).
    """
    number = descriptor_of(fd)
    if not is_ours(number):
        return _fcntl.fcntl(number, cmd, arg)
    cmd = c_int(cmd, "cmd")
    if hasattr(arg, "__index__"):
        value = 0 if cmd in _FLOCK_COMMANDS else int(ffi.cast("int", index(arg)))
        return checked(until_done(lambda: lib.df_call_fcntl(number, cmd, value)))
    data = _bytes(arg)
    if len(data) > _SMALL:
        raise ValueError("fcntl string arg too long")
    buffer = ffi.new("char[]", _SMALL)
    ffi.buffer(buffer, len(data))[:] = data
    address = int(ffi.cast("intptr_t", buffer))
    checked(until_done(lambda: lib.df_call_fcntl(number, cmd, address)))
    return ffi.buffer(buffer, len(data))[:]


def flock(fd: Any, operation: int, /) -> None:
    """fcntl.flock: a lock on the whole open file. Source: flock(2)."""
    number = descriptor_of(fd)
    if is_ours(number):
        checked(until_done(lambda: lib.df_call_flock(number, index(operation))))
    else:
        _fcntl.flock(number, operation)


def _lock_kind(cmd: int) -> int:
    """Of several the first one, as fcntl.lockf has it."""
    if cmd == _fcntl.LOCK_UN:
        return _fcntl.F_UNLCK
    if cmd & _fcntl.LOCK_SH:
        return _fcntl.F_RDLCK
    if cmd & _fcntl.LOCK_EX:
        return _fcntl.F_WRLCK
    raise ValueError("unrecognized lockf argument")


def lockf(fd: Any, cmd: int, len: int = 0, start: int = 0, whence: int = 0, /) -> None:
    """fcntl.lockf: a POSIX lock on a range of bytes, LOCK_NB in cmd to not wait for it."""
    number = descriptor_of(fd)
    if not is_ours(number):
        _fcntl.lockf(number, cmd, len, start, whence)
        return
    cmd = c_int(cmd, "cmd")
    lock = _lock(_lock_kind(cmd), whence, start, len)
    fcntl(number, _fcntl.F_SETLK if cmd & _fcntl.LOCK_NB else _fcntl.F_SETLKW, lock)


def lock_in_the_way(fd: int, length: int) -> bool:
    """Of one to read so many bytes from the position on, which any descriptor may have: what F_TEST
    of glibc's lockf(3) asks."""
    wanted = _lock(_fcntl.F_RDLCK, os.SEEK_CUR, 0, length)
    kind, *_ = _FLOCK.unpack(fcntl(fd, _fcntl.F_GETLK, wanted))
    return bool(kind != _fcntl.F_UNLCK)


def _lock(kind: int, whence: int, start: int, length: int) -> bytes:
    begin, size = c_long(start, "start"), c_long(length, "len")
    if not 0 <= c_int(whence, "whence") <= os.SEEK_END:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
    return _FLOCK.pack(kind, whence, begin, size, 0)


def ioctl(fd: Any, request: int, arg: Any = 0, mutate_flag: bool = True, /) -> Any:
    """fcntl.ioctl: a request to the file system. Source: ioctl(2).

    arg is an int; bytes, of which a changed copy is the result; or a writable buffer, which is
    changed in place when mutate_flag is true and the result is the plugin's.
    """
    number = descriptor_of(fd)
    if not is_ours(number):
        return _fcntl.ioctl(number, request, arg, mutate_flag)
    code = request & 0xFFFFFFFF
    size = code >> 16 & 0x3FFF  # _IOC_SIZE: what is there at an address
    if hasattr(arg, "__index__"):
        value = c_int(arg, "arg")
        is_address = (size > 0 and code != _FICLONE) or code in _BY_ADDRESS
        pointer = ffi.cast("void *", 0 if is_address else value)
        return checked(until_done(lambda: lib.df_call_ioctl(number, code, pointer)))
    data = _bytes(arg)
    buffer = ffi.new("char[]", max(len(data), size, _SMALL))
    ffi.buffer(buffer, len(data))[:] = data
    if isinstance(arg, str) or memoryview(arg).readonly or not mutate_flag:
        checked(until_done(lambda: lib.df_call_ioctl(number, code, buffer)))
        return ffi.buffer(buffer, len(data))[:]
    with ffi.from_buffer("char[]", arg, require_writable=True) as memory:
        result = until_done(lambda: lib.df_call_ioctl(number, code, buffer))
        ffi.buffer(memory)[:] = ffi.buffer(buffer, len(data))[:]
    return checked(result)


def poll(fds: Sequence[tuple[Any, int]], timeout: float | None = None) -> list[tuple[int, int]]:
    """Waits until a descriptor is ready: what select.poll() does in three steps. Source: poll(2).

    fds: (descriptor, events) each, all virtual or all real, else EINVAL; timeout: milliseconds,
    None for ever. Returns (descriptor, events that happened) of those that are ready.
    """
    pairs = [(descriptor_of(fd), events) for fd, events in fds]
    if not any(is_ours(fd) for fd, _ in pairs):
        poller = select.poll()
        for fd, events in pairs:
            poller.register(fd, events)
        return poller.poll(timeout)
    array = ffi.new("struct pollfd[]", [(fd, events, 0) for fd, events in pairs])
    result = _poll(array, len(pairs), None if timeout is None or timeout < 0 else timeout)
    checked(-errno.EINVAL if result <= -4096 else result)
    return [(entry.fd, entry.revents) for entry in array if entry.revents]


def _poll(array: Any, count: int, timeout: float | None) -> int:
    """After a signal, whose handlers ran in between, it waits for what is left (PEP 475)."""
    end = None if timeout is None else time.monotonic() * 1000 + timeout
    left = -1
    while True:
        if end is not None:
            left = max(0, math.ceil(end - time.monotonic() * 1000))
        result: int = lib.df_call_poll(array, count, left)
        if result != -errno.EINTR:
            return result


# ---- reading, syncing, allocating, copying -------------------------------------------------------


def readinto(fd: int, buffer: "WriteableBuffer", /) -> int:
    """os.readinto, of Python 3.14: reads into a writable buffer; bytes read. Source: read(2)."""
    if not is_ours(fd) and hasattr(os, "readinto"):
        return int(os.readinto(fd, buffer))
    try:
        return readv(fd, [buffer])
    except BufferError:
        kind = type(buffer).__name__
        raise TypeError(f"readinto() argument 2 must be read-write, not {kind}") from None


def fsync(fd: Any) -> None:
    """os.fsync: what was written is on stable storage. Source: fsync(2)."""
    number = descriptor_of(fd)
    if is_ours(number):
        checked(until_done(lambda: lib.df_call_fsync(number)))
    else:
        os.fsync(number)


def fdatasync(fd: Any) -> None:
    """os.fdatasync: fsync() without attributes that reading does not need."""
    number = descriptor_of(fd)
    if is_ours(number):
        checked(until_done(lambda: lib.df_call_fdatasync(number)))
    else:
        os.fdatasync(number)


def fallocate(fd: int, mode: int, offset: int, length: int, /) -> None:
    """fallocate(2), which `os` does not have: allocates, punches, zeroes a range of bytes.

    fd: a descriptor open for writing, a real one too; mode: FALLOC_FL_* of <linux/falloc.h>; offset
    and length: the range, in bytes. Raises OSError with the errno of fallocate(2).
    """
    numbers = index(mode), index(offset), index(length)
    checked(until_done(lambda: lib.df_fallocate(fd, *numbers)))


def posix_fallocate(fd: int, offset: int, length: int, /) -> None:
    """os.posix_fallocate: room for a range of bytes is sure. Source: posix_fallocate(3).

    Where the file system cannot, each block is written to, as glibc does.
    """
    if not is_ours(fd):
        os.posix_fallocate(fd, offset, length)
        return
    fd, offset, length = index(fd), index(offset), index(length)
    result = until_done(lambda: lib.df_call_fallocate(fd, 0, offset, length))
    if result == -errno.EOPNOTSUPP and fcntl(fd, _fcntl.F_GETFL) & os.O_APPEND:
        checked(-errno.EBADF)  # glibc's, too: what is written would go behind the end
    elif result == -errno.EOPNOTSUPP:
        _touch_blocks(fd, offset, offset + length)
    else:
        checked(result)


def _touch_blocks(fd: int, start: int, end: int) -> None:
    """Writes a byte of each block that has none yet, the last byte of the range among them."""
    status = fstat(fd)
    step = min(status.st_blksize or 512, 4096)
    for at in range(start + (end - start - 1) % step, end, step):
        if at >= status.st_size or pread(fd, 1, at) in (b"", b"\0"):
            pwrite(fd, b"\0", at)


def posix_fadvise(fd: int, offset: int, length: int, advice: int, /) -> None:
    """os.posix_fadvise: a hint how a range will be used. Source: posix_fadvise(2)."""
    if not is_ours(fd):
        os.posix_fadvise(fd, offset, length, advice)
    else:
        numbers = index(fd), index(offset), index(length), index(advice)
        checked(until_done(lambda: lib.df_call_fadvise(*numbers)))


def copy_file_range(
    src: int,
    dst: int,
    count: int,
    offset_src: int | None = None,
    offset_dst: int | None = None,
) -> int:
    """os.copy_file_range: copies at most count bytes inside the file system; bytes copied.

    Offsets in bytes, None: from the position, which moves. Across mounts, or between a mount and
    the kernel: EXDEV. Source: copy_file_range(2).
    """
    if not is_ours(src) and not is_ours(dst):
        return os.copy_file_range(src, dst, count, offset_src, offset_dst)
    src, dst, count = index(src), index(dst), c_long(count, "count")
    if count < 0:
        raise ValueError("negative value for 'count' not allowed")
    for fd in (src, dst):
        if not is_ours(fd):
            os.fstat(fd)  # EBADF comes before EXDEV
    source = ffi.NULL if offset_src is None else ffi.new("off_t *", index(offset_src))
    target = ffi.NULL if offset_dst is None else ffi.new("off_t *", index(offset_dst))
    return _mixed(
        until_done(lambda: lib.df_call_copy_file_range(src, source, dst, target, count, 0))
    )
