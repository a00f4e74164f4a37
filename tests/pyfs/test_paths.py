"""File systems of fusepy, mfusepy and refuse: objects, and what their libraries add."""

import errno
import logging
import os
import reprlib
import threading

import pytest

import directfuse
from directfuse._python.paths import Host, fuse_words

from .memory import Memory

LIBRARIES = {"mfusepy": "mfusepy", "fusepy": "fuse", "refuse": "refuse.high", "none": None}


@pytest.fixture(params=LIBRARIES, name="kind")
def _kind(request):
    """The file system's class, as a user of the library writes it."""
    name = LIBRARIES[request.param]
    if name is None:
        return Memory
    library = pytest.importorskip(name)
    return type("Memory", (Memory, library.Operations), {})


def test_everything_a_file_does(kind):
    memory = kind("a", "b")
    with directfuse.mount(memory, "/paths") as mount:
        assert directfuse.listdir("/paths") == ["a", "b"]
        with directfuse.open("/paths/a", "rb") as file:
            assert file.read() == b"content of a"
        with directfuse.open("/paths/new", "wb") as file:
            file.write(b"0123456789")
        directfuse.truncate("/paths/new", 4)
        directfuse.rename("/paths/new", "/paths/renamed")
        assert memory.files["/renamed"] == b"0123"
        directfuse.remove("/paths/b")
        directfuse.symlink("a", "/paths/link")
        assert directfuse.readlink("/paths/link") == "a"
        assert directfuse.open("/paths/link").read() == "content of a"
        assert directfuse.statvfs("/paths").f_blocks == 4096
        directfuse.setxattr("/paths/a", "user.x", b"value")
        assert directfuse.getxattr("/paths/a", "user.x") == b"value"
        assert directfuse.listxattr("/paths/a") == ["user.x"]
        directfuse.removexattr("/paths/a", "user.x")
        assert directfuse.listxattr("/paths/a") == []
        assert mount.stats().driven["read"] == "inline"
        assert mount.fsname == "Memory"
    assert memory.events == [("init", "/"), ("destroy", "/")]


def test_writing_a_file_anew_truncates_it(kind):
    """open() of these libraries' file systems need not look at its flags."""
    with directfuse.mount(kind("a"), "/paths-anew"):
        assert directfuse.stat("/paths-anew/a").st_size == len("content of a")
        with directfuse.open("/paths-anew/a", "wb") as file:
            assert directfuse.stat("/paths-anew/a").st_size == 0
            file.write(b"new")
        assert directfuse.stat("/paths-anew/a").st_size == 3
        with directfuse.open("/paths-anew/a", "rb") as file:
            assert file.read() == b"new"


class Flags(Memory):
    """Remembers what open() was told about truncating."""

    def open(self, path, flags):
        self.events.append(flags & os.O_TRUNC)
        return 5


def test_open_has_the_flag_where_nothing_else_truncates():
    memory = Flags("a")
    memory.truncate = None
    with directfuse.mount(memory, "/paths-flags"):
        directfuse.open("/paths-flags/a", "wb").close()
        assert memory.events[-1] == os.O_TRUNC


def test_the_option_that_gives_open_the_flag_is_understood():
    options = {"atomic_o_trunc": True}
    assert Host(Memory(), options).settings()[-1] is False
    assert Host(Memory(), {}).settings()[-1] is True
    assert fuse_words("/point", options) == ["fuse", "/point"]


@pytest.mark.parametrize("times", [(5_000_000_006, 7_000_000_008), (10**19 + 7, -(10**19) - 7)])
def test_times_are_nanoseconds(kind, times):
    """Also before 1677 and after 2262, where there are more of them than 64 bits hold."""
    memory = kind()
    with directfuse.mount(memory, "/paths-ns"):
        directfuse.utime("/paths-ns/a", ns=times)
        assert memory.times["/a"] == times
        found = directfuse.stat("/paths-ns/a")
        assert (found.st_atime_ns, found.st_mtime_ns) == times
        directfuse.utime("/paths-ns/a")
        assert memory.times["/a"] == (3, 4)


class Whole(float):
    """As numpy's integers: a float too, but not all of it."""

    def __new__(cls, number):
        made = super().__new__(cls, number)
        made.number = number
        return made

    def __index__(self):
        return self.number


