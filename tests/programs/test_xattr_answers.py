"""What callers of getxattr(2) and listxattr(2) are told when the file system's answer is longer
than the room they have, or than any may be: a kernel mount of the same program says what."""

import ctypes
import errno
import itertools

import pytest

import directfuse
from directfuse import _paths

from .test_every_api import compiled, through_kernel

__all__ = ["compiled"]

LENGTHS = ["5", "10", "11", "65536", "65537", "70000", "over", "-ERANGE", "-E2BIG", "bad"]
SIZES = [0, 10, 65535, 65536, 65537, 100_000]


def number(length):
    """A name of the program's: an error by its number."""
    return f"-{getattr(errno, length[1:])}" if length.startswith("-") else length


def answers(library, prefix, root):
    """What each call of the C library, or of ours, returns."""
    buffer = ctypes.create_string_buffer(max(SIZES))
    get, names = (library[f"{prefix}{name}xattr"] for name in ("get", "list"))
    get.restype = names.restype = ctypes.c_ssize_t
    seen = {}

    def note(key, count):
        seen[key] = count if count >= 0 else errno.errorcode[ctypes.get_errno()]

    for length, size in itertools.product(LENGTHS, SIZES):
        path, room = f"{root}/{number(length)}".encode(), ctypes.c_size_t(size)
        name = f"user.{number(length)}".encode()
        note(("get", length, size), get(path, name, buffer, room))
        note(("list", length, size), names(path, buffer, room))
    return seen


@pytest.fixture(scope="module")
def of_the_kernel(compiled, tmp_path_factory):
    root = str(tmp_path_factory.mktemp("kernel") / "m")
    with through_kernel([compiled("xattr_answers", 31, "fuse3"), "-f"], root):
        return answers(ctypes.CDLL(None, use_errno=True), "", root)


@pytest.mark.parametrize("placement", ["inline", "server", "helper"])
def test_answers_that_are_too_long(compiled, of_the_kernel, tmp_path, placement):
    library = ctypes.CDLL(str(_paths.library()), use_errno=True)
    command = [compiled("xattr_answers", 31, "fuse3"), str(tmp_path / "m")]
    with directfuse.mount(command, placement=placement):
        seen = answers(library, "df_", str(tmp_path / "m"))
    assert seen == of_the_kernel
