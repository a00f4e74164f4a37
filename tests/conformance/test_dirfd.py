"""Calls relative to the descriptor of a directory: openat(2) and its family."""

import errno
import os
import stat

import pytest

from .expect import fails, kind, mode


@pytest.fixture
def at(fs):
    """A descriptor of d/, which holds "f" with b"abc", "e/" and "link" to f."""
    path = fs.mkdir("d")
    fs.make("d/f", b"abc")
    fs.mkdir("d/e")
    fs.symlink("f", "d/link")
    return fs.open(path, os.O_DIRECTORY)


# ---- every call --------------------------------------------------------------------------------


def test_open(fs, at):
    assert fs.os.read(fs.open("f", dir_fd=at), 10) == b"abc"
    fs.open("new", os.O_CREAT | os.O_WRONLY, dir_fd=at)
    assert "new" in fs.names(fs.path("d"))


def test_stat(fs, at):
    assert fs.os.stat("f", dir_fd=at).st_size == 3
    assert kind(fs.os.stat("link", dir_fd=at)) == stat.S_IFREG
    assert kind(fs.os.stat("link", dir_fd=at, follow_symlinks=False)) == stat.S_IFLNK
    assert kind(fs.os.lstat("link", dir_fd=at)) == stat.S_IFLNK


def test_mkdir_and_rmdir(fs, at):
    fs.os.mkdir("new", 0o700, dir_fd=at)
    assert mode(fs.os.stat(fs.path("d/new"))) == 0o700
    fs.os.rmdir("new", dir_fd=at)
    assert fs.names(fs.path("d")) == ["e", "f", "link"]


def test_mknod_and_mkfifo(fs, at):
    fs.os.mknod("node", dir_fd=at)
    fs.os.mkfifo("fifo", dir_fd=at)
    assert kind(fs.os.stat(fs.path("d/node"))) == stat.S_IFREG
    assert kind(fs.os.stat(fs.path("d/fifo"))) == stat.S_IFIFO


@pytest.mark.parametrize("call", ["unlink", "remove"])
def test_unlink(fs, at, call):
    getattr(fs.os, call)("f", dir_fd=at)
    assert fs.names(fs.path("d")) == ["e", "link"]


@pytest.mark.parametrize("call", ["rename", "replace"])
def test_rename(fs, at, call):
    rename = getattr(fs.os, call)
    rename("f", "g", src_dir_fd=at, dst_dir_fd=at)
    rename("g", fs.path("h"), src_dir_fd=at)
    rename(fs.path("h"), "i", dst_dir_fd=at)
    assert fs.names(fs.path("d")) == ["e", "i", "link"]


def test_renameat2(fs, at):
    fs.os.renameat2("f", "e", 2, src_dir_fd=at, dst_dir_fd=at)
    assert kind(fs.os.stat(fs.path("d/f"))) == stat.S_IFDIR


def test_link(fs, at):
    fs.os.link("f", "g", src_dir_fd=at, dst_dir_fd=at)
    fs.os.link("f", fs.path("h"), src_dir_fd=at)
    assert fs.os.stat(fs.path("h")).st_nlink == 3


def test_link_can_follow(fs, at):
    """linkat(2) with AT_SYMLINK_FOLLOW."""
    fs.os.link("link", "g", src_dir_fd=at, dst_dir_fd=at, follow_symlinks=True)
    assert kind(fs.os.lstat(fs.path("d/g"))) == stat.S_IFREG


def test_symlink_and_readlink(fs, at):
    fs.os.symlink("target", "new", dir_fd=at)
    assert fs.os.readlink("new", dir_fd=at) == "target"
    assert fs.os.readlink(fs.path("d/new")) == "target"


def test_chmod(fs, at):
    fs.os.chmod("f", 0o600, dir_fd=at)
    assert mode(fs.os.stat(fs.path("d/f"))) == 0o600


def test_chown(fs, at):
    fs.os.chown("link", -1, os.getegid(), dir_fd=at, follow_symlinks=False)
    fs.os.chown("f", os.geteuid(), -1, dir_fd=at)
    assert fs.os.stat(fs.path("d/f")).st_uid == os.geteuid()


def test_utime(fs, at):
    fs.os.utime("f", ns=(1, 2), dir_fd=at)
    fs.os.utime("link", ns=(3, 4), dir_fd=at, follow_symlinks=False)
    assert fs.os.stat(fs.path("d/f")).st_mtime_ns == 2
    assert fs.os.lstat(fs.path("d/link")).st_mtime_ns == 4


def test_access(fs, at):
    assert fs.os.access("f", os.F_OK, dir_fd=at) is True
    assert fs.os.access("missing", os.F_OK, dir_fd=at) is False


