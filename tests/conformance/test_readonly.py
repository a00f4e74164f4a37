"""A read-only file system: EROFS, and what stays allowed."""

import errno
import os
import pathlib

import pytest

from .expect import fails


@pytest.fixture
def existing(readonly):
    """Path of a file with b"content"."""
    if readonly.existing is None:
        assert readonly.os.listdir(readonly.base) == []
        pytest.skip("this file system starts empty")
    return f"{readonly.base}/{readonly.existing}"


CHANGES = {
    "create": lambda os_, base: os_.os_open(base + "/new", os.O_CREAT | os.O_WRONLY),
    "mkdir": lambda os_, base: os_.mkdir(base + "/new"),
    "mknod": lambda os_, base: os_.mknod(base + "/new"),
    "mkfifo": lambda os_, base: os_.mkfifo(base + "/new"),
    "symlink": lambda os_, base: os_.symlink("x", base + "/new"),
    "chmod": lambda os_, base: os_.chmod(base, 0o700),
    "chown": lambda os_, base: os_.chown(base, 1, 1),
    "utime": lambda os_, base: os_.utime(base, ns=(1, 2)),
}
FILE_CHANGES = {
    "open": lambda os_, path: os_.os_open(path, os.O_WRONLY),
    "open-rdwr": lambda os_, path: os_.os_open(path, os.O_RDWR),
    "open-trunc": lambda os_, path: os_.os_open(path, os.O_RDONLY | os.O_TRUNC),
    "truncate": lambda os_, path: os_.truncate(path, 0),
    "unlink": lambda os_, path: os_.unlink(path),
    "rename": lambda os_, path: os_.rename(path, path + "2"),
    "link": lambda os_, path: os_.link(path, path + "2"),
    "chmod": lambda os_, path: os_.chmod(path, 0o600),
    "setxattr": lambda os_, path: os_.setxattr(path, "user.a", b""),
    "removexattr": lambda os_, path: os_.removexattr(path, "user.a"),
}


@pytest.mark.parametrize("call", CHANGES.values(), ids=CHANGES)
def test_change_is_erofs(readonly, call):
    with fails(errno.EROFS):
        call(readonly.os, readonly.base)


@pytest.mark.parametrize("call", FILE_CHANGES.values(), ids=FILE_CHANGES)
def test_change_of_a_file_is_erofs(readonly, existing, call):
    with fails(errno.EROFS):
        call(readonly.os, existing)
    assert sorted(readonly.os.listdir(readonly.base)) == ["existing", "way-out"]


def test_missing_name_stays_enoent_for_readers(readonly):
    with fails(errno.ENOENT):
        readonly.os.stat(readonly.base + "/missing")
    with fails(errno.ENOENT):
        readonly.os.os_open(readonly.base + "/missing", os.O_RDONLY)


@pytest.mark.parametrize("call", ["unlink", "rmdir"])
def test_removing_a_missing_name_is_erofs_before_enoent(readonly, call):
    with fails(errno.EROFS):
        getattr(readonly.os, call)(readonly.base + "/missing")


def test_existing_name_stays_eexist(readonly, existing):
    with fails(errno.EEXIST, existing):
        readonly.os.mkdir(existing)
    with fails(errno.EEXIST, existing):
        readonly.os.os_open(existing, os.O_CREAT | os.O_EXCL | os.O_RDONLY)


def test_access_tells_who_may_write(readonly, existing):
    masks = [os.F_OK, os.R_OK, os.W_OK, os.R_OK | os.W_OK] * 2
    found = [readonly.os.access(existing, mask) for mask in masks]
    assert found == [True, True, False, False] * 2


def test_reading_goes_on(readonly, existing):
    fd = readonly.os.os_open(existing, os.O_RDONLY | os.O_CREAT)
    try:
        assert readonly.os.read(fd, 100) == b"content"
    finally:
        readonly.os.close(fd)


def test_write_access_is_denied_to_all(readonly):
    assert readonly.os.access(readonly.base, os.W_OK) is False
    assert readonly.os.access(readonly.base, os.R_OK | os.X_OK) is True


def test_statvfs_says_so(readonly):
    assert readonly.os.statvfs(readonly.base).f_flag & os.ST_RDONLY


@pytest.mark.parametrize("call", ["rmdir", "rename"])
def test_what_a_symlink_leads_to_is_not_read_only(readonly, existing, call):
    outside = pathlib.Path(readonly.outside)
    (outside / "d").mkdir()
    path = f"{readonly.base}/way-out/d"
    if call == "rmdir":
        readonly.os.rmdir(path)
    else:
        readonly.os.rename(path, f"{readonly.base}/way-out/e")
        (outside / "e").rmdir()
    assert list(outside.iterdir()) == []
