"""Timestamps: which call changes which of them, and utimensat(2)."""

import os
import time

import pytest

SLACK = 1_000_000_000  # ns; clocks that stamp files are coarse


class Watch:
    """Remembers the times of a path; `changed()` names those that have moved since."""

    NAMES = ("atime", "mtime", "ctime")

    def __init__(self, fs, path, follow_symlinks=True):
        self._stat = lambda: fs.os.stat(path, follow_symlinks=follow_symlinks)
        self._before = self._times()
        fs.tick()

    def _times(self):
        status = self._stat()
        return status.st_atime_ns, status.st_mtime_ns, status.st_ctime_ns

    def changed(self):
        after = self._times()
        moved = set()
        for name, old, new in zip(self.NAMES, self._before, after, strict=True):
            assert new >= old, f"{name} went back"
            if new != old:
                moved.add(name)
        return moved


@pytest.fixture
def old(fs):
    """A file whose atime and mtime are long ago."""
    path = fs.make("f", b"abcdef")
    fs.os.utime(path, ns=(10**9, 2 * 10**9))
    return path


# ---- what changes the file's own times ---------------------------------------------------------


CHANGES = {
    "write": (lambda os_, path, fd: os_.write(fd, b"x"), {"mtime", "ctime"}),
    "pwrite": (lambda os_, path, fd: os_.pwrite(fd, b"x", 3), {"mtime", "ctime"}),
    "writev": (lambda os_, path, fd: os_.writev(fd, [b"x", b"y"]), {"mtime", "ctime"}),
    "extend": (lambda os_, path, fd: os_.pwrite(fd, b"x", 9999), {"mtime", "ctime"}),
    "truncate-down": (lambda os_, path, fd: os_.truncate(path, 1), {"mtime", "ctime"}),
    "truncate-up": (lambda os_, path, fd: os_.truncate(path, 99), {"mtime", "ctime"}),
    "ftruncate": (lambda os_, path, fd: os_.ftruncate(fd, 1), {"mtime", "ctime"}),
    "open-trunc": (
        lambda os_, path, fd: os_.close(os_.os_open(path, os.O_WRONLY | os.O_TRUNC)),
        {"mtime", "ctime"},
    ),
    "chmod": (lambda os_, path, fd: os_.chmod(path, 0o600), {"ctime"}),
    "fchmod": (lambda os_, path, fd: os_.fchmod(fd, 0o600), {"ctime"}),
    "chown": (lambda os_, path, fd: os_.chown(path, -1, os.getegid()), {"ctime"}),
    "link": (lambda os_, path, fd: os_.link(path, path + "2"), {"ctime"}),
    "rename": (lambda os_, path, fd: os_.renameat2(path, path, 0), set()),
    "stat": (lambda os_, path, fd: os_.stat(path), set()),
    "open": (lambda os_, path, fd: os_.close(os_.os_open(path, os.O_RDWR)), set()),
    "write-nothing": (lambda os_, path, fd: os_.write(fd, b""), set()),
    "lseek": (lambda os_, path, fd: os_.lseek(fd, 1, os.SEEK_SET), set()),
    "access": (lambda os_, path, fd: os_.access(path, os.R_OK), set()),
}


@pytest.mark.parametrize("call, expected", CHANGES.values(), ids=CHANGES)
def test_times_of_the_file(fs, old, call, expected):
    fd = fs.open(old, os.O_RDWR)
    watch = Watch(fs, old)
    call(fs.os, old, fd)
    assert watch.changed() == expected


def test_read_updates_an_old_atime(fs, old):
    """Also under relatime (mount(8)): atime is before mtime."""
    watch = Watch(fs, old)
    assert fs.os.read(fs.open(old), 3) == b"abc"
    assert watch.changed() == {"atime"}


def test_read_of_a_file_opened_with_noatime_leaves_an_old_atime(fs, old):
    watch = Watch(fs, old)
    assert fs.os.read(fs.open(old, os.O_RDONLY | os.O_NOATIME), 3) == b"abc"
    assert watch.changed() == set()


