"""What a server that speaks FUSE 7.45 is sent: byte for byte what the kernel sends to it."""

import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import SERVER, kernel_mount

SYMLINK, MKNOD, MKDIR, SETXATTR, INIT, CREATE, COPY, TMPFILE, STATX, COPY_64 = [
    "6",
    "8",
    "9",
    "21",
    "26",
    "35",
    "47",
    "51",
    "52",
    "53",
]
ROOT = str(Path(__file__).parents[2])
GROUP = 4242  # of fuse_server.py's root directory

CALLS = """
import os, sys
root, which, server, point = sys.argv[1:]
sys.path.insert(0, root)
from tests.conformance.linux import statx
api, open_ = os, os.open
os.umask(0o22)
if which == "helper":
    import directfuse as api
    open_, statx = api.os_open, api.statx
    mount = api.mount([sys.executable, server, "record", point], placement="helper")
api.mkdir(point + "/dir", 0o750)
api.symlink("target", point + "/link")
api.mknod(point + "/node", 0o100640)
api.setxattr(point + "/file", "user.a", b"value")
new = open_(point + "/new", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o640)
nameless = open_(point, os.O_TMPFILE | os.O_RDWR, 0o666)
file = open_(point + "/file", os.O_RDONLY)
assert api.copy_file_range(file, new, 4096, 0, 0) == 4096
assert statx(point + "/file").stx_btime_ns == 1_234_567_890_123_456_789
assert statx(file, 0x7FF).stx_size == 1 << 16
sys.stdout.buffer.write(api.pread(file, 1 << 16, 0))
if which == "helper":
    api.close(file)
    api.close(new)
    api.close(nameless)
    mount.unmount()
"""


def sent(which, point):
    """{opcode: [[words of extensions, body], ...]}"""
    if os.geteuid() != 0:
        pytest.skip("a supplementary group of our choice needs root")
    words = [sys.executable, "-c", CALLS, ROOT, which, SERVER, str(point)]
    done = subprocess.run(words, capture_output=True, extra_groups=[GROUP], timeout=50)
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


def test_requests_are_the_kernels(tmp_path):
    with kernel_mount(tmp_path / "kernel", "record"):
        theirs = sent("kernel", tmp_path / "kernel")
    ours = sent("helper", tmp_path / "helper")
    for opcode in (MKDIR, SYMLINK, MKNOD, SETXATTR, CREATE, TMPFILE, STATX, COPY_64):
        assert ours[opcode] == theirs[opcode], opcode


def test_extensions(tmp_path):
    """A list of no security contexts, and the group through which the caller may write here."""
    seen = sent("helper", tmp_path / "m")
    groups = struct.pack("<IIII", 16, 32, 1, GROUP)
    for opcode in (MKDIR, SYMLINK, MKNOD, CREATE, TMPFILE):
        ((words, body),) = seen[opcode]
        assert words == 3
        assert bytes.fromhex(body).endswith(struct.pack("<II", 8, 0) + groups)
    assert COPY not in seen


def test_init_offers_no_way_around_us(tmp_path):
    ((_, body),) = sent("helper", tmp_path / "m")[INIT]
    major, minor, _, flags, flags2 = struct.unpack_from("<IIIII", bytes.fromhex(body))
    assert (major, minor) == (7, 45)
    assert flags & 1 << 30  # INIT_EXT
    assert not flags & (1 << 16 | 7 << 7)  # WRITEBACK_CACHE, SPLICE_*
    assert not flags2 & (1 << 5 | 1 << 8 | 1 << 9)  # PASSTHROUGH, ALLOW_IDMAP, OVER_IO_URING
