"""Path resolution: what every call that takes a path shares (path_resolution(7))."""

import errno
import os
import stat

import pytest

from .expect import ANY, fails, kind

# Every call that takes the path of an existing object, as (name, call).
CALLS = {
    "stat": lambda os_, path: os_.stat(path),
    "lstat": lambda os_, path: os_.lstat(path),
    "open": lambda os_, path: os_.os_open(path, os.O_RDONLY),
    "chmod": lambda os_, path: os_.chmod(path, 0o600),
    "chown": lambda os_, path: os_.chown(path, -1, -1),
    "lchown": lambda os_, path: os_.lchown(path, -1, -1),
    "utime": lambda os_, path: os_.utime(path),
    "truncate": lambda os_, path: os_.truncate(path, 0),
    "unlink": lambda os_, path: os_.unlink(path),
    "remove": lambda os_, path: os_.remove(path),
    "rmdir": lambda os_, path: os_.rmdir(path),
    "listdir": lambda os_, path: os_.listdir(path),
    "scandir": lambda os_, path: os_.scandir(path),
    "readlink": lambda os_, path: os_.readlink(path),
    "getxattr": lambda os_, path: os_.getxattr(path, "user.a"),
    "setxattr": lambda os_, path: os_.setxattr(path, "user.a", b""),
    "listxattr": lambda os_, path: os_.listxattr(path),
    "removexattr": lambda os_, path: os_.removexattr(path, "user.a"),
    "statvfs": lambda os_, path: os_.statvfs(path),
}
# Calls that make the object of the path.
MAKERS = {
    "create": lambda os_, path: os_.os_open(path, os.O_CREAT | os.O_WRONLY, 0o600),
    "mkdir": lambda os_, path: os_.mkdir(path),
    "mknod": lambda os_, path: os_.mknod(path),
    "mkfifo": lambda os_, path: os_.mkfifo(path),
}
# These follow no symlink at the end.
NOFOLLOW = {"lstat", "lchown", "unlink", "remove", "rmdir", "readlink"}

# os leaves the filename out of their errors.
UNNAMED = {"utime", "mknod", "mkfifo"}


class Call:
    """One of the above; `name` is the test's id."""

    def __init__(self, name):
        self.name = name
        self.make = {**CALLS, **MAKERS}[name]

    def fails(self, fs, code, path):
        with fails(code, ANY if self.name in UNNAMED else path):
            self.make(fs.os, path)


def calls(*names):
    return pytest.mark.parametrize("call", [Call(name) for name in names], ids=names)


every_call = calls(*CALLS)
every_following_call = calls(*(name for name in CALLS if name not in NOFOLLOW))
every_path_call = calls(*CALLS, *MAKERS)


# ---- errors that all calls share ---------------------------------------------------------------


@every_call
def test_missing_name_is_enoent(fs, call):
    path = fs.path("missing")
    call.fails(fs, errno.ENOENT, path)


@every_path_call
def test_missing_directory_on_the_way_is_enoent(fs, call):
    path = fs.path("missing", "name")
    call.fails(fs, errno.ENOENT, path)


@every_path_call
def test_file_on_the_way_is_enotdir(fs, call):
    path = fs.make("file") + "/name"
    call.fails(fs, errno.ENOTDIR, path)


@every_path_call
def test_component_of_256_bytes_is_enametoolong(fs, call):
    path = fs.path("n" * 256)
    call.fails(fs, errno.ENAMETOOLONG, path)


@every_path_call
def test_path_of_4096_bytes_is_enametoolong(fs, call):
    path = padded(fs, 4096)
    call.fails(fs, errno.ENAMETOOLONG, path)


@every_path_call
def test_empty_path_is_enoent(fs, call):
    call.fails(fs, errno.ENOENT, "")


@every_path_call
def test_symlink_loop_on_the_way_is_eloop(fs, call):
    fs.symlink("two", "one")
    fs.symlink("one", "two")
    path = fs.path("one", "name")
    call.fails(fs, errno.ELOOP, path)


@every_following_call
def test_symlink_to_itself_is_eloop(fs, call):
    path = fs.symlink("self", "self")
    call.fails(fs, errno.ELOOP, path)


@every_following_call
def test_dangling_symlink_is_enoent(fs, call):
    path = fs.symlink("missing", "link")
    call.fails(fs, errno.ENOENT, path)


@every_call
def test_trailing_slash_on_a_file_is_enotdir(fs, call):
    path = fs.make("file") + "/"
    call.fails(fs, errno.ENOTDIR, path)


@every_path_call
def test_embedded_nul_is_refused(fs, call):
    with pytest.raises(ValueError, match="null byte"):
        call.make(fs.os, fs.path("a\0b"))


# ---- spelling ----------------------------------------------------------------------------------


def padded(fs, size):
    """A path of `size` bytes that names the root's "f"."""
    return fs.root + "/" * (size - len(fs.root) - 1) + "f"


def test_path_of_4095_bytes_resolves(fs):
    fs.make("f", b"x")
    assert fs.os.stat(padded(fs, 4095)).st_size == 1


