"""What a Python file system costs: here, in a mount server, and behind its own kernel mount.

python benchmarks/python/filesystems.py [--rounds N] [--json]

The same class, unmodified, is mounted three times: by directfuse here and in a mount server, and by
pyfuse3 or mfusepy through the kernel, in a process of its own. Reads are direct (FOPEN_DIRECT_IO)
and attributes not cached, so that each call reaches the file system everywhere. The three take
turns in every round; the 10th percentile of the rounds is shown, in ns a call. Needs /dev/fuse and
the right to mount.
"""

import argparse
import contextlib
import errno
import json
import os
import signal
import stat
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import directfuse

PAGE = 4096
SIZE = 1 << 20
DATA = os.urandom(SIZE)

#: How many times faster than its kernel mount a 4 KiB read must be, at least.
GOALS = {"pyfuse3": 30.0, "mfusepy": 20.0}


def make_pyfuse3() -> Any:
    import pyfuse3

    class Memory(pyfuse3.Operations):
        """One file, in memory."""

        def entry(self, inode: int) -> Any:
            entry = pyfuse3.EntryAttributes()
            entry.st_ino = inode
            entry.st_mode = stat.S_IFDIR | 0o755 if inode == 1 else stat.S_IFREG | 0o644
            entry.st_size = SIZE
            entry.attr_timeout = entry.entry_timeout = 0
            return entry

        async def getattr(self, inode: int, ctx: Any = None) -> Any:
            return self.entry(inode)

        async def lookup(self, parent_inode: int, name: bytes, ctx: Any = None) -> Any:
            if name != b"file":
                raise pyfuse3.FUSEError(errno.ENOENT)
            return self.entry(2)

        async def open(self, inode: int, flags: int, ctx: Any) -> Any:
            return pyfuse3.FileInfo(fh=inode, direct_io=True)

        async def read(self, fh: int, off: int, size: int) -> bytes:
            return DATA[off : off + size]

        async def write(self, fh: int, off: int, buf: bytes) -> int:
            return len(buf)

    return Memory()


def make_mfusepy() -> Any:
    import mfusepy

    class Memory(mfusepy.Operations):  # type: ignore[misc]
        """One file, in memory."""

        use_ns = True

        def getattr(self, path: str, fh: Any = None) -> dict[str, int]:
            if path == "/":
                return {"st_mode": stat.S_IFDIR | 0o755, "st_nlink": 2}
            if path != "/file":
                raise OSError(errno.ENOENT, path)
            return {"st_mode": stat.S_IFREG | 0o644, "st_nlink": 1, "st_size": SIZE}

        def readdir(self, path: str, fh: int) -> list[str]:
            return [".", "..", "file"]

        def open(self, path: str, flags: int) -> int:
            return 1

        def read(self, path: str, size: int, offset: int, fh: int) -> bytes:
            return DATA[offset : offset + size]

        def write(self, path: str, data: bytes, offset: int, fh: int) -> int:
            return len(data)

    return Memory()


# ---- the kernel's side and the server's: this script again, as a program ----


def serve_pyfuse3(mountpoint: str) -> None:
    import pyfuse3
    import trio

    pyfuse3.init(make_pyfuse3(), mountpoint, {"fsname=directfuse-benchmark"})
    try:
        trio.run(pyfuse3.main)
    finally:
        pyfuse3.close()


def serve_mfusepy(mountpoint: str) -> None:
    import mfusepy

    options = {"direct_io": True, "attr_timeout": 0, "entry_timeout": 0}
    mfusepy.FUSE(make_mfusepy(), mountpoint, foreground=True, nothreads=True, **options)


MAKE = {"pyfuse3": make_pyfuse3, "mfusepy": make_mfusepy}
SERVE = {"pyfuse3": serve_pyfuse3, "mfusepy": serve_mfusepy}


def program(kind: str, mountpoint: str) -> list[str]:
    return [sys.executable, os.path.abspath(__file__), "--serve", kind, mountpoint]


@contextlib.contextmanager
def kernel_mount(kind: str, directory: str) -> Iterator[str]:
    command = program(kind, directory)
    process = subprocess.Popen(command)
    try:
        for _ in range(500):
            if os.path.exists(f"{directory}/file"):
                break
            if process.poll() is not None:
                sys.exit(f"{kind} did not mount through the kernel")
            time.sleep(0.01)
        yield f"{directory}/file"
    finally:
        subprocess.run(["umount", directory], check=False)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(5)
        process.send_signal(signal.SIGKILL)
        process.wait()


# ---- measuring ----


def calls(names: Any, path: str) -> dict[str, Callable[[], object]]:
    fd = getattr(names, "os_open", getattr(names, "open", None))(path, os.O_RDWR)
    page = bytes(PAGE)
    return {
        "pread 4 KiB": lambda: names.pread(fd, PAGE, 8192),
        "pread 64 KiB": lambda: names.pread(fd, 65536, 0),
        "pwrite 4 KiB": lambda: names.pwrite(fd, page, 8192),
        "stat": lambda: names.stat(path),
        "close": lambda: names.close(fd),
    }


def timed(call: Callable[[], object], count: int) -> float:
    start = time.perf_counter_ns()
    for _ in range(count):
        call()
    return (time.perf_counter_ns() - start) / count


def measure(kind: str, rounds: int) -> list[dict[str, Any]]:
    point = f"/directfuse-benchmark-{kind}"
    rows = []
    with (
        tempfile.TemporaryDirectory() as directory,
        kernel_mount(kind, directory) as real,
        directfuse.mount(MAKE[kind](), point) as mount,
        directfuse.mount(program(kind, f"{point}-server"), placement="server"),
    ):
        ours, theirs = calls(directfuse, f"{point}/file"), calls(os, real)
        served = calls(directfuse, f"{point}-server/file")
        for name in list(ours)[:-1]:
            samples: list[tuple[float, float, float]] = [
                (timed(theirs[name], 100), timed(ours[name], 2000), timed(served[name], 100))
                for _ in range(rounds)
            ]
            kernel, inline, server = (
                statistics.quantiles(side, n=10, method="inclusive")[0]
                for side in zip(*samples, strict=True)
            )
            row = {"kind": kind, "op": name, "kernel": kernel, "inline": inline, "server": server}
            rows.append(row)
        ours["close"](), served["close"](), theirs["close"]()
        assert mount.stats().ops["read"].calls >= 2000 * rounds
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--serve", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        SERVE[options.serve[0]](options.serve[1])
        return 0
    rows = [row for kind in MAKE for row in measure(kind, options.rounds)]
    if options.json:
        print(json.dumps({"python": sys.version, "load": os.getloadavg()[0], "rows": rows}))
        return 0
    head = ("kernel, ns", "inline, ns", "server, ns")
    print(f"{'':26}" + "".join(f"{word:>12}" for word in head) + f"{'inline':>9}{'server':>9}")
    for row in rows:
        times = row["kernel"] / row["inline"]
        goal = f"  (goal {GOALS[row['kind']]:.0f})" if row["op"] == "pread 4 KiB" else ""
        print(
            f"{row['kind']:10}{row['op']:16}{row['kernel']:12.0f}{row['inline']:12.0f}"
            f"{row['server']:12.0f}{times:8.1f}x{row['kernel'] / row['server']:8.1f}x{goal}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
