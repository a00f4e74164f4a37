"""Permissions, seen by another user than root: mode bits, ownership, access(2)."""

import errno
import os
import resource

import pytest

from .expect import fails, mode

ME, MY_GROUP = 1000, 1000
OTHER = 1001


@pytest.fixture
def me(user):
    """Acts as ME, in MY_GROUP and the given groups."""
    return lambda func, groups=(): user(ME, MY_GROUP, func, groups)


def owned(fs, path, uid, gid, bits):
    fs.os.chown(path, uid, gid)
    fs.os.chmod(path, bits)
    return path


READ, WRITE = os.O_RDONLY, os.O_WRONLY


# ---- which bits count --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "uid, gid, groups, bits, flags, allowed",
    [
        (OTHER, OTHER, [], 0o004, READ, True),
        (OTHER, OTHER, [], 0o770, READ, False),
        (OTHER, OTHER, [], 0o002, WRITE, True),
        (OTHER, OTHER, [], 0o775, WRITE, False),
        (OTHER, OTHER, [], 0o004, os.O_RDWR, False),
        (OTHER, MY_GROUP, [], 0o040, READ, True),
        (OTHER, MY_GROUP, [], 0o704, READ, False),
        (OTHER, 4242, [4242], 0o020, WRITE, True),
        (OTHER, 4242, [4242, 5], 0o705, READ, False),
        (OTHER, 4242, [5], 0o040, READ, False),
        (ME, OTHER, [], 0o400, READ, True),
        (ME, MY_GROUP, [], 0o044, READ, False),
        (ME, MY_GROUP, [], 0o200, WRITE, True),
        (ME, MY_GROUP, [], 0o577, WRITE, False),
    ],
)
def test_open_looks_at_the_bits_of_owner_group_or_others(
    fs, me, uid, gid, groups, bits, flags, allowed
):
    path = owned(fs, fs.make("f", b"x"), uid, gid, bits)

    def open_():
        fs.os.close(fs.os.os_open(path, flags))

    if allowed:
        me(open_, groups)
    else:
        with fails(errno.EACCES, path):
            me(open_, groups)


def test_trunc_needs_the_right_to_write(fs, me):
    path = owned(fs, fs.make("f", b"abc"), OTHER, OTHER, 0o644)
    with fails(errno.EACCES, path):
        me(lambda: fs.os.os_open(path, os.O_RDONLY | os.O_TRUNC))
    assert fs.data(path) == b"abc"


def test_root_ignores_read_and_write_bits(fs, user):
    path = fs.make("f", b"abc", 0o000)
    fd = fs.open(path, os.O_RDWR)
    assert fs.os.read(fd, 3) == b"abc"


@pytest.mark.parametrize(
    "bits, mask, allowed",
    [
        (0o644, os.R_OK, True),
        (0o644, os.W_OK, False),
        (0o644, os.X_OK, False),
        (0o645, os.R_OK | os.X_OK, True),
        (0o640, os.F_OK, True),
        (0o640, os.R_OK, False),
        (0o606, os.R_OK | os.W_OK, True),
    ],
)
def test_access(fs, me, bits, mask, allowed):
    path = owned(fs, fs.make("f"), OTHER, OTHER, bits)
    assert me(lambda: fs.os.access(path, mask)) is allowed
    assert me(lambda: fs.os.access(path, mask)) is allowed  # by what the first has left in a cache


@pytest.mark.parametrize("bits, allowed", [(0o644, False), (0o744, True), (0o001, True)])
def test_root_may_execute_only_with_an_x_bit(fs, user, bits, allowed):
    path = fs.make("f", mode=bits)
    assert fs.os.access(path, os.X_OK) is allowed
    assert fs.os.access(path, os.R_OK | os.W_OK) is True


def test_access_of_effective_ids(fs, me):
    path = owned(fs, fs.make("f"), OTHER, OTHER, 0o604)
    assert me(lambda: fs.os.access(path, os.R_OK, effective_ids=True)) is True
    assert me(lambda: fs.os.access(path, os.W_OK, effective_ids=True)) is False


