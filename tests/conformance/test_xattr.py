"""Extended attributes (xattr(7))."""

import errno
import os

import pytest

from .expect import fails

pytestmark = pytest.mark.usefixtures("xattrs")

CREATE, REPLACE = os.XATTR_CREATE, os.XATTR_REPLACE


@pytest.fixture(params=["file", "directory", "descriptor"])
def thing(fs, request):
    """A path or a descriptor of something that takes user attributes."""
    if request.param == "directory":
        return fs.mkdir("d")
    path = fs.make("f")
    return fs.open(path) if request.param == "descriptor" else path


def test_set_and_get(fs, thing):
    fs.os.setxattr(thing, "user.a", b"value")
    assert fs.os.getxattr(thing, "user.a") == b"value"
    assert fs.os.listxattr(thing) == ["user.a"]


def test_remove(fs, thing):
    fs.os.setxattr(thing, "user.a", b"value")
    fs.os.removexattr(thing, "user.a")
    assert fs.os.listxattr(thing) == []
    with fails(errno.ENODATA):
        fs.os.getxattr(thing, "user.a")


def test_set_replaces(fs, thing):
    for value in (b"long value", b"s", b"", b"longer value than all"):
        fs.os.setxattr(thing, "user.a", value)
        assert fs.os.getxattr(thing, "user.a") == value


@pytest.mark.parametrize(
    "value",
    [b"", b"\0", b"a\0b", bytes(range(256)), b"x" * 129, b"x" * 4096],
    ids=["empty", "nul", "inner-nul", "all-bytes", "129-bytes", "4096-bytes"],
)
def test_any_bytes_are_a_value(fs, value):
    path = fs.make("f")
    fs.os.setxattr(path, "user.a", value)
    assert fs.os.getxattr(path, "user.a") == value


def test_value_may_be_any_buffer(fs):
    path = fs.make("f")
    fs.os.setxattr(path, "user.a", memoryview(bytearray(b"abc")))
    assert fs.os.getxattr(path, "user.a") == b"abc"


def test_greatest_value(fs):
    path = fs.make("f")
    value = b"x" * 65536
    fs.os.setxattr(path, "user.a", value)
    assert fs.os.getxattr(path, "user.a") == value


def test_value_of_more_is_e2big(fs):
    path = fs.make("f")
    with fails(errno.E2BIG, path):
        fs.os.setxattr(path, "user.a", b"x" * 65537)


def test_many_names(fs):
    path = fs.make("f")
    expected = [f"user.{number:03}-{'n' * 50}" for number in range(50)]
    for name in expected:
        fs.os.setxattr(path, name, name.encode())
    assert sorted(fs.os.listxattr(path)) == expected
    assert all(fs.os.getxattr(path, name) == name.encode() for name in expected)


def test_name_may_be_bytes(fs):
    path = fs.make("f")
    fs.os.setxattr(path, b"user.a", b"1")
    assert fs.os.getxattr(path, b"user.a") == b"1"
    fs.os.removexattr(path, b"user.a")
    assert fs.os.listxattr(path) == []


def test_create_flag(fs):
    path = fs.make("f")
    fs.os.setxattr(path, "user.a", b"1", CREATE)
    with fails(errno.EEXIST, path):
        fs.os.setxattr(path, "user.a", b"2", CREATE)
    assert fs.os.getxattr(path, "user.a") == b"1"


def test_replace_flag(fs):
    path = fs.make("f")
    with fails(errno.ENODATA, path):
        fs.os.setxattr(path, "user.a", b"1", REPLACE)
    assert fs.os.listxattr(path) == []
    fs.os.setxattr(path, "user.a", b"1")
    fs.os.setxattr(path, "user.a", b"2", REPLACE)
    assert fs.os.getxattr(path, "user.a") == b"2"


def test_unknown_flag_is_einval(fs):
    path = fs.make("f")
    with fails(errno.EINVAL, path):
        fs.os.setxattr(path, "user.a", b"1", 8)


@pytest.mark.parametrize("call", ["getxattr", "removexattr"])
def test_missing_attribute_is_enodata(fs, call):
    path = fs.make("f")
    with fails(errno.ENODATA, path):
        getattr(fs.os, call)(path, "user.missing")


@pytest.mark.parametrize(
    "name, code",
    [
        ("", errno.ERANGE),
        ("user." + "n" * 251, errno.ERANGE),
        ("user.", errno.EINVAL),
        ("nothing.a", errno.EOPNOTSUPP),
        ("user", errno.EOPNOTSUPP),
    ],
)
def test_name_refused(fs, name, code):
    path = fs.make("f")
    with fails(code, path):
        fs.os.setxattr(path, name, b"1")


def test_greatest_name(fs):
    path = fs.make("f")
    name = "user." + "n" * 250
    fs.os.setxattr(path, name, b"1")
    assert fs.os.listxattr(path) == [name]


def test_symlink_is_followed(fs):
    path = fs.make("f")
    link = fs.symlink("f", "link")
    fs.os.setxattr(link, "user.a", b"1")
    assert fs.os.getxattr(path, "user.a") == b"1"
    assert fs.os.listxattr(link) == ["user.a"]
    assert fs.os.listxattr(link, follow_symlinks=False) == []


def test_user_attribute_on_the_symlink_itself_is_eperm(fs):
    fs.make("f")
    link = fs.symlink("f", "link")
    with fails(errno.EPERM, link):
        fs.os.setxattr(link, "user.a", b"1", follow_symlinks=False)


def test_trusted_attributes_are_roots(fs, user):
    path = fs.make("f")
    fs.os.setxattr(path, "trusted.a", b"1")
    assert fs.os.getxattr(path, "trusted.a") == b"1"
    with fails(errno.ENODATA):
        user(1000, 1000, lambda: fs.os.getxattr(path, "trusted.a"))
    with fails(errno.EPERM):
        user(1000, 1000, lambda: fs.os.setxattr(path, "trusted.a", b"2"))


def test_trusted_attribute_on_the_symlink_itself(fs, user):
    path = fs.make("f")
    link = fs.symlink("f", "link")
    fs.os.setxattr(link, "trusted.a", b"1", follow_symlinks=False)
    assert fs.os.getxattr(link, "trusted.a", follow_symlinks=False) == b"1"
    assert fs.os.listxattr(path) == []


def test_hard_links_share_attributes(fs):
    path = fs.make("f")
    fs.os.link(path, fs.path("g"))
    fs.os.setxattr(path, "user.a", b"1")
    assert fs.os.getxattr(fs.path("g"), "user.a") == b"1"


def test_rename_keeps_attributes(fs):
    path = fs.make("f")
    fs.os.setxattr(path, "user.a", b"1")
    fs.os.rename(path, fs.path("g"))
    assert fs.os.getxattr(fs.path("g"), "user.a") == b"1"


def test_new_file_of_an_old_name_has_none(fs):
    path = fs.make("f")
    fs.os.setxattr(path, "user.a", b"1")
    fs.os.unlink(path)
    fs.make("f")
    assert fs.os.listxattr(path) == []


def test_attributes_of_a_fifo_are_eperm(fs):
    path = fs.path("fifo")
    fs.os.mkfifo(path)
    with fails(errno.EPERM, path):
        fs.os.setxattr(path, "user.a", b"1")
