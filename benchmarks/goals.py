"""The speeds that were asked for, each measured here and held against its goal.

python benchmarks/goals.py [--budget SECONDS] [--dispatch PROGRAM]

On a quiet machine; a minute or two. The figures are those of `directfuse bench` and of df-dispatch
(build/.../stage/libexec/df-dispatch of a CMake build; without it those rows are left out). Exit
status 1 if a goal is missed.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

PLAIN, KERNEL, INLINE = "plain directory", "kernel FUSE", "inline"

#: memfs inline: at least so many times faster than ...
MEMFS = {
    (KERNEL, "stat, depth 2"): 300,
    (KERNEL, "open+close"): 300,
    (KERNEL, "create+unlink"): 300,
    (KERNEL, "pread 4 KiB, random"): 20,
    (KERNEL, "pread 1 MiB, sequential"): 3,
    (PLAIN, "stat, depth 2"): 10,
    (PLAIN, "open+close"): 10,
}
PASSTHROUGH = 1.1  # at most so many times the plain directory's time, every operation
PYTHON = {"pread 4 KiB": 3.0, "stat": 4.0}  # at least so many times faster than os on tmpfs
DISPATCH = {"pread": 10.0, "stat, depth 2": 60.0, "open+close": 120.0}  # ns above the op, at most
TWO_THREADS = 1.15  # times the time of one, at most: they do not slow each other down


class Row(NamedTuple):
    what: str
    goal: str
    measured: str
    met: bool


def run(*words: str) -> str:
    """What a program prints; its own messages go to ours."""
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout


def bench(budget: float) -> dict[str, Any]:
    routes = [word for route in (PLAIN, KERNEL, INLINE) for word in ("--route", route)]
    command = [sys.executable, "-m", "directfuse", "bench", "--json", "--budget", str(budget)]
    found: dict[str, Any] = json.loads(run(*command, *routes))
    return found


def at_most(what: str, measured: float, goal: float, unit: str) -> Row:
    return Row(what, f"≤ {goal:g}{unit}", f"{measured:.3g}{unit}", measured <= goal)


def at_least(what: str, measured: float, goal: float) -> Row:
    return Row(what, f"≥ {goal:g}×", f"{measured:.3g}×", measured >= goal)


def time_of(row: dict[str, Any], route: str) -> float:
    """ns; NaN, which meets no goal, for a route that could not be gone."""
    return float(row["routes"].get(route, {}).get("p10", "nan"))


def judge_memfs(rows: list[dict[str, Any]]) -> Iterator[Row]:
    by_op = {row["op"]: row for row in rows}
    for (route, op), goal in MEMFS.items():
        ratio = time_of(by_op[op], route) / time_of(by_op[op], INLINE)
        yield at_least(f"memfs against {route}: {op}", ratio, goal)


def judge_passthrough(rows: list[dict[str, Any]]) -> Iterator[Row]:
    for row in rows:
        ratio = time_of(row, INLINE) / time_of(row, PLAIN)
        yield at_most(f"passthrough against {PLAIN}: {row['op']}", ratio, PASSTHROUGH, "×")


def judge_python(rows: list[dict[str, Any]]) -> Iterator[Row]:
    for row in rows:
        if row["op"] in PYTHON:
            ratio = time_of(row, "os") / time_of(row, "directfuse")
            yield at_least(f"Python on memfs against os: {row['op']}", ratio, PYTHON[row["op"]])


def judge_dispatch(table: str) -> Iterator[Row]:
    for line in table.splitlines()[1:]:
        op, _, door, above, two = line.split("\t")
        if op in DISPATCH:
            yield at_most(f"dispatch above the op: {op}", float(above), DISPATCH[op], " ns")
        yield at_most(f"two threads against one: {op}", float(two) / float(door), TWO_THREADS, "×")


def built_dispatch() -> Path | None:
    """That of the newest CMake build here."""
    found = Path(__file__).parent.parent.glob("build/*/stage/libexec/df-dispatch")
    return max(found, key=lambda path: path.stat().st_mtime, default=None)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--budget", type=float, default=60, help="seconds for directfuse bench")
    parser.add_argument("--dispatch", type=Path, default=built_dispatch(), metavar="PROGRAM")
    return parser.parse_args()


def main() -> int:
    options = arguments()
    results = bench(options.budget)
    rows: list[Row] = []
    if options.dispatch:
        rows += judge_dispatch(run(str(options.dispatch)))
    for subject in results["subjects"]:
        judge = judge_memfs if subject["name"] == "memfs" else judge_passthrough
        rows += judge(subject["rows"])
    rows += judge_python(results["python"])
    width = max(len(row.what) for row in rows)
    for row in rows:
        print(
            f"{row.what:{width}}  {row.goal:>9}  {row.measured:>9}  {'' if row.met else 'MISSED'}"
        )
    load = results["machine"]["load after"]
    print(f"{sum(row.met for row in rows)} of {len(rows)} goals met; load {load}")
    return 0 if all(row.met for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
