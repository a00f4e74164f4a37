"""`directfuse bench`: the same operations on a plain directory, through kernel FUSE, and inline.

The loops that are timed are native (df-bench), so that Python's own cost does not blur them; the
Python rows compare Python calls with Python calls.
"""

import json
import os
import platform
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import click

from directfuse import _kernel, _paths
from directfuse._cli._failure import Failure
from directfuse._cli._output import duration, json_option, print_json, print_table, progress, ratio

__all__ = ["bench"]

PLAIN, UNCACHED, CACHED, INLINE = "plain directory", "kernel FUSE", "kernel FUSE cached", "inline"

#: Options that make the kernel ask the file system every time: memfs has its own, a high-level file
#: system has libfuse's. (libfuse 3 left data caching to the file system; passthrough has no option
#: for it, so its reads of the same file may come from the page cache on both kernel routes.)
_NO_CACHE = {
    "memfs": "timeout=0,direct_io",
    "passthrough": "entry_timeout=0,attr_timeout=0,negative_timeout=0",
}

_PAGE = 4096


@click.command()
@click.option("--quick", is_flag=True, help="Some seconds instead of a minute.")
@click.option(
    "--backend",
    "names",
    multiple=True,
    metavar="NAME",
    help="Only this file system (repeatable).  [default: every built-in one]",
)
@click.option("--kernel/--no-kernel", default=True, help="Compare with kernel FUSE mounts.")
@click.option("--python/--no-python", "with_python", default=True, help="Time Python calls too.")
@click.option(
    "--directory",
    type=click.Path(exists=True, file_okay=False, writable=True),
    help="Where the plain files live.  [default: /dev/shm, a tmpfs]",
)
@json_option
def bench(
    quick: bool,
    names: tuple[str, ...],
    kernel: bool,
    with_python: bool,
    directory: str | None,
    as_json: bool,
) -> None:
    """Compare a plain directory, kernel FUSE mounts and inline calls.

    Every operation is timed on every route, in turn, round after round; the 10th percentile of the
    rounds is shown, because other programs disturb a machine in one direction only. "kernel FUSE"
    asks the file system each time; "cached" lets the kernel cache as the file system likes.

    \b
    Examples:
      directfuse bench --quick
      directfuse bench --backend memfs --json > memfs.json
    """
    known = _paths.backend_names()
    unknown = sorted(set(names) - set(known))
    if unknown:
        raise Failure(f"{unknown[0]}: no built-in file system; there are {', '.join(known)}")
    rounds, sample = (25, 500) if quick else (101, 1000)
    effort = ["--rounds", str(rounds), "--sample-us", str(sample)]
    notes: list[str] = []
    results: dict[str, Any] = {"conditions": _conditions(directory)}
    for name in names or known:
        with progress(f"Timing {name}…"), ExitStack() as stack:
            base = stack.enter_context(_temporary_directory(directory))
            results[name] = _native(name, base, effort, kernel, stack, notes)
    if with_python and "memfs" in (names or known):
        with progress("Timing Python calls…"):
            results["python"] = _python(directory, rounds)
    if as_json:
        print_json(results | {"notes": notes})
        return
    _print(results, notes)


def _conditions(directory: str | None) -> dict[str, Any]:
    return {
        "directory": directory or _default_directory(),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "cpus": os.cpu_count(),
        "load": os.getloadavg()[0],
        "shown": "10th percentile of alternating rounds, ns an operation",
    }


def _default_directory() -> str:
    shared = "/dev/shm"
    return shared if os.access(shared, os.W_OK) else tempfile.gettempdir()


def _temporary_directory(directory: str | None) -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(
        prefix="directfuse-bench.", dir=directory or _default_directory()
    )


# ---- native rows -----------------------------------------------------------------------------


def _native(
    name: str, base: str, effort: list[str], kernel: bool, stack: ExitStack, notes: list[str]
) -> list[dict[str, Any]]:
    """One row for each operation: its name and ns by route."""
    plain, inline = f"{base}/plain", f"{base}/inline"
    os.mkdir(plain)
    argv = [str(_paths.bench_helper()), *effort]
    argv += ["--mount", *_command(name, name, base, "inline", inline), "--"]
    argv += [f"{PLAIN}=kernel:{plain}"]
    for route, options in _kernel_routes(name) if kernel else ():
        try:
            point = _kernel_mount(name, base, route.replace(" ", "-"), options, stack)
        except (OSError, _kernel.MountFailed) as error:
            notes.append(f"{name}, {route}: left out: {error}")
            continue
        argv.append(f"{route}=kernel:{point}")
    argv.append(f"{INLINE}=inline:{inline}")
    return _rows(argv)


def _kernel_routes(name: str) -> list[tuple[str, str]]:
    """Names of the kernel routes, and the mount options that make them."""
    uncached = _NO_CACHE.get(name)
    return [*([(UNCACHED, uncached)] if uncached else []), (CACHED, "")]


