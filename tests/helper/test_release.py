"""Closing: as with the kernel nobody waits for RELEASE, where nothing can come of it."""

import contextlib
import os
import threading

import pytest

import directfuse

from .conftest import kernel_mount


@contextlib.contextmanager
def answered(root):
    """At its end the server answers the RELEASEs that it has got, and what waits for that ends."""
    try:
        yield
    finally:
        directfuse.statvfs(root)


@pytest.fixture
def root(serve):
    root = serve("late").mountpoint
    with answered(root):
        yield root


def _started(function, *arguments):
    """A thread that has had the time to end, had nothing held it up."""
    thread = threading.Thread(target=function, args=arguments)
    thread.start()
    thread.join(0.3)
    return thread


def test_kernel(tmp_path):
    with kernel_mount(tmp_path / "kernel", "late"):
        os.close(os.open(tmp_path / "kernel/file", os.O_RDONLY))
        os.statvfs(tmp_path / "kernel")


def test_a_reader_does_not_wait(root):
    for _ in range(100):
        directfuse.close(directfuse.os_open(f"{root}/file", os.O_RDONLY))
        with answered(root):
            pass


def test_not_more_are_under_way_than_64(root):
    files = [directfuse.os_open(f"{root}/file", os.O_RDONLY) for _ in range(65)]
    for file in files[:64]:
        directfuse.close(file)
    last = _started(directfuse.close, files[64])
    assert last.is_alive()
    with answered(root):
        pass
    last.join(30)
    assert not last.is_alive()


def test_a_writer_waits(root):
    fd = directfuse.os_open(f"{root}/file", os.O_WRONLY)
    close = _started(directfuse.close, fd)
    assert close.is_alive()
    with answered(root):
        pass
    close.join(30)
    assert not close.is_alive()


def test_names_do_not_overtake_it(root):
    """The server says EBUSY to an UNLINK in between."""
    directfuse.close(directfuse.os_open(f"{root}/file", os.O_RDONLY))
    errors = []

    def unlink():
        try:
            directfuse.unlink(f"{root}/file")
        except OSError as error:
            errors.append(error)

    thread = _started(unlink)
    with answered(root):
        pass
    thread.join(30)
    assert not thread.is_alive() and not errors


def test_forgetting_does_not_overtake_it(root):
    """Nor does hearing that the name is none any more wait for it: nothing is forgotten there."""
    directfuse.close(directfuse.os_open(f"{root}/file", os.O_RDONLY))
    look = _started(directfuse.path.exists, f"{root}/inval")
    assert not look.is_alive()
    with answered(root):
        pass
    directfuse.unlink(f"{root}/file")
