"""open(2): the matrix of flags and what each allows afterwards."""

import errno
import os
import stat

import pytest

from .expect import fails, kind, mode

CREATE = os.O_CREAT | os.O_RDWR
EXCLUSIVE = CREATE | os.O_EXCL


# ---- O_CREAT, O_EXCL ---------------------------------------------------------------------------


def test_create_makes_an_empty_file(fs):
    status = fs.os.fstat(fs.open(fs.path("f"), CREATE))
    assert (kind(status), status.st_size, status.st_nlink) == (stat.S_IFREG, 0, 1)
    assert fs.names() == ["f"]


def test_create_opens_what_exists(fs):
    path = fs.make("f", b"content", 0o640)
    fd = fs.open(path, CREATE, 0o600)
    assert fs.os.read(fd, 100) == b"content"
    assert mode(fs.os.stat(path)) == 0o640


@pytest.mark.parametrize("asked", [0o000, 0o400, 0o644, 0o666, 0o777, 0o1777, 0o2755, 0o4711])
def test_create_takes_the_mode(fs, asked):
    fs.os.umask(0)
    fd = fs.open(fs.path("f"), CREATE, asked)
    assert mode(fs.os.fstat(fd)) == asked


def test_descriptor_outlives_the_mode_it_created(fs):
    fd = fs.open(fs.path("f"), EXCLUSIVE, 0o000)
    assert fs.os.write(fd, b"x") == 1
    assert fs.os.pread(fd, 1, 0) == b"x"


def test_create_belongs_to_the_caller(fs):
    status = fs.os.fstat(fs.open(fs.path("f"), CREATE))
    assert (status.st_uid, status.st_gid) == (os.geteuid(), os.getegid())


def test_exclusive_create_of_a_new_name(fs):
    fs.open(fs.path("f"), EXCLUSIVE)
    assert fs.names() == ["f"]


def test_exclusive_create_of_a_file_is_eexist(fs):
    path = fs.make("f", b"content")
    with fails(errno.EEXIST, path):
        fs.open(path, EXCLUSIVE | os.O_TRUNC)
    assert fs.data(path) == b"content"


def test_exclusive_create_of_a_directory_is_eexist(fs):
    path = fs.mkdir("d")
    with fails(errno.EEXIST, path):
        fs.open(path, EXCLUSIVE)


@pytest.mark.parametrize("target", ["f", "missing", "d", "link"])
def test_exclusive_create_of_any_symlink_is_eexist(fs, target):
    fs.make("f")
    fs.mkdir("d")
    path = fs.symlink(target, "link")
    with fails(errno.EEXIST, path):
        fs.open(path, EXCLUSIVE)
    assert "missing" not in fs.names()


def test_create_through_a_dangling_symlink_makes_the_target(fs):
    link = fs.symlink("target", "link")
    fs.open(link, CREATE)
    assert fs.names() == ["link", "target"]
    assert kind(fs.os.lstat(fs.path("target"))) == stat.S_IFREG


def test_create_through_a_symlink_into_another_directory(fs):
    fs.mkdir("d")
    link = fs.symlink("d/target", "link")
    fs.open(link, CREATE)
    assert fs.names(fs.path("d")) == ["target"]


def test_create_through_a_symlink_into_a_missing_directory_is_enoent(fs):
    link = fs.symlink("missing/target", "link")
    with fails(errno.ENOENT, link):
        fs.open(link, CREATE)


def test_create_of_a_directory_is_eisdir(fs):
    path = fs.mkdir("d")
    with fails(errno.EISDIR, path):
        fs.open(path, CREATE)
    with fails(errno.EISDIR, path):
        fs.open(path, os.O_CREAT | os.O_RDONLY)


@pytest.mark.parametrize("target", ["d", "f", "missing", "link"])
@pytest.mark.parametrize("flags", [0, os.O_EXCL, os.O_NOFOLLOW], ids=["alone", "excl", "nofollow"])
def test_create_with_a_slash_is_eisdir_whatever_the_link_leads_to(fs, target, flags):
    fs.mkdir("d")
    fs.make("f")
    path = fs.symlink(target, "link") + "/"
    with fails(errno.EISDIR, path):
        fs.open(path, CREATE | flags)


def test_create_of_the_mountpoint(fs):
    mountpoint = fs.root.rsplit("/", 1)[0]
    for path, flags, error in (
        (mountpoint, os.O_EXCL, errno.EEXIST),
        (mountpoint, 0, errno.EISDIR),
        (mountpoint + "/", os.O_EXCL, errno.EISDIR),
        (mountpoint + "//", 0, errno.EISDIR),
        (mountpoint + "/.", os.O_EXCL, errno.EEXIST),
    ):
        with fails(error, path):
            fs.open(path, CREATE | flags)


# ---- O_TRUNC -----------------------------------------------------------------------------------


@pytest.mark.parametrize("access", [os.O_WRONLY, os.O_RDWR], ids=["wronly", "rdwr"])
@pytest.mark.parametrize("create", [0, os.O_CREAT], ids=["alone", "create"])
def test_trunc_empties(fs, access, create):
    path = fs.make("f", b"content", 0o640)
    fd = fs.open(path, access | create | os.O_TRUNC)
    assert fs.os.fstat(fd).st_size == 0
    assert fs.data(path) == b""
    assert mode(fs.os.stat(path)) == 0o640


