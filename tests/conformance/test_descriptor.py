"""Descriptors: what they say of themselves, after close, and those of O_PATH and O_TMPFILE."""

import errno
import fcntl
import os
import stat

import pytest

from .expect import fails, kind

LARGEFILE = 0o100000  # of the kernel on x86-64; 0 in libc's headers
STATUS = os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK | os.O_NOATIME | os.O_NOFOLLOW


@pytest.mark.parametrize(
    "call",
    [
        lambda os_, fd: os_.read(fd, 1),
        lambda os_, fd: os_.write(fd, b"x"),
        lambda os_, fd: os_.fstat(fd),
        lambda os_, fd: os_.lseek(fd, 0, os.SEEK_SET),
        lambda os_, fd: os_.ftruncate(fd, 0),
        lambda os_, fd: os_.fsync(fd),
        lambda os_, fd: os_.dup(fd),
        lambda os_, fd: os_.fchmod(fd, 0o600),
        lambda os_, fd: os_.fchown(fd, -1, -1),
        lambda os_, fd: os_.fstatvfs(fd),
        lambda os_, fd: os_.flock(fd, fcntl.LOCK_SH),
        lambda os_, fd: os_.fcntl(fd, fcntl.F_GETFL),
        lambda os_, fd: os_.listdir(fd),
        lambda os_, fd: os_.getxattr(fd, "user.a"),
        lambda os_, fd: os_.utime(fd),
        lambda os_, fd: os_.close(fd),
    ],
    ids=[
        "read", "write", "fstat", "lseek", "ftruncate", "fsync", "dup", "fchmod", "fchown",
        "fstatvfs", "flock", "fcntl", "listdir", "getxattr", "utime", "close",
    ],
)  # fmt: skip
def test_closed_descriptor_is_ebadf(fs, call):
    fd = fs.os.os_open(fs.make("f"), os.O_RDWR)
    fs.os.close(fd)
    with fails(errno.EBADF):
        call(fs.os, fd)


# ---- what the descriptor says of itself --------------------------------------------------------


@pytest.mark.parametrize("access", [os.O_RDONLY, os.O_WRONLY, os.O_RDWR])
@pytest.mark.parametrize("extra", [0, os.O_APPEND, os.O_NONBLOCK])
def test_getfl_reports_the_flags(fs, access, extra):
    fd = fs.open(fs.make("f"), access | extra | os.O_CREAT | os.O_TRUNC)
    flags = fs.os.fcntl(fd, fcntl.F_GETFL)
    assert flags & os.O_ACCMODE == access
    assert flags & (os.O_APPEND | os.O_NONBLOCK) == extra
    assert flags & (os.O_CREAT | os.O_TRUNC | os.O_EXCL) == 0


#: What Linux says of files opened so: no flag of the opening itself, the kernel's own O_LARGEFILE,
#: and of an O_PATH descriptor nothing else.
GETFL = {
    "both ways": (os.O_RDWR, os.O_RDWR | LARGEFILE),
    "creation": (os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_NOCTTY, os.O_RDWR | LARGEFILE),
    "status": (STATUS, STATUS | LARGEFILE),
    "sync": (os.O_RDWR | os.O_SYNC, os.O_RDWR | os.O_SYNC | LARGEFILE),
    "by path": (os.O_PATH, os.O_PATH),
    "by path and more": (
        os.O_PATH | os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW,
        os.O_PATH | os.O_NOFOLLOW,
    ),
}


@pytest.mark.parametrize(("flags", "shown"), GETFL.values(), ids=GETFL)
def test_getfl_shows_what_linux_shows(fs, flags, shown):
    fd = fs.open(fs.make("f"), flags)
    assert fs.os.fcntl(fd, fcntl.F_GETFL) == shown


def test_getfl_says_nothing_of_close_on_exec(fs):
    path = fs.make("f")
    shown = [fs.os.fcntl(fs.open(path, flags), fcntl.F_GETFL) for flags in (0, os.O_CLOEXEC)]
    assert shown[0] == shown[1]


def test_setfl_turns_append_on_and_off(fs):
    path = fs.make("f", b"abc")
    fd = fs.open(path, os.O_WRONLY)
    fs.os.fcntl(fd, fcntl.F_SETFL, os.O_APPEND)
    fs.os.write(fd, b"d")
    fs.os.fcntl(fd, fcntl.F_SETFL, 0)
    fs.os.pwrite(fd, b"A", 0)
    assert fs.data(path) == b"Abcd"


