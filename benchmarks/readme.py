"""Puts the measured table of benchmarks/results/results.json into README.md, and draws its figure.

    python benchmarks/readme.py [--check]

--check writes nothing and fails when README.md holds something else.
"""

import json
import sys
from pathlib import Path
from typing import Any

from directfuse._bench.plots import summary
from directfuse._cli._output import duration, ratio

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks/results"
BEGIN, END = "<!-- benchmarks/readme.py: begin -->", "<!-- benchmarks/readme.py: end -->"
ROWS = [
    "stat, depth 2",
    "fstat",
    "open+close",
    "create+unlink",
    "readdir of 1000",
    "open+fstat+read 4 KiB+close",
    "pread 4 KiB, random",
    "pread 1 MiB, sequential",
    "pwrite 4 KiB, random",
]
ROUTES = ["plain directory", "kernel FUSE", "kernel FUSE cached", "server", "run"]
FIGURE = "readme"


def rows_of(subject: dict[str, Any]) -> list[dict[str, Any]]:
    return [row for row in subject["rows"] if row["op"] in ROWS and row["lanes"] == "1"]


def cell(row: dict[str, Any], route: str, own: str) -> str:
    """Time, and how many times ours that is."""
    found = row["routes"].get(route)
    if found is None:
        return "–"
    times = row["ratios"].get(route)
    return duration(found["p10"]) + (f" ({ratio(times[0])})" if route != own and times else "")


def table(subject: dict[str, Any]) -> list[str]:
    own = subject["own"]
    routes = [own, *(route for route in ROUTES if route in subject["proof"])]
    lines = [f"| {subject['name']} | " + " | ".join(routes) + " |", "|---|" + "---:|" * len(routes)]
    for row in rows_of(subject):
        cells = [cell(row, route, own) for route in routes]
        lines.append(f"| {row['op']} | " + " | ".join(cells) + " |")
    return lines


def text(results: dict[str, Any]) -> str:
    machine = results["machine"]
    where = f"{machine['processor']}, {machine['cpus']} CPUs, Linux {machine['kernel']}"
    lines = [BEGIN, ""]
    for subject in results["subjects"]:
        lines += [*table(subject), ""]
    lines += [
        f"![How many times as long as inline the other ways take](benchmarks/results/{FIGURE}.png)",
        "",
        f"{where}, {machine['date']}, load {machine['load before']}; 10th percentile of",
        "alternating rounds, in brackets the multiple of inline. *kernel FUSE*: caches off;",
        "*cached*: as the file system allows; *server*: a mount server, called from C; *run*: an",
        "unmodified program under `directfuse run`.",
        "All rows, intervals and pictures: [benchmarks/results](benchmarks/results/report.md).",
        "",
        END,
    ]
    return "\n".join(lines)


def draw(results: dict[str, Any]) -> None:
    panels = {subject["name"]: rows_of(subject) for subject in results["subjects"]}
    there = {route for rows in panels.values() for row in rows for route in row["ratios"]}
    summary(panels, [route for route in ROUTES if route in there], RESULTS, FIGURE)


def main(check: bool) -> int:
    readme = ROOT / "README.md"
    old = readme.read_text()
    before, _, rest = old.partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        print(f"README.md lacks the lines {BEGIN} and {END}", file=sys.stderr)
        return 1
    results = json.loads((RESULTS / "results.json").read_text())
    new = before + text(results) + after
    if check:
        if new != old:
            print("README.md is not what benchmarks/readme.py makes", file=sys.stderr)
        return int(new != old)
    draw(results)
    readme.write_text(new)
    return 0


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
