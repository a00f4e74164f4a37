"""Issue 3: unmodified FUSE programs, against their own kernel mounts. The goals are those of
benchmarks/programs.py: "squashfuse: warm stat ≥ 40× and 4 KiB read ≥ 30× its own uncached kernel
mount, and faster than kernel FUSE with its caches on (stat ≥ 5×, 4 KiB read ≥ 1.5×).
fuse-overlayfs: warm path stat ≤ 2 µs. bindfs: ≥ 8× on stat, ≥ 10× on 4 KiB against its uncached
mount. Loading adds ≤ 5 ms to the program's own start."
"""

import tempfile
from collections.abc import Iterator
from typing import Any

from judge import Row, at_least, at_most, script

LOADING_MS = 5.0


def judge(budget: float) -> Iterator[Row]:
    import programs  # benchmarks/programs.py, which has the goals

    found = script("programs.py", "--rounds", str(max(5, int(budget / 2))))
    with tempfile.TemporaryDirectory(dir="/dev/shm") as area:
        goals = {name: subject.goals for name, subject in programs.subjects(area).items()}
    for name, result in found.items():
        yield from one(name, result, goals[name])


def one(name: str, result: dict[str, Any], goals: dict[tuple[str, str], float]) -> Iterator[Row]:
    for (workload, against), goal in goals.items():
        row = result[workload]
        if against == "ns":
            yield at_most(f"{name}: {workload}", row["inline"], goal, " ns")
        else:
            ratio = row["ratios"][against]
            yield at_least(f"{name} against its {against} mount: {workload}", ratio, goal)
    yield at_most(f"{name}: loading adds", result["mount"]["adds_ms"], LOADING_MS, " ms")
