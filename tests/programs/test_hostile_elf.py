"""Programs whose headers lie: each is refused with a reason, or is the program that it was.

Fields of the ELF header, of program headers and of the dynamic section get values that point
nowhere or overflow, and the file is cut. The dynamic linker would believe all of it.
"""

import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import directfuse

from .conftest import need

PHDR, DYN = 56, 16
PT_LOAD, PT_DYNAMIC = 1, 2
#: DT_PLTRELSZ, HASH, STRTAB, SYMTAB, RELA, RELASZ, RELAENT, STRSZ, SYMENT, INIT, FINI, SONAME,
#: JMPREL, INIT_ARRAY, FINI_ARRAY, their sizes, GNU_HASH, VERSYM, VERNEED, VERNEEDNUM
POINTERS_AND_SIZES = {2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 23, 25, 26, 27, 28}
POINTERS_AND_SIZES |= {0x6FFFFEF5, 0x6FFFFFF0, 0x6FFFFFFE, 0x6FFFFFFF}

#: Asks for each image in turn; only a refusal or an ended program may be the answer.
JUDGE = """
import errno, sys, directfuse
for path in sys.argv[1:]:
    try:
        directfuse.mount([path, "--help"], placement="inline", timeout=20)
    except directfuse.MountError as error:
        assert error.errno in (errno.ENOEXEC, errno.EIO), error
        assert len(str(error)) > 10
        print(error.errno)
    else:
        raise SystemExit("mounted")
"""


class Image:
    """Where the tables of a 64-bit little-endian program are."""

    def __init__(self, data):
        self.data = data
        self.phoff, self.phnum = self.u64(32), self.u16(56)
        self.loads = [
            (self.u64(at + 16), self.u64(at + 8), self.u64(at + 32))
            for at in self.segments()
            if self.u32(at) == PT_LOAD
        ]
        at = next(at for at in self.segments() if self.u32(at) == PT_DYNAMIC)
        self.dynamic, self.dynamic_size = self.u64(at + 8), self.u64(at + 32)

    def u16(self, at):
        return struct.unpack_from("<H", self.data, at)[0]

    def u32(self, at):
        return struct.unpack_from("<I", self.data, at)[0]

    def u64(self, at):
        return struct.unpack_from("<Q", self.data, at)[0]

    def segments(self):
        return [self.phoff + i * PHDR for i in range(self.phnum)]

    def offset(self, address):
        return next(
            offset + address - start
            for start, offset, size in self.loads
            if start <= address < start + size
        )

    def fields(self):
        """(offset, size) of what steers a reader: of the header, of segments, of the dynamic
        section. (Not what a segment is: without one the program is another.)"""
        yield from ((4, 1), (5, 1), (16, 2), (18, 2), (20, 4), (24, 8), (32, 8), (54, 2), (56, 2))
        for at in self.segments():
            if self.u32(at) in (PT_LOAD, PT_DYNAMIC):
                yield from ((at + 8, 8), (at + 16, 8), (at + 32, 8), (at + 40, 8))
        for at in range(self.dynamic, self.dynamic + self.dynamic_size, DYN):
            if self.u64(at) in POINTERS_AND_SIZES:
                yield (at + 8, 8)


@pytest.fixture(scope="module")
def program():
    need("squashfuse")
    return Path(shutil.which("squashfuse")).read_bytes()


#: Beyond any file, or overflowing.
NASTY = st.one_of(
    st.sampled_from([2**31 - 1, 2**31, 2**32 - 1, 2**47, 2**63, 2**64 - 4096, 2**64 - 1]),
    st.integers(2**31, 2**64 - 1),
)


@st.composite
def damage(draw):
    changes = st.tuples(st.integers(0, 2**32), NASTY)
    return draw(st.lists(changes, min_size=1, max_size=3)), draw(
        st.one_of(st.none(), st.floats(0, 1))
    )


def damaged(program, changes, cut):
    data = bytearray(program)
    fields = list(Image(program).fields())
    for which, value in changes:
        at, size = fields[which % len(fields)]
        data[at : at + size] = (value & (1 << 8 * size) - 1).to_bytes(size, "little")
    return bytes(data[: int(len(data) * cut)] if cut is not None else data)


def judge(paths):
    return subprocess.run(
        [sys.executable, "-c", JUDGE, *paths],
        capture_output=True,
        text=True,
        timeout=50,
        cwd=os.path.dirname(paths[0]),
    )


@settings(
    max_examples=6,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(damages=st.lists(damage(), min_size=8, max_size=8))
def test_headers_that_lie(program, tmp_path, damages):
    paths = []
    for number, (changes, cut) in enumerate(damages):
        path = tmp_path / str(number)
        path.write_bytes(damaged(program, changes, cut))
        path.chmod(0o755)
        paths.append(path)
    done = judge(paths)
    assert done.returncode == 0, done.stderr[-2000:]


def test_a_sound_program_is_told_apart(program, tmp_path):
    path = tmp_path / "sound"
    path.write_bytes(program)
    done = judge([path])
    assert done.returncode == 0 and done.stdout == "5\n", done.stderr


def test_what_kept_it_out_is_said_when_it_does_not_run_either(program, tmp_path):
    path = tmp_path / "cut"
    path.write_bytes(program[:3000])
    path.chmod(0o755)
    with pytest.raises(
        directfuse.MountError, match=r"(?s)helper.*not loaded.*truncated or damaged"
    ):
        directfuse.mount([path, "image", tmp_path / "mountpoint"])
