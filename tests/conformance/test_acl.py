"""POSIX ACLs (acl(5)): what may be one, what mode bits show of it, whom it lets do what, and what
new files have from their directory's."""

import errno
import os
import struct

import pytest

from .expect import fails, mode

ACCESS, DEFAULT = "system.posix_acl_access", "system.posix_acl_default"
ME, MY_GROUP, OTHERS_GROUP = 1000, 1000, 1001

USER_OBJ, USER, GROUP_OBJ, GROUP, MASK, OTHER = 0x01, 0x02, 0x04, 0x08, 0x10, 0x20
NOBODY = 0xFFFFFFFF  # of the entries that name no one


def acl(*entries):
    """struct posix_acl_xattr: (tag, rights[, id]) of each entry."""
    whole = [(*entry, NOBODY)[:3] for entry in entries]
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in whole)


def acl_for(uid, rights, others, mask=6):
    """One user by name beside owner (rw-), group (---) and others."""
    return acl((USER_OBJ, 6), (USER, rights, uid), (GROUP_OBJ, 0), (MASK, mask), (OTHER, others))


@pytest.fixture
def set_acl(fs):
    """Sets one, where the file system keeps them."""

    def set_(path, value, name=ACCESS):
        try:
            fs.os.setxattr(path, name, value)
        except OSError as error:
            if error.errno != errno.EOPNOTSUPP:
                raise
            pytest.skip("this file system keeps no ACLs")

    return set_


@pytest.fixture
def guarded(fs, set_acl):
    """Makes a root's file with an ACL."""

    def make(rights, others, mask=6):
        path = fs.make("f", b"x")
        set_acl(path, acl_for(ME, rights, others, mask))
        return path

    return make


@pytest.fixture
def inheriting(fs, set_acl):
    """Makes a directory whose files are to have this list."""

    def make(value):
        path = fs.mkdir("d")
        set_acl(path, value, DEFAULT)
        return path

    return make


def read(fs, path):
    fs.os.close(fs.os.os_open(path, os.O_RDONLY))


# ---- what is one ----


def test_acl_shows_in_mode_and_attribute(fs, guarded):
    path = guarded(rights=4, others=0)
    assert fs.os.getxattr(path, ACCESS) == acl_for(ME, 4, 0)
    assert mode(fs.os.stat(path)) == 0o660  # the mask in place of the group


def test_acl_that_says_no_more_than_a_mode_is_one(fs, set_acl):
    path = fs.make("f")
    set_acl(path, acl_for(ME, 4, 0))
    set_acl(path, acl((USER_OBJ, 6), (GROUP_OBJ, 4), (OTHER, 1)))
    assert mode(fs.os.stat(path)) == 0o641
    with fails(errno.ENODATA, path):
        fs.os.getxattr(path, ACCESS)


def test_entries_that_name_nobody_have_no_id(fs, set_acl):
    path = fs.make("f")
    named = (USER, 4, ME)
    set_acl(path, acl((USER_OBJ, 6, 3), named, (GROUP_OBJ, 0, 0), (MASK, 6, 0), (OTHER, 0, 9)))
    assert fs.os.getxattr(path, ACCESS) == acl_for(ME, 4, 0)


def test_chmod_changes_the_mask(fs, guarded):
    path = guarded(rights=6, others=6)
    fs.os.chmod(path, 0o640)
    assert mode(fs.os.stat(path)) == 0o640
    assert fs.os.getxattr(path, ACCESS) == acl_for(ME, 6, 0, mask=4)


def test_removed_acl_is_gone(fs, guarded):
    path = guarded(rights=4, others=0)
    fs.os.removexattr(path, ACCESS)
    with fails(errno.ENODATA, path):
        fs.os.getxattr(path, ACCESS)
    assert mode(fs.os.stat(path)) == 0o660


def test_acl_that_is_not_there_can_be_removed(fs, guarded):
    path = guarded(rights=4, others=0)
    fs.os.removexattr(path, ACCESS)
    fs.os.removexattr(path, ACCESS)
    fs.os.setxattr(path, ACCESS, b"")


def test_acl_without_entries_removes_it(fs, guarded):
    path = guarded(rights=4, others=0)
    fs.os.setxattr(path, ACCESS, acl())
    with fails(errno.ENODATA, path):
        fs.os.getxattr(path, ACCESS)


