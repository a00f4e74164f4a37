"""df-bench in Python: the same orders and workloads, each call one of the package's functions.

    python -m directfuse._bench.python_worker [--lanes N] [--find] [--scribble]
        --mount LIBRARY ARG0 ARG... -- inline:DIRECTORY

What Python has no one call for (getdents, openat from C) and what moves a whole file is refused; so
are processes, since what is inline belongs to one.
"""

import json
import os
import re
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import directfuse

__all__ = ["main"]

PAGE, LARGE, DATA, CROWD = 4 << 10, 100 << 10, 8 << 20, 1000
MOST_ENTRIES = 5000  #: of a file system that is surveyed
HOT = 256 << 10  #: bytes of the file that a "hot" loop goes through, as in workload.c
_UNITS = {"KiB": 1 << 10, "MiB": 1 << 20}
_PIECE = re.compile(r"(pread|pwrite) (\d+) (KiB|MiB), (sequential|random|hot)")

Loop = Callable[[int], None]


class Refusal(Exception):
    """The text is the answer."""


class Site:
    """The files of one lane: made, or found."""

    def __init__(self, root: str, finds: bool, scribbles: bool) -> None:
        self.root, self.scribbles = root, scribbles
        if finds:
            self._find()
        else:
            self._make()
        flags = os.O_RDWR if scribbles or not finds else os.O_RDONLY
        self.fd = directfuse.os_open(self.data, flags | os.O_CLOEXEC)
        self.size = directfuse.fstat(self.fd).st_size

    def words(self) -> dict[str, Any]:
        """What df-bench says of its own."""
        paths = {name: getattr(self, name) for name in ("shallow", "deep", "data", "crowd")}
        return {"data_size": self.size, "crowd_size": self.crowd_size, **paths}

    def _make(self) -> None:
        root = self.root
        for name in ("", "/a", "/a/b", "/a/b/c", "/crowd"):
            directfuse.mkdir(root + name)
        self.shallow, self.deep = f"{root}/a/file", f"{root}/a/b/c/file"
        self.large, self.data, self.crowd = f"{root}/large", f"{root}/data", f"{root}/crowd"
        self.crowd_size = CROWD
        self.fresh, self.other = f"{root}/a/fresh", f"{root}/a/other"
        sizes = {self.shallow: PAGE, self.deep: PAGE, self.large: LARGE, self.data: DATA}
        sizes |= {f"{self.crowd}/file-{number:04}": 0 for number in range(CROWD)}
        for path, size in sizes.items():
            with directfuse.open(path, "wb") as file:
                file.write(b"x" * size)

    def _find(self) -> None:
        """As survey.c chooses, so that both read the same: the first file, the deepest, the
        largest, the fullest directory."""
        files: list[tuple[str, int]] = []
        crowds: list[tuple[str, int]] = []
        _survey(self.root, files, crowds, [MOST_ENTRIES])
        if not files:
            raise Refusal(f"{self.root}: no files found")
        self.shallow = files[0][0]
        self.deep = max(files, key=lambda file: file[0].count("/"))[0]
        self.data = self.large = max(files, key=lambda file: file[1])[0]
        self.crowd, self.crowd_size = max(crowds, key=lambda crowd: crowd[1])


def _survey(
    directory: str, files: list[tuple[str, int]], crowds: list[tuple[str, int]], left: list[int]
) -> None:
    """Files and their sizes, directories and their entries, in survey.c's order. left: how many
    entries may still be looked at."""
    with directfuse.scandir(directory) as entries:
        found = list(entries)
    for entry in found:
        if left[0] <= 0:
            break
        left[0] -= 1
        if entry.is_dir(follow_symlinks=False):
            _survey(entry.path, files, crowds, left)
        elif entry.is_file(follow_symlinks=False):
            files.append((entry.path, entry.stat(follow_symlinks=False).st_size))
    crowds.append((directory, len(found)))


# ---- workloads -----------------------------------------------------------------------------------


def timed(code: str, **names: Any) -> Loop:
    """A function that runs the code so many times, as the body of a loop."""
    source = f"def run(count):\n    for i in range(count):\n        {code}\n"
    known = {name: getattr(directfuse, name) for name in directfuse.__all__} | names
    exec(source, known)
    run: Loop = known["run"]
    return run


_NEW = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC
_OLD = os.O_RDONLY | os.O_CLOEXEC
_READ = f"fd = os_open({{}}, {_OLD}); fstat(fd); pread(fd, {{}}, 0); close(fd)"

