"""What callers are told when a low-level program's answers are unusual (sources/odd_answers.c): a
kernel mount of the same program says what."""

import ctypes
import fcntl
import os
import struct
from contextlib import contextmanager

import pytest

import directfuse
from directfuse import _paths

from .test_every_api import code, compiled, through_kernel

__all__ = ["compiled"]  # a fixture

NAME_OFFSET = 19  # of d_name in a struct dirent


@contextmanager
def opened(fs, path, flags=os.O_RDWR):
    fd = fs.os_open(path, flags)
    try:
        yield fd
    finally:
        fs.close(fd)


def no_data(fs, root):
    with opened(fs, f"{root}/file") as fd:
        yield "read", code(fs.pread, fd, 100, 0)
    yield "readdir", code(fs.listdir, f"{root}/directory")
    yield "readlink", code(fs.readlink, f"{root}/link")
    yield "getxattr", code(fs.getxattr, f"{root}/file", "user.x")
    yield "listxattr", code(fs.listxattr, f"{root}/file")


def no_copy(fs, root):
    with opened(fs, f"{root}/elsewhere") as source, opened(fs, f"{root}/file") as target:
        yield "copy_file_range", code(fs.copy_file_range, source, target, 6, 1, 0)


def no_progress(fs, root):
    for name in ("none", "none_direct"):
        with opened(fs, f"{root}/{name}") as fd:
            yield name, code(fs.pwrite, fd, b"some", 0)


def more_than_there_is(fs, root):
    for name in ("long", "long_direct"):
        with opened(fs, f"{root}/{name}") as fd:
            for size, offset in ((10, 0), (100, 0), (100, 4), (5, 10), (5, 5000)):
                yield f"{name} {size} {offset}", code(fs.pread, fd, size, offset)
            yield f"{name} gathered", code(fs.preadv, fd, [bytearray(6), bytearray(6)], 0)
            yield f"{name} written", code(fs.pwrite, fd, b"some", 20)
            yield f"{name} behind it", code(fs.pread, fd, 100, 0)


def in_c(fs, path):
    """The names that readdir(3), or ours, has."""
    ours = fs is directfuse
    library = ctypes.CDLL(str(_paths.library()) if ours else None)
    opens, reads, closes = (
        library["df_" * ours + name] for name in ("opendir", "readdir", "closedir")
    )
    opens.restype = reads.restype = ctypes.c_void_p
    stream = ctypes.c_void_p(opens(os.fsencode(path)))
    names = []
    while entry := reads(stream):
        names.append(ctypes.string_at(entry + NAME_OFFSET))
    closes(stream)
    return set(names) - {b".", b".."}


def no_number(fs, root):
    yield "listdir", code(fs.listdir, f"{root}/numberless")
    yield "readdir", in_c(fs, f"{root}/numberless")


def ioctl_of(fs):
    return getattr(fs, "ioctl", fcntl.ioctl)


def few_bytes(fs, root):
    """_IOR('x', 1, 16 bytes), whose answer has four bytes, or none; also of a directory."""
    names = {"file": os.O_RDWR, "elsewhere": os.O_RDWR, "directory": os.O_RDONLY}
    for name, flags in names.items():
        with opened(fs, f"{root}/{name}", flags) as fd:
            data = bytearray(b"0123456789abcdef")
            yield f"ioctl {name}", (code(ioctl_of(fs), fd, 0x80107801, data), data)


def bytes_of_an_error(fs, root):
    """_IOR('x', 2, 4 bytes). Of more than 1024 bytes fcntl.ioctl makes no copy, which with an error
    is thrown away from Python 3.14 on."""
    with opened(fs, f"{root}/file") as fd:
        data = bytearray(b"0123").ljust(1025)
        yield "ioctl with an error", (code(ioctl_of(fs), fd, 0x80047802, data), data[:4])


def locked_by_another(fs, root):
    wanted = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 2, 5, 0)
    with opened(fs, f"{root}/file") as fd:
        for what, command in {"POSIX": fcntl.F_GETLK, "OFD": fcntl.F_OFD_GETLK}.items():
            found = getattr(fs, "fcntl", fcntl.fcntl)(fd, command, wanted)
            yield f"{what} lock", struct.unpack("hhqqi4x", found)


def answers(fs, root):
    parts = (
        no_data, no_copy, no_progress, more_than_there_is, no_number, few_bytes,
        bytes_of_an_error, locked_by_another,
    )  # fmt: skip
    return {what: answer for part in parts for what, answer in part(fs, root)}


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
