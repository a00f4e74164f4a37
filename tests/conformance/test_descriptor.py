"""Descriptors: what they say of themselves, after close, and those of O_PATH and O_TMPFILE."""

import errno
import fcntl
import os
import stat
import sys

import pytest

from .expect import fails, kind, mode

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


#: What Linux says of files opened so: no flag of the opening itself and none that it does not know,
#: the kernel's own O_LARGEFILE, and of an O_PATH descriptor nothing else.
GETFL = {
    "both ways": (os.O_RDWR, os.O_RDWR | LARGEFILE),
    "creation": (os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_NOCTTY, os.O_RDWR | LARGEFILE),
    "status": (STATUS, STATUS | LARGEFILE),
    "sync": (os.O_RDWR | os.O_SYNC, os.O_RDWR | os.O_SYNC | LARGEFILE),
    "half of sync": (os.O_RDWR | (os.O_SYNC & ~os.O_DSYNC), os.O_RDWR | os.O_SYNC | LARGEFILE),
    "no flags": (os.O_RDWR | (1 << 30) | (1 << 2), os.O_RDWR | LARGEFILE),
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


def test_setfl_makes_no_directory_direct(fs):
    fd = fs.open(fs.root, os.O_RDONLY | os.O_DIRECTORY)
    before = fs.os.fcntl(fd, fcntl.F_GETFL)
    with fails(errno.EINVAL):
        fs.os.fcntl(fd, fcntl.F_SETFL, os.O_DIRECT | os.O_APPEND)
    assert fs.os.fcntl(fd, fcntl.F_GETFL) == before


def test_setfl_leaves_the_access_mode(fs):
    fd = fs.open(fs.make("f"))
    fs.os.fcntl(fd, fcntl.F_SETFL, os.O_RDWR)
    with fails(errno.EBADF):
        fs.os.write(fd, b"x")


def test_setfl_makes_no_file_send_signals(fs):
    fd = fs.open(fs.make("f"))
    fs.os.fcntl(fd, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
    assert fs.os.fcntl(fd, fcntl.F_GETFL) & (os.O_ASYNC | os.O_NONBLOCK) == os.O_NONBLOCK


def test_errors_of_descriptors_in_place_of_paths_name_them_as_os_does(fs):
    fd = fs.open(fs.make("f"))
    for listing in (fs.os.listdir, fs.os.scandir):
        with fails(errno.ENOTDIR, fd):
            listing(fd)
    fs.os.close(fd)
    with fails(errno.EBADF, None):
        fs.os.listdir(fd)
    with fails(errno.EBADF, fd if sys.version_info >= (3, 13) else None):
        fs.os.utime(fd)
    with fails(errno.EBADF, fd):
        fs.os.statvfs(fd)
    with fails(errno.EINVAL):
        fs.os.ftruncate(fd, -1)


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


def test_path_descriptor_is_of_what_a_symlink_leads_to_whatever_would_be_made(fs):
    making = os.O_PATH | os.O_CREAT | os.O_EXCL
    fd = fs.open(fs.symlink(fs.make("f", b"x"), "link"), making)
    assert kind(fs.os.fstat(fd)) == stat.S_IFREG
    for target, error in ("missing", errno.ENOENT), ("loop", errno.ELOOP):
        link = fs.symlink(target, "loop" if target == "loop" else "dangling")
        with fails(error, link):
            fs.open(link, making)
    fd = fs.open(link, making | os.O_NOFOLLOW)
    assert kind(fs.os.fstat(fd)) == stat.S_IFLNK


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


@pytest.fixture
def nameless(fs):
    """Opens a file by O_TMPFILE, where the file system has that; elsewhere the case ends."""

    def open_(flags=os.O_RDWR, mode=0o640, **options):
        try:
            return fs.open(fs.root, os.O_TMPFILE | flags, mode, **options)
        except OSError as error:
            assert error.errno == errno.EOPNOTSUPP
            assert fs.names() == []
            pytest.skip("the file system has no O_TMPFILE")

    return open_


def name_it(fs, fd, path):
    """linkat(2) of /proc/self/fd/N; a dir_fd is what makes Python follow it."""
    fs.os.link(f"/proc/self/fd/{fd}", path, src_dir_fd=0)


def test_tmpfile_has_no_name(fs, nameless):
    fd = nameless()
    assert fs.os.write(fd, b"abc") == 3
    assert fs.os.pread(fd, 9, 0) == b"abc"
    status = fs.os.fstat(fd)
    assert (kind(status), status.st_nlink, status.st_size) == (stat.S_IFREG, 0, 3)
    assert fs.os.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDWR
    assert fs.names() == []


def test_tmpfile_can_be_given_a_name(fs, nameless):
    fd = nameless(os.O_WRONLY)
    fs.os.write(fd, b"abc")
    name_it(fs, fd, fs.path("f"))
    assert fs.names() == ["f"]
    assert fs.data(fs.path("f")) == b"abc"
    assert fs.os.fstat(fd).st_nlink == 1
    assert os.path.samestat(fs.os.fstat(fd), fs.os.stat(fs.path("f")))
    fs.os.write(fd, b"def")
    assert fs.data(fs.path("f")) == b"abcdef"
    with fails(errno.EEXIST):
        name_it(fs, fd, fs.path("f"))


def test_tmpfile_whose_name_was_removed_gets_no_other(fs, nameless):
    fd = nameless()
    name_it(fs, fd, fs.path("f"))
    fs.os.unlink(fs.path("f"))
    with fails(errno.ENOENT):
        name_it(fs, fd, fs.path("g"))
    assert fs.names() == []


def test_tmpfile_with_excl_gets_no_name(fs, nameless):
    fd = nameless(os.O_RDWR | os.O_EXCL)
    with fails(errno.ENOENT):
        name_it(fs, fd, fs.path("f"))
    fs.os.write(fd, b"abc")
    assert fs.names() == []


def test_tmpfile_has_the_mode_it_is_made_with(fs, nameless):
    before = fs.os.umask(0o027)
    try:
        fd = nameless(os.O_RDWR, 0o666)
    finally:
        fs.os.umask(before)
    assert mode(fs.os.fstat(fd)) == 0o640
    assert (fs.os.fstat(fd).st_uid, fs.os.fstat(fd).st_gid) == (os.geteuid(), os.getegid())


def test_an_open_file_whose_last_name_is_gone_gets_no_other(fs):
    fd = fs.open(fs.make("f", b"x"))
    fs.os.unlink(fs.path("f"))
    with fails(errno.ENOENT):
        name_it(fs, fd, fs.path("g"))
    assert "g" not in fs.names()


def test_an_open_file_that_has_a_name_left_gets_another(fs):
    fd = fs.open(fs.make("f", b"x"))
    fs.os.link(fs.path("f"), fs.path("other"))
    fs.os.unlink(fs.path("f"))
    name_it(fs, fd, fs.path("g"))
    assert fs.data(fs.path("g")) == b"x"
    fs.os.unlink(fs.path("other"))
    fs.os.unlink(fs.path("g"))
    with fails(errno.ENOENT):
        name_it(fs, fd, fs.path("h"))


@pytest.mark.parametrize(
    "name, flags, code",
    [
        ("", os.O_RDONLY, errno.EINVAL),
        ("", os.O_RDONLY | os.O_TRUNC, errno.EINVAL),
        ("", os.O_RDWR | os.O_CREAT, errno.EINVAL),
        ("missing", os.O_RDWR, errno.ENOENT),
        ("missing/d", os.O_RDWR, errno.ENOENT),
        ("file", os.O_RDWR, errno.ENOTDIR),
        ("link", os.O_RDWR | os.O_NOFOLLOW, errno.ENOTDIR),
    ],
)
def test_tmpfile_refused(fs, name, flags, code):
    fs.make("file", b"x")
    fs.symlink(".", "link")
    with fails(code):
        fs.open(fs.path(name) if name else fs.root, os.O_TMPFILE | flags)


def test_tmpfile_with_path_is_an_open_directory(fs):
    fd = fs.open(fs.root, os.O_TMPFILE | os.O_RDWR | os.O_PATH)
    assert kind(fs.os.fstat(fd)) == stat.S_IFDIR


def test_special_flags_are_harmless(fs):
    path = fs.make("f", b"x")
    for flag in (os.O_SYNC, os.O_DSYNC, os.O_NONBLOCK, os.O_NOCTTY, os.O_LARGEFILE, os.O_NOATIME):
        fd = fs.open(path, os.O_RDWR | flag)
        assert fs.os.pwrite(fd, b"y", 0) == 1
        assert fs.os.pread(fd, 1, 0) == b"y"
