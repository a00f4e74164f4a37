"""Ways of a program to a libfuse of its own, past us: it would mount through the kernel, and go
into the background with the process that it runs in, which is its host's.

What loads libfuse by ctypes (copies of fusepy under other names) is given ours. A library in C that
is linked to libfuse is refused: a program that needs it is for a helper.
"""

import ctypes
import os
import re
from collections.abc import Callable
from typing import Any

from directfuse import _paths

__all__ = ["LINKED", "patch_ctypes", "refuse"]

#: Modules that are linked to libfuse; the second is python-fuse's. (pyfuse3 has a patch.)
LINKED = ("llfuse", "fuseparts._fuse")

_LIBFUSE = re.compile(r"libfuse(3?)\.so")


def refuse(program: Any, name: str) -> None:
    """ImportError: a program that can do without it does."""
    program.elsewhere = (
        f"{name} is linked to the system's libfuse, which mounts through the kernel: it cannot be "
        "loaded into a process; mount it with placement='helper'"
    )
    raise ImportError(program.elsewhere, name=name)


def _ours(name: Any) -> Any:
    """The library to load in place of `name`, which may be None."""
    base = os.path.basename(os.fsdecode(name)) if isinstance(name, (str, bytes)) else ""
    match = _LIBFUSE.match(base)
    if match is None:
        return name
    library = _paths.PLUGIN_LIBRARY if match[1] else "libdf2.so.2"
    return os.fspath(_paths.plugin_library().with_name(library))


def patch_ctypes(wanted: Callable[[], bool]) -> None:
    """wanted: whether the caller is a program that is to have ours."""
    theirs = ctypes.CDLL.__init__

    def __init__(self: Any, name: Any, *rest: Any, **options: Any) -> None:  # noqa: N807
        theirs(self, _ours(name) if wanted() else name, *rest, **options)

    ctypes.CDLL.__init__ = __init__  # type: ignore[method-assign]
