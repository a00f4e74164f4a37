"""statvfs(3)."""

import os

import pytest


@pytest.fixture
def status(fs):
    return fs.os.statvfs(fs.root)


def test_result_is_an_os_statvfs_result(status):
    assert isinstance(status, os.statvfs_result)


def test_sizes_are_plausible(status):
    assert status.f_bsize > 0
    assert status.f_frsize > 0
    assert status.f_blocks >= status.f_bfree >= status.f_bavail
    assert status.f_files >= status.f_ffree >= status.f_favail


def test_longest_name(fs, status):
    assert status.f_namemax == 255
    fs.make("n" * status.f_namemax)


def test_file_system_is_writable(status):
    assert status.f_flag & os.ST_RDONLY == 0


def test_any_object_will_do(fs, status):
    path = fs.make("f")
    fs.mkdir("d")
    for other in (
        fs.os.statvfs(path),
        fs.os.statvfs(fs.path("d")),
        fs.os.statvfs(fs.open(path)),
        fs.os.fstatvfs(fs.open(path)),
        fs.os.fstatvfs(fs.open(fs.root)),
    ):
        assert (other.f_bsize, other.f_frsize) == (status.f_bsize, status.f_frsize)
        assert (other.f_blocks, other.f_namemax) == (status.f_blocks, status.f_namemax)


def test_symlink_is_followed_out_of_the_file_system(fs, tmp_path):
    link = fs.symlink(str(tmp_path), "link")
    assert fs.os.statvfs(link).f_blocks == fs.os.statvfs(str(tmp_path)).f_blocks


def test_symlink_that_is_open_itself_is_not_followed(fs, status):
    link = fs.symlink("nowhere", "link")
    fd = fs.open(link, os.O_PATH | os.O_NOFOLLOW)
    assert fs.os.fstatvfs(fd).f_blocks == status.f_blocks
