"""What fsspec costs: the file system "directfuse" against the os-like calls, and against "file".

python benchmarks/python/fsspec_calls.py [--directory DIR] [--rounds N] [--json]

memfs inline, by directfuse's own call and through fsspec; fsspec's LocalFileSystem on the same file
in DIR (on tmpfs, so that no disk is measured). Rows take turns; the 10th percentile of the rounds,
in µs a call. The goal: fsspec adds at most 10 µs.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable

import fsspec

import directfuse

CALLS = 200  # in a round
Call = Callable[[], object]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--directory", default="/dev/shm", help="of the plain files (/dev/shm)")
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--json", action="store_true", help="what fsspec adds, in µs, by call")
    return parser.parse_args()


def rows(plain: str, ours: str) -> dict[str, tuple[Call, Call, Call]]:
    """name -> (os-like, directfuse by fsspec, file by fsspec)."""
    fs, local = fsspec.filesystem("directfuse"), fsspec.filesystem("file")
    file, by_fs, by_local = directfuse.open(ours, "rb"), fs.open(ours), local.open(plain)
    top, plain_top = ours.rpartition("/")[0], plain.rpartition("/")[0]

    def again(opened: object) -> Call:
        return lambda: (opened.seek(0), opened.read(4096))  # type: ignore[attr-defined]

    return {
        "info": (lambda: directfuse.lstat(ours), lambda: fs.info(ours), lambda: local.info(plain)),
        "exists": (
            lambda: directfuse.path.exists(ours),
            lambda: fs.exists(ours),
            lambda: local.exists(plain),
        ),
        "open, close": (
            lambda: directfuse.open(ours, "rb").close(),
            lambda: fs.open(ours).close(),
            lambda: local.open(plain).close(),
        ),
        "seek, read 4 KiB": (again(file), again(by_fs), again(by_local)),
        "cat 8 KiB": (
            lambda: directfuse.read_many([ours]),
            lambda: fs.cat_file(ours),
            lambda: local.cat_file(plain),
        ),
        "ls of 100": (
            lambda: directfuse.listdir(top),
            lambda: fs.ls(top, detail=False),
            lambda: local.ls(plain_top, detail=False),
        ),
    }


def timed(call: Call) -> float:
    """µs a call."""
    start = time.perf_counter()
    for _ in range(CALLS):
        call()
    return (time.perf_counter() - start) / CALLS * 1e6


def show(low: dict[str, list[float]], as_json: bool) -> None:
    if as_json:
        print(json.dumps({name: through - own for name, (own, through, _) in low.items()}))
        return
    print(f"{'µs a call':18}{'os-like':>9}{'fsspec':>9}{'adds':>8}{'file':>9}")
    for name, (own, through, local) in low.items():
        print(f"{name:18}{own:9.2f}{through:9.2f}{through - own:8.2f}{local:9.2f}")


def main() -> None:
    options = arguments()
    with (
        tempfile.TemporaryDirectory(dir=options.directory) as directory,
        directfuse.mount("memfs /bench") as mount,
    ):
        for top in (directory, mount.mountpoint):
            for number in range(100):
                with directfuse.open(f"{top}/{number}", "wb") as file:
                    file.write(bytes(8192))
        table = rows(f"{directory}/0", f"{mount.mountpoint}/0")
        costs: dict[str, list[list[float]]] = {name: [[], [], []] for name in table}
        for _ in range(options.rounds):
            for name, calls in table.items():
                for kept, call in zip(costs[name], calls, strict=True):
                    kept.append(timed(call))
        low = {
            name: [statistics.quantiles(one, n=10)[0] for one in columns]
            for name, columns in costs.items()
        }
        show(low, options.json)
        mount.unmount(lazy=True)  # files are open


if __name__ == "__main__":
    main()
