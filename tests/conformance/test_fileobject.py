"""open(), the one that gives file objects: io's classes over the same file system."""

import errno
import io
import os

import pytest

from .expect import fails

MIB = 1 << 20


def test_text(fs):
    path = fs.path("f")
    with fs.os.open(path, "w", encoding="utf-8") as file:
        assert file.write("äöü\nsecond\n") == 11
    with fs.os.open(path, encoding="utf-8") as file:
        assert list(file) == ["äöü\n", "second\n"]
    assert fs.data(path) == "äöü\nsecond\n".encode()


def test_bytes(fs):
    path = fs.path("f")
    with fs.os.open(path, "wb") as file:
        assert file.write(b"abc") == 3
    with fs.os.open(path, "rb") as file:
        assert file.read(1) == b"a"
        assert file.read() == b"bc"
        assert file.read() == b""


@pytest.mark.parametrize(
    "mode, class_",
    [
        ("r", io.TextIOWrapper),
        ("rb", io.BufferedReader),
        ("wb", io.BufferedWriter),
        ("r+b", io.BufferedRandom),
    ],
)
def test_classes_are_those_of_io(fs, mode, class_):
    with fs.os.open(fs.make("f"), mode) as file:
        assert isinstance(file, class_)


def test_unbuffered_is_raw(fs):
    with fs.os.open(fs.make("f", b"abc"), "rb", buffering=0) as file:
        assert isinstance(file, io.RawIOBase)
        buffer = bytearray(2)
        assert file.readinto(buffer) == 2
        assert buffer == b"ab"
        assert file.readall() == b"c"


@pytest.mark.parametrize(
    "mode, readable, writable",
    [
        ("rb", True, False),
        ("wb", False, True),
        ("ab", False, True),
        ("r+b", True, True),
        ("xb", False, True),
    ],
)
def test_mode_decides_what_is_allowed(fs, mode, readable, writable):
    path = fs.path("new") if mode == "xb" else fs.make("f")
    with fs.os.open(path, mode, buffering=0) as file:
        assert (file.readable(), file.writable(), file.seekable()) == (readable, writable, True)
        assert file.mode == mode.replace("r+b", "rb+")
        if not readable:
            with pytest.raises(io.UnsupportedOperation):
                file.read(1)
        if not writable:
            with pytest.raises(io.UnsupportedOperation):
                file.write(b"x")


def test_w_truncates(fs):
    path = fs.make("f", b"content")
    fs.os.open(path, "wb").close()
    assert fs.data(path) == b""


def test_a_appends(fs):
    path = fs.make("f", b"abc")
    with fs.os.open(path, "ab") as file:
        assert file.tell() == 3
        file.write(b"def")
    assert fs.data(path) == b"abcdef"


def test_x_refuses_what_exists(fs):
    path = fs.make("f")
    with fails(errno.EEXIST, path), fs.os.open(path, "x"):
        pass


def test_plus_reads_and_writes(fs):
    path = fs.make("f", b"abcdef")
    with fs.os.open(path, "r+b") as file:
        assert file.read(2) == b"ab"
        file.seek(4)
        file.write(b"XY")
        file.seek(0)
        assert file.read() == b"abcdXY"


@pytest.mark.parametrize("mode", ["r", "rb", "r+", "w", "a"])
def test_directory_is_eisdir(fs, mode):
    path = fs.mkdir("d")
    with fails(errno.EISDIR, path), fs.os.open(path, mode):
        pass


def test_missing_file_is_enoent(fs):
    path = fs.path("missing")
    with fails(errno.ENOENT, path), fs.os.open(path):
        pass


@pytest.mark.parametrize("mode", ["", "rw", "rz", "b", "rbt", "r++"])
def test_senseless_mode_is_a_valueerror(fs, mode):
    with pytest.raises(ValueError), fs.os.open(fs.make("f"), mode):
        pass


def test_created_file_has_the_usual_mode(fs):
    path = fs.path("f")
    fs.os.open(path, "w").close()
    assert fs.os.stat(path).st_mode & 0o777 == 0o644


def test_name_is_what_was_given(fs):
    path = fs.make("f")
    with fs.os.open(path) as file:
        assert file.name == path


def test_descriptor_is_adopted(fs):
    fd = fs.os.os_open(fs.make("f", b"abc"), os.O_RDONLY)
    with fs.os.open(fd, "rb") as file:
        assert file.read() == b"abc"
    with fails(errno.EBADF):
        fs.os.fstat(fd)


def test_descriptor_may_stay_open(fs):
    fd = fs.open(fs.make("f", b"abc"))
    with fs.os.open(fd, "rb", closefd=False) as file:
        assert file.read() == b"abc"
    assert fs.os.pread(fd, 3, 0) == b"abc"


def test_closed_file_refuses(fs):
    file = fs.os.open(fs.make("f"), "rb")
    file.close()
    file.close()
    assert file.closed
    with pytest.raises(ValueError):
        file.read()


def test_seek_and_tell(fs):
    with fs.os.open(fs.make("f", b"abcdef"), "rb") as file:
        assert file.seek(-2, os.SEEK_END) == 4
        assert file.tell() == 4
        assert file.read() == b"ef"
        assert file.seek(100) == 100
        assert file.read() == b""


def test_truncate(fs):
    path = fs.make("f", b"abcdef")
    with fs.os.open(path, "r+b") as file:
        file.seek(2)
        assert file.truncate() == 2
        assert file.truncate(4) == 4
    assert fs.data(path) == b"ab\0\0"


def test_readinto_and_readline(fs):
    with fs.os.open(fs.make("f", b"one\ntwo\nthree"), "rb") as file:
        assert file.readline() == b"one\n"
        buffer = bytearray(6)
        assert file.readinto(buffer) == 6
        assert buffer == b"two\nth"
        assert file.readlines() == [b"ree"]


def test_universal_newlines(fs):
    path = fs.make("f", b"a\r\nb\rc\n")
    with fs.os.open(path) as file:
        assert file.read() == "a\nb\nc\n"
    with fs.os.open(path, newline="") as file:
        assert file.read() == "a\r\nb\rc\n"


def test_line_buffering(fs):
    path = fs.path("f")
    with fs.os.open(path, "w", buffering=1) as file:
        file.write("line\n")
        assert fs.data(path) == b"line\n"


def test_flush_makes_bytes_visible(fs):
    path = fs.path("f")
    with fs.os.open(path, "wb") as file:
        file.write(b"abc")
        file.flush()
        assert fs.data(path) == b"abc"


def test_large_content(fs):
    data = os.urandom(3 * MIB)
    path = fs.path("f")
    with fs.os.open(path, "wb") as file:
        for start in range(0, len(data), 10_000):
            file.write(data[start : start + 10_000])
    with fs.os.open(path, "rb") as file:
        assert file.read() == data


def test_opener(fs):
    asked = []

    def opener(path, flags):
        asked.append(path)
        return fs.os.os_open(path, flags)

    path = fs.make("f", b"abc")
    with fs.os.open(path, "rb", opener=opener) as file:
        assert file.read() == b"abc"
    assert asked == [path]


def test_ordinary_files_by_the_same_name(fs, tmp_path):
    path = tmp_path / "ordinary"
    with fs.os.open(path, "w") as file:
        file.write("abc")
    assert path.read_text() == "abc"


def test_pathlike_and_bytes(fs):
    path = os.fsencode(fs.make("f", b"abc"))
    with fs.os.open(path, "rb") as file:
        assert file.read() == b"abc"
