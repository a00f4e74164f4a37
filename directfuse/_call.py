"""How a rare call is made: ours by cffi, else the function of `os` with the same arguments.

The steps are those of native/python/os.c, which does the same for the hot calls: try ours; when
the answer is NOT_OURS call the real function, with the path by which a walk left a mount in place
of the caller's; when that one finds nothing, a real symlink may lead into a mount, so try ours once
more. Ours is given as a raw call that is yet to be made, (function, *arguments).
"""

import errno
import sys
from collections.abc import Callable, Sequence
from operator import index
from typing import Any, TypeAlias, TypeVar

from directfuse._native import FD_BASE, NOT_OURS, attempt
from directfuse._real import os

__all__ = [
    "AT_FDCWD",
    "AT_REMOVEDIR",
    "AT_EMPTY_PATH",
    "AT_SYMLINK_FOLLOW",
    "AT_SYMLINK_NOFOLLOW",
    "Path",
    "Raw",
    "at",
    "by_path",
    "by_paths",
    "c_int",
    "c_long",
    "checked",
    "descriptor_of",
    "encode",
    "identifier",
    "is_ours",
    "mode_bits",
    "path_or_fd",
    "until_done",
]

Path: TypeAlias = str | bytes | os.PathLike[str] | os.PathLike[bytes]
Raw: TypeAlias = tuple[Any, ...]
"""A raw call and its arguments."""
Left: TypeAlias = Sequence[bytes | None]
"""Where the walks of a call's paths have left a mount."""

T = TypeVar("T")

# <fcntl.h>, the same on every architecture of Linux.
AT_FDCWD = -100
AT_SYMLINK_NOFOLLOW = 0x100
AT_SYMLINK_FOLLOW = 0x400
AT_EMPTY_PATH = 0x1000
AT_REMOVEDIR = 0x200

_EINTR = -4
_UTF8 = sys.getfilesystemencoding() == "utf-8"


def is_ours(fd: object) -> bool:
    """Whether it is the number of a virtual descriptor, open or not."""
    return hasattr(fd, "__index__") and index(fd) >= FD_BASE


# ---- numbers: what `os` takes for one has __index__ (those of numpy do) and fits its type in C ---


def at(dir_fd: int | None) -> int:
    """The dirfd of an *at() call."""
    if dir_fd is None:
        return AT_FDCWD
    if not hasattr(dir_fd, "__index__"):
        kind = type(dir_fd).__name__
        raise TypeError(f"argument should be integer or None, not {kind}")
    return c_int(dir_fd, "fd")


def mode_bits(mode: int) -> int:
    """A mode for C, which has no negative ones; os takes them."""
    return c_int(mode, "mode") & 0xFFFFFFFF


def identifier(value: int, what: str) -> int:
    """A uid or gid for C; os turns -1, which leaves it as it is, into the largest."""
    if not hasattr(value, "__index__"):
        raise TypeError(f"{what} should be integer, not {type(value).__name__}")
    return _fits(index(value), -1, 0xFFFFFFFF, what) & 0xFFFFFFFF


def c_int(value: int, what: str) -> int:
    """A number for C's int."""
    return _fits(index(value), -(1 << 31), (1 << 31) - 1, what)


def c_long(value: int, what: str) -> int:
    """A number for C's long, or off_t."""
    return _fits(index(value), -(1 << 63), (1 << 63) - 1, what)


def _fits(value: int, least: int, most: int, what: str) -> int:
    if least <= value <= most:
        return value
    raise OverflowError(
        f"{what} is {'less than minimum' if value < least else 'greater than maximum'}"
    )


# ---- descriptors ---------------------------------------------------------------------------------


def descriptor_of(file: Any) -> int:
    """The descriptor of what `os` and `fcntl` take for one: a number or a file object.

    A file object of a mount has no fileno(), but its raw file knows its virtual descriptor.
    """
    if isinstance(file, int):
        return file
    raw = getattr(file, "buffer", file)
    raw = getattr(raw, "raw", raw)
    descriptor = getattr(raw, "descriptor", None)
    if isinstance(descriptor, int):
        return descriptor
    if not hasattr(file, "fileno"):
        raise TypeError("argument must be an int, or have a fileno() method.")
    number = file.fileno()
    if not isinstance(number, int):
        raise TypeError("fileno() returned a non-integer")
    return number


