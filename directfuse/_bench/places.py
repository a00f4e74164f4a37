"""Routes that every program can reach, each with a runner that executes scripts there."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any, TypeAlias

from directfuse._bench import runner
from directfuse._bench.kernel_routes import mount_through_kernel
from directfuse._bench.own_routes import run_prefix
from directfuse._bench.partner import Partner
from directfuse._bench.routes import Unavailable
from directfuse._bench.subject import Subject

__all__ = ["PLAIN", "Place", "open_places"]

PLAIN = "plain directory"

#: Makes one route passable: subject, directory for what it needs, input, what ends it.
_Make: TypeAlias = Callable[[Subject, str, str, ExitStack], "Place"]


class Place(Partner):
    """A runner on one route."""

    def __init__(self, name: str, path: str, given: str, prefix: Sequence[str] = ()) -> None:
        super().__init__([*prefix, sys.executable, "-I", runner.__file__, path, given])
        self.name = name

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and not issubclass(kind, Unavailable):
            self._kill()  # interrupted: what it was doing is of no use to anybody
            return
        try:
            self._process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            self._kill()

    def _kill(self) -> None:
        os.killpg(self._process.pid, 15)
        try:
            self._process.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, 9)
            self._process.communicate()

    def once(self, before: str, script: str) -> dict[str, Any]:
        """{"seconds", "output"} of a script. Raises Unavailable."""
        return self._order(json.dumps({"before": before, "script": script}))

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None and self._process.stderr is not None
        line = self._process.stdout.readline()
        answer: dict[str, Any] = json.loads(line) if line.endswith("\n") else {}
        if "error" in answer or not answer:
            words = answer.get("error") or self._process.stderr.read().strip()[-300:]
            raise Unavailable(words or f"{self.name}: its runner has ended")
        return answer


def _plain(_: Subject, base: str, given: str, stack: ExitStack) -> Place:
    path = f"{base}/programs-plain"
    os.mkdir(path)
    return stack.enter_context(Place(PLAIN, path, given))


def _kernel_place(name: str, uncached: bool) -> _Make:
    def make(subject: Subject, base: str, given: str, stack: ExitStack) -> Place:
        path, source = (f"{base}/programs-{what}-{uncached}" for what in ("mount", "source"))
        os.mkdir(path)
        os.mkdir(source)
        mount_through_kernel(subject, path, source, subject.uncached if uncached else "", stack)
        return stack.enter_context(Place(name, path, given))

    return make


def _interposed(subject: Subject, base: str, given: str, stack: ExitStack) -> Place:
    path, source = f"{base}/programs-nowhere", f"{base}/programs-source-run"
    os.mkdir(source)
    prefix = run_prefix(subject.command(path, source))
    return stack.enter_context(Place("run", path, given, prefix))


_PLACES: dict[str, _Make] = {
    PLAIN: _plain,
    "kernel FUSE": _kernel_place("kernel FUSE", True),
    "kernel FUSE cached": _kernel_place("kernel FUSE cached", False),
    "run": _interposed,
}


def open_places(
    subject: Subject, wanted: Sequence[str], base: str, given: str, stack: ExitStack
) -> tuple[list[Place], list[str]]:
    """Those of the routes that programs can reach, and why the others cannot be gone here."""
    places, notes = [], []
    for name, make in _PLACES.items():
        if name in wanted:
            try:
                with ExitStack() as own:
                    places.append(make(subject, base, given, own))
                    stack.push(own.pop_all())
            except (Unavailable, OSError) as error:
                notes.append(f"programs on {subject.name}, {name}: left out: {error}")
    return places, notes