# ---- directories -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        lambda os_, d: os_.stat(d + "/f"),
        lambda os_, d: os_.lstat(d + "/f"),
        lambda os_, d: os_.os_open(d + "/f", os.O_RDONLY),
        lambda os_, d: os_.stat(d + "/missing"),
        lambda os_, d: os_.stat(d + "/."),
        lambda os_, d: os_.stat(d + "/.."),
        lambda os_, d: os_.readlink(d + "/f"),
        lambda os_, d: os_.unlink(d + "/f"),
        lambda os_, d: os_.mkdir(d + "/new"),
        lambda os_, d: os_.chmod(d + "/f", 0o600),
        lambda os_, d: os_.rename(d + "/f", d + "/g"),
    ],
    ids=[
        "stat", "lstat", "open", "missing", "dot", "dotdot", "readlink", "unlink", "mkdir",
        "chmod", "rename",
    ],
)  # fmt: skip
def test_walk_needs_the_x_bit(fs, me, call):
    directory = fs.mkdir("d")
    fs.make("d/f", mode=0o777)
    fs.os.chmod(directory, 0o776)
    with fails(errno.EACCES):
        me(lambda: call(fs.os, directory))
    assert fs.names(directory) == ["f"]


@pytest.mark.parametrize("last", [".", ".."])
@pytest.mark.parametrize(
    "call",
    [
        lambda os_, path: os_.stat(path),
        lambda os_, path: os_.mkdir(path),
        lambda os_, path: os_.rmdir(path),
        lambda os_, path: os_.unlink(path),
        lambda os_, path: os_.rename(path, path),
        lambda os_, path: os_.os_open(path, os.O_CREAT | os.O_WRONLY),
    ],
    ids=["stat", "mkdir", "rmdir", "unlink", "rename", "create"],
)
def test_a_file_is_no_directory_before_it_may_not_be_searched(fs, me, call, last):
    path = owned(fs, fs.make("f"), OTHER, OTHER, 0)
    with fails(errno.ENOTDIR):
        me(lambda: call(fs.os, f"{path}/{last}"))


def test_listing_needs_the_r_bit_alone(fs, me):
    directory = fs.mkdir("d")
    fs.make("d/f")
    fs.os.chmod(directory, 0o774)
    assert me(lambda: fs.os.listdir(directory)) == ["f"]
    fs.os.chmod(directory, 0o773)
    with fails(errno.EACCES, directory):
        me(lambda: fs.os.listdir(directory))


def test_x_bit_without_r_lets_known_names_through(fs, me):
    directory = fs.mkdir("d")
    fs.make("d/f", b"abc")
    fs.os.chmod(directory, 0o771)
    assert me(lambda: fs.data(directory + "/f")) == b"abc"


@pytest.mark.parametrize(
    "call",
    [
        lambda os_, d: os_.os_open(d + "/new", os.O_CREAT | os.O_WRONLY),
        lambda os_, d: os_.mkdir(d + "/new"),
        lambda os_, d: os_.mknod(d + "/new"),
        lambda os_, d: os_.symlink("x", d + "/new"),
        lambda os_, d: os_.link(d + "/f", d + "/new"),
        lambda os_, d: os_.unlink(d + "/f"),
        lambda os_, d: os_.rmdir(d + "/e"),
        lambda os_, d: os_.rename(d + "/f", d + "/new"),
    ],
    ids=["create", "mkdir", "mknod", "symlink", "link", "unlink", "rmdir", "rename"],
)
def test_changing_entries_needs_the_w_bit(fs, me, call):
    directory = fs.mkdir("d")
    owned(fs, fs.make("d/f"), ME, ME, 0o666)
    owned(fs, fs.mkdir("d/e"), ME, ME, 0o777)
    fs.os.chmod(directory, 0o775)
    with fails(errno.EACCES):
        me(lambda: call(fs.os, directory))
    assert fs.names(directory) == ["e", "f"]


def test_existing_file_opens_in_an_unwritable_directory(fs, me):
    directory = fs.mkdir("d")
    path = fs.make("d/f", b"abc", 0o666)
    fs.os.chmod(directory, 0o755)

    def open_():
        fd = fs.os.os_open(path, os.O_CREAT | os.O_RDWR)
        return fs.os.read(fd, 3)

    assert me(open_) == b"abc"


def test_rights_on_the_file_do_not_matter_for_unlink(fs, me):
    directory = fs.mkdir("d")
    path = fs.make("d/f", mode=0o000)
    fs.os.chmod(directory, 0o777)

    def unlink():
        fs.os.unlink(path)
        return fs.names(directory)

    assert me(unlink) == []


