"""Directories: making, removing, listing, walking."""

import errno
import os
import stat

import pytest

from .expect import fails, kind, mode

MANY = 2_000

# ---- mkdir, rmdir, link counts -----------------------------------------------------------------


def test_new_directory(fs):
    path = fs.path("d")
    fs.os.mkdir(path)
    status = fs.os.stat(path)
    assert (kind(status), mode(status), status.st_nlink) == (stat.S_IFDIR, 0o755, 2)
    assert fs.names(path) == []


def test_subdirectories_count_as_links(fs):
    path = fs.mkdir("d")
    for number in range(3):
        fs.mkdir(f"d/{number}")
    assert fs.os.stat(path).st_nlink == 5
    fs.make("d/file")
    assert fs.os.stat(path).st_nlink == 5
    fs.os.rmdir(path + "/1")
    assert fs.os.stat(path).st_nlink == 4


@pytest.mark.parametrize("name", ["f", "d", "link", "dangling"])
def test_mkdir_over_an_existing_name_is_eexist(fs, name):
    fs.make("f")
    fs.mkdir("d")
    fs.symlink("d", "link")
    fs.symlink("missing", "dangling")
    with fails(errno.EEXIST, fs.path(name)):
        fs.os.mkdir(fs.path(name))


def test_rmdir(fs):
    fs.os.rmdir(fs.mkdir("d"))
    assert fs.names() == []


@pytest.mark.parametrize("make", ["make", "mkdir"])
def test_rmdir_of_a_full_directory_is_enotempty(fs, make):
    path = fs.mkdir("d")
    getattr(fs, make)("d/entry")
    with fails(errno.ENOTEMPTY, path):
        fs.os.rmdir(path)
    assert fs.names(path) == ["entry"]


@pytest.mark.parametrize("name", ["f", "link"])
def test_rmdir_of_anything_else_is_enotdir(fs, name):
    fs.make("f")
    fs.mkdir("d")
    fs.symlink("d", "link")
    with fails(errno.ENOTDIR, fs.path(name)):
        fs.os.rmdir(fs.path(name))


def test_remove_is_unlink(fs):
    fs.os.remove(fs.make("f"))
    assert fs.names() == []
    with fails(errno.EISDIR):
        fs.os.remove(fs.mkdir("d"))


def test_makedirs(fs):
    path = fs.path("a/b/c")
    fs.os.makedirs(path)
    assert kind(fs.os.stat(path)) == stat.S_IFDIR
    fs.os.makedirs(path, exist_ok=True)
    with fails(errno.EEXIST, path):
        fs.os.makedirs(path)


def test_makedirs_over_a_file(fs):
    path = fs.make("f")
    with fails(errno.EEXIST, path):
        fs.os.makedirs(path, exist_ok=True)
    with fails(errno.ENOTDIR):
        fs.os.makedirs(path + "/d")


def test_makedirs_mode_is_that_of_the_last(fs):
    fs.os.makedirs(fs.path("a/b"), 0o700)
    assert mode(fs.os.stat(fs.path("a"))) == 0o755
    assert mode(fs.os.stat(fs.path("a/b"))) == 0o700


# ---- listdir -----------------------------------------------------------------------------------


def test_listing_leaves_out_dot_and_dotdot(fs):
    assert fs.os.listdir(fs.root) == []
    fs.make(".hidden")
    fs.make("...")
    assert fs.names() == ["...", ".hidden"]


def test_every_entry_is_listed_once(fs):
    expected = {f"entry-{number:05}" for number in range(MANY)}
    for name in expected:
        fs.os.mknod(fs.path(name))
    listed = fs.os.listdir(fs.root)
    assert len(listed) == MANY
    assert set(listed) == expected


def test_long_names_are_listed(fs):
    expected = [f"{number:03}".ljust(255, "n") for number in range(300)]
    for name in expected:
        fs.os.mknod(fs.path(name))
    assert fs.names() == expected


def test_names_of_every_length_are_listed(fs):
    expected = {"n" * length for length in range(1, 256)}
    for name in expected:
        fs.os.mknod(fs.path(name))
    assert set(fs.os.listdir(fs.root)) == expected


def test_listing_follows_changes(fs):
    fs.make("a")
    fs.make("b")
    assert fs.names() == ["a", "b"]
    fs.os.unlink(fs.path("a"))
    fs.make("c")
    fs.os.rename(fs.path("b"), fs.path("d"))
    assert fs.names() == ["c", "d"]


