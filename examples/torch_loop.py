#!/usr/bin/env python3
"""Trains a small network on a squashfs image, with the workers of a torch DataLoader.

    python examples/torch_loop.py [--workers N] [--method fork|spawn|forkserver] [--epochs N]

The image is one file, so a cluster's file system serves one large file in place of a million
small ones. Nobody mounts it: squashfuse runs inside each worker, reading is a function call, and a
batch is one call. There is no worker_init_fn: the data set is pickled as its command line, and a
worker mounts what it does not have.

Needs torch, fsspec (torch brings it), squashfuse and mksquashfs (Debian: squashfuse,
squashfs-tools).
"""

import argparse
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import time

MISSING = []
try:
    import torch
except ImportError:
    MISSING.append("torch (pip install torch, or Debian's python3-torch)")
try:
    import fsspec
except ImportError:
    MISSING.append("fsspec (pip install fsspec)")
MISSING += [
    f"{tool} (Debian: apt install {package})"
    for tool, package in (("squashfuse", "squashfuse"), ("mksquashfs", "squashfs-tools"))
    if shutil.which(tool) is None
]
if MISSING:
    sys.exit("torch_loop.py needs what is missing here: " + "; ".join(MISSING))

import directfuse  # noqa: E402  # what is missing is said first

FEATURES = 64
SAMPLE = struct.Struct(f"<{FEATURES}fq")  # the features, the label


# ---- the image -----------------------------------------------------------------------------------


def make_image(directory: str, count: int) -> str:
    """Samples of two classes, a file each; their image."""
    chance = random.Random(7)
    source = os.path.join(directory, "samples")
    os.mkdir(source)
    for number in range(count):
        label = number % 2
        features = [chance.gauss(0.5 * label, 1.0) for _ in range(FEATURES)]
        with open(os.path.join(source, f"{number:06d}"), "wb") as file:
            file.write(SAMPLE.pack(*features, label))
    image = os.path.join(directory, "samples.sqfs")
    words = ["mksquashfs", source, image, "-quiet", "-no-progress", "-processors", "1"]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    return image


# ---- the data set --------------------------------------------------------------------------------


class Samples(torch.utils.data.Dataset):
    """The samples of an image. What is pickled is the file system's configuration and the names."""

    def __init__(self, command: list[str], directory: str) -> None:
        self.fs = fsspec.filesystem("directfuse", command=command)
        self.paths = sorted(self.fs.ls(directory, detail=False))

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: list[int]) -> list[tuple[torch.Tensor, int]]:
        """A whole batch, by one call (torch 2 and later ask for batches)."""
        into = bytearray(SAMPLE.size * len(indices))
        requests = [(self.paths[index], 0, SAMPLE.size) for index in indices]
        directfuse.read_many(requests, into)
        samples = memoryview(into).cast("B", (len(indices), SAMPLE.size))
        return [self._decode(bytearray(samples[row : row + 1])) for row in range(len(indices))]

    @staticmethod
    def _decode(data: bytearray) -> tuple[torch.Tensor, int]:
        features = torch.frombuffer(data, dtype=torch.float32, count=FEATURES)
        return features, int.from_bytes(data[-8:], "little")


# ---- training ------------------------------------------------------------------------------------


def train(loader: "torch.utils.data.DataLoader", epochs: int) -> float:
    """The share of the last epoch's samples that were told right."""
    torch.manual_seed(7)
    model = torch.nn.Linear(FEATURES, 2)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    right = total = 0
    for epoch in range(epochs):
        right = total = 0
        start = time.perf_counter()
        for features, labels in loader:
            scores = model(features)
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(scores, labels).backward()
            optimiser.step()
            right += int((scores.argmax(1) == labels).sum())
            total += len(labels)
        seconds = time.perf_counter() - start
        print(f"epoch {epoch}: {right / total:.0%} right, {total / seconds:,.0f} samples/s")
    return right / total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--method", choices=["fork", "spawn", "forkserver"], default="fork")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--samples", type=int, default=2000)
    options = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as directory:
        image = make_image(directory, options.samples)
        samples = Samples(["squashfuse", image, "/samples"], "/samples")
        loader = torch.utils.data.DataLoader(
            samples,
            batch_size=64,
            shuffle=True,
            num_workers=options.workers,
            multiprocessing_context=options.method if options.workers else None,
            persistent_workers=options.workers > 0,
        )
        share = train(loader, options.epochs)
    print(f"trained on {len(samples)} samples of one image: {share:.0%} right")


if __name__ == "__main__":
    main()
