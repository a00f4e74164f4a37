"""stat(2), lstat(2), fstat(2): what they tell, and that they agree."""

import errno
import os
import stat
import time

import pytest

from .expect import fails, kind, mode


@pytest.fixture(params=["file", "directory", "fifo"])
def thing(fs, request):
    path = fs.path("thing")
    if request.param == "file":
        fs.make("thing", b"abc")
    elif request.param == "directory":
        fs.os.mkdir(path)
    else:
        fs.os.mkfifo(path)
    return path


def test_stat_and_lstat_agree(fs, thing):
    assert fs.os.stat(thing) == fs.os.lstat(thing)


@pytest.mark.parametrize("name", ["file", "directory"])
def test_fstat_agrees(fs, name):
    path = fs.make("file", b"abc") if name == "file" else fs.mkdir("directory")
    assert fs.os.fstat(fs.open(path)) == fs.os.stat(path)


def test_stat_of_a_descriptor_is_fstat(fs):
    fd = fs.open(fs.make("f", b"abc"))
    assert fs.os.stat(fd) == fs.os.fstat(fd)


def test_stat_that_follows_not_is_lstat(fs):
    fs.make("f")
    link = fs.symlink("f", "link")
    assert fs.os.stat(link, follow_symlinks=False) == fs.os.lstat(link)


def test_result_is_an_os_stat_result(fs):
    status = fs.os.stat(fs.make("f", b"abc"))
    assert isinstance(status, os.stat_result)
    assert status[:7] == (
        status.st_mode, status.st_ino, status.st_dev, status.st_nlink, status.st_uid,
        status.st_gid, status.st_size,
    )  # fmt: skip
    assert status.st_mtime == pytest.approx(status.st_mtime_ns / 1e9)
    assert status[8] == int(status.st_mtime)


def test_new_file(fs):
    status = fs.os.stat(fs.make("f", b"abc", 0o640))
    assert kind(status) == stat.S_IFREG
    assert (mode(status), status.st_nlink, status.st_size) == (0o640, 1, 3)
    assert (status.st_uid, status.st_gid) == (os.geteuid(), os.getegid())
    assert status.st_blksize > 0


def test_blocks_are_of_512_bytes(fs):
    status = fs.os.stat(fs.make("f", b"x" * 100_000))
    assert 100_000 <= status.st_blocks * 512 <= 200_000


def test_empty_file_has_no_blocks(fs):
    assert fs.os.stat(fs.make("f")).st_blocks == 0


def test_size_is_seen_at_once(fs):
    path = fs.make("f")
    writer, other = fs.open(path, os.O_WRONLY), fs.open(path)
    for size in (1, 10, 5000):
        fs.os.pwrite(writer, b"x", size - 1)
        sizes = {fs.os.stat(path).st_size, fs.os.fstat(other).st_size, fs.os.fstat(writer).st_size}
        assert sizes == {size}


def test_change_by_another_name_is_seen_at_once(fs):
    path = fs.make("f")
    fs.os.link(path, fs.path("g"))
    assert fs.os.stat(fs.path("g")).st_size == 0
    fs.os.write(fs.open(path, os.O_WRONLY), b"abc")
    assert fs.os.stat(fs.path("g")).st_size == 3
    fs.os.chmod(fs.path("g"), 0o600)
    assert mode(fs.os.stat(path)) == 0o600


# ---- statx -------------------------------------------------------------------------------------

STATX_BASIC_STATS, STATX_BTIME, STATX_RESERVED = 0x7FF, 0x800, 0x80000000


def common(stx):
    """What stat(2) shows as well."""
    return (
        stx.stx_mode, stx.stx_ino, stx.stx_nlink, stx.stx_uid, stx.stx_gid, stx.stx_size,
        stx.stx_atime_ns, stx.stx_mtime_ns, stx.stx_ctime_ns,
    )  # fmt: skip


@pytest.mark.parametrize("mask", [STATX_BASIC_STATS, STATX_BASIC_STATS | STATX_BTIME])
def test_statx_agrees_with_stat(fs, thing, mask):
    status, stx = fs.os.stat(thing), fs.os.statx(thing, mask)
    assert common(stx) == (
        status.st_mode, status.st_ino, status.st_nlink, status.st_uid, status.st_gid,
        status.st_size, status.st_atime_ns, status.st_mtime_ns, status.st_ctime_ns,
    )  # fmt: skip
    assert stx.stx_mask & STATX_BASIC_STATS == STATX_BASIC_STATS


def test_statx_of_a_descriptor_and_of_a_link(fs):
    path = fs.make("f", b"abc")
    fs.os.utime(path, ns=(time.time_ns() + 3600 * 10**9, 10**18))  # no read changes that (relatime)
    fs.symlink("f", "link")
    file = common(fs.os.statx(path))
    assert common(fs.os.statx(fs.open(path))) == file
    assert common(fs.os.statx(fs.path("link"))) == file
    link = fs.os.statx(fs.path("link"), follow_symlinks=False)
    assert stat.S_ISLNK(link.stx_mode)


def test_statx_sees_what_was_just_written(fs):
    """Also on a mount that keeps writes."""
    path = fs.make("f", b"abc")
    fd = fs.open(path, os.O_RDWR)
    assert fs.os.statx(path).stx_size == 3
    fs.os.pwrite(fd, b"x" * 5, 3)
    assert fs.os.statx(fd).stx_size == 8
    fs.os.pwrite(fd, b"x" * 5, 8)
    assert fs.os.statx(path).stx_size == 13


def test_time_of_birth_stays(fs):
    """Where there is one. It is no later than what was done first, and nothing changes it."""
    path = fs.make("f", b"abc")
    first = fs.os.statx(path)
    assert (first.stx_btime_ns is None) == (not first.stx_mask & STATX_BTIME)
    if first.stx_btime_ns is None:
        return
    assert 0 <= first.stx_ctime_ns - first.stx_btime_ns < 10_000_000_000
    fs.os.utime(path, ns=(10**9, 10**9))
    fs.os.chmod(path, 0o600)
    fs.os.rename(path, fs.path("g"))
    fs.os.link(fs.path("g"), fs.path("h"))
    assert fs.os.statx(fs.path("h")).stx_btime_ns == first.stx_btime_ns


def test_statx_refuses_what_it_does_not_know(fs):
    with fails(errno.EINVAL):
        fs.os.statx(fs.make("f"), STATX_RESERVED)
    with fails(errno.ENOENT, fs.path("missing")):
        fs.os.statx(fs.path("missing"))
