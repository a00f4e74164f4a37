"""The workloads of one file system on all of its routes."""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

from directfuse._bench.budget import Budget
from directfuse._bench.measure import Row, measure
from directfuse._bench.registry import ROUTES
from directfuse._bench.routes import Route, Unavailable
from directfuse._bench.subject import Subject
from directfuse._bench.worker import Lanes

__all__ = ["Rows"]


_NAMED = 4  # rows that a note names; of more it gives the number
_PATIENCE = 0.25  # how much longer than its part of the time one file system may take


def _late(subject: str, rows: list[str]) -> str:
    what = ", ".join(rows) if len(rows) <= _NAMED else f"{len(rows)} rows, from {rows[0]} on"
    return f"{subject}: left out: the time was up: {what}"


class Rows:
    """Starts the routes, measures, and tells what was left out."""

    def __init__(
        self,
        subject: Subject,
        names: Sequence[str],
        base: str,
        lanes: Sequence[Lanes],
        notes: list[str],
    ) -> None:
        self._subject = subject
        self._names = names
        self._base = base
        self._lanes = lanes
        self._notes = notes
        self._failed: dict[tuple[str, str], list[str]] = {}  # (route, reason) -> rows

    def measure(
        self,
        ops: Sequence[str],
        end: float,
        budget: Budget,
        most_rounds: int,
        progress: Callable[[str], None],
    ) -> dict[str, Any]:
        """As it stands in the results. end: when the last row should be done, of
        time.monotonic(). A row needs some rounds to say anything, so that it may become later; no
        row begins when it is much later, or when the whole budget is used up."""
        wanted = [(op, lanes) for op in ops for lanes in self._lanes]
        with ExitStack() as stack:
            routes = self._start(stack, progress)
            site = routes[0].worker.site if routes else {}
            own = next((route.name for route in routes if route.ours), None)
            rows = self._rows(wanted, routes, end, budget, most_rounds, progress)
            memory = {route.name: _memory(route) for route in routes}
        if site and self._subject.finds and not self._subject.scribble:
            self._note_site(site)
        self._note_failures()
        return {
            "name": self._subject.name,
            "own": own,
            "site": site if self._subject.finds else {},
            "proof": self._proofs(routes),
            "memory_kib": memory,
            "rows": [row.summary(own) for row in rows],
        }

    def _rows(
        self,
        wanted: Sequence[tuple[str, Lanes]],
        routes: list[Route],
        end: float,
        budget: Budget,
        most_rounds: int,
        progress: Callable[[str], None],
    ) -> list[Row]:
        """Those that were measured. All as of measure()."""
        names = [op + lanes.words for op, lanes in wanted]
        patience = _PATIENCE * (end - time.monotonic())
        rows: list[Row] = []
        for index, (op, lanes) in enumerate(wanted):
            left = end - time.monotonic()
            if rows and (budget.is_over or left < -patience):
                self._notes.append(_late(self._subject.name, names[index:]))
                break
            progress(f"{self._subject.name}: {names[index]}")
            row = measure(op, lanes, routes, left / (len(wanted) - index), most_rounds)
            self._remember(row.left_out, names[index])
            if row.samples:
                rows.append(row)
        return rows

    def _start(self, stack: ExitStack, progress: Callable[[str], None]) -> list[Route]:
        routes = []
        most = max(lanes.number for lanes in self._lanes)
        for name in self._names:
            progress(f"{self._subject.name}: {name}")
            route = ROUTES[name]()
            try:
                with ExitStack() as own:
                    route.start(self._subject, self._base, most, own)
                    stack.push(own.pop_all())
                routes.append(route)
            except (Unavailable, OSError) as error:
                self._notes.append(f"{self._subject.name}, {name}: left out: {error}")
        return routes

    def _remember(self, left_out: dict[str, str], row: str) -> None:
        for route, reason in left_out.items():
            self._failed.setdefault((route, reason), []).append(row)

    def _note_site(self, site: dict[str, Any]) -> None:
        """The names of the rows say what the files are that we make."""
        self._notes.append(
            f"{self._subject.name}: measured on its own files (bytes of the largest: "
            f"{site['data_size']:,}; entries of the fullest directory: {site['crowd_size']:,}); "
            "what reads more is left out"
        )

    def _note_failures(self) -> None:
        """What only writes is no failure where nothing is to be written, nor what reads more than
        there is where that was said."""
        for (route, reason), rows in self._failed.items():
            if "nothing is to be written" not in reason and "no file is so large" not in reason:
                where = ", ".join(rows) if len(rows) <= _NAMED else f"{len(rows)} rows"
                last = reason.splitlines()[-1]
                self._notes.append(f"{self._subject.name}, {route}: left out: {last}: {where}")

    def _proofs(self, routes: list[Route]) -> dict[str, str]:
        proofs = {}
        for route in routes:
            try:
                proofs[route.name] = route.proof()
            except Unavailable as error:
                self._notes.append(
                    f"{self._subject.name}, {route.name}: NOT PROVEN to have been used: {error}"
                )
        return proofs


# ---- memory --------------------------------------------------------------------------------------


def _memory(route: Route) -> dict[str, dict[str, int]]:
    """KiB of the caller, and of the other processes of the route together."""
    found = {"caller": _usage([route.worker.pid])}
    if route.daemons:
        found["daemon"] = _usage(route.daemons)
    return found


def _usage(pids: Sequence[int]) -> dict[str, int]:
    """Most that was resident; what is now, shared pages counted in parts (proc(5))."""
    return {
        "peak": sum(_field(f"/proc/{pid}/status", "VmHWM:") for pid in pids),
        "pss": sum(_field(f"/proc/{pid}/smaps_rollup", "Pss:") for pid in pids),
    }


def _field(path: str, name: str) -> int:
    try:
        with open(path) as file:
            lines = [line for line in file if line.startswith(name)]
    except OSError:
        return 0  # it has ended, or is not ours to look at
    return int(lines[0].split()[1]) if lines else 0
