"""The time of writes that were gathered: the kernel tells it beside the handle that wrote."""

import os
from contextlib import contextmanager

import pytest

import directfuse

from .test_every_api import compiled, through_kernel

__all__ = ["compiled"]  # a fixture


@contextmanager
def in_a_server(command, root):
    with directfuse.mount([*command, root], placement="server"):
        yield directfuse


@pytest.mark.parametrize("route", [through_kernel, in_a_server])
def test_the_time_of_gathered_writes_comes_beside_their_handle(route, compiled, tmp_path):
    root = str(tmp_path / "m")
    with route([compiled("late_times", 312, "fuse3")], root) as fs:
        fd = fs.os_open(f"{root}/file", os.O_WRONLY)
        fs.write(fd, b"bytes")
        fs.close(fd)
        assert fs.getxattr(f"{root}/file", "user.seen") == b"handle"