def test_name_of_255_bytes_works(fs):
    path = fs.make("n" * 255, b"x")
    assert fs.data(path) == b"x"
    assert fs.names() == ["n" * 255]


def test_deep_path_near_the_limit_works(fs):
    name = "d" * 200
    depth = (4095 - len(fs.root)) // (len(name) + 1)
    path = fs.root
    for _ in range(depth):
        path += "/" + name
        fs.os.mkdir(path)
    assert kind(fs.os.stat(path)) == stat.S_IFDIR


@pytest.mark.parametrize(
    "spelling",
    ["d//f", "//d/f", "d///f", "./d/f", "d/./f", "././d/./f", "d/../d/f", "d/e/../f", "d/e/.././f"],
)
def test_spellings_of_one_path(fs, spelling):
    fs.mkdir("d")
    fs.mkdir("d/e")
    made = fs.make("d/f", b"x")
    assert os.path.samestat(fs.os.stat(fs.path(spelling)), fs.os.stat(made))


@pytest.mark.parametrize("suffix", ["/", "//", "/.", "/./", "/e/..", "/e/../"])
def test_spellings_of_a_directory(fs, suffix):
    path = fs.mkdir("d")
    fs.mkdir("d/e")
    assert os.path.samestat(fs.os.stat(path + suffix), fs.os.stat(path))
    assert os.path.samestat(fs.os.lstat(path + suffix), fs.os.stat(path))
    assert fs.names(path + suffix) == ["e"]


def test_dot_after_a_file_is_enotdir(fs):
    path = fs.make("f") + "/."
    with fails(errno.ENOTDIR, path):
        fs.os.stat(path)


def test_dotdot_after_a_file_is_enotdir(fs):
    path = fs.make("f") + "/../f"
    with fails(errno.ENOTDIR, path):
        fs.os.stat(path)


def test_dotdot_after_a_missing_name_is_enoent(fs):
    fs.make("f")
    with fails(errno.ENOENT):
        fs.os.stat(fs.path("missing/../f"))


def test_dotdot_out_of_the_root_and_back(fs):
    fs.make("f", b"x")
    base = fs.root.rsplit("/", 1)[1]
    assert fs.data(f"{fs.root}/../{base}/f") == b"x"


def test_dotdot_out_of_the_file_system_and_back(fs):
    fs.make("f", b"x")
    above, mountpoint, base = fs.root.rsplit("/", 2)
    assert fs.data(f"{fs.root}/../../{mountpoint}/{base}/f") == b"x"
    assert fs.data(f"{above}/./{mountpoint}//{base}/f") == b"x"


def test_dotdot_above_the_real_root_stays_there(fs):
    fs.make("f", b"x")
    assert fs.data("/../../.." + fs.root + "/f") == b"x"


@pytest.mark.parametrize(
    "name",
    [
        " ",
        "a b",
        "new\nline",
        "back\\slash",
        "ümläut",
        "日本語",
        "-",
        "...",
        ".hidden",
        "\x01",
        "*?",
    ],
)
def test_any_byte_but_slash_and_nul_is_a_name(fs, name):
    path = fs.make(name, b"x")
    assert fs.data(path) == b"x"
    assert fs.names() == [name]


def test_names_are_case_sensitive(fs):
    fs.make("name", b"lower")
    fs.make("NAME", b"upper")
    assert fs.data(fs.path("name")) == b"lower"


def test_bytes_path(fs):
    path = os.fsencode(fs.make("f", b"x"))
    assert fs.os.stat(path).st_size == 1
    assert fs.os.listdir(os.fsencode(fs.root)) == [b"f"]


def test_bytes_path_comes_back_in_the_error(fs):
    path = os.fsencode(fs.path("missing"))
    with fails(errno.ENOENT, path):
        fs.os.stat(path)


def test_undecodable_name_survives(fs):
    name = b"latin-\xe9"
    fs.os.mkdir(os.fsencode(fs.root) + b"/" + name)
    assert fs.names() == [os.fsdecode(name)]
    assert fs.os.listdir(os.fsencode(fs.root)) == [name]
    assert kind(fs.os.stat(fs.path(os.fsdecode(name)))) == stat.S_IFDIR


def test_pathlike(fs):
    class Named:
        def __fspath__(self):
            return path

    path = fs.make("f", b"x")
    assert fs.os.stat(Named()).st_size == 1
    fs.os.unlink(Named())
    assert fs.names() == []


@pytest.mark.parametrize("wrong", [None, 1.5, ["f"]])
def test_path_of_a_wrong_type_is_a_typeerror(fs, wrong):
    with pytest.raises(TypeError):
        fs.os.stat(wrong)


# ---- symlinks on the way -----------------------------------------------------------------------


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


# ---- a trailing slash where an entry is made or removed ----------------------------------------


def test_mkdir_takes_a_trailing_slash(fs):
    fs.os.mkdir(fs.path("d/"))
    fs.os.mkdir(fs.path("e///"))
    assert fs.names() == ["d", "e"]


