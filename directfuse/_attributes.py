"""Calls on attributes: mode, owner, times, size, extended attributes, the file system's figures."""

import dataclasses
import errno
import math
from collections.abc import Callable
from operator import index
from typing import Any, TypeAlias

from directfuse._call import (
    AT_EMPTY_PATH,
    AT_FDCWD,
    AT_SYMLINK_NOFOLLOW,
    Path,
    at,
    by_path,
    checked,
    encode,
    identifier,
    is_ours,
    mode_bits,
    path_or_fd,
    until_done,
)
from directfuse._native import ffi, lib
from directfuse._real import os

__all__ = [
    "chmod",
    "chown",
    "fchmod",
    "fchown",
    "fstatvfs",
    "ftruncate",
    "getxattr",
    "lchown",
    "listxattr",
    "removexattr",
    "setxattr",
    "statvfs",
    "statx",
    "statx_result",
    "truncate",
    "utime",
]

Target: TypeAlias = Path | int
"""A path, or an open descriptor where `os` takes one too."""

_NANO = 1_000_000_000
_XATTR_SMALL = 256  # bytes; as os.listxattr tries first, which convmvfs depends on
_XATTR_MAX = 65536  # XATTR_SIZE_MAX, XATTR_LIST_MAX of <linux/limits.h>


# ---- mode and owner ------------------------------------------------------------------------------


def _no_follow(follow_symlinks: bool) -> int:
    return 0 if follow_symlinks else AT_SYMLINK_NOFOLLOW


def chmod(
    path: Target, mode: int, *, dir_fd: int | None = None, follow_symlinks: bool = True
) -> None:
    """os.chmod: sets the permission bits. Source: chmod(2).

    As with os.chmod, follow_symlinks=False is a NotImplementedError for a symlink, which has none;
    a descriptor has no use for it, nor for dir_fd.
    """
    path = path_or_fd(path)
    if isinstance(path, int):
        if is_ours(path):
            at(dir_fd)  # a number it has to be
            checked(until_done(lambda: lib.df_call_fchmod(path, mode_bits(mode))), path)
        else:
            os.chmod(path, mode, dir_fd=dir_fd, follow_symlinks=follow_symlinks)
        return
    flags = _no_follow(follow_symlinks)
    try:
        by_path(
            lambda text: (lib.df_call_fchmodat, at(dir_fd), text, mode_bits(mode), flags),
            lambda real: os.chmod(real, mode, dir_fd=dir_fd, follow_symlinks=follow_symlinks),
            path,
        )
    except OSError as error:
        if follow_symlinks or error.errno != errno.EOPNOTSUPP:
            raise
        raise _no_mode_of_a_link(dir_fd) from None


def _no_mode_of_a_link(dir_fd: int | None) -> Exception:
    """What os.chmod says then, in its words."""
    if dir_fd is not None:
        return ValueError("chmod: cannot use dir_fd and follow_symlinks together")
    return NotImplementedError("chmod: follow_symlinks unavailable on this platform")


def fchmod(fd: int, mode: int) -> None:
    """os.fchmod: chmod() of an open descriptor."""
    if is_ours(fd):
        checked(until_done(lambda: lib.df_call_fchmod(index(fd), mode_bits(mode))))
    else:
        os.fchmod(fd, mode)


def _owner(uid: int, gid: int) -> tuple[int, int]:
    return identifier(uid, "uid"), identifier(gid, "gid")


def chown(
    path: Target, uid: int, gid: int, *, dir_fd: int | None = None, follow_symlinks: bool = True
) -> None:
    """os.chown: sets owner and group, -1 leaves one as it is. Source: chown(2)."""
    path = path_or_fd(path)
    if isinstance(path, int):
        if is_ours(path) and dir_fd is None and follow_symlinks:
            checked(until_done(lambda: lib.df_call_fchown(path, *_owner(uid, gid))), path)
        else:
            os.chown(path, uid, gid, dir_fd=dir_fd, follow_symlinks=follow_symlinks)
        return
    flags = _no_follow(follow_symlinks)
    by_path(
        lambda text: (lib.df_call_fchownat, at(dir_fd), text, *_owner(uid, gid), flags),
        lambda real: os.chown(real, uid, gid, dir_fd=dir_fd, follow_symlinks=follow_symlinks),
        path,
    )


