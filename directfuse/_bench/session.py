"""One run of the benchmark: its parts, and the results as they are kept in JSON."""

import dataclasses
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from directfuse._bench import breakdown
from directfuse._bench.budget import Budget
from directfuse._bench.fio import JOBS, measure_fio
from directfuse._bench.machine import (
    default_directory,
    disk_directory,
    distance,
    file_system_of,
    machine,
)
from directfuse._bench.programs import PROGRAMS, measure_programs
from directfuse._bench.python import measure_python
from directfuse._bench.registry import describe
from directfuse._bench.rows import Rows
from directfuse._bench.subject import Subject, built_in
from directfuse._bench.turns import Task
from directfuse._bench.worker import Lanes
from directfuse._bench.workload_sets import chosen
from directfuse._swept import swept_directory

__all__ = ["LAYOUT", "PARTS", "Plan", "run_benchmark"]

#: Version of the layout of the results.
LAYOUT = 2

#: What can be measured besides the workloads, and how many seconds it is worth.
PARTS = {"programs": 80.0, "fio": 24.0, "figures": 40.0, "breakdown": 6.0, "python": 2.0}
_ROWS_WEIGHT = 0.6  # for a workload on all routes


@dataclass
class Plan:
    """What is to be measured."""

    subjects: list[Subject]
    patterns: list[str]  #: names of sets or workloads, with * and ?
    routes: list[str]
    lanes: list[Lanes]
    seconds: float
    most_rounds: int
    parts: set[str]
    directory: str | None = None
    progress: Callable[[str], None] = field(default=lambda _: None)


def run_benchmark(plan: Plan) -> dict[str, Any]:
    """Measures; nothing it started is left when it returns or raises. Interrupted by Ctrl-C it
    returns what it has, with "interrupted" set."""
    results: dict[str, Any] = {
        "layout": LAYOUT,
        "machine": machine(plan.directory),
        "routes": describe(),
        "subjects": [],
        "notes": [],
    }
    budget = Budget(plan.seconds, _weights(plan))
    try:
        for subject in plan.subjects:
            results["subjects"].append(_measure(plan, subject, plan.lanes, budget, results))
        for name, measure in _MEASURES.items():
            if name in plan.parts:
                measure(plan, budget, results)
    except KeyboardInterrupt:
        results["interrupted"] = True
        results["notes"].append("interrupted: what was not measured yet is missing")
    results["machine"]["load after"] = round(os.getloadavg()[0], 2)
    results["machine"]["ns between CPUs after"] = distance()
    return results


def _weights(plan: Plan) -> dict[str, float]:
    rows = [len(chosen(subject.patterns or plan.patterns)) for subject in plan.subjects]
    weights = {
        f"rows of {subject.name}": _ROWS_WEIGHT * count * len(plan.lanes)
        for subject, count in zip(plan.subjects, rows, strict=True)
    }
    return weights | {name: weight for name, weight in PARTS.items() if name in plan.parts}


@contextmanager
def _base(directory: str | None) -> Iterator[str]:
    """A directory for all that is made, removed at the end, or by the next one if we are killed."""
    with swept_directory("directfuse-bench.", directory or default_directory()) as base:
        yield base


def _measure(
    plan: Plan,
    subject: Subject,
    lanes: Sequence[Lanes],
    budget: Budget,
    results: dict[str, Any],
    end: float | None = None,
) -> dict[str, Any]:
    """All workloads of one file system, until `end`."""
    end = budget.part(f"rows of {subject.name}") if end is None else end
    routes = [name for name in plan.routes if not subject.routes or name in subject.routes]
    with _base(subject.directory or plan.directory) as base:
        rows = Rows(subject, routes, base, lanes, results["notes"])
        ops = chosen(subject.patterns or plan.patterns)
        return rows.measure(ops, end, budget, plan.most_rounds, plan.progress)


# ---- the parts -----------------------------------------------------------------------------------


def _programs(plan: Plan, budget: Budget, results: dict[str, Any]) -> None:
    _on_places(plan, budget, results, "programs", len(PROGRAMS), measure_programs)


def _fio(plan: Plan, budget: Budget, results: dict[str, Any]) -> None:
    _on_places(plan, budget, results, "fio", len(JOBS), measure_fio)


def _on_places(
    plan: Plan,
    budget: Budget,
    results: dict[str, Any],
    part: str,
    rows: int,
    measure: Callable[[Task], list[dict[str, Any]]],
) -> None:
    subjects = [subject for subject in plan.subjects if not subject.finds]
    inner = Budget(
        budget.part(part) - time.monotonic(), {subject.name: float(rows) for subject in subjects}
    )
    results[part] = {}
    for subject in subjects:
        with _base(plan.directory) as base:
            end, notes = inner.part(subject.name), results["notes"]
            task = Task(subject, plan.routes, base, notes, end, plan.progress)
            results[part][subject.name] = measure(task)


def _figures(plan: Plan, budget: Budget, results: dict[str, Any]) -> None:
    """Direct-FUSE's figures 5 to 8: passthrough on tmpfs and on a disk."""
    passthrough = built_in("passthrough")
    memory, disk = default_directory(), disk_directory()
    wanted = [(memory, "sizes"), (disk, "disk")]
    inner = Budget(budget.part("figures") - time.monotonic(), {"sizes": 1.0, "disk": 2.0})
    results["figures"] = []
    for directory, patterns in wanted:
        end = inner.part(patterns)
        if directory is None:
            results["notes"].append("figures on a disk: left out: no disk can be written to here")
            continue
        subject = dataclasses.replace(
            passthrough,
            name=f"passthrough on {file_system_of(directory)}",
            directory=directory,
            patterns=(patterns,),
            routes=("plain directory", "kernel FUSE", "kernel FUSE cached", "inline"),
        )
        found = _measure(plan, subject, [Lanes("1")], budget, results, end)
        results["figures"].append(found)


def _breakdown(plan: Plan, budget: Budget, results: dict[str, Any]) -> None:
    end = budget.part("breakdown")
    plan.progress("breakdown of a call")
    try:
        dispatch = breakdown.measure_dispatch(min(plan.most_rounds, 101))
    except (OSError, subprocess.CalledProcessError) as error:
        results["notes"].append(f"breakdown: left out: df-dispatch: {error}")
        return
    found = _measure(plan, breakdown.dummy(), [Lanes("1")], budget, results, end)
    results["breakdown"] = breakdown.breakdown_rows(dispatch, found["rows"])


def _python(plan: Plan, budget: Budget, results: dict[str, Any]) -> None:
    budget.part("python")
    plan.progress("Python calls")
    with _base(plan.directory) as base:
        results["python"] = measure_python(base, min(plan.most_rounds, 51))


_MEASURES: dict[str, Callable[[Plan, Budget, dict[str, Any]], None]] = {
    "programs": _programs,
    "fio": _fio,
    "figures": _figures,
    "breakdown": _breakdown,
    "python": _python,
}
