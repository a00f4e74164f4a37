"""One df-bench process: a route's files, and a sample whenever it is asked for one."""

import json
import subprocess
from collections.abc import Sequence
from typing import Any, Self

from directfuse import _paths

__all__ = ["Refused", "Worker", "workloads"]


class Refused(Exception):
    """The worker cannot do this; the text is its reason."""


def workloads() -> dict[str, bool]:
    """Names of the native workloads in their order, and whether they write."""
    done = subprocess.run(
        [_paths.bench_helper(), "--list"], capture_output=True, text=True, check=True
    )
    rows = (line.split("\t") for line in done.stdout.splitlines())
    return {name: kind == "writes" for kind, name in rows}


class Worker:
    """A context manager: the files are made (or found) when it is entered."""

    def __init__(self, arguments: Sequence[str], *, prefix: Sequence[str] = ()) -> None:
        """arguments: df-bench's. prefix: a command that runs the rest of its line."""
        self._argv = [*prefix, str(_paths.bench_helper()), *arguments]
        self.site: dict[str, Any] = {}
        self.calls = 0  #: what mounts of its own had served at the end

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            self._argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            bufsize=1,
            start_new_session=True,  # Ctrl-C is ours: the end of its input ends it in order
        )
        try:
            self.site = self._answer()
        except BaseException:
            self._kill()
            raise
        return self

    def __exit__(self, *exc_info: object) -> None:
        try:
            out, _ = self._process.communicate(timeout=60)
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            self._kill()
            raise
        lines = out.splitlines()
        if lines:
            self.calls = json.loads(lines[-1]).get("calls", 0)

    @property
    def pid(self) -> int:
        return self._process.pid

    def sample(self, workload: str, count: int, threads: int = 1) -> dict[str, float]:
        """ns, cpu_ns and switches an operation. Raises Refused."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f"{threads} {count} {workload}\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # the answer is missing, and its last words say why
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None and self._process.stderr is not None
        line = self._process.stdout.readline()
        if not line:
            words = self._process.stderr.read().strip()
            status = self._process.wait()
            raise Refused(words or f"df-bench ended with status {status}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise Refused(answer["error"])
        return answer

    def _kill(self) -> None:
        self._process.kill()
        self._process.communicate()