def test_setfl_leaves_the_access_mode(fs):
    fd = fs.open(fs.make("f"))
    fs.os.fcntl(fd, fcntl.F_SETFL, os.O_RDWR)
    with fails(errno.EBADF):
        fs.os.write(fd, b"x")


def test_descriptors_are_closed_on_exec(fs):
    fd = fs.open(fs.make("f"))
    assert fs.os.fcntl(fd, fcntl.F_GETFD) & fcntl.FD_CLOEXEC


def test_setfd_changes_close_on_exec(fs):
    fd = fs.open(fs.make("f"))
    fs.os.fcntl(fd, fcntl.F_SETFD, 0)
    assert fs.os.fcntl(fd, fcntl.F_GETFD) == 0


def test_descriptors_of_one_file_have_their_own_offsets(fs):
    path = fs.make("f", b"abcdef")
    one, two = fs.open(path), fs.open(path)
    assert fs.os.read(one, 3) == b"abc"
    assert fs.os.read(two, 3) == b"abc"


# ---- O_PATH, O_TMPFILE -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        lambda os_, fd: os_.read(fd, 1),
        lambda os_, fd: os_.write(fd, b"x"),
        lambda os_, fd: os_.lseek(fd, 0, os.SEEK_SET),
        lambda os_, fd: os_.ftruncate(fd, 0),
        lambda os_, fd: os_.fchmod(fd, 0o600),
        lambda os_, fd: os_.fchown(fd, -1, -1),
        lambda os_, fd: os_.fsync(fd),
        lambda os_, fd: os_.getxattr(fd, "user.a"),
    ],
    ids=["read", "write", "lseek", "ftruncate", "fchmod", "fchown", "fsync", "getxattr"],
)
def test_path_descriptor_gives_no_access(fs, call):
    fd = fs.open(fs.make("f", b"x"), os.O_PATH)
    with fails(errno.EBADF):
        call(fs.os, fd)


def test_path_descriptor_can_be_statted(fs):
    path = fs.make("f", b"x")
    fd = fs.open(path, os.O_PATH)
    assert os.path.samestat(fs.os.fstat(fd), fs.os.stat(path))


def test_path_descriptor_of_a_symlink(fs):
    link = fs.symlink("missing", "link")
    fd = fs.open(link, os.O_PATH | os.O_NOFOLLOW)
    assert kind(fs.os.fstat(fd)) == stat.S_IFLNK
    assert fs.os.readlink("", dir_fd=fd) == "missing"


def test_path_descriptor_of_a_directory_starts_walks(fs):
    fs.mkdir("d")
    fs.make("d/f", b"x")
    fd = fs.open(fs.path("d"), os.O_PATH | os.O_DIRECTORY)
    assert fs.os.stat("f", dir_fd=fd).st_size == 1


def test_path_descriptor_does_not_truncate(fs):
    path = fs.make("f", b"content")
    fs.open(path, os.O_PATH | os.O_TRUNC | os.O_CREAT)
    assert fs.data(path) == b"content"


def test_path_descriptor_of_a_missing_name_is_enoent(fs):
    path = fs.path("missing")
    with fails(errno.ENOENT, path):
        fs.open(path, os.O_PATH | os.O_CREAT)
    assert fs.names() == []


def test_tmpfile_is_nameless_or_refused(fs):
    try:
        fd = fs.open(fs.root, os.O_TMPFILE | os.O_RDWR)
    except OSError as error:
        assert error.errno == errno.EOPNOTSUPP
    else:
        assert fs.os.write(fd, b"x") == 1
        assert fs.os.fstat(fd).st_nlink == 0
    assert fs.names() == []


def test_special_flags_are_harmless(fs):
    path = fs.make("f", b"x")
    for flag in (os.O_SYNC, os.O_DSYNC, os.O_NONBLOCK, os.O_NOCTTY, os.O_LARGEFILE, os.O_NOATIME):
        fd = fs.open(path, os.O_RDWR | flag)
        assert fs.os.pwrite(fd, b"y", 0) == 1
        assert fs.os.pread(fd, 1, 0) == b"y"
