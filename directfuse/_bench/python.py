"""Python calls on memfs inline against `os` calls on a plain file."""

import os
import time
from collections.abc import Callable, Iterator
from typing import Any

from directfuse._bench.measure import interval

__all__ = ["measure_python"]

_PAGE = 4096
_CALLS = 2000  # in one sample


def measure_python(base: str, rounds: int) -> list[dict[str, Any]]:
    """Rows like those of the native workloads; ratios are os ÷ directfuse."""
    import directfuse

    with directfuse.mount(["memfs", f"{base}/nowhere-python"]):
        plain, ours = f"{base}/python/file", f"{base}/nowhere-python/python/file"
        os.mkdir(f"{base}/python")
        directfuse.mkdir(f"{base}/nowhere-python/python")
        for opener, path in ((open, plain), (directfuse.open, ours)):
            with opener(path, "wb") as file:
                file.write(b"x" * _PAGE)
        return list(_rows(plain, ours, rounds))


def _rows(plain: str, ours: str, rounds: int) -> Iterator[dict[str, Any]]:
    import directfuse

    yield _compared("stat", lambda: os.stat(plain), lambda: directfuse.stat(ours), rounds)
    real = os.open(plain, os.O_RDONLY | os.O_CLOEXEC)
    virtual = directfuse.os_open(ours, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield _compared(
            "pread 4 KiB",
            lambda: os.pread(real, _PAGE, 0),
            lambda: directfuse.pread(virtual, _PAGE, 0),
            rounds,
        )
    finally:
        os.close(real)
        directfuse.close(virtual)
    yield _compared(
        "open, read, close",
        lambda: _slurp(open, plain),
        lambda: _slurp(directfuse.open, ours),
        rounds,
    )


def _slurp(opener: Callable[..., Any], path: str) -> bytes:
    with opener(path, "rb") as file:
        data: bytes = file.read()
    return data


def _compared(
    op: str, theirs: Callable[[], Any], ours: Callable[[], Any], rounds: int
) -> dict[str, Any]:
    """ns a call, of each, in turn; the cost of the loop and of the lambda is subtracted."""
    samples: dict[str, list[float]] = {"os": [], "directfuse": []}
    for _ in range(rounds):
        empty = _loop(lambda: None)
        for name, call in (("os", theirs), ("directfuse", ours)):
            samples[name].append(max(_loop(call) - empty, 0.1))
    pairs = zip(samples["os"], samples["directfuse"], strict=True)
    return {
        "op": op,
        "lanes": "1",
        "routes": {
            name: {
                "median": round(sorted(values)[len(values) // 2], 1),
                "p10": round(sorted(values)[len(values) // 10], 1),
                "rounds": len(values),
            }
            for name, values in samples.items()
        },
        "ratios": {"os": [round(value, 3) for value in interval([a / b for a, b in pairs])]},
        "left_out": {},
    }


def _loop(call: Callable[[], Any]) -> float:
    start = time.perf_counter_ns()
    for _ in range(_CALLS):
        call()
    return (time.perf_counter_ns() - start) / _CALLS
