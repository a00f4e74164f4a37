"""rename(2) and renameat2(2)."""

import errno
import os
import stat

import pytest

from .expect import fails, kind

RENAME_NOREPLACE, RENAME_EXCHANGE, RENAME_WHITEOUT = 1, 2, 4

both_calls = pytest.mark.parametrize("call", ["rename", "replace"])


# ---- files -------------------------------------------------------------------------------------


@both_calls
def test_file_to_a_new_name(fs, call):
    path = fs.make("f", b"abc")
    before = fs.os.stat(path)
    getattr(fs.os, call)(path, fs.path("g"))
    assert fs.names() == ["g"]
    assert os.path.samestat(fs.os.stat(fs.path("g")), before)
    assert fs.data(fs.path("g")) == b"abc"


@both_calls
def test_file_over_a_file(fs, call):
    source, target = fs.make("f", b"source"), fs.make("g", b"target")
    before = fs.os.stat(source)
    getattr(fs.os, call)(source, target)
    assert fs.names() == ["g"]
    assert os.path.samestat(fs.os.stat(target), before)
    assert fs.data(target) == b"source"


def test_new_file_of_the_old_name_is_another_inode(fs):
    path, other = fs.make("f"), fs.path("g")
    for _ in range(3):
        moved = fs.os.stat(path)
        fs.os.rename(path, other)
        made = fs.os.stat(fs.make("f"))
        assert os.path.samestat(fs.os.stat(other), moved)
        assert not os.path.samestat(made, moved)
        assert os.path.samestat(fs.os.stat(path), made)


def test_inodes_below_a_moved_directory_stay(fs):
    fs.mkdir("d")
    fs.mkdir("d/e")
    paths = ["", "/f", "/e", "/e/g"]
    for path in ("d/f", "d/e/g"):
        fs.make(path)
    before = [fs.os.stat(fs.path("d") + path) for path in paths]
    fs.os.rename(fs.path("d"), fs.path("moved"))
    for path, status in zip(paths, before, strict=True):
        assert os.path.samestat(fs.os.stat(fs.path("moved") + path), status)
    fs.mkdir("d")
    assert not os.path.samestat(fs.os.stat(fs.path("d")), before[0])


def test_entries_of_a_moved_directory_have_their_inodes(fs):
    fs.mkdir("d")
    fs.os.rename(fs.make("d/f"), fs.path("d/g"))
    before = fs.os.stat(fs.path("d/g"))
    fs.os.rename(fs.path("d"), fs.path("moved"))
    with fs.os.scandir(fs.path("moved")) as entries:
        assert [entry.inode() for entry in entries] == [before.st_ino]


def test_open_file_keeps_its_inode_through_renames(fs):
    fd = fs.open(fs.make("f"))
    before = fs.os.fstat(fd)
    for source, target in [("f", "g"), ("g", "h"), ("h", "f")]:
        fs.os.rename(fs.path(source), fs.path(target))
        assert os.path.samestat(fs.os.fstat(fd), before)
        assert os.path.samestat(fs.os.stat(fs.path(target)), before)


def test_target_is_never_missing_from_the_listing(fs):
    target = fs.make("g")
    for number in range(20):
        fs.os.rename(fs.make(f"f{number}", b"%d" % number), target)
        assert fs.names() == ["g"]
        assert fs.data(target) == b"%d" % number


def test_file_to_itself_changes_nothing(fs):
    path = fs.make("f", b"abc")
    fs.os.rename(path, path)
    assert fs.data(path) == b"abc"


def test_file_to_its_other_hard_link_keeps_both(fs):
    path, other = fs.make("f", b"abc"), fs.path("g")
    fs.os.link(path, other)
    fs.os.rename(path, other)
    assert fs.names() == ["f", "g"]
    assert fs.os.stat(path).st_nlink == 2


def test_file_over_one_name_of_another_lowers_its_count(fs):
    path, other = fs.make("f", b"abc"), fs.path("g")
    fs.os.link(path, other)
    fs.os.rename(fs.make("h"), other)
    assert fs.os.stat(path).st_nlink == 1


