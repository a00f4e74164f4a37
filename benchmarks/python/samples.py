"""How many samples of a data set one thread reads a second: read_many against its alternatives.

python benchmarks/python/samples.py [--count N] [--size BYTES] [--batch N] [--directory DIR]

memfs inline against the same files in DIR (on tmpfs, so that no disk is measured), batches in
random order. Rows take turns; the best of seven rounds is shown.
"""

import argparse
import json
import os
import random
import tempfile
import time
from collections.abc import Callable

import directfuse


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=4000, help="samples (4000)")
    parser.add_argument("--size", type=int, default=2500, help="bytes of a sample (2500)")
    parser.add_argument("--batch", type=int, default=256, help="samples in one call (256)")
    parser.add_argument("--directory", default="/dev/shm", help="of the plain files (/dev/shm)")
    parser.add_argument("--json", action="store_true", help="samples a second, by row")
    return parser.parse_args()


def fill(directory: str, count: int, size: int) -> list[str]:
    """Sample files; their names, shuffled."""
    names = [f"{directory}/{n:06d}" for n in range(count)]
    for name in names:
        with directfuse.open(name, "wb") as file:
            file.write(bytes(size))
    random.Random(1).shuffle(names)
    return names


def read_all(names: list[str], open_: Callable[..., object]) -> None:
    for name in names:
        with open_(name, "rb") as file:  # type: ignore[attr-defined]
            file.read()


def rows(
    plain: list[str], ours: list[str], size: int, into: bytearray
) -> dict[str, Callable[[], object]]:
    """name -> one batch."""
    extents = [(name, 0, size) for name in ours]
    opened = [(directfuse.os_open(name, os.O_RDONLY), 0, size) for name in ours]
    return {
        "read_many of descriptors, into": lambda: directfuse.read_many(opened, into),
        "read_many of extents, into": lambda: directfuse.read_many(extents, into),
        "read_many of paths": lambda: directfuse.read_many(ours),
        "directfuse.open, read, each": lambda: read_all(ours, directfuse.open),
        "read_many of plain files": lambda: directfuse.read_many(plain),
        "open, read, each, plain files": lambda: read_all(plain, open),
    }


def main() -> None:
    options = arguments()
    with (
        tempfile.TemporaryDirectory(dir=options.directory) as directory,
        directfuse.mount("memfs /samples") as mount,
    ):
        plain = fill(directory, options.count, options.size)[: options.batch]
        ours = fill(mount.mountpoint, options.count, options.size)[: options.batch]
        into = bytearray(options.size * len(ours))
        table = rows(plain, ours, options.size, into)
        best = dict.fromkeys(table, float("inf"))
        for _ in range(7):
            for name, batch in table.items():
                start = time.perf_counter()
                batch()
                best[name] = min(best[name], time.perf_counter() - start)
        rates = {name: len(ours) / seconds for name, seconds in best.items()}
        if options.json:
            print(json.dumps(rates))
        else:
            for name, rate in rates.items():
                print(f"{name:32} {rate / 1e6:6.2f} M samples/s")
        mount.unmount(lazy=True)  # the descriptors are open


if __name__ == "__main__":
    main()
