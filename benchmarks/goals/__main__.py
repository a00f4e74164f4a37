"""The speeds that were asked for, each measured here and held against its goal.

python benchmarks/goals [--budget SECONDS] [spine|loaded|servers|interposed|python_side]...

On a quiet machine, as root (kernel mounts); some minutes for all. Exit status 1 if a goal is
missed.
"""

import argparse
import importlib
import os
import sys
from pathlib import Path

sys.path.insert(1, str(Path(__file__).parent.parent))  # programs.py, which loaded.py asks

from judge import Row

from directfuse._bench.machine import distance

PARTS = ["spine", "loaded", "servers", "interposed", "python_side"]  # issues 2 to 6


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="goals", description=__doc__.partition("\n")[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--budget", type=float, default=40, help="seconds of a part  [40]")
    options = parser.parse_args()
    unknown = set(options.parts) - set(PARTS)
    if unknown:
        parser.error(f"no part {', '.join(sorted(unknown))}")
    return options


def show(part: str, rows: list[Row]) -> None:
    width = max(len(row.what) for row in rows)
    print(f"-- {part}")
    for row in rows:
        verdict = "" if row.met else "MISSED"
        print(f"{row.what:{width}}  {row.goal:>10}  {row.measured:>12}  {verdict}", flush=True)


def main() -> int:
    options = arguments()
    everything: list[Row] = []
    for part in options.parts or PARTS:
        rows = list(importlib.import_module(part).judge(options.budget))
        show(part, rows)
        everything += rows
    met = sum(row.met for row in everything)
    print(
        f"{met} of {len(everything)} goals met; load {os.getloadavg()[0]:.1f}; "
        f"CPUs {distance()} ns apart now, there and back"
    )
    return 0 if met == len(everything) else 1


if __name__ == "__main__":
    sys.exit(main())
