"""Shared libraries stored in a mount: loaded whole, and read no more than once."""

import json
import shlex
import shutil
import subprocess
import sys

import pytest
from building import build

from .conftest import environment

#: Constants in one segment and functions in another.
_SOURCE = """
const int many[2 << 20] = {1, [(2 << 20) - 1] = 1};
static int variable = 3;
int first(void) { return many[0] + variable; }
int last(void) { return many[sizeof(many) / sizeof(many[0]) - 1]; }
"""

_USE = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
print(library.first(), library.last())
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """One of 8 MiB."""
    directory = tmp_path_factory.mktemp("library")
    source, target = directory / "large.c", directory / "large.so"
    source.write_text(_SOURCE)
    build(source, target, "-shared", "-fPIC", "-Wl,-z,separate-code")
    assert target.stat().st_size > 8 << 20
    return target


def _used(library, *before):
    return subprocess.run(
        [*before, sys.executable, "-S", "-c", _USE, library],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )


def _run(tmp_path, mount):
    report = tmp_path / "report.json"
    return report, [
        sys.executable,
        "-m",
        "directfuse",
        "run",
        "-m",
        mount,
        f"--stats={report}",
        "--",
    ]


def test_a_library_in_a_mount_is_read_once(library, tmp_path):
    """glibc maps its whole extent first, and its segments over that."""
    wanted = _used(library)
    report, run = _run(tmp_path, f"passthrough {library.parent} {tmp_path}/mount")
    found = _used(tmp_path / "mount" / "large.so", *run)
    assert (found.returncode, found.stdout) == (0, wanted.stdout) == (0, "4 1\n"), found.stderr
    operations = json.loads(report.read_text())["mounts"][f"{tmp_path}/mount"]
    read = sum(row["bytes"] for name, row in operations.items() if name.startswith("read"))
    size = library.stat().st_size
    assert size / 2 < read < 1.5 * size


#: Thirty system calls, each `count` times; how many were answered.
_ASKS = """
#define ASK __asm__ volatile("mov $39, %%eax\\n syscall" : "=a"(got) : : "rcx", "r11", "memory"); \\
            sum += got > 0;
#define SIX ASK ASK ASK ASK ASK ASK
int ask(int count) {
    int got, sum = 0;
    while (count-- > 0) { SIX SIX SIX SIX SIX }
    return sum;
}
"""

_ASK = """
import ctypes, sys
print(ctypes.CDLL(sys.argv[1]).ask(int(sys.argv[2])))
"""


@pytest.fixture(scope="module")
def asking(tmp_path_factory):
    directory = tmp_path_factory.mktemp("asking")
    (directory / "ask.c").write_text(_ASKS)
    build(directory / "ask.c", directory / "ask.so", "-shared", "-fPIC")
    return directory / "ask.so"


def _asked(mounted, library, count, programs):
    """Of that many programs, with the library of the disk and with a copy of it in the mount."""
    use = shlex.join([sys.executable, "-S", "-c", _ASK])
    loop = f"for n in $(seq {programs}); do {use} $0 {count}; done"
    disk = mounted("/bin/sh", "-c", loop, library)
    copy = mounted(
        "/bin/sh", "-c", f"cp {library} l.so && set -- ./l.so; {loop.replace('$0', '$1')}"
    )
    assert disk.seen() == copy.seen() == (0, f"{30 * count}\n".encode() * programs, b"")
    return disk.events, copy.events


def test_the_code_of_a_library_in_a_mount_is_rewritten(mounted, asking):
    disk, copy = _asked(mounted, asking, 1000, 1)
    assert disk["rewritten"] >= 30
    assert abs(copy["rewritten"] - disk["rewritten"]) < 15
    assert copy["trapped"] < disk["trapped"] + 500


def test_programs_learn_of_the_code_of_a_library_in_a_mount(mounted, asking):
    """Three traps are too few for a rewriting; those of several programs are not."""
    (few, _), (disk, copy) = (_asked(mounted, asking, 3, programs) for programs in (1, 12))
    assert disk["trapped"] < few["trapped"] + 11 * 60 < few["trapped"] + 11 * 90
    assert copy["trapped"] < disk["trapped"] + 300


def test_a_changed_library_in_a_mount_is_not_taken_for_the_old_one(mounted, asking, tmp_path):
    """Where the first one has a system call the second one computes."""
    other = asking.read_bytes().replace(b"\x0f\x05", b"\xff\xc0")  # inc %eax
    assert other.count(b"\xff\xc0") >= 30
    (tmp_path / "other.so").write_bytes(other)
    use = shlex.join([sys.executable, "-S", "-c", _ASK, "./l.so", "4"])
    script = (
        f"cp $0 l.so; for n in $(seq 8); do {use}; done; cat $1 >l.so; {use}; cp $0 l.so; {use}"
    )
    found = mounted("/bin/sh", "-c", script, asking, tmp_path / "other.so")
    assert found.seen() == (0, b"120\n" * 10, b"")


_DENYWRITE = """
import ctypes, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
with open(sys.argv[1], "rb") as file:
    data = file.read()
    size = len(data)
    at = libc.mmap(None, size, 1, 0x802, file.fileno(), 0)  # PROT_READ, MAP_PRIVATE, MAP_DENYWRITE
    print(ctypes.string_at(at, size) == data)
"""


@pytest.mark.parametrize("what", ["library", "text"])
def test_what_is_mapped_by_its_size_is_there_wholly(library, tmp_path, what):
    """With the flag of dynamic linkers, too: the extent of a library is not its size."""
    path = tmp_path / "source" / "file"
    path.parent.mkdir()
    if what == "library":
        shutil.copy(library, path)
    else:
        path.write_bytes(bytes(range(256)) * 400)
    _, run = _run(tmp_path, f"passthrough {path.parent} {tmp_path}/mount")
    words = [sys.executable, "-S", "-c", _DENYWRITE]
    for command in ([*words, path], [*run, *words, tmp_path / "mount" / "file"]):
        done = subprocess.run(command, capture_output=True, text=True, timeout=50, check=False)
        assert done.stdout == "True\n", done.stderr
