"""The threads that a Python program starts: one of them may mount in the place of main's.

Libfuse of ours knows a program by main's thread. Another one is made the program's as long as it
serves, and main does not return meanwhile: with main the program ends.
"""

import contextlib
import sys
import threading
from collections.abc import Iterator

from directfuse import _pyhost

__all__ = ["Threads"]

_PATIENCE = 0.1  # seconds; nobody tells when a thread has ended

#: What threads inherit from main's: true, or the end of the host's interpreter would wait for them
#: before it unmounts; and no True, for of their own process the main thread is no daemon.
_AS_OF_MAIN = 2


def _is_daemon(thread: threading.Thread) -> bool:
    return thread.daemon and thread.daemon != _AS_OF_MAIN


def _is_of_a_pool(thread: threading.Thread) -> bool:
    """Whether its pool would end it when the interpreter ends, which waits for all others."""
    pools = sys.modules.get("concurrent.futures.thread")
    return pools is not None and thread in pools._threads_queues


class Threads:
    """Of one program."""

    def __init__(self) -> None:
        self._number = 0  # the program's, while main runs
        self._started: list[threading.Thread] = []
        self._serving: list[threading.Thread] = []
        self._inside = 0  # threads that are the program's: main's end waits for them
        self._has_served = False
        self._changed = threading.Condition()

    def add(self, thread: threading.Thread) -> None:
        """One that will be started."""
        with self._changed:
            self._started = [old for old in self._started if old.is_alive()]
            self._started.append(thread)

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """The calling thread is the program's, which may make a session on it."""
        with self._changed:
            if not self._number:
                raise RuntimeError("the program has ended")
            former = _pyhost.program_enter(self._number)
            self._inside += 1
        try:
            yield
        finally:
            _pyhost.program_enter(former)
            with self._changed:
                self._inside -= 1
                self._changed.notify_all()

    @contextlib.contextmanager
    def serving(self) -> Iterator[None]:
        """The same, and it may mount."""
        thread = threading.current_thread()
        with self._changed:
            self._serving.append(thread)
        try:
            with self.entered():
                yield
        finally:
            with self._changed:
                self._serving.remove(thread)
                self._has_served = True
                self._changed.notify_all()

    @contextlib.contextmanager
    def outlived(self) -> Iterator[None]:
        """Around main, on its thread: it ends as the interpreter of a process does."""
        self._number = _pyhost.program()
        threading.current_thread()._daemonic = _AS_OF_MAIN  # type: ignore[attr-defined]
        try:
            yield
        finally:
            self._end()

    def _end(self) -> None:
        """Waits for threads that are no daemons, as long as they may mount; a mount of one that is
        ends here. Behind a mount nobody waits: unmounting would take as long."""
        with self._changed:
            while self._is_lived_for():
                self._changed.wait(_PATIENCE)
            number, self._number = self._number, 0
            if self._serving:
                _pyhost.program_exit(number)
            self._changed.wait_for(lambda: not self._inside)

    def _is_lived_for(self) -> bool:
        if self._serving:
            return not all(map(_is_daemon, self._serving))
        return not self._has_served and any(
            thread.is_alive() and not _is_daemon(thread) and not _is_of_a_pool(thread)
            for thread in self._started
        )