@pytest.mark.parametrize(
    "value",
    [
        b"\2",
        acl((USER_OBJ, 6), (GROUP_OBJ, 4), (OTHER, 4)) + b"\0",
        acl((USER_OBJ, 6), (GROUP_OBJ, 4)),
        acl((GROUP_OBJ, 4), (USER_OBJ, 6), (OTHER, 4)),
        acl((USER_OBJ, 6), (USER, 6, ME), (GROUP_OBJ, 4), (OTHER, 4)),
        acl((USER_OBJ, 6), (USER, 6), (GROUP_OBJ, 4), (MASK, 6), (OTHER, 4)),
        acl((USER_OBJ, 8), (GROUP_OBJ, 4), (OTHER, 4)),
        acl((0x40, 6), (GROUP_OBJ, 4), (OTHER, 4)),
    ],
    ids=["short", "odd", "no others", "order", "no mask", "no id", "rights", "tag"],
)
def test_what_is_no_acl_is_refused(fs, set_acl, value):
    path = fs.make("f")
    set_acl(path, acl_for(ME, 4, 0))
    with fails(errno.EINVAL, path):
        fs.os.setxattr(path, ACCESS, value)
    assert fs.os.getxattr(path, ACCESS) == acl_for(ME, 4, 0)


def test_acl_of_another_version_is_refused(fs, set_acl):
    path = fs.make("f")
    set_acl(path, acl_for(ME, 4, 0))
    with fails(errno.EOPNOTSUPP, path):
        fs.os.setxattr(path, ACCESS, struct.pack("<I", 3))


def test_only_directories_have_a_default_acl(fs, guarded):
    path = guarded(rights=4, others=0)
    with fails(errno.EACCES, path):
        fs.os.setxattr(path, DEFAULT, acl_for(ME, 4, 0))
    fs.os.removexattr(path, DEFAULT)
    with fails(errno.ENODATA, path):
        fs.os.getxattr(path, DEFAULT)


def test_symlinks_have_none(fs, guarded):
    guarded(rights=4, others=0)
    fs.os.symlink("f", fs.path("l"))
    with fails(errno.EOPNOTSUPP, fs.path("l")):
        fs.os.setxattr(fs.path("l"), ACCESS, acl_for(ME, 4, 0), follow_symlinks=False)


def test_an_acl_is_its_owners_to_write(fs, xattrs, user):
    """Whatever the mode bits let others do."""
    path = fs.make("f")
    fs.os.chmod(path, 0o666)
    with fails(errno.EPERM, path):
        user(ME, ME, lambda: fs.os.setxattr(path, ACCESS, acl_for(ME, 7, 7)))
    with fails(errno.EPERM, path):
        user(ME, ME, lambda: fs.os.removexattr(path, ACCESS))


def test_what_is_no_list_of_such_a_file_is_said_to_anybody(fs, xattrs, user):
    """Who may not set one is told so behind that, and ahead of what is wrong with its entries."""
    path = fs.make("f")
    fs.os.chmod(path, 0o666)

    def as_me(*call):
        user(ME, ME, lambda: fs.os.setxattr(path, *call))

    with fails(errno.EINVAL, path):
        as_me(ACCESS, b"\2")
    with fails(errno.EACCES, path):
        as_me(DEFAULT, acl_for(ME, 7, 7))
    as_me(DEFAULT, acl())
    user(ME, ME, lambda: fs.os.removexattr(path, DEFAULT))
    with fails(errno.EPERM, path):
        as_me(ACCESS, acl((OTHER, 7)))


# ---- whom it lets do what ----


def test_acl_lets_a_user_in(fs, user, guarded):
    path = guarded(rights=4, others=0)
    user(ME, OTHERS_GROUP, lambda: read(fs, path))


def test_acl_keeps_a_user_out(fs, user, guarded):
    path = guarded(rights=0, others=4)
    with fails(errno.EACCES, path):
        user(ME, OTHERS_GROUP, lambda: read(fs, path))


def test_mask_limits_a_user(fs, user, guarded):
    path = guarded(rights=6, others=6, mask=2)
    with fails(errno.EACCES, path):
        user(ME, OTHERS_GROUP, lambda: read(fs, path))


@pytest.mark.parametrize("rights, allowed", [(4, True), (2, False)])
def test_acl_names_a_group(fs, user, set_acl, rights, allowed):
    path = fs.make("f")
    group = (GROUP, rights, OTHERS_GROUP)
    set_acl(path, acl((USER_OBJ, 6), (GROUP_OBJ, 0), group, (MASK, 6), (OTHER, 6)))
    if allowed:
        user(ME, MY_GROUP, lambda: read(fs, path), (OTHERS_GROUP,))
    else:
        with fails(errno.EACCES, path):
            user(ME, MY_GROUP, lambda: read(fs, path), (OTHERS_GROUP,))


def test_access_asks_the_acl(fs, user, guarded):
    path = guarded(rights=4, others=2)
    assert user(ME, OTHERS_GROUP, lambda: fs.os.access(path, os.R_OK))
    assert not user(ME, OTHERS_GROUP, lambda: fs.os.access(path, os.W_OK))


