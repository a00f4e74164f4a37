"""Programs of libfuse3.so.4 (libfuse 3.17 and later), also where that is not installed."""

import errno
import os
from pathlib import Path

import pytest
from building import build, fuse

import directfuse
from directfuse import _paths

SOURCES = Path(__file__).parent / "sources"
OPTIONS = "no_rofd_flush,ac_attr_timeout=7.5,fmask=137,dmask=027,io_uring,symfollow"


def compiled(directory, name):
    """As a shared object, linked to our library for want of theirs."""
    path = directory / f"{name}.so"
    library = _paths.plugin_library().with_name("libdf4.so.4")
    linked = ["-Wall", "-Wextra", "-shared", "-fPIC", library, f"-Wl,-rpath,{library.parent}"]
    return build(SOURCES / f"{name}.c", path, "-D_GNU_SOURCE", *fuse(linked=False), *linked)


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return compiled(tmp_path_factory.mktemp("later"), "later_high")


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


# ---- statx: libfuse 3.18 -----------------------------------------------------------------------

STATX_BASIC_STATS, STATX_BTIME = 0x7FF, 0x800


def test_statx_is_called_for_a_time_of_birth(mounted):
    stx = directfuse.statx(f"{mounted}/file")
    assert stx.stx_mask == STATX_BASIC_STATS | STATX_BTIME
    assert (stx.stx_btime_ns, stx.stx_size) == (1_000_000_000_005, 4321)
    assert oct(stx.stx_mode) == "0o100600", "the masks of the mount count"
    with directfuse.open(f"{mounted}/file", "rb", buffering=0) as file:
        assert directfuse.statx(file.descriptor).stx_btime_ns == 1_000_000_000_005
    assert directfuse.listdir(mounted) == [], "what the program found wrong"


def test_statx_is_not_called_for_what_stat_shows(mounted):
    stx = directfuse.statx(f"{mounted}/file", STATX_BASIC_STATS)
    assert (stx.stx_mask, stx.stx_btime_ns, stx.stx_size) == (STATX_BASIC_STATS, None, 19)


def test_an_answer_of_no_type_is_eio(mounted):
    with pytest.raises(OSError, match="Input/output") as caught:
        directfuse.statx(f"{mounted}/broken")
    assert caught.value.errno == errno.EIO
    assert directfuse.statx(f"{mounted}/broken", STATX_BASIC_STATS).stx_size == 19


def test_enosys_is_remembered(program):
    """As by the kernel: getattr from now on, also of files that statx would answer."""
    with directfuse.mount([program, "-f", "-o", OPTIONS, "/later"], placement="inline") as mount:
        for name in ("plain", "file"):
            stx = directfuse.statx(f"/later/{name}")
            assert (stx.stx_mask, stx.stx_btime_ns, stx.stx_size) == (STATX_BASIC_STATS, None, 19)
        assert mount.stats().ops["statx"].calls == 1


def test_what_one_mount_lacks_the_next_has(program, tmp_path):
    """The core remembers it for the mount, whose place the next one gets."""
    with directfuse.mount(["passthrough", tmp_path, "/later"], placement="inline"):
        assert directfuse.statx("/later").stx_btime_ns is None
    with directfuse.mount([program, "-f", "-o", OPTIONS, "/later"], placement="inline"):
        assert directfuse.statx("/later").stx_btime_ns == 1_000_000_000_005


# ---- the low-level API ---------------------------------------------------------------------------


@pytest.fixture
def low(tmp_path):
    with directfuse.mount([compiled(tmp_path, "later_low"), "/later"], placement="inline"):
        yield "/later"


def test_tmpfile_is_called(low):
    fd = directfuse.os_open(low, os.O_TMPFILE | os.O_RDWR, 0o640)
    status = directfuse.fstat(fd)
    assert (oct(status.st_mode), status.st_nlink) == ("0o100640", 0)
    directfuse.link(f"/proc/self/fd/{fd}", f"{low}/name", src_dir_fd=0)
    assert directfuse.stat(f"{low}/name").st_ino == status.st_ino
    directfuse.close(fd)
    assert oct(directfuse.stat(f"{low}/name").st_mode) == "0o100640", "released with its handle"


def test_excl_is_kept_by_us(low):
    fd = directfuse.os_open(low, os.O_TMPFILE | os.O_EXCL | os.O_RDWR, 0o640)
    with pytest.raises(FileNotFoundError):
        directfuse.link(f"/proc/self/fd/{fd}", f"{low}/name", src_dir_fd=0)
    directfuse.close(fd)


def test_errors_of_tmpfile(low):
    fds = [directfuse.os_open(low, os.O_TMPFILE | os.O_RDWR) for _ in range(8)]
    with pytest.raises(OSError, match="No space"):
        directfuse.os_open(low, os.O_TMPFILE | os.O_RDWR)
    with pytest.raises(OSError, match="Bad message"):
        directfuse.os_open(low, os.O_TMPFILE | os.O_WRONLY)
    for fd in fds:
        directfuse.close(fd)


def test_statx_is_called_without_a_handle(low):
    fd = directfuse.os_open(low, os.O_TMPFILE | os.O_RDWR)
    stx = directfuse.statx(fd)
    assert (stx.stx_size, stx.stx_nlink) == (1, 0)
    assert stx.stx_btime_ns == 1_234_567_890_999_999_999, "nanoseconds as the kernel bounds them"
    assert directfuse.fstat(fd).st_size == 1, "getattr"
    directfuse.close(fd)
