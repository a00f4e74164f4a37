"""directfuse.open: the io objects, on both backends."""

import gc
import io
import os
import pathlib
import pickle
import sys
import warnings

import pytest

import directfuse

from .subinterpreters import in_subinterpreter


@pytest.fixture
def path(root):
    return f"{root}/file.bin"


# ---- layers ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "kind"),
    [
        ("wb", io.BufferedWriter),
        ("ab", io.BufferedWriter),
        ("xb", io.BufferedWriter),
        ("w+b", io.BufferedRandom),
        ("a+b", io.BufferedRandom),
        ("w", io.TextIOWrapper),
    ],
)
def test_layers_are_the_standard_ones(path, mode, kind):
    with directfuse.open(path, mode) as file:
        assert type(file) is kind
        buffer = file.buffer if kind is io.TextIOWrapper else file
        assert isinstance(buffer.raw, io.RawIOBase) and isinstance(buffer.raw, directfuse.FileIO)
    with directfuse.open(path, "rb") as file:
        assert isinstance(file, io.BufferedReader)
        file.peek()
        assert type(file) is io.BufferedReader
    with directfuse.open(path, "r+b") as file:
        assert type(file) is io.BufferedRandom


def test_raw(path):
    with directfuse.open(path, "w+b", buffering=0) as raw:
        assert isinstance(raw, directfuse.FileIO)
        assert raw.write(b"0123456789") == 10
        assert raw.tell() == 10
        assert raw.seek(2) == 2
        assert raw.read(3) == b"234"
        buffer = bytearray(3)
        assert raw.readinto(buffer) == 3 and buffer == b"567"
        for wrong in (b"123", memoryview(bytearray(8))[::2], "123", None):
            with pytest.raises(TypeError, match="must be read-write bytes-like object"):
                raw.readinto(wrong)
        assert raw.readall() == b"89" and raw.read() == b"" and raw.readall() == b""
        assert raw.seek(-4, io.SEEK_END) == 6
        assert raw.seek(1, os.SEEK_CUR) == 7
        assert raw.truncate() == 7 and raw.truncate(3) == 3
        raw.seek(0)
        assert raw.read(-1) == b"012"
        raw.seek(0)
        assert raw.read(None) == b"012"
        assert raw.readable() and raw.writable() and raw.seekable() and not raw.isatty()
        assert directfuse.fstat(raw.descriptor).st_size == 3
        assert repr(raw) == f"<directfuse.FileIO name={path!r} mode='rb+' closefd=True>"
    assert repr(raw) == "<directfuse.FileIO [closed]>"