def lchown(path: Path, uid: int, gid: int) -> None:
    """os.lchown: chown() of a symlink itself."""
    by_path(
        lambda text: (lib.df_call_fchownat, AT_FDCWD, text, *_owner(uid, gid), AT_SYMLINK_NOFOLLOW),
        lambda real: os.lchown(real, uid, gid),
        path,
    )


def fchown(fd: int, uid: int, gid: int) -> None:
    """os.fchown: chown() of an open descriptor."""
    if is_ours(fd):
        checked(until_done(lambda: lib.df_call_fchown(index(fd), *_owner(uid, gid))))
    else:
        os.fchown(fd, uid, gid)


# ---- times ---------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, slots=True)
class statx_result:  # noqa: N801  (os.stat_result's like)
    """What statx(2) tells. `stx_mask` says which fields are true: `STATX_*` of <linux/stat.h>;
    times are nanoseconds since the epoch, `stx_btime_ns` is None where the file system has none."""

    stx_mask: int
    stx_mode: int
    stx_nlink: int
    stx_uid: int
    stx_gid: int
    stx_ino: int
    stx_size: int
    stx_blksize: int
    stx_blocks: int
    stx_dev: int
    stx_rdev: int
    stx_atime_ns: int
    stx_mtime_ns: int
    stx_ctime_ns: int
    stx_btime_ns: int | None


_STATX_BASIC_STATS, _STATX_BTIME = 0x7FF, 0x800  # <linux/stat.h>


def _statx_result(stx: Any) -> statx_result:
    names = ("mask", "mode", "nlink", "uid", "gid", "ino", "size", "blksize", "blocks")
    plain = {f"stx_{name}": getattr(stx, f"stx_{name}") for name in names}
    times = {
        f"stx_{kind}time_ns": time.tv_sec * _NANO + time.tv_nsec
        for kind, time in zip("amc", (stx.stx_atime, stx.stx_mtime, stx.stx_ctime), strict=True)
    }
    born = stx.stx_btime.tv_sec * _NANO + stx.stx_btime.tv_nsec
    return statx_result(
        **plain,
        **times,
        stx_btime_ns=born if stx.stx_mask & _STATX_BTIME else None,
        stx_dev=os.makedev(stx.stx_dev_major, stx.stx_dev_minor),
        stx_rdev=os.makedev(stx.stx_rdev_major, stx.stx_rdev_minor),
    )


def statx(
    path: Target,
    mask: int = _STATX_BASIC_STATS | _STATX_BTIME,
    *,
    flags: int = 0,
    dir_fd: int | None = None,
    follow_symlinks: bool = True,
) -> statx_result:
    """statx(2), which `os` has from Python 3.15 on: stat() with the time of birth.

    path, dir_fd and follow_symlinks: as of os.stat(), real ones too; mask: what is wanted,
    `STATX_*`; flags: `AT_STATX_*`. Raises OSError with the errno of statx(2).
    """
    path = path_or_fd(path)
    flags |= _no_follow(follow_symlinks)
    if isinstance(path, int):
        dir_fd, flags = path, flags | AT_EMPTY_PATH
    text = b"" if isinstance(path, int) else encode(path)
    if text is None:  # os finds the words
        os.stat(path, dir_fd=dir_fd)
        raise ValueError("embedded null byte")
    stx = ffi.new("struct statx *")
    result = until_done(lambda: lib.df_statx(at(dir_fd), text, flags, mask, stx))
    checked(result, path if isinstance(path, int) else os.fspath(path))
    return _statx_result(stx)


def _timespec(seconds: float) -> tuple[int, int]:
    """Seconds as (seconds, nanoseconds), rounded down as os.utime does."""
    if not isinstance(seconds, float):
        return index(seconds), 0
    if math.isnan(seconds):
        raise ValueError("Invalid value NaN (not a number)")
    fraction, whole = math.modf(seconds)
    nanoseconds = math.floor(fraction * _NANO)
    carry, nanoseconds = divmod(nanoseconds, _NANO)
    return int(whole) + carry, nanoseconds


class _NotGiven:
    """The default of an argument of which None would be wrong."""

    def __repr__(self) -> str:
        return "<not given>"