def test_times_are_whole_numbers_where_they_say_so():
    memory = Memory()
    memory.times["/a"] = Whole(1_700_000_000_123_456_789), 1.9
    with directfuse.mount(memory, "/paths-whole"):
        found = directfuse.stat("/paths-whole/a")
    assert (found.st_atime_ns, found.st_mtime_ns) == (1_700_000_000_123_456_789, 1)


@pytest.mark.filterwarnings("ignore:Time as floating point")
def test_times_are_seconds_unless_use_ns():
    class Seconds(Memory):
        use_ns = False

    seconds = Seconds()
    with directfuse.mount(seconds, "/paths-s"):
        directfuse.utime("/paths-s/a", ns=(5_500_000_000, -1_500_000_000))
        assert seconds.times["/a"] == (5.5, -1.5)
        found = directfuse.stat("/paths-s/a")
        assert (found.st_atime_ns, found.st_mtime_ns) == (5_500_000_000, -1_500_000_000)


@pytest.mark.parametrize("name", ["fuse", "mfusepy"])
def test_logging_mix_in(name, caplog):
    library = pytest.importorskip(name)
    kind = type("Logged", (library.LoggingMixIn, Memory, library.Operations), {})
    caplog.set_level(logging.DEBUG)
    with directfuse.mount(kind(), "/paths-logged"):
        assert directfuse.open("/paths-logged/a").read() == "content of a"
    assert "read" in caplog.text and "/a" in caplog.text


def test_operations_know_their_caller():
    library = pytest.importorskip("mfusepy")

    class Asking(Memory, library.Operations):
        def open(self, path, flags):
            self.caller = library.fuse_get_context()
            return super().open(path, flags)

    asking = Asking()
    with directfuse.mount(asking, "/paths-caller"):
        directfuse.open("/paths-caller/a").close()
    assert asking.caller == (os.getuid(), os.getgid(), os.getpid())


def test_ranges_of_a_directory_are_asked_for_by_offset():
    library = pytest.importorskip("mfusepy")
    names = [f"file {number:05}" for number in range(5000)]

    class Ranges(Memory, library.Operations):
        def readdir_with_offset(self, path, offset, fh):
            self.asked = offset
            for place, name in list(enumerate(names, 1))[offset:]:
                yield name, {"st_mode": 0o100644}, place

    with directfuse.mount(Ranges(), "/paths-ranges"):
        assert directfuse.listdir("/paths-ranges") == names


