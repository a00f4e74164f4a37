"""Issue 4: mount servers and helper processes."""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator

import helpers
from judge import (
    CACHED,
    HELPER,
    KERNEL,
    SERVER,
    BenchRow,
    Row,
    at_least,
    at_most,
    bench,
    output_of,
    time_of,
)

import directfuse
from directfuse import _paths

#: "From C, warm, inside the timeouts: stat ≤ 120 ns, 4 KiB pread ≤ 250 ns (copy included)"
WARM = {"stat, depth 2": 120.0, "pread 4 KiB, hot": 250.0}
READDIR = 5.0  # "readdir of 1000 ≥ 5× kernel FUSE"
MISS = 2000.0  # "A miss: ≤ 2 µs with both cores free"
ASLEEP = 8000.0  # "≤ 8 µs when the server sleeps"
WAKING = 1.1  # beside what the machine's own wake-ups cost, in the same rounds
COLD = 2.0  # "1 MiB cold read ≥ 2× kernel FUSE uncached"
#: "Helper process: stat of a path of depth 4 ≥ 3× its own kernel mount, sequential 4 KiB reads
#: ≥ 3×"
HELPERS = {"stat, depth 4": 3.0, "pread 4 KiB, sequential": 3.0}
CLIENT_KIB = 64.0  # "1,000 idle clients: ≤ 64 KiB each"; of so many:
CLIENTS = 200


def judge(budget: float) -> Iterator[Row]:
    found = bench(budget, [KERNEL, CACHED, SERVER, HELPER], "--no-python")
    memfs, passthrough = found["by_op"]["memfs"], found["by_op"]["passthrough"]
    yield from warm(memfs)
    yield from never_slower("memfs", memfs)
    yield from never_slower("passthrough", passthrough)
    with busy_processors():
        print("servers: all processors are kept busy now, on purpose", file=sys.stderr)
        busy = bench(budget, [KERNEL, SERVER], "--no-python")["by_op"]
    for name, rows in busy.items():
        yield from never_slower(f"{name}, all processors busy", rows)
    yield from helper_of_memfs(memfs)
    yield from helpers.judge()
    only = ("--only", "fstat", "--breakdown", "--no-python", "--backend", "memfs")
    yield from gathered()
    parts = bench(8, [SERVER, KERNEL, "inline"], *only).get("breakdown", [])
    times = {row["op"]: row["server"] for row in parts}
    miss = float(times.get("pread 4 KiB, random") or "nan")
    yield at_most("a miss in a server: pread 4 KiB of dummyfs", miss, MISS, " ns")
    yield from asleep()
    yield at_most(f"an idle client, of {CLIENTS}", idle_client_kib(), CLIENT_KIB, " KiB")


def warm(rows: dict[str, BenchRow]) -> Iterator[Row]:
    for op, goal in WARM.items():
        yield at_most(f"server, memfs, warm: {op}", time_of(rows.get(op), SERVER), goal, " ns")
    readdir = rows.get("readdir of 1000")
    ratio = time_of(readdir, KERNEL) / time_of(readdir, SERVER)
    yield at_least(f"server, memfs against {KERNEL}: readdir of 1000", ratio, READDIR)
    large = rows.get("pread 1 MiB, random")
    ratio = time_of(large, KERNEL) / time_of(large, SERVER)
    yield at_least(f"server, memfs against {KERNEL}: pread 1 MiB", ratio, COLD)
    with directfuse.mount("memfs /goals-trips", placement="server") as mount:
        path = f"{mount.mountpoint}/file"
        with directfuse.open(path, "wb") as file:
            file.write(bytes(1 << 16))
        fd = directfuse.os_open(path, os.O_RDONLY)
        calls = {
            "stat": lambda: directfuse.stat(path),
            "pread 4 KiB": lambda: directfuse.pread(fd, 4096, 8192),
        }
        for name, call in calls.items():
            call()
            before = mount.stats().trips
            for _ in range(100):
                call()
            trips = mount.stats().trips - before
            yield at_most(f"server, memfs, warm: trips of 100 × {name}", trips, 0, "")
        directfuse.close(fd)