#: Workload -> statements, in terms of a Site's attributes.
CODE = {
    "stat, depth 2": "stat(shallow)",
    "stat, depth 4": "stat(deep)",
    "fstat": "fstat(fd)",
    "open+close": f"close(os_open(shallow, {_OLD}))",
    "create+unlink": f"close(os_open(fresh, {_NEW})); unlink(fresh)",
    "rename, there and back": "rename(large, other); rename(other, large)",
    "mkdir+rmdir": "mkdir(fresh); rmdir(fresh)",
    "setxattr+getxattr": "setxattr(shallow, 'user.bench', value); getxattr(shallow, 'user.bench')",
    "readdir of 1000": "listdir(crowd)",
    "ls -l of 1000": "[entry.stat(follow_symlinks=False) for entry in scandir(crowd)]",
    "open+fstat+read 4 KiB+close": _READ.format("shallow", PAGE),
    "open+fstat+read 100 KiB+close": _READ.format("large", LARGE),
}
#: Of these statements the ones that want more than a page of a file.
_LARGER = {"open+fstat+read 100 KiB+close": LARGE}
_PLACES = {
    "sequential": "i % pieces",
    "random": "(i * 1103515245 + 12345) % pieces",
    "hot": "i % hot",
}
_WRITING = {"create+unlink", "rename, there and back", "mkdir+rmdir", "setxattr+getxattr"}


def _code(workload: str) -> tuple[str, int]:
    """Statements, and the size of a piece of those that move data. Raises Refusal."""
    if workload in CODE:
        return CODE[workload], 0
    found = _PIECE.fullmatch(workload)
    if found is None:
        raise Refusal("Python has no such loop")
    way, number, unit, order = found.groups()
    at = _PLACES[order]
    what = "size" if way == "pread" else "page"
    return f"{way}(fd, {what}, {at} * size)", int(number) * _UNITS[unit]


def loop_of(workload: str, site: Site, finds: bool) -> Loop:
    code, size = _code(workload)
    writes = workload in _WRITING or workload.startswith("pwrite")
    if finds and writes and not (site.scribbles and size):
        raise Refusal("writes, and nothing is to be written")
    if finds and not site.scribbles and _LARGER.get(workload, size) > max(site.size, PAGE):
        raise Refusal("no file is so large")
    names = dict(vars(site), size=size, page=b"x" * size, value=b"0123456789abcdef")
    names["pieces"] = max(site.size // size, 1) if size else 1
    names["hot"] = min(names["pieces"], HOT // size) if size else 1
    return timed(code, **names)


# ---- samples -------------------------------------------------------------------------------------


def sample(loops: list[Loop], count: int) -> dict[str, float]:
    """Threads if there are several."""
    cpu, switches = time.process_time_ns(), _switches()
    ns = _at_once(loops, count) if len(loops) > 1 else _span(loops[0], count)[1]
    every = count * len(loops)
    return {
        "ns": ns / count,
        "cpu_ns": (time.process_time_ns() - cpu) / every,
        "switches": (_switches() - switches) / every,
    }


def _span(loop: Loop, count: int) -> tuple[int, int]:
    """When it began, and how long it took, in nanoseconds."""
    begin = time.perf_counter_ns()
    loop(count)
    return begin, time.perf_counter_ns() - begin


def _at_once(loops: list[Loop], count: int) -> int:
    """Nanoseconds from the first thread's beginning to the last one's end. They begin when all are
    there: to start a thread takes as long as a thousand calls."""
    begin = threading.Barrier(len(loops))

    def run(loop: Loop) -> tuple[int, int]:
        begin.wait()
        return _span(loop, count)

    with ThreadPoolExecutor(len(loops)) as threads:
        spans = list(threads.map(run, loops))
    return max(sum(span) for span in spans) - min(began for began, _ in spans)


def _switches() -> int:
    import resource

    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_nvcsw + used.ru_nivcsw


def obey(line: str, sites: list[Site], finds: bool) -> dict[str, Any]:
    lanes, count, workload = line.rstrip("\n").split(" ", 2)
    try:
        if lanes.endswith("p"):
            raise Refusal("an inline file system is not shared by processes")
        loops = [loop_of(workload, site, finds) for site in sites[: int(lanes)]]
        return sample(loops, int(count))
    except Refusal as refusal:
        return {"error": str(refusal)}
    except OSError as error:
        return {"error": error.strerror or str(error)}


def say(answer: dict[str, Any]) -> None:
    print(json.dumps(answer), flush=True)


def main(words: list[str]) -> int:
    lanes, finds, scribbles = 1, False, False
    while words[0] != "--mount":
        word = words.pop(0)
        if word == "--lanes":
            lanes = int(words.pop(0))
        finds, scribbles = finds or word == "--find", scribbles or word == "--scribble"
    end = words.index("--")
    root = words[end + 1].removeprefix("inline:")
    with directfuse.mount(words[2:end]) as mount:
        if mount.placement != "inline":
            print("it needs a process of its own: see the route helper", file=sys.stderr)
            return 1
        try:
            sites = [Site(root if finds else f"{root}/{n}", finds, scribbles) for n in range(lanes)]
        except (OSError, Refusal) as error:
            print(f"making files: {error}", file=sys.stderr)
            return 1
        say({"ready": True, "pid": os.getpid(), **sites[0].words()})
        for line in sys.stdin:
            say(obey(line, sites, finds))
        for site in sites:
            directfuse.close(site.fd)
        calls = sum(op.calls for op in mount.stats().ops.values())
    say({"calls": calls})
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