def test_file_into_another_directory(fs):
    fs.mkdir("d")
    path = fs.make("f", b"abc")
    fs.os.rename(path, fs.path("d/g"))
    assert fs.names() == ["d"]
    assert fs.data(fs.path("d/g")) == b"abc"


def test_open_file_goes_along(fs):
    path = fs.make("f", b"abc")
    fd = fs.open(path, os.O_RDWR)
    fs.os.rename(path, fs.path("g"))
    fs.os.write(fd, b"X")
    assert fs.data(fs.path("g")) == b"Xbc"
    fs.os.ftruncate(fd, 1)
    assert fs.os.stat(fs.path("g")).st_size == 1
    assert fs.os.fstat(fd).st_nlink == 1


def test_old_name_can_be_made_again(fs):
    path = fs.make("f", b"old")
    fd = fs.open(path)
    fs.os.rename(path, fs.path("g"))
    fs.make("f", b"new")
    assert fs.os.read(fd, 10) == b"old"
    assert fs.data(fs.path("g")) == b"old"
    assert fs.data(path) == b"new"


def test_names_in_a_circle(fs):
    for name in "abc":
        fs.make(name, name.encode())
    for source, target in [("a", "t"), ("c", "a"), ("b", "c"), ("t", "b")]:
        fs.os.rename(fs.path(source), fs.path(target))
    assert [fs.data(fs.path(name)) for name in "abc"] == [b"c", b"a", b"b"]


def test_symlink_moves_itself(fs):
    fs.make("f", b"abc")
    link = fs.symlink("f", "link")
    fs.os.rename(link, fs.path("moved"))
    assert fs.os.readlink(fs.path("moved")) == "f"
    assert fs.names() == ["f", "moved"]


def test_symlink_as_target_is_replaced(fs):
    fs.make("f", b"abc")
    link = fs.symlink("f", "link")
    fs.os.rename(fs.make("g", b"def"), link)
    assert kind(fs.os.lstat(link)) == stat.S_IFREG
    assert fs.data(fs.path("f")) == b"abc"


def test_symlink_to_a_directory_as_target_is_replaced(fs):
    fs.mkdir("d")
    link = fs.symlink("d", "link")
    fs.os.rename(fs.make("f", b"x"), link)
    assert fs.names() == ["d", "link"]
    assert fs.names(fs.path("d")) == []


def test_dangling_symlink_moves(fs):
    link = fs.symlink("missing", "link")
    fs.os.rename(link, fs.path("moved"))
    assert fs.names() == ["moved"]


# ---- directories -------------------------------------------------------------------------------


def test_directory_takes_its_tree_along(fs):
    fs.mkdir("d")
    fs.mkdir("d/e")
    fs.make("d/e/f", b"abc")
    fs.os.stat(fs.path("d/e/f"))
    fs.os.rename(fs.path("d"), fs.path("moved"))
    assert fs.data(fs.path("moved/e/f")) == b"abc"
    with fails(errno.ENOENT):
        fs.os.stat(fs.path("d/e/f"))
    with fails(errno.ENOENT):
        fs.os.stat(fs.path("d"))


def test_new_directory_of_the_old_name_is_empty(fs):
    fs.mkdir("d")
    fs.make("d/f", b"abc")
    fs.os.rename(fs.path("d"), fs.path("moved"))
    fs.mkdir("d")
    assert fs.names(fs.path("d")) == []
    with fails(errno.ENOENT):
        fs.os.stat(fs.path("d/f"))
    fs.make("d/f", b"other")
    assert fs.data(fs.path("moved/f")) == b"abc"


def test_directories_swap_by_three_renames(fs):
    for name in "ab":
        fs.mkdir(name)
        fs.make(f"{name}/f", name.encode())
        fs.os.stat(fs.path(name, "f"))
    for source, target in [("a", "t"), ("b", "a"), ("t", "b")]:
        fs.os.rename(fs.path(source), fs.path(target))
    assert fs.data(fs.path("a/f")) == b"b"
    assert fs.data(fs.path("b/f")) == b"a"


