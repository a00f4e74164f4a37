"""stat(2), lstat(2), fstat(2): what they tell, and that they agree."""

import os
import stat

import pytest

from .expect import kind, mode


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
