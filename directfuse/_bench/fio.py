"""fio jobs on the routes that every program can reach; fio's own figures, in MB/s."""

import json
import os
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

from directfuse._bench.measure import paired
from directfuse._bench.places import Place, open_places
from directfuse._bench.routes import Unavailable
from directfuse._bench.subject import Subject

__all__ = ["JOBS", "measure_fio"]

ROUNDS = 7
_SIZE = "16m"

#: Name -> fio's options. Two jobs at the same time are two processes on files of their own.
JOBS = {
    "randread 4k, psync": "--rw=randread --bs=4k --ioengine=psync",
    "randwrite 4k, psync": "--rw=randwrite --bs=4k --ioengine=psync",
    "read 1m, psync": "--rw=read --bs=1m --ioengine=psync",
    "write 1m, psync": "--rw=write --bs=1m --ioengine=psync",
    "randread 4k, mmap": "--rw=randread --bs=4k --ioengine=mmap",
    "randread 4k, psync, 2 jobs": "--rw=randread --bs=4k --ioengine=psync --numjobs=2",
    "randrw 4k, libaio, depth 8": "--rw=randrw --bs=4k --ioengine=libaio --iodepth=8",
}


def _script(options: str, seconds: float) -> str:
    """invalidate=0: else fio drops the page cache before each job, and caches are the point."""
    return (
        f"fio --name=job --directory=. --size={_SIZE} {options} --time_based "
        f"--runtime={max(int(seconds * 1000), 100)}ms --invalidate=0 --group_reporting "
        "--output-format=json"
    )


def _speed(output: str) -> float:
    """MB/s, both directions together. fio may print words before its JSON."""
    report = json.loads(output[output.index("{") :])
    job = report["jobs"][0]
    return float(job["read"]["bw_bytes"] + job["write"]["bw_bytes"]) / 1e6


def _measure_one(
    name: str, places: Sequence[Place], seconds: float, failed: dict[str, str]
) -> dict[str, Any]:
    speeds: dict[str, list[float]] = {}
    end = time.monotonic() + seconds
    each = min(max(seconds / len(places) / 6, 0.1), 0.5)
    for number in range(ROUNDS):
        if number > 0 and time.monotonic() > end:
            break
        for turn in range(len(places)):
            place = places[(turn + number) % len(places)]
            if place.name in failed:
                continue
            try:
                output = place.once("", _script(JOBS[name], each))["output"]
                speeds.setdefault(place.name, []).append(_speed(output))
            except (Unavailable, ValueError, KeyError) as error:
                failed[place.name] = str(error).splitlines()[-1] if str(error) else repr(error)
                speeds.pop(place.name, None)
    base = speeds.get(places[0].name)
    return {
        "job": name,
        "mb_s": {route: round(sorted(v)[len(v) // 2], 2) for route, v in speeds.items()},
        "ratios": {
            route: paired(values, base)
            for route, values in speeds.items()
            if base and route != places[0].name
        },
        "left_out": failed,
    }


def measure_fio(
    subject: Subject,
    wanted: Sequence[str],
    base: str,
    notes: list[str],
    end: float,
    progress: Callable[[str], None],
) -> list[dict[str, Any]]:
    """A row for each job: MB/s by route, and as a part of the first. No job begins when it is
    `end`, of time.monotonic(). What is left out is said in `notes`."""
    if shutil.which("fio") is None:
        notes.append("fio jobs: left out: fio is not installed (Debian: apt install fio)")
        return []
    given = f"{base}/fio-input"
    os.mkdir(given)
    rows = []
    late: list[str] = []
    with ExitStack() as stack:
        places, missing = open_places(subject, wanted, base, given, stack)
        notes += missing
        for index, name in enumerate(JOBS if places else []):
            share = (end - time.monotonic()) / (len(JOBS) - index)
            if share <= 0:
                late.append(name)
                continue
            progress(f"{subject.name}: fio {name}")
            failed: dict[str, str] = {}
            rows.append(_measure_one(name, places, share, failed))
            notes += [
                f"fio, {name} on {subject.name}, {route}: left out: {why}"
                for route, why in failed.items()
            ]
    if late:
        notes.append(f"fio on {subject.name}: left out: the time was up: {'; '.join(late)}")
    return rows
