"""Our ways: inline from C and from Python, a mount server, a helper process, `directfuse run`."""

import contextlib
import json
import os
import shlex
import sys
from contextlib import ExitStack
from typing import ClassVar

from directfuse import _paths
from directfuse._bench.routes import Route, Unavailable
from directfuse._bench.subject import Subject

__all__ = ["Helper", "Inline", "InlinePython", "Run", "Server", "run_prefix"]


class _Own(Route):
    """The worker mounts the file system itself, and the kernel knows nothing of it."""

    ours = True
    _program: ClassVar[tuple[str, ...]] = ()  #: the worker, if it is not df-bench
    _orders: ClassVar[tuple[str, ...]] = ()  #: what it is told besides
    _keeps_nothing: ClassVar[bool] = False  #: reads come from the bytes on disk

    def start(self, subject: Subject, base: str, lanes: int, stack: ExitStack) -> None:
        point, source = self._nowhere(subject, base), self._source(subject, base)
        mount = [*self._orders, "--mount", *self._mount(subject, point, source), "--"]
        real = source if self._keeps_nothing else ""
        where = f"inline:{point}"
        self._worker(subject, lanes, where, stack, *mount, program=self._program, real=real)

    def _mount(self, subject: Subject, point: str, source: str) -> list[str]:
        """What is loaded, and its command line. Raises Unavailable."""
        return [subject.library, *subject.command(point, source)]

    def proof(self) -> str:
        return f"{self.worker.counts['calls']:,} operations counted by the mount"


class Inline(_Own):
    name = "inline"
    words = "directfuse: the file system in the calling process, called from C"
    _keeps_nothing = True


class InlinePython(_Own):
    name = "inline, Python"
    words = "directfuse: the same from Python; directfuse.stat, pread, open … in a Python loop"
    _program = (sys.executable, "-I", "-m", "directfuse._bench.python_worker")


class Server(_Own):
    name = "server"
    words = "directfuse: the file system in a mount server, called from C; processes share it"
    _orders = ("--server",)

    def proof(self) -> str:
        counts = self.worker.counts
        if counts["trips"] == 0:
            raise Unavailable("no message went to the server")
        return f"{counts['trips']:,} trips, {counts['hits']:,} answers from shared memory"


class Helper(_Own):
    name = "helper"
    words = "directfuse: the unmodified program in a process of its own, over the FUSE protocol"
    alone = "a forked process has no connection to its parent's helper; the server has one for all"

    def start(self, subject: Subject, base: str, lanes: int, stack: ExitStack) -> None:
        before = _running(subject.program)
        super().start(subject, base, lanes, stack)
        self.daemons = sorted({*self.daemons, *_running(subject.program) - before})

    def _mount(self, subject: Subject, point: str, source: str) -> list[str]:
        helper = _paths.plugin(_paths.HELPER)
        if subject.program is None or helper is None:
            raise Unavailable("a shared object is no program that a helper could start")
        own = subject.command(point, source)[1:]
        return [os.fspath(helper), _paths.HELPER, subject.program, *own]


def _running(program: str | None) -> set[int]:
    """Processes of a program; it may have put itself into the background."""
    found: set[int] = set()
    if program is None:
        return found
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):  # it has ended, or is not ours to look at
            if os.path.samefile(f"/proc/{name}/exe", program):
                found.add(int(name))
    return found


def run_prefix(command: list[str], stats: str | None = None) -> list[str]:
    """What puts a program into `directfuse run` with one file system."""
    counted = [f"--stats={stats}"] if stats else []
    return [*_paths.COMMAND, "run", "-m", shlex.join(command), *counted, "--"]


class Run(Route):
    name = "run"
    words = "directfuse run: an unmodified program, its system calls intercepted; a mount server"
    ours = True

    def start(self, subject: Subject, base: str, lanes: int, stack: ExitStack) -> None:
        self._point = self._nowhere(subject, base)
        self._stats = f"{base}/run-stats.json"
        prefix = run_prefix(subject.command(self._point, self._source(subject, base)), self._stats)
        self._worker(subject, lanes, f"kernel:{self._point}", stack, prefix=prefix)

    def proof(self) -> str:
        if os.path.isdir(self._point) and os.listdir(self._point):
            raise Unavailable(f"{self._point} holds files for other programs")
        return f"{_served(self._stats):,} operations of the file system in its server"


def _served(path: str) -> int:
    """Operations that a run's statistics count. Raises Unavailable."""
    try:
        with open(path) as file:
            mounts = json.load(file)["mounts"]
        served = sum(op["calls"] for ops in mounts.values() for op in ops.values())
    except (OSError, ValueError, KeyError) as error:
        raise Unavailable(f"the run left no statistics: {error}") from error
    if served == 0:
        raise Unavailable("no operation of the file system was called")
    return int(served)