def test_nothreads_serialises():
    """Unlike pyfuse3's, operations of these libraries run side by side, unless told otherwise."""
    inside, most = [], []

    class Watched(Memory):
        def getattr(self, path, fh=None):
            inside.append(path)
            most.append(len(inside))
            for _ in range(100):
                pass
            inside.remove(path)
            return super().getattr(path, fh)

    from directfuse._python import paths

    assert paths.fuse_words("/m", {"nothreads": True, "ro": True, "fsname": "x"}) == [
        "fuse", "-s", "-o", "ro", "-o", "fsname=x", "/m",
    ]  # fmt: skip
    with directfuse.mount(Watched(), "/paths-threads"):
        threads = [
            threading.Thread(
                target=lambda: [directfuse.stat("/paths-threads/a") for _ in range(50)]
            )
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert most


# ---- bad input -----------------------------------------------------------------------------------


class Wrong(Memory):
    result = None

    def read(self, path, size, offset, fh):
        if isinstance(self.result, BaseException):
            raise self.result
        return self.result


@pytest.mark.parametrize(
    ("result", "code", "logged"),
    [
        (OSError(errno.EACCES, "no"), errno.EACCES, False),
        (ValueError("what"), errno.EIO, True),
        (OSError("without a number"), errno.EIO, True),
        (7, errno.EIO, True),
        ("text", errno.EIO, True),
        (b"x" * 11, errno.EIO, True),
    ],
)
def test_a_read_that_fails(result, code, logged, caplog):
    wrong = Wrong()
    wrong.result = result
    with directfuse.mount(wrong, "/paths-wrong"):
        fd = directfuse.os_open("/paths-wrong/a", os.O_RDONLY)
        with pytest.raises(OSError) as caught:
            directfuse.pread(fd, 10, 0)
        directfuse.close(fd)
        assert caught.value.errno == code
        assert directfuse.listdir("/paths-wrong") == ["a"]
    verb = "raised" if isinstance(result, BaseException) else "returned"
    assert (f"Wrong.read() {verb} {result!r}: " in caplog.text) == logged


@pytest.mark.parametrize(
    ("name", "result"),
    [
        ("getattr", None),
        ("getattr", 5),
        ("getattr", {"st_mode": "text"}),
        ("getattr", {"st_mode": 0o644}),
        ("readdir", 5),
        ("readdir", [5]),
        ("readdir", [("a", 1)]),
        ("open", "text"),
        ("statfs", None),
        ("readlink", b"\0".decode()),
        ("readlink", "x" * 4096),
        ("listxattr", 5),
        ("mkdir", "text"),
        ("unlink", object()),
    ],
)
def test_results_of_the_wrong_type_are_eio(name, result, caplog):
    kind = type("Wrong", (Memory,), {name: lambda *_: result})
    calls = {
        "getattr": lambda: directfuse.stat("/paths-types"),
        "readdir": lambda: directfuse.listdir("/paths-types"),
        "open": lambda: directfuse.open("/paths-types/a"),
        "statfs": lambda: directfuse.statvfs("/paths-types"),
        "readlink": lambda: directfuse.readlink("/paths-types/link"),
        "listxattr": lambda: directfuse.listxattr("/paths-types/a"),
        "mkdir": lambda: directfuse.mkdir("/paths-types/new"),
        "unlink": lambda: directfuse.unlink("/paths-types/a"),
    }
    memory = kind()
    memory.links["/link"] = "a"
    with directfuse.mount(memory, "/paths-types"):
        with pytest.raises(OSError) as caught:
            calls[name]()
    assert caught.value.errno == errno.EIO
    assert f"Wrong.{name}() returned {reprlib.repr(result)}: " in caplog.text


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        (["a", 5], "an entry is a name or (name, attributes, offset), not 5: EIO"),
        ([("a", None)], "an entry is a name or (name, attributes, offset), not ('a', None): EIO"),
        (["a", "/b"], "'/b' is no name of an entry: it is empty or has a slash: EIO"),
        ([("", {}, 0)], "'' is no name of an entry: it is empty or has a slash: EIO"),
    ],
)
def test_what_is_no_entry_of_a_directory_is_said(entries, said, caplog):
    kind = type("Wrong", (Memory,), {"readdir": lambda *_: entries})
    with directfuse.mount(kind(), "/paths-entries"):
        with pytest.raises(OSError):
            directfuse.listdir("/paths-entries")
    assert f"returned {entries!r}: {said}" in caplog.text


def test_a_getattr_that_is_a_coroutine_is_refused_with_the_reason():
    class Awaited(Memory):
        async def getattr(self, path, fh=None):
            return {}

    with pytest.raises(directfuse.MountError, match="`async def`"):
        directfuse.mount(Awaited(), "/paths-async")


def test_a_coroutine_of_a_method_that_should_be_none_is_eio(caplog):
    async def later():
        pass

    class Awaited(Memory):
        def mkdir(self, path, mode):
            return later()

    with directfuse.mount(Awaited(), "/paths-async"):
        with pytest.warns(RuntimeWarning, match="never awaited"), pytest.raises(OSError) as caught:
            directfuse.mkdir("/paths-async/new")
    assert caught.value.errno == errno.EIO
    assert "an int or None was expected, not <class 'coroutine'>" in caplog.text


@pytest.mark.parametrize("result", [None, 0, "", [], False])
def test_what_is_false_is_as_good_as_none(result):
    """As in these libraries."""
    kind = type("Quiet", (Memory,), {"unlink": lambda *_: result, "read": lambda *_: result})
    with directfuse.mount(kind(), "/paths-quiet"):
        assert directfuse.open("/paths-quiet/a", "rb").read() == b""
        directfuse.unlink("/paths-quiet/a")


def test_an_init_that_raises_is_logged(caplog):
    class Refuses(Memory):
        def init(self, path):
            raise RuntimeError("there is no data")

    with pytest.raises(directfuse.MountError, match="there is no data"):
        directfuse.mount(Refuses(), "/paths-init")
    assert not directfuse.mounts()


def test_allocating_by_hand_does_not_append():
    """Where there is no fallocate(), each block is written to, which O_APPEND puts elsewhere."""
    with directfuse.mount(Memory("a"), "/paths-allocate"):
        fd = directfuse.os_open("/paths-allocate/a", os.O_RDWR | os.O_APPEND)
        before = directfuse.pread(fd, 100, 0)
        with pytest.raises(OSError, match="Bad file descriptor"):
            directfuse.posix_fallocate(fd, 0, 3)
        directfuse.close(fd)
        assert directfuse.open("/paths-allocate/a", "rb").read() == before
