"""universal_pathlib's class for "directfuse": UPath("directfuse:///data/x").

Paths are absolute; parents, joining and everything about files follow from the fsspec file system.
"""

try:
    from upath import UPath
except ImportError as error:
    raise ImportError(
        "directfuse.upath is a path class for universal_pathlib, which is not installed: "
        "pip install universal_pathlib"
    ) from error

__all__ = ["DirectFusePath"]


class DirectFusePath(UPath):
    """A path in a mount, or in the ordinary file system, as pathlib shows it."""

    __slots__ = ()
