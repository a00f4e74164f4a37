"""directfuse.read_many: many reads of paths and descriptors, of mounts and of real files."""

import errno
import os
from pathlib import Path

import pytest

import directfuse


@pytest.fixture
def paths(root, fill):
    """200 files in a mount: more than one run; the n-th holds n bytes and "abc"."""
    return [fill(f"{root}/{n}", bytes([n % 251]) * n + b"abc") for n in range(200)]


@pytest.fixture
def fd(root, fill, opened):
    return opened(fill(f"{root}/f", b"0123456789"))


def test_descriptors(root, fd, opened):
    other = opened(f"{root}/g")
    directfuse.write(other, b"abc")
    requests = [(fd, 0, 3), (other, 1, 10), (fd, 8, 2), (fd, 100, 5), (other, 0, 0)]
    assert directfuse.read_many(requests) == [b"012", b"bc", b"89", b"", b""]
    assert directfuse.read_many(iter(requests)) == directfuse.read_many(tuple(requests))
    assert directfuse.read_many([fd, (fd, 7, None), [fd, 1, 2]]) == [b"0123456789", b"789", b"12"]
    assert directfuse.read_many([]) == []


def test_whole_files(paths):
    data = [bytes([n % 251]) * n + b"abc" for n in range(200)]
    assert directfuse.read_many(paths) == data
    mixed = [paths[0], paths[1].encode(), Path(paths[2])]
    assert directfuse.read_many(mixed) == data[:3]


def test_extents_of_paths(paths):
    requests = [(path, n, 2) for n, path in enumerate(paths)]
    assert directfuse.read_many(requests) == [b"ab"] * 200
    assert directfuse.read_many([(paths[9], 5, None)]) == [bytes([9]) * 4 + b"abc"]
    assert directfuse.read_many([(paths[9], 500, None)]) == [b""]


def test_one_buffer(paths, fd):
    into = bytearray(b"." * 14)
    assert directfuse.read_many([(fd, 0, 4), (fd, 8, 4), paths[2]], into) == [4, 2, 5]
    assert into == b"012389..\2\2abc."
    with pytest.raises(ValueError, match="request 1 is for 11 bytes, the buffer has room for 4"):
        directfuse.read_many([(fd, 0, 10), (fd, 0, 11)], into)
    with pytest.raises(BufferError):
        directfuse.read_many([(fd, 0, 1)], b"read-only")


def test_many_buffers(paths, fd):
    buffers = [bytearray(4), memoryview(bytearray(2)), bytearray(3)]
    assert directfuse.read_many([(fd, 1, 4), (fd, 0, 2), paths[9]], buffers) == [4, 2, 3]
    assert [bytes(buffer) for buffer in buffers] == [b"1234", b"01", b"\t\t\t"]
    with pytest.raises(ValueError, match="1 requests, but 3 buffers"):
        directfuse.read_many([(fd, 1, 4)], buffers)
    with pytest.raises(ValueError, match="request 1 is for 3 bytes, the buffer has room for 2"):
        directfuse.read_many([(fd, 1, 4), (fd, 0, 3), (fd, 0, 3)], buffers)


def test_fixed_size_samples(root, fill):
    """The use it is made for: samples of one size into one array."""
    names = [fill(f"{root}/{n}", bytes([n]) * 100) for n in range(100)]
    batch = memoryview(bytearray(100 * 100)).cast("B", (100, 100))
    assert directfuse.read_many([(name, 0, 100) for name in names], batch) == [100] * 100
    assert [batch[n, 50] for n in range(100)] == list(range(100))


def test_files_of_the_real_file_system(paths, tmp_path):
    real = tmp_path / "real"
    real.write_bytes(b"real")
    with open(real, "rb") as file:
        requests = [(file.fileno(), 1, 9), (paths[0], 0, 1), real, (real, 1, 2), file.fileno()]
        assert directfuse.read_many(requests) == [b"eal", b"a", b"real", b"ea", b"real"]


def test_a_real_symlink_into_a_mount(paths, tmp_path):
    (tmp_path / "link").symlink_to(paths[1])
    assert directfuse.read_many([tmp_path / "link"]) == [b"\1abc"]


def test_files_that_tell_no_size():
    """Those of /proc say 0 bytes."""
    assert directfuse.read_many(["/proc/self/comm"])[0].endswith(b"\n")
    assert directfuse.read_many([("/proc/self/comm", 1, None)])[0].endswith(b"\n")
    into = bytearray(100)
    (count,) = directfuse.read_many(["/proc/self/comm"], into)
    assert into[count - 1 : count] == b"\n"


