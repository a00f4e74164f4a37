"""mknod(2): kinds of nodes. Opening a FIFO or a device is the kernel's business, not ours."""

import errno
import os
import stat

import pytest

from .expect import fails, kind, mode


def test_mknod_makes_an_empty_file(fs):
    path = fs.path("f")
    fs.os.mknod(path)
    status = fs.os.stat(path)
    assert (kind(status), status.st_size, mode(status)) == (stat.S_IFREG, 0, 0o600)
    fs.os.write(fs.open(path, os.O_WRONLY), b"abc")
    assert fs.data(path) == b"abc"


@pytest.mark.parametrize("type_", [stat.S_IFREG, stat.S_IFIFO, stat.S_IFSOCK])
def test_mknod_makes_the_kind(fs, type_):
    path = fs.path("node")
    fs.os.mknod(path, type_ | 0o640)
    status = fs.os.stat(path)
    assert (kind(status), mode(status), status.st_nlink) == (type_, 0o640, 1)


def test_mkfifo(fs):
    path = fs.path("fifo")
    fs.os.mkfifo(path, 0o640)
    assert fs.os.stat(path).st_mode == stat.S_IFIFO | 0o640


@pytest.mark.parametrize("type_", [stat.S_IFCHR, stat.S_IFBLK])
def test_device_numbers_are_kept(fs, user, type_):
    path = fs.path("device")
    try:
        fs.os.mknod(path, type_ | 0o600, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("making devices is not permitted here (CAP_MKNOD)")
    status = fs.os.stat(path)
    assert (kind(status), status.st_rdev) == (type_, os.makedev(1, 3))


@pytest.mark.parametrize("type_", [stat.S_IFREG, stat.S_IFIFO, stat.S_IFCHR])
@pytest.mark.parametrize("device", [1 << 32, 1 << 63, (1 << 64) - 1])
def test_a_device_number_that_mknod_cannot_say_is_refused(fs, type_, device):
    with fails(errno.EINVAL):
        fs.os.mknod(fs.path("node"), type_ | 0o600, device)
    assert fs.names() == []


def test_devices_are_roots(fs, user):
    directory = fs.mkdir("d")
    fs.os.chmod(directory, 0o777)
    with fails(errno.EPERM):
        user(1000, 1000, lambda: fs.os.mknod(directory + "/x", stat.S_IFCHR, os.makedev(1, 3)))
    fs.mkdir("d/x")
    for name, code in [("x", errno.EEXIST), ("missing/x", errno.ENOENT)]:
        with fails(code):
            user(1000, 1000, lambda: fs.os.mknod(f"{directory}/{name}", stat.S_IFCHR))  # noqa: B023


def test_a_whiteout_is_anybodys(fs, user):
    """Device 0 hides a name in an overlay, as fuse-overlayfs makes it for users."""
    directory = fs.mkdir("d")
    fs.os.chmod(directory, 0o777)

    def hide():
        fs.os.mknod(directory + "/hidden", stat.S_IFCHR | 0o600, 0)
        status = fs.os.lstat(directory + "/hidden")
        return status.st_mode, status.st_rdev

    assert user(1000, 1000, hide) == (stat.S_IFCHR | 0o600, 0)
    with fails(errno.EPERM):
        user(1000, 1000, lambda: fs.os.mknod(directory + "/x", stat.S_IFBLK | 0o600, 0))


@pytest.mark.parametrize("type_, code", [(stat.S_IFDIR, errno.EPERM), (stat.S_IFLNK, errno.EINVAL)])
def test_mknod_of_other_kinds_is_refused(fs, type_, code):
    with fails(code):
        fs.os.mknod(fs.path("node"), type_ | 0o600)
    with fails(code):  # whatever the name is
        fs.os.mknod("", type_ | 0o600)
    assert fs.names() == []


@pytest.mark.parametrize("call", ["mknod", "mkfifo"])
@pytest.mark.parametrize("name", ["f", "d", "link"])
def test_existing_name_is_eexist(fs, call, name):
    fs.make("f")
    fs.mkdir("d")
    fs.symlink("missing", "link")
    with fails(errno.EEXIST):
        getattr(fs.os, call)(fs.path(name))
    assert "missing" not in fs.names()


def test_nodes_can_be_renamed_linked_and_removed(fs):
    path = fs.path("fifo")
    fs.os.mkfifo(path)
    fs.os.rename(path, fs.path("moved"))
    fs.os.link(fs.path("moved"), path)
    assert fs.os.stat(path).st_nlink == 2
    fs.os.unlink(path)
    fs.os.unlink(fs.path("moved"))
    assert fs.names() == []
