"""How many instructions a call takes under `directfuse run`, by the functions they belong to.

    python benchmarks/steps.py [--server] CALL [MOUNT...]

CALL: fstat, stat, fstatat, access, open (and close), pread, chmod, utimens, create (and unlink).
What a clock cannot tell beside other load, or of a processor whose speed changes: the same build
gives the same number. MOUNT is a file system to be written to (memfs; passthrough DIRECTORY); the
mountpoint is added. Without one the call is of a plain file: what a call costs that is not ours. A
string instruction counts once for each of its turns; waits for a server are as long as they are.

--server: what the mount server does for the (first) question of that call, between the message and
the answer: its function df_execute() with all that it calls, the file system too.
"""

import bisect
import os
import subprocess
import sys
import tempfile
from collections import Counter
from functools import cache
from pathlib import Path
from typing import NamedTuple

from directfuse import _paths
from directfuse._bench.own_routes import run_prefix

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


def _segments(pid: str) -> set[str]:
    """Inodes of the memory that a process shares with others."""
    try:
        lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
    except OSError:  # it has ended, or is somebody else's
        return set()
    return {line.split()[4] for line in lines if "rw-s" in line and "memfd:" in line}


def server_of(pid: int) -> int:
    """The server of the run that a program is in: they share a segment."""
    wanted = _segments(str(pid))
    for comm in Path("/proc").glob("[0-9]*/comm"):
        try:
            is_server = comm.read_text().startswith("directfuse-serv")
        except OSError:
            continue
        if is_server and wanted & _segments(comm.parent.name):
            return int(comm.parent.name)
    raise SystemExit("the mount server was not found")


def address_of(name: str, mappings: list[Mapping]) -> int:
    file = next(m.file for m in mappings if m.file.endswith("libdirectfuse.so"))
    first = min(m.begin - m.offset for m in mappings if m.file == file)
    symbols = symbols_of(file)
    return first + symbols.at[symbols.names.index(name)]


def tracing(helper: str, pid: int, server: bool) -> tuple[list[str], list[Mapping]]:
    """The command line of who traces, and what it traces."""
    if not server:
        return [helper, "trace", str(pid)], mappings_of(pid)
    pid = server_of(pid)
    mappings = mappings_of(pid)
    return [helper, "serve", str(pid), f"{address_of('df_execute', mappings):x}"], mappings


def steps(call: str, mount: list[str], base: str, server: bool) -> Counter[str]:
    helper = os.fspath(_paths.native_dir() / "libexec/df-steps")
    run = run_prefix([*(mount or ["memfs"]), POINT])
    file = f"{POINT if mount else base}/file"
    with subprocess.Popen(
        [*run, helper, "once" if server else "call", call, file],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as program:
        assert program.stdin and program.stdout
        if not (line := program.stdout.readline()):
            raise SystemExit(f"df-steps could not make the call: status {program.wait()}")
        tracer_line, mappings = tracing(helper, int(line), server)
        with subprocess.Popen(tracer_line, stdout=subprocess.PIPE, text=True) as tracer:
            assert tracer.stdout
            tracer.stdout.readline()
            program.stdin.write("\n")
            program.stdin.close()
            return Counter(name_of(int(at, 16), mappings) for at in tracer.stdout)


def main() -> None:
    server = sys.argv[1:2] == ["--server"]
    call = sys.argv[1 + server : 2 + server]
    if not call or call[0].startswith("-"):
        raise SystemExit((__doc__ or "").strip())
    with tempfile.TemporaryDirectory(dir="/dev/shm") as base:
        found = steps(call[0], sys.argv[2 + server :], base, server)
    for name, count in found.most_common():
        print(f"{count:6}  {name}")
    print(f"{found.total():6}  in all")


if __name__ == "__main__":
    main()
