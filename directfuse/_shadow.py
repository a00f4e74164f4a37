"""The directory of a run's placeholders, on tmpfs where there is one.

Programs of a run may change their user and group, and come by their placeholders all the same;
other users are to come by none. So it lies under a name that cannot be guessed, in a directory that
all may pass through and only its owner may list (decision 118).

Who needs it has the outer directory locked: `directfuse run`, and its mount server
(native/process/shadow.c). Whoever of them ends last removes it; what processes that were killed
have left, the next run removes. Those of `directfuse serve` and `directfuse env` stay until they
are removed, and nobody has them locked; but a removal that somebody was killed at is finished by
whoever makes a directory next.
"""

import errno
import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from directfuse._swept import ENDED, Swept, private_directory, remove, sweep

__all__ = ["Shadow", "discard_shadow", "is_around_shadow", "shadow_directory"]

_PREFIX = "directfuse-"
_LEFT = f"{_PREFIX}*{ENDED}"  # of removals that somebody was killed at
_SECRET_BYTES = 8

Made = TypeVar("Made")


def _made(make: Callable[[str], Made]) -> Made:
    """What is made in the directory that it is told: on tmpfs where there is one, and that may be
    written to. Raises OSError: nothing may."""
    if os.access("/dev/shm", os.W_OK | os.X_OK):
        with suppress(PermissionError):  # access(2) does not know what Landlock forbids
            return make("/dev/shm")
    return make(_temporary())


def _temporary() -> str:
    try:
        return tempfile.gettempdir()
    except FileNotFoundError as error:
        words = f"cannot be written to (or let TMPDIR name a directory): {error.strerror}"
        raise OSError(errno.EROFS, words, "/dev/shm") from error


def _make_in(outer: Path) -> Path:
    hidden = outer / os.urandom(_SECRET_BYTES).hex()
    hidden.mkdir(0o700)
    hidden.chmod(0o700)  # whatever the umask
    outer.chmod(0o711)
    return hidden


def shadow_directory() -> Path:
    """One that is nobody's but its maker's, who discards it. Its parent is its own."""
    return _made(_shadow_in)


def _shadow_in(base: str) -> Path:
    sweep(base, _LEFT)
    return _make_in(private_directory(_PREFIX, base))


def discard_shadow(shadow: Path) -> None:
    """With the directory around it."""
    outer = shadow.parent
    if not is_around_shadow(outer):  # of a build that had but one directory
        outer = shadow
    remove(outer)


def is_around_shadow(outer: Path) -> bool:
    """By its name."""
    return outer.name.startswith(_PREFIX)


class Shadow(Swept):
    """The directory of one run is `hidden`, in the one that is swept."""

    def __init__(self) -> None:
        """Raises OSError: there cannot be one."""
        _made(lambda base: Swept.__init__(self, f"{_PREFIX}run-", base, _LEFT))
        self.hidden = _make_in(self.path)
