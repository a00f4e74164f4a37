"""What stat(2) and statvfs(2) show of what no file has, or what FUSE's messages have no room for,
and readlink(2) of targets that are too long: a kernel mount of the same program says what."""

import errno
import os
import stat

import pytest

import directfuse

from .test_every_api import compiled, through_kernel

__all__ = ["compiled"]

FIELDS = [
    "st_mode", "st_nlink", "st_rdev", "st_size", "st_blocks", "st_blksize",
    "st_atime_ns", "st_mtime_ns", "st_ctime_ns",
]  # fmt: skip
SPACE = [
    "f_bsize", "f_frsize", "f_blocks", "f_bfree", "f_bavail", "f_files", "f_ffree", "f_favail",
    "f_flag", "f_namemax",
]  # fmt: skip
PROGRAMS = [("stat_answers", 31), ("stat_answers_low", 34)]


def fields(status, names):
    return {name: getattr(status, name) for name in names}


def shown(fs, path):
    try:
        st = fs.lstat(path)
        return fs.readlink(path) if stat.S_ISLNK(st.st_mode) else fields(st, FIELDS)
    except OSError as error:
        return errno.errorcode[error.errno]


def answers(fs, root):
    """Of each file: what is known from the listing, and what is asked for."""
    names = fs.listdir(root)
    seen = {name: shown(fs, f"{root}/{name}") for n in names for name in (n, f"@{n}")}
    return seen | {"space": fields(fs.statvfs(root), SPACE)}


@pytest.fixture(scope="module", params=PROGRAMS, ids=lambda program: program[0])
def program(compiled, request):
    return compiled(*request.param, "fuse3")


@pytest.fixture(scope="module")
def of_the_kernel(program, tmp_path_factory):
    root = str(tmp_path_factory.mktemp("kernel") / "m")
    with through_kernel([program, "-f"], root):
        return answers(os, root)


@pytest.mark.parametrize("placement", ["inline", "helper"])
def test_answers_that_no_file_has(program, of_the_kernel, tmp_path, placement):
    root = str(tmp_path / "m")
    with directfuse.mount([program, root], placement=placement):
        assert answers(directfuse, root) == of_the_kernel
