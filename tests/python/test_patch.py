"""directfuse.patch(): the standard library's own names see the mounts, until it ends."""

import asyncio
import builtins
import collections.abc
import errno
import fcntl
import glob
import inspect
import io
import os
import pathlib
import pickle
import shutil
import socket
import stat
import struct
import sys
import tarfile
import tempfile
import threading
import types
import zipfile
from os import listdir as kept_listdir
from os import stat as kept_stat

import pytest

import directfuse

from .interrupted import Interrupted, interrupted_at, interrupted_everywhere


@pytest.fixture
def patched():
    with directfuse.patch():
        yield


@pytest.fixture
def top(root, patched):
    return root


# ---- what sees the mounts ----------------------------------------------------------------------


def test_open(top, tmp_path):
    with open(f"{top}/x", "w") as file:
        file.write("text")
    assert open(f"{top}/x").read() == "text"
    assert isinstance(open(f"{top}/x", "rb", 0), directfuse.FileIO)
    with open(tmp_path / "real", "wb", 0) as file:
        assert isinstance(file, io.FileIO)
        file.write(b"real")
    assert open(tmp_path / "real").read() == "real"


def test_os(top):
    os.makedirs(f"{top}/a/b")
    os.symlink("b", f"{top}/a/link")
    assert sorted(os.listdir(f"{top}/a")) == ["b", "link"]
    assert os.path.isdir(f"{top}/a/link") and os.path.islink(f"{top}/a/link")
    assert os.path.realpath(f"{top}/a/link") == f"{top}/a/b"
    assert os.path.ismount(top) and not os.path.ismount(f"{top}/a")
    assert os.path.samefile(f"{top}/a/b", f"{top}/a/link")
    with os.scandir(top) as entries:
        assert [entry.name for entry in entries] == ["a"]
    assert [one for _, below, _ in os.walk(top) for one in sorted(below)] == ["a", "b", "link"]
    assert len([*os.fwalk(top)]) == 3
    os.rename(f"{top}/a/b", f"{top}/c")
    os.removedirs(f"{top}/c")
    with pytest.raises(FileNotFoundError) as caught:
        os.stat(f"{top}/none")
    assert caught.value.filename == f"{top}/none"


def test_only_functions_of_os_are_replaced(patched):
    """os has names that it imports itself, and one of them is Mapping."""
    assert (os.environ | {"x": "y"})["x"] == "y"
    assert os.Mapping is collections.abc.Mapping


def test_a_class_that_keeps_a_function_of_os_gets_no_method(top):
    """A builtin function does not become one, so ours in Python must not, either."""

    class Kept:
        make, look, remove = os.mkdir, os.stat, os.rmdir

    Kept().make(f"{top}/d")
    assert stat.S_ISDIR(Kept().look(f"{top}/d").st_mode)
    Kept().remove(f"{top}/d")
    assert not os.path.exists(f"{top}/d")
    assert inspect.signature(os.mkdir) == inspect.signature(directfuse.mkdir)
    assert pickle.loads(pickle.dumps(os.mkdir)) is directfuse.mkdir


