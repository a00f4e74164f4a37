"""Our ways: inline from C and from Python, a mount server, a helper process, `directfuse run`."""

import contextlib
import json
import os
import shlex
import sys
from contextlib import ExitStack

from directfuse import _paths
from directfuse._bench.routes import Route, Unavailable
from directfuse._bench.subject import Subject

__all__ = ["Helper", "Inline", "InlinePython", "Run", "Server", "run_prefix"]


class Inline(Route):
    name = "inline"
    words = "directfuse: the file system in the calling process, called from C"
    ours = True

    def start(self, subject: Subject, base: str, lanes: int, stack: ExitStack) -> None:
        point = f"{base}/nowhere-inline"
        source = self._source(subject, base)
        words = [subject.library, *subject.command(point, source)]
        mount = ["--mount", *words, "--"]
        self._worker(subject, lanes, f"inline:{point}", stack, *mount, real=source)

    def proof(self) -> str:
        return f"{self.worker.counts['calls']:,} operations counted by the mount"


class InlinePython(Route):
    name = "inline, Python"
    words = "directfuse: the same from Python; directfuse.stat, pread, open … in a Python loop"
    ours = True

    def start(self, subject: Subject, base: str, lanes: int, stack: ExitStack) -> None:
        point = f"{base}/nowhere-python"
        words = [subject.library, *subject.command(point, self._source(subject, base))]
        program = [sys.executable, "-I", "-m", "directfuse._bench.python_worker"]
        mount = ["--mount", *words, "--"]
        self._worker(subject, lanes, f"inline:{point}", stack, *mount, program=program)

    def proof(self) -> str:
        return f"{self.worker.counts['calls']:,} operations counted by the mount"


class Server(Route):
    name = "server"
    words = "directfuse: the file system in a mount server, called from C; processes share it"
    ours = True

    def start(self, subject: Subject, base: str, lanes: int, stack: ExitStack) -> None:
        point = f"{base}/nowhere-server"
        words = [subject.library, *subject.command(point, self._source(subject, base))]
        mount = ["--server", "--mount", *words, "--"]
        self._worker(subject, lanes, f"inline:{point}", stack, *mount)

    def proof(self) -> str:
        counts = self.worker.counts
        if counts["trips"] == 0:
            raise Unavailable("no message went to the server")
        return f"{counts['trips']:,} trips, {counts['hits']:,} answers from shared memory"


class Helper(Route):
    name = "helper"
    words = "directfuse: the unmodified program in a process of its own, over the FUSE protocol"
    ours = True

    def start(self, subject: Subject, base: str, lanes: int, stack: ExitStack) -> None:
        helper = _paths.plugin(_paths.HELPER)
        if subject.program is None or helper is None:
            raise Unavailable("a shared object is no program that a helper could start")
        point = f"{base}/nowhere-helper"
        own = subject.command(point, self._source(subject, base))
        words = [os.fspath(helper), _paths.HELPER, subject.program, *own[1:]]
        before = _running(subject.program)
        self._worker(subject, lanes, f"inline:{point}", stack, "--mount", *words, "--")
        self.daemons = sorted({*self.daemons, *_running(subject.program) - before})

    def proof(self) -> str:
        return f"{self.worker.counts['calls']:,} operations counted by the mount"


def _running(program: str) -> set[int]:
    """Processes of a program; it may have put itself into the background."""
    found = set()
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):  # it has ended, or is not ours to look at
            if os.path.samefile(f"/proc/{name}/exe", program):
                found.add(int(name))
    return found


def run_prefix(command: list[str], stats: str | None = None) -> list[str]:
    """What puts a program into `directfuse run` with one file system."""
    directfuse = [sys.executable, "-m", "directfuse"]
    counted = [f"--stats={stats}"] if stats else []
    return [*directfuse, "run", "-m", shlex.join(command), *counted, "--"]


class Run(Route):
    name = "run"
    words = "directfuse run: an unmodified program, its system calls intercepted; a mount server"
    ours = True

    def start(self, subject: Subject, base: str, lanes: int, stack: ExitStack) -> None:
        self._point = f"{base}/nowhere-run"
        self._stats = f"{base}/run-stats.json"
        prefix = run_prefix(subject.command(self._point, self._source(subject, base)), self._stats)
        self._worker(subject, lanes, f"kernel:{self._point}", stack, prefix=prefix)

    def proof(self) -> str:
        if os.path.lexists(self._point):
            raise Unavailable(f"{self._point} exists for other programs")
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
