"""The package's own exceptions, about mounts. Calls on files raise what `os` raises."""

import os

__all__ = ["DirectfuseError", "MountError", "NotSupportedError", "UnmountError"]


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
