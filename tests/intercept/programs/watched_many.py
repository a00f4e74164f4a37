"""Several processes change names in watched directories at once: who has followed the events knows
what is there at the end."""

import ctypes
import os
import random
import struct
import sys
import time

CREATE, DELETE, MOVED_FROM, MOVED_TO, OVERFLOW = 256, 512, 64, 128, 0x4000
MOVES = CREATE | DELETE | MOVED_FROM | MOVED_TO
NAMES = [f"n{number}" for number in range(6)]
WATCHED, DARK = ["one", "two"], "dark"
libc = ctypes.CDLL(None, use_errno=True)


def change(rng):
    """One call, of which many fail."""
    a, b = (os.path.join(rng.choice([*WATCHED, DARK]), rng.choice(NAMES)) for _ in range(2))
    calls = [
        lambda: os.close(os.open(a, os.O_CREAT | os.O_RDWR)),
        lambda: os.close(os.open(a, os.O_CREAT | os.O_EXCL | os.O_WRONLY)),
        lambda: os.unlink(a),
        lambda: os.mkdir(a),
        lambda: os.rmdir(a),
        lambda: os.rename(a, b),
        lambda: os.link(a, b),
        lambda: os.symlink("x", a),
    ]
    try:
        rng.choice(calls)()
    except OSError:
        pass


def work(seed, count):
    rng = random.Random(seed)
    held = []
    for _ in range(count):
        change(rng)
        if rng.random() < 0.2:
            try:
                held.append(os.open(os.path.join("one", rng.choice(NAMES)), os.O_RDWR))
                os.write(held[-1], b"x")
            except OSError:
                pass
        if len(held) > 4:
            os.close(held.pop(0))


def events(fd):
    while True:
        try:
            data = os.read(fd, 65536)
        except BlockingIOError:
            return
        while data:
            wd, mask, _, size = struct.unpack_from("iIII", data)
            yield wd, mask, data[16 : 16 + size].rstrip(b"\0").decode()
            data = data[16 + size :]


def follow(fd, names, exactly):
    """What is wrong with the events, beside the names that they make. Those that a listing shows
    already may be told once more."""
    wrong = []
    for wd, mask, name in events(fd):
        made, there = mask & (CREATE | MOVED_TO), name in names[wd]
        if mask & OVERFLOW:
            wrong.append("overflow")
        elif exactly and (there if mask & CREATE else not made and not there):
            wrong.append(f"{mask} {name}")
        elif made:
            names[wd].add(name)
        else:
            names[wd].discard(name)
    return wrong


def begin(processes, count, seed):
    children = []
    for number in range(processes):
        children.append(os.fork())
        if children[-1] == 0:
            work(seed + number, count)
            os._exit(0)
    return children


def main(processes, rounds, count):
    """In the first round the watches are added while names are changed."""
    for name in [*WATCHED, DARK]:
        os.mkdir(name)
    fd = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    watches, names = {}, {}
    for round_ in range(rounds):
        children = begin(processes, count, round_ * 100)
        if not watches:
            time.sleep(0.01)
            watches = {libc.inotify_add_watch(fd, name.encode(), MOVES): name for name in WATCHED}
            names = {wd: set(os.listdir(name)) for wd, name in watches.items()}
        for child in children:
            os.waitpid(child, 0)
        wrong = follow(fd, names, round_ > 0)
        same = [names[wd] == set(os.listdir(name)) for wd, name in watches.items()]
        print(round_, wrong, same)


main(*map(int, sys.argv[1:]))
