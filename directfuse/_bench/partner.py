"""A process that answers each line it is given with a line of JSON, and begins with one."""

import contextlib
import os
import secrets
import signal
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Self

__all__ = ["Partner"]

_MARK = "DIRECTFUSE_BENCH_PARTNER"


class Partner(ABC):
    """A context manager: the process is ready when it is entered."""

    def __init__(self, argv: Sequence[str]) -> None:
        self._argv = list(argv)
        self.site: dict[str, Any] = {}  #: its first answer
        self._mark = secrets.token_hex(8)  #: in the environment of all that it starts

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            self._argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, _MARK: self._mark},
            start_new_session=True,  # Ctrl-C is ours: the end of its input ends it in order
        )
        try:
            self.site = self._answer()
        except BaseException:
            self._kill()
            raise
        return self

    def _order(self, line: str) -> dict[str, Any]:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
        except (BrokenPipeError, ValueError):
            pass  # the answer is missing, and its last words say why
        return self._answer()

    @abstractmethod
    def _answer(self) -> dict[str, Any]:
        """The next one; an exception says that there is none, or what went wrong."""

    def _kill(self) -> None:
        """It and all that it started, which has its mark in the environment: nobody else has."""
        for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
            with contextlib.suppress(OSError):  # it has ended, or is not ours to look at
                _kill_marked(pid, f"{_MARK}={self._mark}".encode())
        self._process.kill()
        self._process.communicate()


def _kill_marked(pid: int, mark: bytes) -> None:
    process = os.pidfd_open(pid)  # the number may be another's by the time it is used
    try:
        with open(f"/proc/{pid}/environ", "rb") as environment:
            if mark in environment.read().split(b"\0"):
                signal.pidfd_send_signal(process, signal.SIGKILL)
    finally:
        os.close(process)
