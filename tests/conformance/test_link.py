"""Hard links, symlinks: link(2), symlink(2), readlink(2), and the identity of files."""

import errno
import os
import stat

import pytest

from .expect import fails, kind, mode

# ---- hard links --------------------------------------------------------------------------------


@pytest.fixture
def pair(fs):
    """Two names of one file with b"abc"."""
    path, other = fs.make("f", b"abc"), fs.path("g")
    fs.os.link(path, other)
    return path, other


def test_hard_links_are_one_inode(fs, pair):
    one, two = (fs.os.stat(path) for path in pair)
    assert (one.st_ino, one.st_dev) == (two.st_ino, two.st_dev)
    assert one.st_nlink == two.st_nlink == 2


def test_bytes_are_shared(fs, pair):
    path, other = pair
    fs.os.write(fs.open(path, os.O_WRONLY | os.O_APPEND), b"def")
    assert fs.data(other) == b"abcdef"
    assert fs.os.stat(other).st_size == 6
    fs.os.truncate(other, 1)
    assert fs.os.stat(path).st_size == 1


def test_attributes_are_shared(fs, pair):
    path, other = pair
    fs.os.chmod(path, 0o600)
    fs.os.utime(path, ns=(1, 2))
    status = fs.os.stat(other)
    assert (mode(status), status.st_mtime_ns) == (0o600, 2)


def test_unlink_takes_one_name(fs, pair):
    path, other = pair
    fs.os.unlink(path)
    assert fs.data(other) == b"abc"
    assert fs.os.stat(other).st_nlink == 1


def test_link_to_a_directory_is_eperm(fs):
    path, other = fs.mkdir("d"), fs.path("e")
    with fails(errno.EPERM, path, other):
        fs.os.link(path, other)


@pytest.mark.parametrize("target", ["f", "d", "link", "dangling"])
def test_link_to_an_existing_name_is_eexist(fs, target):
    path = fs.make("f", b"abc")
    fs.mkdir("d")
    fs.symlink("f", "link")
    fs.symlink("missing", "dangling")
    with fails(errno.EEXIST, path, fs.path(target)):
        fs.os.link(path, fs.path(target))
    assert fs.os.stat(path).st_nlink == 1


@pytest.mark.parametrize(
    "source, target, code",
    [
        ("missing", "new", errno.ENOENT),
        ("f", "missing/new", errno.ENOENT),
        ("f/x", "new", errno.ENOTDIR),
        ("f", "f/x", errno.ENOTDIR),
        ("f", "n" * 256, errno.ENAMETOOLONG),
        ("missing", "n" * 256, errno.ENOENT),
        ("f/x", "n" * 256, errno.ENOTDIR),
    ],
)
def test_link_refused(fs, source, target, code):
    fs.make("f")
    source, target = fs.path(source), fs.path(target)
    with fails(code, source, target):
        fs.os.link(source, target)


def test_link_looks_at_the_old_name_first(fs):
    source = fs.path("missing")
    with fails(errno.ENOENT, source, ""):
        fs.os.link(source, "")
    with fails(errno.EEXIST, fs.make("f"), fs.root):
        fs.os.link(fs.path("f"), fs.root)


def test_link_to_another_file_system_is_exdev(fs, tmp_path):
    if fs.os.stat(fs.root).st_dev == tmp_path.stat().st_dev:
        pytest.skip("the temporary directory is on the same device")
    path, other = fs.make("f"), str(tmp_path / "f")
    with fails(errno.EXDEV, path, other):
        fs.os.link(path, other)


def test_link_into_another_directory(fs):
    fs.mkdir("d")
    path = fs.make("f", b"abc")
    fs.os.link(path, fs.path("d/g"))
    assert fs.data(fs.path("d/g")) == b"abc"
    assert fs.os.stat(path).st_nlink == 2


def test_link_of_a_symlink_is_the_symlink(fs):
    fs.make("f")
    link, other = fs.symlink("f", "link"), fs.path("other")
    fs.os.link(link, other, follow_symlinks=False)
    assert kind(fs.os.lstat(other)) == stat.S_IFLNK
    assert fs.os.readlink(other) == "f"
    assert fs.os.lstat(link).st_nlink == 2


def test_many_links(fs):
    path = fs.make("f", b"abc")
    for number in range(100):
        fs.os.link(path, fs.path(str(number)))
    assert fs.os.stat(path).st_nlink == 101
    for number in range(100):
        fs.os.unlink(fs.path(str(number)))
    assert fs.os.stat(path).st_nlink == 1