def test_renamed_file_gets_a_new_ctime(fs, old):
    before = fs.os.stat(old)
    fs.tick()
    fs.os.rename(old, fs.path("g"))
    after = fs.os.stat(fs.path("g"))
    assert after.st_mtime_ns == before.st_mtime_ns
    assert after.st_ctime_ns > before.st_ctime_ns


def test_unlink_stamps_the_other_names(fs, old):
    fs.os.link(old, fs.path("g"))
    watch = Watch(fs, fs.path("g"))
    fs.os.unlink(old)
    assert watch.changed() == {"ctime"}


def test_xattr_stamps_ctime(fs, xattrs, old):
    watch = Watch(fs, old)
    fs.os.setxattr(old, "user.a", b"1")
    assert watch.changed() == {"ctime"}
    watch = Watch(fs, old)
    fs.os.removexattr(old, "user.a")
    assert watch.changed() == {"ctime"}


def test_fallocate_that_extends_stamps(fs, old):
    fd = fs.open(old, os.O_RDWR)
    watch = Watch(fs, old)
    fs.os.fallocate(fd, 0, 0, 10_000)
    assert watch.changed() >= {"ctime"}


def test_write_is_seen_by_stat_at_once(fs, old):
    fd = fs.open(old, os.O_RDWR)
    for _ in range(3):
        watch = Watch(fs, old)
        fs.os.write(fd, b"x")
        assert watch.changed() == {"mtime", "ctime"}
        assert fs.os.fstat(fd) == fs.os.stat(old)


# ---- what changes the directory's times --------------------------------------------------------


@pytest.fixture
def populated(fs):
    """dir/{f,d,g} and other/ ; the path of dir."""
    path = fs.mkdir("dir")
    fs.make("dir/f", b"abc")
    fs.make("dir/g")
    fs.mkdir("dir/d")
    fs.mkdir("other")
    return path


ENTRIES = {
    "create": lambda os_, d: os_.close(os_.os_open(d + "/new", os.O_CREAT | os.O_WRONLY)),
    "mkdir": lambda os_, d: os_.mkdir(d + "/new"),
    "mknod": lambda os_, d: os_.mknod(d + "/new"),
    "symlink": lambda os_, d: os_.symlink("x", d + "/new"),
    "link": lambda os_, d: os_.link(d + "/f", d + "/new"),
    "unlink": lambda os_, d: os_.unlink(d + "/f"),
    "rmdir": lambda os_, d: os_.rmdir(d + "/d"),
    "rename-inside": lambda os_, d: os_.rename(d + "/f", d + "/new"),
    "rename-over": lambda os_, d: os_.rename(d + "/f", d + "/g"),
    "rename-out": lambda os_, d: os_.rename(d + "/f", d + "/../other/f"),
    "rename-back": lambda os_, d: (
        os_.rename(d + "/f", d + "/../other/f") or os_.rename(d + "/../other/f", d + "/f")
    ),
}


@pytest.mark.parametrize("call", ENTRIES.values(), ids=ENTRIES)
def test_change_of_entries_stamps_the_directory(fs, populated, call):
    watch = Watch(fs, populated)
    call(fs.os, populated)
    assert watch.changed() == {"mtime", "ctime"}


def test_rename_stamps_the_new_parent(fs, populated):
    watch = Watch(fs, fs.path("other"))
    fs.os.rename(populated + "/f", fs.path("other/f"))
    assert watch.changed() == {"mtime", "ctime"}


@pytest.mark.parametrize(
    "call",
    [
        lambda os_, d: os_.close(os_.os_open(d + "/f", os.O_CREAT | os.O_RDWR)),
        lambda os_, d: os_.truncate(d + "/f", 1),
        lambda os_, d: os_.chmod(d + "/f", 0o600),
        lambda os_, d: os_.stat(d + "/f"),
    ],
    ids=["open", "truncate", "chmod", "stat"],
)
def test_change_of_a_file_does_not_stamp_its_directory(fs, populated, call):
    watch = Watch(fs, populated)
    call(fs.os, populated)
    assert watch.changed() == set()


