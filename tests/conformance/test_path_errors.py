"""Errors of path resolution that every call with a path shares (path_resolution(7))."""

import errno
import os

import pytest

from . import linux
from .expect import ANY, fails

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
    path = fs.root + "/" * (4096 - len(fs.root) - 1) + "f"
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
    """In the words that the running Python has for the call."""
    with pytest.raises(ValueError, match="embedded null") as wanted:
        call.make(linux, "a\0b")
    with pytest.raises(ValueError, match="embedded null") as caught:
        call.make(fs.os, fs.path("a\0b"))
    assert str(caught.value) == str(wanted.value)
