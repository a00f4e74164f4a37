"""Two ends: of the process in a child of fork, and of the interpreter."""

import os

from directfuse import _pyhost
from directfuse._python import nodes

__all__ = ["close", "install"]

#: How long the end of the interpreter waits for operations that are running.
CLOSE_SECONDS = 5.0


def _after_fork_in_child() -> None:
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
    """Lets no operation into Python any more; after all mounts were unmounted, or detached."""
    _pyhost.close(CLOSE_SECONDS)
