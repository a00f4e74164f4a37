"""Mounts by configuration: the same command line means the same mount, wherever it is asked for.

What is pickled is a command line, never a mount (a file system lives in its process). Who unpickles
it - a worker made by spawn or forkserver - mounts there; a worker made by fork has its own copy
already and finds it here.
"""

import os
import threading
from typing import Any

from directfuse._mount import Command, Mount, find_mount, mount

__all__ = ["attach"]

_lock = threading.Lock()  # one at a time: two threads must not mount the same twice


def _forget_lock() -> None:
    """In a forked child the thread that was mounting does not exist."""
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_forget_lock)


def attach(command: Command, **options: Any) -> Mount:
    """The mount of this process that was made by this command line; it is mounted if there is none.

    command and options are mount()'s; a mountpoint option is part of the command line. Raises what
    mount() raises, EBUSY when something else is mounted at its mountpoint.
    """
    with _lock:
        mountpoint = options.get("mountpoint")
        return find_mount(command, mountpoint) or mount(command, **options)
