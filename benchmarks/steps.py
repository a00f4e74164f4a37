"""How many instructions a call takes under `directfuse run`, by the functions they belong to.

    python benchmarks/steps.py CALL [MOUNT...]     fstat, stat, fstatat, access, open, pread

What a clock cannot tell beside other load, or of a processor whose speed changes: the same build
gives the same number. MOUNT is a file system to be written to (memfs; passthrough DIRECTORY); the
mountpoint is added. Without one the call is of a plain file: what a call costs that is not ours. A
string instruction counts once for each of its turns; waits for a server are as long as they are.
"""

import bisect
import os
import shlex
import subprocess
import sys
import tempfile
from collections import Counter
from functools import cache
from pathlib import Path
from typing import NamedTuple

from directfuse import _paths

POINT = "/steps"


class Mapping(NamedTuple):
    begin: int
    end: int
    offset: int  # in the file
    file: str  # "" for memory that is none


class Symbols(NamedTuple):
    """Of a file, sorted: where each begins, counted from where the file's first segment lies."""

    at: list[int]
    names: list[str]


@cache
def symbols_of(file: str) -> Symbols:
    found = {}
    for words in (["nm", file], ["nm", "-D", file]):
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        for line in done.stdout.splitlines():
            at, _, rest = line.partition(" ")
            kind, _, name = rest.partition(" ")
            if at.strip() and kind in "tTwWi":
                found.setdefault(int(at, 16), name)
    return Symbols(sorted(found), [found[at] for at in sorted(found)])


def mappings_of(pid: int) -> list[Mapping]:
    found = []
    for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
        addresses, _, offset, _, _, *file = line.split(maxsplit=5)
        begin, end = (int(at, 16) for at in addresses.split("-"))
        found.append(Mapping(begin, end, int(offset, 16), file[0] if file else ""))
    return found


def name_of(address: int, mappings: list[Mapping]) -> str:
    for mapping in mappings:
        if not mapping.begin <= address < mapping.end:
            continue
        if not mapping.file.startswith("/"):
            return mapping.file or "trampoline"
        first = min(m.begin - m.offset for m in mappings if m.file == mapping.file)
        symbols = symbols_of(mapping.file)
        n = bisect.bisect(symbols.at, address - first) - 1
        where = Path(mapping.file).name
        return f"{symbols.names[n]} ({where})" if n >= 0 else where
    return "?"


def steps(call: str, mount: list[str], base: str) -> Counter[str]:
    helper = os.fspath(_paths.native_dir() / "libexec/df-steps")
    words = shlex.join([*(mount or ["memfs"]), POINT])
    run = [sys.executable, "-m", "directfuse", "run", "-m", words, "--"]
    file = f"{POINT if mount else base}/file"
    with subprocess.Popen(
        [*run, helper, "call", call, file], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as program:
        assert program.stdin and program.stdout
        if not (line := program.stdout.readline()):
            raise SystemExit(f"df-steps could not make the call: status {program.wait()}")
        mappings = mappings_of(int(line))
        with subprocess.Popen(
            [helper, "trace", line.strip()], stdout=subprocess.PIPE, text=True
        ) as tracer:
            assert tracer.stdout
            tracer.stdout.readline()
            program.stdin.write("\n")
            program.stdin.close()
            return Counter(name_of(int(at, 16), mappings) for at in tracer.stdout)


def main() -> None:
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        raise SystemExit((__doc__ or "").strip())
    with tempfile.TemporaryDirectory(dir="/dev/shm") as base:
        found = steps(sys.argv[1], sys.argv[2:], base)
    for name, count in found.most_common():
        print(f"{count:6}  {name}")
    print(f"{found.total():6}  in all")


if __name__ == "__main__":
    main()