def path_or_fd(path: T) -> T | int:
    """Where `os` takes either: a descriptor as an int, whatever number it is."""
    if isinstance(path, str | bytes) or not hasattr(path, "__index__"):
        return path
    return index(path)


def until_done(call: Callable[[], int]) -> int:
    """The call's result; again after a signal, whose handlers ran in between (PEP 475)."""
    while (result := call()) == _EINTR:
        pass
    return result


_explain: Callable[[OSError], object] | None = None


def explain_by(function: Callable[[OSError], object]) -> None:
    """From now on function(error) is called with each OSError of ENOTCONN before it is raised."""
    global _explain
    _explain = function


def checked(result: int, *names: object) -> int:
    """The result; or its OSError, with up to two file names."""
    if result >= 0:
        return result
    raise _os_error(-result, names)


def _os_error(number: int, names: tuple[object, ...]) -> OSError:
    """Made apart from where it is raised: as a local variable there it would keep itself alive by
    its traceback, and with it all that its callers have."""
    if len(names) == 2:
        names = (names[0], None, names[1])
    error = OSError(number, os.strerror(number), *names)
    if number == errno.ENOTCONN and _explain:
        _explain(error)
    return error


def encode(path: Path) -> bytes | None:
    """The path as the kernel would see it; None: `os` is to say what is wrong with it."""
    try:
        text = path.encode() if type(path) is str and _UTF8 else os.fsencode(path)
    except UnicodeError:  # lone surrogates stand for bytes (PEP 383)
        text = os.fsencode(path)
    except TypeError:
        return None
    return None if b"\0" in text else text


def _there(path: Any, left: bytes | None) -> Any:
    """The path to give to the kernel: where the walk left a mount, or the caller's own."""
    if left is None:
        return path
    return left if isinstance(os.fspath(path), bytes) else os.fsdecode(left)


def by_path(
    ours: Callable[[bytes], Raw],
    real: Callable[[Any], T],
    path: Path,
    *,
    done: Callable[[int], T] | None = None,
    names: tuple[object, ...] | None = None,
) -> T:
    """A call on one path.

    ours is the raw call with the encoded path; real calls `os` with a path; done makes the Python
    result of the raw one (None when it is missing); names are the file names of an OSError, by
    default the path.
    """
    text = encode(path)
    if text is None:
        return real(path)

    def outside(left: Left) -> T:
        return _named(lambda: real(_there(path, left[0])), left, names or (os.fspath(path),))

    result, *left = attempt(0, *ours(text))
    if result == NOT_OURS:
        try:
            return outside(left)
        except OSError as error:
            result, *left = _again(ours(text), error)
            if result == NOT_OURS and not any(left):
                raise
        if result == NOT_OURS:
            return outside(left)
    if result < 0:
        checked(result, *(names or (os.fspath(path),)))
    return done(result) if done else None  # type: ignore[return-value]


def by_paths(
    ours: Callable[[bytes, bytes], Raw],
    real: Callable[[Any, Any], None],
    source: Path,
    target: Path,
) -> None:
    """A call on two paths, as by_path()."""
    first, second = encode(source), encode(target)
    if first is None or second is None:
        real(source, target)
        return

    def outside(left: Left) -> None:
        there = _there(source, left[0]), _there(target, left[1])
        _named(lambda: real(*there), left, (os.fspath(source), os.fspath(target)))

    result, *left = attempt(0, *ours(first, second))
    if result == NOT_OURS:
        try:
            outside(left)
            return
        except OSError as error:
            result, *left = _again(ours(first, second), error)
            if result == NOT_OURS and not any(left):
                raise
        if result == NOT_OURS:
            outside(left)
            return
    checked(result, os.fspath(source), os.fspath(target))


def _named(call: Callable[[], T], left: Left, names: tuple[object, ...]) -> T:
    """The call; an OSError of it names paths as the caller gave them, where a walk left a mount."""
    try:
        return call()
    except OSError as error:
        if any(left):
            _rename(error, names)
        raise


def _rename(error: OSError, names: tuple[object, ...]) -> None:
    """An OSError names paths as the caller gave them."""
    error.filename = names[0]
    if len(names) > 1:
        error.filename2 = names[1]


def _again(ours: Raw, error: OSError) -> tuple[int, bytes | None, bytes | None]:
    """Ours once more, where a real symlink may be what the kernel could not follow: it may lead
    into a mount, and from there out again."""
    if error.errno not in (errno.ENOENT, errno.ENOTDIR):
        return NOT_OURS, None, None
    return attempt(error.errno, *ours)