def test_directory_over_an_empty_directory(fs):
    fs.mkdir("d")
    fs.make("d/f")
    fs.mkdir("e")
    fs.os.rename(fs.path("d"), fs.path("e"))
    assert fs.names() == ["e"]
    assert fs.names(fs.path("e")) == ["f"]


def test_directory_takes_trailing_slashes(fs):
    fs.mkdir("d")
    fs.os.rename(fs.path("d/"), fs.path("e/"))
    assert fs.names() == ["e"]


def test_open_files_below_a_moved_directory_go_along(fs):
    fs.mkdir("d")
    fd = fs.open(fs.make("d/f", b"abc"), os.O_RDWR)
    fs.os.rename(fs.path("d"), fs.path("moved"))
    fs.os.write(fd, b"X")
    fs.os.fchmod(fd, 0o600)
    fs.os.ftruncate(fd, 2)
    assert fs.data(fs.path("moved/f")) == b"Xb"
    assert fs.os.fstat(fd).st_size == 2


def test_open_directory_goes_along(fs):
    fd = fs.open(fs.mkdir("d"), os.O_DIRECTORY)
    fs.os.rename(fs.path("d"), fs.path("moved"))
    fs.os.mkdir("x", dir_fd=fd)
    assert fs.names(fs.path("moved")) == ["x"]
    assert fs.os.listdir(fd) == ["x"]


def test_open_directory_below_a_moved_directory_goes_along(fs):
    fs.mkdir("d")
    fs.mkdir("d/e")
    fs.make("d/e/f", b"x")
    fd = fs.open(fs.path("d/e"), os.O_DIRECTORY)
    fs.os.rename(fs.path("d"), fs.path("moved"))
    assert fs.os.stat("f", dir_fd=fd).st_size == 1
    assert os.path.samestat(fs.os.stat("..", dir_fd=fd), fs.os.stat(fs.path("moved")))


def test_dotdot_is_the_new_parent(fs):
    fs.mkdir("a")
    fs.mkdir("a/d")
    fs.mkdir("b")
    fs.os.rename(fs.path("a/d"), fs.path("b/d"))
    assert os.path.samestat(fs.os.stat(fs.path("b/d/..")), fs.os.stat(fs.path("b")))


def test_moved_directory_changes_the_parents_link_counts(fs):
    a, b = fs.mkdir("a"), fs.mkdir("b")
    fs.mkdir("a/d")
    fs.os.rename(fs.path("a/d"), fs.path("b/d"))
    assert fs.os.stat(a).st_nlink == 2
    assert fs.os.stat(b).st_nlink == 3


def test_replaced_directory_changes_the_parents_link_count(fs):
    a = fs.mkdir("a")
    fs.mkdir("a/d")
    fs.mkdir("a/e")
    fs.os.rename(fs.path("a/d"), fs.path("a/e"))
    assert fs.os.stat(a).st_nlink == 3


# ---- refusals ----------------------------------------------------------------------------------


@pytest.fixture
def tree(fs):
    """file, dir/ (empty), full/inner/, link -> full"""
    fs.make("file", b"abc")
    fs.mkdir("dir")
    fs.mkdir("full")
    fs.mkdir("full/inner")
    fs.symlink("full", "link")
    return fs


