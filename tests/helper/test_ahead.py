"""What is read before it is asked for: as much as by the kernel, and believed as long as by it."""

import contextlib
import json
import os
import random
import time

import pytest

import directfuse
from directfuse import _paths

from .conftest import kernel_mount

PAGE = 4096
DIRECT_IO, KEEP_CACHE = 1, 2  # FOPEN_*


class File:
    """What fuse_server.py shows, and what it was asked for."""

    def __init__(self, note):
        self._note = note
        self._told = {"letter": "a", "size": 1 << 20, "mtime": 1, "valid": 3600, "flags": 0}
        self.tell()

    def tell(self, **told):
        self._told |= told
        new = self._note.with_suffix(".new")
        new.write_text(json.dumps(self._told))
        new.rename(self._note)

    def reads(self):
        """[(offset, size)] of the READs, in order of offset: two threads may send them."""
        with open(f"{self._note}.reads") as lines:
            return sorted(tuple(map(int, line.split())) for line in lines)


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setenv("FUSE_SERVER_NOTE", str(tmp_path / "note"))
    return File(tmp_path / "note")


@pytest.fixture(params=["kernel", "helper"])
def point(request, file, tmp_path, serve):
    """(api, open, mountpoint) of both: what Linux does comes first."""
    with contextlib.ExitStack() as stack:
        if request.param == "kernel":
            stack.enter_context(kernel_mount(tmp_path / "kernel", "ahead"))
            yield os, os.open, str(tmp_path / "kernel")
        else:
            yield directfuse, directfuse.os_open, serve("ahead").mountpoint


class Reader:
    def __init__(self, point):
        self.api, self._open, self.root = point
        self.fd = self.open(os.O_RDONLY)
        self.at = 0  # the page that follows the last one read

    def open(self, flags):
        return self._open(f"{self.root}/file", flags)

    def page(self, number):
        """The letter that a page is full of."""
        data = self.api.pread(self.fd, PAGE, number * PAGE)
        assert data == data[:1] * PAGE
        self.at = number + 1
        return data[:1].decode()

    def close(self):
        self.api.close(self.fd)


@pytest.fixture
def reader(point):
    reader = Reader(point)
    yield reader
    reader.close()


def test_pieces_grow(file, reader):
    for number in range(256):
        assert reader.page(number) == "a"
    assert reader.api.pread(reader.fd, PAGE, 1 << 20) == b""
    sizes = [size // PAGE for _, size in file.reads()]
    assert sizes[:5] == [4, 8, 16, 32, 32]
    assert len(sizes) <= 11


def test_nothing_is_asked_for_behind_the_end(file, point):
    """A page is the least that is read."""
    file.tell(size=PAGE * 5 - 1)
    reader = Reader(point)
    assert reader.page(0) == "a"
    assert len(reader.api.pread(reader.fd, 5 * PAGE, PAGE)) == 4 * PAGE - 1
    assert sum(size for _, size in file.reads()) == 5 * PAGE
    reader.close()


def test_as_much_is_under_way_as_was_read(file, serve):
    """Up to a megabyte, where the kernel has 128 KiB."""
    file.tell(size=8 << 20)
    reader = Reader((directfuse, directfuse.os_open, serve("ahead").mountpoint))
    for number, ahead in [(64, 64), (256, 256), (512, 256)]:
        while reader.at < number:
            assert reader.page(reader.at) == "a"
        wanted = number + ahead - 31  # pages; by whole pieces of 32
        while sum(size for _, size in file.reads()) // PAGE < wanted:
            time.sleep(0.01)  # they are under way
        assert sum(size for _, size in file.reads()) // PAGE <= number + ahead + 32
    reader.close()


def test_what_was_read_ahead_is_believed(file, reader):
    assert reader.page(0) == "a"
    file.tell(letter="b")
    assert [reader.page(number) for number in (1, 2, 3)] == ["a"] * 3


def test_direct_io_reads_what_it_is_asked_for(file, point):
    file.tell(flags=DIRECT_IO)
    reader = Reader(point)
    assert reader.page(0) == "a"
    file.tell(letter="b")
    assert reader.page(1) == "b"
    assert file.reads() == [(0, PAGE), (PAGE, PAGE)]
    reader.close()


@pytest.mark.parametrize(("flags", "letter"), [(0, "b"), (KEEP_CACHE, "a")])
def test_another_open(file, reader, flags, letter):
    """It starts afresh for all, unless FOPEN_KEEP_CACHE says otherwise."""
    assert reader.page(0) == "a"
    file.tell(letter="b", flags=flags)
    other = reader.open(os.O_RDONLY)
    assert reader.page(1) == letter
    reader.api.close(other)


def test_time_of_change(file, point):
    """Asked for, as attributes do not hold."""
    file.tell(valid=0)
    reader = Reader(point)
    assert reader.page(0) == "a"
    file.tell(letter="b", mtime=2)
    assert reader.page(1) == "b"
    reader.close()


def test_size(file, reader):
    assert reader.page(0) == "a"
    file.tell(letter="b", size=1 << 19, valid=0)
    reader.api.truncate(f"{reader.root}/file", 1 << 19)
    assert reader.api.pread(reader.fd, PAGE, 1 << 19) == b""
    assert reader.page(127) == "b"


def test_notification(file, reader):
    assert reader.page(0) == "a"
    file.tell(letter="b")
    with pytest.raises(FileNotFoundError):
        reader.api.stat(f"{reader.root}/inval")
    assert reader.page(1) == "b"


def test_write_by_another_handle(file, reader):
    assert reader.page(0) == "a"
    other = reader.open(os.O_WRONLY)
    file.tell(letter="b")
    reader.api.pwrite(other, b"b" * PAGE, PAGE)
    assert reader.page(1) == "b"
    reader.api.close(other)


def test_sizes_that_are_no_pages(file, point):
    file.tell(size=100_001)
    reader = Reader(point)
    got = []
    while data := reader.api.pread(reader.fd, 7_001, sum(got)):
        assert data == b"a" * len(data)
        got.append(len(data))
    assert sum(got) == 100_001
    reader.close()


def test_random_calls(tmp_path):
    """Two handles of one file, and what it has to be: each sees at once what the other did."""
    chance, content = random.Random(52), bytearray(os.urandom(300_000))
    with directfuse.mount(
        [os.fspath(_paths.program("memfs")), str(tmp_path / "m")], placement="helper"
    ) as mount:
        path = f"{mount.mountpoint}/file"
        with directfuse.open(path, "wb") as new:
            new.write(content)
        files = [directfuse.os_open(path, os.O_RDWR) for _ in range(2)]
        for _ in range(300):
            fd, at = chance.choice(files), chance.randrange(len(content) + 10_000)
            if chance.random() < 0.8:
                size = chance.choice([512, 4096, 5000, 20_000])
                for _ in range(chance.randrange(40)):
                    assert directfuse.pread(fd, size, at) == content[at : at + size]
                    at += size
            elif chance.random() < 0.8:
                data = os.urandom(chance.randrange(1, 9000))
                at = min(at, len(content))
                assert directfuse.pwrite(fd, data, at) == len(data)
                content[at : at + len(data)] = data
            else:
                directfuse.ftruncate(fd, at)
                content = content[:at].ljust(at, b"\0")
        for fd in files:
            directfuse.close(fd)
