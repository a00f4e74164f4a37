"""chmod(2), chown(2), umask(2), and the bits that the system clears or inherits."""

import errno
import os
import stat

import pytest

from .expect import fails, kind, mode

BITS = [0o000, 0o400, 0o644, 0o777, 0o1777, 0o2755, 0o4755, 0o7777]


@pytest.fixture
def root_only():
    if os.geteuid() != 0:
        pytest.skip("changing owners needs root")


# ---- chmod -------------------------------------------------------------------------------------


@pytest.mark.parametrize("bits", BITS)
def test_chmod_sets_all_bits(fs, bits):
    path = fs.make("f")
    fs.os.chmod(path, bits)
    assert mode(fs.os.stat(path)) == bits
    assert kind(fs.os.stat(path)) == stat.S_IFREG


@pytest.mark.parametrize("bits", BITS)
def test_fchmod_sets_all_bits(fs, bits):
    path = fs.make("f")
    fs.os.fchmod(fs.open(path), bits)
    assert mode(fs.os.stat(path)) == bits


def test_chmod_ignores_the_umask(fs):
    path = fs.make("f")
    fs.os.umask(0o777)
    fs.os.chmod(path, 0o666)
    assert mode(fs.os.stat(path)) == 0o666


def test_chmod_ignores_the_type_bits(fs):
    path = fs.make("f")
    fs.os.chmod(path, stat.S_IFDIR | 0o600)
    assert fs.os.stat(path).st_mode == stat.S_IFREG | 0o600


def test_chmod_of_a_directory(fs):
    path = fs.mkdir("d")
    fs.os.chmod(path, 0o1750)
    assert fs.os.stat(path).st_mode == stat.S_IFDIR | 0o1750


def test_fchmod_of_a_directory(fs):
    path = fs.mkdir("d")
    fs.os.fchmod(fs.open(path), 0o700)
    assert mode(fs.os.stat(path)) == 0o700


def test_chmod_follows_a_symlink(fs):
    path = fs.make("f")
    fs.os.chmod(fs.symlink("f", "link"), 0o600)
    assert mode(fs.os.stat(path)) == 0o600
    assert mode(fs.os.lstat(fs.path("link"))) == 0o777


def test_chmod_by_descriptor_argument(fs):
    path = fs.make("f")
    fs.os.chmod(fs.open(path), 0o600)
    assert mode(fs.os.stat(path)) == 0o600


# ---- chown -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "uid, gid, result", [(1, 2, (1, 2)), (3, -1, (3, 0)), (-1, 4, (0, 4)), (-1, -1, (0, 0))]
)
def test_chown(fs, root_only, uid, gid, result):
    path = fs.make("f")
    fs.os.chown(path, uid, gid)
    status = fs.os.stat(path)
    assert (status.st_uid, status.st_gid) == result


def test_fchown(fs, root_only):
    path = fs.make("f")
    fs.os.fchown(fs.open(path), 1, 2)
    assert (fs.os.stat(path).st_uid, fs.os.stat(path).st_gid) == (1, 2)


def test_chown_follows_a_symlink(fs, root_only):
    path = fs.make("f")
    link = fs.symlink("f", "link")
    fs.os.chown(link, 1, 2)
    assert fs.os.stat(path).st_uid == 1
    assert fs.os.lstat(link).st_uid == 0


@pytest.mark.parametrize("call", ["lchown", "chown"])
def test_chown_of_the_symlink_itself(fs, root_only, call):
    path = fs.make("f")
    link = fs.symlink("f", "link")
    if call == "lchown":
        fs.os.lchown(link, 1, 2)
    else:
        fs.os.chown(link, 1, 2, follow_symlinks=False)
    assert (fs.os.lstat(link).st_uid, fs.os.lstat(link).st_gid) == (1, 2)
    assert fs.os.stat(path).st_uid == 0


def test_chown_with_great_ids(fs, root_only):
    path = fs.make("f")
    fs.os.chown(path, 0xFFFFFFFE, 0x7FFFFFFF)
    assert (fs.os.stat(path).st_uid, fs.os.stat(path).st_gid) == (0xFFFFFFFE, 0x7FFFFFFF)


@pytest.mark.parametrize("bits, left", [(0o4755, 0o755), (0o2755, 0o755), (0o6755, 0o755)])
def test_chown_clears_suid_and_sgid(fs, root_only, bits, left):
    path = fs.make("f")
    fs.os.chmod(path, bits)
    fs.os.chown(path, 1, 1)
    assert mode(fs.os.stat(path)) == left


