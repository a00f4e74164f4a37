"""The flags that a program sees in open, create, opendir and read: those that the kernel shows."""

import os
import stat

import pytest

from .test_every_api import code, compiled, inline, through_kernel

__all__ = ["compiled"]  # a fixture

OPENED = ("O_RDONLY", "O_WRONLY", "O_RDWR")
BESIDE = (
    *("O_CLOEXEC", "O_NOCTTY", "O_NONBLOCK", "O_APPEND", "O_SYNC", "O_DSYNC", "O_NOFOLLOW"),
    *("O_NOATIME", "O_DIRECT", "O_LARGEFILE", "O_TRUNC", "O_CREAT"),
)


def close(fs, fd):
    if isinstance(fd, int):
        fs.close(fd)


def say_all(fs, root):
    """What the program saw of one open after the other."""
    calls = [("file", access, 0) for access in OPENED]
    calls += [("file", access, getattr(os, flag)) for access in OPENED for flag in BESIDE]
    calls += [("dir", "O_RDONLY", flag) for flag in (0, os.O_DIRECTORY, os.O_CLOEXEC)]
    calls += [
        ("absent", access, os.O_CREAT | flag)
        for access in OPENED
        for flag in (0, os.O_EXCL, os.O_CLOEXEC, os.O_TRUNC, os.O_NOCTTY, os.O_APPEND)
    ]
    for name, access, flags in calls:
        fd = code(fs.os_open, f"{root}/{name}", getattr(os, access) | flags, 0o644)
        if name == "file" and access != "O_WRONLY" and isinstance(fd, int):
            fs.pread(fd, 1, 0)
        close(fs, fd)
        yield f"{name} {access} {flags:o}", seen(fs, root)


def seen(fs, root):
    fd = fs.os_open(f"{root}/seen", os.O_RDONLY)
    try:
        return fs.pread(fd, 65536, 0).decode().splitlines()
    finally:
        fs.close(fd)


def told(route, command, root):
    """By each call, what came to what the program had seen before."""
    with route(command, root) as fs:
        assert stat.S_ISDIR(fs.stat(f"{root}/dir").st_mode)
        before, news = seen(fs, root), {}
        for call, lines in say_all(fs, root):
            news[call] = lines[len(before) :]
            before = lines
    return news


@pytest.mark.kernel_fuse
@pytest.mark.parametrize("api", ["HIGH_LEVEL", "LOW_LEVEL"])
def test_a_program_sees_the_flags_that_the_kernel_shows(compiled, tmp_path, api):
    command = [compiled("open_flags", 31, "fuse3", api), "-f"]
    wanted = told(through_kernel, command, str(tmp_path / "kernel"))
    assert sum(map(len, wanted.values())) > len(wanted) / 2
    assert told(inline, command, str(tmp_path / "inline")) == wanted
