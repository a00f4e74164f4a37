"""The tables of the results, as text in cells, for a terminal and for a page."""

import math
import statistics
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from directfuse._bench import breakdown
from directfuse._bench.worker import Lanes
from directfuse._cli._output import duration, ratio

__all__ = ["Section", "costs", "gain", "routes_of", "sections", "times"]

_WIDE = 1.5  # from one end of an interval to the other

_Rows = list[dict[str, Any]]
_Table = tuple[list[str], list[list[str]]]


class Section(NamedTuple):
    title: str
    words: str  #: how to read it
    columns: list[str]
    cells: list[list[str]]


def routes_of(rows: _Rows) -> list[str]:
    """In the order they were met."""
    return list(dict.fromkeys(route for row in rows for route in row["routes"]))


def _title(row: dict[str, Any]) -> str:
    return str(row["op"]) + Lanes(row.get("lanes", "1")).words


def times(rows: _Rows, own: str | None) -> _Table:
    """Our route, then every other with its ratio to ours and the interval."""
    routes = routes_of(rows)
    others = [route for route in routes if route != own]
    columns = ["Operation", *([own] if own else [])]
    for route in others:
        columns += [route, *([f"÷ {own}"] if own else [])]
    cells = []
    for row in rows:
        line = [_title(row), *([_time(row, own)] if own else [])]
        for route in others:
            line += [_time(row, route), *([_ratio(row, route)] if own else [])]
        cells.append(line)
    return columns, cells


def compact(rows: _Rows, own: str | None) -> _Table:
    """For a terminal: a column for each route. `~`: the interval of the ratio is wide."""
    routes = routes_of(rows)
    first = [own] if own else []
    routes = [*first, *(route for route in routes if route != own)]
    cells = []
    for row in rows:
        line = [_title(row)]
        for route in routes:
            found = row["ratios"].get(route)
            wide = "~" if found and found[2] > _WIDE * found[1] else ""
            line.append(_time(row, route) + (f" {wide}{ratio(found[0])}" if found else ""))
        cells.append(line)
    return ["Operation", *routes], cells


def _time(row: dict[str, Any], route: str) -> str:
    found = row["routes"].get(route)
    return duration(found["p10"]) if found else "–"


def _ratio(row: dict[str, Any], route: str) -> str:
    found = row["ratios"].get(route)
    if not found:
        return "–"
    low, high = ratio(found[1]).rstrip("×"), ratio(found[2]).rstrip("×")
    return f"{ratio(found[0])} ({low}–{high})"


def _processor(rows: _Rows) -> _Table:
    """CPU time of caller + other processes, and context switches of both, an operation."""
    routes = routes_of(rows)
    cells = []
    for row in rows:
        line = [_title(row)]
        for route in routes:
            found = row["routes"].get(route)
            line.append(_spent(found) if found else "–")
        cells.append(line)
    return ["Operation", *routes], cells


def _spent(found: dict[str, Any]) -> str:
    time = duration(found["cpu_ns"])
    switches = found["switches"] + found.get("daemon_switches", 0)
    if "daemon_cpu_ns" in found:
        time += f" + {duration(found['daemon_cpu_ns'])}"
    return f"{time}, {switches:.2f}" if switches >= 0.005 else time


def _memory(memory: dict[str, dict[str, dict[str, int]]]) -> _Table:
    columns = ["Route", "caller, peak", "caller, PSS", "others, peak", "others, PSS"]
    cells = []
    for route, found in memory.items():
        values = [
            found[who][what] if who in found else None
            for who in ("caller", "daemon")
            for what in ("peak", "pss")
        ]
        line = [f"{kib / 1024:.1f} MiB" if kib is not None else "–" for kib in values]
        cells.append([route, *line])
    return columns, cells


