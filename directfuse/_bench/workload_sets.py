"""Names for several workloads at once, and what a pattern on the command line stands for."""

from collections.abc import Sequence
from fnmatch import fnmatchcase

from directfuse._bench.worker import workloads

__all__ = ["SETS", "chosen"]

_SIZES = ("4 KiB", "16 KiB", "64 KiB", "256 KiB", "1 MiB")
_ORDERS = ("sequential", "random")

#: Direct-FUSE's figures 5 to 8, in memory: how long one piece takes.
FIGURES = [
    f"{way} {size}, {order}" for way in ("pread", "pwrite") for size in _SIZES for order in _ORDERS
]
#: ... and on a disk: a whole file, which no cache holds.
DISK = [
    f"{way} of 8 MiB by {size}, {order}"
    for way in ("cold read", "synced write")
    for size in _SIZES
    for order in _ORDERS
]

SETS: dict[str, list[str]] = {
    "micro": [
        "stat, depth 2",
        "stat, depth 4",
        "fstat",
        "open+close",
        "create+unlink",
        "rename, there and back",
        "mkdir+rmdir",
        "setxattr+getxattr",
        "readdir of 1000",
        "ls -l of 1000",
        "open+fstat+read 4 KiB+close",
        "open+fstat+read 100 KiB+close",
        *(
            f"{way} {size}, {order}"
            for way in ("pread", "pwrite")
            for size in ("4 KiB", "1 MiB")
            for order in _ORDERS
        ),
        "pread 4 KiB, hot",
    ],
    "storm": [
        "storm: make a file",
        "storm: stat a file",
        "storm: remove a file",
        "storm: make a directory",
        "storm: remove a directory",
    ],
    "sizes": FIGURES,
    "disk": DISK,
    "breakdown": ["stat, depth 2", "open+close", "pread 4 KiB, random", "pwrite 4 KiB, random"],
}


def chosen(patterns: Sequence[str]) -> list[str]:
    """Workloads by patterns, in their own order. Raises ValueError naming one that matches none."""
    known = list(workloads())
    names: set[str] = set()
    for pattern in patterns:
        found = SETS.get(pattern) or [name for name in known if fnmatchcase(name, pattern)]
        if not found:
            raise ValueError(pattern)
        names.update(found)
    return [name for name in known if name in names]