def test_chown_of_neither_id_clears_suid_and_sgid(fs, root_only):
    path = fs.make("f")
    for change in fs.os.chown, lambda path, *ids: fs.os.fchown(fs.open(path), *ids):
        fs.os.chmod(path, 0o6755)
        change(path, -1, -1)
        assert mode(fs.os.stat(path)) == 0o755


def test_chown_keeps_sgid_that_means_locking(fs, root_only):
    """Without the group's x bit it never gave a group's rights (chown(2))."""
    path = fs.make("f")
    fs.os.chmod(path, 0o2644)
    fs.os.chown(path, 1, 1)
    assert mode(fs.os.stat(path)) == 0o2644


def test_chown_of_a_directory_keeps_its_bits(fs, root_only):
    path = fs.mkdir("d")
    fs.os.chmod(path, 0o6755)
    fs.os.chown(path, 1, 1)
    assert mode(fs.os.stat(path)) == 0o6755


# ---- suid and sgid end with a write by others --------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        lambda os_, path, fd: os_.write(fd, b"x"),
        lambda os_, path, fd: os_.pwrite(fd, b"x", 0),
        lambda os_, path, fd: os_.truncate(path, 1),
        lambda os_, path, fd: os_.ftruncate(fd, 1),
        lambda os_, path, fd: os_.fallocate(fd, 0, 0, 10),
    ],
    ids=["write", "pwrite", "truncate", "ftruncate", "fallocate"],
)
def test_writing_clears_suid_and_sgid(fs, user, call):
    path = fs.make("f", b"abc", 0o666)
    fs.os.chmod(path, 0o6777)

    def write():
        fd = fs.os.os_open(path, os.O_RDWR)
        call(fs.os, path, fd)
        return mode(fs.os.stat(path))

    assert user(1000, 1000, write) == 0o777


def test_truncating_open_clears_suid_and_sgid(fs, user):
    path = fs.make("f", b"abc")
    fs.os.chmod(path, 0o6777)

    def open_():
        fs.os.os_open(path, os.O_WRONLY | os.O_TRUNC)
        return mode(fs.os.stat(path))

    assert user(1000, 1000, open_) == 0o777


@pytest.mark.parametrize("offset, left", [(0, 0o777), (3, 0o6777)], ids=["bytes", "nothing"])
def test_a_copy_clears_suid_and_sgid_if_it_copies_anything(fs, user, offset, left):
    source, target = fs.make("source", b"abc", 0o666), fs.make("target", b"x", 0o666)
    fs.os.chmod(target, 0o6777)

    def copy():
        ends = fs.os.os_open(source, os.O_RDONLY), fs.os.os_open(target, os.O_WRONLY)
        fs.os.copy_file_range(*ends, 1 << 20, offset_src=offset)
        return mode(fs.os.stat(target))

    assert user(1000, 1000, copy) == left


def test_privileged_write_keeps_suid(fs, root_only):
    path = fs.make("f", b"abc")
    fs.os.chmod(path, 0o6755)
    fs.os.write(fs.open(path, os.O_WRONLY), b"x")
    assert mode(fs.os.stat(path)) == 0o6755


def test_writing_keeps_ordinary_bits(fs, user):
    path = fs.make("f", b"abc", 0o1666)

    def write():
        fs.os.write(fs.os.os_open(path, os.O_WRONLY), b"x")
        return mode(fs.os.stat(path))

    assert user(1000, 1000, write) == 0o1666


# ---- umask -------------------------------------------------------------------------------------


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077, 0o777])
@pytest.mark.parametrize("way", ["open", "mkdir", "mknod", "mkfifo"])
def test_umask_takes_bits_from_new_objects(fs, way, umask):
    path = fs.path("new")
    make = {
        "open": lambda: fs.open(path, os.O_CREAT | os.O_WRONLY, 0o777),
        "mkdir": lambda: fs.os.mkdir(path, 0o777),
        "mknod": lambda: fs.os.mknod(path, stat.S_IFREG | 0o777),
        "mkfifo": lambda: fs.os.mkfifo(path, 0o777),
    }
    fs.os.umask(umask)
    make[way]()
    assert mode(fs.os.stat(path)) == 0o777 & ~umask


def test_umask_returns_the_one_before(fs):
    fs.os.umask(0o027)
    assert fs.os.umask(0o022) == 0o027


def test_umask_does_not_touch_symlinks(fs):
    fs.os.umask(0o077)
    assert mode(fs.os.lstat(fs.symlink("f", "link"))) == 0o777


def test_mkdir_takes_the_mode(fs):
    fs.os.umask(0)
    fs.os.mkdir(fs.path("d"), 0o1751)
    assert mode(fs.os.stat(fs.path("d"))) == 0o1751