@pytest.mark.parametrize("size", [0, 1, 4095, 4096, 65535, 65536, 65537, 1_000_000])
def test_whole_files_of_every_size(path, size):
    data = os.urandom(size)
    with directfuse.open(path, "wb") as file:
        assert file.write(data) == size
    with directfuse.open(path, "rb") as file:
        assert file.read() == data
    with directfuse.open(path, "rb", 0) as raw:
        raw.seek(size // 2)
        assert raw.read() == data[size // 2 :]


def test_a_file_that_grows_while_it_is_read(path):
    with directfuse.open(path, "wb", 0) as writer, directfuse.open(path, "rb", 0) as reader:
        writer.write(b"a" * 100)
        assert len(reader.read()) == 100
        writer.write(b"b" * 200_000)
        assert len(reader.read()) == 200_000
        assert reader.read() == b""


@pytest.mark.parametrize(
    "mode", ["rb", "wb", "xb", "ab", "rb+", "wb+", "xb+", "ab+", "r", "w", "a"]
)
def test_modes(path, mode, tmp_path):
    """Mode by mode as builtins.open on a real file."""

    def outcome(opener, name):
        if "x" not in mode:
            with opener(name, "wb") as file:
                file.write(b"0123")
        try:
            with opener(name, mode) as file:
                raw = file.buffer.raw if hasattr(file, "buffer") else file.raw
                found = [file.mode, raw.mode, file.tell(), file.readable(), file.writable()]
                for act in (
                    lambda: file.read(),
                    lambda: file.write("x" if "b" not in mode else b"x"),
                ):
                    try:
                        found.append(act())
                    except io.UnsupportedOperation as error:
                        found.append(str(error))
        finally:
            with opener(name, "rb") as file:
                data = file.read()
        return found, data

    assert outcome(directfuse.open, path) == outcome(open, tmp_path / "real")


def test_exclusive_creation(path):
    directfuse.open(path, "x").close()
    with pytest.raises(FileExistsError) as caught:
        directfuse.open(path, "x")
    assert caught.value.filename == path


def test_appending(path):
    with directfuse.open(path, "ab") as one, directfuse.open(path, "ab") as other:
        for _ in range(3):
            one.write(b"1")
            one.flush()
            other.write(b"2")
            other.flush()
        assert one.tell() == 5
    with directfuse.open(path, "rb") as file:
        assert file.read() == b"121212"


def test_directories_and_absent_files(root):
    with pytest.raises(IsADirectoryError) as caught:
        directfuse.open(root)
    assert caught.value.filename == root
    with pytest.raises(IsADirectoryError):
        directfuse.open(root, "w")
    with pytest.raises(FileNotFoundError):
        directfuse.open(f"{root}/none")
    with pytest.raises(FileNotFoundError):
        directfuse.open(f"{root}/none/none", "w")


# ---- text --------------------------------------------------------------------------------------


def test_text(path):
    with directfuse.open(path, "w", encoding="utf-8") as file:
        assert file.write("grüße\nzwei\n") == 11
        file.writelines(["drei\n", "vier"])
    with directfuse.open(path, encoding="utf-8") as file:
        assert file.mode == "r" and file.name == path
        assert file.readline() == "grüße\n"
        assert [*file] == ["zwei\n", "drei\n", "vier"]
        file.seek(0)
        assert len(file.read()) == 20
    with directfuse.open(path, encoding="ascii") as file, pytest.raises(UnicodeDecodeError):
        file.read()
    with directfuse.open(path, encoding="ascii", errors="replace") as file:
        assert file.readline() == "gr\ufffd\ufffd\ufffd\ufffde\n"


@pytest.mark.parametrize("newline", [None, "", "\n", "\r", "\r\n"])
def test_newlines(path, newline, tmp_path):
    real = tmp_path / "real"
    for opener, name in ((directfuse.open, path), (open, real)):
        with opener(name, "w", newline=newline) as file:
            file.write("a\nb\r\nc\rd")
    with directfuse.open(path, "rb") as ours, open(real, "rb") as theirs:
        assert ours.read() == theirs.read()
    with directfuse.open(path, newline=newline) as ours, open(real, newline=newline) as theirs:
        assert ours.readlines() == theirs.readlines()


def test_bad_text_arguments_leave_nothing_open(path, root):
    for options in ({"encoding": "no-such"}, {"newline": "x"}):
        with pytest.raises((LookupError, ValueError)):
            directfuse.open(path, "w", **options)
    directfuse.unmount(root)  # EBUSY if one had leaked


def test_seeking_in_text(path):
    with directfuse.open(path, "w+", encoding="utf-8") as file:
        file.write("äöü\nend")
        file.seek(0)
        assert file.readline() == "äöü\n"
        place = file.tell()
        assert file.read() == "end"
        file.seek(place)
        assert file.read() == "end"
        file.truncate(place)
        file.seek(0)
        assert file.read() == "äöü\n"


def test_line_buffering(path):
    with directfuse.open(path, "w", buffering=1) as file:
        assert file.line_buffering
        file.write("line\n")
        assert directfuse.stat(path).st_size == 5
    with pytest.warns(RuntimeWarning, match="line buffering"):
        directfuse.open(path, "wb", buffering=1).close()


def test_unbuffered_text_is_refused_before_anything_is_opened(path):
    with pytest.raises(ValueError, match="can't have unbuffered text I/O"):
        directfuse.open(path, "w", 0)
    assert not directfuse.path.exists(path)


def test_the_warning_about_the_default_encoding(script, tmp_path):
    text = f"""
        import directfuse, warnings
        with directfuse.mount(["memfs", {str(tmp_path / "m")!r}]):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                directfuse.open({str(tmp_path / "m" / "f")!r}, "w").close()
            print([(w.category.__name__, w.filename == __file__) for w in caught])
    """
    assert script(text, "-X", "warn_default_encoding") == "[('EncodingWarning', True)]"


# ---- descriptors and openers -------------------------------------------------------------------


def test_fileno_is_refused_clearly(path):
    with directfuse.open(path, "wb") as file:
        with pytest.raises(io.UnsupportedOperation, match="`directfuse run` it has"):
            file.fileno()
        assert not file.isatty()


def test_opening_a_descriptor(path):
    fd = directfuse.os_open(path, os.O_RDWR | os.O_CREAT)
    with directfuse.open(fd, "wb", closefd=False) as file:
        file.write(b"data")
        assert file.name == fd and not file.raw.closefd
    assert directfuse.pread(fd, 9, 0) == b"data"
    directfuse.lseek(fd, 0, os.SEEK_SET)
    with directfuse.open(fd, "rb") as file:
        assert file.read() == b"data"
    with pytest.raises(OSError, match="Bad file descriptor"):
        directfuse.fstat(fd)
    with pytest.raises(OSError, match="Bad file descriptor"):
        directfuse.open(fd)


def test_a_given_descriptor_survives_a_failure(root):
    fd = directfuse.os_open(root, os.O_RDONLY | os.O_DIRECTORY)
    with pytest.raises(IsADirectoryError):
        directfuse.open(fd)
    directfuse.close(fd)


@pytest.mark.parametrize("mode", ["r", "w", "ab"])
@pytest.mark.parametrize("kind", [pathlib.Path, os.fsencode, str])
def test_an_opener_is_given_the_path_as_text(path, tmp_path, mode, kind):
    real = str(tmp_path / "real")
    for name in (path, real):
        directfuse.open(name, "w").close()

    def outcome(function, name, os_open):
        asked = []

        def opener(*given):
            asked.append(given)
            return os_open(*given)

        with function(kind(name), mode, opener=opener) as file:
            return type(asked[0][0]), asked[0][1] & ~os.O_CLOEXEC, type(file.name)

    expected = outcome(open, real, os.open)
    assert outcome(directfuse.open, path, directfuse.os_open) == expected
    assert outcome(directfuse.open, real, os.open) == expected


@pytest.mark.parametrize("name", [None, 1.5, "nul\0"])
def test_what_is_no_path_is_given_to_no_opener(path, name):
    for function in (open, directfuse.open):
        with pytest.raises((TypeError, ValueError)):
            function(name, opener=lambda *_: pytest.fail("it is called"))


def test_openers(path, tmp_path):
    asked = []

    def opener(name, flags):
        asked.append((name, flags & os.O_ACCMODE))
        return directfuse.os_open(path, flags, 0o600)

    with directfuse.open("any name", "w", opener=opener) as file:
        file.write("by opener")
        assert file.name == "any name"
    assert asked == [("any name", os.O_WRONLY)]
    assert directfuse.stat(path).st_size == 9 and directfuse.stat(path).st_mode & 0o777 == 0o600

    real = tmp_path / "real"
    real.write_text("real")
    with directfuse.open(path, opener=lambda name, flags: os.open(real, flags)) as file:
        assert file.read() == "real" and type(file.buffer.raw).__name__ == "FileIO"
    with pytest.raises(RuntimeError, match="no"):
        directfuse.open(path, opener=lambda name, flags: (_ for _ in ()).throw(RuntimeError("no")))
    for wrong in (-1, "x"):
        with pytest.raises((ValueError, TypeError)):
            directfuse.open(path, opener=lambda name, flags, wrong=wrong: wrong)


# ---- the end -----------------------------------------------------------------------------------


def test_closed_files(path):
    file = directfuse.open(path, "w+b", 0)
    file.close()
    file.close()
    assert file.closed
    for act in (
        file.read,
        file.readall,
        file.tell,
        file.fileno,
        file.readable,
        file.writable,
        file.seekable,
        file.isatty,
        file.truncate,
        file.flush,
        file.__enter__,
        lambda: file.write(b""),
        lambda: file.readinto(bytearray(1)),
        lambda: file.seek(0),
        lambda: file.descriptor,
        lambda: next(file),
    ):
        with pytest.raises(ValueError, match="closed file"):
            act()


def test_wrong_direction(path):
    with directfuse.open(path, "wb", 0) as file:
        with pytest.raises(io.UnsupportedOperation, match="not open for reading"):
            file.read()
        with pytest.raises(io.UnsupportedOperation, match="not open for reading"):
            file.readinto(bytearray(1))
    with directfuse.open(path, "rb", 0) as file:
        with pytest.raises(io.UnsupportedOperation, match="not open for writing"):
            file.write(b"x")
        with pytest.raises(io.UnsupportedOperation, match="not open for writing"):
            file.truncate(0)


def test_forgotten_files_are_closed_with_a_warning(path, root):
    for options in ({"buffering": 0}, {}):
        file = directfuse.open(path, "wb", **options)
        file.write(b"flushed all the same")
        with pytest.warns(ResourceWarning, match=r"unclosed file <.*file\.bin"):
            del file
            gc.collect()
        assert directfuse.stat(path).st_size == 20
    directfuse.unmount(root)


def test_forgotten_files_in_cycles(path, root):
    class Holder:
        pass

    holder = Holder()
    holder.file = directfuse.open(path, "w")
    holder.file.holder = holder
    with pytest.warns(ResourceWarning):
        del holder
        gc.collect()
    directfuse.unmount(root)


def test_warnings_as_errors_do_not_leak(path, root):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        file = directfuse.open(path, "wb", 0)
        hook = sys.unraisablehook
        sys.unraisablehook = lambda _: None  # what Python prints about a finalizer's exception
        try:
            del file
            gc.collect()
        finally:
            sys.unraisablehook = hook
    directfuse.unmount(root)


@pytest.mark.parametrize("mode", ["r", "w", "rb", "wb"])
@pytest.mark.parametrize("our", ["open", "directfuse.open"])
@pytest.mark.parametrize("interpreter", ["main", "another"])
def test_a_file_may_outlive_the_modules(our, mode, interpreter, script, tmp_path):
    """What is in `sys` and has a method keeps the globals of a program to the very end."""
    program = f"""
        import sys, directfuse
        class Kept:
            def method(self): pass
        sys.kept = Kept()
        directfuse.mount(["memfs", {str(tmp_path / "m")!r}])
        path = {str(tmp_path if our == "open" else tmp_path / "m")!r} + "/f"
        {our}(path, "wb").close()
        file = {our}(path, {mode!r})
    """
    if interpreter == "another":
        program = in_subinterpreter(program)
    assert script(program) == ""


def test_attributes_can_be_added(path):
    with directfuse.open(path, "wb", 0) as file:
        file.extra = 5
        assert file.extra == 5 and file.__dict__["name"] == path


def test_an_open_file_cannot_be_pickled(path):
    with directfuse.open(path, "wb", 0) as file, pytest.raises(TypeError, match="cannot pickle"):
        pickle.dumps(file)


def test_the_type_cannot_be_made_by_hand():
    with pytest.raises(TypeError, match="cannot create"):
        directfuse.FileIO("x")


def test_peek_readline_and_iteration(path):
    with directfuse.open(path, "wb") as file:
        file.write(b"one\ntwo\nthree")
    with directfuse.open(path, "rb") as file:
        assert file.peek(3)[:3] == b"one"
        assert file.readline() == b"one\n" and file.readlines() == [b"two\n", b"three"]
    with directfuse.open(path, "rb", 0) as raw:
        assert [*raw] == [b"one\n", b"two\n", b"three"]
    with directfuse.open(path, "rb", buffering=4) as file:
        assert file.read1(2) == b"on" and file.read(9) == b"e\ntwo\nthr"


def test_writing_needs_room_to_fail(mount_of):
    """The error of a flush at close reaches the caller and the descriptor is closed."""
    mounted = mount_of("memfs", "full")
    file = directfuse.open(f"{mounted.mountpoint}/f", "wb")
    file.write(b"x")
    directfuse.close(file.raw.descriptor)  # pulls the descriptor away under the buffer
    with pytest.raises(OSError, match="Bad file descriptor"):
        file.close()
    assert file.closed
