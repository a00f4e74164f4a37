"""Files and directories that are open and have no name any more."""

import errno
import os
import stat

import pytest

from .expect import fails, kind


@pytest.fixture
def nameless(fs):
    """A read-write descriptor of an unlinked file with b"abcdef"."""
    path = fs.make("nameless", b"abcdef")
    fd = fs.open(path, os.O_RDWR)
    fs.os.unlink(path)
    return fd


def test_reads_go_on(fs, nameless):
    assert fs.os.read(nameless, 10) == b"abcdef"


def test_writes_go_on(fs, nameless):
    fs.os.pwrite(nameless, b"xyz", 10_000)
    assert fs.os.pread(nameless, 10, 10_000) == b"xyz"
    assert fs.os.fstat(nameless).st_size == 10_003


def test_link_count_is_zero(fs, nameless):
    assert fs.os.fstat(nameless).st_nlink == 0


def test_truncate_goes_on(fs, nameless):
    fs.os.ftruncate(nameless, 2)
    assert fs.os.pread(nameless, 10, 0) == b"ab"


def test_attributes_can_be_set(fs, nameless):
    fs.os.fchmod(nameless, 0o600)
    fs.os.utime(nameless, ns=(1, 2))
    status = fs.os.fstat(nameless)
    assert stat.S_IMODE(status.st_mode) == 0o600
    assert (status.st_atime_ns, status.st_mtime_ns) == (1, 2)


def test_extended_attributes_can_be_set(fs, xattrs, nameless):
    fs.os.setxattr(nameless, "user.a", b"1")
    assert fs.os.getxattr(nameless, "user.a") == b"1"


def test_duplicates_go_on(fs, nameless):
    copy = fs.adopt(fs.os.dup(nameless))
    fs.os.close(nameless)
    assert fs.os.read(copy, 3) == b"abc"


def test_directory_shows_nothing(fs, nameless):
    assert fs.names() == []


def test_name_is_free_for_another_file(fs, nameless):
    path = fs.make("nameless", b"other")
    fs.os.write(nameless, b"XYZ")
    assert fs.data(path) == b"other"
    assert fs.os.pread(nameless, 10, 0) == b"XYZdef"
    assert not os.path.samestat(fs.os.stat(path), fs.os.fstat(nameless))


def test_name_is_free_for_a_directory(fs, nameless):
    fs.mkdir("nameless")
    fs.make("nameless/f")
    assert fs.os.read(nameless, 3) == b"abc"


def test_directory_can_be_removed(fs):
    fs.mkdir("d")
    path = fs.make("d/f", b"abc")
    fd = fs.open(path)
    fs.os.unlink(path)
    fs.os.rmdir(fs.path("d"))
    assert fs.names() == []
    assert fs.os.read(fd, 10) == b"abc"


def test_inode_stays_the_same(fs):
    path = fs.make("f")
    fd = fs.open(path)
    before = fs.os.fstat(fd)
    fs.os.unlink(path)
    assert os.path.samestat(fs.os.fstat(fd), before)


def test_another_name_keeps_the_file(fs):
    path = fs.make("f", b"abc")
    other = fs.path("other")
    fs.os.link(path, other)
    fd = fs.open(path, os.O_RDWR)
    fs.os.unlink(path)
    assert fs.os.fstat(fd).st_nlink == 1
    fs.os.write(fd, b"X")
    assert fs.data(other) == b"Xbc"


def test_file_replaced_by_rename_goes_on(fs):
    path = fs.make("f", b"old")
    fd = fs.open(path, os.O_RDWR)
    fs.os.rename(fs.make("g", b"new"), path)
    assert fs.os.read(fd, 10) == b"old"
    assert fs.os.fstat(fd).st_nlink == 0
    fs.os.pwrite(fd, b"OLD", 0)
    assert fs.data(path) == b"new"
    assert fs.names() == ["f"]


def test_several_generations_of_one_name(fs):
    fds = []
    for generation in range(5):
        path = fs.make("f", b"%d" % generation)
        fds.append(fs.open(path))
        fs.os.unlink(path)
    assert [fs.os.read(fd, 1) for fd in fds] == [b"0", b"1", b"2", b"3", b"4"]
    assert fs.names() == []


# ---- directories -------------------------------------------------------------------------------


@pytest.fixture
def removed(fs):
    """A descriptor of a removed directory."""
    path = fs.mkdir("d")
    fd = fs.open(path, os.O_DIRECTORY)
    fs.os.rmdir(path)
    return fd


def test_removed_directory_can_be_statted(fs, removed):
    status = fs.os.fstat(removed)
    assert (kind(status), status.st_nlink) == (stat.S_IFDIR, 0)


def test_removed_directory_takes_no_entries(fs, removed):
    with fails(errno.ENOENT):
        fs.os.mkdir("x", dir_fd=removed)
    with fails(errno.ENOENT):
        fs.os.os_open("x", os.O_CREAT | os.O_WRONLY, dir_fd=removed)
    with fails(errno.ENOENT):
        fs.os.stat("x", dir_fd=removed)


def test_removed_directory_lists_nothing(fs, removed):
    assert fs.os.listdir(removed) == []


def test_name_of_a_removed_directory_is_another_directory(fs, removed):
    fs.mkdir("d")
    fs.make("d/f")
    with fails(errno.ENOENT):
        fs.os.stat("f", dir_fd=removed)
