"""Issue 5: programs under `directfuse run`."""

import os
import statistics
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

from judge import CACHED, KERNEL, PLAIN, RUN, Row, at_least, at_most, bench, time_of

from directfuse import _paths
from directfuse._bench.own_routes import run_prefix
from directfuse._bench.places import Place
from directfuse._bench.programs import FILES
from directfuse._bench.worker import Worker

#: "Warm: pread 4 KiB ≤ 250 ns, fstat ≤ 40 ns, stat ≤ 120 ns, open+close ≤ 3 µs"
WARM = {
    "pread 4 KiB, hot": 250.0,
    "fstat": 40.0,
    "stat, depth 2": 120.0,
    "open+close": 3000.0,
}
NOT_OURS = 60.0  # "a call that is not ours costs ≤ 60 ns more than without us"
START_MS = 0.5  # "Starting a program costs ≤ 0.5 ms more."
#: "The program table on memfs: ≤ 1.3× tmpfs and faster than kernel FUSE on every row, ≥ 3× on the
#: metadata rows; on passthrough: ≤ 1.5× the plain directory, again faster than kernel FUSE"
PROGRAMS = {"memfs": 1.3, "passthrough": 1.5}
METADATA = {"untar", "rm -r", "find", "git status"}
METADATA |= {f"{what} {FILES} files" for what in ("create", "unlink", "chmod", "access")}
METADATA_TIMES = 3.0


def judge(budget: float) -> Iterator[Row]:
    routes = [PLAIN, KERNEL, CACHED, RUN]
    only = [word for op in WARM for word in ("--only", op)]
    found = bench(budget * 6, routes, "--programs", "--no-python", *only)
    for op, goal in WARM.items():
        row = found["by_op"]["memfs"].get(op)
        yield at_most(f"run, memfs, warm: {op}", time_of(row, RUN), goal, " ns")
    yield at_most("run: a call that is not ours costs more", not_ours(), NOT_OURS, " ns")
    yield at_most("run: starting a program costs more", start_ms(), START_MS, " ms")
    for name, rows in found["programs"].items():
        yield from programs(name, rows)


def programs(name: str, rows: list[dict[str, Any]]) -> Iterator[Row]:
    for row in rows:
        times = {route: found["median"] for route, found in row["routes"].items()}
        what = f"run, {name}: {row['program']}"
        run, plain = times.get(RUN, float("nan")), times.get(PLAIN, float("nan"))
        yield at_most(f"{what}, against {PLAIN}", run / plain, PROGRAMS[name], "×")
        if KERNEL in times:
            is_metadata = name == "memfs" and row["program"] in METADATA
            goal = METADATA_TIMES if is_metadata else 1.0
            yield at_least(f"{what}, against {KERNEL}", times[KERNEL] / run, goal)


def least_more(within: list[float], without: list[float]) -> float:
    """The difference of the minima: others disturb in one direction only."""
    return min(within) - min(without)


def not_ours(starts: int = 7) -> float:
    """ns that fstat of a plain file takes longer inside a run, in the median of so many starts: a
    process is up to 10 ns faster or slower than another of its kind, for as long as it lives (docs/
    decisions/099)."""
    return statistics.median(not_ours_once() for _ in range(starts))


def not_ours_once(rounds: int = 9) -> float:
    count = 2000
    times: dict[str, list[float]] = {"without": [], "within": []}
    with tempfile.TemporaryDirectory(dir="/dev/shm") as base, ExitStack() as stack:
        workers = {}
        for name, prefix in (("without", []), ("within", run_prefix(["memfs", "/goals-run"]))):
            os.mkdir(f"{base}/{name}")
            argv = [*prefix, os.fspath(_paths.bench_helper()), f"kernel:{base}/{name}"]
            workers[name] = stack.enter_context(Worker(argv))
            workers[name].sample("fstat", count)
        for _ in range(rounds):
            for name, worker in workers.items():
                times[name].append(worker.sample("fstat", count)["ns"])
    return least_more(times["within"], times["without"])


def start_ms(rounds: int = 9) -> float:
    """ms that starting /bin/true takes longer inside a run."""
    count = 50
    script = f"for i in $(seq {count}); do /bin/true; done"
    times: dict[str, list[float]] = {"without": [], "within": []}
    with tempfile.TemporaryDirectory(dir="/dev/shm") as base, ExitStack() as stack:
        places = []
        for name, prefix in (("without", []), ("within", run_prefix(["memfs", "/goals-start"]))):
            os.mkdir(f"{base}/{name}")
            places.append(stack.enter_context(Place(name, f"{base}/{name}", base, prefix)))
        for _ in range(rounds):
            for place in places:
                times[place.name].append(place.once("", script)["seconds"] / count * 1e3)
    return least_more(times["within"], times["without"])
