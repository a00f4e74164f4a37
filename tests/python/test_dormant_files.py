"""A file opened for reading has io's layers from the first use that needs them: nobody can tell."""

import builtins
import gc
import io
import os
import re
import stat
import threading
import time
import warnings
import weakref

import pytest

import directfuse

TEXT = "first\nsecond äöü\nthird"
PLAIN = TEXT.encode()
MODES = {"rb": io.BufferedReader, "r": io.TextIOWrapper}


@pytest.fixture
def twins(root, tmp_path):
    """twins(data): a file with these bytes in a mount, and one outside."""

    def make(data=PLAIN):
        paths = f"{root}/file", str(tmp_path / "file")
        for opener, path in zip((directfuse.open, builtins.open), paths, strict=True):
            with opener(path, "wb") as file:
                file.write(data)
        return paths

    return make


def both(paths, act, mode):
    """What act(file) ends in, here and outside: a result, or an exception's class and words."""
    ends = []
    for opener, path in zip((directfuse.open, builtins.open), paths, strict=True):
        with opener(path, mode) as file:
            try:
                ends.append(act(file))
            except Exception as error:
                ends.append((type(error), str(error)))
    return ends


@pytest.mark.parametrize("mode", MODES)
def test_reading_all_needs_no_layers(twins, mode):
    path = twins()[0]
    with directfuse.open(path, mode) as file:
        assert type(file) is not MODES[mode] and isinstance(file, MODES[mode])
        assert file.read() == (TEXT if mode == "r" else PLAIN)
        assert file.read(-1) == file.read(None) == ("" if mode == "r" else b"")
        assert not file.closed
        assert type(file) is not MODES[mode]
        assert file.tell() == len(PLAIN)
        assert type(file) is MODES[mode]
        assert file.seek(0) == 0 and file.read(2) == ("fi" if mode == "r" else b"fi")
    assert file.closed