def test_descriptors(top):
    fd = os.open(f"{top}/x", os.O_RDWR | os.O_CREAT)
    assert os.write(fd, b"0123456789") == 10 and os.lseek(fd, 2, os.SEEK_SET) == 2
    assert os.read(fd, 3) == b"234" and os.pread(fd, 2, 0) == b"01"
    assert os.fstat(fd).st_size == os.stat(fd).st_size == 10
    os.ftruncate(fd, 5)
    os.fsync(fd)
    second = os.dup(fd)
    assert not os.get_inheritable(second) and os.get_blocking(second)
    os.set_inheritable(second, False)
    os.set_blocking(second, True)
    os.lockf(second, os.F_TLOCK, 0)
    os.lockf(second, os.F_ULOCK, 0)
    fcntl.flock(second, fcntl.LOCK_SH)
    assert fcntl.fcntl(second, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDWR
    with os.fdopen(second, "rb", closefd=True) as file:
        file.seek(0)
        assert file.read() == b"01234"
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(second)
    assert not os.isatty(fd)
    os.close(fd)


def test_real_descriptors_stay_real(patched, tmp_path):
    fd = os.open(tmp_path / "real", os.O_RDWR | os.O_CREAT)
    assert fd < 1 << 30
    assert os.write(fd, b"real") == 4 and os.pread(fd, 9, 1) == b"eal"
    os.lockf(fd, os.F_TLOCK, 0)
    os.set_blocking(fd, os.get_blocking(fd))
    os.set_inheritable(fd, True)
    assert os.get_inheritable(fd)
    os.close(fd)
    read, write = os.pipe()
    os.write(write, b"x")
    assert os.read(read, 1) == b"x"
    os.close(read)
    os.close(write)


def test_sendfile(top, tmp_path):
    (tmp_path / "real").write_bytes(b"0123456789")
    with open(tmp_path / "real", "rb") as source, open(f"{top}/x", "wb") as target:
        fd = target.raw.descriptor
        assert os.sendfile(fd, source.fileno(), 2, 5) == 5
        assert os.sendfile(fd, source.fileno(), None, 3) == 3
        assert os.sendfile(fd, source.fileno(), 10, 3) == 0
    assert open(f"{top}/x", "rb").read() == b"23456012"


def test_sendfile_moves_the_position_by_what_was_sent(top, tmp_path):
    for path in (f"{top}/long", f"{tmp_path}/long"):
        pathlib.Path(path).write_bytes(bytes(1 << 20))
        near, far = socket.socketpair()
        near.setblocking(False)
        fd = os.open(path, os.O_RDONLY)
        with near, far:
            sent = os.sendfile(near.fileno(), fd, None, 1 << 20)
            assert 0 < sent < 1 << 20
            with pytest.raises(BlockingIOError):
                while more := os.sendfile(near.fileno(), fd, None, 1 << 20):
                    sent += more
        assert os.lseek(fd, 0, os.SEEK_CUR) == sent
        os.close(fd)


def test_pathlib(top):
    here = pathlib.Path(top)
    (here / "d").mkdir()
    (here / "d" / "x.txt").write_text("ä", encoding="utf-8")
    assert (here / "d" / "x.txt").read_bytes() == "ä".encode()
    assert [*here.rglob("*.txt")] == [here / "d" / "x.txt"]
    assert (here / "d").is_dir() and (here / "d").is_mount() is False
    (here / "d" / "x.txt").chmod(0o600)
    assert stat.S_IMODE((here / "d" / "x.txt").stat().st_mode) == 0o600
    (here / "d" / "x.txt").touch()
    (here / "d" / "x.txt").rename(here / "y")
    (here / "y").unlink()
    (here / "d").rmdir()
    assert not any(here.iterdir())


@pytest.mark.skipif(not hasattr(pathlib.Path, "walk"), reason="Path.walk: Python 3.12")
@pytest.mark.parametrize("downwards", [True, False])
def test_pathlib_walks_without_following_symlinks(top, downwards):
    here = pathlib.Path(top)
    (here / "d").mkdir()
    (here / "d" / "up").symlink_to(here)
    found = [*here.walk(top_down=downwards)]
    assert sorted(found) == [(here, ["d"], []), (here / "d", [], ["up"])]
    assert sorted(os.walk(top, topdown=downwards)) == [(top, ["d"], []), (f"{top}/d", ["up"], [])]


@pytest.mark.skipif(not hasattr(pathlib.Path, "copy"), reason="Path.copy: Python 3.14")
def test_pathlib_copies_and_moves(top, tmp_path):
    here = pathlib.Path(top)
    (tmp_path / "tree" / "below").mkdir(parents=True)
    (tmp_path / "tree" / "below" / "x").write_bytes(b"x" * 100_000)
    (tmp_path / "tree" / "link").symlink_to("below")
    (tmp_path / "out").mkdir()
    os.utime(tmp_path / "tree" / "below" / "x", ns=(1, 2))
    (tmp_path / "tree").copy(here / "tree", follow_symlinks=False, preserve_metadata=True)
    assert (here / "tree" / "below" / "x").stat().st_mtime_ns == 2
    assert (here / "tree" / "link").readlink() == pathlib.Path("below")
    assert (here / "tree").info.is_dir() and (here / "tree" / "link").info.is_symlink()
    assert [one.info.is_dir() for one in (here / "tree" / "below").iterdir()] == [False]
    (here / "tree" / "below").copy_into(tmp_path)
    (here / "tree" / "below" / "x").copy(here / "y")
    (here / "tree").move(here / "moved")
    (here / "moved" / "below").move_into(tmp_path / "out")
    assert (here / "y").read_bytes() == (tmp_path / "below" / "x").read_bytes() == b"x" * 100_000
    assert (tmp_path / "out" / "below" / "x").exists()
    assert sorted(one.name for one in here.rglob("*")) == ["link", "moved", "y"]


def test_shutil_and_glob(top, tmp_path):
    (tmp_path / "tree" / "below").mkdir(parents=True)
    (tmp_path / "tree" / "below" / "x").write_bytes(b"x" * 100_000)
    shutil.copytree(tmp_path / "tree", f"{top}/tree")
    assert glob.glob(f"{top}/**/x", recursive=True) == [f"{top}/tree/below/x"]
    shutil.move(f"{top}/tree", tmp_path / "moved")
    assert (tmp_path / "moved" / "below" / "x").read_bytes() == b"x" * 100_000
    shutil.copytree(tmp_path / "moved", f"{top}/again")
    assert shutil.disk_usage(top).total >= 0
    shutil.make_archive(str(tmp_path / "archive"), "zip", f"{top}/again")
    shutil.unpack_archive(tmp_path / "archive.zip", f"{top}/unpacked")
    assert os.path.getsize(f"{top}/unpacked/below/x") == 100_000
    shutil.rmtree(f"{top}/again")
    assert os.listdir(top) == ["unpacked"]


def test_tempfile(top):
    with tempfile.NamedTemporaryFile(dir=top) as file:
        file.write(b"x")
        file.flush()
        assert os.listdir(top) == [os.path.basename(file.name)]
    with tempfile.TemporaryFile(dir=top) as file:
        file.write(b"x")
    with tempfile.TemporaryDirectory(dir=top) as directory:
        pathlib.Path(directory, "x").touch()
    assert os.listdir(top) == []


def test_archives(top):
    with zipfile.ZipFile(f"{top}/a.zip", "w") as archive:
        archive.writestr("x", b"zip")
    assert zipfile.ZipFile(f"{top}/a.zip").read("x") == b"zip"
    with tarfile.open(f"{top}/a.tar.gz", "w:gz") as archive:
        archive.add(f"{top}/a.zip", "a.zip")
    with tarfile.open(f"{top}/a.tar.gz") as archive:
        if hasattr(tarfile, "data_filter"):  # not in Debian 12's Python 3.11.2
            archive.extraction_filter = tarfile.data_filter
        archive.extractall(f"{top}/out")
    assert os.listdir(f"{top}/out") == ["a.zip"]


def test_names_that_modules_took_before(top):
    pathlib.Path(top, "x").touch()
    assert kept_listdir(top) == ["x"] and kept_stat(f"{top}/x").st_size == 0
    assert tarfile.bltn_open is directfuse.open


def test_capabilities(patched):
    assert os.open in os.supports_dir_fd and os.stat in os.supports_follow_symlinks
    assert os.scandir in os.supports_fd and os.access in os.supports_effective_ids


# ---- what does not -----------------------------------------------------------------------------


def test_the_working_directory(top, tmp_path):
    before = os.getcwd()
    with pytest.raises(OSError, match="a mount cannot be the working directory"):
        os.chdir(top)
    fd = os.open(top, os.O_RDONLY)
    with pytest.raises(OSError, match="a mount cannot be the working directory"):
        os.fchdir(fd)
    with pytest.raises(OSError, match="no other program can inherit"):
        os.set_inheritable(fd, True)
    os.close(fd)
    try:
        os.chdir(tmp_path)
        assert os.getcwd() == str(tmp_path)
    finally:
        os.chdir(before)
    with pytest.raises(FileNotFoundError):
        os.chdir(tmp_path / "none")
    with pytest.raises(TypeError):
        os.chdir(None)


def test_what_cannot_be_the_working_directory_anywhere(top, tmp_path):
    for place in (top, tmp_path):
        with open(f"{place}/file", "w"), pytest.raises(NotADirectoryError) as caught:
            os.chdir(f"{place}/file")
        assert caught.value.filename == f"{place}/file"


@pytest.mark.parametrize("place", ["plain", "mount"])
def test_what_is_no_open_directory_is_none_before_anything_else(place, top, tmp_path):
    fd = os.open(f"{tmp_path if place == 'plain' else top}/x", os.O_RDWR | os.O_CREAT)
    with pytest.raises(NotADirectoryError):
        os.fchdir(fd)
    os.close(fd)
    calls = (os.fchdir, os.get_inheritable, os.get_blocking)
    calls += tuple(lambda fd, to=to: os.set_inheritable(fd, to) for to in (True, False))
    for call in calls:
        with pytest.raises(OSError) as caught:
            call(fd)
        assert caught.value.errno == errno.EBADF


def test_locks_are_tested(top, tmp_path):
    """F_TEST: another's lock for writing is in the way, one's own and those for reading are not."""
    flock = struct.Struct("hhqqi4x")
    answers = []
    for path in (f"{top}/x", f"{tmp_path}/x"):
        fd, other = (os.open(path, os.O_RDWR | os.O_CREAT) for _ in range(2))
        answers.append([])
        for kind in (fcntl.F_UNLCK, fcntl.F_RDLCK, fcntl.F_WRLCK):
            fcntl.fcntl(other, fcntl.F_OFD_SETLK, flock.pack(kind, os.SEEK_SET, 5, 5, 0))
            for length in (0, 5, 6):
                try:
                    answers[-1].append(os.lockf(fd, os.F_TEST, length))
                except PermissionError as error:
                    answers[-1].append(error.errno)
        os.close(other)
        os.lockf(fd, os.F_LOCK, 0)
        answers[-1].append(os.lockf(fd, os.F_TEST, 0))
        os.close(fd)
    assert answers[0] == answers[1]


class Number:
    """As numpy's integers: what os takes for one."""

    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value


def test_numbers_of_other_types(top):
    opened = os.open(f"{top}/x", os.O_RDWR | os.O_CREAT)
    fd = Number(opened)
    os.set_inheritable(fd, False)
    os.set_blocking(fd, True)
    assert not os.get_inheritable(fd) and os.get_blocking(fd)
    os.lockf(fd, Number(os.F_TLOCK), Number(4))
    os.lockf(fd, os.F_TEST, 0)
    for wrong in ("1", 1.0):
        with pytest.raises(TypeError):
            os.lockf(fd, wrong, 0)
    os.close(opened)


def test_bad_lock_commands(top):
    with open(f"{top}/x", "w") as file, pytest.raises(OSError, match="Invalid argument"):
        os.lockf(file.buffer.raw.descriptor, 99, 0)


# ---- the end -----------------------------------------------------------------------------------


def snapshot():
    modules = [os, builtins, io, fcntl, tarfile, zipfile, sys.modules[__name__]]
    return [dict(vars(module)) for module in modules] + [
        set(os.supports_fd),
        set(os.supports_dir_fd),
        tempfile._TemporaryFileCloser.close.__defaults__,
    ]


def test_everything_is_restored(root):
    before = snapshot()
    with directfuse.patch():
        assert snapshot() != before
        with directfuse.patch():
            pathlib.Path(root, "x").touch()
        assert os.path.exists(f"{root}/x")
    assert snapshot() == before
    assert not os.path.exists(f"{root}/x")
    with pytest.raises(KeyError):
        with directfuse.patch():
            raise KeyError
    assert snapshot() == before


def enter_and_leave():
    with directfuse.patch():
        pass


def test_who_is_interrupted_leaves_nothing_in_place():
    before = snapshot()

    def nothing_is_left():
        assert snapshot() == before

    interrupted_everywhere(enter_and_leave, nothing_is_left, stride=499)
    assert snapshot() == before


class _InterruptedSet(set):
    def add(self, one):
        super().add(one)
        raise Interrupted


_LSTAT = staticmethod(os.lstat)


class _InterruptedKind(type):
    def __setattr__(cls, name, value):
        super().__setattr__(name, value)
        if value is not _LSTAT:
            raise Interrupted


def test_who_is_interrupted_behind_a_change_takes_it_back(monkeypatch):
    """Of os.supports_*, and of a class that keeps functions, as glob's do from Python 3.13 on."""
    with monkeypatch.context() as changed:
        changed.setattr(os, "supports_fd", _InterruptedSet(os.supports_fd))
        before = set(os.supports_fd)
        with pytest.raises(Interrupted):
            enter_and_leave()
        assert os.supports_fd == before
    kind = _InterruptedKind("Globber", (), {"lstat": _LSTAT})
    monkeypatch.setitem(sys.modules, "glob", types.SimpleNamespace(Globber=kind))
    with pytest.raises(Interrupted):
        enter_and_leave()
    assert vars(kind)["lstat"] is _LSTAT


def test_a_signals_handler_may_patch_where_that_is_done():
    """Or a finalizer."""
    before = snapshot()
    for step in range(0, 150, 5):
        interrupted_at(step, enter_and_leave, enter_and_leave)
        assert snapshot() == before


def test_a_decorator(root):
    @directfuse.patch()
    def touch():
        pathlib.Path(root, "x").touch()
        return os.listdir(root)

    assert touch() == ["x"]
    assert os.stat is kept_stat is directfuse._real.os.stat


def test_a_decorator_of_what_runs_after_its_call(root):
    """It was out of force again before any of it ran."""
    file = pathlib.Path(root, "x")

    @directfuse.patch()
    async def touch():
        await asyncio.sleep(0)
        file.touch()
        return os.listdir(root)

    @directfuse.patch()
    def names():
        yield from os.listdir(root)
        return os.path.exists(root)

    assert inspect.iscoroutinefunction(touch) and inspect.isgeneratorfunction(names)
    assert asyncio.run(touch()) == ["x"]
    generator = names()
    assert next(generator) == "x"
    with pytest.raises(StopIteration) as end:
        next(generator)
    assert end.value.value is True
    assert os.stat is directfuse._real.os.stat


def test_an_asynchronous_generator_is_not_decorated():
    async def names():
        yield "x"

    with pytest.raises(TypeError, match="no asynchronous generator"):
        directfuse.patch()(names)


def test_one_that_is_not_in_force_cannot_be_left(root):
    """The next one had no effect then, and said nothing."""
    context = directfuse.patch()
    with context, context:
        pass
    with directfuse.patch():
        with pytest.raises(RuntimeError, match="not in force"):
            context.__exit__(None, None, None)
        assert os.listdir(root) == []
    assert os.stat is directfuse._real.os.stat


def test_what_another_replaced_stays(monkeypatch):
    with directfuse.patch():
        os.getlogin_for_test = None  # another's own name
        mine = os.listdir
        os.listdir = other = lambda path=".": mine(path)
    try:
        assert os.listdir is other
    finally:
        del os.getlogin_for_test
        os.listdir = directfuse._real.os.listdir


def test_modules_that_appear_in_between(root):
    module = types.ModuleType("appeared")
    with directfuse.patch():
        sys.modules["appeared"] = module
        module.listdir = os.listdir
    try:
        assert module.listdir("/") == os.listdir("/")  # it keeps ours, which serves both worlds
        with directfuse.patch():
            assert module.listdir is os.listdir
    finally:
        del sys.modules["appeared"]


def test_users_of_the_package_keep_it(root):
    """Names that were directfuse's own before are so after."""
    before = directfuse.stat
    with directfuse.patch():
        pass
    assert directfuse.stat is before and sys.modules["directfuse"].open is directfuse.open


def test_threads(root):
    """Contexts of several threads overlap; the last one out restores."""
    before = snapshot()
    barrier = threading.Barrier(4, timeout=20)
    seen = []

    def work(number):
        for turn in range(20):
            barrier.wait()
            with directfuse.patch():
                path = pathlib.Path(root, f"{number}-{turn}")
                path.write_text("x")
                seen.append(path.read_text())

    threads = [threading.Thread(target=work, args=[n]) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == ["x"] * 80 and snapshot() == before


def test_a_forked_child_has_it_too(root, patched):
    pathlib.Path(root, "x").write_text("from the parent")
    child = os.fork()
    if child == 0:
        ok = pathlib.Path(root, "x").read_text() == "from the parent"
        os._exit(0 if ok else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_identity_is_read_again(memfs, script):
    assert (
        script(
            """
            import os, directfuse
            with directfuse.mount("memfs /mem -o allow_other"), directfuse.patch():
                os.chmod("/mem", 0o777)
                os.umask(0o027)
                os.mkdir("/mem/d")
                if os.geteuid() == 0:
                    os.seteuid(12345)
                    os.mkdir("/mem/other")
                    print(os.stat("/mem/other").st_uid == 12345, end=" ")
                    os.seteuid(0)
                print(oct(os.stat("/mem/d").st_mode))
            """
        ).split()[-1]
        == "0o40750"
    )


def test_a_class_of_glob_that_keeps_scandir_sees_the_mounts(root, monkeypatch):
    """As pathlib's Path.glob() in Python 3.13 and later."""

    class Globber:
        scandir = staticmethod(os.scandir)

    monkeypatch.setattr(glob, "_Globber", Globber, raising=False)
    directfuse.mkdir(f"{root}/sub")
    real = Globber.scandir
    with directfuse.patch():
        assert [entry.name for entry in Globber.scandir(root)] == ["sub"]
    assert Globber.scandir is real
