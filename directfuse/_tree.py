"""Calls on trees: makedirs, removedirs, renames, walk, fwalk - as in `os`, over our calls."""

import os
import stat as _stat
from collections.abc import Callable, Iterator
from typing import Any, AnyStr, overload

from directfuse import path as _path
from directfuse._call import Path
from directfuse._fast import close, lstat, os_open, scandir, stat
from directfuse._names import mkdir, rename, rmdir

__all__ = ["fwalk", "makedirs", "removedirs", "renames", "walk"]

OnError = Callable[[OSError], object]


def makedirs(name: Path, mode: int = 0o777, exist_ok: bool = False) -> None:
    """os.makedirs: makes a directory and those above it; mode is that of the last."""
    head, tail = _path.split(os.fspath(name))
    if not tail:
        head, tail = _path.split(head)
    if head and tail and not _path.exists(head):
        try:
            makedirs(head, exist_ok=exist_ok)
        except FileExistsError:  # made by somebody else meanwhile
            pass
        if tail in (os.curdir, os.fsencode(os.curdir)):
            return
    try:
        mkdir(name, mode)
    except OSError:
        if not exist_ok or not _path.isdir(name):
            raise


def removedirs(name: Path) -> None:
    """os.removedirs: removes an empty directory and those above it that this makes empty."""
    rmdir(name)
    head, tail = _path.split(os.fspath(name))
    if not tail:
        head, tail = _path.split(head)
    while head and tail:
        try:
            rmdir(head)
        except OSError:
            break
        head, tail = _path.split(head)


def renames(old: Path, new: Path) -> None:
    """os.renames: rename() that makes the directories of new and removes those of old if empty."""
    head, tail = _path.split(os.fspath(new))
    if head and tail and not _path.exists(head):
        makedirs(head)
    rename(old, new)
    head, tail = _path.split(os.fspath(old))
    if head and tail:
        try:
            removedirs(head)
        except OSError:
            pass


def _list(top: Any) -> tuple[list[Any], list[Any], set[Any]]:
    """Names of directories and of all else in top, and which of the former are symlinks."""
    dirs: list[Any] = []
    nondirs: list[Any] = []
    links: set[Any] = set()
    with scandir(top) as entries:
        for entry in entries:
            if _is_dir(entry):
                dirs.append(entry.name)
                if entry.is_symlink():
                    links.add(entry.name)
            else:
                nondirs.append(entry.name)
    return dirs, nondirs, links


def _is_dir(entry: Any) -> bool:
    """A symlink that cannot be followed is no directory, as in os.walk."""
    try:
        return bool(entry.is_dir())
    except OSError:
        return False


def walk(
    top: AnyStr | os.PathLike[AnyStr],
    topdown: bool = True,
    onerror: OnError | None = None,
    followlinks: bool = False,
) -> Iterator[tuple[AnyStr, list[AnyStr], list[AnyStr]]]:
    """os.walk: (directory, names of directories in it, other names) for a whole tree.

    When topdown, what the caller removes from the second list is not entered.
    """
    pending: list[Any] = [os.fspath(top)]
    while pending:
        current = pending.pop()
        if isinstance(current, tuple):
            yield current
            continue
        try:
            dirs, nondirs, links = _list(current)
        except OSError as error:
            if onerror is not None:
                onerror(error)
            continue
        if topdown:
            yield current, dirs, nondirs
            # Looked at again: the caller may have replaced names.
            below = [_path.join(current, name) for name in dirs]
            pending += [sub for sub in reversed(below) if followlinks or not _path.islink(sub)]
        else:
            pending.append((current, dirs, nondirs))
            pending += [
                _path.join(current, name)
                for name in reversed(dirs)
                if followlinks or name not in links
            ]


@overload
def fwalk(
    top: str | os.PathLike[str] = ".",
    topdown: bool = True,
    onerror: OnError | None = None,
    *,
    follow_symlinks: bool = False,
    dir_fd: int | None = None,
) -> Iterator[tuple[str, list[str], list[str], int]]: ...
@overload
def fwalk(
    top: bytes | os.PathLike[bytes],
    topdown: bool = True,
    onerror: OnError | None = None,
    *,
    follow_symlinks: bool = False,
    dir_fd: int | None = None,
) -> Iterator[tuple[bytes, list[bytes], list[bytes], int]]: ...
def fwalk(
    top: Path = ".",
    topdown: bool = True,
    onerror: OnError | None = None,
    *,
    follow_symlinks: bool = False,
    dir_fd: int | None = None,
) -> Iterator[tuple[Any, list[Any], list[Any], int]]:
    """os.fwalk: walk() with a descriptor of each directory as fourth item, valid until the next.

    onerror is told of directories below top; what is wrong with top itself is raised.
    """
    top = os.fspath(top)
    fd = _enter(top, dir_fd, follow_symlinks)
    if fd is not None:
        yield from _fwalk(fd, top, topdown, onerror, follow_symlinks)


def _fwalk(
    fd: int, shown: Any, topdown: bool, onerror: OnError | None, follow_symlinks: bool
) -> Iterator[tuple[Any, list[Any], list[Any], int]]:
    """Of an open directory, which it closes."""
    try:
        dirs, nondirs, _ = _list(fd)
        if isinstance(shown, bytes):
            dirs, nondirs = [*map(os.fsencode, dirs)], [*map(os.fsencode, nondirs)]
        if topdown:
            yield shown, dirs, nondirs, fd
        for child in dirs:
            below = _enter_below(child, fd, onerror, follow_symlinks)
            if below is not None:
                path = _path.join(shown, child)
                yield from _fwalk(below, path, topdown, onerror, follow_symlinks)
        if not topdown:
            yield shown, dirs, nondirs, fd
    finally:
        close(fd)


def _enter_below(
    name: Any, dir_fd: int, onerror: OnError | None, follow_symlinks: bool
) -> int | None:
    """As _enter(); None also after an error, which onerror is told of."""
    try:
        return _enter(name, dir_fd, follow_symlinks)
    except OSError as error:
        if onerror is not None:
            onerror(error)
        return None


def _enter(name: Any, dir_fd: int | None, follow_symlinks: bool) -> int | None:
    """A descriptor of a directory; None when a symlink, or a swap behind our back, stands there."""
    before = None if follow_symlinks else lstat(name, dir_fd=dir_fd)
    if before is not None and not _stat.S_ISDIR(before.st_mode):
        stat(name, dir_fd=dir_fd)  # os opens it before it looks: a link that leads nowhere is wrong
        return None
    fd = os_open(name, os.O_RDONLY | os.O_NONBLOCK, dir_fd=dir_fd)
    if before is not None and not _path.samestat(before, stat(fd)):
        close(fd)
        return None
    return fd