_NOT_GIVEN: Any = _NotGiven()


def _timespecs(times: tuple[float, float] | None, ns: tuple[int, int]) -> Any:
    """struct timespec[2], or NULL for now."""
    if times is not None:
        return ffi.new("struct timespec[2]", [_timespec(time) for time in times])
    if ns is not _NOT_GIVEN:
        return ffi.new("struct timespec[2]", [divmod(time, _NANO) for time in ns])
    return ffi.NULL


def _pair(value: object) -> bool:
    return type(value) is tuple and len(value) == 2


def utime(
    path: Target,
    times: tuple[float, float] | None = None,
    *,
    ns: tuple[int, int] = _NOT_GIVEN,
    dir_fd: int | None = None,
    follow_symlinks: bool = True,
) -> None:
    """os.utime: sets the times of access and modification. Source: utimensat(2).

    times: (atime, mtime) in seconds; ns: the same in nanoseconds; neither: now.
    """

    def real(target: Any) -> None:
        if ns is _NOT_GIVEN:
            os.utime(target, times, dir_fd=dir_fd, follow_symlinks=follow_symlinks)
        else:
            os.utime(target, times, ns=ns, dir_fd=dir_fd, follow_symlinks=follow_symlinks)

    path = path_or_fd(path)
    has_times, has_ns = times is not None, ns is not _NOT_GIVEN
    odd = (has_times and not _pair(times)) or (has_ns and not _pair(ns))
    if odd or (has_times and has_ns):
        real(path)  # os finds the words
        return
    try:
        pair = _timespecs(times, ns)
    except TypeError:
        real(path)  # the same: they differ with Python
        raise
    if isinstance(path, int):
        if is_ours(path) and dir_fd is None and follow_symlinks:
            result = until_done(lambda: lib.df_call_futimens(path, pair))
            checked(result, *(_names_of_utime(path) if result < 0 else ()))
        else:
            real(path)
        return
    flags = _no_follow(follow_symlinks)
    by_path(lambda text: (lib.df_call_utimensat, at(dir_fd), text, pair, flags), real, path)


def _names_of_utime(descriptor: int) -> tuple[object, ...]:
    """Whether os.utime names a descriptor in its errors differs with Python. So it is asked: a
    descriptor of ours is one that it finds not open."""
    try:
        os.utime(descriptor)
    except OSError as error:
        return () if error.filename is None else (error.filename,)
    return ()


# ---- size ----------------------------------------------------------------------------------------


def truncate(path: Target, length: int) -> None:
    """os.truncate: sets the size to length bytes. Source: truncate(2)."""
    path = path_or_fd(path)
    if isinstance(path, int):
        if is_ours(path):
            checked(until_done(lambda: lib.df_call_ftruncate(path, index(length))))
        else:
            os.truncate(path, length)
        return
    by_path(
        lambda text: (lib.df_call_truncate, text, index(length)),
        lambda real: os.truncate(real, length),
        path,
    )


def ftruncate(fd: int, length: int, /) -> None:
    """os.ftruncate: truncate() of an open descriptor."""
    if is_ours(fd):
        checked(until_done(lambda: lib.df_call_ftruncate(index(fd), index(length))))
    else:
        os.ftruncate(fd, length)


# ---- figures of the file system ------------------------------------------------------------------


def _statvfs_result(figures: Any) -> os.statvfs_result:
    names = ("bsize", "frsize", "blocks", "bfree", "bavail", "files", "ffree", "favail")
    values = [getattr(figures, f"f_{name}") for name in names]
    return os.statvfs_result((*values, figures.f_flag, figures.f_namemax, figures.f_fsid))


def statvfs(path: Target) -> os.statvfs_result:
    """os.statvfs: figures of the file system that holds the path. Source: statvfs(3)."""
    path = path_or_fd(path)
    if isinstance(path, int):
        return _fstatvfs(path, path) if is_ours(path) else os.statvfs(path)
    figures = ffi.new("struct statvfs *")
    return by_path(
        lambda text: (lib.df_call_statvfs, text, figures),
        os.statvfs,
        path,
        done=lambda _: _statvfs_result(figures),
    )


