"""Issue 2: the core, memfs and passthrough inline, Python's hot calls."""

from collections.abc import Iterator

from judge import INLINE, KERNEL, PLAIN, BenchRow, Row, at_least, at_most, bench, output_of, time_of

from directfuse import _paths

#: "memfs against its own kernel mount (uncached): stat, open+close, create+unlink ≥ 300×, 4 KiB
#: read ≥ 20×, 1 MiB read ≥ 3×; against tmpfs through the kernel: stat and open+close ≥ 10×."
MEMFS = {
    (KERNEL, "stat, depth 2"): 300,
    (KERNEL, "open+close"): 300,
    (KERNEL, "create+unlink"): 300,
    (KERNEL, "pread 4 KiB, random"): 20,
    (KERNEL, "pread 1 MiB, sequential"): 3,
    (PLAIN, "stat, depth 2"): 10,
    (PLAIN, "open+close"): 10,
}
PASSTHROUGH = 1.1  # "≤ 1.1× native on every op"
PYTHON = {"pread 4 KiB": 3.0, "stat": 4.0}  # "≥ 3× faster than os.pread on tmpfs", "≥ 4×"
#: "Dispatch above the plugin's own function: pread ≤ 10 ns, stat ≤ 60 ns at depth 2, open+close
#: ≤ 120 ns"
DISPATCH = {"pread": 10.0, "stat, depth 2": 60.0, "open+close": 120.0}
TWO_THREADS = 1.15  # "two threads on different files do not slow each other"; times that of one


def judge(budget: float) -> Iterator[Row]:
    yield from dispatch(output_of(str(_paths.native_dir() / "libexec/df-dispatch")))
    found = bench(budget, [PLAIN, KERNEL, INLINE])
    yield from memfs(found["by_op"]["memfs"])
    for op, row in found["by_op"]["passthrough"].items():
        ratio = time_of(row, INLINE) / time_of(row, PLAIN)
        yield at_most(f"passthrough against {PLAIN}: {op}", ratio, PASSTHROUGH, "×")
    for row in found["python"]:
        if row["op"] in PYTHON:
            ratio = time_of(row, "os") / time_of(row, "directfuse")
            yield at_least(f"Python on memfs against os: {row['op']}", ratio, PYTHON[row["op"]])


def memfs(rows: dict[str, BenchRow]) -> Iterator[Row]:
    for (route, op), goal in MEMFS.items():
        ratio = time_of(rows.get(op), route) / time_of(rows.get(op), INLINE)
        yield at_least(f"memfs against {route}: {op}", ratio, goal)


def dispatch(table: str) -> Iterator[Row]:
    for line in table.splitlines()[1:]:
        op, _, door, above, threads, processes = line.split("\t")
        if op in DISPATCH:
            yield at_most(f"dispatch above the op: {op}", float(above), DISPATCH[op], " ns")
        yield two_threads(op, float(threads) / float(door), float(processes) / float(door))


def two_threads(op: str, threads: float, processes: float) -> Row:
    """Two CPUs are not always two cores: what the same calls of two processes, which share nothing,
    lose in the same rounds is the machine's. The plain ratios stand in the row, too."""
    what = f"two threads against one, beside two processes that share nothing: {op}"
    row = at_most(what, threads / processes, TWO_THREADS, "×")
    return row._replace(measured=f"{row.measured} ({threads:.3g}× / {processes:.3g}×)")
