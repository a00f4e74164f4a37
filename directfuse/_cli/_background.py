"""A command that goes on in the background, from when its work has begun.

Two processes: the one that the user waits for, and the one that works, in a session of its own.
Until the work has begun its words are the user's; then the first ends, and the words are a file's
or nobody's. What the work starts is given a pipe to speak to, which the second reads as long as it
lives: so nothing that the user waits for the end of (`$(…)`, ssh) is left open.
"""

import os
import signal
import sys
import threading
from contextlib import AbstractContextManager, suppress
from pathlib import Path

from directfuse._cli._failure import Failure
from directfuse._ready import ready
from directfuse._run import watching

__all__ = ["Background", "leave"]

_CHUNK = 1 << 16


class Background:
    """The process that works. `words`: a descriptor that what it starts may write to."""

    def __init__(self, telling: int, log: int) -> None:
        """telling: the end of a pipe to who waits; log: a descriptor; -1: none."""
        self._telling = telling
        self._log = log
        self._heard, self.words = os.pipe()
        self._lock = threading.Lock()  # where words go, and that each is said once
        self._has_begun = False

    def begun(self) -> None:
        """The work has begun: who waits may go. Raises BrokenPipeError: nobody waits any more."""
        null = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        with self._lock:
            while self._is_ready():
                self._say()
            for number in (1, 2):
                os.dup2(null if self._log < 0 else self._log, number)
            self._has_begun = True
        os.close(null)
        os.write(self._telling, b"\0")
        os.close(self._telling)

    def listening(self) -> AbstractContextManager[None]:
        """What is written to `words` is said while the body runs, and what came before its end."""
        return watching(self._listen)

    def _listen(self, over: int) -> None:
        """Until that is readable: what the work has started may outlive it."""
        while self._heard in ready(self._heard, over):
            with self._lock:
                if self._is_ready():
                    self._say()

    def _is_ready(self) -> bool:
        return bool(ready(self._heard, seconds=0))

    def _say(self) -> None:
        words = os.read(self._heard, _CHUNK)
        for fd in (2, -1 if self._has_begun else self._log):
            with suppress(OSError):  # a terminal or a log that takes no more ends no file system
                os.write(fd, words)


def leave(log: Path | None) -> Background | int:
    """In the process that works: its Background. In the other, once it has begun, or ended without:
    an exit status. log: a file that words go to, behind what is there.

    To be called before anything is opened that both would have.
    """
    number = -1 if log is None else _open(log)
    told, telling = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    worker = os.fork()
    if worker == 0:
        os.setsid()
        _keep_only(telling, number)
        return Background(telling, number)
    os.close(telling)
    return _wait(worker, told)


def _open(log: Path) -> int:
    try:
        return os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise Failure(f"--log {log}: {error.strerror}") from error


def _keep_only(*ours: int) -> None:
    """Closes what the shell has left open in us: a lock, a pipe that somebody waits for."""
    null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    os.dup2(null, 0)
    low = 3
    for fd in sorted(ours):
        if fd >= low:
            os.closerange(low, fd)
            low = fd + 1
    os.closerange(low, os.sysconf("SC_OPEN_MAX"))


def _wait(worker: int, told: int) -> int:
    try:
        if os.read(told, 1):
            return 0
        status = os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1])
    except BaseException:  # Ctrl-C, SIGTERM: as for the work
        os.kill(worker, signal.SIGTERM)
        os.waitpid(worker, 0)
        raise
    if status < 0:
        raise Failure(f"the process in the background was ended by signal {-status}")
    return status
