"""fio jobs on the routes that every program can reach; fio's own figures, in MB/s."""

import json
import os
import shutil
import statistics
from typing import Any

from directfuse._bench.places import Place
from directfuse._bench.routes import Unavailable
from directfuse._bench.turns import Job, Task, measure_jobs

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
    """invalidate=0: else fio drops the page cache before each job, and caches are the point. Of a
    job that fails its words stay, which come before its report."""
    fio = (
        f"fio --name=job --directory=. --size={_SIZE} {options} --time_based "
        f"--runtime={max(int(seconds * 1000), 100)}ms --invalidate=0 --group_reporting "
        "--output-format=json"
    )
    said = "printf '%s\\n' \"$said\""
    return f"said=$({fio}) || {{ {said} | grep -m1 ^fio: >&2; exit 1; }}; {said}"


def _speed(output: str) -> float:
    """MB/s, both directions together. fio may print words before its JSON."""
    try:
        job = json.loads(output[output.index("{") :])["jobs"][0]
        return float(job["read"]["bw_bytes"] + job["write"]["bw_bytes"]) / 1e6
    except (ValueError, KeyError) as error:
        raise Unavailable(f"no report of fio: {error!r}") from error


def _job(name: str, options: str) -> Job:
    def sample(place: Place, seconds: float) -> float:
        each = min(max(seconds / ROUNDS, 0.1), 0.5)
        return _speed(place.once("", _script(options, each))["output"])

    return Job(f"fio {name}", sample)


def measure_fio(task: Task) -> list[dict[str, Any]]:
    """A row for each job: MB/s by route, and as a part of the first."""
    if shutil.which("fio") is None:
        task.notes.append("fio jobs: left out: fio is not installed (Debian: apt install fio)")
        return []
    given = f"{task.base}/fio-input"
    os.mkdir(given)
    jobs = [_job(name, options) for name, options in JOBS.items()]
    return [
        {
            "job": done.name.removeprefix("fio "),
            "mb_s": {name: round(statistics.median(v), 2) for name, v in done.samples.items()},
            "ratios": done.ratios,
            "left_out": done.left_out,
        }
        for done in measure_jobs("fio", jobs, ROUNDS, task, given)
    ]