@pytest.mark.parametrize(
    "source, target, code",
    [
        ("missing", "new", errno.ENOENT),
        ("missing/x", "new", errno.ENOENT),
        ("file", "missing/new", errno.ENOENT),
        ("file/x", "new", errno.ENOTDIR),
        ("file", "file/x", errno.ENOTDIR),
        ("file", "dir", errno.EISDIR),
        ("file", "full", errno.EISDIR),
        ("link", "dir", errno.EISDIR),
        ("dir", "file", errno.ENOTDIR),
        ("dir", "link", errno.ENOTDIR),
        ("dir", "full", errno.ENOTEMPTY),
        ("full", "full/inner", errno.EINVAL),
        ("full", "full/inner/new", errno.EINVAL),
        ("full", "link/new", errno.EINVAL),
        ("full/inner", "full", errno.ENOTEMPTY),
        ("file/", "new", errno.ENOTDIR),
        ("file", "new/", errno.ENOTDIR),
        ("link/", "new", errno.ENOTDIR),
        ("dir/.", "new", errno.EBUSY),
        ("full/inner/..", "new", errno.EBUSY),
        ("dir", "full/.", errno.EBUSY),
        ("dir", "full/..", errno.EBUSY),
        ("file", "n" * 256, errno.ENAMETOOLONG),
        ("n" * 256, "new", errno.ENAMETOOLONG),
        ("missing/x", "missing/" + "n" * 256, errno.ENOENT),
        ("file/x", "n" * 256, errno.ENOTDIR),
        ("missing", "n" * 256, errno.ENOENT),
        ("n" * 256, "missing/x", errno.ENOENT),
        ("n" * 256, "file/x", errno.ENOTDIR),
    ],
)
def test_refused(tree, source, target, code):
    before = tree.names(), tree.names(tree.path("full"))
    source, target = tree.path(source), tree.path(target)
    with fails(code, source, target):
        tree.os.rename(source, target)
    assert (tree.names(), tree.names(tree.path("full"))) == before


def test_first_name_is_looked_at_first(tree):
    source = tree.path("file/x")
    with fails(errno.ENOTDIR, source, ""):
        tree.os.rename(source, "")


@pytest.mark.parametrize("source, target", [("", "new"), ("file", "")])
def test_empty_name_is_enoent(tree, source, target):
    source = source and tree.path(source)
    target = target and tree.path(target)
    with fails(errno.ENOENT, source, target):
        tree.os.rename(source, target)


def test_to_another_file_system_is_exdev(fs, tmp_path):
    source, target = fs.make("f", b"abc"), str(tmp_path / "f")
    if fs.os.stat(fs.root).st_dev == tmp_path.stat().st_dev:
        pytest.skip("the temporary directory is on the same device")
    with fails(errno.EXDEV, source, target):
        fs.os.rename(source, target)
    assert fs.data(source) == b"abc"


def test_from_another_file_system_is_exdev(fs, tmp_path):
    if fs.os.stat(fs.root).st_dev == tmp_path.stat().st_dev:
        pytest.skip("the temporary directory is on the same device")
    source, target = tmp_path / "f", fs.path("f")
    source.write_bytes(b"abc")
    with fails(errno.EXDEV, str(source), target):
        fs.os.rename(str(source), target)
    assert source.read_bytes() == b"abc"
    assert fs.names() == []


# ---- flags -------------------------------------------------------------------------------------


def test_noreplace_to_a_new_name(fs):
    fs.os.renameat2(fs.make("f", b"abc"), fs.path("g"), RENAME_NOREPLACE)
    assert fs.names() == ["g"]


@pytest.mark.parametrize("target", ["file", "dir", "full", "link", "other"])
def test_noreplace_over_anything_is_eexist(tree, target):
    source, target = tree.make("other"), tree.path(target)
    with fails(errno.EEXIST, source, target):
        tree.os.renameat2(source, target, RENAME_NOREPLACE)


def test_exchange_of_files(fs):
    one, two = fs.make("one", b"1"), fs.make("two", b"22")
    before = fs.os.stat(one), fs.os.stat(two)
    fs.os.renameat2(one, two, RENAME_EXCHANGE)
    assert (fs.data(one), fs.data(two)) == (b"22", b"1")
    assert os.path.samestat(fs.os.stat(one), before[1])
    assert os.path.samestat(fs.os.stat(two), before[0])


def test_exchange_of_a_file_and_a_full_directory(fs):
    fs.mkdir("a")
    fs.mkdir("b")
    fs.make("a/file", b"abc")
    fs.mkdir("b/dir")
    fs.make("b/dir/f", b"def")
    fs.os.renameat2(fs.path("a/file"), fs.path("b/dir"), RENAME_EXCHANGE)
    assert fs.data(fs.path("a/file/f")) == b"def"
    assert fs.data(fs.path("b/dir")) == b"abc"
    assert fs.os.stat(fs.path("a")).st_nlink == 3
    assert fs.os.stat(fs.path("b")).st_nlink == 2