def test_listing_of_a_descriptor_starts_over(fs):
    fd = fs.open(fs.root)
    fs.make("a")
    assert fs.os.listdir(fd) == ["a"]
    fs.make("b")
    assert sorted(fs.os.listdir(fd)) == ["a", "b"]


@pytest.mark.parametrize("call", ["listdir", "scandir"])
def test_listing_of_a_files_descriptor_is_enotdir_and_nothing_else(fs, call):
    fd = fs.open(fs.make("f", b"abcdef"))
    fs.os.lseek(fd, 3, os.SEEK_SET)
    with fails(errno.ENOTDIR):
        getattr(fs.os, call)(fd)
    assert fs.os.lseek(fd, 0, os.SEEK_CUR) == 3


def test_listing_of_a_path_descriptor_is_ebadf(fs):
    fd = fs.open(fs.root, os.O_PATH)
    with fails(errno.EBADF, fd):
        fs.os.listdir(fd)
    # With glibc 2.36 it opens, for fdopendir(3) asks fstat; with that of 2.41 it does not.
    with fails(errno.EBADF, fd), fs.os.scandir(fd) as entries:
        next(entries)


@pytest.mark.parametrize("call", ["listdir", "scandir"])
def test_listing_of_a_path_descriptor_of_a_file_is_enotdir(fs, call):
    fd = fs.open(fs.make("f"), os.O_PATH)
    with fails(errno.ENOTDIR, fd):
        getattr(fs.os, call)(fd)


def test_listing_through_a_symlink(fs):
    fs.mkdir("d")
    fs.make("d/f")
    assert fs.os.listdir(fs.symlink("d", "link")) == ["f"]


@pytest.mark.parametrize("call", ["listdir", "scandir"])
def test_listing_of_a_file_is_enotdir(fs, call):
    path = fs.make("f")
    with fails(errno.ENOTDIR, path):
        getattr(fs.os, call)(path)


# ---- scandir -----------------------------------------------------------------------------------


@pytest.fixture
def zoo(fs):
    """One entry of each kind; their names in order."""
    fs.make("file", b"abc")
    fs.mkdir("dir")
    fs.symlink("dir", "link")
    fs.symlink("missing", "dangling")
    fs.os.mkfifo(fs.path("pipe"))
    return ["dangling", "dir", "file", "link", "pipe"]


@pytest.mark.parametrize("by", ["path", "descriptor"])
def test_scandir_yields_each_entry(fs, zoo, by):
    with fs.os.scandir(fs.root if by == "path" else fs.open(fs.root)) as entries:
        assert sorted(entry.name for entry in entries) == zoo


def test_entries_know_their_kind(fs, zoo):
    with fs.os.scandir(fs.root) as entries:
        kinds = {e.name: (e.is_file(), e.is_dir(), e.is_symlink()) for e in entries}
    assert kinds == {
        "file": (True, False, False),
        "dir": (False, True, False),
        "link": (False, True, True),
        "dangling": (False, False, True),
        "pipe": (False, False, False),
    }


def test_entries_without_following(fs, zoo):
    with fs.os.scandir(fs.root) as entries:
        found = {e.name: e for e in entries}
    assert found["link"].is_dir(follow_symlinks=False) is False
    assert found["link"].is_dir() is True
    assert found["dir"].is_dir(follow_symlinks=False) is True
    assert found["file"].is_file(follow_symlinks=False) is True


def test_entries_have_paths(fs, zoo):
    with fs.os.scandir(fs.root) as entries:
        for entry in entries:
            assert entry.path == fs.path(entry.name)
            assert os.fspath(entry) == entry.path


def test_entries_have_the_inode_of_stat(fs, zoo):
    with fs.os.scandir(fs.root) as entries:
        for entry in entries:
            assert entry.inode() == fs.os.lstat(entry.path).st_ino
            assert entry.stat(follow_symlinks=False) == fs.os.lstat(entry.path)


def test_entries_stat_what_they_point_to(fs, zoo):
    with fs.os.scandir(fs.root) as entries:
        found = {e.name: e for e in entries}
    assert found["link"].stat() == fs.os.stat(fs.path("dir"))
    with fails(errno.ENOENT, fs.path("dangling")):
        found["dangling"].stat()


def test_entries_of_a_bytes_path_are_bytes(fs, zoo):
    with fs.os.scandir(os.fsencode(fs.root)) as entries:
        for entry in entries:
            assert isinstance(entry.name, bytes)
            assert entry.path == os.fsencode(fs.path(os.fsdecode(entry.name)))


def test_closed_iterator_is_exhausted(fs, zoo):
    entries = fs.os.scandir(fs.root)
    next(entries)
    entries.close()
    assert list(entries) == []
    entries.close()


