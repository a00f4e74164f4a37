#!/usr/bin/env python3
"""Reads a data set in a squashfs image with several processes, of any start method; no torch.

    python examples/workers.py [--workers N] [--method fork|spawn|forkserver] [--samples N]

Each worker mounts for itself, by the pool's initializer: attach() mounts what its process has not
mounted, so the line is the same for forked workers, which have their own copy already. A batch is
one call. The same batches of the plain directory must give the same sums.

Needs squashfuse and mksquashfs (Debian: squashfuse, squashfs-tools).
"""

import argparse
import concurrent.futures
import multiprocessing
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time

import directfuse

BATCH = 64


def make_samples(directory: str, count: int) -> list[str]:
    """Files of some kilobytes each, a hundred in a directory; their names."""
    chance = random.Random(7)
    names = [f"{number // 100:04d}/{number:06d}.bin" for number in range(count)]
    for name in names:
        path = os.path.join(directory, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(chance.randbytes(chance.randrange(500, 6000)))
    return names


def batch_sum(paths: list[str]) -> int:
    """What a worker does with a batch."""
    return sum(sum(sample) for sample in directfuse.read_many(paths))


def work(command: list[str], root: str, names: list[str], options: argparse.Namespace) -> int:
    """The sum of all samples below root, in an order of chance."""
    paths = [os.path.join(root, name) for name in names]
    random.Random(1).shuffle(paths)
    batches = [paths[start : start + BATCH] for start in range(0, len(paths), BATCH)]
    with concurrent.futures.ProcessPoolExecutor(
        options.workers,
        mp_context=multiprocessing.get_context(options.method),
        initializer=directfuse.attach if command else None,
        initargs=(command,) if command else (),
    ) as pool:
        start = time.perf_counter()
        total = sum(pool.map(batch_sum, batches))
        seconds = time.perf_counter() - start
    print(f"{root}: {len(paths) / seconds:,.0f} samples/s, the workers' start included")
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--method", choices=["fork", "spawn", "forkserver"], default="fork")
    parser.add_argument("--samples", type=int, default=2000)
    options = parser.parse_args()
    for tool, package in (("squashfuse", "squashfuse"), ("mksquashfs", "squashfs-tools")):
        if shutil.which(tool) is None:
            sys.exit(f"workers.py needs {tool} (Debian: apt install {package})")
    with tempfile.TemporaryDirectory() as directory:
        source, image = os.path.join(directory, "samples"), os.path.join(directory, "samples.sqfs")
        names = make_samples(source, options.samples)
        words = ["mksquashfs", source, image, "-quiet", "-no-progress", "-processors", "1"]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
        plain = work([], source, names, options)
        found = work(["squashfuse", image, "/samples"], "/samples", names, options)
    print(f"{len(names)} samples, the same sum: {found == plain}")
    if found != plain:
        sys.exit(1)


if __name__ == "__main__":
    main()