def test_trunc_is_seen_by_other_descriptors(fs):
    path = fs.make("f", b"content")
    reader = fs.open(path)
    assert fs.os.read(reader, 3) == b"con"
    fs.open(path, os.O_WRONLY | os.O_TRUNC)
    assert fs.os.read(reader, 3) == b""


def test_trunc_through_a_symlink(fs):
    path = fs.make("f", b"content")
    fs.open(fs.symlink("f", "link"), os.O_WRONLY | os.O_TRUNC)
    assert fs.os.stat(path).st_size == 0


def test_trunc_of_a_directory_is_eisdir(fs):
    path = fs.mkdir("d")
    with fails(errno.EISDIR, path):
        fs.open(path, os.O_WRONLY | os.O_TRUNC)


def test_trunc_keeps_the_inode(fs):
    path = fs.make("f", b"content")
    before = fs.os.stat(path)
    fs.open(path, os.O_WRONLY | os.O_TRUNC)
    assert os.path.samestat(before, fs.os.stat(path))


# ---- O_APPEND ----------------------------------------------------------------------------------


def test_append_writes_at_the_end(fs):
    path = fs.make("f", b"abc")
    fd = fs.open(path, os.O_WRONLY | os.O_APPEND)
    fs.os.write(fd, b"def")
    assert fs.data(path) == b"abcdef"


def test_append_ignores_the_offset(fs):
    path = fs.make("f", b"abc")
    fd = fs.open(path, os.O_RDWR | os.O_APPEND)
    fs.os.lseek(fd, 0, os.SEEK_SET)
    fs.os.write(fd, b"def")
    assert fs.os.lseek(fd, 0, os.SEEK_CUR) == 6
    assert fs.data(path) == b"abcdef"


def test_append_reads_at_the_offset(fs):
    fd = fs.open(fs.make("f", b"abc"), os.O_RDWR | os.O_APPEND)
    assert fs.os.read(fd, 2) == b"ab"
    fs.os.write(fd, b"d")
    assert fs.os.read(fd, 2) == b""
    assert fs.os.lseek(fd, 0, os.SEEK_CUR) == 4


def test_appends_of_two_descriptors_do_not_overwrite(fs):
    path = fs.make("f")
    one = fs.open(path, os.O_WRONLY | os.O_APPEND)
    two = fs.open(path, os.O_WRONLY | os.O_APPEND)
    for number in range(10):
        fs.os.write((one, two)[number % 2], b"%d" % number)
    assert fs.data(path) == b"0123456789"


def test_append_follows_an_ordinary_write(fs):
    path = fs.make("f")
    appender = fs.open(path, os.O_WRONLY | os.O_APPEND)
    writer = fs.open(path, os.O_WRONLY)
    fs.os.pwrite(writer, b"x" * 10, 90)
    fs.os.write(appender, b"end")
    assert fs.os.stat(path).st_size == 103


def test_append_after_truncate_starts_at_the_new_end(fs):
    path = fs.make("f", b"0123456789")
    fd = fs.open(path, os.O_WRONLY | os.O_APPEND)
    fs.os.write(fd, b"x")
    fs.os.truncate(path, 2)
    fs.os.write(fd, b"y")
    assert fs.data(path) == b"01y"


def test_pwrite_on_an_appending_descriptor_appends(fs):
    """pwrite(2), BUGS: Linux appends, whatever the offset."""
    path = fs.make("f", b"abc")
    fd = fs.open(path, os.O_WRONLY | os.O_APPEND)
    assert fs.os.pwrite(fd, b"def", 0) == 3
    assert fs.data(path) == b"abcdef"


def test_pwrite_on_an_appending_descriptor_leaves_the_offset(fs):
    fd = fs.open(fs.make("f", b"abc"), os.O_RDWR | os.O_APPEND)
    fs.os.pwrite(fd, b"def", 0)
    assert fs.os.lseek(fd, 0, os.SEEK_CUR) == 0


def test_writev_appends_in_one_piece(fs):
    path = fs.make("f", b"abc")
    fd = fs.open(path, os.O_WRONLY | os.O_APPEND)
    assert fs.os.writev(fd, [b"de", b"f"]) == 3
    assert fs.data(path) == b"abcdef"


# ---- O_DIRECTORY, O_NOFOLLOW, directories ------------------------------------------------------


def test_directory_flag_opens_a_directory(fs):
    fd = fs.open(fs.mkdir("d"), os.O_DIRECTORY)
    assert kind(fs.os.fstat(fd)) == stat.S_IFDIR


def test_directory_flag_follows_a_symlink(fs):
    fs.mkdir("d")
    fd = fs.open(fs.symlink("d", "link"), os.O_DIRECTORY)
    assert kind(fs.os.fstat(fd)) == stat.S_IFDIR


def test_directory_flag_on_a_file_is_enotdir(fs):
    path = fs.make("f")
    with fails(errno.ENOTDIR, path):
        fs.open(path, os.O_DIRECTORY)


