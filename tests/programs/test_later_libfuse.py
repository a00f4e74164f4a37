"""Programs of libfuse3.so.4 (libfuse 3.17 and later), also where that is not installed."""

import os
import subprocess
from pathlib import Path

import pytest

import directfuse
from directfuse import _paths

SOURCE = Path(__file__).parent / "sources" / "later_high.c"
OPTIONS = "no_rofd_flush,ac_attr_timeout=7.5,fmask=137,dmask=027,io_uring,symfollow"


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """As a shared object, linked to our library for want of theirs."""
    path = tmp_path_factory.mktemp("later") / "later_high.so"
    library = _paths.plugin_library().with_name("libdf4.so.4")
    flags = subprocess.run(
        ["pkg-config", "--cflags", "fuse3"], capture_output=True, text=True, check=True
    ).stdout.split()
    command = ["cc", "-shared", "-fPIC", "-Wall", "-Wextra", "-D_GNU_SOURCE", *flags, SOURCE]
    subprocess.run([*command, "-o", path, library, f"-Wl,-rpath,{library.parent}"], check=True)
    return str(path)


@pytest.fixture
def mounted(program):
    with directfuse.mount([program, "-f", "-o", OPTIONS, "/later"], placement="inline") as mount:
        yield "/later"
        assert mount.stats().calls > 0


def test_structures_are_those_of_its_headers(mounted):
    with directfuse.open(f"{mounted}/file", "rb", buffering=0) as file:
        assert file.read() == b"one two three four\n"
    fd = directfuse.os_open(f"{mounted}/file", os.O_RDWR)
    pieces = [bytearray(4), bytearray(10), bytearray(10)]
    assert directfuse.preadv(fd, pieces, 1) == 18
    assert b"".join(pieces)[:18] == b"ne two three four\n"
    assert directfuse.pwrite(fd, b"ONE", 0) == 3
    assert directfuse.pwritev(fd, [b"TWO", b" ", b"THREE", b" FOUR"], 4) == 14
    assert directfuse.pread(fd, 100, 0) == b"ONE TWO THREE FOUR\n"
    directfuse.close(fd)
    assert directfuse.access(mounted, os.R_OK)
    assert directfuse.listdir(mounted) == [], "what the program found wrong"


def test_masks_of_files_and_directories(mounted):
    assert oct(directfuse.stat(f"{mounted}/file").st_mode & 0o777) == "0o600"
    assert oct(directfuse.stat(mounted).st_mode & 0o777) == "0o750"


def test_an_option_that_would_not_be_kept_is_refused(program):
    with pytest.raises(directfuse.MountError, match="nosymfollow"):
        directfuse.mount([program, "-f", "-o", "nosymfollow", "/later"])


def test_help_names_what_was_added(program):
    with pytest.raises(directfuse.MountError, match="dmask=M"):
        directfuse.mount([program, "--help"])