# ---- how the path is read ----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["f", "./f", "e/../f", "../d/f", "link", "e/.././/f"])
def test_relative_paths(fs, at, name):
    assert fs.os.stat(name, dir_fd=at).st_size == 3


def test_absolute_path_ignores_the_descriptor(fs, at):
    path = fs.make("g", b"x")
    assert fs.os.stat(path, dir_fd=at).st_size == 1
    assert fs.os.stat(path, dir_fd=fs.open(path)).st_size == 1


def test_absolute_path_ignores_even_a_wrong_descriptor(fs):
    path = fs.make("g", b"x")
    fd = fs.os.os_open(path, os.O_RDONLY)
    fs.os.close(fd)
    assert fs.os.stat(path, dir_fd=fd).st_size == 1


def test_dot_is_the_directory(fs, at):
    assert os.path.samestat(fs.os.stat(".", dir_fd=at), fs.os.fstat(at))


def test_dotdot_is_the_parent(fs, at):
    assert os.path.samestat(fs.os.stat("..", dir_fd=at), fs.os.stat(fs.root))


def test_dotdot_leads_out_of_the_file_system_and_back(fs, at):
    fs.make("g", b"x")
    up = "../" * (fs.root.count("/") + 3)
    assert fs.os.stat(up + fs.root.lstrip("/") + "/g", dir_fd=at).st_size == 1


def test_descriptor_of_an_ordinary_directory(fs, tmp_path):
    (tmp_path / "ordinary").write_bytes(b"abc")
    fd = fs.open(str(tmp_path), os.O_DIRECTORY)
    assert fs.os.stat("ordinary", dir_fd=fd).st_size == 3
    fs.os.unlink("ordinary", dir_fd=fd)
    assert list(tmp_path.iterdir()) == []


def test_symlink_from_an_ordinary_directory_by_descriptor(fs, tmp_path):
    fs.make("g", b"x")
    (tmp_path / "link").symlink_to(fs.root)
    fd = fs.open(str(tmp_path), os.O_DIRECTORY)
    assert fs.os.stat("link/g", dir_fd=fd).st_size == 1


def test_empty_path_is_enoent(fs, at):
    with fails(errno.ENOENT, ""):
        fs.os.stat("", dir_fd=at)


# ---- refusals ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        lambda os_, fd: os_.stat("f", dir_fd=fd),
        lambda os_, fd: os_.os_open("f", os.O_CREAT, dir_fd=fd),
        lambda os_, fd: os_.mkdir("x", dir_fd=fd),
        lambda os_, fd: os_.unlink("f", dir_fd=fd),
        lambda os_, fd: os_.rename("f", "g", src_dir_fd=fd, dst_dir_fd=fd),
        lambda os_, fd: os_.readlink("f", dir_fd=fd),
    ],
    ids=["stat", "open", "mkdir", "unlink", "rename", "readlink"],
)
def test_descriptor_that_is_no_directory(fs, call):
    fd = fs.os.os_open(fs.make("f"), os.O_RDONLY)
    with fails(errno.ENOTDIR):
        call(fs.os, fd)
    fs.os.close(fd)
    with fails(errno.EBADF):
        call(fs.os, fd)


def test_names_in_errors_are_the_relative_ones(fs, at):
    with fails(errno.ENOENT, "missing"):
        fs.os.stat("missing", dir_fd=at)
    with fails(errno.ENOENT, "missing", "new"):
        fs.os.rename("missing", "new", src_dir_fd=at, dst_dir_fd=at)


def test_descriptor_and_not_following_together_is_a_valueerror(fs, at):
    with pytest.raises(ValueError):
        fs.os.stat(at, follow_symlinks=False)
    with pytest.raises(ValueError):
        fs.os.stat(at, dir_fd=at)


# ---- the directory changes underneath ----------------------------------------------------------


def test_directory_is_renamed(fs, at):
    fs.os.rename(fs.path("d"), fs.path("moved"))
    assert fs.os.stat("f", dir_fd=at).st_size == 3
    fs.os.mkdir("new", dir_fd=at)
    assert "new" in fs.names(fs.path("moved"))


def test_another_directory_takes_the_name(fs, at):
    fs.os.rename(fs.path("d"), fs.path("moved"))
    fs.mkdir("d")
    fs.os.mkdir("new", dir_fd=at)
    assert fs.names(fs.path("d")) == []
    assert "new" in fs.names(fs.path("moved"))


def test_parent_is_renamed(fs):
    fs.mkdir("a")
    fs.mkdir("a/b")
    fs.make("a/b/f", b"abc")
    fd = fs.open(fs.path("a/b"), os.O_DIRECTORY)
    fs.os.rename(fs.path("a"), fs.path("moved"))
    assert fs.os.stat("f", dir_fd=fd).st_size == 3
    assert os.path.samestat(fs.os.stat("..", dir_fd=fd), fs.os.stat(fs.path("moved")))