def test_directory_flag_on_a_symlink_to_a_file_is_enotdir(fs):
    fs.make("f")
    path = fs.symlink("f", "link")
    with fails(errno.ENOTDIR, path):
        fs.open(path, os.O_DIRECTORY)


@pytest.mark.parametrize("target", ["f", "d", "missing"])
def test_nofollow_on_a_symlink_is_eloop(fs, target):
    fs.make("f")
    fs.mkdir("d")
    path = fs.symlink(target, "link")
    with fails(errno.ELOOP, path):
        fs.open(path, os.O_NOFOLLOW)


def test_nofollow_with_directory_on_a_symlink_is_enotdir(fs):
    fs.mkdir("d")
    path = fs.symlink("d", "link")
    with fails(errno.ENOTDIR, path):
        fs.open(path, os.O_NOFOLLOW | os.O_DIRECTORY)


def test_nofollow_still_follows_on_the_way(fs):
    fs.mkdir("d")
    fs.make("d/f", b"x")
    fs.symlink("d", "link")
    assert fs.os.read(fs.open(fs.path("link/f"), os.O_NOFOLLOW), 1) == b"x"


def test_nofollow_with_create_on_a_symlink_is_eloop(fs):
    path = fs.symlink("missing", "link")
    with fails(errno.ELOOP, path):
        fs.open(path, CREATE | os.O_NOFOLLOW)
    assert fs.names() == ["link"]


@pytest.mark.parametrize("access", [os.O_WRONLY, os.O_RDWR], ids=["wronly", "rdwr"])
def test_directory_opened_for_writing_is_eisdir(fs, access):
    path = fs.mkdir("d")
    with fails(errno.EISDIR, path):
        fs.open(path, access)


@pytest.mark.parametrize(
    "call, code",
    [
        (lambda os_, fd: os_.read(fd, 1), errno.EISDIR),
        (lambda os_, fd: os_.pread(fd, 1, 0), errno.EISDIR),
        (lambda os_, fd: os_.write(fd, b"x"), errno.EBADF),
        (lambda os_, fd: os_.pwrite(fd, b"x", 0), errno.EBADF),
        (lambda os_, fd: os_.ftruncate(fd, 0), errno.EINVAL),
        (lambda os_, fd: os_.fallocate(fd, 0, 0, 1), errno.EBADF),
    ],
    ids=["read", "pread", "write", "pwrite", "ftruncate", "fallocate"],
)
def test_data_calls_on_a_directory(fs, call, code):
    fd = fs.open(fs.mkdir("d"))
    with fails(code):
        call(fs.os, fd)


# ---- access mode -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        lambda os_, fd: os_.read(fd, 1),
        lambda os_, fd: os_.pread(fd, 1, 0),
        lambda os_, fd: os_.readv(fd, [bytearray(1)]),
        lambda os_, fd: os_.preadv(fd, [bytearray(1)], 0),
    ],
    ids=["read", "pread", "readv", "preadv"],
)
def test_reading_a_write_only_descriptor_is_ebadf(fs, call):
    fd = fs.open(fs.make("f", b"x"), os.O_WRONLY)
    with fails(errno.EBADF):
        call(fs.os, fd)


@pytest.mark.parametrize(
    "call, code",
    [
        (lambda os_, fd: os_.write(fd, b"x"), errno.EBADF),
        (lambda os_, fd: os_.pwrite(fd, b"x", 0), errno.EBADF),
        (lambda os_, fd: os_.writev(fd, [b"x"]), errno.EBADF),
        (lambda os_, fd: os_.pwritev(fd, [b"x"], 0), errno.EBADF),
        (lambda os_, fd: os_.ftruncate(fd, 0), errno.EINVAL),
        (lambda os_, fd: os_.fallocate(fd, 0, 0, 1), errno.EBADF),
        (lambda os_, fd: os_.posix_fallocate(fd, 0, 1), errno.EBADF),
    ],
    ids=["write", "pwrite", "writev", "pwritev", "ftruncate", "fallocate", "posix_fallocate"],
)
def test_writing_a_read_only_descriptor_fails(fs, call, code):
    path = fs.make("f", b"content")
    fd = fs.open(path)
    with fails(code):
        call(fs.os, fd)
    assert fs.data(path) == b"content"


def test_access_mode_outlives_chmod(fs):
    path = fs.make("f", b"x")
    fd = fs.open(path, os.O_RDWR)
    fs.os.chmod(path, 0)
    assert fs.os.read(fd, 1) == b"x"
    assert fs.os.write(fd, b"y") == 1


def test_creating_what_a_symlink_says_is_a_directory_looks_at_nothing(fs):
    """Its target has a slash behind it: whatever is there, even the symlink itself."""
    link = fs.symlink("link/", "link")
    with fails(errno.EISDIR):
        fs.os.os_open(link, os.O_WRONLY | os.O_CREAT)
    fs.os.unlink(link)
    link = fs.symlink("missing/", "link")
    with fails(errno.EISDIR):
        fs.os.os_open(link, os.O_WRONLY | os.O_CREAT)
    assert fs.names() == ["link"]
