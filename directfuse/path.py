"""os.path, whose questions about files serve mounts and the ordinary file system alike.

What only concerns text (join, split, basename ...) is os.path's own.
"""

import os
import stat as _stat
from os.path import (
    abspath,
    altsep,
    basename,
    commonpath,
    commonprefix,
    curdir,
    defpath,
    devnull,
    dirname,
    expanduser,
    expandvars,
    extsep,
    isabs,
    join,
    normcase,
    normpath,
    pardir,
    pathsep,
    relpath,
    samestat,
    sep,
    split,
    splitdrive,
    splitext,
    supports_unicode_filenames,
)
from typing import Any as _Any
from typing import AnyStr as _AnyStr

from directfuse._call import Path as _Path
from directfuse._fast import fstat as _fstat
from directfuse._fast import lstat as _lstat
from directfuse._fast import stat as _stat_of
from directfuse._names import readlink as _readlink
from directfuse._native import list_mounts as _list_mounts

__all__ = [
    # about files
    "exists",
    "getatime",
    "getctime",
    "getmtime",
    "getsize",
    "isdir",
    "isfile",
    "islink",
    "ismount",
    "lexists",
    "realpath",
    "sameopenfile",
    "samefile",
    # about text
    "abspath",
    "altsep",
    "basename",
    "commonpath",
    "commonprefix",
    "curdir",
    "defpath",
    "devnull",
    "dirname",
    "expanduser",
    "expandvars",
    "extsep",
    "isabs",
    "join",
    "normcase",
    "normpath",
    "pardir",
    "pathsep",
    "relpath",
    "samestat",
    "sep",
    "split",
    "splitdrive",
    "splitext",
    "supports_unicode_filenames",
]

# About text, about Windows alone, or an argument of realpath(): as the running Python has them.
_later = ("ALLOW_MISSING", "isdevdrive", "isjunction", "splitroot")
globals().update({name: getattr(os.path, name) for name in _later if hasattr(os.path, name)})
__all__ += [name for name in _later if hasattr(os.path, name)]


def _mode(path: _Path | int, *, follow: bool = True) -> int:
    """st_mode, 0 when there is none."""
    try:
        return (_stat_of(path) if follow else _lstat(path)).st_mode  # type: ignore[arg-type]
    except (OSError, ValueError):
        return 0


def exists(path: _Path | int) -> bool:
    """Whether the path leads somewhere, or the descriptor is open."""
    return _mode(path) != 0


def lexists(path: _Path) -> bool:
    """Whether the name is there; a dangling symlink is."""
    return _mode(path, follow=False) != 0


def isfile(path: _Path | int) -> bool:
    """Whether it is a regular file, or a symlink to one."""
    return _stat.S_ISREG(_mode(path))


def isdir(s: _Path | int) -> bool:
    """Whether it is a directory, or a symlink to one."""
    return _stat.S_ISDIR(_mode(s))


def islink(path: _Path) -> bool:
    """Whether it is a symlink."""
    return _stat.S_ISLNK(_mode(path, follow=False))


def ismount(path: _Path) -> bool:
    """Whether something is mounted there: by this process or by the kernel."""
    try:
        here = _lstat(path)
    except (OSError, ValueError):
        return False
    if _stat.S_ISLNK(here.st_mode):
        return False
    if any(here.st_dev == entry.dev for entry in _list_mounts()):
        return any(realpath(os.fsdecode(path)) == entry.mountpoint for entry in _list_mounts())
    return os.path.ismount(path)


def getsize(filename: _Path | int) -> int:
    """The size in bytes."""
    return _stat_of(filename).st_size


def getmtime(filename: _Path | int) -> float:
    """The time of the last change of contents, in seconds since 1970."""
    return _stat_of(filename).st_mtime


def getatime(filename: _Path | int) -> float:
    """The time of the last access, in seconds since 1970."""
    return _stat_of(filename).st_atime


def getctime(filename: _Path | int) -> float:
    """The time of the last change of attributes, in seconds since 1970."""
    return _stat_of(filename).st_ctime


def samefile(f1: _Path | int, f2: _Path | int) -> bool:
    """Whether both are the same file."""
    return samestat(_stat_of(f1), _stat_of(f2))


def sameopenfile(fp1: int, fp2: int) -> bool:
    """Whether both descriptors are of the same file."""
    return samestat(_fstat(fp1), _fstat(fp2))


def realpath(filename: _AnyStr | os.PathLike[_AnyStr], *, strict: bool = False) -> _AnyStr:
    """The path without symlinks, ".." and ".". What does not exist stays as it is, unless strict.

    Of Pythons that have it, os.path.ALLOW_MISSING is strict of everything else. Source:
    realpath(3).
    """
    forgiven = _forgiven(strict)
    name: _Any = os.fspath(filename)
    slash: _Any
    dot: _Any
    up: _Any
    slash, dot, up = (b"/", b".", b"..") if isinstance(name, bytes) else ("/", ".", "..")
    here: _AnyStr = slash if name.startswith(slash) else abspath(dot)
    rest = name.split(slash)[::-1]
    led: dict[_Any, _Any] = {}  # where each symlink leads to; None while that is looked for
    while rest:
        part = rest.pop()
        if isinstance(part, _End):
            led[part.link] = here
            continue
        if not part or part == dot:
            continue
        if part == up:
            here = dirname(here)
            continue
        below = join(here, part)
        target = None if below in led else _target(below, forgiven)
        if target is None:
            if strict and led.get(below, below) is None:
                _stat_of(below)  # raises ELOOP
            here = led.get(below) or below  # one that leads back to itself stays as it is
            continue
        led[below] = None
        rest.append(_End(below))
        here = slash if target.startswith(slash) else here
        rest += target.split(slash)[::-1]
    return here


class _End:
    """Stands behind the parts of a symlink's target."""

    def __init__(self, link: _Any) -> None:
        self.link = link


def _forgiven(strict: _Any) -> tuple[type[OSError], ...]:
    """The errors that leave a part of a path as it is."""
    if strict and strict is getattr(os.path, "ALLOW_MISSING", None):
        return (FileNotFoundError,)
    return () if strict else (OSError,)


def _target(path: _Any, forgiven: tuple[type[OSError], ...]) -> _Any:
    """What a symlink says; None: it is none, or it cannot be told and that is forgiven."""
    try:
        return _readlink(path) if _stat.S_ISLNK(_lstat(path).st_mode) else None
    except forgiven:
        return None