def test_an_acl_that_changes_is_believed_at_once(fs, user, guarded):
    path = guarded(rights=4, others=0)
    user(ME, OTHERS_GROUP, lambda: read(fs, path))
    fs.os.setxattr(path, ACCESS, acl_for(ME, 0, 4))
    with fails(errno.EACCES, path):
        user(ME, OTHERS_GROUP, lambda: read(fs, path))
    fs.os.removexattr(path, ACCESS)
    user(ME, OTHERS_GROUP, lambda: read(fs, path))
    fs.os.setxattr(path, ACCESS, acl_for(ME, 0, 4))
    with fails(errno.EACCES, path):
        user(ME, OTHERS_GROUP, lambda: read(fs, path))


def test_acl_of_a_directory_lets_pass(fs, user, set_acl):
    path = fs.mkdir("d")
    fs.make("d/f", b"x", mode=0o644)
    user(ME, OTHERS_GROUP, lambda: read(fs, f"{path}/f"))
    set_acl(path, acl((USER_OBJ, 7), (USER, 0, ME), (GROUP_OBJ, 5), (MASK, 5), (OTHER, 5)))
    with fails(errno.EACCES, f"{path}/f"):
        user(ME, OTHERS_GROUP, lambda: read(fs, f"{path}/f"))
    user(ME + 1, OTHERS_GROUP, lambda: read(fs, f"{path}/f"))


def test_acl_of_a_directory_lets_make_and_remove(fs, user, set_acl):
    path = fs.mkdir("d")
    set_acl(path, acl((USER_OBJ, 7), (USER, 7, ME), (GROUP_OBJ, 5), (MASK, 7), (OTHER, 5)))

    def make_and_remove():
        fs.os.mkdir(f"{path}/new")
        fs.os.rename(f"{path}/new", f"{path}/newer")
        fs.os.rmdir(f"{path}/newer")

    user(ME, OTHERS_GROUP, make_and_remove)
    with fails(errno.EACCES, f"{path}/new"):
        user(ME + 1, OTHERS_GROUP, lambda: fs.os.mkdir(f"{path}/new"))


def test_acl_lets_truncate_and_touch(fs, user, guarded):
    path = guarded(rights=2, others=0)

    def truncate_and_touch():
        fs.os.truncate(path, 0)
        fs.os.utime(path)

    user(ME, OTHERS_GROUP, truncate_and_touch)
    with fails(errno.EPERM):
        user(ME, OTHERS_GROUP, lambda: fs.os.utime(path, (1, 1)))


# ---- what new files have ----

INHERITED = acl((USER_OBJ, 7), (USER, 6, ME), (GROUP_OBJ, 5), (MASK, 7), (OTHER, 4))


def test_file_inherits_the_default_acl(fs, inheriting):
    path = inheriting(INHERITED)
    fs.os.close(fs.os.os_open(f"{path}/f", os.O_CREAT | os.O_WRONLY, 0o640))
    assert mode(fs.os.stat(f"{path}/f")) == 0o640
    assert fs.os.getxattr(f"{path}/f", ACCESS) == acl(
        (USER_OBJ, 6), (USER, 6, ME), (GROUP_OBJ, 5), (MASK, 4), (OTHER, 0)
    )
    with fails(errno.ENODATA, f"{path}/f"):
        fs.os.getxattr(f"{path}/f", DEFAULT)


def test_directory_hands_the_default_acl_on(fs, inheriting):
    path = inheriting(INHERITED)
    fs.os.mkdir(f"{path}/sub", 0o777)
    assert mode(fs.os.stat(f"{path}/sub")) == 0o774
    assert fs.os.getxattr(f"{path}/sub", DEFAULT) == INHERITED
    assert fs.os.getxattr(f"{path}/sub", ACCESS) == INHERITED


def test_default_acl_stands_in_for_the_umask(fs, inheriting):
    """The umask of the tests takes the write bits of group and others."""
    path = inheriting(acl((USER_OBJ, 7), (GROUP_OBJ, 7), (OTHER, 7)))
    fs.os.close(fs.os.os_open(f"{path}/f", os.O_CREAT | os.O_WRONLY, 0o666))
    assert mode(fs.os.stat(f"{path}/f")) == 0o666
    with fails(errno.ENODATA, f"{path}/f"):
        fs.os.getxattr(f"{path}/f", ACCESS)


def test_symlink_inherits_nothing(fs, inheriting):
    path = inheriting(INHERITED)
    fs.os.symlink("target", f"{path}/l")
    assert fs.os.lstat(f"{path}/l").st_mode & 0o777 == 0o777
