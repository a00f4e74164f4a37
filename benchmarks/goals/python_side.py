"""Issue 6: Python file systems, fsspec, batches."""

from collections.abc import Iterator

from judge import Row, at_least, at_most, script

#: "4 KiB read of an inline-safe pyfuse3 file system ≥ 30× its own kernel mount from the same
#: process, mfusepy ≥ 20×; through a server ≥ 3×."
INLINE = {"pyfuse3": 30.0, "mfusepy": 20.0}
SERVER = 3.0
OPEN_READ = 10.0  # "directfuse.open(p).read() of 8 KiB on memfs ≥ 10× the builtin open on tmpfs"
OPEN_READS = ("open(p).read() 8 KiB", "open(p, 'rb').read() 8 KiB")
FSSPEC_US = 10.0  # "fsspec adds ≤ 10 µs a call over the os-like call"
SAMPLES = 1e6  # "read_many of 2.5 KB samples from memfs ≥ 1 M samples a second from Python"


def judge(budget: float) -> Iterator[Row]:
    rounds = str(max(5, int(budget / 2)))
    for row in script("python/filesystems.py", "--rounds", rounds)["rows"]:
        if row["op"] == "pread 4 KiB":
            kind, goal = row["kind"], INLINE[row["kind"]]
            ratio = row["kernel"] / row["inline"]
            yield at_least(f"{kind} against its kernel mount: pread 4 KiB", ratio, goal)
            ratio = row["kernel"] / (row.get("server") or float("nan"))
            yield at_least(f"{kind} in a server against its kernel mount", ratio, SERVER)
    for row in script("python/calls.py", "--rounds", rounds)["rows"]:
        if row["op"] in OPEN_READS:
            ratio = row["os"] / row["directfuse"]
            yield at_least(f"{row['op']} of directfuse against the builtin", ratio, OPEN_READ)
    for name, adds in script("python/fsspec_calls.py", "--rounds", rounds).items():
        yield at_most(f"fsspec adds to a call: {name}", adds, FSSPEC_US, " µs")
    samples = script("python/samples.py")
    best = max(rate for name, rate in samples.items() if name.startswith("read_many of"))
    yield at_least("read_many of 2.5 KB samples", best / 1e6, SAMPLES / 1e6, " M/s")
