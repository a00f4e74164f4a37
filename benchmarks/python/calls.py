"""What a Python call costs: directfuse on memfs inline against `os` on a plain file, same bytes.

python benchmarks/python/calls.py [--backend NAME] [--rounds N] [--directory DIR] [--json]

Both take turns in every round; the 10th percentile of the rounds is shown, in ns a call, with the
cost of the empty loop subtracted. The directory should be on tmpfs, so that no disk is measured.
`beside` rows run with a second thread that only computes: what holding the GIL is worth.
"""

import argparse
import builtins
import json
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import directfuse

PAGE = 4096
GOALS = {
    "pread 4 KiB": 3.0,
    "stat": 4.0,
    "open(p, 'rb').read() 8 KiB": 10.0,
    "open(p).read() 8 KiB": 10.0,
}
"""How many times faster directfuse on memfs must be, at least."""

BESIDE_NS = 100_000_000  # a round beside another thread: many switches of 5 ms

Call = Callable[[int], None]


def timed(code: str, **names: Any) -> Call:
    """A function that runs the code so many times, as the body of a loop."""
    source = f"def run(count):\n    for _ in range(count):\n        {code}\n"
    exec(source, names)
    run: Call = names["run"]
    return run


EMPTY = timed("pass")


#: Each operation, as source over the names that names_of() gives.
OPERATIONS = {
    "stat": "stat(path)",
    "stat, keyword": "stat(path, follow_symlinks=False)",
    "fstat": "fstat(fd)",
    "access": "access(path, 4)",
    "os_open, close": "close(os_open(path, 524288))",
    "pread 4 KiB": "pread(fd, 4096, 0)",
    "pread 64 B": "pread(fd, 64, 0)",
    "pread 256 KiB": "pread(big, 262144, 0)",
    "preadv 4 KiB": "preadv(fd, buffers, 0)",
    "pwrite 4 KiB": "pwrite(fd, page, 0)",
    "lseek": "lseek(fd, 0, 0)",
    "listdir of 100": "listdir(directory)",
    "scandir of 100, is_file": "[entry.is_file() for entry in scandir(directory)]",
    "mkdir, rmdir": "mkdir(new); rmdir(new)",
    "open rb, read, close": "file = open(path, 'rb'); file.read(); file.close()",
    "open r, read, close": "file = open(path); file.read(); file.close()",
    "open(p, 'rb').read() 8 KiB": "open(two, 'rb').read()",
    "open(p).read() 8 KiB": "open(two).read()",
}


def names_of(functions: dict[str, Any], path: str) -> dict[str, Any]:
    """What the operations' source sees: the functions of one side, and its files."""
    return functions | {
        "path": path,
        "two": f"{path}.two",
        "fd": functions["os_open"](path, os.O_RDWR | os.O_CLOEXEC),
        "big": functions["os_open"](f"{path}.big", os.O_RDONLY | os.O_CLOEXEC),
        "buffers": [bytearray(PAGE)],
        "page": bytes(PAGE),
        "directory": f"{path}.directory",
        "new": f"{path}.new",
    }


def rows(plain: str, ours: str) -> Iterator[tuple[str, Call, Call]]:
    """(name, by os, by directfuse) of each operation; the file has one page."""
    os_names = {name: getattr(os, name) for name in dir(os) if not name.startswith("_")}
    own_names = {name: getattr(directfuse, name) for name in directfuse.__all__}
    sides = [
        names_of(os_names | {"os_open": os.open, "open": builtins.open}, plain),
        names_of(own_names, ours),
    ]
    try:
        for name, code in OPERATIONS.items():
            first, second = (timed(code, **names) for names in sides)
            yield name, first, second
    finally:
        for names in sides:
            names["close"](names["fd"])
            names["close"](names["big"])


