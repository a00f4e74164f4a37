"""Pages of a mount whose plugin allows attributes no time: kept, and asked about at each read."""

import contextlib
import itertools
import os

import pytest

import directfuse
from directfuse import _kernel, _paths

PAGE = 4096


def numbered(pages):
    return b"".join(b"%04d" % n * (PAGE // 4) for n in range(pages))


@contextlib.contextmanager
def asked_each_time(route, tmp_path):
    """A mount of passthrough, whose attributes have no time: the calls for it, its path, and its
    directory."""
    source, point = tmp_path / "source", tmp_path / "mnt"
    source.mkdir()
    point.mkdir()
    words = ["passthrough", str(source), str(point)]
    if route == "server":
        with directfuse.mount(words, placement="server"):
            yield directfuse, directfuse.os_open, str(point), source
        return
    program = os.fspath(_paths.native_dir() / "bin" / "passthrough")
    with _kernel.Program([program, *words[1:], "-f"]) as daemon:
        daemon.wait_mounted(30)
        yield os, os.open, str(point), source


@pytest.mark.parametrize("route", [pytest.param("kernel", marks=pytest.mark.kernel_fuse), "server"])
@pytest.mark.parametrize("size", [40 << 10, 256 << 10, (3 << 20) + 20017])
def test_bytes_are_kept_as_long_as_size_and_time_of_change_stay(route, size, tmp_path):
    """As the kernel does by FUSE_AUTO_INVAL_DATA: what has changed behind the mount without a trace
    is not seen in an open file, what has left one is."""
    with asked_each_time(route, tmp_path) as (api, os_open, point, source):
        behind, times = source / "f", itertools.count(10**18)

        def put_behind(byte, when):
            behind.write_bytes(byte * size)
            os.utime(behind, ns=(when, when))

        def seen():
            return set(api.pread(fd, size + 1, 0))

        def goes_unnoticed():
            when = next(times)
            put_behind(b"a", when)
            for _ in range(3):
                assert seen() == {ord("a")}
            put_behind(b"b", when)
            return seen() == {ord("a")}

        put_behind(b"-", next(times))
        fd = os_open(f"{point}/f", os.O_RDWR)
        # The kernel may drop pages whenever it wants memory.
        assert any(goes_unnoticed() for _ in range(20 if route == "kernel" else 1))
        put_behind(b"b", next(times))
        for _ in range(3):
            assert seen() == {ord("b")}
        api.pwrite(fd, b"c" * size, 0)
        assert seen() == {ord("c")}
        behind.write_bytes(b"d" * (size - 1))
        for _ in range(3):
            assert seen() == {ord("d")}
            assert len(api.pread(fd, size + 1, 0)) == size - 1
        api.close(fd)


def test_where_the_plugin_allows_no_time_a_read_is_one_trip_whatever_is_kept(tmp_path):
    with asked_each_time("server", tmp_path) as (api, os_open, point, source):
        (source / "f").write_bytes(numbered(256))
        fd = os_open(f"{point}/f", os.O_RDONLY)
        (mount,) = (m for m in directfuse.mounts() if m.mountpoint == point)

        def trips():
            before = mount.stats().trips
            assert api.pread(fd, 1 << 20, 0) == numbered(256)
            return mount.stats().trips - before

        assert [trips() for _ in range(4)] == [1, 1, 1, 1]
        api.utime(f"{point}/f", ns=(0, 0))
        assert [trips() for _ in range(4)] == [1, 1, 1, 1]
        api.close(fd)
