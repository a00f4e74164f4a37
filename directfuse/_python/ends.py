"""Two ends: of the process in a child of fork, and of the interpreter."""

import itertools
import os

from directfuse import _native, _pyhost
from directfuse._python import nodes

__all__ = ["close", "install", "made"]

#: Numbers of all mounts of Python file systems, those that have ended, too, in the lists that get
#: them. A signal's handler may have raised something before anyone else knew of one.
made: list[list[int]] = []

#: How long the end of the interpreter waits for operations that are running.
CLOSE_SECONDS = 5.0


def _after_fork_in_child() -> None:
    made.clear()
    _pyhost.after_fork()
    for host in list(nodes.hosts):
        host.after_fork()


_installed = False


def install() -> None:
    """Before each Python file system is mounted."""
    global _installed
    if _installed:
        return
    _installed = True
    os.register_at_fork(after_in_child=_after_fork_in_child)


def close() -> None:
    """Lets no operation into Python any more; after all mounts that anyone knows of were unmounted,
    or detached."""
    for number in itertools.chain.from_iterable(made):
        _native.unmount(number, lazy=True, leave=True)
    _pyhost.close(CLOSE_SECONDS)