def _rows(argv: list[str]) -> list[dict[str, Any]]:
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        out, words = process.communicate(timeout=900)
    except BaseException:
        process.kill()
        process.wait()
        raise
    if process.returncode != 0:
        raise Failure(f"df-bench ended with status {process.returncode}: {words.strip()}")
    rows: list[dict[str, Any]] = json.loads(out)
    return rows


def _command(name: str, program: str, base: str, label: str, point: str, *more: str) -> list[str]:
    """The command line of a backend; passthrough gets a directory of its own to pass through."""
    options = [option for option in more if option]
    words = [program]
    if name == "passthrough":
        source = f"{base}/source-{label}"
        os.mkdir(source)
        words.append(source)
    return [*words, point, *(["-o", ",".join(options)] if options else [])]


def _kernel_mount(name: str, base: str, label: str, options: str, stack: ExitStack) -> str:
    point = f"{base}/{label}"
    os.mkdir(point)
    argv = _command(name, str(_paths.program(name)), base, label, point, options)
    stack.enter_context(_kernel.Program([*argv, "-f"])).wait_mounted(15.0)
    return point


# ---- Python rows -----------------------------------------------------------------------------


def _python(directory: str | None, rounds: int) -> list[dict[str, Any]]:
    """Python calls on memfs inline against `os` calls on a plain file."""
    import directfuse

    with _temporary_directory(directory) as base, directfuse.mount(["memfs", f"{base}/inline"]):
        plain, ours = f"{base}/plain/file", f"{base}/inline/plain/file"
        os.mkdir(f"{base}/plain")
        directfuse.mkdir(f"{base}/inline/plain")
        for calls, path in ((os, plain), (directfuse, ours)):
            with (open if calls is os else directfuse.open)(path, "wb") as file:
                file.write(b"x" * _PAGE)
        return list(_python_rows(plain, ours, rounds))


def _python_rows(plain: str, ours: str, rounds: int) -> Iterator[dict[str, Any]]:
    import directfuse

    def compared(op: str, theirs: Callable[[], Any], own: Callable[[], Any]) -> dict[str, Any]:
        return {"op": op, "ns": _alternate({"os": theirs, "directfuse": own}, rounds)}

    yield compared("stat", lambda: os.stat(plain), lambda: directfuse.stat(ours))
    real = os.open(plain, os.O_RDONLY | os.O_CLOEXEC)
    virtual = directfuse.os_open(ours, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield compared(
            "pread 4 KiB",
            lambda: os.pread(real, _PAGE, 0),
            lambda: directfuse.pread(virtual, _PAGE, 0),
        )
    finally:
        os.close(real)
        directfuse.close(virtual)
    yield compared(
        "open, read, close", lambda: _slurp(open, plain), lambda: _slurp(directfuse.open, ours)
    )


def _slurp(opener: Callable[..., Any], path: str) -> bytes:
    with opener(path, "rb") as file:
        data: bytes = file.read()
    return data


def _alternate(
    calls: dict[str, Callable[[], Any]], rounds: int, count: int = 2000
) -> dict[str, dict[str, float]]:
    """ns a call, of each, in turn; the cost of the loop and of the lambda is subtracted."""
    samples: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        empty = _loop(lambda: None, count)
        for name, call in calls.items():
            samples[name].append(max(_loop(call, count) - empty, 0.0))
    return {
        name: {"median": statistics.median(values), "p10": sorted(values)[len(values) // 10]}
        for name, values in samples.items()
    }


def _loop(call: Callable[[], Any], count: int) -> float:
    start = time.perf_counter_ns()
    for _ in range(count):
        call()
    return (time.perf_counter_ns() - start) / count


# ---- tables ----------------------------------------------------------------------------------


def _print(results: dict[str, Any], notes: list[str]) -> None:
    conditions = results["conditions"]
    click.echo(
        f"Linux {conditions['kernel']}, {conditions['cpus']} CPUs, load {conditions['load']:.1f}; "
        f"plain directory on {conditions['directory']}; {conditions['shown']}"
    )
    for name, rows in results.items():
        if name == "conditions":
            continue
        own = "directfuse" if name == "python" else INLINE
        _print_rows(name, rows, own)
    for note in notes:
        click.echo(note, err=True)


def _print_rows(title: str, rows: list[dict[str, Any]], own: str) -> None:
    others = [route for route in rows[0]["ns"] if route != own]
    columns = ["Operation", own]
    for route in others:
        columns += [route, "÷ " + own]
    cells = []
    for row in rows:
        ns = {route: values["p10"] for route, values in row["ns"].items()}
        line = [row["op"], duration(ns[own])]
        for route in others:
            line += [duration(ns[route]), ratio(ns[route] / ns[own]) if ns[own] else "-"]
        cells.append(line)
    click.echo(f"\n{title}")
    print_table(columns, cells, numbers=True)