def test_link_to_an_open_file(fs):
    path = fs.make("f", b"abc")
    fd = fs.open(path, os.O_RDWR)
    fs.os.link(path, fs.path("g"))
    fs.os.unlink(path)
    fs.os.write(fd, b"X")
    assert fs.data(fs.path("g")) == b"Xbc"
    assert fs.os.fstat(fd).st_nlink == 1


# ---- symlinks ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "target",
    ["f", "/", ".", "..", "../..//x/", "a/b", "ümläut", "with space", "x" * 255, "/no/where"],
)
def test_readlink_gives_the_target_verbatim(fs, target):
    link = fs.symlink(target, "link")
    assert fs.os.readlink(link) == target
    assert fs.os.readlink(os.fsencode(link)) == os.fsencode(target)
    assert fs.os.lstat(link).st_size == len(os.fsencode(target))


def test_symlink_of_the_greatest_size(fs):
    target = "t" * 4095
    assert fs.os.readlink(fs.symlink(target, "link")) == target


def test_symlink_of_more_is_enametoolong(fs):
    with fails(errno.ENAMETOOLONG):
        fs.os.symlink("t" * 4096, fs.path("link"))


def test_symlink_looks_at_its_target_first(fs):
    name = fs.make("f") + "/x"
    with fails(errno.ENOENT, "", name):
        fs.os.symlink("", name)


def test_symlink_to_nothing_is_enoent(fs):
    with fails(errno.ENOENT, "", fs.path("link")):
        fs.os.symlink("", fs.path("link"))


def test_undecodable_target_survives(fs):
    fs.os.symlink(b"latin-\xe9", os.fsencode(fs.path("link")))
    assert fs.os.readlink(fs.path("link")) == os.fsdecode(b"latin-\xe9")


def test_symlink_is_of_its_own_kind(fs):
    status = fs.os.lstat(fs.symlink("f", "link"))
    assert (kind(status), mode(status), status.st_nlink) == (stat.S_IFLNK, 0o777, 1)


@pytest.mark.parametrize("target", ["f", "d", "link"])
def test_symlink_over_an_existing_name_is_eexist(fs, target):
    fs.make("f")
    fs.mkdir("d")
    fs.symlink("missing", "link")
    with fails(errno.EEXIST, "target", fs.path(target)):
        fs.os.symlink("target", fs.path(target))


@pytest.mark.parametrize("name", ["f", "d"])
def test_readlink_of_anything_else_is_einval(fs, name):
    fs.make("f")
    fs.mkdir("d")
    path = fs.path(name)
    with fails(errno.EINVAL, path):
        fs.os.readlink(path)


def test_unlink_of_a_symlink_leaves_the_target(fs):
    path = fs.make("f", b"abc")
    fs.os.unlink(fs.symlink("f", "link"))
    assert fs.names() == ["f"]
    assert fs.data(path) == b"abc"


def test_symlink_outlives_its_target(fs):
    path = fs.make("f", b"abc")
    link = fs.symlink("f", "link")
    assert fs.data(link) == b"abc"
    fs.os.unlink(path)
    with fails(errno.ENOENT, link):
        fs.os.stat(link)
    fs.make("f", b"again")
    assert fs.data(link) == b"again"


# ---- identity ----------------------------------------------------------------------------------


def test_different_files_have_different_inodes(fs):
    paths = [fs.make("f"), fs.mkdir("d"), fs.symlink("f", "link"), fs.make("g")]
    statuses = [fs.os.lstat(path) for path in paths]
    assert len({status.st_ino for status in statuses}) == len(paths)
    assert len({status.st_dev for status in statuses}) == 1


def test_inode_is_stable(fs):
    path = fs.make("f")
    inode = fs.os.stat(path).st_ino
    fd = fs.open(path, os.O_RDWR)
    fs.os.write(fd, b"x")
    fs.os.chmod(path, 0o600)
    fs.os.rename(path, fs.path("g"))
    assert fs.os.fstat(fd).st_ino == inode
    assert fs.os.stat(fs.path("g")).st_ino == inode


def test_device_has_32_bits(fs):
    """As the kernel's have, which some programs keep so: mkfs.erofs(1) knows hard links by it."""
    assert 0 < fs.os.stat(fs.root).st_dev < 1 << 32


def test_device_is_not_that_of_other_file_systems(fs, tmp_path):
    if fs.os.stat(str(tmp_path)).st_dev != tmp_path.stat().st_dev:
        pytest.fail("an ordinary directory has another device by this route")
    assert fs.os.stat(fs.root).st_dev == fs.os.stat(fs.make("f")).st_dev
