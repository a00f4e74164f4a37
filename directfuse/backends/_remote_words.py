"""What file systems of fsspec say about files and errors, in the words of Linux.

Every one has keys and types of its own; here is all that knows of them.
"""

import datetime
import errno
import functools
import logging
import os
import time
from collections.abc import Callable
from typing import Any, TypeVar

import fsspec

__all__ = [
    "entries",
    "errno_of",
    "fail",
    "is_read_only",
    "nanoseconds",
    "operation",
    "protocols",
    "since_1970",
    "version",
]

logger = logging.getLogger("directfuse.fsspec")
Function = TypeVar("Function", bound=Callable[..., Any])

#: Protocols whose file systems cannot be written, told here so that open() says so and not close().
_READ_ONLY = {"data", "git", "github", "http", "https", "libarchive", "reference", "tar"}

#: What tells one version of a file from another, where a file system says it.
_VERSION = (
    *("size", "mtime", "etag", "ETag", "LastModified", "last_modified", "updated", "modified"),
    *("generation", "version_id", "md5Hash", "sha", "checksum", "created", "date_time"),
)

_TIMES = ("mtime", "LastModified", "last_modified", "modified", "updated", "date_time", "created")

# ---- errors --------------------------------------------------------------------------------------

_BY_TYPE: list[tuple[type[BaseException], int]] = [
    (FileNotFoundError, errno.ENOENT),
    (FileExistsError, errno.EEXIST),
    (NotADirectoryError, errno.ENOTDIR),
    (IsADirectoryError, errno.EISDIR),
    (PermissionError, errno.EACCES),
    (TimeoutError, errno.ETIMEDOUT),
    (ConnectionError, errno.ECONNREFUSED),
    (NotImplementedError, errno.EOPNOTSUPP),
    (MemoryError, errno.ENOMEM),
]


def errno_of(error: BaseException) -> int:
    """fsspec's file systems raise the right types, but often without an errno."""
    if isinstance(error, OSError) and isinstance(error.errno, int) and 0 < error.errno < 4096:
        return error.errno
    for kind, code in _BY_TYPE:
        if isinstance(error, kind):
            return code
    return errno.EIO


def fail(code: int) -> OSError:
    """The exception of an errno."""
    return OSError(code, os.strerror(code))


def operation(function: Function) -> Function:
    """Every exception leaves as an OSError with an errno; what nobody expects is logged."""

    @functools.wraps(function)
    def run(self: Any, path: str, *arguments: Any) -> Any:
        try:
            return function(self, path, *arguments)
        except Exception as error:
            code = errno_of(error)
            if code == errno.EIO:
                logger.exception("%s of %s failed", function.__name__, path)
            raise OSError(code, os.strerror(code), path) from error

    return run  # type: ignore[return-value]


# ---- what fsspec says ----------------------------------------------------------------------------


def protocols(fs: Any) -> set[str]:
    return {fs.protocol} if isinstance(fs.protocol, str) else set(fs.protocol)


def is_read_only(fs: Any) -> bool:
    """Whether it is known to be: a kind that is never written, an archive open for reading."""
    if protocols(fs) & _READ_ONLY:
        return True
    if "zip" in protocols(fs):
        return str(getattr(fs, "mode", "r")) == "r"
    below = getattr(fs, "fs", None)  # a cache over another
    return isinstance(below, fsspec.AbstractFileSystem) and is_read_only(below)


def entries(name: str, found: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Entries by their last component; a marker of the directory itself is none."""
    own = name.strip("/")
    named = {}
    for info in found:
        full = str(info["name"]).strip("/")
        if full != own:
            named[full.rpartition("/")[2]] = info
    return named


def nanoseconds(info: dict[str, Any]) -> int:
    """When it was last changed; 0: it does not say."""
    for key in _TIMES:
        value = info.get(key)
        if value is not None:
            try:
                return since_1970(value)
            except (TypeError, ValueError):
                continue
    return 0


def since_1970(value: Any) -> int:
    """Of a number of seconds or nanoseconds, a datetime, ISO text, a zip's tuple, a timespec."""
    if isinstance(value, int) and abs(value) > 10**14:
        return value
    if isinstance(value, int | float):
        return int(value * 1e9)
    if isinstance(value, str):
        return int(datetime.datetime.fromisoformat(value).timestamp() * 1e9)
    if isinstance(value, tuple):
        return int(time.mktime((*value, 0, 0, -1)) * 1e9)
    return int(value.timestamp() * 1e9)


def version(info: dict[str, Any]) -> tuple[str, ...]:
    """What is another when the file is."""
    return tuple(str(info.get(key)) for key in _VERSION)
