"""The namespace of the routes that go through the real kernel: os's functions under the names that
the suite uses, plus the calls that Python does not wrap (fallocate(2), renameat2(2))."""

import builtins
import ctypes
import fcntl as _fcntl
import os
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

os_open = os.open
open = builtins.open
fcntl = _fcntl.fcntl
flock = _fcntl.flock
ioctl = _fcntl.ioctl

AT_FDCWD = -100

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


def renameat2(src, dst, flags=0, *, src_dir_fd=None, dst_dir_fd=None):
    """renameat2(2) with os.rename's arguments; flags from RENAME_*."""
    src_dir = AT_FDCWD if src_dir_fd is None else src_dir_fd
    dst_dir = AT_FDCWD if dst_dir_fd is None else dst_dir_fd
    result = _libc.renameat2(src_dir, os.fsencode(src), dst_dir, os.fsencode(dst), flags)
    _check(result, src, None, dst)
