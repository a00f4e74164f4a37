"""Unmodified FUSE programs: in-process against their own kernel mounts, side by side.

python benchmarks/programs.py [--json] [--rounds N] [NAME ...]

`uncached` is the same binary behind the kernel with entry and attribute time-outs of 0, its files
opened with O_DIRECT; `cached` is as the program mounts itself. The three take turns in every round,
a few ms each. A goal that is missed is marked with "!", and makes the exit status 1.

As a function: `compare(Subject(words, point), ...)` over any command line.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import directfuse
from directfuse import _kernel, _paths
from directfuse._bench.worker import Worker

STAT, READ = "stat, depth 4", "pread 4 KiB, random"
SAMPLE_SECONDS = 4e-3
BENCH = os.fspath(_paths.bench_helper())
ASK_ALWAYS = "entry_timeout=0,attr_timeout=0,negative_timeout=0"


@dataclass(frozen=True)
class Subject:
    """words: a command line; point: its word that is the mountpoint, an empty directory.

    goals: (workload, against "uncached", "cached" or "ns") -> at least so many times faster, or at
    most so many ns.
    """

    words: list[str]
    point: str
    ask_always: str = ASK_ALWAYS
    goals: dict[tuple[str, str], float] = field(default_factory=dict)


class Lane:
    """One way to the files: a worker process, and how many calls make a sample."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self._counts: dict[str, int] = {}

    def sample(self, workload: str) -> float:
        """ns a call."""
        if workload not in self._counts:
            self.worker.sample(workload, 50)
            ns = self.worker.sample(workload, 50)["ns"]
            self._counts[workload] = max(20, int(SAMPLE_SECONDS * 1e9 / ns))
        return self.worker.sample(workload, self._counts[workload])["ns"]


def _inline(subject: Subject, stack: ExitStack) -> Lane:
    program = shutil.which(subject.words[0])
    assert program is not None
    mount = ["--find", "--mount", program, *subject.words, "--", f"inline:{subject.point}"]
    return Lane(stack.enter_context(Worker([BENCH, *mount])))


def _kernel_mount(subject: Subject, point: str, options: str, stack: ExitStack) -> None:
    words = [point if word == subject.point else word for word in subject.words]
    words[0] = shutil.which(subject.words[0]) or subject.words[0]
    more = ["-o", options] if options else []
    program = stack.enter_context(_kernel.Program([*words, *more, "-f"]))
    program.wait_mounted(15.0)


def _through_kernel(subject: Subject, name: str, options: str, stack: ExitStack) -> Lane:
    point = stack.enter_context(tempfile.TemporaryDirectory(prefix="directfuse-bench-"))
    _kernel_mount(subject, point, options, stack)
    direct = ["--direct"] if name == "uncached" else []
    return Lane(stack.enter_context(Worker([BENCH, "--find", *direct, f"kernel:{point}"])))


def compare(subject: Subject, rounds: int = 20) -> dict[str, Any]:
    """{workload: {"inline": ns, "uncached": ns, "cached": ns, "ratios": {...}}, "mount": {...}}"""
    found: dict[str, Any] = {}
    with ExitStack() as stack:
        lanes = {
            "inline": _inline(subject, stack),
            "uncached": _through_kernel(subject, "uncached", subject.ask_always, stack),
            "cached": _through_kernel(subject, "cached", "", stack),
        }
        for workload in (STAT, READ):
            samples: dict[str, list[float]] = {name: [] for name in lanes}
            for turn in range(rounds):
                names = list(lanes)
                for name in names[turn % 3 :] + names[: turn % 3]:
                    samples[name].append(lanes[name].sample(workload))
            row: dict[str, Any] = {
                name: round(statistics.median(times), 1) for name, times in samples.items()
            }
            row["ratios"] = {
                name: round(
                    statistics.median(
                        theirs / ours
                        for theirs, ours in zip(samples[name], samples["inline"], strict=True)
                    ),
                    2,
                )
                for name in ("uncached", "cached")
            }
            found[workload] = row
    found["mount"] = mount_times(subject)
    found["missed"] = list(_missed(subject, found))
    return found


