"""POSIX ACLs (acl(5)): kept like any attribute, and consulted where Linux consults them."""

import errno
import os
import struct

import pytest

from .expect import fails

ACL = "system.posix_acl_access"
ME, OTHERS_GROUP = 1000, 1001

USER_OBJ, USER, GROUP_OBJ, MASK, OTHER = 0x01, 0x02, 0x04, 0x10, 0x20
NOBODY = 0xFFFFFFFF  # of the entries that name no one


def acl_for(uid, rights, others):
    """One user by name beside owner (rw-), group (---) and others: struct posix_acl_xattr."""
    entries = [
        (USER_OBJ, 6, NOBODY),
        (USER, rights, uid),
        (GROUP_OBJ, 0, NOBODY),
        (MASK, 6, NOBODY),
        (OTHER, others, NOBODY),
    ]
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


@pytest.fixture
def guarded(fs):
    """Makes a root's file with an ACL."""

    def make(rights, others):
        path = fs.make("f", b"x")
        try:
            fs.os.setxattr(path, ACL, acl_for(ME, rights, others))
        except OSError as error:
            if error.errno != errno.EOPNOTSUPP:
                raise
            pytest.skip("this file system keeps no ACLs")
        return path

    return make


def read(fs, path):
    fs.os.close(fs.os.os_open(path, os.O_RDONLY))


def test_acl_shows_in_mode_and_attribute(fs, guarded):
    path = guarded(rights=4, others=0)
    assert fs.os.getxattr(path, ACL) == acl_for(ME, 4, 0)
    assert fs.os.stat(path).st_mode & 0o777 == 0o660  # the mask in place of the group


def test_acl_lets_a_user_in(fs, user, guarded):
    path = guarded(rights=4, others=0)
    user(ME, OTHERS_GROUP, lambda: read(fs, path))


def test_acl_keeps_a_user_out(fs, user, guarded):
    path = guarded(rights=0, others=4)
    with fails(errno.EACCES, path):
        user(ME, OTHERS_GROUP, lambda: read(fs, path))


def test_an_acl_is_its_owners_to_write(fs, xattrs, user):
    """Whatever the mode bits let others do."""
    path = fs.make("f")
    fs.os.chmod(path, 0o666)
    with fails(errno.EPERM, path):
        user(ME, ME, lambda: fs.os.setxattr(path, ACL, acl_for(ME, 7, 7)))
    with fails(errno.EPERM, path):
        user(ME, ME, lambda: fs.os.removexattr(path, ACL))
