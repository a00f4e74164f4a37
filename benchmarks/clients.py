"""What idle clients of a mount server cost: memory of the clients and of the server, for each.

    python benchmarks/clients.py [COUNT] [COMMAND...]

Forks COUNT children (1,000) that have made one call into the mount and are idle; and as many that
have made one of an ordinary path, without a mount. What a child has more in the first case is what
being a client costs it: proportional set size (PSS), where what processes share is divided among
them. Python's collector is off, for it touches every page of its objects in each child.
"""

import gc
import os
import signal
import sys
import time
from pathlib import Path

import directfuse


def pss(pid: int | str) -> int:
    """KiB."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1])
    raise ValueError(pid)


def server_of(point: str) -> int:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if words[0].endswith(b"directfuse-server") and point.encode() in words:
                return int(entry.name)
    raise LookupError(point)


def children(count: int, point: str) -> list[int]:
    """Forked, each idle after one call."""
    pids = []
    ready, go = os.pipe()
    for _ in range(count):
        pid = os.fork()
        if pid == 0:
            try:
                directfuse.stat(point)
                os.write(go, b"x")
                signal.pause()
            finally:
                os._exit(1)
        pids.append(pid)
    left = count
    while left:
        left -= len(os.read(ready, left))
    os.close(ready)
    os.close(go)
    return pids


def end(pids: list[int]) -> None:
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def measure(count: int, point: str) -> float:
    """KiB of all children."""
    pids = children(count, point)
    total = sum(pss(pid) for pid in pids)
    end(pids)
    return total


def main() -> None:
    gc.disable()
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    command = sys.argv[2:] or ["memfs", "/clients"]
    before = measure(count, "/usr")
    with directfuse.mount(command, placement="server") as mount:
        server = server_of(mount.mountpoint)
        alone = pss(server)
        pids = children(count, mount.mountpoint)
        after = sum(pss(pid) for pid in pids)
        grown = pss(server) - alone
        descriptors = len(os.listdir(f"/proc/{server}/fd"))
        end(pids)
        limit = time.monotonic() + 60
        while len(os.listdir(f"/proc/{server}/fd")) > 64 and time.monotonic() < limit:
            time.sleep(0.1)
        left = pss(server) - alone
        print(f"{count} idle clients of {' '.join(command)}, PSS for each of them:")
        print(f"  client: {(after - before) / count:8.1f} KiB more than without a mount")
        print(f"  server: {grown / count:8.1f} KiB, {descriptors} descriptors in all")
        print(f"  server: {left / count:8.1f} KiB when they have ended")


if __name__ == "__main__":
    main()