def never_slower(name: str, rows: dict[str, BenchRow]) -> Iterator[Row]:
    """ "never slower than the same plugin's kernel mount, also when both cores are busy": the row
    that comes nearest to it."""
    ratios = {op: time_of(row, KERNEL) / time_of(row, SERVER) for op, row in rows.items()}
    op = min(ratios, key=lambda op: ratios[op])
    yield at_least(f"server, {name} against {KERNEL}, its worst row: {op}", ratios[op], 1.0)


def gathered() -> Iterator[Row]:
    """Of a file system that asks for its writes to be gathered: as never_slower()."""
    name = "memfs:writeback_cache"
    words = ("--backend", name, "--only", "pwrite 4 KiB*", "--no-python")
    rows = bench(8, [CACHED, SERVER], *words)["by_op"][name]
    for op, row in rows.items():
        ratio = time_of(row, CACHED) / time_of(row, SERVER)
        yield at_least(f"server, {name} against {CACHED}: {op}", ratio, 1.0)


@contextlib.contextmanager
def busy_processors() -> Iterator[None]:
    """Each has a program of its own that never sleeps."""
    program = "import os, sys; os.sched_setaffinity(0, {int(sys.argv[1])})\nwhile True: pass"
    with contextlib.ExitStack() as ends:
        for processor in os.sched_getaffinity(0):
            process = subprocess.Popen([sys.executable, "-c", program, str(processor)])
            ends.callback(process.wait)
            ends.callback(process.kill)
        yield


def helper_of_memfs(rows: dict[str, BenchRow]) -> Iterator[Row]:
    for op, goal in HELPERS.items():
        ratio = time_of(rows.get(op), KERNEL) / time_of(rows.get(op), HELPER)
        yield at_least(f"helper, memfs against {KERNEL}: {op}", ratio, goal)


def asleep() -> Iterator[Row]:
    """A call from C after a pause in which both sides went to sleep, and what two processes need to
    wake each other after the same pause, in the same rounds."""
    libexec = _paths.native_dir() / "libexec"
    point = "/goals-asleep"
    words = [f"{point}/inner/file", "300", os.fspath(libexec / "dummyfs"), point]
    lines = output_of(os.fspath(libexec / "df-asleep"), *words).splitlines()
    times = {name: float(ns) for name, ns in (line.split("\t") for line in lines)}
    yield at_most("a trip to a server that sleeps", times["trip"], ASLEEP, " ns")
    ratio = times["trip"] / times["both"]
    what = f"the same, against two processes that wake each other ({times['both']:.0f} ns)"
    yield at_most(what, ratio, WAKING, "×")


def idle_client_kib() -> float:
    """What each of many forked clients adds to the server."""
    point = "/goals-idle-clients"
    children: list[int] = []
    with directfuse.mount(["memfs", point], placement="server"):
        directfuse.listdir(point)
        server = server_of(point)
        before = rss_kib(server)
        stop, go = os.pipe()
        for _ in range(CLIENTS):
            pid = os.fork()
            if pid == 0:
                os.close(go)
                directfuse.stat(point)
                os.read(stop, 1)  # until the parent closes its end
                os._exit(0)
            children.append(pid)
        time.sleep(1)
        after = rss_kib(server)
        os.close(go)
        for pid in children:
            os.waitpid(pid, 0)
        os.close(stop)
    return (after - before) / CLIENTS


def server_of(point: str) -> int:
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        if words[0].endswith(b"directfuse-server") and os.fsencode(point) in words:
            return int(name)
    raise RuntimeError(f"no mount server of {point}")


def rss_kib(pid: int) -> float:
    """Shared memory included, whoever shares it."""
    with open(f"/proc/{pid}/status") as file:
        return float(next(line.split()[1] for line in file if line.startswith("VmRSS:")))
