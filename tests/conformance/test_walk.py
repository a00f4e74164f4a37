"""Symlinks on the way of a path: inside, out of the file system, and back."""

import errno
import os
import stat

import pytest

from .expect import fails, kind


def test_symlink_to_a_file_is_followed(fs):
    fs.make("f", b"x")
    link = fs.symlink("f", "link")
    assert fs.data(link) == b"x"


def test_symlink_to_a_directory_is_walked(fs):
    fs.mkdir("d")
    fs.make("d/f", b"x")
    link = fs.symlink("d", "link")
    assert fs.data(link + "/f") == b"x"
    assert fs.names(link) == ["f"]


def test_lstat_of_a_symlink_is_the_link(fs):
    fs.mkdir("d")
    link = fs.symlink("d", "link")
    assert kind(fs.os.lstat(link)) == stat.S_IFLNK


def test_trailing_slash_follows_a_symlink_even_for_lstat(fs):
    fs.mkdir("d")
    link = fs.symlink("d", "link")
    assert kind(fs.os.lstat(link + "/")) == stat.S_IFDIR


def test_trailing_slash_on_a_symlink_to_a_file_is_enotdir(fs):
    fs.make("f")
    path = fs.symlink("f", "link") + "/"
    with fails(errno.ENOTDIR, path):
        fs.os.lstat(path)


def test_symlink_in_the_middle_to_a_file_is_enotdir(fs):
    fs.make("f")
    path = fs.symlink("f", "link") + "/x"
    with fails(errno.ENOTDIR, path):
        fs.os.stat(path)


def test_dotdot_behind_a_symlink_is_the_targets_parent(fs):
    fs.mkdir("a")
    fs.mkdir("a/b")
    fs.make("a/f", b"inner")
    fs.make("f", b"outer")
    link = fs.symlink("a/b", "link")
    assert fs.data(link + "/../f") == b"inner"


def test_target_with_dotdot_is_relative_to_the_link(fs):
    fs.mkdir("a")
    fs.mkdir("a/b")
    fs.make("f", b"x")
    link = fs.symlink("../../f", "a/b/link")
    assert fs.data(link) == b"x"


def test_link_reached_through_a_link_is_relative_to_its_own_directory(fs):
    fs.mkdir("a")
    fs.make("a/f", b"inner")
    fs.make("f", b"outer")
    fs.symlink("f", "a/link")
    fs.symlink("a", "b")
    assert fs.data(fs.path("b/link")) == b"inner"


def test_target_with_slashes_and_dots_at_the_end(fs):
    fs.mkdir("d")
    fs.make("d/f", b"x")
    link = fs.symlink(".//d/./", "link")
    assert fs.data(link + "/f") == b"x"


def test_target_with_a_trailing_slash_must_be_a_directory(fs):
    fs.make("f")
    link = fs.symlink("f/", "link")
    with fails(errno.ENOTDIR, link):
        fs.os.stat(link)


def chain(fs, count):
    """The first of `count` symlinks that lead to the file "0"."""
    fs.make("0", b"x")
    for number in range(count):
        fs.symlink(str(number), str(number + 1))
    return fs.path(str(count))


def test_forty_symlinks_are_followed(fs):
    assert fs.data(chain(fs, 40)) == b"x"


def test_forty_one_symlinks_are_eloop(fs):
    path = chain(fs, 41)
    with fails(errno.ELOOP, path):
        fs.os.stat(path)


def test_all_symlinks_of_a_path_count_together(fs):
    fs.symlink(".", "link")
    assert kind(fs.os.stat(fs.root + "/link" * 40)) == stat.S_IFDIR
    with fails(errno.ELOOP):
        fs.os.stat(fs.root + "/link" * 41)


def test_absolute_symlink_back_into_the_root(fs):
    fs.mkdir("d")
    fs.make("d/f", b"x")
    link = fs.symlink(fs.path("d"), "link")
    assert fs.data(link + "/f") == b"x"


def test_absolute_symlink_to_an_ordinary_file(fs, tmp_path):
    (tmp_path / "ordinary").write_bytes(b"ordinary")
    link = fs.symlink(str(tmp_path / "ordinary"), "link")
    assert fs.data(link) == b"ordinary"
    assert os.path.samestat(fs.os.stat(link), (tmp_path / "ordinary").stat())


def test_absolute_symlink_to_an_ordinary_directory(fs, tmp_path):
    (tmp_path / "ordinary").write_bytes(b"ordinary")
    link = fs.symlink(str(tmp_path), "link")
    assert fs.data(link + "/ordinary") == b"ordinary"
    assert fs.names(link) == ["ordinary"]
    fs.make("link/made", b"made")
    assert (tmp_path / "made").read_bytes() == b"made"


