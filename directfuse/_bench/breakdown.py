"""Where the time of one call goes: the door and the core, the host and the plugin, Python; and what
the same call costs by way of a server and of the kernel. dummyfs answers at once.
"""

import os
import subprocess
from pathlib import Path
from typing import Any

from directfuse import _paths
from directfuse._bench.subject import Subject

__all__ = ["COLUMNS", "breakdown_rows", "dummy", "measure_dispatch"]

#: Workload of dummyfs -> row of df-dispatch.
_SAME = {
    "stat, depth 2": "stat, depth 2",
    "open+close": "open+close",
    "pread 4 KiB, random": "pread",
    "pwrite 4 KiB, random": "pwrite",
}

#: Key -> heading.
COLUMNS = {
    "core": "door and core",
    "host": "host and plugin",
    "inline": "= inline, C",
    "python": "Python adds",
    "server": "server",
    "run": "run",
    "kernel": "kernel FUSE",
}


def dummy() -> Subject:
    """The file system that does nothing."""
    program = os.fspath(_paths.native_dir() / "libexec/dummyfs")
    return Subject(
        name="dummyfs",
        words=[program, Subject.POINT],
        library=program,
        program=program,
        finds=True,
        scribble=True,
        patterns=("breakdown",),
        routes=("kernel FUSE", "inline", "inline, Python", "server", "run"),
    )


def measure_dispatch(rounds: int) -> dict[str, float]:
    """ns of door and core, by row of df-dispatch: all that is above an op that does nothing."""
    program: Path = _paths.native_dir() / "libexec/df-dispatch"
    done = subprocess.run([program, str(rounds)], capture_output=True, text=True, check=True)
    rows = (line.split("\t") for line in done.stdout.splitlines()[1:])
    return {row[0]: float(row[3]) for row in rows}


def breakdown_rows(dispatch: dict[str, float], rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """{"op", and the keys of COLUMNS in ns} from what was measured of dummyfs."""
    found = []
    for row in rows:
        times = {route: values["p10"] for route, values in row["routes"].items()}
        inline, core = times.get("inline"), dispatch.get(_SAME.get(row["op"], ""))
        if inline is None or core is None:
            continue
        python = times.get("inline, Python")
        found.append(
            {
                "op": row["op"],
                "core": core,
                "host": round(max(inline - core, 0.0), 1),
                "inline": inline,
                "python": round(python - inline, 1) if python is not None else None,
                "server": times.get("server"),
                "run": times.get("run"),
                "kernel": times.get("kernel FUSE"),
            }
        )
    return found
