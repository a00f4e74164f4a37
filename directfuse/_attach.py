"""Mounts by configuration: the same command line means the same mount, wherever it is asked for.

What is pickled is a command line, never a mount (a file system lives in its process). Who unpickles
it - a worker made by spawn or forkserver - mounts there; a worker made by fork has its own copy
already and finds it here.
"""

import errno
import os
import threading
from typing import Any

from directfuse._errors import MountError
from directfuse._mount import Command, Mount, find_mount, mount

__all__ = ["attach", "revive"]

#: Built-in file systems whose files are nowhere but in the process that mounted them.
_VOLATILE = frozenset({"memfs"})

_lock = threading.Lock()  # one at a time: two threads must not mount the same twice


def _forget_lock() -> None:
    """In a forked child the thread that was mounting does not exist."""
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_forget_lock)


def attach(command: Command, **options: Any) -> Mount:
    """The mount of this process that this command line has made; it is mounted if there is none.

    For what is set up in many places, or pickled: who unpickles a command line attaches it. command
    and options are those of mount(). Raises what mount() raises, EBUSY when something else is
    mounted at its mountpoint.
    """
    with _lock:
        mountpoint = options.get("mountpoint")
        return find_mount(command, mountpoint) or mount(command, **options)


def revive(command: Command, **options: Any) -> Mount:
    """attach() for an object that comes from another process by pickle.

    Raises MountError (ENOTSUP) where that would show other files than its maker saw.
    """
    first = command.split()[0] if isinstance(command, str) and command.strip() else command[0]
    if first in _VOLATILE and find_mount(command, options.get("mountpoint")) is None:
        raise MountError(
            errno.ENOTSUP,
            f"{first} keeps its files in the process that mounted it, and this one has not: "
            "workers made by fork have a copy; for others use a file system whose files are "
            "outside (squashfuse, passthrough ...), or mount it here before unpickling",
            str(command),
        )
    return attach(command, **options)
