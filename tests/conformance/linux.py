"""The namespace of the routes that go through the real kernel: os's functions under the names that
the suite uses, plus the calls that Python does not wrap (fallocate(2), renameat2(2))."""

import builtins
import ctypes
import fcntl as _fcntl
import os
import struct
from os import (  # noqa: F401  (the namespace itself)
    access,
    chmod,
    chown,
    close,
    copy_file_range,
    dup,
    dup2,
    fchmod,
    fchown,
    fdatasync,
    fstat,
    fstatvfs,
    fsync,
    ftruncate,
    getxattr,
    lchown,
    link,
    listdir,
    listxattr,
    lseek,
    lstat,
    makedirs,
    mkdir,
    mkfifo,
    mknod,
    posix_fallocate,
    pread,
    preadv,
    pwrite,
    pwritev,
    read,
    readlink,
    readv,
    remove,
    removexattr,
    rename,
    replace,
    rmdir,
    scandir,
    setxattr,
    stat,
    statvfs,
    symlink,
    truncate,
    umask,
    unlink,
    utime,
    walk,
    write,
    writev,
)
from types import SimpleNamespace

os_open = os.open
open = builtins.open
fcntl = _fcntl.fcntl
flock = _fcntl.flock
ioctl = _fcntl.ioctl

AT_FDCWD = -100
AT_SYMLINK_NOFOLLOW, AT_EMPTY_PATH = 0x100, 0x1000
STATX_BTIME = 0x800

_libc = ctypes.CDLL(None, use_errno=True)
_libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
_libc.renameat2.argtypes = [
    ctypes.c_int,
    ctypes.c_char_p,
    ctypes.c_int,
    ctypes.c_char_p,
    ctypes.c_uint,
]


def _check(result, *names):
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), *names)


def fallocate(fd, mode, offset, length, /):
    """fallocate(2): offset and length in bytes, mode from FALLOC_FL_*."""
    _check(_libc.fallocate(fd, mode, offset, length))


def statx(path, mask=0xFFF, *, flags=0, dir_fd=None, follow_symlinks=True):
    """statx(2) as directfuse.statx() has it: those fields that cases look at."""
    stx = bytearray(256)
    if isinstance(path, int):
        dir_fd, path, flags = path, "", flags | AT_EMPTY_PATH
    at = AT_FDCWD if dir_fd is None else dir_fd
    flags |= 0 if follow_symlinks else AT_SYMLINK_NOFOLLOW
    buffer = (ctypes.c_char * len(stx)).from_buffer(stx)
    _check(_libc.statx(at, os.fsencode(path), flags, mask, buffer), path)
    mask, blksize, nlink, uid, gid, mode, ino, size = struct.unpack_from("=II8xIIIH2xQQ", stx)
    times = {
        f"stx_{kind}time_ns": seconds * 1_000_000_000 + nanoseconds
        for kind, seconds, nanoseconds in zip(
            "abcm", *zip(*struct.iter_unpack("=qI4x", stx[64:128]), strict=True), strict=True
        )
    }
    if not mask & STATX_BTIME:
        times["stx_btime_ns"] = None
    return SimpleNamespace(
        stx_mask=mask, stx_blksize=blksize, stx_nlink=nlink, stx_uid=uid, stx_gid=gid,
        stx_mode=mode, stx_ino=ino, stx_size=size, **times,
    )  # fmt: skip


def renameat2(src, dst, flags=0, *, src_dir_fd=None, dst_dir_fd=None):
    """renameat2(2) with os.rename's arguments; flags from RENAME_*."""
    src_dir = AT_FDCWD if src_dir_fd is None else src_dir_fd
    dst_dir = AT_FDCWD if dst_dir_fd is None else dst_dir_fd
    result = _libc.renameat2(src_dir, os.fsencode(src), dst_dir, os.fsencode(dst), flags)
    _check(result, src, None, dst)
