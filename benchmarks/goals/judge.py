"""What all goals share: a row of the verdict, and how `directfuse bench` and scripts are asked."""

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from directfuse import _paths

BENCHMARKS = Path(__file__).parent.parent
PLAIN, KERNEL, CACHED = "plain directory", "kernel FUSE", "kernel FUSE cached"
INLINE, SERVER, HELPER, RUN = "inline", "server", "helper", "run"

BenchRow = dict[str, Any]


class Row(NamedTuple):
    what: str
    goal: str
    measured: str
    met: bool


def at_most(what: str, measured: float, goal: float, unit: str) -> Row:
    return Row(what, f"≤ {goal:g}{unit}", _shown(measured, unit), measured <= goal)


def at_least(what: str, measured: float, goal: float, unit: str = "×") -> Row:
    return Row(what, f"≥ {goal:g}{unit}", _shown(measured, unit), measured >= goal)


def _shown(measured: float, unit: str) -> str:
    return "not measured" if math.isnan(measured) else f"{measured:.3g}{unit}"


def time_of(row: BenchRow | None, route: str) -> float:
    """ns; NaN, which meets no goal, for what could not be measured."""
    found = (row or {}).get("routes", {}).get(route, {})
    return float(found.get("p10", "nan"))


def output_of(*words: str) -> str:
    """What a program prints; its messages go to ours. A status of 1 is a verdict, no failure."""
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{words}: status {done.returncode}")
    return done.stdout


def script(name: str, *words: str) -> Any:
    """What a script of benchmarks/ prints as JSON."""
    return json.loads(output_of(sys.executable, str(BENCHMARKS / name), "--json", *words))


def bench(budget: float, routes: list[str], *words: str) -> dict[str, Any]:
    """The results of `directfuse bench`; its rows by subject and operation under "by_op"."""
    chosen = [word for route in routes for word in ("--route", route)]
    command = [*_paths.COMMAND, "bench", "--json", "--budget", str(budget)]
    found: dict[str, Any] = json.loads(output_of(*command, *chosen, *words))
    found["by_op"] = {
        subject["name"]: {row["op"]: row for row in subject["rows"]}
        for subject in found["subjects"]
    }
    return found
