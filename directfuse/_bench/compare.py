"""Then and now: what became of an older run's numbers."""

from typing import Any

from directfuse._cli._output import ratio

__all__ = ["compare"]

WORSE = 1.10  # a row that is slower than before by more than this, and by more than its interval

_Key = tuple[str, str, str]


def _by_key(results: dict[str, Any]) -> dict[_Key, dict[str, Any]]:
    """Ratios of everything that is measured against our route: workloads, figures, Python."""
    subjects = [*results["subjects"], *results.get("figures", [])]
    found = {
        (subject["name"], row["op"], row["lanes"]): row["ratios"]
        for subject in subjects
        for row in subject["rows"]
    }
    found |= {("Python", row["op"], "1"): row["ratios"] for row in results.get("python", [])}
    return found


def _programs_by_key(results: dict[str, Any]) -> dict[_Key, dict[str, Any]]:
    """`run` against the plain directory: there a small ratio is good."""
    return {
        (name, row["program"], "1"): {"run": row["ratios"]["run"]}
        for name, rows in results.get("programs", {}).items()
        for row in rows
        if "run" in row["ratios"]
    }


def compare(old: dict[str, Any], new: dict[str, Any]) -> tuple[list[str], list[list[str]], bool]:
    """Rows whose ratio to another route has changed beyond both intervals, and whether any of them
    is worse: ratios are compared, for absolute times drift with the machine."""
    cells: list[list[str]] = []
    for find, more_is_better in ((_by_key, True), (_programs_by_key, False)):
        before = find(old)
        for key, ratios in find(new).items():
            for route, now in ratios.items():
                then = before.get(key, {}).get(route)
                if then and _has_changed(then, now):
                    better = (now[0] > then[0]) == more_is_better
                    verdict = "better" if better else "worse"
                    cells.append([*key, route, ratio(then[0]), ratio(now[0]), verdict])
    worse = any(row[-1] == "worse" for row in cells)
    return ["Subject", "Operation", "At once", "Against", "Then", "Now", ""], cells, worse


def _has_changed(then: list[float], now: list[float]) -> bool:
    if then[1] <= now[2] and now[1] <= then[2]:
        return False  # the intervals have a value in common
    return not 1 / WORSE < now[0] / then[0] < WORSE