def test_exclusive_create_of_what_exists_is_eexist_before_eacces(fs, me):
    directory = fs.mkdir("d")
    path = fs.make("d/f")
    fs.os.chmod(directory, 0o755)
    with fails(errno.EEXIST, path):
        me(lambda: fs.os.os_open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    with fails(errno.EEXIST, path):
        me(lambda: fs.os.mkdir(path))


def test_new_objects_belong_to_their_maker(fs, me):
    directory = fs.mkdir("d")
    fs.os.chmod(directory, 0o777)

    def make():
        fs.os.close(fs.os.os_open(directory + "/f", os.O_CREAT | os.O_WRONLY, 0o600))
        fs.os.mkdir(directory + "/d")
        fs.os.symlink("x", directory + "/link")
        fs.os.mkfifo(directory + "/fifo")
        statuses = [fs.os.lstat(f"{directory}/{name}") for name in ("f", "d", "link", "fifo")]
        return {(status.st_uid, status.st_gid) for status in statuses}

    assert me(make) == {(ME, MY_GROUP)}


# ---- what only the owner may -------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        lambda os_, path: os_.chmod(path, 0o600),
        lambda os_, path: os_.chown(path, ME, -1),
        lambda os_, path: os_.chown(path, -1, MY_GROUP),
        lambda os_, path: os_.utime(path, ns=(1, 2)),
    ],
    ids=["chmod", "chown", "chgrp", "utime"],
)
def test_attributes_of_others_are_eperm(fs, me, call):
    path = owned(fs, fs.make("f"), OTHER, OTHER, 0o666)
    before = fs.os.stat(path)
    with fails(errno.EPERM):
        me(lambda: call(fs.os, path))
    assert fs.os.stat(path) == before


def test_owner_sets_attributes_without_any_bits(fs, me):
    path = owned(fs, fs.make("f"), ME, MY_GROUP, 0o000)

    def change():
        fs.os.utime(path, ns=(1, 2))
        fs.os.chmod(path, 0o600)
        return mode(fs.os.stat(path)), fs.os.stat(path).st_mtime_ns

    assert me(change) == (0o600, 2)


def test_owner_may_not_give_a_file_away(fs, me):
    path = owned(fs, fs.make("f"), ME, MY_GROUP, 0o666)
    with fails(errno.EPERM, path):
        me(lambda: fs.os.chown(path, OTHER, -1))
    with fails(errno.EPERM, path):
        me(lambda: fs.os.chown(path, -1, 4242))


def test_owner_may_change_to_a_group_of_its_own(fs, me):
    path = owned(fs, fs.make("f"), ME, MY_GROUP, 0o666)

    def change():
        fs.os.chown(path, ME, 4242)
        return fs.os.stat(path).st_gid

    assert me(change, groups=[4242]) == 4242


def test_writer_may_set_the_times_to_now(fs, me):
    path = owned(fs, fs.make("f"), OTHER, OTHER, 0o666)
    fs.os.utime(path, ns=(1, 2))

    def touch():
        fs.os.utime(path)
        return fs.os.stat(path).st_mtime_ns

    assert me(touch) > 2


def test_times_to_now_without_write_are_eacces(fs, me):
    path = owned(fs, fs.make("f"), OTHER, OTHER, 0o644)
    with fails(errno.EACCES):
        me(lambda: fs.os.utime(path))


def test_truncate_without_write_is_eacces(fs, me):
    path = owned(fs, fs.make("f", b"abc"), OTHER, OTHER, 0o644)
    with fails(errno.EACCES, path):
        me(lambda: fs.os.truncate(path, 0))
    assert fs.data(path) == b"abc"


def test_truncate_past_the_file_size_limit_without_write_is_eacces(fs, me):
    """And no SIGXFSZ, by which most programs end."""
    path = owned(fs, fs.make("f", b"x"), OTHER, OTHER, 0o644)

    def truncate():
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
        fs.refresh()
        try:
            fs.os.truncate(path, 101)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
            fs.refresh()

    with fails(errno.EACCES):
        me(truncate)


def test_extended_attributes_follow_the_mode_bits(fs, xattrs, me):
    path = fs.make("f")
    fs.os.setxattr(path, "user.a", b"1")
    owned(fs, path, OTHER, OTHER, 0o604)
    assert me(lambda: fs.os.getxattr(path, "user.a")) == b"1"
    with fails(errno.EACCES, path):
        me(lambda: fs.os.setxattr(path, "user.a", b"2"))
    with fails(errno.EACCES, path):
        me(lambda: fs.os.removexattr(path, "user.a"))
    fs.os.chmod(path, 0o600)
    with fails(errno.EACCES, path):
        me(lambda: fs.os.getxattr(path, "user.a"))


