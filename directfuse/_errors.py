"""The package's own exceptions, about mounts. Calls on files raise what `os` raises."""

import errno
import os
import sys
from collections.abc import Callable
from typing import Any, TypeVar

__all__ = [
    "DirectfuseError",
    "MountError",
    "NotSupportedError",
    "UnmountError",
    "asked",
    "files_limit",
    "limit_remedy",
]

T = TypeVar("T")


def asked(call: Callable[..., T], *arguments: Any) -> T:
    """The result of a system call that containers may forbid; its error says which it was."""
    try:
        return call(*arguments)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOSYS):
            raise
        words = f"{error.strerror}: a seccomp filter forbids it, perhaps"
        raise OSError(error.errno, words, f"{call.__name__}(2)") from error


def files_limit() -> int:
    """How many files a process may have open. Opens none: there may be no more."""
    limit = os.sysconf("SC_OPEN_MAX")
    return limit if limit >= 0 else sys.maxsize


def limit_remedy(code: int | None) -> str:
    """What helps where a limit of the process is in the way (EMFILE, ENOMEM); else nothing."""
    words = ""
    if code == errno.EMFILE:
        words = f"{files_limit()} open files here; allow more, for example `ulimit -n 1024`"
    elif code == errno.ENOMEM:
        words = _space_remedy()
    return f"(a process may have {words})" if words else ""


def _space_remedy() -> str:
    import resource

    space, _ = resource.getrlimit(resource.RLIMIT_AS)
    if space == resource.RLIM_INFINITY:
        return ""
    words = f"{space >> 20} MiB of address space here; shared memory of a mount server takes "
    return words + "0.8 GiB of it, used or not: `ulimit -v unlimited`"


class DirectfuseError(OSError):
    """A mount could not be made, found or ended.

    `errno` is the reason, `strerror` the words (the plugin's own among them), `filename` the
    command or the mountpoint.
    """

    def __init__(self, code: int, message: str, subject: str | None = None) -> None:
        super().__init__(code, message or os.strerror(code), *([subject] if subject else []))


class MountError(DirectfuseError):
    """The file system did not mount; `strerror` has the plugin's words and the remedy."""


class UnmountError(DirectfuseError):
    """The mount stays: files are open (EBUSY), or there is none (EINVAL)."""


class NotSupportedError(MountError, NotImplementedError):
    """This version cannot do it; `strerror` says what can."""