def mount_times(subject: Subject, rounds: int = 5) -> dict[str, float]:
    """ms from the command to the mount: in-process, and as a process of its own."""
    inline, kernel = [], []
    for _ in range(rounds):
        begin = time.perf_counter()
        with directfuse.mount(subject.words):
            inline.append(time.perf_counter() - begin)
        with tempfile.TemporaryDirectory(prefix="directfuse-bench-") as point, ExitStack() as stack:
            begin = time.perf_counter()
            _kernel_mount(subject, point, "", stack)
            kernel.append(time.perf_counter() - begin)
    inline_ms, kernel_ms = (1e3 * min(times) for times in (inline, kernel))
    return {
        "inline_ms": round(inline_ms, 2),
        "process_ms": round(kernel_ms, 2),
        "adds_ms": round(inline_ms - kernel_ms, 2),
    }


def _missed(subject: Subject, found: dict[str, Any]) -> Iterator[str]:
    for (workload, against), goal in subject.goals.items():
        row = found[workload]
        if against == "ns":
            if row["inline"] > goal:
                yield f"{workload}: {row['inline']} ns, wanted at most {goal}"
        elif row["ratios"][against] < goal:
            yield f"{workload}: {row['ratios'][against]} times {against}, wanted {goal}"
    if found["mount"]["adds_ms"] > 5:
        yield f"loading adds {found['mount']['adds_ms']} ms, wanted at most 5"


# ---- the programs that have goals ----------------------------------------------------------------


def _tree(root: str) -> str:
    deep = f"{root}/a/b/c"
    os.makedirs(deep)
    for index in range(20):
        with open(f"{deep}/file-{index}", "wb") as file:
            file.write(os.urandom(30_000))
    with open(f"{root}/a/data", "wb") as file:
        file.write(os.urandom(120_000))  # squashfuse keeps one block of 128 KiB
    return root


def subjects(area: str) -> dict[str, Subject]:
    """Of the programs that are installed here; their files are made in `area`."""
    source, point = _tree(f"{area}/source"), f"{area}/mount"
    os.mkdir(point)
    found = {}
    squash = {
        (STAT, "uncached"): 40.0,
        (READ, "uncached"): 30.0,
        (STAT, "cached"): 5.0,
        (READ, "cached"): 1.5,
    }
    if shutil.which("mksquashfs"):
        image = f"{area}/image.sqfs"
        command = ["mksquashfs", source, image, "-comp", "zstd", "-quiet", "-no-progress"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        found["squashfuse"] = Subject(["squashfuse", image, point], point, goals=squash)
        found["squashfuse_ll"] = Subject(["squashfuse_ll", image, point], point, "")
    found["bindfs"] = Subject(
        ["bindfs", source, point],
        point,
        f"{ASK_ALWAYS},direct_io",
        {(STAT, "uncached"): 8.0, (READ, "uncached"): 10.0},
    )
    found["fuse-overlayfs"] = Subject(
        ["fuse-overlayfs", "-o", f"lowerdir={source}", point],
        point,
        "timeout=0",
        {(STAT, "ns"): 2000.0},
    )
    found["unionfs"] = Subject(["unionfs", f"{source}=RO", point], point, f"{ASK_ALWAYS},direct_io")
    return {name: subject for name, subject in found.items() if shutil.which(subject.words[0])}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="of the programs; all by default")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if os.geteuid() != 0 and shutil.which("fusermount3") is None:
        print(
            "programs.py: kernel mounts need root or fusermount3 (package fuse3)", file=sys.stderr
        )
        return 2
    results = {}
    with tempfile.TemporaryDirectory(prefix="directfuse-bench-", dir="/dev/shm") as area:
        for name, subject in subjects(area).items():
            if options.names and name not in options.names:
                continue
            results[name] = compare(subject, options.rounds)
            if not options.json:
                _show(name, results[name])
    if options.json:
        print(json.dumps(results, indent=2))
    return 1 if any(result["missed"] for result in results.values()) else 0


def _show(name: str, result: dict[str, Any]) -> None:
    for workload in (STAT, READ):
        row = result[workload]
        print(
            f"{name:15} {workload:20} {row['inline']:9.0f} ns   "
            f"uncached {row['uncached']:9.0f} ns {row['ratios']['uncached']:7.1f}x   "
            f"cached {row['cached']:9.0f} ns {row['ratios']['cached']:7.1f}x"
        )
    mount = result["mount"]
    print(f"{name:15} mount {mount['inline_ms']} ms, as a process {mount['process_ms']} ms")
    for missed in result["missed"]:
        print(f"{name:15} ! {missed}")


if __name__ == "__main__":
    sys.exit(main())
