"""truncate(2) and fallocate(2): sizes change, bytes in between do not."""

import errno
import os

import pytest

from .expect import fails

KEEP_SIZE, PUNCH_HOLE, COLLAPSE_RANGE, ZERO_RANGE = 1, 2, 8, 16  # fallocate(2)
MIB = 1 << 20

by_path_and_descriptor = pytest.mark.parametrize("by", ["path", "descriptor"])


def resize(fs, by, path, size):
    if by == "path":
        fs.os.truncate(path, size)
    else:
        fs.os.ftruncate(fs.open(path, os.O_WRONLY), size)


@by_path_and_descriptor
@pytest.mark.parametrize("size", [0, 1, 5, 6])
def test_shrink(fs, by, size):
    path = fs.make("f", b"abcdef")
    resize(fs, by, path, size)
    assert fs.data(path) == b"abcdef"[:size]


@by_path_and_descriptor
@pytest.mark.parametrize("size", [7, 4096, 4097, 1_000_000])
def test_grow_adds_zeros(fs, by, size):
    path = fs.make("f", b"abcdef")
    resize(fs, by, path, size)
    assert fs.data(path) == b"abcdef".ljust(size, b"\0")


@by_path_and_descriptor
@pytest.mark.parametrize("cut", [0, 1, 100, 4096, 5000])
def test_shrunk_bytes_do_not_come_back(fs, by, cut):
    path = fs.make("f", b"x" * 10_000)
    resize(fs, by, path, cut)
    resize(fs, by, path, 10_000)
    assert fs.data(path) == (b"x" * cut).ljust(10_000, b"\0")


def test_shrunk_bytes_do_not_come_back_by_a_write_behind(fs):
    path = fs.make("f", b"x" * 10_000)
    fs.os.truncate(path, 10)
    fs.os.pwrite(fs.open(path, os.O_WRONLY), b"y", 9_000)
    assert fs.data(path) == b"x" * 10 + bytes(8_990) + b"y"


def test_truncate_follows_a_symlink(fs):
    path = fs.make("f", b"abc")
    fs.os.truncate(fs.symlink("f", "link"), 1)
    assert fs.data(path) == b"a"


def test_truncate_of_a_directory_is_eisdir(fs):
    path = fs.mkdir("d")
    with fails(errno.EISDIR, path):
        fs.os.truncate(path, 0)


def test_truncate_to_a_negative_size_is_einval(fs):
    path = fs.make("f", b"abc")
    with fails(errno.EINVAL, path):
        fs.os.truncate(path, -1)
    assert fs.data(path) == b"abc"


def test_truncate_by_descriptor_argument(fs):
    path = fs.make("f", b"abc")
    fs.os.truncate(fs.open(path, os.O_RDWR), 1)
    assert fs.data(path) == b"a"


def test_truncate_leaves_the_offset(fs):
    fd = fs.open(fs.make("f", b"abcdef"), os.O_RDWR)
    fs.os.lseek(fd, 4, os.SEEK_SET)
    fs.os.ftruncate(fd, 2)
    assert fs.os.lseek(fd, 0, os.SEEK_CUR) == 4
    assert fs.os.read(fd, 10) == b""
    fs.os.write(fd, b"z")
    assert fs.os.pread(fd, 10, 0) == b"ab\0\0z"


def test_truncate_is_seen_by_other_descriptors(fs):
    path = fs.make("f", b"abcdef")
    reader = fs.open(path)
    assert fs.os.pread(reader, 10, 0) == b"abcdef"
    fs.os.truncate(path, 2)
    assert fs.os.pread(reader, 10, 0) == b"ab"
    assert fs.os.fstat(reader).st_size == 2


def test_truncate_frees_blocks(fs):
    path = fs.make("f", b"x" * MIB)
    fs.os.truncate(path, 0)
    assert fs.os.stat(path).st_blocks == 0