# ---- setgid directories ------------------------------------------------------------------------


@pytest.fixture
def shared(fs, root_only):
    """A setgid directory of group 4242."""
    path = fs.mkdir("shared")
    fs.os.chown(path, 0, 4242)
    fs.os.chmod(path, 0o2777)
    return path


@pytest.mark.parametrize("way", ["open", "mknod", "symlink", "mkdir"])
def test_entries_of_a_setgid_directory_take_its_group(fs, shared, way):
    path = shared + "/new"
    make = {
        "open": lambda: fs.open(path, os.O_CREAT | os.O_WRONLY),
        "mknod": lambda: fs.os.mknod(path),
        "symlink": lambda: fs.os.symlink("x", path),
        "mkdir": lambda: fs.os.mkdir(path),
    }
    make[way]()
    assert fs.os.lstat(path).st_gid == 4242


def test_directories_in_a_setgid_directory_are_setgid(fs, shared):
    fs.os.mkdir(shared + "/d", 0o755)
    fs.open(shared + "/f", os.O_CREAT | os.O_WRONLY, 0o755)
    assert mode(fs.os.stat(shared + "/d")) == 0o2755
    assert mode(fs.os.stat(shared + "/f")) == 0o755


def test_owner_outside_the_group_loses_setgid_by_chmod(fs, user):
    path = fs.make("f")
    fs.os.chown(path, 1000, 4242)

    def chmod():
        fs.os.chmod(path, 0o2755)
        return mode(fs.os.stat(path))

    assert user(1000, 1000, chmod) == 0o755
    assert user(1000, 1000, chmod, groups=[4242]) == 0o2755


def test_new_file_of_an_outsider_in_a_setgid_directory_is_not_setgid(fs, user, shared):
    def create():
        fd = fs.os.os_open(shared + "/f", os.O_CREAT | os.O_WRONLY, 0o2775)
        return mode(fs.os.fstat(fd)), fs.os.fstat(fd).st_gid

    assert user(1000, 1000, create) == (0o755, 4242)


def test_nameless_file_of_an_outsider_in_a_setgid_directory_is_not_setgid(fs, user, shared):
    def create():
        try:
            fd = fs.os.os_open(shared, os.O_TMPFILE | os.O_WRONLY, 0o2775)
        except OSError as error:
            return error.errno
        return mode(fs.os.fstat(fd)), fs.os.fstat(fd).st_gid

    made = user(1000, 1000, create)
    if made == errno.EOPNOTSUPP:
        pytest.skip("the file system has no O_TMPFILE")
    assert made == (0o755, 4242)
    assert user(1000, 1000, create, groups=[4242]) == (0o2775 & ~0o022, 4242)


# ---- sticky directories ------------------------------------------------------------------------


@pytest.fixture
def sticky(fs, root_only):
    """A sticky directory of root with "mine", a file of user 1000, and "yours", of user 1001."""
    path = fs.mkdir("sticky")
    fs.os.chmod(path, 0o1777)
    for name, uid in (("mine", 1000), ("yours", 1001)):
        fs.os.chown(fs.make(f"sticky/{name}"), uid, uid)
    return path


def test_sticky_directory_lets_owners_remove(fs, user, sticky):
    def remove():
        fs.os.rename(sticky + "/mine", sticky + "/renamed")
        fs.os.unlink(sticky + "/renamed")
        return fs.names(sticky)

    assert user(1000, 1000, remove) == ["yours"]


@pytest.mark.parametrize(
    "call",
    [
        lambda os_, path: os_.unlink(path + "/yours"),
        lambda os_, path: os_.rename(path + "/yours", path + "/new"),
        lambda os_, path: os_.rename(path + "/mine", path + "/yours"),
        lambda os_, path: os_.renameat2(path + "/mine", path + "/yours", 2),
    ],
    ids=["unlink", "rename", "rename-over", "exchange"],
)
def test_sticky_directory_protects_the_others(fs, user, sticky, call):
    with fails(errno.EPERM):
        user(1000, 1000, lambda: call(fs.os, sticky))
    assert fs.names(sticky) == ["mine", "yours"]


def test_sticky_directory_protects_directories(fs, user, sticky):
    fs.mkdir("sticky/d")
    with fails(errno.EPERM):
        user(1000, 1000, lambda: fs.os.rmdir(sticky + "/d"))


def test_owner_of_a_sticky_directory_may_remove_anything(fs, user, sticky):
    fs.os.chown(sticky, 1000, 1000)

    def remove():
        fs.os.unlink(sticky + "/yours")
        return fs.names(sticky)

    assert user(1000, 1000, remove) == ["mine"]
