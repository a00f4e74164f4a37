"""One run of the benchmark: subjects, routes, rows; the results as they are kept in JSON."""

import os
import platform
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from importlib.metadata import version
from typing import Any

from directfuse._bench.measure import Clock, measure
from directfuse._bench.programs import measure_programs
from directfuse._bench.python import measure_python
from directfuse._bench.routes import ROUTES, Route, Unavailable, describe
from directfuse._bench.subject import Subject
from directfuse._bench.worker import workloads

__all__ = ["SETS", "Plan", "run_benchmark"]

#: Version of the layout of the results.
LAYOUT = 1

_FIGURES = [
    f"{way} {size}, {order}"
    for way in ("pread", "pwrite")
    for size in ("4 KiB", "16 KiB", "64 KiB", "256 KiB", "1 MiB")
    for order in ("sequential", "random")
]

#: Names for several workloads at once.
SETS: dict[str, list[str]] = {
    "micro": [
        "stat, depth 2",
        "stat, depth 4",
        "fstat",
        "open+close",
        "create+unlink",
        "rename, there and back",
        "mkdir+rmdir",
        "setxattr+getxattr",
        "readdir of 1000",
        "ls -l of 1000",
        "open+fstat+read 4 KiB+close",
        "open+fstat+read 100 KiB+close",
        "pread 4 KiB, random",
        "pread 1 MiB, sequential",
        "pwrite 4 KiB, random",
        "pwrite 1 MiB, sequential",
    ],
    "figures": _FIGURES,
}


@dataclass
class Plan:
    """What is to be measured."""

    subjects: list[Subject]
    patterns: list[str]  #: names of sets or workloads, with * and ?
    routes: list[str]
    threads: list[int]
    seconds: float
    most_rounds: int
    programs: bool
    python: bool
    directory: str | None = None
    progress: Callable[[str], None] = field(default=lambda _: None)


def chosen(patterns: Sequence[str]) -> list[str]:
    """Workloads by patterns, in their own order. Raises ValueError naming one that matches none."""
    known = list(workloads())
    names: set[str] = set()
    for pattern in patterns:
        found = SETS.get(pattern) or [name for name in known if fnmatchcase(name, pattern)]
        if not found:
            raise ValueError(pattern)
        names.update(found)
    return [name for name in known if name in names]


def run_benchmark(plan: Plan) -> dict[str, Any]:
    """Measures; nothing it started is left when it returns or raises."""
    notes: list[str] = []
    results: dict[str, Any] = {
        "layout": LAYOUT,
        "machine": machine(plan.directory),
        "routes": describe(),
        "subjects": [],
        "notes": notes,
    }
    ops = chosen(plan.patterns)
    rows = len(plan.subjects) * len(ops) * len(plan.threads)
    share = 0.5 if plan.programs else 1.0
    clock = Clock(plan.seconds * share, rows)
    for subject in plan.subjects:
        with _base(plan.directory) as base:
            results["subjects"].append(_measure_subject(plan, subject, base, ops, clock, notes))
    if plan.programs:
        results["programs"] = _measure_programs(plan, notes)
    if plan.python:
        plan.progress("Python calls")
        with _base(plan.directory) as base:
            results["python"] = measure_python(base, min(plan.most_rounds, 51))
    results["machine"]["load after"] = round(os.getloadavg()[0], 2)
    return results


@contextmanager
def _base(directory: str | None) -> Iterator[str]:
    with tempfile.TemporaryDirectory(
        prefix="directfuse-bench.", dir=directory or default_directory(), ignore_cleanup_errors=True
    ) as base:
        yield base


def default_directory() -> str:
    shared = "/dev/shm"
    return shared if os.access(shared, os.W_OK) else tempfile.gettempdir()


# ---- one subject ---------------------------------------------------------------------------------


def _measure_subject(
    plan: Plan, subject: Subject, base: str, ops: list[str], clock: Clock, notes: list[str]
) -> dict[str, Any]:
    rows: list[dict[str, Any]] = []
    with ExitStack() as stack:
        routes = _start_routes(plan, subject, base, stack, notes)
        site = routes[0].worker.site if routes else {}
        own = next((route.name for route in routes if route.ours), None)
        for op in ops:
            for threads in plan.threads:
                plan.progress(f"{subject.name}: {op}" + (f" × {threads}" if threads > 1 else ""))
                row = measure(op, threads, routes, clock.share(), plan.most_rounds)
                if row.samples:
                    rows.append(row.summary(own))
        memory = {route.name: _memory(route) for route in routes}
    return {
        "name": subject.name,
        "own": own,
        "site": site if subject.finds else {},
        "proof": _proofs(routes, notes),
        "memory_kib": memory,
        "rows": rows,
    }


def _start_routes(
    plan: Plan, subject: Subject, base: str, stack: ExitStack, notes: list[str]
) -> list[Route]:
    routes = []
    for name in plan.routes:
        plan.progress(f"{subject.name}: {name}")
        route = ROUTES[name]()
        try:
            with ExitStack() as own:
                route.start(subject, base, max(plan.threads), own)
                stack.push(own.pop_all())
            routes.append(route)
        except (Unavailable, OSError) as error:
            notes.append(f"{subject.name}, {name}: left out: {error}")
    return routes


def _proofs(routes: list[Route], notes: list[str]) -> dict[str, str]:
    proofs = {}
    for route in routes:
        try:
            proofs[route.name] = route.proof()
        except Unavailable as error:
            notes.append(f"{route.name}: NOT PROVEN to have been used: {error}")
    return proofs


def _memory(route: Route) -> dict[str, int]:
    """Most memory that its processes had, KiB."""
    pids = {"client": route.worker.pid, "daemon": route.daemon}
    return {name: _peak(pid) for name, pid in pids.items() if pid is not None}


def _peak(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/status") as status:
            lines = [line for line in status if line.startswith("VmHWM:")]
    except OSError:
        return 0
    return int(lines[0].split()[1]) if lines else 0


def _measure_programs(plan: Plan, notes: list[str]) -> dict[str, list[dict[str, Any]]]:
    subjects = [subject for subject in plan.subjects if not subject.finds]
    tables = {}
    for subject in subjects:
        seconds = plan.seconds * 0.5 / len(subjects)
        with _base(plan.directory) as base:
            tables[subject.name] = measure_programs(subject, base, notes, seconds, plan.progress)
    return tables


# ---- the machine ---------------------------------------------------------------------------------


def machine(directory: str | None) -> dict[str, Any]:
    """Where this was measured, and with what."""
    return {
        "processor": _processor(),
        "cpus": os.cpu_count(),
        "kernel": platform.release(),
        "system": _system(),
        "python": platform.python_version(),
        "directfuse": version("directfuse"),
        "libfuse": _libfuse(),
        "plain directory": directory or default_directory(),
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "load before": round(os.getloadavg()[0], 2),
    }


def _processor() -> str:
    with open("/proc/cpuinfo") as file:
        names = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _system() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "")
    except OSError:
        return ""


def _libfuse() -> str:
    tool = shutil.which("fusermount3")
    if tool is None:
        return "no fusermount3"
    done = subprocess.run([tool, "-V"], capture_output=True, text=True, check=False)
    return done.stdout.strip().rpartition(" ")[2]