def _compared(rows: _Rows, key: str, figures: Callable[[dict[str, Any]], dict[str, str]]) -> _Table:
    """A figure for each route, and what it is of the plain directory's."""
    words = [figures(row) for row in rows]
    routes = list(dict.fromkeys(route for row in words for route in row))
    cells = []
    for row, found in zip(rows, words, strict=True):
        line = [row[key]]
        for route in routes:
            part = row["ratios"].get(route)
            line.append(found.get(route, "–") + (f" ({ratio(part[0])})" if part else ""))
        cells.append(line)
    return [key.capitalize(), *routes], cells


def _medians(row: dict[str, Any]) -> dict[str, str]:
    return {route: duration(found["median"]) for route, found in row["routes"].items()}


def _speeds(row: dict[str, Any]) -> dict[str, str]:
    return {route: f"{speed:,.0f} MB/s" for route, speed in row["mb_s"].items()}


def _breakdown(rows: _Rows) -> _Table:
    cells = []
    for row in rows:
        values = [row[key] for key in breakdown.COLUMNS]
        line = [duration(value) if value is not None else "–" for value in values]
        cells.append([row["op"], *line])
    return ["Call", *breakdown.COLUMNS.values()], cells


_TIMES_WORDS = (
    "10th percentile of the rounds, an operation of one lane; the median of the rounds' ratios to "
    "our route with its 95 % interval."
)
_CPU_WORDS = (
    "CPU time of the calling process + that of the route's other processes (daemon, server), and "
    "context switches of all of them, an operation."
)


def gain(subject: dict[str, Any]) -> str:
    """The answer to "what would I gain?": geometric means over the rows, or nothing to compare."""
    parts = []
    for ours in dict.fromkeys((subject["own"], "server", "helper", "run")):
        against = [
            f"{ratio(mean)} {theirs}"
            for theirs in ("kernel FUSE", "kernel FUSE cached")
            if (mean := _mean(subject["rows"], theirs, ours))
        ]
        if against:
            parts.append(f"{ours}: {', '.join(against)}")
    if not parts:
        return ""
    return f"Speed, as the geometric mean of {len(subject['rows'])} rows: {'; '.join(parts)}"


def _mean(rows: _Rows, theirs: str, ours: str | None) -> float | None:
    pairs = [
        (row["routes"][theirs]["p10"], row["routes"][ours]["p10"])
        for row in rows
        if theirs in row["routes"] and ours in row["routes"]
    ]
    if not pairs:
        return None
    return math.exp(statistics.fmean(math.log(a / b) for a, b in pairs))


def sections(results: dict[str, Any], narrow: bool = False) -> Iterator[Section]:
    """Every table of the results. narrow: without the intervals of ratios."""
    table = compact if narrow else times
    for subject in [*results["subjects"], *results.get("figures", [])]:
        if subject["rows"]:
            words = f"{_TIMES_WORDS} {gain(subject)}".strip()
            yield Section(subject["name"], words, *table(subject["rows"], subject["own"]))
    for name, rows in results.get("programs", {}).items():
        if rows:
            words = "Median, and the multiple of the plain directory (below 1 is faster)."
            yield Section(f"{name}: whole programs", words, *_compared(rows, "program", _medians))
    for name, rows in results.get("fio", {}).items():
        if rows:
            words = "Median, and the part of the plain directory's (above 1 is faster)."
            yield Section(f"{name}: fio", words, *_compared(rows, "job", _speeds))
    if results.get("breakdown"):
        words = (
            "On a file system that answers at once. The first two are parts of the third, what "
            "Python adds comes on top; the others are whole calls by another way."
        )
        yield Section("Breakdown of a call", words, *_breakdown(results["breakdown"]))
    if results.get("python"):
        yield Section("Python calls", _TIMES_WORDS, *table(results["python"], "directfuse"))


def costs(results: dict[str, Any]) -> Iterator[Section]:
    """What a page has besides: CPU time, context switches, memory."""
    for subject in results["subjects"]:
        if subject["rows"]:
            title = f"{subject['name']}: CPU time and context switches"
            yield Section(title, _CPU_WORDS, *_processor(subject["rows"]))
            words = "After all rows: the most that was resident, and PSS."
            yield Section(f"{subject['name']}: memory", words, *_memory(subject["memory_kib"]))
