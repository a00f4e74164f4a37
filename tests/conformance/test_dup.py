"""dup(2) and its kin: what an open file description shares and what a descriptor owns."""

import errno
import fcntl
import os

import pytest

from .expect import fails


def test_dup_shares_the_offset(fs):
    fd = fs.open(fs.make("f", b"abcdef"))
    copy = fs.adopt(fs.os.dup(fd))
    assert fs.os.read(fd, 2) == b"ab"
    assert fs.os.read(copy, 2) == b"cd"
    fs.os.lseek(copy, 0, os.SEEK_SET)
    assert fs.os.read(fd, 2) == b"ab"


def test_dup_outlives_the_original(fs):
    fd = fs.os.os_open(fs.make("f", b"abc"), os.O_RDWR)
    copy = fs.adopt(fs.os.dup(fd))
    fs.os.close(fd)
    assert fs.os.read(copy, 3) == b"abc"
    assert fs.os.write(copy, b"d") == 1


def test_dup_shares_the_status_flags(fs):
    path = fs.make("f", b"abc")
    fd = fs.open(path, os.O_WRONLY)
    copy = fs.adopt(fs.os.dup(fd))
    fs.os.fcntl(copy, fcntl.F_SETFL, os.O_APPEND)
    assert fs.os.fcntl(fd, fcntl.F_GETFL) & os.O_APPEND
    fs.os.write(fd, b"d")
    assert fs.data(path) == b"abcd"


def test_dup_has_its_own_descriptor_flags(fs):
    fd = fs.open(fs.make("f"))
    copy = fs.adopt(fs.os.dup(fd))
    fs.os.fcntl(copy, fcntl.F_SETFD, 0)
    assert fs.os.fcntl(fd, fcntl.F_GETFD) == fcntl.FD_CLOEXEC


def test_dup_of_a_directory_shares_the_position(fs):
    for name in "abc":
        fs.make(name)
    fd = fs.open(fs.root)
    copy = fs.adopt(fs.os.dup(fd))
    assert sorted(fs.os.listdir(copy)) == ["a", "b", "c"]
    assert sorted(fs.os.listdir(fd)) == ["a", "b", "c"]


def test_dup2_replaces_the_second(fs):
    one = fs.open(fs.make("one", b"one"))
    two = fs.open(fs.make("two", b"two"))
    assert fs.os.dup2(one, two) == two
    assert fs.os.read(two, 1) == b"o"
    assert fs.os.read(one, 10) == b"ne"


def test_dup2_onto_itself_changes_nothing(fs):
    fd = fs.open(fs.make("f", b"abc"))
    fs.os.read(fd, 1)
    assert fs.os.dup2(fd, fd) == fd
    assert fs.os.read(fd, 10) == b"bc"


def test_dup2_of_a_closed_descriptor_is_ebadf(fs):
    path = fs.make("f", b"abc")
    target = fs.open(path)
    closed = fs.os.os_open(path, os.O_RDONLY)
    fs.os.close(closed)
    with fails(errno.EBADF):
        fs.os.dup2(closed, target)
    assert fs.os.read(target, 10) == b"abc"


@pytest.mark.parametrize("inheritable", [True, False])
def test_dup2_sets_close_on_exec(fs, inheritable):
    one, two = fs.open(fs.make("one")), fs.open(fs.make("two"))
    fs.os.dup2(one, two, inheritable)
    assert fs.os.fcntl(two, fcntl.F_GETFD) == (0 if inheritable else fcntl.FD_CLOEXEC)


@pytest.mark.parametrize(
    "command, flags",
    [(fcntl.F_DUPFD, 0), (fcntl.F_DUPFD_CLOEXEC, fcntl.FD_CLOEXEC)],
    ids=["F_DUPFD", "F_DUPFD_CLOEXEC"],
)
def test_fcntl_dups(fs, command, flags):
    fd = fs.open(fs.make("f", b"abcdef"))
    copy = fs.adopt(fs.os.fcntl(fd, command, fd + 1))
    assert copy > fd
    assert fs.os.read(fd, 2) == b"ab"
    assert fs.os.read(copy, 2) == b"cd"
    assert fs.os.fcntl(copy, fcntl.F_GETFD) == flags


def test_two_opens_share_nothing(fs):
    path = fs.make("f", b"abcdef")
    one, two = fs.open(path), fs.open(path)
    fs.os.lseek(one, 3, os.SEEK_SET)
    assert fs.os.lseek(two, 0, os.SEEK_CUR) == 0


def test_many_descriptors_at_once(fs):
    path = fs.make("f", b"abc")
    fds = [fs.open(path) for _ in range(300)]
    assert len(set(fds)) == 300
    assert all(fs.os.read(fd, 3) == b"abc" for fd in fds)
