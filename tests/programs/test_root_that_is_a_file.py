"""A mountpoint that is a file, for a file system whose root is one: here and through the kernel."""

import errno
import os
import stat
from contextlib import contextmanager

import pytest

import directfuse

from .conftest import need
from .test_every_api import compiled, inline, through_kernel

__all__ = ["compiled"]  # a fixture


@contextmanager
def through_helper(command, root):
    """By the protocol, and so by nodes."""
    with directfuse.mount([*command, root], placement="helper"):
        yield directfuse


ROUTES = {"inline": inline, "helper": through_helper, "kernel": through_kernel}


@pytest.fixture(params=["inline", "helper", pytest.param("kernel", marks=pytest.mark.kernel_fuse)])
def mounted(request, compiled, tmp_path):
    """(functions of os, the mountpoint) with the program over a file that holds "below"."""
    root = tmp_path / "root"
    root.write_text("below")
    with ROUTES[request.param]([compiled("one_file", 31, "fuse3"), "-f"], str(root)) as fs:
        yield fs, str(root)
    assert root.read_text() == "below"


def content(fs, path):
    fd = fs.os_open(path, os.O_RDONLY)
    try:
        return fs.read(fd, 100)
    finally:
        fs.close(fd)


def test_the_root_covers_the_file(mounted):
    fs, root = mounted
    assert stat.S_ISREG(fs.stat(root).st_mode) and fs.stat(root).st_size == 9
    assert content(fs, root) == b"one file\n"
    for flags, text in ((0, b"new"), (os.O_CREAT, b"newer")):  # a shell's > has O_CREAT
        fd = fs.os_open(root, os.O_RDWR | os.O_TRUNC | flags)
        assert fs.pwrite(fd, text, 0) == len(text)
        fs.close(fd)
        assert content(fs, root) == text


@pytest.mark.parametrize(
    "call, wanted",
    [
        (lambda fs, root: fs.stat(root + "/"), errno.ENOTDIR),
        (lambda fs, root: fs.listdir(root), errno.ENOTDIR),
        (lambda fs, root: fs.os_open(root + "/", os.O_CREAT), errno.EISDIR),
        (lambda fs, root: fs.os_open(root, os.O_CREAT | os.O_EXCL), errno.EEXIST),
        (lambda fs, root: fs.unlink(root), errno.EBUSY),
        (lambda fs, root: fs.rename(root, root + "-2"), errno.EBUSY),
    ],
    ids=["slash", "listdir", "create-slash", "create", "unlink", "rename"],
)
def test_what_a_mounted_file_refuses(mounted, call, wanted):
    fs, root = mounted
    with pytest.raises(OSError) as caught:
        call(fs, root)
    assert caught.value.errno == wanted


def test_a_program_of_the_distribution_serves_a_file(tmp_path):
    need("nbdfuse", "qemu-nbd")
    disk, root = tmp_path / "disk", tmp_path / "root"
    disk.write_bytes(os.urandom(1 << 20))
    root.touch()
    command = ["nbdfuse", str(root), "--socket-activation", "qemu-nbd", "-f", "raw", str(disk)]
    with directfuse.mount(command):
        with directfuse.open(str(root), "rb") as file:
            assert file.read() == disk.read_bytes()
