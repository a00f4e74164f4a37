"""fuse_interrupted(): a high-level program asks whether its caller still waits."""

import os
import signal
import subprocess
from contextlib import contextmanager

import pytest

import directfuse
from tests.building import build, fuse

from .test_every_api import SOURCES, through_kernel


@contextmanager
def in_a_server(command, root):
    with directfuse.mount([*command, root], placement="server"):
        yield directfuse


@pytest.fixture
def program(tmp_path):
    return build(SOURCES / "interrupted.c", tmp_path / "program", *fuse())


@contextmanager
def alarms():
    """Each 0.2 s one, which interrupts calls: the first may be too early."""
    before = signal.signal(signal.SIGALRM, lambda *_: None)
    signal.siginterrupt(signal.SIGALRM, True)
    signal.setitimer(signal.ITIMER_REAL, 0.2, 0.2)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def read_again(fs, fd):
    """As programs do that are interrupted."""
    while True:
        try:
            return fs.pread(fd, 5, 0)
        except InterruptedError:
            pass


def needs_no_intr():
    """libfuse from 3.17 on asks the kernel for none of them but for a program with `intr`."""
    later = ["pkg-config", "--atleast-version=3.17", "fuse3"]
    return subprocess.run(later, check=False).returncode != 0


@pytest.mark.parametrize("words", [[], ["intr"]], ids=["plain", "intr"])
@pytest.mark.parametrize("route", [in_a_server, through_kernel])
def test_a_program_that_asks_is_told_of_a_signal(route, words, program, tmp_path):
    if route is through_kernel and not words and not needs_no_intr():
        pytest.skip("this libfuse tells of interrupts only where the program has set `intr`")
    root = str(tmp_path / "m")
    with route([program, *words, "-f"], root) as fs:
        fd = fs.os_open(f"{root}/file", os.O_RDONLY)
        with alarms():
            assert read_again(fs, fd) == b"told\n"
        fs.close(fd)
