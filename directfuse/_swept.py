"""Directories of ours that go although we are killed: the next process that makes one of the kind
removes those that nobody needs.

Who needs one has a shared lock (flock(2)) on it; what processes that were killed have left, nobody
has locked.
"""

import errno
import fcntl
import fnmatch
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from directfuse import _kernel

__all__ = ["ENDED", "Swept", "private_directory", "remove", "sweep", "swept_directory"]

ENDED = ".ended"  # behind the name of one that is being removed


class Swept:
    """A new directory in `base`, at `path`, whose name begins with `prefix`."""

    def __init__(self, prefix: str, base: str, *others: str) -> None:
        """others: patterns of more names to sweep. Raises OSError: there cannot be one."""
        sweep(base, f"{prefix}*", *others)
        self.path, self._fd = _make(prefix, base)

    def leave(self) -> None:
        """Somebody else still needs it."""
        os.close(self._fd)

    def remove(self) -> None:
        """Nobody needs it any longer."""
        remove(self.path)
        self.leave()


@contextmanager
def swept_directory(prefix: str, base: str | None = None) -> Iterator[str]:
    """One for the body, which fills it. base: where temporary files are, unless told."""
    directory = Swept(prefix, base or tempfile.gettempdir())
    try:
        yield str(directory.path)
    except OSError as error:
        if error.errno == errno.ENOSPC and error.filename is None:  # a write names no file
            error.filename = str(directory.path)
        raise
    finally:
        directory.remove()


def private_directory(prefix: str, base: str) -> Path:
    """A new one that is its maker's, also where the umask takes the maker's own rights."""
    path = Path(tempfile.mkdtemp(prefix=prefix, dir=base))
    path.chmod(0o700)
    return path


def _make(prefix: str, base: str) -> tuple[Path, int]:
    """Locked. Before it is, somebody may take it for one that was left."""
    while True:
        path = private_directory(prefix, base)
        with suppress(FileNotFoundError):
            fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            with suppress(OSError):  # where nothing can be locked, nothing is swept, either
                fcntl.flock(fd, fcntl.LOCK_SH)
            if path.exists():
                return path, fd
            os.close(fd)


def sweep(base: str, *patterns: str) -> None:
    """Removes those of such names (fnmatch) that nobody needs."""
    with os.scandir(base) as entries:
        for entry in entries:
            if any(fnmatch.fnmatchcase(entry.name, pattern) for pattern in patterns):
                with suppress(OSError):
                    _remove_left(entry)


def _remove_left(entry: "os.DirEntry[str]") -> None:
    """Raises OSError: it is none, another's, or in use."""
    if entry.stat(follow_symlinks=False).st_uid != os.geteuid():
        return
    fd = os.open(entry.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _unmount_in(os.path.realpath(entry.path))
        remove(Path(entry.path))
    finally:
        os.close(fd)


def _unmount_in(directory: str) -> None:
    """What is still mounted there is somebody's data, and not to be removed with it."""
    for mount in reversed(_kernel.mounts()):
        if mount.point.startswith(f"{directory}/"):
            _kernel.unmount(mount.point, lazy=True)


def remove(path: Path) -> None:
    """Programs that still run, of which we may be one, make what they miss there: not where it is
    gone."""
    with suppress(FileNotFoundError):
        gone = path if path.suffix == ENDED else path.rename(f"{path}{ENDED}")
        shutil.rmtree(gone, ignore_errors=True)
