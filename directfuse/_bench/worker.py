"""One worker process: a route's files, and a sample whenever it is asked for one."""

import json
import os
import select
import signal
import subprocess
from collections.abc import Sequence
from typing import Any

from directfuse import _paths
from directfuse._bench.partner import Partner

__all__ = ["Lanes", "Refused", "Worker", "workloads"]

ANSWER_SECONDS = 60.0  #: longest silence of a worker; a file system that hangs is left out then


class Refused(Exception):
    """The worker cannot do this; the text is its reason."""


def workloads() -> dict[str, bool]:
    """Names of the native workloads in their order, and whether they write."""
    done = subprocess.run(
        [_paths.bench_helper(), "--list"], capture_output=True, text=True, check=True
    )
    rows = (line.split("\t") for line in done.stdout.splitlines())
    return {name: kind == "writes" for kind, name in rows}


class Lanes(str):
    """How many do the same at the same time, as df-bench takes it: "2" threads, "2p" processes."""

    @property
    def number(self) -> int:
        return int(self.rstrip("p"))

    @property
    def words(self) -> str:
        """For a table; nothing for one."""
        if self.number == 1:
            return ""
        return f" × {self.number} {'processes' if self.endswith('p') else 'threads'}"


class Worker(Partner):
    """A context manager: the files are made (or found) when it is entered. It runs df-bench or one
    that speaks like it, behind whatever it is to run in."""

    def __init__(self, argv: Sequence[str]) -> None:
        super().__init__(argv)
        self.counts = {"calls": 0, "trips": 0, "hits": 0}  #: of mounts of its own, at the end

    def __exit__(self, *exc_info: object) -> None:
        try:
            out, _ = self._process.communicate(timeout=ANSWER_SECONDS)
        except (subprocess.TimeoutExpired, KeyboardInterrupt) as error:
            self._kill()
            if isinstance(error, KeyboardInterrupt):
                raise
            return
        lines = out.splitlines()
        if lines:
            self.counts.update(json.loads(lines[-1]))

    @property
    def pid(self) -> int:
        """The process that makes the calls."""
        return int(self.site.get("pid", self._process.pid))

    def bystanders(self) -> list[int]:
        """Other processes of its session, its children, and those that have its directory in their
        command line (a mount server)."""
        others = [int(name) for name in os.listdir("/proc") if name.isdigit()]
        return [pid for pid in others if pid not in (self.pid, os.getpid()) and self._is_ours(pid)]

    def _is_ours(self, pid: int) -> bool:
        where = os.fsencode(self._argv[-1].partition(":")[2])
        try:
            if os.getsid(pid) == self._process.pid or _parent(pid) == self.pid:
                return True
            with open(f"/proc/{pid}/cmdline", "rb") as words:
                return where in words.read()
        except OSError:
            return False  # it has ended

    def sample(self, workload: str, count: int, lanes: str = "1") -> dict[str, float]:
        """ns, cpu_ns and switches an operation. Raises Refused."""
        return self._order(f"{lanes} {count} {workload}")

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None and self._process.stderr is not None
        if not _readable(self._process.stdout.fileno()):
            self._kill()
            raise Refused(f"no answer for {ANSWER_SECONDS:.0f} s")
        line = self._process.stdout.readline() if not self._process.stdout.closed else ""
        if not line.endswith("\n"):
            raise Refused(self._last_words())
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise Refused(answer["error"])
        return answer

    def _last_words(self) -> str:
        assert self._process.stderr is not None
        status = self._process.wait()
        words = "" if self._process.stderr.closed else self._process.stderr.read().strip()
        if words:
            return words
        if status < 0:
            return f"the worker was killed by signal {-status} ({signal.strsignal(-status)})"
        return f"the worker ended with status {status}"


def _parent(pid: int) -> int:
    with open(f"/proc/{pid}/stat") as file:
        return int(file.read().rpartition(")")[2].split()[1])


def _readable(fd: int) -> bool:
    waiting = select.poll()
    waiting.register(fd, select.POLLIN)
    return bool(waiting.poll(ANSWER_SECONDS * 1000))