@pytest.mark.parametrize(
    "call",
    [
        lambda os_, d: os_.mkdir(d + "/f"),
        lambda os_, d: os_.unlink(d + "/missing"),
        lambda os_, d: os_.rmdir(d + "/f"),
        lambda os_, d: os_.rename(d + "/missing", d + "/new"),
    ],
    ids=["mkdir", "unlink", "rmdir", "rename"],
)
def test_failed_call_stamps_nothing(fs, populated, call):
    watch = Watch(fs, populated)
    with pytest.raises(OSError):
        call(fs.os, populated)
    assert watch.changed() == set()


# ---- new objects -------------------------------------------------------------------------------


def test_new_objects_are_of_now(fs):
    fs.tick()
    earliest = time.time_ns() - SLACK
    paths = [fs.make("f"), fs.mkdir("d"), fs.symlink("x", "link")]
    latest = time.time_ns() + SLACK
    for path in paths:
        status = fs.os.lstat(path)
        for stamp in (status.st_atime_ns, status.st_mtime_ns, status.st_ctime_ns):
            assert earliest <= stamp <= latest


def test_times_never_go_back(fs):
    path = fs.path("f")
    fd = fs.open(path, os.O_CREAT | os.O_WRONLY)
    last = 0
    for _ in range(50):
        fs.os.write(fd, b"x")
        stamp = fs.os.stat(path).st_mtime_ns
        assert stamp >= last
        last = stamp


# ---- utimensat ---------------------------------------------------------------------------------


STAMPS = [
    (0, 0),
    (1, 999_999_999),
    (1_234_567_890_123_456_789, 987_654_321_098_765_432),
    (-1, -1_500_000_000),
    ((1 << 33) * 10**9 + 7, (1 << 32) * 10**9),
]


@pytest.mark.parametrize("stamps", STAMPS)
@pytest.mark.parametrize("by", ["path", "descriptor"])
def test_utime_keeps_every_nanosecond(fs, stamps, by):
    path = fs.make("f")
    fs.os.utime(path if by == "path" else fs.open(path), ns=stamps)
    status = fs.os.stat(path)
    assert (status.st_atime_ns, status.st_mtime_ns) == stamps


def test_utime_in_seconds(fs):
    path = fs.make("f")
    fs.os.utime(path, (1.5, 2.25))
    status = fs.os.stat(path)
    assert (status.st_atime, status.st_mtime) == (1.5, 2.25)
    fs.os.utime(path, times=(3, 4))
    assert fs.os.stat(path).st_mtime == 4


def test_utime_of_now(fs, old):
    earliest = time.time_ns() - SLACK
    fs.os.utime(old)
    status = fs.os.stat(old)
    assert status.st_atime_ns == pytest.approx(status.st_mtime_ns, abs=SLACK)
    assert earliest <= status.st_mtime_ns <= time.time_ns() + SLACK


def test_utime_stamps_ctime_with_now(fs, old):
    watch = Watch(fs, old)
    fs.os.utime(old, ns=(10**9, 2 * 10**9))
    assert watch.changed() == {"ctime"}


def test_utime_of_a_directory(fs):
    path = fs.mkdir("d")
    fs.os.utime(path, ns=(1, 2))
    assert (fs.os.stat(path).st_atime_ns, fs.os.stat(path).st_mtime_ns) == (1, 2)


def test_utime_follows_a_symlink_or_not(fs):
    path = fs.make("f")
    link = fs.symlink("f", "link")
    fs.os.utime(link, ns=(1, 2))
    assert fs.os.stat(path).st_mtime_ns == 2
    fs.os.utime(link, ns=(3, 4), follow_symlinks=False)
    assert fs.os.lstat(link).st_mtime_ns == 4
    assert fs.os.stat(path).st_mtime_ns == 2


def test_utime_with_both_forms_is_a_valueerror(fs):
    path = fs.make("f")
    with pytest.raises(ValueError):
        fs.os.utime(path, (1, 2), ns=(1, 2))


def test_utime_survives_an_open_writer(fs):
    """As tar and cp -p rely on: write, set the times, close."""
    path = fs.path("f")
    fd = fs.os.os_open(path, os.O_CREAT | os.O_WRONLY)
    fs.os.write(fd, b"abc")
    fs.os.utime(fd, ns=(1, 2))
    fs.os.close(fd)
    assert fs.os.stat(path).st_mtime_ns == 2
