"""What an open brings with it: the answer to the fstat, and the bytes of the read, that mostly come
next. Which calls are trips is counted; what the plugin is asked, too.
"""

import os
import time

import pytest

import directfuse

from .built import built
from .forks import in_fork

LEARNT = 8  #: opens after which it is known whether reads follow


def put(path, data):
    fd = directfuse.os_open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    assert directfuse.write(fd, data) == len(data)
    directfuse.close(fd)


def make(mount, count, size=20_000):
    paths = [f"{mount.mountpoint}/file-{n}" for n in range(count)]
    for n, path in enumerate(paths):
        put(path, data_of(n, size))
    return paths


def data_of(n, size):
    return (b"%08d " % n * (size // 9 + 1))[:size]


def read_whole(path, size=64 << 10):
    fd = directfuse.os_open(path, os.O_RDONLY)
    data = directfuse.read(fd, size)
    assert directfuse.read(fd, size) == b""
    directfuse.close(fd)
    return data


class Sized:
    """A mount of a program that has files of any size, and counts its READs."""

    def __init__(self, mount, log):
        self.mount = mount
        self._log = log

    def paths(self, numbers, size=20_000):
        return [f"{self.mount.mountpoint}/{size}.{n}" for n in numbers]

    def said(self):
        return self._log.read_text().split()

    def reads(self, do):
        """READs that the program is asked for meanwhile."""
        before = len(self._log.read_text().splitlines())
        do()
        return len(self._log.read_text().splitlines()) - before

    def only_opened(self, numbers, flags=os.O_RDONLY, size=20_000):
        """The same of opening and closing files."""

        def do():
            for path in self.paths(numbers, size):
                directfuse.close(directfuse.os_open(path, flags))

        return self.reads(do)


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return built("sized", tmp_path_factory)


@pytest.fixture
def sized(request, program, tmp_path):
    """With the options of the parameter; else answers are believed for long."""
    log = tmp_path / "log"
    options = [f"log={log}", *getattr(request, "param", ["attr_timeout=100,entry_timeout=100"])]
    words = [program, str(tmp_path / "mnt"), "-o", ",".join(options)]
    with directfuse.mount(words, placement="server") as mount:
        time.sleep(0.02)  # after 10 ms a server can tell times
        yield Sized(mount, log)


def trips_of(mount, do):
    before = mount.stats().trips
    do()
    return mount.stats().trips - before


# ---- attributes ---------------------------------------------------------------------------------


@pytest.mark.parametrize("flags", [os.O_RDONLY, os.O_WRONLY, os.O_RDWR | os.O_CREAT | os.O_EXCL])
def test_fstat_after_an_open_is_no_trip(memfs, flags):
    path = f"{memfs.mountpoint}/f"
    if not flags & os.O_CREAT:
        put(path, b"x" * 10)
    fd = directfuse.os_open(path, flags)
    size = 0 if flags & os.O_CREAT else 10
    assert trips_of(memfs, lambda: directfuse.fstat(fd)) == 0
    assert directfuse.fstat(fd).st_size == size
    assert directfuse.fstat(fd) == directfuse.stat(path)
    directfuse.close(fd)


def test_fstat_of_an_opened_directory_is_no_trip(memfs):
    fd = directfuse.os_open(memfs.mountpoint, os.O_RDONLY | os.O_DIRECTORY)
    assert trips_of(memfs, lambda: directfuse.fstat(fd)) == 0
    directfuse.close(fd)


NOTHING_KEPT = [["attr_timeout=0,entry_timeout=0"], ["attr_timeout=100,direct"]]


@pytest.mark.parametrize("sized", NOTHING_KEPT, indirect=True, ids=["no time", "direct"])
def test_what_may_not_be_kept_is_not_brought(sized):
    for path in sized.paths(range(LEARNT)):
        read_whole(path)
    assert sized.only_opened(range(LEARNT, 2 * LEARNT)) == 0
    fd = directfuse.os_open(sized.paths([0])[0], os.O_RDONLY)
    assert trips_of(sized.mount, lambda: directfuse.read(fd, 100)) == 1
    directfuse.close(fd)


# ---- bytes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 4095, 4096, 20_000, 32 << 10])
def test_small_files_that_are_read_one_after_the_other_are_two_trips(memfs, size):
    paths = make(memfs, LEARNT + 20, size)
    for n, path in enumerate(paths):
        trips = trips_of(memfs, lambda path=path: read_whole(path))
        assert n < LEARNT or trips == 2  # open and close
        assert read_whole(path) == data_of(n, size)


def test_the_file_system_is_asked_for_bytes_once(sized):
    for path in sized.paths(range(LEARNT)):
        read_whole(path)
    for path in sized.paths(range(LEARNT, 3 * LEARNT)):
        assert sized.reads(lambda path=path: read_whole(path)) == 1


@pytest.mark.parametrize(
    "sized", [["attr_timeout=100,entry_timeout=100,asks"]], indirect=True, ids=["asks"]
)
def test_an_open_that_brings_bytes_asks_for_attributes_once(sized):
    """As a kernel mount; and again behind the read, which has changed the access time."""
    for path in sized.paths(range(LEARNT)):
        read_whole(path)
    for n, path in enumerate(sized.paths(range(LEARNT, 2 * LEARNT))):
        before = sized.said()
        fd = directfuse.os_open(path, os.O_RDONLY)
        assert sized.said()[len(before) :] == ["getattr", "read"]
        trips = sized.mount.stats().trips
        assert directfuse.fstat(fd).st_atime == LEARNT + n
        assert directfuse.read(fd, 100) == b"x" * 100
        assert sized.mount.stats().trips == trips
        assert directfuse.fstat(fd).st_atime == directfuse.stat(path).st_atime == LEARNT + n + 1
        assert sized.said()[len(before) :] == ["getattr", "read", "getattr"]
        directfuse.close(fd)


@pytest.mark.parametrize(
    "sized", [["ro,attr_timeout=100,entry_timeout=100,asks"]], indirect=True, ids=["ro"]
)
def test_what_is_read_of_a_read_only_mount_keeps_its_attributes(sized):
    """As behind the kernel, which has no time of access changed there."""
    paths = sized.paths(range(2 * LEARNT))
    for path in paths:
        directfuse.stat(path)
        read_whole(path)
    before = sized.said()
    assert trips_of(sized.mount, lambda: [directfuse.stat(path) for path in paths]) == 0
    assert sized.said() == before


def test_a_batch_finds_what_the_open_has_brought(memfs):
    paths = make(memfs, LEARNT + 2)
    for path in paths[:LEARNT]:
        read_whole(path)
    fds = [directfuse.os_open(path, os.O_RDONLY) for path in paths[LEARNT:]]
    into = [bytearray(100) for _ in fds]
    pieces = [(fd, 0, 100) for fd in fds]
    assert trips_of(memfs, lambda: directfuse.read_many(pieces, into=into)) == 0
    assert [bytes(b) for b in into] == [data_of(LEARNT + n, 100) for n in range(2)]
    for fd in fds:
        directfuse.close(fd)


def test_a_batch_of_reads_leaves_what_is_known_of_other_files(memfs):
    path, other = make(memfs, 2, size=100_000)  # so much is not brought
    fd = directfuse.os_open(path, os.O_RDONLY)
    directfuse.stat(other)
    assert trips_of(memfs, lambda: directfuse.read_many([(fd, 0, 9), (fd, 50_000, 9)])) > 0
    assert trips_of(memfs, lambda: directfuse.stat(other)) == 0
    directfuse.close(fd)


def test_a_batch_of_reads_changes_the_access_time_of_what_it_reads(sized):
    (path,) = sized.paths([0], size=100_000)
    fd = directfuse.os_open(path, os.O_RDONLY)
    before = directfuse.fstat(fd).st_atime
    directfuse.read_many([(fd, 0, 9), (fd, 50_000, 9)])
    assert directfuse.fstat(fd).st_atime == before + 2
    directfuse.close(fd)


def test_opens_without_reads_bring_nothing_after_a_while(sized):
    for path in sized.paths(range(LEARNT)):
        read_whole(path)
    assert 0 < sized.only_opened(range(LEARNT, 2 * LEARNT)) < LEARNT
    assert sized.only_opened(range(2 * LEARNT, 3 * LEARNT)) == 0
    for path in sized.paths(range(LEARNT)):  # now they are read again
        read_whole(path)
    assert sized.only_opened(range(3 * LEARNT, 4 * LEARNT)) > 0


def test_reads_with_large_buffers_are_reads_as_well(sized):
    for path in sized.paths(range(LEARNT)):
        read_whole(path, 1 << 17)
    assert sized.only_opened(range(LEARNT, 2 * LEARNT)) > 0


@pytest.mark.parametrize(
    "sized", [["attr_timeout=100,entry_timeout=100,kernel_cache"]], indirect=True, ids=["kept"]
)
def test_what_is_read_again_is_kept_however_quickly_it_was_had(sized):
    paths = sized.paths(range(100))  # more than is kept of what is read once

    def read_them():
        for path in paths:
            assert read_whole(path) == b"x" * 20_000

    sized.reads(read_them)
    sized.reads(read_them)
    assert sized.reads(read_them) < 5  # two files may be taken for one another


def test_large_files_and_files_for_writing_bring_no_bytes(sized):
    for path in sized.paths(range(LEARNT)):
        read_whole(path)
    assert sized.only_opened([1], size=(32 << 10) + 1) == 0
    assert sized.only_opened([1], size=0) == 0
    assert sized.only_opened([LEARNT + 1], os.O_WRONLY) == 0
    assert sized.only_opened([LEARNT + 1], os.O_PATH) == 0
    assert sized.only_opened([LEARNT + 1], os.O_RDWR) == 1


# ---- never old ----------------------------------------------------------------------------------


def _write(path):
    fd = directfuse.os_open(path, os.O_WRONLY)
    directfuse.pwrite(fd, b"changed", 50)
    directfuse.close(fd)


def _append(path):
    fd = directfuse.os_open(path, os.O_WRONLY | os.O_APPEND)
    directfuse.write(fd, b"more")
    directfuse.close(fd)


def _truncate(path):
    directfuse.truncate(path, 30)


def _replace(path):
    put(f"{path}.new", b"another")
    directfuse.rename(f"{path}.new", path)


def _copy_into(path):
    put(f"{path}.source", b"s" * 300)
    source = directfuse.os_open(f"{path}.source", os.O_RDONLY)
    fd = directfuse.os_open(path, os.O_WRONLY)
    assert directfuse.copy_file_range(source, fd, 300, 0, 10) == 300
    directfuse.close(fd)
    directfuse.close(source)


_CHANGES = [_write, _append, _truncate, _replace, _copy_into]


@pytest.mark.parametrize("change", _CHANGES, ids=lambda change: change.__name__[1:])
def test_what_changes_between_the_open_and_the_read_is_read(place, tmp_path, change):
    """By another process; as in a plain directory, whose oracle runs the same."""

    def run(root):
        for n in range(LEARNT):
            put(f"{root}/f{n}", data_of(n, 5000))
            assert read_whole(f"{root}/f{n}") == data_of(n, 5000)
        fd = directfuse.os_open(f"{root}/f0", os.O_RDONLY)
        assert in_fork(lambda: change(f"{root}/f0")) == 0
        found = [directfuse.fstat(fd).st_size, directfuse.read(fd, 10_000)]
        found += [directfuse.stat(f"{root}/f0").st_size, read_whole(f"{root}/f0")]
        directfuse.close(fd)
        return found

    (tmp_path / "oracle").mkdir()
    assert run(place) == run(str(tmp_path / "oracle"))


LARGE = 96 << 10  #: bytes of a read that is not kept the first time; grep's


@pytest.mark.parametrize("size", [100, 3 * 4096, 20_000])
def test_who_has_read_to_the_end_learns_so_without_a_trip(memfs, size):
    (path,) = make(memfs, 1, size)
    fd = directfuse.os_open(path, os.O_RDONLY)
    assert directfuse.read(fd, LARGE) == data_of(0, size)
    at_the_end = []
    assert trips_of(memfs, lambda: at_the_end.append(directfuse.read(fd, LARGE))) == 0
    assert at_the_end == [b""]
    assert in_fork(lambda: _append(path)) == 0
    assert directfuse.read(fd, LARGE) == b"more"
    directfuse.close(fd)


def test_a_copy_ends_what_is_known_of_its_two_files_and_no_more(memfs):
    paths = make(memfs, 3)
    source = directfuse.os_open(paths[0], os.O_RDONLY)
    target = directfuse.os_open(paths[1], os.O_WRONLY)
    for path in paths:
        directfuse.stat(path)
    assert directfuse.copy_file_range(source, target, 100, 0, 30_000) == 100
    assert trips_of(memfs, lambda: directfuse.stat(paths[2])) == 0
    assert directfuse.stat(paths[1]).st_size == directfuse.fstat(target).st_size == 30_100
    assert directfuse.copy_file_range(source, target, 1 << 20, 0, 0) == 20_000
    # The end of the source needs no trip: this is how cp(1) learns of it.
    end = lambda: directfuse.copy_file_range(source, target, 1 << 20, 20_000)  # noqa: E731
    assert trips_of(memfs, end) == 0
    directfuse.close(source)
    directfuse.close(target)


def test_a_source_whose_file_system_shortens_copies_is_not_asked_for_its_size(tmp_path):
    """passthrough states it (docs/decisions/014)."""
    (tmp_path / "source").write_bytes(b"abc")
    with directfuse.mount(f"passthrough {tmp_path} /copies", placement="server") as mount:
        source = directfuse.os_open("/copies/source", os.O_RDONLY)
        target = directfuse.os_open("/copies/target", os.O_CREAT | os.O_WRONLY)
        assert directfuse.copy_file_range(source, target, 1 << 20) == 3
        assert directfuse.copy_file_range(source, target, 1 << 20) == 0
        assert "getattr" not in mount.stats().ops
        directfuse.close(source)
        directfuse.close(target)