def test_scandir_of_a_descriptor_leaves_it_open(fs, zoo):
    fd = fs.open(fs.root)
    with fs.os.scandir(fd) as entries:
        assert len(list(entries)) == len(zoo)
    assert kind(fs.os.fstat(fd)) == stat.S_IFDIR
    with fs.os.scandir(fd) as entries:
        assert len(list(entries)) == len(zoo)


def test_unlink_while_iterating(fs):
    """Entries that stay are seen once, whatever goes meanwhile (readdir(3p))."""
    expected = {str(number) for number in range(MANY)}
    for name in expected:
        fs.os.mknod(fs.path(name))
    seen = []
    with fs.os.scandir(fs.root) as entries:
        for entry in entries:
            seen.append(entry.name)
            fs.os.unlink(entry.path)
    assert sorted(seen) == sorted(expected)
    assert fs.names() == []


def test_unlink_of_others_while_iterating(fs):
    for number in range(MANY):
        fs.os.mknod(fs.path(str(number)))
    staying = {str(number) for number in range(0, MANY, 2)}
    with fs.os.scandir(fs.root) as entries:
        seen = [next(entries).name]
        for number in range(1, MANY, 2):
            fs.os.unlink(fs.path(str(number)))
        seen += [entry.name for entry in entries]
    assert len(seen) == len(set(seen))
    assert set(seen) >= staying


def test_create_while_iterating(fs):
    for number in range(MANY):
        fs.os.mknod(fs.path(str(number)))
    with fs.os.scandir(fs.root) as entries:
        seen = [next(entries).name]
        for number in range(100):
            fs.os.mknod(fs.path(f"new-{number}"))
        seen += [entry.name for entry in entries]
    assert len(seen) == len(set(seen))
    assert set(seen) >= {str(number) for number in range(MANY)}


def test_two_iterators_of_one_directory(fs, zoo):
    with fs.os.scandir(fs.root) as one, fs.os.scandir(fs.root) as two:
        pairs = list(zip(one, two, strict=True))
    assert sorted(a.name for a, b in pairs) == sorted(b.name for a, b in pairs) == zoo


# ---- walk --------------------------------------------------------------------------------------


@pytest.fixture
def tree(fs):
    """a/{f, b/{g}}, c/ and link -> a."""
    for name in ("a", "a/b", "c"):
        fs.mkdir(name)
    fs.make("a/f")
    fs.make("a/b/g")
    fs.symlink("a", "link")
    return fs


def visited(fs, **options):
    return [
        (top.removeprefix(fs.root), sorted(dirs), sorted(files))
        for top, dirs, files in fs.os.walk(fs.root, **options)
    ]


def test_walk_goes_top_down(tree):
    steps = visited(tree)
    assert steps[0] == ("", ["a", "c", "link"], [])
    assert sorted(steps) == sorted(
        [("", ["a", "c", "link"], []), ("/a", ["b"], ["f"]), ("/a/b", [], ["g"]), ("/c", [], [])]
    )
    assert steps.index(("/a", ["b"], ["f"])) < steps.index(("/a/b", [], ["g"]))


def test_walk_goes_bottom_up(tree):
    steps = visited(tree, topdown=False)
    assert steps[-1][0] == ""
    assert steps.index(("/a/b", [], ["g"])) < steps.index(("/a", ["b"], ["f"]))


def test_walk_follows_links_if_asked(tree):
    tops = [top for top, _, _ in visited(tree, followlinks=True)]
    assert "/link/b" in tops


def test_walk_can_be_pruned(tree):
    tops = []
    for top, dirs, _ in tree.os.walk(tree.root):
        tops.append(top.removeprefix(tree.root))
        dirs[:] = [name for name in dirs if name != "a"]
    assert sorted(tops) == ["", "/c"]


def test_walk_of_a_missing_directory_calls_onerror(fs):
    errors = []
    assert list(fs.os.walk(fs.path("missing"), onerror=errors.append)) == []
    assert [(error.errno, error.filename) for error in errors] == [
        (errno.ENOENT, fs.path("missing"))
    ]


def test_tree_can_be_removed_bottom_up(tree):
    for top, dirs, files in tree.os.walk(tree.root, topdown=False):
        for name in files:
            tree.os.unlink(f"{top}/{name}")
        for name in dirs:
            path = f"{top}/{name}"
            (tree.os.unlink if kind(tree.os.lstat(path)) == stat.S_IFLNK else tree.os.rmdir)(path)
    assert tree.names() == []