def test_exchange_of_directories_with_cached_children(fs):
    for name in "ab":
        fs.mkdir(name)
        fs.make(f"{name}/{name}", name.encode())
        fs.os.stat(fs.path(name, name))
    fs.os.renameat2(fs.path("a"), fs.path("b"), RENAME_EXCHANGE)
    assert fs.names(fs.path("a")) == ["b"]
    assert fs.data(fs.path("b/a")) == b"a"
    with fails(errno.ENOENT):
        fs.os.stat(fs.path("a/a"))


def test_exchange_keeps_link_counts(fs):
    one, two = fs.make("one"), fs.make("two")
    fs.os.renameat2(one, two, RENAME_EXCHANGE)
    assert fs.os.stat(one).st_nlink == fs.os.stat(two).st_nlink == 1


def test_a_whiteout_stands_at_the_old_name(fs):
    fs.mkdir("d")
    for name in ("f", "d"):
        old = fs.path(name) if name == "d" else fs.make("f", b"abc")
        try:
            fs.os.renameat2(old, old + "2", RENAME_WHITEOUT)
        except OSError as error:
            assert error.errno == errno.EINVAL
            assert fs.names() == ["d", "f"]
            pytest.skip("this file system makes no whiteouts")
        st = fs.os.stat(old)
        assert (stat.S_IFMT(st.st_mode), st.st_rdev, st.st_nlink) == (stat.S_IFCHR, 0, 1)
    assert fs.names() == ["d", "d2", "f", "f2"]
    assert fs.data(fs.path("f2")) == b"abc"
    assert stat.S_ISDIR(fs.os.stat(fs.path("d2")).st_mode)


@pytest.mark.parametrize(
    "source, target, flags, code",
    [
        ("file", "missing", RENAME_EXCHANGE, errno.ENOENT),
        ("missing", "file", RENAME_EXCHANGE, errno.ENOENT),
        ("missing", "new", RENAME_NOREPLACE, errno.ENOENT),
        ("full", "full/inner", RENAME_EXCHANGE, errno.EINVAL),
        ("full/inner", "full", RENAME_EXCHANGE, errno.EINVAL),
        ("file", "dir", RENAME_EXCHANGE | RENAME_NOREPLACE, errno.EINVAL),
        ("file", "new", 1 << 10, errno.EINVAL),
        ("missing/x", "n" * 256, 1 << 10, errno.EINVAL),
        ("file", "dir/", RENAME_NOREPLACE, errno.EEXIST),
        ("file", "new/", RENAME_NOREPLACE, errno.ENOTDIR),
        ("file", "missing/new/", RENAME_NOREPLACE, errno.ENOENT),
        ("file/", "missing/new", 0, errno.ENOENT),
        ("file/", "file", RENAME_EXCHANGE, errno.ENOTDIR),
        ("dir", "file/", RENAME_EXCHANGE, errno.ENOTDIR),
        ("file", "missing/", RENAME_EXCHANGE, errno.ENOENT),
        ("missing", "new", RENAME_WHITEOUT, errno.ENOENT),
        ("file", "dir", RENAME_WHITEOUT, errno.EISDIR),
        ("file", "dir", RENAME_WHITEOUT | RENAME_NOREPLACE, errno.EEXIST),
        ("file", "n" * 256, RENAME_WHITEOUT, errno.ENAMETOOLONG),
        ("missing", "new", RENAME_WHITEOUT | RENAME_EXCHANGE, errno.EINVAL),
    ],
)
def test_flags_refused(tree, source, target, flags, code):
    before = tree.names(), tree.names(tree.path("full"))
    source, target = tree.path(source), tree.path(target)
    with fails(code, source, target):
        tree.os.renameat2(source, target, flags)
    assert (tree.names(), tree.names(tree.path("full"))) == before
