"""Rounds in rotating order, and what is said of the samples.

Machines are busy and their clocks drift, so the routes take turns in every round and each round
gives one ratio between two routes. Times are reported as median and 10th percentile (others disturb
a run in one direction only), ratios as the median of the rounds' ratios with a 95 % interval from
order statistics, which supposes nothing of the distribution.
"""

import math
import os
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from directfuse._bench.routes import Route
from directfuse._bench.worker import Refused

__all__ = ["Clock", "Row", "interval", "measure"]

SAMPLE_SECONDS = 1e-3


@dataclass
class Clock:
    """A budget of time, in seconds, for `rows` rows."""

    seconds: float
    rows: int
    end: float = field(init=False)

    def __post_init__(self) -> None:
        self.end = time.monotonic() + self.seconds

    def share(self) -> float:
        """Seconds for the next row."""
        left = self.end - time.monotonic()
        share = left / max(self.rows, 1)
        self.rows -= 1
        return share


@dataclass
class Row:
    """One workload on all routes: samples by route, one for each round."""

    op: str
    threads: int
    samples: dict[str, list[dict[str, float]]]
    daemon_cpu: dict[str, float]  #: ns of the daemon, an operation
    left_out: dict[str, str]  #: route -> reason

    def summary(self, own: str | None) -> dict[str, Any]:
        """As it stands in the results. own: the route that ratios are taken against."""
        routes = {name: _describe(samples) for name, samples in self.samples.items()}
        for name, cpu in self.daemon_cpu.items():
            routes[name]["daemon_cpu_ns"] = round(cpu, 1)
        ratios = {}
        if own in self.samples:
            ours = [sample["ns"] for sample in self.samples[own]]
            for name, samples in self.samples.items():
                if name != own:
                    theirs = [sample["ns"] for sample in samples]
                    ratios[name] = [round(value, 4) for value in _paired(theirs, ours)]
        return {
            "op": self.op,
            "threads": self.threads,
            "routes": routes,
            "ratios": ratios,
            "left_out": self.left_out,
        }


def _describe(samples: Sequence[dict[str, float]]) -> dict[str, Any]:
    times = sorted(sample["ns"] for sample in samples)
    count = len(times)
    return {
        "median": round(statistics.median(times), 3),
        "p10": round(times[count // 10], 3),
        "spread": [round(times[count // 4], 3), round(times[count * 3 // 4], 3)],
        "rounds": count,
        "cpu_ns": round(statistics.median(sample["cpu_ns"] for sample in samples), 3),
        "switches": round(statistics.fmean(sample["switches"] for sample in samples), 5),
    }


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Median and its 95 % confidence interval: order statistics of the binomial distribution."""
    ordered = sorted(values)
    count = len(ordered)
    reach = 1.96 * math.sqrt(count) / 2
    low = max(math.floor(count / 2 - reach), 0)
    high = min(math.ceil(count / 2 + reach), count - 1)
    return statistics.median(ordered), ordered[low], ordered[high]


def _paired(theirs: Sequence[float], ours: Sequence[float]) -> tuple[float, float, float]:
    return interval([a / b for a, b in zip(theirs, ours, strict=True) if b > 0])


# ---- measuring -----------------------------------------------------------------------------------


def measure(
    op: str, threads: int, routes: Sequence[Route], seconds: float, most_rounds: int
) -> Row:
    """Times one workload on all routes for about `seconds`; at least five rounds."""
    row = Row(op, threads, {}, {}, {})
    counts: dict[str, int] = {}
    for route in routes:
        try:
            counts[route.name] = _calibrate(route, op, threads)
            row.samples[route.name] = []
        except Refused as error:
            row.left_out[route.name] = str(error)
    going = [route for route in routes if route.name in counts]
    if not going:
        return row
    before = {route.name: _daemon_cpu(route) for route in going}
    end = time.monotonic() + seconds
    for round_number in range(most_rounds):
        if round_number >= 5 and time.monotonic() > end:
            break
        for turn in range(len(going)):
            route = going[(turn + round_number) % len(going)]
            sample = route.worker.sample(op, counts[route.name], threads)
            row.samples[route.name].append(sample)
    for route in going:
        done = counts[route.name] * threads * len(row.samples[route.name])
        spent = _daemon_cpu(route) - before[route.name]
        if route.daemon is not None:
            row.daemon_cpu[route.name] = spent / done
    return row


def _calibrate(route: Route, op: str, threads: int) -> int:
    """How many operations fill a sample; warms caches on the way."""
    count = 1
    while True:
        each = route.worker.sample(op, count, threads)["ns"]
        if each * count >= SAMPLE_SECONDS * 1e9 / 4:
            return max(1, int(SAMPLE_SECONDS * 1e9 / each))
        count *= 4


def _daemon_cpu(route: Route) -> float:
    """CPU time of a file system's process so far, ns; its threads' schedstat (proc(5))."""
    if route.daemon is None:
        return 0.0
    total = 0.0
    tasks = f"/proc/{route.daemon}/task"
    try:
        for task in os.listdir(tasks):
            with open(f"{tasks}/{task}/schedstat") as file:
                total += float(file.read().split()[0])
    except OSError:
        pass  # a thread ended while we looked
    return total
