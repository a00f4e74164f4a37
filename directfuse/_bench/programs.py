"""Whole programs on the routes that every program can reach: untar, find, git, a compiler, sqlite.

A program's script runs in an empty directory of the route, beside prepared input outside of it, and
is timed as a whole; the routes take turns, in rotating order.
"""

import os
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from directfuse._bench.measure import describe_times, paired
from directfuse._bench.places import Place, open_places
from directfuse._bench.routes import Unavailable
from directfuse._bench.subject import Subject

__all__ = ["PROGRAMS", "measure_programs"]

FILES, FILE_SIZE = 400, 20_000
ROUNDS = 9


@dataclass(frozen=True)
class Program:
    """before: made ready outside the clock. script: timed. Both for sh, in the route's directory;
    $INPUT is the prepared input."""

    name: str
    script: str
    before: str = ""
    needs: tuple[str, ...] = ()


_TREE = 'tar -xf "$INPUT/tree.tar"'
_REPOSITORY = 'tar -xf "$INPUT/repository.tar"'
_MANY = "seq -f file-%g 400 | xargs touch"
_BUILD = (
    "for i in 0 1 2 3 4 5; do gcc -c -O0 tree/src/code-$i.c -o $i.o; done && gcc *.o -o program"
)
_SQLITE = (
    "import sqlite3; db = sqlite3.connect('db'); db.execute('create table t(n)');\n"
    "for n in range(50):\n    db.execute('insert into t values (?)', (n,)); db.commit()"
)
_READ = (
    "import os\n"
    "for where, _, names in os.walk('tree'):\n"
    "    for name in names:\n        open(os.path.join(where, name), 'rb').read()"
)

#: DEFUSE's (untar to access), and what else people do to trees of files.
PROGRAMS = [
    Program("untar", _TREE),
    Program("cp -r", "cp -r tree copy", _TREE),
    Program("gcc build", _BUILD, _TREE, ("gcc",)),
    Program("create 400 files", _MANY),
    Program("unlink 400 files", "rm file-*", _MANY),
    Program("chmod 400 files", "chmod 600 file-*", _MANY),
    Program("access 400 files", "for name in file-*; do test -r $name; done", _MANY),
    Program("find", "find tree -newer tree/src >/dev/null", _TREE),
    Program("grep -r", "grep -r wanted tree >/dev/null || true", _TREE),
    Program("rm -r", "rm -r tree", _TREE),
    Program("git status", "git -C tree status >/dev/null", _REPOSITORY, ("git",)),
    Program(
        "git checkout",
        "git -C tree checkout -qf .",
        f"{_REPOSITORY} && rm -r tree/data",
        ("git",),
    ),
    Program("50 sqlite commits", f'"{sys.executable}" -c "{_SQLITE}"'),
    Program("python reads 400 files", f'"{sys.executable}" -c "{_READ}"', _TREE),
]


# ---- input ---------------------------------------------------------------------------------------


def make_input(path: str) -> None:
    """tree.tar: data of some size, and C sources that compile. repository.tar: the same in git."""
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
    _pack(path, "tree.tar")
    if shutil.which("git"):
        for words in (["init", "-q", "."], ["add", "."], [*_AUTHOR, "commit", "-qm", "1"]):
            subprocess.run(["git", "-C", tree, *words], check=True, capture_output=True)
        _pack(path, "repository.tar")
    shutil.rmtree(tree)


_AUTHOR = ("-c", "user.name=bench", "-c", "user.email=bench@localhost")


def _pack(path: str, name: str) -> None:
    with tarfile.open(os.path.join(path, name), "w") as archive:
        archive.add(os.path.join(path, "tree"), "tree")


# ---- measuring -----------------------------------------------------------------------------------


def _measure_one(
    program: Program, places: Sequence[Place], seconds: float, failed: dict[str, str]
) -> dict[str, Any]:
    """At least one round, at most ROUNDS, and none that begins when the seconds are over. A route
    on which the program fails is left out, with the reason in `failed`; the others go on."""
    times: dict[str, list[float]] = {place.name: [] for place in places}
    end = time.monotonic() + seconds
    for number in range(ROUNDS):
        if number > 0 and time.monotonic() > end:
            break
        for turn in range(len(places)):
            place = places[(turn + number) % len(places)]
            if place.name in times:
                try:
                    spent = place.once(program.before, program.script)["seconds"]
                    times[place.name].append(spent)
                except Unavailable as error:
                    failed[place.name] = str(error)
                    del times[place.name]
    first = places[0].name
    return {
        "program": program.name,
        "routes": {name: describe_times([s * 1e9 for s in found]) for name, found in times.items()},
        "ratios": {
            name: paired(found, times[first])
            for name, found in times.items()
            if name != first and first in times
        },
        "left_out": failed,
    }


def _last_line(words: str) -> str:
    return (words.strip().splitlines() or [""])[-1]


def measure_programs(
    subject: Subject,
    wanted: Sequence[str],
    base: str,
    notes: list[str],
    end: float,
    progress: Callable[[str], None],
) -> list[dict[str, Any]]:
    """A row for each program: ns by route, and each route as a multiple of the first. No program
    begins when it is `end`, of time.monotonic(). What is left out is said in `notes`."""
    given = f"{base}/input"
    os.mkdir(given)
    make_input(given)
    rows: list[dict[str, Any]] = []
    late: list[str] = []
    with ExitStack() as stack:
        places, missing_places = open_places(subject, wanted, base, given, stack)
        notes += missing_places
        for index, program in enumerate(PROGRAMS if places else []):
            share = (end - time.monotonic()) / (len(PROGRAMS) - index)
            missing = [name for name in program.needs if shutil.which(name) is None]
            if missing:
                notes.append(f"{program.name}: left out: {', '.join(missing)} is not installed")
            elif share <= 0:
                late.append(program.name)
            else:
                progress(f"{subject.name}: {program.name}")
                failed: dict[str, str] = {}
                row = _measure_one(program, places, share, failed)
                notes += [
                    f"{program.name} on {subject.name}, {route}: left out: {_last_line(why)}"
                    for route, why in failed.items()
                ]
                if row["routes"]:
                    rows.append(row)
    if late:
        notes.append(f"programs on {subject.name}: left out: the time was up: {', '.join(late)}")
    return rows