def test_absolute_symlink_to_what_is_not_there(fs, tmp_path):
    link = fs.symlink(str(tmp_path / "missing"), "link")
    with fails(errno.ENOENT, link):
        fs.os.stat(link)


def test_relative_symlink_out_of_the_file_system(fs, tmp_path):
    (tmp_path / "ordinary").write_bytes(b"ordinary")
    up = "../" * fs.root.count("/")
    link = fs.symlink(up + str(tmp_path / "ordinary").lstrip("/"), "link")
    assert fs.data(link) == b"ordinary"


def test_dotdot_behind_a_symlink_that_leaves(fs, tmp_path):
    (tmp_path / "d").mkdir()
    (tmp_path / "ordinary").write_bytes(b"ordinary")
    link = fs.symlink(str(tmp_path / "d"), "link")
    assert fs.data(link + "/../ordinary") == b"ordinary"


def test_out_of_the_root_and_back_by_symlinks(fs, tmp_path):
    fs.make("f", b"x")
    (tmp_path / "back").symlink_to(fs.root)
    link = fs.symlink(str(tmp_path), "link")
    assert fs.data(link + "/back/f") == b"x"


def test_symlinks_inside_and_outside_count_together(fs, tmp_path):
    (tmp_path / "back").symlink_to(fs.root)
    fs.symlink(str(tmp_path / "back"), "link")
    assert kind(fs.os.stat(fs.root + "/link" * 20)) == stat.S_IFDIR
    with fails(errno.ELOOP):
        fs.os.stat(fs.root + "/link" * 21)


@pytest.mark.parametrize(
    "call, code",
    [
        (lambda os_, path: os_.rmdir(path), errno.EINVAL),
        (lambda os_, path: os_.mkdir(path), errno.EEXIST),
        (lambda os_, path: os_.unlink(path), errno.EISDIR),
        (lambda os_, path: os_.rename(path, path + "2"), errno.EBUSY),
        (lambda os_, path: os_.os_open(path, os.O_CREAT | os.O_WRONLY), errno.EISDIR),
    ],
    ids=["rmdir", "mkdir", "unlink", "rename", "create"],
)
def test_final_dot_behind_a_symlink_that_leaves_protects_the_target(fs, tmp_path, call, code):
    """Whether it leads to an ordinary directory or back into the file system."""
    (tmp_path / "ordinary").mkdir()
    for target in (str(tmp_path / "ordinary"), fs.mkdir("d")):
        link = fs.symlink(target, "link")
        with fails(code):
            call(fs.os, link + "/.")
        fs.os.unlink(link)
    assert (tmp_path / "ordinary").is_dir()
    assert fs.names() == ["d"]


def test_directory_above_the_file_system_stays_where_it_is(fs):
    with fails((errno.EBUSY, errno.EXDEV)):
        fs.os.rename(fs.root + "/../..", fs.path("new"))
    with fails(errno.ENOTEMPTY):
        fs.os.rmdir(fs.root + "/..")


@pytest.mark.parametrize(
    "call",
    [
        lambda os_, path: os_.stat(path + "/f"),
        lambda os_, path: os_.close(os_.os_open(path + "/new", os.O_CREAT | os.O_EXCL)),
        lambda os_, path: os_.mkdir(path + "/new"),
        lambda os_, path: os_.mknod(path + "/new"),
        lambda os_, path: os_.symlink("x", path + "/new"),
        lambda os_, path: os_.link(path + "/f", path + "/new"),
        lambda os_, path: os_.rename(path + "/f", path + "/new"),
        lambda os_, path: os_.unlink(path + "/f"),
        lambda os_, path: os_.rmdir(path + "/d"),
    ],
    ids=["stat", "create", "mkdir", "mknod", "symlink", "link", "rename", "unlink", "rmdir"],
)
def test_every_call_follows_forty_symlinks(fs, call):
    directory = fs.mkdir("target")
    fs.os.chmod(directory, 0o2777)
    fs.make("target/f")
    fs.mkdir("target/d")
    fs.symlink(".", "link")
    call(fs.os, fs.root + "/link" * 40 + "/target")


def test_the_paths_of_a_rename_count_apart_when_they_leave(fs, tmp_path):
    """Each goes out of the file system and comes back; together they meet 62 symlinks."""
    (tmp_path / "back").symlink_to(fs.root)
    fs.symlink(str(tmp_path / "back"), "out")
    fs.symlink(".", "link")
    fs.make("f", b"content")
    way = fs.root + "/link" * 10 + "/out" * 10 + "/link"
    fs.os.rename(way + "/f", way + "/g")
    fs.os.link(way + "/g", way + "/h")
    assert fs.names() == ["g", "h", "link", "out"]
    with fails(errno.ELOOP):
        fs.os.rename(way + "/g", way + "/link" * 10 + "/i")
