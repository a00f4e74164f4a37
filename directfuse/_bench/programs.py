"""Whole programs on the routes that every program can reach: untar, find, git, a compiler, sqlite.

A program's script runs in an empty directory of the route, beside prepared input outside of it, and
is timed as a whole; the routes take turns, in changing order.
"""

import os
import shutil
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from typing import Any

from directfuse._bench.measure import describe_times
from directfuse._bench.places import Place
from directfuse._bench.turns import Job, Task, measure_jobs

__all__ = ["PROGRAMS", "measure_programs"]

#: As many as make a program that one waits for: of a few hundred, two starts of programs
#: are half of a row, and starts have a row of their own (benchmarks/goals).
FILES, FILE_SIZE = 1000, 20_000
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
_MANY = f"seq -f file-%g {FILES} | xargs touch"
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
    Program(f"create {FILES} files", _MANY),
    Program(f"unlink {FILES} files", "rm file-*", _MANY),
    Program(f"chmod {FILES} files", "chmod 600 file-*", _MANY),
    Program(f"access {FILES} files", "for name in file-*; do test -r $name; done", _MANY),
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
    Program(f"python reads {FILES} files", f'"{sys.executable}" -c "{_READ}"', _TREE),
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


def _job(program: Program) -> Job:
    def sample(place: Place, _: float) -> float:
        seconds: float = place.once(program.before, program.script)["seconds"]
        return seconds * 1e9

    return Job(program.name, sample, program.needs)


def measure_programs(task: Task) -> list[dict[str, Any]]:
    """A row for each program: ns by route, and each route as a multiple of the first."""
    given = f"{task.base}/input"
    os.mkdir(given)
    make_input(given)
    return [
        {
            "program": done.name,
            "routes": {name: describe_times(found) for name, found in done.samples.items()},
            "ratios": done.ratios,
            "left_out": done.left_out,
        }
        for done in measure_jobs("programs", [_job(p) for p in PROGRAMS], ROUNDS, task, given)
        if done.samples
    ]