def test_truncate_beyond_four_gibibytes(fs):
    path = fs.make("f", b"abc")
    fs.os.truncate(path, 5 << 30)
    assert fs.os.stat(path).st_size == 5 << 30
    fs.os.truncate(path, 3)
    assert fs.data(path) == b"abc"


# ---- fallocate ---------------------------------------------------------------------------------


def test_fallocate_extends_with_zeros(fs):
    path = fs.make("f", b"abc")
    fs.os.fallocate(fs.open(path, os.O_WRONLY), 0, 1, 9_999)
    assert fs.data(path) == b"abc".ljust(10_000, b"\0")


def test_fallocate_inside_changes_nothing(fs):
    path = fs.make("f", b"abcdef")
    fs.os.fallocate(fs.open(path, os.O_WRONLY), 0, 1, 2)
    assert fs.data(path) == b"abcdef"


def test_fallocate_keeping_the_size(fs):
    path = fs.make("f", b"abc")
    fs.os.fallocate(fs.open(path, os.O_WRONLY), KEEP_SIZE, 0, MIB)
    assert fs.os.stat(path).st_size == 3
    assert fs.data(path) == b"abc"


def test_fallocate_reserves_blocks(fs):
    path = fs.make("f")
    fs.os.fallocate(fs.open(path, os.O_WRONLY), 0, 0, MIB)
    assert fs.os.stat(path).st_blocks * 512 >= MIB


@pytest.mark.parametrize(
    "offset, length", [(0, 4096), (4096, 8192), (100, 200), (4000, 5000), (15_000, 50_000)]
)
def test_punched_hole_reads_zeros(fs, offset, length):
    data = bytearray(os.urandom(20_000))
    path = fs.make("f", bytes(data))
    fs.os.fallocate(fs.open(path, os.O_WRONLY), PUNCH_HOLE | KEEP_SIZE, offset, length)
    end = min(offset + length, len(data))
    data[offset:end] = bytes(end - offset)
    assert fs.data(path) == data


def test_punched_hole_frees_blocks(fs):
    path = fs.make("f", b"x" * MIB)
    before = fs.os.stat(path).st_blocks
    fs.os.fallocate(fs.open(path, os.O_WRONLY), PUNCH_HOLE | KEEP_SIZE, 0, MIB // 2)
    assert fs.os.stat(path).st_blocks < before


def test_punching_must_keep_the_size(fs):
    fd = fs.open(fs.make("f", b"abc"), os.O_WRONLY)
    with fails(errno.EOPNOTSUPP):
        fs.os.fallocate(fd, PUNCH_HOLE, 0, 1)


def test_zero_range_zeroes_or_is_refused(fs):
    path = fs.make("f", b"x" * 10_000)
    fd = fs.open(path, os.O_WRONLY)
    try:
        fs.os.fallocate(fd, ZERO_RANGE, 1000, 5000)
    except OSError as error:
        assert error.errno == errno.EOPNOTSUPP
        assert fs.data(path) == b"x" * 10_000
    else:
        assert fs.data(path) == b"x" * 1000 + bytes(5000) + b"x" * 4000


@pytest.mark.parametrize("mode", [COLLAPSE_RANGE, 1 << 12], ids=["collapse", "unknown"])
def test_fallocate_mode_nobody_has_is_eopnotsupp(fs, mode):
    fd = fs.open(fs.make("f", b"x" * 10_000), os.O_WRONLY)
    with fails(errno.EOPNOTSUPP):
        fs.os.fallocate(fd, mode, 0, 4096)
    assert fs.os.fstat(fd).st_size == 10_000


def test_fallocate_past_the_greatest_offset_is_efbig(fs):
    fd = fs.open(fs.make("f", b"abc"), os.O_WRONLY)
    with fails(errno.EFBIG):
        fs.os.fallocate(fd, 0, (1 << 63) - 2, 100)


def test_posix_fallocate_extends(fs):
    path = fs.make("f", b"abc")
    fs.os.posix_fallocate(fs.open(path, os.O_RDWR), 0, 10_000)
    assert fs.data(path) == b"abc".ljust(10_000, b"\0")