def test_files_that_tell_no_size_are_read_to_their_end():
    """One read(2) of this one brings a page at most."""
    name = "/proc/self/smaps"
    with open(name, "rb") as file:
        whole = len(file.read())
        assert len(directfuse.read_many([file.fileno()])[0]) > whole / 2 > 10_000
    assert len(directfuse.read_many([name])[0]) > whole / 2
    assert directfuse.read_many([name], bytearray(10_000)) == [10_000]
    assert directfuse.read_many([name, name], [bytearray(10_000), bytearray(10)]) == [10_000, 10]


def test_an_empty_file_leaves_the_buffer_to_those_behind_it(root, fill, tmp_path):
    real = tmp_path / "empty"
    real.touch()
    full = fill(f"{root}/full", b"0123456789")
    requests = [fill(f"{root}/empty", b""), full, real, (full, 10, None), (full, 8, None)]
    into = bytearray(12)
    assert directfuse.read_many(requests, into) == [0, 10, 0, 0, 2]
    assert into == b"012345678989"


def test_an_error_says_which_request_it_was(paths, fd):
    with pytest.raises(OSError, match="Bad file descriptor") as caught:
        directfuse.read_many([(fd, 0, 1), ((1 << 30) + 77777, 2, 4)])
    assert caught.value.errno == errno.EBADF
    assert caught.value.__notes__ == ["request 1: 1073819601, 4 bytes at 2"]
    missing = paths[0] + "-missing"
    with pytest.raises(FileNotFoundError) as caught:
        directfuse.read_many([*paths, missing])
    assert caught.value.filename == missing
    assert caught.value.__notes__ == [f"request 200: {missing!r}"]


def test_errors_in_the_list(root, paths, fd):
    requests = [f"{root}/none", paths[1], "/none", root, -1, (fd, 9, 5), "nul\0"]
    none, one, real, directory, bad, tail, nul = directfuse.read_many(requests, errors="return")
    assert (one, tail) == (b"\1abc", b"9")
    assert isinstance(none, FileNotFoundError) and none.filename == f"{root}/none"
    assert isinstance(real, FileNotFoundError) and real.filename == "/none"
    assert isinstance(directory, IsADirectoryError)
    assert bad.errno == errno.EBADF
    assert isinstance(nul, ValueError)
    into = [bytearray(9) for _ in requests]
    assert directfuse.read_many(requests, into, errors="return")[1] == 4


def test_no_descriptor_is_left_open(paths, root, memfs_or_any):
    directfuse.read_many([*paths, f"{root}/none"], errors="return")
    with pytest.raises(FileNotFoundError):
        directfuse.read_many([*paths[:70], f"{root}/none"])
    memfs_or_any.unmount()  # EBUSY if one were


@pytest.fixture
def memfs_or_any(root):
    (mounted,) = [one for one in directfuse.mounts() if one.mountpoint == root]
    return mounted


def test_it_is_one_batch_of_the_file_system(memfs, fill):
    names = [fill(f"{memfs.mountpoint}/{n}", b"x") for n in range(64)]
    directfuse.read_many([(name, 0, 1) for name in names])
    assert memfs.stats().ops["read_batch"].calls == 1
    assert memfs.stats().ops["read_batch"].bytes == 64


class Array:
    """As numpy's: it has the method, and none but an array of one item is a number."""

    def __index__(self):
        raise TypeError("only an array of one item can be a number")


@pytest.mark.parametrize(
    "request_",
    [(1, 2), (1.5, 1, 2), (1, 2, 3, 4), None, True, [1, 2], (1, "x", 2), 1 << 40, Array()],
)
def test_what_is_no_request(request_):
    with pytest.raises(TypeError, match="a request is"):
        directfuse.read_many([request_])


@pytest.mark.parametrize("requests", [5, "path", b"path", None])
def test_what_is_no_list_of_requests(requests):
    with pytest.raises(TypeError):
        directfuse.read_many(requests)


def test_bad_numbers(fd):
    for request in [(fd, -1, 2), (fd, 0, -2)]:
        with pytest.raises(OSError, match="Invalid argument"):
            directfuse.read_many([request])
    with pytest.raises(ValueError, match="'raise' or 'return'"):
        directfuse.read_many([], errors="omit")


def test_requests_that_raise(root):
    class Named:
        def __fspath__(self):
            raise KeyError("no")

    with pytest.raises(KeyError):
        directfuse.read_many([Named()])
    assert os.path.lexists(root) is False
