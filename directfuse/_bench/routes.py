"""The ways to a file system. Each starts a worker that goes its way, and proves that it did."""

import os
import shlex
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import ExitStack
from typing import ClassVar

from directfuse import _kernel, _paths
from directfuse._bench.subject import Subject
from directfuse._bench.worker import Refused, Worker

__all__ = ["ROUTES", "Route", "Unavailable", "describe", "mount_through_kernel", "run_prefix"]

MOUNT_SECONDS = 15.0


class Unavailable(Exception):
    """This route cannot be gone here; the text says why."""


class Route(ABC):
    """One way. `start` is called once; the stack ends what it started."""

    name: ClassVar[str]
    words: ClassVar[str]  #: what it is, for the report
    ours: ClassVar[bool] = False

    def __init__(self) -> None:
        self.worker: Worker
        self.daemon: int | None = None  #: pid of the file system's process, if it has one

    @abstractmethod
    def start(self, subject: Subject, base: str, threads: int, stack: ExitStack) -> None:
        """Makes the way passable and enters the worker. Raises Unavailable."""

    @abstractmethod
    def proof(self) -> str:
        """What shows that calls went this way; read when the worker has ended."""

    def _worker(
        self,
        subject: Subject,
        threads: int,
        where: str,
        stack: ExitStack,
        *more: str,
        prefix: Sequence[str] = (),
    ) -> None:
        words = ["--threads", str(threads), *(["--find"] if subject.finds else [])]
        try:
            self.worker = stack.enter_context(Worker([*words, *more, where], prefix=prefix))
        except Refused as error:
            raise Unavailable(str(error)) from error

    def _directory(self, base: str, name: str) -> str:
        path = f"{base}/{name}-{self.name.replace(' ', '-')}"
        os.mkdir(path)
        return path


class Plain(Route):
    name = "plain directory"
    words = "the kernel's own file system, on tmpfs unless told otherwise"

    def start(self, subject: Subject, base: str, threads: int, stack: ExitStack) -> None:
        if subject.finds:
            raise Unavailable("there is no plain copy of this file system's content")
        self._path = self._directory(base, "files")
        self._worker(subject, threads, f"kernel:{self._path}", stack)

    def proof(self) -> str:
        return f"no FUSE mount at {self._path}"


def mount_through_kernel(
    subject: Subject, point: str, source: str, options: str, stack: ExitStack
) -> _kernel.Program:
    """The subject's own program behind /dev/fuse, until the stack ends. Raises Unavailable."""
    if subject.program is None:
        raise Unavailable("a shared object cannot be mounted through the kernel")
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        raise Unavailable("/dev/fuse cannot be opened (root, or the package fuse3)")
    argv = subject.command(point, source, options)
    argv[0] = subject.program
    program = stack.enter_context(_kernel.Program([*argv, "-f"]))
    try:
        program.wait_mounted(MOUNT_SECONDS)
    except (OSError, _kernel.MountFailed) as error:
        raise Unavailable(str(error)) from error
    return program


def run_prefix(command: list[str]) -> list[str]:
    """What puts a program into `directfuse run` with one file system."""
    directfuse = [sys.executable, "-m", "directfuse"]
    return [*directfuse, "run", "-m", shlex.join(command), "--"]


class KernelCached(Route):
    name = "kernel FUSE cached"
    words = "/dev/fuse, caches as the file system wants them"

    def start(self, subject: Subject, base: str, threads: int, stack: ExitStack) -> None:
        self._point = self._directory(base, "mount")
        source = self._directory(base, "source") if subject.needs_source else ""
        options = self._options(subject)
        program = mount_through_kernel(subject, self._point, source, options, stack)
        self.daemon = program.pid
        self._worker(subject, threads, f"kernel:{self._point}", stack)
        found = _kernel.fuse_mount_at(self._point)
        if found is None:
            raise Unavailable(f"no FUSE mount at {self._point}")
        self._type = found.type

    def _options(self, subject: Subject) -> str:
        return ""

    def proof(self) -> str:
        return f"{self._type} mounted, served by a process of its own"


class Kernel(KernelCached):
    name = "kernel FUSE"
    words = "/dev/fuse, entry, attribute and (where the file system can) page caches off"

    def _options(self, subject: Subject) -> str:
        return subject.uncached


class IoUring(Route):
    name = "kernel FUSE io_uring"
    words = "FUSE over io_uring"

    def start(self, subject: Subject, base: str, threads: int, stack: ExitStack) -> None:
        switch = "/sys/module/fuse/parameters/enable_uring"
        if not os.path.exists(switch):
            raise Unavailable("this kernel has no FUSE over io_uring (Linux 6.14)")
        raise Unavailable("the system's libfuse does not speak it (libfuse 3.18 would)")

    def proof(self) -> str:
        return ""


class Inline(Route):
    name = "inline"
    words = "directfuse: the file system in the calling process"
    ours = True

    def start(self, subject: Subject, base: str, threads: int, stack: ExitStack) -> None:
        point = f"{base}/nowhere-inline"
        source = self._directory(base, "source") if subject.needs_source else ""
        words = [subject.library, *subject.command(point, source)]
        self._worker(subject, threads, f"inline:{point}", stack, "--mount", *words, "--")

    def proof(self) -> str:
        return f"{self.worker.calls} operations counted by the mount"


class Helper(Route):
    name = "helper"
    words = "directfuse: the unmodified program in a process of its own, over the FUSE protocol"
    ours = True

    def start(self, subject: Subject, base: str, threads: int, stack: ExitStack) -> None:
        helper = _paths.plugin(_paths.HELPER)
        if subject.program is None or helper is None:
            raise Unavailable("a shared object is no program that a helper could start")
        point = f"{base}/nowhere-helper"
        source = self._directory(base, "source") if subject.needs_source else ""
        own = subject.command(point, source)
        words = [os.fspath(helper), _paths.HELPER, subject.program, *own[1:]]
        self._worker(subject, threads, f"inline:{point}", stack, "--mount", *words, "--")

    def proof(self) -> str:
        return f"{self.worker.calls} operations counted by the mount"


class Run(Route):
    name = "run"
    words = "directfuse run: an unmodified program, its system calls intercepted; a mount server"
    ours = True

    def start(self, subject: Subject, base: str, threads: int, stack: ExitStack) -> None:
        self._point = f"{base}/nowhere-run"
        source = self._directory(base, "source") if subject.needs_source else ""
        prefix = run_prefix(subject.command(self._point, source))
        self._worker(subject, threads, f"kernel:{self._point}", stack, prefix=prefix)

    def proof(self) -> str:
        if os.path.lexists(self._point):
            raise Unavailable(f"{self._point} exists for other programs")
        return "its files were nowhere but in the mount server"


ROUTES: dict[str, type[Route]] = {
    route.name: route for route in (Plain, Kernel, KernelCached, IoUring, Inline, Helper, Run)
}


def describe() -> dict[str, str]:
    return {name: route.words for name, route in ROUTES.items()}
