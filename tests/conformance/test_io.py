"""read(2), write(2) and their families: counts, offsets, holes, limits."""

import errno
import functools
import os
import resource
import stat
from contextlib import contextmanager

import pytest

from .expect import fails

MIB = 1 << 20
SIZES = [1, 4095, 4096, 4097, 131072, 131073, MIB + 1, 4 * MIB + 7]


@functools.cache  # 36 ms a MiB
def pattern(size):
    """Bytes in which every position tells where it belongs."""
    return b"".join(number.to_bytes(4, "big") for number in range(size // 4 + 1))[:size]


# ---- counts ------------------------------------------------------------------------------------


def test_read_of_an_empty_file_is_empty(fs):
    assert fs.os.read(fs.open(fs.make("f")), 10) == b""


def test_read_is_short_at_the_end(fs):
    fd = fs.open(fs.make("f", b"abcdef"))
    assert fs.os.read(fd, 4) == b"abcd"
    assert fs.os.read(fd, 4) == b"ef"
    assert fs.os.read(fd, 4) == b""


def test_read_of_nothing(fs):
    fd = fs.open(fs.make("f", b"abc"))
    assert fs.os.read(fd, 0) == b""
    assert fs.os.lseek(fd, 0, os.SEEK_CUR) == 0


def test_write_of_nothing(fs):
    path = fs.make("f", b"abc")
    fd = fs.open(path, os.O_WRONLY)
    assert fs.os.write(fd, b"") == 0
    assert fs.os.pwrite(fd, b"", 100) == 0
    assert fs.os.stat(path).st_size == 3


def test_write_returns_the_count_and_moves_the_offset(fs):
    fd = fs.open(fs.path("f"), os.O_CREAT | os.O_RDWR)
    assert fs.os.write(fd, b"abc") == 3
    assert fs.os.write(fd, b"def") == 3
    assert fs.os.lseek(fd, 0, os.SEEK_CUR) == 6
    assert fs.os.pread(fd, 10, 0) == b"abcdef"


def test_write_replaces_only_its_bytes(fs):
    path = fs.make("f", b"abcdef")
    fs.os.pwrite(fs.open(path, os.O_WRONLY), b"XY", 2)
    assert fs.data(path) == b"abXYef"


@pytest.mark.parametrize("size", SIZES)
def test_one_call_moves_any_size(fs, size):
    data = pattern(size)
    fd = fs.open(fs.path("f"), os.O_CREAT | os.O_RDWR)
    assert fs.os.write(fd, data) == size
    assert fs.os.fstat(fd).st_size == size
    assert fs.os.pread(fd, size + 10, 0) == data


@pytest.mark.parametrize("size", SIZES)
def test_sequential_reads_give_all_bytes(fs, size):
    data = pattern(size)
    fd = fs.open(fs.make("f", data))
    step = max(1, size // 7)
    assert b"".join(iter(lambda: fs.os.read(fd, step), b"")) == data


def test_write_at_odd_places(fs):
    data = bytearray(pattern(300_000))
    path = fs.make("f", bytes(data))
    fd = fs.open(path, os.O_WRONLY)
    for offset, size in [(1, 1), (4095, 2), (4097, 8190), (131071, 3), (65536, 131073)]:
        piece = os.urandom(size)
        data[offset : offset + size] = piece
        assert fs.os.pwrite(fd, piece, offset) == size
    assert fs.data(path) == data


def test_write_takes_any_buffer(fs):
    path = fs.path("f")
    fd = fs.open(path, os.O_CREAT | os.O_WRONLY)
    for data in (b"ab", bytearray(b"cd"), memoryview(b"xefx")[1:3]):
        assert fs.os.write(fd, data) == 2
    assert fs.data(path) == b"abcdef"


def test_bytes_written_are_seen_at_once_by_another_descriptor(fs):
    path = fs.make("f")
    writer, reader = fs.open(path, os.O_WRONLY), fs.open(path)
    fs.os.write(writer, b"abc")
    assert fs.os.read(reader, 10) == b"abc"
    fs.os.write(writer, b"def")
    assert fs.os.read(reader, 10) == b"def"
    fs.os.pwrite(writer, b"X", 0)
    assert fs.os.pread(reader, 1, 0) == b"X"


# ---- positional calls --------------------------------------------------------------------------


def test_pread_leaves_the_offset(fs):
    fd = fs.open(fs.make("f", b"abcdef"))
    assert fs.os.pread(fd, 2, 3) == b"de"
    assert fs.os.lseek(fd, 0, os.SEEK_CUR) == 0


def test_pwrite_leaves_the_offset(fs):
    fd = fs.open(fs.make("f", b"abcdef"), os.O_RDWR)
    assert fs.os.pwrite(fd, b"XY", 3) == 2
    assert fs.os.read(fd, 10) == b"abcXYf"


@pytest.mark.parametrize("offset", [3, 4, 5000, 1 << 40])
def test_pread_at_or_past_the_end_is_empty(fs, offset):
    fd = fs.open(fs.make("f", b"abc"))
    assert fs.os.pread(fd, 10, offset) == b""


@pytest.mark.parametrize(
    "call",
    [
        lambda os_, fd: os_.pread(fd, 1, -1),
        lambda os_, fd: os_.pwrite(fd, b"x", -1),
        lambda os_, fd: os_.preadv(fd, [bytearray(1)], -2),
        lambda os_, fd: os_.pwritev(fd, [b"x"], -2),
        lambda os_, fd: os_.read(fd, -1),
        lambda os_, fd: os_.pread(fd, -1, 0),
        lambda os_, fd: os_.lseek(fd, -1, os.SEEK_SET),
        lambda os_, fd: os_.lseek(fd, -4, os.SEEK_END),
        lambda os_, fd: os_.lseek(fd, -1, os.SEEK_CUR),
        lambda os_, fd: os_.lseek(fd, 0, 99),
        lambda os_, fd: os_.ftruncate(fd, -1),
        lambda os_, fd: os_.fallocate(fd, 0, -1, 1),
        lambda os_, fd: os_.fallocate(fd, 0, 0, 0),
        lambda os_, fd: os_.fallocate(fd, 0, 0, -1),
        lambda os_, fd: os_.posix_fallocate(fd, -1, 1),
        lambda os_, fd: os_.posix_fallocate(fd, 0, 0),
    ],
    ids=[
        "pread", "pwrite", "preadv", "pwritev", "read-length", "pread-length", "lseek-set",
        "lseek-end", "lseek-cur", "lseek-whence", "ftruncate", "fallocate-offset",
        "fallocate-zero", "fallocate-length", "posix_fallocate-offset", "posix_fallocate-zero",
    ],
)  # fmt: skip
def test_negative_and_senseless_numbers_are_einval(fs, call):
    path = fs.make("f", b"abc")
    fd = fs.open(path, os.O_RDWR)
    with fails(errno.EINVAL):
        call(fs.os, fd)
    assert fs.data(path) == b"abc"
    assert fs.os.lseek(fd, 0, os.SEEK_CUR) == 0


@pytest.mark.parametrize("mode", [0x02, 0x09, 0x13, 0x21, 0x28, 0x43, 0x81, 0x100], ids=hex)
def test_modes_of_fallocate_that_there_are_not(fs, mode):
    """Kinds are exclusive, and some keep the size, some do not: since Linux 6.11."""
    fd = fs.open(fs.make("f", b"abc"))
    with fails(errno.EOPNOTSUPP):
        fs.os.fallocate(fd, mode, 0, 1)


@pytest.mark.parametrize("mode", [0, 0x01, 0x03, 0x08, 0x10, 0x20, 0x40, 0x80], ids=hex)
def test_fallocate_of_what_may_not_be_written_to(fs, mode):
    fd = fs.open(fs.make("f", b"abc"))
    with fails(errno.EBADF):
        fs.os.fallocate(fd, mode, 0, 1)


# ---- vectors -----------------------------------------------------------------------------------


def test_readv_fills_buffers_in_order(fs):
    fd = fs.open(fs.make("f", b"abcdefgh"))
    buffers = [bytearray(3), bytearray(1), bytearray(2)]
    assert fs.os.readv(fd, buffers) == 6
    assert buffers == [b"abc", b"d", b"ef"]
    assert fs.os.lseek(fd, 0, os.SEEK_CUR) == 6


def test_readv_is_short_at_the_end(fs):
    fd = fs.open(fs.make("f", b"abcd"))
    buffers = [bytearray(b"---"), bytearray(b"---"), bytearray(b"---")]
    assert fs.os.readv(fd, buffers) == 4
    assert buffers == [b"abc", b"d--", b"---"]


def test_writev_concatenates(fs):
    path = fs.path("f")
    fd = fs.open(path, os.O_CREAT | os.O_WRONLY)
    assert fs.os.writev(fd, [b"abc", b"", bytearray(b"d"), memoryview(b"ef")]) == 6
    assert fs.os.lseek(fd, 0, os.SEEK_CUR) == 6
    assert fs.data(path) == b"abcdef"


def test_preadv_and_pwritev_leave_the_offset(fs):
    fd = fs.open(fs.make("f", b"abcdef"), os.O_RDWR)
    buffers = [bytearray(1), bytearray(2)]
    assert fs.os.preadv(fd, buffers, 2) == 3
    assert buffers == [b"c", b"de"]
    assert fs.os.pwritev(fd, [b"X", b"YZ"], 1) == 3
    assert fs.os.read(fd, 10) == b"aXYZef"


def test_vectors_may_be_empty(fs):
    fd = fs.open(fs.make("f", b"abc"), os.O_RDWR)
    assert fs.os.readv(fd, []) == 0
    assert fs.os.writev(fd, []) == 0
    assert fs.os.preadv(fd, [], 0) == 0
    assert fs.os.pwritev(fd, [], 0) == 0


@pytest.mark.parametrize("buffers", [[], [b""], [b"", b""]])
def test_a_vector_without_room_asks_a_directory_for_nothing(fs, buffers):
    fd = fs.open(fs.root, os.O_RDONLY | os.O_DIRECTORY)
    assert fs.os.readv(fd, [bytearray(buffer) for buffer in buffers]) == 0
    assert fs.os.preadv(fd, [bytearray(buffer) for buffer in buffers], 0) == 0
    with fails(errno.EISDIR):
        fs.os.readv(fd, [bytearray(1)])
    with fails(errno.EISDIR):
        fs.os.preadv(fd, [bytearray(), bytearray(1)], 0)
    with fails(errno.EISDIR):
        fs.os.read(fd, 0)
    with fails(errno.EINVAL):
        fs.os.readv(fd, [bytearray(1)] * 1025)


def test_a_thousand_buffers_in_one_call(fs):
    path = fs.path("f")
    fd = fs.open(path, os.O_CREAT | os.O_RDWR)
    pieces = [number.to_bytes(3, "big") for number in range(1024)]
    assert fs.os.writev(fd, pieces) == 3072
    buffers = [bytearray(3) for _ in pieces]
    assert fs.os.preadv(fd, buffers, 0) == 3072
    assert buffers == pieces


def test_more_buffers_than_iov_max_is_einval(fs):
    fd = fs.open(fs.make("f", b"abc"), os.O_RDWR)
    with fails(errno.EINVAL):
        fs.os.readv(fd, [bytearray(1)] * 1025)
    with fails(errno.EINVAL):
        fs.os.writev(fd, [b"x"] * 1025)


def test_large_vectors(fs):
    data = pattern(3 * MIB)
    fd = fs.open(fs.path("f"), os.O_CREAT | os.O_RDWR)
    assert fs.os.writev(fd, [data[:1], data[1 : MIB + 5], data[MIB + 5 :]]) == len(data)
    buffers = [bytearray(2 * MIB), bytearray(2 * MIB)]
    assert fs.os.preadv(fd, buffers, 0) == len(data)
    assert bytes(buffers[0] + buffers[1])[: len(data)] == data


# ---- the offset --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "start, offset, whence, result",
    [
        (0, 3, os.SEEK_SET, 3),
        (2, 3, os.SEEK_CUR, 5),
        (4, -3, os.SEEK_CUR, 1),
        (0, 0, os.SEEK_END, 6),
        (0, -2, os.SEEK_END, 4),
        (0, 10, os.SEEK_END, 16),
        (0, 1 << 40, os.SEEK_SET, 1 << 40),
    ],
)
def test_lseek(fs, start, offset, whence, result):
    fd = fs.open(fs.make("f", b"abcdef"))
    fs.os.lseek(fd, start, os.SEEK_SET)
    assert fs.os.lseek(fd, offset, whence) == result
    assert fs.os.lseek(fd, 0, os.SEEK_CUR) == result


def test_seek_past_the_end_does_not_extend(fs):
    path = fs.make("f", b"abc")
    fd = fs.open(path, os.O_RDWR)
    fs.os.lseek(fd, 100, os.SEEK_SET)
    assert fs.os.read(fd, 1) == b""
    assert fs.os.stat(path).st_size == 3


def test_seek_end_sees_another_descriptors_writes(fs):
    path = fs.make("f", b"abc")
    fd = fs.open(path)
    fs.os.write(fs.open(path, os.O_WRONLY | os.O_APPEND), b"def")
    assert fs.os.lseek(fd, 0, os.SEEK_END) == 6


# ---- holes -------------------------------------------------------------------------------------


@pytest.mark.parametrize("offset", [1, 4095, 4096, 10_000, 131_072, 5 * MIB + 3, 5 << 30])
def test_write_past_the_end_leaves_zeros(fs, offset):
    path = fs.make("f", b"a")
    fd = fs.open(path, os.O_RDWR)
    assert fs.os.pwrite(fd, b"z", offset) == 1
    assert fs.os.stat(path).st_size == offset + 1
    assert fs.os.pread(fd, 1, 0) == b"a"
    assert fs.os.pread(fd, 10, offset) == b"z"
    gap = min(offset - 1, 10_000)
    assert fs.os.pread(fd, gap, offset - gap) == bytes(gap)


def test_sparse_file_takes_few_blocks(fs):
    fd = fs.open(fs.path("f"), os.O_CREAT | os.O_WRONLY)
    fs.os.pwrite(fd, b"x", 64 * MIB)
    assert fs.os.fstat(fd).st_blocks * 512 < MIB


def test_full_file_takes_its_blocks(fs):
    status = fs.os.stat(fs.make("f", bytes(MIB)))
    assert status.st_blocks * 512 >= MIB


@pytest.fixture
def sparse(fs):
    """Data in [0, 1) and [4, 5) MiB, holes in [1, 4) and [5, 8)."""
    fd = fs.open(fs.path("f"), os.O_CREAT | os.O_RDWR)
    fs.os.pwrite(fd, pattern(MIB), 0)
    fs.os.pwrite(fd, pattern(MIB), 4 * MIB)
    fs.os.ftruncate(fd, 8 * MIB)
    return fd


@pytest.mark.parametrize(
    "whence, offset, result",
    [
        (os.SEEK_DATA, 0, 0),
        (os.SEEK_DATA, 100, 100),
        (os.SEEK_DATA, MIB, 4 * MIB),
        (os.SEEK_DATA, 2 * MIB + 1, 4 * MIB),
        (os.SEEK_DATA, 4 * MIB, 4 * MIB),
        (os.SEEK_HOLE, 0, MIB),
        (os.SEEK_HOLE, MIB + 7, MIB + 7),
        (os.SEEK_HOLE, 4 * MIB + 1, 5 * MIB),
        (os.SEEK_HOLE, 8 * MIB - 1, 8 * MIB - 1),
    ],
)
def test_seek_data_and_hole(fs, sparse, whence, offset, result):
    assert fs.os.lseek(sparse, offset, whence) == result
    assert fs.os.lseek(sparse, 0, os.SEEK_CUR) == result


@pytest.mark.parametrize(
    "whence, offset",
    [
        (os.SEEK_DATA, 5 * MIB),
        (os.SEEK_DATA, 8 * MIB),
        (os.SEEK_HOLE, 8 * MIB),
        (os.SEEK_DATA, -1),
        (os.SEEK_HOLE, -1),
    ],
)
def test_seek_data_and_hole_without_any_is_enxio(fs, sparse, whence, offset):
    with fails(errno.ENXIO):
        fs.os.lseek(sparse, offset, whence)
    assert fs.os.lseek(sparse, 0, os.SEEK_CUR) == 0


def test_end_of_a_full_file_is_a_hole(fs):
    fd = fs.open(fs.make("f", b"abc"))
    assert fs.os.lseek(fd, 0, os.SEEK_HOLE) == 3
    assert fs.os.lseek(fd, 0, os.SEEK_DATA) == 0


def test_seek_data_in_an_empty_file_is_enxio(fs):
    fd = fs.open(fs.make("f"))
    with fails(errno.ENXIO):
        fs.os.lseek(fd, 0, os.SEEK_DATA)


# ---- limits ------------------------------------------------------------------------------------


@contextmanager
def limited(fs, size):
    """RLIMIT_FSIZE for a time; Python ignores SIGXFSZ."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    fs.refresh()
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    fs.refresh()


def unlimited(fs):
    return limited(fs, resource.getrlimit(resource.RLIMIT_FSIZE)[1])


@pytest.fixture
def file_size_limit(fs):
    with limited(fs, MIB):
        yield MIB


def test_write_past_the_file_size_limit_is_efbig(fs, file_size_limit):
    path = fs.path("f")
    fd = fs.open(path, os.O_CREAT | os.O_WRONLY)
    with fails(errno.EFBIG):
        fs.os.pwrite(fd, b"x", file_size_limit)
    assert fs.os.stat(path).st_size == 0


def test_write_across_the_file_size_limit_is_short(fs, file_size_limit):
    fd = fs.open(fs.path("f"), os.O_CREAT | os.O_WRONLY)
    assert fs.os.pwrite(fd, b"x" * 100, file_size_limit - 10) == 10


def test_truncate_past_the_file_size_limit_is_efbig(fs, file_size_limit):
    path = fs.make("f", b"abc")
    with fails(errno.EFBIG):
        fs.os.truncate(path, file_size_limit + 1)
    assert fs.os.stat(path).st_size == 3


@pytest.mark.parametrize("call", ["truncate", "ftruncate"])
def test_file_past_the_size_limit_may_shrink_and_not_grow(fs, file_size_limit, call):
    path = fs.make("f")
    with unlimited(fs):
        fs.os.truncate(path, 3 * file_size_limit)
    change = getattr(fs.os, call)
    file = path if call == "truncate" else fs.open(path, os.O_RDWR)
    with fails(errno.EFBIG):
        change(file, 3 * file_size_limit + 1)
    change(file, 2 * file_size_limit)
    assert fs.os.stat(path).st_size == 2 * file_size_limit


def test_fallocate_past_the_size_limit_may_fill_and_not_extend(fs, file_size_limit):
    fd = fs.open(fs.make("f"), os.O_RDWR)
    with unlimited(fs):
        fs.os.ftruncate(fd, 3 * file_size_limit)
    fs.os.posix_fallocate(fd, 2 * file_size_limit, file_size_limit)
    with fails(errno.EFBIG):
        fs.os.posix_fallocate(fd, 2 * file_size_limit, file_size_limit + 1)
    assert fs.os.fstat(fd).st_size == 3 * file_size_limit


def test_write_at_the_greatest_offset_is_refused(fs):
    fd = fs.open(fs.path("f"), os.O_CREAT | os.O_WRONLY)
    with fails((errno.EFBIG, errno.EINVAL)):
        fs.os.pwrite(fd, b"xy", (1 << 63) - 2)
    assert fs.os.fstat(fd).st_size == 0


# ---- durability --------------------------------------------------------------------------------


@pytest.mark.parametrize("call", ["fsync", "fdatasync"])
def test_sync_of_files_and_directories(fs, call):
    sync = getattr(fs.os, call)
    sync(fs.open(fs.make("f", b"x"), os.O_RDWR))
    sync(fs.open(fs.path("f")))
    sync(fs.open(fs.root, os.O_DIRECTORY))


def test_synced_bytes_stay(fs):
    path = fs.path("f")
    fd = fs.open(path, os.O_CREAT | os.O_WRONLY)
    fs.os.write(fd, b"abc")
    fs.os.fsync(fd)
    assert fs.data(path) == b"abc"
    assert stat.S_ISREG(fs.os.fstat(fd).st_mode)
