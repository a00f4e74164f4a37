"""Calls on names: mkdir, mknod, unlink, rmdir, rename, link, symlink, readlink and their kin."""

import re
import stat
from operator import index
from typing import Any, AnyStr

from directfuse._call import (
    AT_EMPTY_PATH,
    AT_REMOVEDIR,
    AT_SYMLINK_FOLLOW,
    Path,
    Raw,
    at,
    by_path,
    by_paths,
    checked,
    encode,
    is_ours,
    mode_bits,
    until_done,
)
from directfuse._native import ffi, lib
from directfuse._real import os

__all__ = [
    "link",
    "mkdir",
    "mkfifo",
    "mknod",
    "readlink",
    "remove",
    "rename",
    "renameat2",
    "replace",
    "rmdir",
    "symlink",
    "unlink",
]

_PATH_MAX = 4096


def mkdir(path: Path, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
    """os.mkdir: makes a directory; the mode is masked by the umask. Source: mkdir(2)."""
    by_path(
        lambda text: (lib.df_call_mkdirat, at(dir_fd), text, mode_bits(mode)),
        lambda real: os.mkdir(real, mode, dir_fd=dir_fd),
        path,
    )


def mknod(path: Path, mode: int = 0o600, device: int = 0, *, dir_fd: int | None = None) -> None:
    """os.mknod: makes a file, FIFO, socket or device, the type in mode. Source: mknod(2)."""
    by_path(
        lambda text: (lib.df_call_mknodat, at(dir_fd), text, mode_bits(mode), index(device)),
        lambda real: os.mknod(real, mode, device, dir_fd=dir_fd),
        path,
    )


def mkfifo(path: Path, mode: int = 0o666, *, dir_fd: int | None = None) -> None:
    """os.mkfifo: makes a FIFO. One in a mount cannot be opened: ENXIO. Source: mkfifo(3)."""
    by_path(
        lambda text: (lib.df_call_mknodat, at(dir_fd), text, stat.S_IFIFO | mode_bits(mode), 0),
        lambda real: os.mkfifo(real, mode, dir_fd=dir_fd),
        path,
    )


def unlink(path: Path, *, dir_fd: int | None = None) -> None:
    """os.unlink: removes a name; open files live on. Source: unlink(2)."""
    by_path(
        lambda text: (lib.df_call_unlinkat, at(dir_fd), text, 0),
        lambda real: os.unlink(real, dir_fd=dir_fd),
        path,
    )


def remove(path: Path, *, dir_fd: int | None = None) -> None:
    """os.remove: the same as unlink()."""
    by_path(
        lambda text: (lib.df_call_unlinkat, at(dir_fd), text, 0),
        lambda real: os.remove(real, dir_fd=dir_fd),
        path,
    )


def rmdir(path: Path, *, dir_fd: int | None = None) -> None:
    """os.rmdir: removes an empty directory. Source: rmdir(2)."""
    by_path(
        lambda text: (lib.df_call_unlinkat, at(dir_fd), text, AT_REMOVEDIR),
        lambda real: os.rmdir(real, dir_fd=dir_fd),
        path,
    )


def rename(
    src: Path, dst: Path, *, src_dir_fd: int | None = None, dst_dir_fd: int | None = None
) -> None:
    """os.rename: gives a file another name, in place of what has it. Source: rename(2)."""
    by_paths(
        lambda a, b: (lib.df_call_renameat2, at(src_dir_fd), a, at(dst_dir_fd), b, 0),
        lambda a, b: os.rename(a, b, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd),
        src,
        dst,
    )


def replace(
    src: Path, dst: Path, *, src_dir_fd: int | None = None, dst_dir_fd: int | None = None
) -> None:
    """os.replace: the same as rename()."""
    by_paths(
        lambda a, b: (lib.df_call_renameat2, at(src_dir_fd), a, at(dst_dir_fd), b, 0),
        lambda a, b: os.replace(a, b, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd),
        src,
        dst,
    )


def renameat2(
    src: Path,
    dst: Path,
    flags: int = 0,
    *,
    src_dir_fd: int | None = None,
    dst_dir_fd: int | None = None,
) -> None:
    """renameat2(2), which `os` does not have: rename() with flags.

    src, dst, src_dir_fd and dst_dir_fd: as of os.rename(), real paths too; flags: 1
    RENAME_NOREPLACE (EEXIST when dst exists), 2 RENAME_EXCHANGE (both swap names). Raises OSError
    with the errno of renameat2(2).
    """
    first, second = encode(src), encode(dst)
    if first is None or second is None:  # os finds the words
        os.rename(src, dst, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
        return
    starts = at(src_dir_fd), at(dst_dir_fd)
    result = until_done(lambda: lib.df_renameat2(starts[0], first, starts[1], second, flags))
    checked(result, os.fspath(src), os.fspath(dst))


_OPEN_FILE = re.compile(rb"/(?:proc/self|dev)/fd/(\d{1,10})")


def link(
    src: Path,
    dst: Path,
    *,
    src_dir_fd: int | None = None,
    dst_dir_fd: int | None = None,
    follow_symlinks: bool = True,
) -> None:
    """os.link: another name for a file. Source: link(2).

    As with os.link, a symlink at src is followed only when a dir_fd is given: link(2) does not.
    Then "/proc/self/fd/N" is the open file N also where N is ours, and a file that was made by
    O_TMPFILE gets its name so.
    """
    by_name = src_dir_fd is None and dst_dir_fd is None
    flags = AT_SYMLINK_FOLLOW if follow_symlinks and not by_name else 0

    def ours(a: bytes, b: bytes) -> Raw:
        start, how = at(src_dir_fd), flags
        match = _OPEN_FILE.fullmatch(a) if flags else None
        if match and is_ours(int(match[1])):
            start, a, how = int(match[1]), b"", flags | AT_EMPTY_PATH
        return lib.df_call_linkat, start, a, at(dst_dir_fd), b, how

    by_paths(
        ours,
        lambda a, b: os.link(
            a, b, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd, follow_symlinks=follow_symlinks
        ),
        src,
        dst,
    )


def symlink(
    src: Path, dst: Path, target_is_directory: bool = False, *, dir_fd: int | None = None
) -> None:
    """os.symlink: makes dst a symlink that says src. Source: symlink(2)."""
    target = encode(src)
    if target is None or encode(dst) is None:  # os finds the words
        os.symlink(src, dst, target_is_directory, dir_fd=dir_fd)
        return
    by_path(
        lambda text: (lib.df_call_symlinkat, target, at(dir_fd), text),
        lambda real: os.symlink(src, real, target_is_directory, dir_fd=dir_fd),
        dst,
        names=(os.fspath(src), os.fspath(dst)),
    )


def readlink(path: AnyStr | os.PathLike[AnyStr], *, dir_fd: int | None = None) -> AnyStr:
    """os.readlink: what a symlink says, bytes for a bytes path. Source: readlink(2)."""
    buffer = ffi.new("char[]", _PATH_MAX)

    def target(size: int) -> Any:
        data: bytes = ffi.buffer(buffer, size)[:]
        return data if isinstance(os.fspath(path), bytes) else os.fsdecode(data)

    said: AnyStr = by_path(
        lambda text: (lib.df_call_readlinkat, at(dir_fd), text, buffer, _PATH_MAX),
        lambda real: os.readlink(real, dir_fd=dir_fd),
        path,
        done=target,
    )
    return said