def fstatvfs(fd: int, /) -> os.statvfs_result:
    """os.fstatvfs: statvfs() of an open descriptor."""
    if not is_ours(fd):
        return os.fstatvfs(fd)
    return _fstatvfs(index(fd))


def _fstatvfs(fd: int, *names: int) -> os.statvfs_result:
    """names: what an error says it is about."""
    figures = ffi.new("struct statvfs *")
    checked(until_done(lambda: lib.df_call_fstatvfs(fd, figures)), *names)
    return _statvfs_result(figures)


# ---- extended attributes: xattr(7) ---------------------------------------------------------------


def _xattr(
    name: str,
    path: Target,
    follow_symlinks: bool,
    arguments: tuple[Any, ...],
    real: Callable[[Any], Any],
    done: Callable[[int], Any],
) -> Any:
    """One of the family: df_call_<name>, l<name> for a link itself, f<name> for a descriptor."""
    path = path_or_fd(path)
    if isinstance(path, int):
        if not is_ours(path) or not follow_symlinks:
            return real(path)
        by_fd = getattr(lib, f"df_call_f{name}")
        return done(checked(until_done(lambda: by_fd(path, *arguments)), path))
    function = getattr(lib, f"df_call_{name}" if follow_symlinks else f"df_call_l{name}")
    return by_path(lambda text: (function, text, *arguments), real, path, done=done)


def _fetch(
    name: str,
    path: Target,
    follow_symlinks: bool,
    first: tuple[Any, ...],
    real: Callable[[Any], Any],
    done: Callable[[bytes], Any],
) -> Any:
    """A value of unknown size: into a small buffer, then into the largest there can be."""

    def fetch(size: int) -> Any:
        buffer = ffi.new("char[]", size)
        arguments = (*first, buffer, size)
        return _xattr(
            name,
            path,
            follow_symlinks,
            arguments,
            real,
            lambda count: done(ffi.buffer(buffer, count)[:]),
        )

    try:
        return fetch(_XATTR_SMALL)
    except OSError as error:
        if error.errno != errno.ERANGE:
            raise
    return fetch(_XATTR_MAX)


def getxattr(path: Target, attribute: Path, *, follow_symlinks: bool = True) -> bytes:
    """os.getxattr: the value of an extended attribute. Source: getxattr(2)."""

    def real(target: Any) -> bytes:
        return os.getxattr(target, attribute, follow_symlinks=follow_symlinks)

    name = encode(attribute)
    if name is None:
        return real(path)
    value: bytes = _fetch("getxattr", path, follow_symlinks, (name,), real, bytes)
    return value


def listxattr(path: Target | None = None, *, follow_symlinks: bool = True) -> list[str]:
    """os.listxattr: the names of the extended attributes. Source: listxattr(2)."""

    def names(data: bytes) -> list[str]:
        return [os.fsdecode(name) for name in data.split(b"\0")[:-1]]

    found: list[str] = _fetch(
        "listxattr",
        "." if path is None else path,
        follow_symlinks,
        (),
        lambda target: os.listxattr(target, follow_symlinks=follow_symlinks),
        names,
    )
    return found


def setxattr(
    path: Target, attribute: Path, value: Any, flags: int = 0, *, follow_symlinks: bool = True
) -> None:
    """os.setxattr: sets an extended attribute; flags os.XATTR_CREATE or _REPLACE. Source:
    setxattr(2)."""

    def real(target: Any) -> None:
        os.setxattr(target, attribute, value, flags, follow_symlinks=follow_symlinks)

    name = encode(attribute)
    if name is None or isinstance(value, str):
        real(path)
        return
    with ffi.from_buffer("char[]", value) as data:  # the caller's again, also if an error is kept
        arguments = (name, data, len(data), index(flags))
        _xattr("setxattr", path, follow_symlinks, arguments, real, lambda _: None)


def removexattr(path: Target, attribute: Path, *, follow_symlinks: bool = True) -> None:
    """os.removexattr: removes an extended attribute. Source: removexattr(2)."""

    def real(target: Any) -> None:
        os.removexattr(target, attribute, follow_symlinks=follow_symlinks)

    name = encode(attribute)
    if name is None:
        real(path)
        return
    _xattr("removexattr", path, follow_symlinks, (name,), real, lambda _: None)
