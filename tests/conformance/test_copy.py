"""copy_file_range(2) within one file system."""

import errno
import mmap
import os
import struct

import pytest

from .expect import fails

MIB = 1 << 20


@pytest.fixture
def pair(fs):
    """A readable descriptor of b"abcdef" and a read-write one of b"uvwxyz"."""
    return fs.open(fs.make("source", b"abcdef")), fs.open(fs.make("target", b"uvwxyz"), os.O_RDWR)


def test_offsets_of_the_descriptors_move(fs, pair):
    source, target = pair
    assert fs.os.copy_file_range(source, target, 2) == 2
    assert fs.os.copy_file_range(source, target, 2) == 2
    assert fs.os.pread(target, 10, 0) == b"abcdyz"
    assert fs.os.lseek(source, 0, os.SEEK_CUR) == 4
    assert fs.os.lseek(target, 0, os.SEEK_CUR) == 4


def test_given_offsets_leave_the_descriptors_alone(fs, pair):
    source, target = pair
    assert fs.os.copy_file_range(source, target, 2, offset_src=1, offset_dst=3) == 2
    assert fs.os.pread(target, 10, 0) == b"uvwbcz"
    assert fs.os.lseek(source, 0, os.SEEK_CUR) == 0
    assert fs.os.lseek(target, 0, os.SEEK_CUR) == 0


def test_copy_is_short_at_the_end(fs, pair):
    source, target = pair
    assert fs.os.copy_file_range(source, target, 100, offset_src=4) == 2
    assert fs.os.copy_file_range(source, target, 100, offset_src=6) == 0
    assert fs.os.copy_file_range(source, target, 100, offset_src=60) == 0
    assert fs.os.pread(target, 10, 0) == b"efwxyz"


def test_copy_of_nothing(fs, pair):
    assert fs.os.copy_file_range(*pair, 0) == 0


def test_copy_past_the_end_leaves_a_hole(fs, pair):
    source, target = pair
    assert fs.os.copy_file_range(source, target, 3, offset_dst=10) == 3
    assert fs.os.pread(target, 20, 0) == b"uvwxyz\0\0\0\0abc"


def test_large_copy(fs):
    data = os.urandom(3 * MIB + 5)
    source = fs.open(fs.make("source", data))
    target = fs.open(fs.path("target"), os.O_CREAT | os.O_RDWR)
    left = len(data)
    while left:
        done = fs.os.copy_file_range(source, target, left)
        assert done > 0
        left -= done
    assert fs.data(fs.path("target")) == data


def test_copy_inside_one_file(fs):
    fd = fs.open(fs.make("f", b"abcdef"), os.O_RDWR)
    assert fs.os.copy_file_range(fd, fd, 2, offset_src=0, offset_dst=4) == 2
    assert fs.os.pread(fd, 10, 0) == b"abcdab"


def test_overlapping_copy_inside_one_file_is_einval(fs):
    fd = fs.open(fs.make("f", b"abcdef"), os.O_RDWR)
    with fails(errno.EINVAL):
        fs.os.copy_file_range(fd, fd, 3, offset_src=0, offset_dst=2)


@pytest.mark.parametrize(
    "source, target",
    [
        (os.O_WRONLY, os.O_WRONLY),
        (os.O_RDONLY, os.O_RDONLY),
        (os.O_RDONLY, os.O_RDWR | os.O_APPEND),
    ],
    ids=["unreadable", "unwritable", "appending"],
)
def test_descriptor_of_the_wrong_kind_is_ebadf(fs, source, target):
    source = fs.open(fs.make("source", b"abc"), source)
    target = fs.open(fs.make("target"), target)
    with fails(errno.EBADF):
        fs.os.copy_file_range(source, target, 1)


def test_copy_of_a_directory_is_eisdir(fs):
    target = fs.open(fs.make("target"), os.O_WRONLY)
    with fails(errno.EISDIR):
        fs.os.copy_file_range(fs.open(fs.root), target, 1)


FICLONE, FICLONERANGE = 0x40049409, 0x4020940D


def test_no_blocks_are_shared(fs, pair):
    """Programs copy then: cp asks for each file."""
    source, target = pair
    with fails(errno.EOPNOTSUPP):
        fs.os.ioctl(target, FICLONE, source)
    with fails(errno.EOPNOTSUPP):
        fs.os.ioctl(target, FICLONERANGE, struct.pack("qQQQ", source, 0, 0, 0))
    assert fs.os.pread(target, 10, 0) == b"uvwxyz"


FIBMAP = 1
FIGETBSZ, FIOQSIZE, FIONBIO, FIDEDUPERANGE = 2, 0x5460, 0x5421, 0xC0189436


def test_what_linux_answers_for_every_file_system(fs, pair):
    for fd in (pair[0], fs.open(fs.root, os.O_RDONLY | os.O_DIRECTORY)):
        size, taken = bytearray(4), bytearray(8)
        fs.os.ioctl(fd, FIGETBSZ, size)
        fs.os.ioctl(fd, FIOQSIZE, taken)
        assert struct.unpack("i", size)[0] == mmap.PAGESIZE
        assert struct.unpack("q", taken)[0] in (0, fs.os.fstat(fd).st_blocks * 512)  # 0: not known
        with fails(errno.EFAULT):
            fs.os.ioctl(fd, FIGETBSZ, 0)
    with fails(errno.EISDIR):
        fs.os.ioctl(fd, FIDEDUPERANGE, bytearray(24))
    with fails(errno.EINVAL):  # not open for reading
        fs.os.ioctl(fs.open(fs.path("target"), os.O_WRONLY), FIDEDUPERANGE, bytearray(24))
    with fails(errno.EOPNOTSUPP):
        fs.os.ioctl(pair[0], FIDEDUPERANGE, bytearray(24))


def test_which_block_of_a_device_a_file_has_is_told_to_root_alone(fs, pair, user):
    """FIBMAP: not every file system has any."""
    try:
        fs.os.ioctl(pair[0], FIBMAP, bytearray(4))
    except OSError as error:
        assert error.errno == errno.EINVAL
    with fails(errno.EPERM):
        user(1000, 1000, lambda: fs.os.ioctl(pair[0], FIBMAP, bytearray(4)))


def test_nothing_is_asked_of_a_file_that_is_open_for_its_place(fs):
    fd = fs.open(fs.make("f"), os.O_PATH)
    for request in (FIGETBSZ, FIOQSIZE, FIONBIO, 0x5401, 0x541B):
        with fails(errno.EBADF):
            fs.os.ioctl(fd, request, bytearray(64))


def test_clone_checks_both_ends(fs, pair):
    source, target = pair
    with fails(errno.EBADF):  # not open for writing
        fs.os.ioctl(source, FICLONE, target)
    with fails(errno.EISDIR):
        fs.os.ioctl(target, FICLONE, fs.open(fs.root, os.O_RDONLY | os.O_DIRECTORY))