USES = {
    "readline": lambda f: f.readline(),
    "readlines": lambda f: f.readlines(),
    "iteration": lambda f: list(f),
    "next": lambda f: next(f),
    "read some": lambda f: (f.read(3), f.read(), f.read(1)),
    "read of nothing": lambda f: (f.read(0), f.read()),
    "read of nonsense": lambda f: f.read("x"),
    "read with too much": lambda f: f.read(1, 2),
    "read of too much": lambda f: f.read(-(1 << 70)),
    "read below": lambda f: f.read(-5),
    "read and line": lambda f: (f.read(), f.readline(), f.seek(0), f.readline()),
    "a method that is kept": lambda f: [f.read, f.readline(), f.tell()][0](),
    "close that is kept": lambda f: [f.close, f.readline()][0](),
    "write": lambda f: f.write("x"),
    "readinto": lambda f: f.readinto(bytearray(3)),
    "peek": lambda f: f.peek(1)[:1],
    "truncate": lambda f: f.truncate(0),
    "capabilities": lambda f: (f.readable(), f.writable(), f.seekable(), f.isatty()),
    "a new attribute": lambda f: [setattr(f, "mine", 1), f.mine][1],
    "an attribute that is not": lambda f: f.theirs,
    "mode": lambda f: f.mode,
    "encoding": lambda f: (f.encoding, f.errors, f.newlines, f.line_buffering),
    "chunk size": lambda f: setattr(f, "_CHUNK_SIZE", 7),
    "reading after the end": lambda f: (f.close(), f.read()),
    "lines after the end": lambda f: (f.close(), f.readline()),
    "iteration after the end": lambda f: (f.close(), list(f)),
    "entering after the end": lambda f: (f.close(), f.__enter__()),
    "a with after the end": lambda f: (f.close(), f.close(), f.closed, f.mode),
    "reading first, then the end": lambda f: (f.read(), f.close(), f.read()),
    "flushing after the end": lambda f: (f.close(), f.flush()),
    "detaching after the end": lambda f: (f.close(), f.detach()),
    "pickling": lambda f: f.__reduce_ex__(4)[:0],
    "class": lambda f: f.__class__,
    "hash": lambda f: hash(f) == hash(f) and f == f,
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("use", USES)
def test_it_behaves_as_the_file_of_open(twins, use, mode):
    ours, theirs = both(twins(), USES[use], mode)
    if use == "pickling":  # the classes of the raw files differ
        assert ours[0] is theirs[0] is TypeError
    else:
        assert ours == theirs


@pytest.mark.parametrize("mode", MODES)
def test_every_attribute(twins, mode):
    names = [name for name in dir(MODES[mode]) if name not in ("__doc__", "__init_subclass__")]
    paths = twins()
    for name in names:
        ours, theirs = both(paths, lambda f, name=name: type(getattr(f, name)), mode)
        if name != "raw":
            assert ours == theirs, name


@pytest.mark.parametrize(
    "data",
    [b"", b"\r", b"a\r\nb\rc\nd\r\n", b"\xff", b"good\nbad \xe4", "\ufeffmark".encode(), b"\0\n"],
)
@pytest.mark.parametrize("place", ["all", "after a line"])
def test_text_that_is_not_plain(twins, data, place):
    paths = twins(data)

    def act(file):
        if place == "after a line":
            return file.readline(), file.read(), file.newlines
        return file.read(), file.read()  # without its decoder it has not seen which newlines

    ours, theirs = both(paths, act, "r")
    assert ours == theirs


@pytest.mark.parametrize(
    "special", [b"", b"\r", "é".encode(), "\U0001f600".encode(), b"\xff", b"\0"]
)
def test_text_of_every_length_with_one_character_anywhere(root, special):
    """What is looked at in pieces of 64 and 16 bytes is looked at to the last one."""
    for length in [*range(20), 63, 64, 65, 79, 80, 81, 127, 128, 129, 200]:
        for place in range(length + 1):
            data = b"x" * place + special + b"y" * (length - place)
            with directfuse.open(f"{root}/f", "wb") as file:
                file.write(data)
            try:
                expected = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8").read()
            except UnicodeDecodeError:
                with directfuse.open(f"{root}/f") as file, pytest.raises(UnicodeDecodeError):
                    file.read()
            else:
                with directfuse.open(f"{root}/f") as file:
                    text = file.read()
                assert text == expected and hash(text) == hash(expected)
                assert text.isascii() == expected.isascii()


@pytest.mark.parametrize("size", [0, 3, len(PLAIN) - 1, len(PLAIN) + 1, 200_000])
@pytest.mark.parametrize("mode", MODES)
def test_a_file_that_changes_between_open_and_read(twins, mode, size):
    ours, theirs = (
        changed_before_it_is_read(opener, truncate, path, mode, size)
        for opener, truncate, path in zip(
            (directfuse.open, builtins.open),
            (directfuse.truncate, os.truncate),
            twins(),
            strict=True,
        )
    )
    assert ours == theirs


def changed_before_it_is_read(opener, truncate, path, mode, size):
    with opener(path, mode) as file:
        truncate(path, size)
        try:
            return file.read(), file.read()
        except UnicodeDecodeError as error:
            return error.reason


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("data", [b"plain\ntext", PLAIN, b"some\r\nlines"])
def test_an_opener_that_has_read_of_the_file(twins, mode, data):
    def opened(path, flags):
        names = directfuse if path.startswith(directfuse.mounts()[0].mountpoint) else os
        fd = getattr(names, "os_open", names.open)(path, flags)
        assert names.read(fd, 3) == data[:3]
        return fd

    ends = []
    for opener, path in zip((directfuse.open, builtins.open), twins(data), strict=True):
        with opener(path, mode, opener=opened) as file:
            ends.append((file.read(), file.read()))
    assert ends[0] == ends[1]


def test_a_decoder_that_fails_leaves_the_file_as_open_does(twins):
    def act(file):
        with pytest.raises(UnicodeDecodeError):
            file.read()
        return file.seek(0), file.read(2)

    ours, theirs = both(twins(b"ok" + b"\xff" * 3), act, "r")
    assert ours == theirs


@pytest.mark.parametrize("mode", MODES)
def test_repr_and_name(twins, mode):
    path = twins()[0]
    with directfuse.open(path, mode) as file:
        start = f"<_io.{MODES[mode].__name__} name={path!r}"
        assert repr(file).startswith(start)
    late = directfuse.open(path, mode)
    late.close()
    assert repr(late).startswith(start) and late.name == path


def test_layers_below_and_above(twins):
    path = twins()[0]
    with directfuse.open(path) as file:
        assert type(file.buffer) is io.BufferedReader
        assert isinstance(file.buffer.raw, directfuse.FileIO) and file.buffer.raw.name == path
    with io.TextIOWrapper(directfuse.open(path, "rb"), encoding="utf-8") as file:
        assert file.readlines() == TEXT.splitlines(keepends=True)
    raw = directfuse.open(path, "rb").detach()
    assert raw.read() == PLAIN
    raw.close()
    with io.BufferedRandom(directfuse.open(path, "r+b", 0)) as file:
        assert file.read() == PLAIN


# ---- the end -------------------------------------------------------------------------------------


FILTERS = {
    "ignored": [("ignore", {})],
    "default": [],
    "for one text": [("ignore", {}), ("always", {"message": "unclosed file"})],
    "for one module": [("ignore", {}), ("always", {"module": re.escape(__name__)})],
    "for another text": [("ignore", {}), ("always", {"message": "something else"})],
    "for a line": [("always", {"lineno": 5}), ("ignore", {})],
    "asked for": [("always", {})],
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", FILTERS)
def test_a_forgotten_file_warns_as_that_of_open(twins, name, mode):
    """filterwarnings() puts each before the others."""
    counts = []
    for opener, path in zip((directfuse.open, builtins.open), twins(), strict=True):
        with warnings.catch_warnings(record=True) as caught:
            warnings.resetwarnings()
            for action, options in FILTERS[name]:
                warnings.filterwarnings(action, category=ResourceWarning, **options)
            opener(path, mode)
            gc.collect()
        counts.append([str(warning.message).replace(path, "PATH") for warning in caught])
    assert counts[0] == counts[1]
    directfuse.unmount(directfuse.mounts()[0].mountpoint)  # nothing is open


def test_filters_that_change_in_place(twins):
    path = twins()[0]

    def warned():
        with warnings.catch_warnings(record=True) as caught:
            warnings.filters[:] = filters
            directfuse.open(path).read()
            return len(caught)

    filters = [("ignore", None, UserWarning, None, 0), ("ignore", None, ResourceWarning, None, 0)]
    assert warned() == warned() == 0
    filters[1] = ("always", None, ResourceWarning, None, 0)
    assert warned() == warned() == 1
    filters[0] = ("ignore", None, Warning, None, 0)
    assert warned() == 0
    filters[:] = [("ignore", None, UserWarning, None, n) for n in range(40)] + filters[1:]
    assert warned() == warned() == 1
    filters[-1] = ("ignore", None, Warning, None, 0)
    assert warned() == warned() == 0


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("used", [False, True])
def test_a_forgotten_file_in_a_cycle(twins, mode, used):
    class Holder:
        pass

    path = twins()[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        holder = Holder()
        holder.file = directfuse.open(path, mode)
        holder.me = holder
        if used:
            holder.file.readline()
        ended = weakref.ref(holder.file)
        del holder
        gc.collect()
    assert ended() is None
    directfuse.unmount(directfuse.mounts()[0].mountpoint)


def test_the_types_cannot_be_made_by_hand(twins):
    for mode in MODES:
        kind = type(directfuse.open(twins()[0], mode))
        with pytest.raises(TypeError):
            kind(io.BytesIO())
        with pytest.raises(TypeError):
            type("Mine", (kind,), {})


def test_threads_that_use_one_file(twins):
    """Whoever comes first: every read has whole bytes, and the file is io's afterwards."""
    path = twins(os.urandom(1 << 16))[0]
    for _ in range(20):
        file = directfuse.open(path, "rb")
        threads = [
            threading.Thread(target=act)
            for act in (file.read, lambda file=file: file.tell(), file.readline, file.read)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert type(file) is io.BufferedReader
        file.close()


class Held:
    """A file system whose reads of `a` wait. Sizes are not what they seem."""

    def __init__(self):
        self.inside, self.go = threading.Event(), threading.Event()

    def getattr(self, path, fh=None):
        if path == "/":
            return {"st_mode": stat.S_IFDIR | 0o755}
        return {"st_mode": stat.S_IFREG | 0o644, "st_size": 100}

    def readdir(self, path, fh):
        return ["a", "b"]

    def read(self, path, size, offset, fh):
        if path == "/a":
            self.inside.set()
            self.go.wait()
        return (f"content of {path}\n" * 2).encode()[offset : offset + size]


@pytest.fixture
def held(tmp_path):
    """A Held, and where it is mounted; its files are closed at the end."""
    held = Held()
    with directfuse.mount(held, tmp_path / "held"):
        yield held, f"{tmp_path}/held"


def begin(act, ends):
    """A thread that does it; once that has ended, or waits for something."""

    def run():
        try:
            ends.append(act())
        except Exception as error:
            ends.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    sleeps = 0
    while thread.is_alive() and sleeps < 3:
        with open(f"/proc/self/task/{thread.native_id}/stat") as file:
            sleeps = sleeps + 1 if file.read().rpartition(") ")[2][0] == "S" else 0
        time.sleep(0.01)
    return thread


def test_a_file_that_a_thread_reads_is_closed_behind_that(held):
    """Else the rest would be read from whatever file has the descriptor next."""
    file_system, root = held
    file, ends = directfuse.open(f"{root}/a", "rb"), []
    threads = [begin(file.read, ends), begin(file.close, ends)]
    with directfuse.open(f"{root}/b", "rb") as other:
        file_system.go.set()
        for thread in threads:
            thread.join()
        assert ends == [b"content of /a\n" * 2, None]
        assert other.read() == b"content of /b\n" * 2


def test_threads_that_awake_one_file(held):
    """The layers are made once: who makes them again would close the file of the first ones."""
    file_system, root = held
    fd = directfuse.os_open(f"{root}/a", os.O_RDONLY)
    with directfuse.open(f"{root}/a", "rb", opener=lambda *_: fd) as file:
        ends = []
        threads = [begin(lambda: directfuse.read(fd, 14), ends)]
        assert file_system.inside.wait(10)  # and has the lock of the position, which tell() wants
        threads += [begin(lambda: file.tell(), ends) for _ in range(2)]
        file_system.go.set()
        for thread in threads:
            thread.join()
        assert sorted(ends, key=repr) == [14, 14, b"content of /a\n"]
        assert file.read() == b"content of /a\n"


def test_a_file_that_is_used_by_what_reads_it(held):
    """As io's buffers have it."""
    file_system, root = held
    file = directfuse.open(f"{root}/b", "rb")

    def read(*_):
        with pytest.raises(RuntimeError, match="reentrant call"):
            file.close()
        with pytest.raises(RuntimeError, match="reentrant call"):
            file.tell()
        return b""

    file_system.read = read
    assert file.read() == b""
    file.close()
