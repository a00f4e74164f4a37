"""Mounts by configuration: the same command line means the same mount, wherever it is asked for.

What is pickled is a command line, never a mount (a file system lives in its process). Who unpickles
it - a worker made by spawn or forkserver - mounts there; a worker made by fork has its own copy
already and finds it here.
"""

import os
import pickle
import re
import sys
import threading
from typing import Any

from directfuse._command import positional_words, words_of
from directfuse._errors import MountError
from directfuse._mount import Command, Mount, find_mount, mount

__all__ = ["attach", "check_travels", "revive"]

#: Built-in file systems whose files are nowhere but in the process that mounted them.
_VOLATILE = frozenset({"memfs"})

#: The same of a URL of fsspec, perhaps behind others (`simplecache::memory://x`).
_VOLATILE_URL = re.compile(r"(^|::)memory://|::memory$")

#: Of each command line that was mounted here: two threads must not mount the same twice. Not one
#: for all: a Python file system may attach another one that it is built on.
_turns: dict[tuple[str, ...], threading.Lock] = {}

# In a forked child the threads that were mounting do not exist.
os.register_at_fork(after_in_child=_turns.clear)


def attach(command: Command, **options: Any) -> Mount:
    """The mount of this process that this command line has made; it is mounted if there is none.

    For what is set up in many places, or pickled: who unpickles a command line attaches it. command
    and options are those of mount(). Raises what mount() raises, EBUSY when something else is
    mounted at its mountpoint.
    """
    mountpoint = options.get("mountpoint")
    if found := find_mount(command, mountpoint):
        return found
    with _turns.setdefault(tuple(words_of(command, mountpoint)), threading.Lock()):
        return find_mount(command, mountpoint) or mount(command, **options)


def check_travels(command: Command) -> None:
    """Refuses, while an object is pickled for a process that is being made by spawn or forkserver,
    a file system that would be empty there. (Pickling that goes elsewhere tells nothing: revive().)
    """
    context = sys.modules.get("multiprocessing.context")
    spawning = context is not None and context.get_spawning_popen() is not None
    if spawning and (what := _volatile(command)):
        raise TypeError(_why(what))


def revive(command: Command, **options: Any) -> Mount:
    """attach() for an object that comes from another process by pickle.

    Raises UnpicklingError where that would show other files than its maker saw, and where mounting
    fails: multiprocessing's pools pass over an OSError without a word.
    """
    try:
        what = _volatile(command)
        if what and find_mount(command, options.get("mountpoint")) is None:
            raise pickle.UnpicklingError(_why(what))
        return attach(command, **options)
    except MountError as error:
        raise pickle.UnpicklingError(str(error)) from error


def _volatile(command: Command) -> str:
    """What keeps its files in memory alone; "" where they are elsewhere."""
    words = words_of(command)
    if words[0] in _VOLATILE:
        return words[0]
    urls = positional_words(words)[:1] if words[0] == "fsspec" else []
    return "fsspec's memory://" if any(map(_VOLATILE_URL.search, urls)) else ""


def _why(what: str) -> str:
    return (
        f"{what} keeps its files in the process that mounted it: a worker made by "
        "fork has a copy, one made by spawn or forkserver would find it empty; use fork, or a file "
        "system whose files are outside (squashfuse, passthrough ...)"
    )
