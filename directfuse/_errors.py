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

_REFUSALS = {
    errno.EPERM: "a seccomp filter forbids it, perhaps",
    errno.ENOSYS: "this kernel does not have it (gVisor?), or a seccomp filter forbids it",
}
_SEGMENT = "shared memory of a mount server takes 0.8 GiB of it, used or not"


def asked(call: Callable[..., T], *arguments: Any) -> T:
    """The result of a system call that containers may forbid; its error says which it was."""
    try:
        return call(*arguments)
    except OSError as error:
        if error.errno not in _REFUSALS:
            raise
        words = f"{error.strerror}: {_REFUSALS[error.errno]}"
        raise OSError(error.errno, words, f"{call.__name__}(2)") from error


def files_limit() -> int:
    """How many files a process may have open. Opens none: there may be no more."""
    limit = os.sysconf("SC_OPEN_MAX")
    return limit if limit >= 0 else sys.maxsize


def limit_remedy(code: int | None) -> str:
    """What helps where a limit of the process is in the way; else nothing."""
    if code == errno.EMFILE:  # and no file can be opened to import a module from
        words = f"process may have {files_limit()} open files here; allow more, for example "
        words += f"`ulimit -n {max(1024, 2 * files_limit())}`"
    else:
        words = _other_limit(code)
    return f"(a {words})" if words else ""


def _soft_limit(which: int) -> int:
    """Where a filter refuses to tell it, there is none to be named: RLIM_INFINITY."""
    import resource

    try:
        return resource.getrlimit(which)[0]
    except OSError:
        return resource.RLIM_INFINITY


def _other_limit(code: int | None) -> str:
    import resource

    unlimited = resource.RLIM_INFINITY
    space = _soft_limit(resource.RLIMIT_AS)
    size, data = _soft_limit(resource.RLIMIT_FSIZE), _soft_limit(resource.RLIMIT_DATA)
    processes = _soft_limit(resource.RLIMIT_NPROC)
    if code == errno.ENOMEM and space != unlimited:
        words = f"process may have {space >> 10} KiB of address space here; {_SEGMENT}: "
        return words + "`ulimit -v unlimited`"
    if code in (errno.ENOMEM, errno.EAGAIN) and data != unlimited:  # EAGAIN: for a thread's stack
        return f"process may have {data >> 10} KiB of memory of its own here: `ulimit -d unlimited`"
    if code == errno.EFBIG and size != unlimited:
        return f"file may have {size >> 10} KiB here; {_SEGMENT}: `ulimit -f unlimited`"
    if code == errno.EAGAIN:
        job = "job or container may have as many processes as pids.max of its cgroup says"
        user = f"user may have {processes} processes here, by `ulimit -u`; a "
        return job if processes == unlimited else user + job
    return ""


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
