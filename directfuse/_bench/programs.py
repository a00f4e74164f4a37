"""Whole programs on the routes that every program can reach: untar, find, git, a compiler, sqlite.

A program's script runs in an empty directory of the route, beside prepared input outside of it, and
is timed as a whole; the routes take turns, in rotating order.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

from directfuse._bench import runner
from directfuse._bench.measure import interval
from directfuse._bench.routes import Unavailable, mount_through_kernel, run_prefix
from directfuse._bench.subject import Subject

__all__ = ["PROGRAMS", "measure_programs"]

FILES, FILE_SIZE = 400, 20_000
ROUNDS = 5

#: Makes one route passable: subject, directory for what it needs, input, what ends it.
_Make: TypeAlias = Callable[[Subject, str, str, ExitStack], "_Place"]


@dataclass(frozen=True)
class Program:
    """before: made ready outside the clock. script: timed. Both for sh, in the route's directory;
    $INPUT is the prepared input."""

    name: str
    script: str
    before: str = ""
    needs: tuple[str, ...] = ()


_TREE = 'tar -xf "$INPUT/tree.tar"'
_COMMIT = "git add . && git -c user.name=a -c user.email=a@b commit -qm 1"
_REPOSITORY = f"{_TREE} && cd tree && git init -q . && {_COMMIT}"
_BUILD = (
    "for i in 0 1 2 3 4 5; do gcc -c -O0 tree/src/code-$i.c -o $i.o; done && gcc *.o -o program"
)
_SQLITE = (
    "import sqlite3; db = sqlite3.connect('db'); db.execute('create table t(n)');\n"
    "for n in range(100):\n    db.execute('insert into t values (?)', (n,)); db.commit()"
)
_READ = (
    "import os\n"
    "for where, _, names in os.walk('tree'):\n"
    "    for name in names:\n        open(os.path.join(where, name), 'rb').read()"
)

PROGRAMS = [
    Program("untar", _TREE),
    Program("cp -r", "cp -r tree copy", _TREE),
    Program("find", "find tree -newer tree/src >/dev/null", _TREE),
    Program("grep -r", "grep -r wanted tree >/dev/null || true", _TREE),
    Program("rm -r", "rm -r tree", _TREE),
    Program("chmod -R", "chmod -R go-w tree", _TREE),
    Program("git status", "git -C tree status >/dev/null", f"({_REPOSITORY})", ("git",)),
    Program(
        "git checkout",
        "git -C tree checkout -qf .",
        f"({_REPOSITORY}) && rm -r tree/data",
        ("git",),
    ),
    Program("gcc build", _BUILD, _TREE, ("gcc",)),
    Program("100 sqlite commits", f'"{sys.executable}" -c "{_SQLITE}"'),
    Program("python reads all files", f'"{sys.executable}" -c "{_READ}"', _TREE),
]


def _make_input(path: str) -> None:
    """tree.tar: data of some size, and C sources that compile."""
    tree = os.path.join(path, "tree")
    os.makedirs(os.path.join(tree, "src"))
    for number in range(FILES):
        directory = os.path.join(tree, "data", str(number % 20))
        os.makedirs(directory, exist_ok=True)
        with open(os.path.join(directory, f"file-{number}"), "wb") as file:
            file.write(b"%08d some words of text\n" % number * (FILE_SIZE // 30))
    for number in range(6):
        main = "int main(void) { return 0; }" if number == 0 else ""
        with open(os.path.join(tree, "src", f"code-{number}.c"), "w") as source:
            functions = "\n".join(
                f"int f{number}_{i}(int a) {{ return a + {i}; }}" for i in range(200)
            )
            source.write(f"#include <stdio.h>\n{functions}\n{main}\n")
    with tarfile.open(os.path.join(path, "tree.tar"), "w") as archive:
        archive.add(tree, "tree")
    shutil.rmtree(tree)


# ---- routes that programs can reach --------------------------------------------------------------


class _Place:
    """A runner on one route."""

    def __init__(self, name: str, path: str, given: str, prefix: Sequence[str] = ()) -> None:
        self.name = name
        self._argv = [*prefix, sys.executable, "-I", runner.__file__, path, given]

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            self._argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            self._answer()
        except BaseException:
            self._process.kill()
            self._process.communicate()
            raise
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._process.communicate(timeout=60)

    def once(self, program: Program) -> float:
        """Seconds. Raises Unavailable."""
        assert self._process.stdin is not None
        order = {"name": program.name, "before": program.before, "script": program.script}
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        seconds: float = self._answer()["seconds"]
        return seconds

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None and self._process.stderr is not None
        line = self._process.stdout.readline()
        answer: dict[str, Any] = json.loads(line) if line else {}
        if "error" in answer or not answer:
            raise Unavailable(answer.get("error") or self._process.stderr.read().strip()[-300:])
        return answer


def _plain(_: Subject, base: str, given: str, stack: ExitStack) -> _Place:
    path = f"{base}/programs-plain"
    os.mkdir(path)
    return stack.enter_context(_Place("plain directory", path, given))


def _kernel_place(name: str, uncached: bool) -> _Make:
    def make(subject: Subject, base: str, given: str, stack: ExitStack) -> _Place:
        path, source = (f"{base}/programs-{what}-{uncached}" for what in ("mount", "source"))
        os.mkdir(path)
        os.mkdir(source)
        mount_through_kernel(subject, path, source, subject.uncached if uncached else "", stack)
        return stack.enter_context(_Place(name, path, given))

    return make


def _interposed(subject: Subject, base: str, given: str, stack: ExitStack) -> _Place:
    path, source = f"{base}/programs-nowhere", f"{base}/programs-source-run"
    os.mkdir(source)
    prefix = run_prefix(subject.command(path, source))
    return stack.enter_context(_Place("run", path, given, prefix))


_PLACES: list[_Make] = [
    _plain,
    _kernel_place("kernel FUSE", True),
    _kernel_place("kernel FUSE cached", False),
    _interposed,
]


# ---- measuring -----------------------------------------------------------------------------------


def _measure_one(program: Program, places: Sequence[_Place], seconds: float) -> dict[str, Any]:
    """At least one round, at most ROUNDS, and none that begins when the seconds are over."""
    times: dict[str, list[float]] = {place.name: [] for place in places}
    end = time.monotonic() + seconds
    for number in range(ROUNDS):
        if number > 0 and time.monotonic() > end:
            break
        for turn in range(len(places)):
            place = places[(turn + number) % len(places)]
            times[place.name].append(place.once(program))
    base = times[places[0].name]
    return {
        "program": program.name,
        "seconds": {name: round(statistics.median(values), 4) for name, values in times.items()},
        "ratios": {
            name: [
                round(v, 3) for v in interval([a / b for a, b in zip(values, base, strict=True)])
            ]
            for name, values in times.items()
            if name != places[0].name
        },
    }


def measure_programs(
    subject: Subject,
    base: str,
    notes: list[str],
    seconds: float,
    progress: Callable[[str], None],
) -> list[dict[str, Any]]:
    """A row for each program: seconds by route, and each route as a multiple of the first. No
    program begins when the seconds are over. What is left out is said in `notes`."""
    end = time.monotonic() + seconds
    given = f"{base}/input"
    os.mkdir(given)
    _make_input(given)
    rows: list[dict[str, Any]] = []
    with ExitStack() as stack:
        places = []
        for make in _PLACES:
            try:
                places.append(make(subject, base, given, stack))
            except Unavailable as error:
                notes.append(f"programs on {subject.name}: a route is left out: {error}")
        for index, program in enumerate(PROGRAMS):
            share = (end - time.monotonic()) / (len(PROGRAMS) - index)
            missing = [name for name in program.needs if shutil.which(name) is None]
            if missing:
                notes.append(f"{program.name}: left out: {', '.join(missing)} is not installed")
            elif share <= 0:
                notes.append(f"{program.name} on {subject.name}: left out: the time was up")
            else:
                progress(f"{subject.name}: {program.name}")
                try:
                    rows.append(_measure_one(program, places, share))
                except Unavailable as error:
                    notes.append(f"{program.name} on {subject.name}: failed: {error}")
    return rows
