"""Large reads and writes between processors that share no cache (docs/decisions/080): said to be so
here, whatever the machine is."""

import ctypes
import os
import subprocess
from pathlib import Path

import pytest

import directfuse

from .built import compiled

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def offset_of_far(tmp_path_factory):
    program = compiled(
        "far", tmp_path_factory, "-D_GNU_SOURCE", f"-I{ROOT}/native", f"-I{ROOT}/native/include"
    )
    return int(subprocess.run([program], check=True, capture_output=True).stdout)


def segments():
    """Where this process has mapped segments of mount servers, by inode."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    found = [line.split(maxsplit=5) for line in lines if "memfd:directfuse" in line]
    return {words[4]: int(words[0].split("-")[0], 16) for words in found if int(words[2], 16) == 0}


@pytest.mark.parametrize("backend", ["passthrough", "memfs"])
def test_bytes_that_go_past_the_caches_arrive(backend, tmp_path, offset_of_far):
    source, point = tmp_path / "source", tmp_path / "mnt"
    source.mkdir()
    point.mkdir()
    words = [backend, *([str(source)] if backend == "passthrough" else []), str(point)]
    before = segments()
    with directfuse.mount(words, placement="server"):
        (segment,) = (at for inode, at in segments().items() if inode not in before)
        far = ctypes.c_uint32.from_address(segment + offset_of_far)
        assert far.value in (0, 1)
        for number, size in enumerate([8191, 8192, 20017, 65536, (1 << 20) + 20017]):
            bytes_ = bytes(range(1 + number, 252)) * (2 + size // (251 - number))
            fd = directfuse.os_open(f"{point}/{number}", os.O_CREAT | os.O_RDWR)
            for at in (0, 100):
                far.value = 1
                assert directfuse.pwrite(fd, bytes_[at : at + size], at) == size
                for _ in range(3):  # the second is kept, the third found
                    far.value = 1
                    assert directfuse.pread(fd, size + 4096, at) == bytes_[at : at + size]
                far.value = 1
                assert directfuse.pread(fd, size, at + 7) == bytes_[at + 7 : at + size]
            directfuse.close(fd)
