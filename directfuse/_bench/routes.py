"""The ways to a file system. Each starts a worker that goes its way, and proves that it did.

Here is what they share; kernel_routes.py and own_routes.py have the ways, registry.py the list.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import ExitStack
from typing import ClassVar

from directfuse import _paths
from directfuse._bench.subject import Subject
from directfuse._bench.worker import Refused, Worker

__all__ = ["Route", "Unavailable"]


class Unavailable(Exception):
    """This route cannot be gone here; the text says why."""


class Route(ABC):
    """One way. `start` is called once; the stack ends what it started."""

    name: ClassVar[str]
    words: ClassVar[str]  #: what it is, for the report
    ours: ClassVar[bool] = False
    alone: ClassVar[str] = ""  #: why several processes cannot go it; "": they can

    def __init__(self) -> None:
        self.worker: Worker
        self.daemons: list[int] = []  #: pids of the other processes that serve it

    @abstractmethod
    def start(self, subject: Subject, base: str, lanes: int, stack: ExitStack) -> None:
        """Makes the way passable and enters the worker. Raises Unavailable."""

    @abstractmethod
    def proof(self) -> str:
        """What shows that calls went this way; read when the worker has ended. Raises Unavailable
        when nothing shows it."""

    def _worker(
        self,
        subject: Subject,
        lanes: int,
        where: str,
        stack: ExitStack,
        *more: str,
        prefix: Sequence[str] = (),
        program: Sequence[str] = (),
        real: str = "",
    ) -> None:
        """program: what is started instead of df-bench. real: where the bytes are on disk."""
        words = ["--lanes", str(lanes), *(["--real", real] if real else [])]
        words += ["--find"] if subject.finds else []
        words += ["--scribble"] if subject.scribble else []
        argv = [*prefix, *(program or [os.fspath(_paths.bench_helper())]), *words, *more, where]
        try:
            self.worker = stack.enter_context(Worker(argv))
        except Refused as error:
            raise Unavailable(str(error)) from error
        self.daemons = self.worker.bystanders()

    def _below(self, base: str, name: str) -> str:
        return f"{base}/{name}-{self.name.replace(' ', '-').replace(',', '')}"

    def _nowhere(self, subject: Subject, base: str) -> str:
        """A mountpoint at which nothing is mounted; it exists where the user's own does, since
        programs may look."""
        if subject.needs_point:
            return self._directory(base, "nowhere")
        return self._below(base, "nowhere")

    def _directory(self, base: str, name: str) -> str:
        path = self._below(base, name)
        os.mkdir(path)
        return path

    def _source(self, subject: Subject, base: str) -> str:
        """The directory that the file system serves, of one that does."""
        return self._directory(base, "source") if subject.needs_source else ""
