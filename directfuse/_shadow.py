"""The directory of a run's placeholders, and who removes it.

Who needs the directory of a run has a shared lock (flock(2)) on it: `directfuse run`, and its mount
server (native/server/shadow.c). Whoever of them ends last removes it; what processes that were
killed have left, nobody has locked, and the next run removes that.
"""

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

__all__ = ["Shadow", "shadow_directory"]

_RUN = "directfuse-run-"


def _base() -> str:
    """On tmpfs where there is one."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK | os.X_OK) else tempfile.gettempdir()


def shadow_directory(prefix: str = "directfuse-") -> Path:
    """One that is nobody's but its maker's, who removes it."""
    return Path(tempfile.mkdtemp(prefix=prefix, dir=_base()))


class Shadow:
    """The directory of one run, at `path`."""

    def __init__(self) -> None:
        """Raises OSError: there cannot be one."""
        _sweep()
        self.path, self._fd = _make()

    def leave(self) -> None:
        """The server still needs it."""
        os.close(self._fd)

    def remove(self) -> None:
        """Nobody needs it any longer."""
        _remove(self.path)
        self.leave()


def _make() -> tuple[Path, int]:
    """Locked. Before it is, somebody may take it for one that was left."""
    while True:
        path = shadow_directory(_RUN)
        with suppress(FileNotFoundError):
            fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            fcntl.flock(fd, fcntl.LOCK_SH)
            if path.exists():
                return path, fd
            os.close(fd)


def _sweep() -> None:
    with os.scandir(_base()) as entries:
        for entry in entries:
            if entry.name.startswith(_RUN):
                with suppress(OSError):
                    _remove_left(entry)


def _remove_left(entry: "os.DirEntry[str]") -> None:
    """Raises OSError: it is none, another's, or in use."""
    if entry.stat(follow_symlinks=False).st_uid != os.geteuid():
        return
    fd = os.open(entry.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _remove(Path(entry.path))
    finally:
        os.close(fd)


def _remove(path: Path) -> None:
    """Programs that still run make what they miss there: not where it is gone."""
    with suppress(FileNotFoundError):
        gone = path if path.suffix == ".ended" else path.rename(f"{path}.ended")
        shutil.rmtree(gone, ignore_errors=True)