def prepare(functions: Any, opener: Callable[..., Any], path: str) -> None:
    """Files of one page, of two and of 256 KiB, a directory of 100 names."""
    for name, size in ((path, PAGE), (f"{path}.two", 2 * PAGE), (f"{path}.big", 256 << 10)):
        with opener(name, "wb") as file:
            file.write(b"x" * size)
    functions.mkdir(f"{path}.directory")
    for number in range(100):
        functions.mknod(f"{path}.directory/a-file-{number}")


def count_for(call: Call, nanoseconds: int = 2_000_000) -> int:
    """Turns that take about so long."""
    count = 1
    while True:
        start = time.perf_counter_ns()
        call(count)
        spent = time.perf_counter_ns() - start
        if spent > nanoseconds // 4:
            return max(1, count * nanoseconds // spent)
        count *= 4


def low(samples: list[float]) -> float:
    """The 10th percentile: others disturb in one direction only."""
    return statistics.quantiles(samples, n=10, method="inclusive")[0]


def compare(first: Call, second: Call, rounds: int) -> tuple[float, float]:
    """ns a call of each, the rounds of both alternating."""
    calls = (EMPTY, first, second)
    counts = [count_for(call) for call in calls]
    samples: list[list[float]] = [[], [], []]
    for _ in range(rounds):
        for call, count, sample in zip(calls, counts, samples, strict=True):
            start = time.perf_counter_ns()
            call(count)
            sample.append((time.perf_counter_ns() - start) / count)
    empty, theirs, ours = map(low, samples)
    return theirs - empty, ours - empty


@contextmanager
def a_thread_that_computes() -> Iterator[None]:
    stop = False

    def work() -> None:
        while not stop:
            sum(range(1000))

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stop = True
        thread.join()


def compare_beside(first: Call, second: Call, rounds: int) -> tuple[float, float]:
    """ns a call of each while another thread computes: the medians."""
    samples: list[list[float]] = [[], []]
    with a_thread_that_computes():
        for _ in range(rounds):
            for call, sample in zip((first, second), samples, strict=True):
                count, start = 0, time.perf_counter_ns()
                while (spent := time.perf_counter_ns() - start) < BESIDE_NS:
                    call(500)
                    count += 500
                sample.append(spent / count)
    theirs, ours = map(statistics.median, samples)
    return theirs, ours


def measure(backend: str, directory: str | None, rounds: int) -> list[dict[str, Any]]:
    """All rows."""
    found = []
    with tempfile.TemporaryDirectory(dir=directory) as base:
        os.mkdir(f"{base}/source")
        source = [f"{base}/source"] if backend == "passthrough" else []
        plain, ours = f"{base}/file", f"{base}/inline/file"
        with directfuse.mount([backend, *source, f"{base}/inline"]):
            prepare(os, builtins.open, plain)
            prepare(directfuse, directfuse.open, ours)
            for name, first, second in rows(plain, ours):
                os_ns, own_ns = compare(first, second, rounds)
                found.append({"op": name, "os": os_ns, "directfuse": own_ns})
                if name in GOALS:
                    os_ns, own_ns = compare_beside(first, second, max(rounds // 4, 3))
                    found.append({"op": f"{name}, beside", "os": os_ns, "directfuse": own_ns})
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--backend", choices=("memfs", "passthrough"), default="memfs")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--directory", default="/dev/shm" if os.path.isdir("/dev/shm") else None)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = measure(options.backend, options.directory, options.rounds)
    goals = GOALS if options.backend == "memfs" else {}
    if options.json:
        print(json.dumps({"python": sys.version, "load": os.getloadavg()[0], "rows": found}))
    else:
        print(f"{'':28}{'os, ns':>10}{'directfuse':>12}{'faster':>9}")
        for row in found:
            times = row["os"] / row["directfuse"]
            goal = f"  (goal {goals[row['op']]:.0f})" if row["op"] in goals else ""
            print(f"{row['op']:28}{row['os']:10.0f}{row['directfuse']:12.0f}{times:8.1f}x{goal}")
    missed = [row["op"] for row in found if row["os"] < goals.get(row["op"], 0) * row["directfuse"]]
    if missed:
        print(f"goals missed: {', '.join(missed)}", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
