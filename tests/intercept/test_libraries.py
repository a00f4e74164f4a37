"""Shared libraries stored in a mount: loaded whole, and read no more than once."""

import json
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