def test_mkdir_of_dot_in_a_missing_directory_is_enoent(fs):
    with fails(errno.ENOENT):
        fs.os.mkdir(fs.path("missing/."))


@pytest.mark.parametrize("name", ["", "d", "d/", "d/.", "d/..", "."])
def test_mkdir_of_what_exists_is_eexist(fs, name):
    fs.mkdir("d")
    with fails(errno.EEXIST, fs.path(name)):
        fs.os.mkdir(fs.path(name))


def test_mkdir_on_a_dangling_symlink_is_eexist(fs):
    link = fs.symlink("missing", "link")
    with fails(errno.EEXIST):
        fs.os.mkdir(link)
    with fails(errno.EEXIST):
        fs.os.mkdir(link + "/")


def test_rmdir_takes_a_trailing_slash(fs):
    fs.os.rmdir(fs.mkdir("d") + "/")
    assert fs.names() == []


def test_rmdir_of_dot_is_einval(fs):
    path = fs.mkdir("d") + "/."
    with fails(errno.EINVAL, path):
        fs.os.rmdir(path)


def test_rmdir_of_dotdot_is_enotempty(fs):
    path = fs.mkdir("d") + "/.."
    with fails(errno.ENOTEMPTY, path):
        fs.os.rmdir(path)


@pytest.mark.parametrize("suffix", ["", "/", "/.", "/.."])
def test_unlink_of_a_directory_is_eisdir(fs, suffix):
    path = fs.mkdir("d") + suffix
    with fails(errno.EISDIR, path):
        fs.os.unlink(path)


def test_unlink_of_a_symlink_with_a_slash_is_enotdir(fs):
    fs.mkdir("d")
    link = fs.symlink("d", "link")
    with fails(errno.ENOTDIR):
        fs.os.unlink(link + "/")


def test_create_with_a_trailing_slash_is_eisdir(fs):
    with fails(errno.EISDIR):
        fs.open(fs.path("missing/"), os.O_CREAT | os.O_WRONLY)
    assert fs.names() == []


@pytest.mark.parametrize("make", ["mknod", "mkfifo"])
def test_node_with_a_trailing_slash_is_enoent(fs, make):
    with fails(errno.ENOENT):
        getattr(fs.os, make)(fs.path("missing/"))
    assert fs.names() == []


def test_symlink_with_a_trailing_slash_is_enoent(fs):
    with fails(errno.ENOENT):
        fs.os.symlink("target", fs.path("missing/"))


def test_hard_link_with_a_trailing_slash_is_enoent(fs):
    path = fs.make("f")
    with fails(errno.ENOENT):
        fs.os.link(path, fs.path("missing/"))


def test_hard_link_from_a_trailing_slash_is_enotdir(fs):
    path = fs.make("f")
    with fails(errno.ENOTDIR):
        fs.os.link(path + "/", fs.path("g"))


# ---- names come and go: no stale answer --------------------------------------------------------


@pytest.mark.parametrize("way", ["create", "mkdir", "symlink", "link", "rename", "mknod"])
def test_name_is_found_at_once_after_enoent(fs, way):
    path = fs.path("name")
    other = fs.make("other")
    with fails(errno.ENOENT):
        fs.os.lstat(path)
    make = {
        "create": lambda: fs.os.close(fs.os.os_open(path, os.O_CREAT)),
        "mkdir": lambda: fs.os.mkdir(path),
        "symlink": lambda: fs.os.symlink("x", path),
        "link": lambda: fs.os.link(other, path),
        "rename": lambda: fs.os.rename(other, path),
        "mknod": lambda: fs.os.mknod(path),
    }
    make[way]()
    fs.os.lstat(path)
    assert "name" in fs.names()


def test_name_is_gone_at_once_after_unlink(fs):
    path = fs.make("f")
    fs.os.stat(path)
    fs.os.unlink(path)
    with fails(errno.ENOENT):
        fs.os.stat(path)
    assert fs.names() == []


def test_names_below_a_removed_directory_are_gone(fs):
    fs.mkdir("d")
    path = fs.make("d/f")
    fs.os.stat(path)
    fs.os.unlink(path)
    fs.os.rmdir(fs.path("d"))
    with fails(errno.ENOENT):
        fs.os.stat(path)


def test_name_changes_its_type(fs):
    path = fs.make("n")
    fs.os.stat(path)
    fs.os.unlink(path)
    fs.os.mkdir(path)
    assert kind(fs.os.stat(path)) == stat.S_IFDIR
    fs.os.rmdir(path)
    fs.os.symlink("n", path)
    assert kind(fs.os.lstat(path)) == stat.S_IFLNK


@pytest.mark.parametrize(
    "path, visible", [("f", True), ("missing", False), ("f/x", False), ("dangling", False)]
)
def test_access_tells_whether_a_name_resolves(fs, path, visible):
    fs.make("f")
    fs.symlink("missing", "dangling")
    assert fs.os.access(fs.path(path), os.F_OK) is visible