def test_mode_bits_do_not_hide_attributes_of_the_system(fs, xattrs, me):
    """ls -l looks for an ACL of files that one may not read."""
    path = fs.make("f")
    fs.os.setxattr(path, "security.a", b"1")
    owned(fs, path, OTHER, OTHER, 0o600)
    assert me(lambda: fs.os.getxattr(path, "security.a")) == b"1"
    with pytest.raises(OSError) as error:
        me(lambda: fs.os.getxattr(path, "system.posix_acl_access"))
    assert error.value.errno in (errno.ENODATA, errno.EOPNOTSUPP)


def test_attributes_of_security_are_roots_to_write(fs, xattrs, me):
    path = fs.make("f")
    fs.os.setxattr(path, "security.a", b"1")
    owned(fs, path, ME, MY_GROUP, 0o600)
    for name in "security.a", "security.b":
        with fails(errno.EPERM, path):
            me(lambda name=name: fs.os.setxattr(path, name, b"2"))
    with fails(errno.EPERM, path):
        me(lambda: fs.os.removexattr(path, "security.a"))
    assert fs.os.listxattr(path) == ["security.a"]


def test_capabilities_are_of_a_known_kind(fs, xattrs, me):
    path, name = fs.make("f"), "security.capability"
    second, third = (revision.to_bytes(4, "little") for revision in (2 << 24, 3 << 24))
    for value in b"x", second, second + bytes(15), second + bytes(20), third + bytes(16), bytes(20):
        with fails(errno.EINVAL, path):
            fs.os.setxattr(path, name, value)
        with fails(errno.EINVAL, path):
            me(lambda value=value: fs.os.setxattr(path, name, value, os.XATTR_REPLACE))
    with fails(errno.ENOENT, path + "x"):
        fs.os.setxattr(path + "x", name, b"x")
    assert fs.os.listxattr(path) == []
    for value in second + bytes(16), second[:3] + b"\2" + bytes(range(16)):
        fs.os.setxattr(path, name, value)
        assert fs.os.getxattr(path, name) == value


def protects_links():
    with open("/proc/sys/fs/protected_hardlinks", encoding="ascii") as f:
        return f.read().strip() != "0"


@pytest.mark.skipif(not protects_links(), reason="this machine lets everybody link everything")
def test_a_file_of_others_gets_a_name_only_from_who_may_write_it(fs, me):
    """And no setuid or setgid program, whoever may write it (fs.protected_hardlinks)."""
    fs.os.chmod(fs.mkdir("d"), 0o777)
    fs.os.chmod(fs.make("d/taken"), 0o777)
    path = fs.make("f")
    for bits in 0o600, 0o644, 0o4777, 0o2777:
        owned(fs, path, OTHER, OTHER, bits)
        with fails(errno.EPERM):
            me(lambda: fs.os.link(path, fs.path("d/f")))
        with fails(errno.EEXIST):
            me(lambda: fs.os.link(path, fs.path("d/taken")))
    owned(fs, path, OTHER, OTHER, 0o666)
    me(lambda: fs.os.link(path, fs.path("d/f")))
    owned(fs, path, ME, OTHER, 0o4000)
    me(lambda: fs.os.link(path, fs.path("d/g")))


def test_moving_a_directory_of_others_needs_write_on_it(fs, me):
    """Its ".." changes."""
    for name in ("a", "b"):
        fs.os.chmod(fs.mkdir(name), 0o777)
    owned(fs, fs.mkdir("a/d"), OTHER, OTHER, 0o755)
    with fails(errno.EACCES):
        me(lambda: fs.os.rename(fs.path("a/d"), fs.path("b/d")))


def test_descriptor_opened_before_keeps_its_rights(fs, me):
    path = owned(fs, fs.make("f", b"abc"), ME, MY_GROUP, 0o600)

    def read():
        fd = fs.os.os_open(path, os.O_RDWR)
        fs.os.chmod(path, 0o000)
        fs.os.pwrite(fd, b"X", 0)
        return fs.os.read(fd, 3)

    assert me(read) == b"Xbc"
