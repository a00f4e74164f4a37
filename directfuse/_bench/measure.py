"""Rounds in changing order, and what is said of the samples.

Machines are busy and their clocks drift, so the routes take turns in every round and each round
gives one ratio between two routes. Times are reported as median and 10th percentile (others disturb
a run in one direction only), ratios as the median of the rounds' ratios with a 95 % interval from
order statistics, which supposes nothing of the distribution.
"""

import contextlib
import math
import os
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from directfuse._bench.routes import Route
from directfuse._bench.worker import Lanes, Refused

__all__ = ["Row", "describe_times", "in_turn", "interval", "measure", "paired", "ratios"]

SAMPLE_SECONDS = 1e-3
LEAST_ROUNDS = 5
LATE_ROUNDS = 3  #: of a row that begins when its time is over

_MORE_LOOKS = 2  #: at the count of several lanes
_ALIKE = 4  #: samples of routes that differ by less have as many operations

Sample = dict[str, float]
Item = TypeVar("Item")


@dataclass
class Row:
    """One workload on all routes: samples by route, one for each round."""

    op: str
    lanes: Lanes
    samples: dict[str, list[Sample]] = field(default_factory=dict)
    daemons: dict[str, Sample] = field(default_factory=dict)  #: of other processes, an operation
    left_out: dict[str, str] = field(default_factory=dict)  #: route -> reason

    def leave_out(self, route: str, reason: str) -> None:
        self.samples.pop(route, None)
        self.left_out[route] = reason

    def summary(self, own: str | None) -> dict[str, Any]:
        """As it stands in the results. own: the route that ratios are taken against."""
        routes = {name: _describe(samples) for name, samples in self.samples.items()}
        for name, spent in self.daemons.items():
            routes[name]["daemon_cpu_ns"] = round(spent["cpu_ns"], 1)
            routes[name]["daemon_switches"] = round(spent["switches"], 5)
        times = {name: [s["ns"] for s in samples] for name, samples in self.samples.items()}
        return {
            "op": self.op,
            "lanes": str(self.lanes),
            "routes": routes,
            "ratios": ratios(times, own),
            "left_out": self.left_out,
        }


def describe_times(values: Sequence[float]) -> dict[str, Any]:
    """Median, 10th percentile, quartiles and number."""
    times = sorted(values)
    count = len(times)
    return {
        "median": round(statistics.median(times), 3),
        "p10": round(times[count // 10], 3),
        "spread": [round(times[count // 4], 3), round(times[count * 3 // 4], 3)],
        "rounds": count,
    }


def _describe(samples: Sequence[Sample]) -> dict[str, Any]:
    return describe_times([sample["ns"] for sample in samples]) | {
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


def paired(theirs: Sequence[float], ours: Sequence[float]) -> list[float]:
    """Median and interval of the ratios of the rounds that both have, rounded for the results. Both
    have the first: what is slow may have sat out later ones (turns.py)."""
    each = [a / b for a, b in zip(theirs, ours, strict=False) if b > 0]
    return [float(f"{value:.5g}") for value in interval(each)]


def ratios(samples: Mapping[str, Sequence[float]], base: str | None) -> dict[str, list[float]]:
    """Each route's samples as a multiple of those of `base`; nothing where that one is missing."""
    if base is None or base not in samples:
        return {}
    return {name: paired(found, samples[base]) for name, found in samples.items() if name != base}


# ---- measuring -----------------------------------------------------------------------------------


def in_turn(items: Sequence[Item], number: int) -> list[Item]:
    """The order of a round: rotating, and every other round backwards, so that none of them always
    finds the processor's caches as the same other one has left them."""
    first = number // 2 % len(items)
    order = [*items[first:], *items[:first]]
    return order[::-1] if number % 2 else order


def measure(
    op: str, lanes: Lanes, routes: Sequence[Route], seconds: float, most_rounds: int
) -> Row:
    """Times one workload on all routes for about `seconds`; some rounds at least. A route
    that fails on the way is left out, the others go on."""
    row = Row(op, lanes)
    counts: dict[str, int] = {}
    for route in routes:
        try:
            counts[route.name] = _calibrate(route, op, lanes)
            row.samples[route.name] = []
        except Refused as error:
            row.leave_out(route.name, str(error))
    counts = _level(counts)
    before = {route.name: _spent(route) for route in routes if route.name in counts}
    end = time.monotonic() + seconds
    for number in range(most_rounds):
        going = [route for route in routes if route.name in row.samples]
        least = LEAST_ROUNDS if seconds > 0 else LATE_ROUNDS
        if not going or (number >= least and time.monotonic() > end):
            break
        for route in in_turn(going, number):
            try:
                sample = route.worker.sample(op, counts[route.name], lanes)
                row.samples[route.name].append(sample)
            except Refused as error:
                row.leave_out(route.name, str(error))
    for route in routes:
        if route.daemons and route.name in row.samples:
            done = counts[route.name] * lanes.number * len(row.samples[route.name])
            row.daemons[route.name] = {
                name: (value - before[route.name][name]) / done
                for name, value in _spent(route).items()
            }
    return row


def _level(counts: Mapping[str, int]) -> dict[str, int]:
    """The same count for routes of like speed. The first operation of a sample finds caches that
    the other routes have emptied; where a sample is few operations, whoever has fewer pays more."""
    levelled: dict[str, int] = {}
    level = 0
    for name in sorted(counts, key=lambda name: -counts[name]):
        if level == 0 or counts[name] * _ALIKE < level:
            level = counts[name]
        levelled[name] = level
    return levelled


def _calibrate(route: Route, op: str, lanes: Lanes) -> int:
    """How many operations fill a sample; warms caches on the way. The first look may have met cold
    caches, and of several lanes one may begin late, which takes longer than few operations: they
    are asked again."""
    if route.alone and lanes.endswith("p"):
        raise Refused(route.alone)
    enough = SAMPLE_SECONDS * 1e9 / 4
    count = 1
    while True:
        each = route.worker.sample(op, count, lanes)["ns"]
        for _ in range(_MORE_LOOKS if lanes.number > 1 else 1):
            if each * count >= enough:
                each = min(each, route.worker.sample(op, count, lanes)["ns"])
        if each * count >= enough:
            return max(1, int(SAMPLE_SECONDS * 1e9 / each))
        count *= 4


def _spent(route: Route) -> Sample:
    """CPU time, ns, of the route's other processes so far, and how often they were given a CPU:
    their threads' schedstat, proc(5)."""
    total = {"cpu_ns": 0.0, "switches": 0.0}
    for pid in route.daemons:
        with contextlib.suppress(OSError):  # it, or a thread of it, has ended
            for task in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{task}/schedstat") as file:
                    running, _, slices = file.read().split()
                total["cpu_ns"] += float(running)
                total["switches"] += float(slices)
    return total
