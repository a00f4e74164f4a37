"""The end of this process by the signal that ended what it stands for."""

import ctypes
import os
import signal
import sys
from contextlib import suppress
from typing import NoReturn

__all__ = ["end_by"]

_PR_SET_DUMPABLE = 4  # prctl(2)


def end_by(number: int) -> NoReturn:
    """Ends as if the signal had not been caught: who waits for us goes by that. A shell whose
    foreground job SIGINT has ended runs no more of its script, and of one that ended with status
    130 it runs the rest.

    Whatever was to be cleaned up is. Where the signal does not end us (process 1 of a container)
    the status says the same, as a shell would show it.
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)  # whoever ended by it has left a core
    with suppress(OSError):  # SIGKILL
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)
    sys.exit(128 + number)
