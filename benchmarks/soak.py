"""A mount server under mixed load whose clients are killed: what grows?

    python benchmarks/soak.py [MINUTES]

Four client processes create, write, lock, list, rename and unlink in one memfs; twice a second one
of them is killed at any instant and another is forked. Ten times in MINUTES (1) a line tells what
the server and this process have: proportional memory, descriptors, threads; and what lies in
/dev/shm. At the end nothing may be left open: the mount has to end.
"""

import fcntl
import os
import random
import signal
import sys
import time
from pathlib import Path

from clients import pss, server_of

import directfuse

CLIENTS = 4
POINT = "/soak"


def work(number: int) -> None:
    rng = random.Random(os.getpid())
    own = f"{POINT}/{number}"
    if not directfuse.path.isdir(own):
        directfuse.mkdir(own)
    while True:
        path = f"{own}/{rng.randrange(50)}"
        fd = directfuse.os_open(path, os.O_CREAT | os.O_RDWR)
        directfuse.pwrite(fd, bytes(rng.randrange(1, 100_000)), rng.randrange(100_000))
        directfuse.pread(fd, 65536, 0)
        directfuse.lockf(fd, fcntl.LOCK_EX)
        directfuse.rename(path, f"{own}/{rng.randrange(50)}")
        shared = directfuse.os_open(f"{POINT}/shared", os.O_CREAT | os.O_RDWR | os.O_APPEND)
        directfuse.flock(shared, fcntl.LOCK_EX)
        directfuse.write(shared, b"x" * 100)
        if directfuse.fstat(shared).st_size > 1_000_000:
            directfuse.ftruncate(shared, 0)
        directfuse.close(shared)
        directfuse.listdir(own)
        directfuse.close(fd)


def start(number: int) -> int:
    pid = os.fork()
    if pid == 0:
        try:
            work(number)
        finally:
            os._exit(1)
    return pid


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    status = os.waitpid(pid, 0)[1]
    if os.waitstatus_to_exitcode(status) != -signal.SIGKILL:
        raise RuntimeError(f"a client ended by itself: status {status}")


def count(pid: int, what: str) -> int:
    return len(os.listdir(f"/proc/{pid}/{what}"))


def tell(server: int, seconds: float, kills: int) -> None:
    here = os.getpid()
    print(
        f"{seconds:6.0f} s {kills:6} kills | "
        f"server {pss(server):8} KiB {count(server, 'fd'):4} fds "
        f"{count(server, 'task'):3} threads | here {pss(here):7} KiB {count(here, 'fd'):4} fds | "
        f"/dev/shm {len(list(Path('/dev/shm').iterdir())):3} entries",
        flush=True,
    )


def main() -> None:
    minutes = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    mount = directfuse.mount(["memfs", POINT], placement="server")
    server = server_of(POINT)
    clients = [start(number) for number in range(CLIENTS)]
    begin, kills, told = time.monotonic(), 0, 0
    while (passed := time.monotonic() - begin) < minutes * 60:
        if passed >= told * minutes * 6:
            tell(server, passed, kills)
            told += 1
        time.sleep(0.5)
        number = kills % CLIENTS
        kill(clients[number])
        clients[number] = start(number)
        kills += 1
    for pid in clients:
        kill(pid)
    tell(server, time.monotonic() - begin, kills)
    limit = time.monotonic() + 70  # children killed before their first instruction: a minute
    while True:
        try:
            mount.unmount()
            break
        except directfuse.UnmountError:
            if time.monotonic() > limit:
                raise
            time.sleep(0.1)
    while Path(f"/proc/{server}").exists() and time.monotonic() < limit:
        time.sleep(0.1)
    print(f"unmounted; the server is {'there' if Path(f'/proc/{server}').exists() else 'gone'}")


if __name__ == "__main__":
    main()
