"""How paths are spelled, and that no answer about a name is stale (path_resolution(7))."""

import errno
import os
import stat

import pytest

from .expect import fails, kind

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


# Calls that make, remove or move an entry, each with what "." at the end means to it.
ENTRY_CALLS = {
    "mkdir": (lambda os_, path: os_.mkdir(path), errno.EEXIST),
    "mknod": (lambda os_, path: os_.mknod(path), errno.EEXIST),
    "symlink": (lambda os_, path: os_.symlink("target", path), errno.EEXIST),
    "link": (lambda os_, path: os_.link(path.rsplit("/", 2)[0] + "/f", path), errno.EEXIST),
    "create": (lambda os_, path: os_.os_open(path, os.O_CREAT | os.O_WRONLY), errno.EISDIR),
    "unlink": (lambda os_, path: os_.unlink(path), errno.EISDIR),
    "rmdir": (lambda os_, path: os_.rmdir(path), errno.EINVAL),
    "rename-from": (lambda os_, path: os_.rename(path, path + "new"), errno.EBUSY),
    "rename-to": (
        lambda os_, path: os_.rename(path.rsplit("/", 2)[0] + "/f", path),
        errno.EBUSY,
    ),
}


@pytest.mark.parametrize(
    "name, code",
    [
        ("f", errno.ENOTDIR),
        ("missing", errno.ENOENT),
        ("dangling", errno.ENOENT),
        ("to-file", errno.ENOTDIR),
        ("d", None),
        ("to-dir", None),
    ],
)
@pytest.mark.parametrize("call, refusal", ENTRY_CALLS.values(), ids=ENTRY_CALLS)
def test_dot_at_the_end_walks_into_what_is_before_it(fs, call, refusal, name, code):
    fs.make("f")
    fs.mkdir("d")
    fs.symlink("missing", "dangling")
    fs.symlink("f", "to-file")
    fs.symlink("d", "to-dir")
    before = fs.names()
    with fails(code or refusal):
        call(fs.os, fs.path(name, "."))
    assert fs.names() == before


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
