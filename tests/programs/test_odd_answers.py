"""What callers are told when a low-level program's answers are unusual (sources/odd_answers.c): a
kernel mount of the same program says what."""

import os

import pytest

import directfuse

from .test_every_api import code, compiled, through_kernel

__all__ = ["compiled"]  # a fixture


def no_data(fs, root):
    fd = fs.os_open(f"{root}/file", os.O_RDONLY)
    try:
        yield "read", code(fs.pread, fd, 100, 0)
    finally:
        fs.close(fd)
    yield "readdir", code(fs.listdir, f"{root}/directory")
    yield "readlink", code(fs.readlink, f"{root}/link")
    yield "getxattr", code(fs.getxattr, f"{root}/file", "user.x")
    yield "listxattr", code(fs.listxattr, f"{root}/file")


def answers(fs, root):
    return dict(no_data(fs, root))


@pytest.fixture(scope="module")
def of_the_kernel(compiled, tmp_path_factory):
    root = str(tmp_path_factory.mktemp("kernel") / "m")
    with through_kernel([compiled("odd_answers", 35, "fuse3"), "-f"], root) as fs:
        return answers(fs, root)


@pytest.mark.parametrize("placement", ["inline", "server", "helper"])
def test_unusual_answers(compiled, of_the_kernel, tmp_path, placement):
    root = str(tmp_path / "m")
    with directfuse.mount([compiled("odd_answers", 35, "fuse3"), root], placement=placement):
        assert answers(directfuse, root) == of_the_kernel
