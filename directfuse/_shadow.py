"""The directory of a run's placeholders, on tmpfs where there is one.

Who needs it has it locked: `directfuse run`, and its mount server (native/server/shadow.c). Whoever
of them ends last removes it; what processes that were killed have left, the next run removes.
"""

import os
import tempfile
from pathlib import Path

from directfuse._swept import Swept

__all__ = ["Shadow", "shadow_directory"]


def _base() -> str:
    """On tmpfs where there is one."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK | os.X_OK) else tempfile.gettempdir()


def shadow_directory() -> Path:
    """One that is nobody's but its maker's, who removes it."""
    return Path(tempfile.mkdtemp(prefix="directfuse-", dir=_base()))


class Shadow(Swept):
    """The directory of one run."""

    def __init__(self) -> None:
        """Raises OSError: there cannot be one."""
        super().__init__("directfuse-run-", _base())
