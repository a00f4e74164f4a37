"""Where it is measured: the machine and the versions, how quiet it is, where files can live."""

import os
import platform
import shutil
import subprocess
import tempfile
import time
from importlib.metadata import version
from typing import Any

from directfuse import _paths

__all__ = [
    "busy_words",
    "default_directory",
    "disk_directory",
    "distance",
    "file_system_of",
    "machine",
]

_BUSY = 0.5  # the part of its CPUs' time from which a machine is called busy
_WATCH_SECONDS = 1.0


def default_directory() -> str:
    """In memory, where there is such a place."""
    shared = "/dev/shm"
    return shared if os.access(shared, os.W_OK) else tempfile.gettempdir()


def disk_directory() -> str | None:
    """One on a disk, or None."""
    for path in ("/var/tmp", tempfile.gettempdir(), os.path.expanduser("~")):
        if os.access(path, os.W_OK) and file_system_of(path) not in ("tmpfs", "ramfs", "?"):
            return path
    return None


def file_system_of(path: str) -> str:
    """Its type, as the kernel's mount table has it."""
    best, found = "", "?"
    real = os.path.realpath(path)
    with open("/proc/self/mountinfo") as table:
        for line in table:
            head, _, tail = line.partition(" - ")
            point = head.split(" ")[4]
            inside = real == point or real.startswith(point.rstrip("/") + "/")
            if inside and len(point) >= len(best):
                best, found = point, tail.split(" ")[0]
    return found


def busy_words() -> str | None:
    """A warning, if this machine does other things too."""
    load, cpus = os.getloadavg()[0], os.cpu_count() or 1
    busy = _busy_now()
    if busy <= _BUSY:  # whatever the load was a minute ago, perhaps our own
        return None
    return (
        f"this machine is busy (load {load:.1f} on {cpus} CPUs, {100 * busy:.0f} % of their time "
        "in use before anything was measured): trust ratios, and those with narrow intervals"
    )


def _busy_now() -> float:
    """The part of all CPUs' time that others use, or that a host gives to others."""
    first = _cpu_times()
    time.sleep(_WATCH_SECONDS)
    spent = [now - then for now, then in zip(_cpu_times(), first, strict=True)]
    idle = spent[3] + spent[4]  # idle and iowait, proc_stat(5)
    return 1 - idle / max(sum(spent), 1)


def _cpu_times() -> list[int]:
    with open("/proc/stat") as file:
        return [int(word) for word in file.readline().split()[1:9]]


def machine(directory: str | None) -> dict[str, Any]:
    """What the results were measured on, and with."""
    plain = directory or default_directory()
    return {
        "processor": _processor(),
        "cpus": os.cpu_count(),
        "memory GiB": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "kernel": platform.release(),
        "system": _system(),
        "python": platform.python_version(),
        "directfuse": version("directfuse"),
        "libfuse": _libfuse(),
        "plain directory": f"{plain} ({file_system_of(plain)})",
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "load before": round(os.getloadavg()[0], 2),
        "ns between CPUs before": distance(),
    }


def distance() -> int:
    """ns that a line of memory takes to another processor and back, of which a trip to a mount
    server is made (benchmarks/native/distance.h); 0: not known."""
    done = subprocess.run([_paths.bench_helper(), "--distance"], capture_output=True, text=True)
    return int(done.stdout or 0)


def _processor() -> str:
    with open("/proc/cpuinfo") as file:
        names = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _system() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "")
    except OSError:
        return ""


def _libfuse() -> str:
    tool = shutil.which("fusermount3")
    if tool is None:
        return "no fusermount3"
    done = subprocess.run([tool, "-V"], capture_output=True, text=True, check=False)
    return done.stdout.strip().rpartition(" ")[2]
