"""pyfuse3 file systems that are objects, mounted without a program around them."""

import ctypes
import errno
import io
import os
import queue
import signal
import stat
import struct
import subprocess
import sys
import textwrap
import threading
import time

import pytest

import directfuse
from directfuse import _paths, _pyhost
from directfuse._python import nodes
from directfuse._python.nodes import Host
from directfuse._python.writeback import WriteBack

pyfuse3 = pytest.importorskip("pyfuse3")
trio = pytest.importorskip("trio")

from .memory import Memory  # noqa: E402
from .notes import Notes  # noqa: E402  # needs pyfuse3


def test_an_object_is_mounted_and_used():
    with directfuse.mount(Notes("a", "b"), "/pyfs-object") as mount:
        assert directfuse.listdir("/pyfs-object") == ["a", "b"]
        with directfuse.open("/pyfs-object/c", "w") as file:
            file.write("new")
        with directfuse.open("/pyfs-object/c") as file:
            assert file.read() == "new"
        directfuse.remove("/pyfs-object/a")
        assert directfuse.listdir("/pyfs-object") == ["b", "c"]
        assert mount.stats().ops["read"].calls >= 1
    assert not mount.mounted


def test_a_class_is_made_on_mounting():
    with directfuse.mount(Notes, "/pyfs-class"):
        assert directfuse.listdir("/pyfs-class") == ["a"]


def test_who_looks_while_a_directory_is_closed_finds_the_scan_at_its_end():
    """Not its descriptor, which may be another file's by then."""
    looked = []

    class Looks(Notes):
        async def releasedir(self, fh):
            looked.append(next(scan, "the end"))

    with directfuse.mount(Looks("a", "b"), "/pyfs-looks"):
        scan = directfuse.scandir("/pyfs-looks")
        assert [entry.name for entry in scan] == ["a", "b"]
    assert looked == ["the end"]


def test_init_runs_once_before_the_first_call():
    notes = Notes()
    with directfuse.mount(notes, "/pyfs-init"):
        assert notes.events == ["init"]


def test_operations_that_cannot_suspend_run_on_the_callers_thread():
    class Where(Notes):
        async def read(self, fh, off, size):
            self.thread = threading.get_ident()
            return await super().read(fh, off, size)

    where = Where()
    with directfuse.mount(where, "/pyfs-inline") as mount:
        assert directfuse.open("/pyfs-inline/a").read() == "content of a"
        driven = mount.stats().driven
    assert where.thread == threading.get_ident()
    assert driven["read"] == driven["lookup"] == "inline"


def test_the_caller_is_told():
    class Asked(Notes):
        async def open(self, inode, flags, ctx):
            self.caller = ctx.uid, ctx.gid, ctx.pid
            return await super().open(inode, flags, ctx)

    asked = Asked()
    with directfuse.mount(asked, "/pyfs-caller"):
        directfuse.open("/pyfs-caller/a").close()
    assert asked.caller == (os.getuid(), os.getgid(), os.getpid())


def test_a_method_may_be_replaced_while_mounted(monkeypatch):
    notes = Notes()
    with directfuse.mount(notes, "/pyfs-replaced"):
        assert directfuse.open("/pyfs-replaced/a").read() == "content of a"

        async def read(fh, off, size):
            return b"replaced"[off:]

        monkeypatch.setattr(notes, "read", read)
        assert directfuse.open("/pyfs-replaced/a").read() == "replaced"


def test_a_large_directory_is_listed_whole():
    names = [f"file {number:04}" for number in range(3000)]
    with directfuse.mount(Notes(*names), "/pyfs-large"):
        assert directfuse.listdir("/pyfs-large") == names


def test_options_of_an_object():
    with directfuse.mount(Notes(), "/pyfs-options", options=["ro", "fsname=mine"]) as mount:
        assert mount.read_only
        assert mount.fsname == "mine"
        with pytest.raises(OSError, match="Read-only"):
            directfuse.open("/pyfs-options/a", "w")
    with pytest.raises(TypeError, match=r"options=\['ro'\]"):
        directfuse.mount(Notes(), "/pyfs-options", options="ro")


def test_two_file_systems_side_by_side():
    with directfuse.mount(Notes("x"), "/pyfs-one"), directfuse.mount(Notes("y"), "/pyfs-two"):
        assert directfuse.listdir("/pyfs-one") == ["x"]
        assert directfuse.listdir("/pyfs-two") == ["y"]


def test_threads_that_python_does_not_know_call_too():
    """pthread_create() itself runs df_opendir(): neither the thread nor the call is Python's."""
    libc, library = ctypes.CDLL(None), ctypes.CDLL(os.fspath(_paths.library()))
    with directfuse.mount(Notes(), "/pyfs-c") as mount:
        path = ctypes.c_char_p(b"/pyfs-c")
        threads = [ctypes.c_ulong() for _ in range(8)]
        for thread in threads:
            assert libc.pthread_create(ctypes.byref(thread), None, library.df_opendir, path) == 0
        for thread in threads:
            opened = ctypes.c_void_p()
            assert libc.pthread_join(thread, ctypes.byref(opened)) == 0
            assert opened.value
            assert library.df_closedir(opened) == 0
        assert mount.stats().ops["open"].calls == len(threads)


class Stopping(Notes):
    async def open(self, inode, flags, ctx):
        raise KeyboardInterrupt


class StoppingByPath(Memory):
    def open(self, path, flags):
        raise KeyboardInterrupt


@pytest.mark.parametrize("kind", [Stopping, StoppingByPath])
def test_an_interrupt_that_no_signal_has_raised_is_an_error(kind, caplog):
    """Signals are handled on the main thread, and a mount server's operations run on others. As
    EINTR, it would be tried again by who opens the file, without an end."""
    failed = []

    def call():
        try:
            directfuse.os_open("/pyfs/a", os.O_RDONLY)
        except OSError as error:
            failed.append(error.errno)

    with directfuse.mount(kind(), "/pyfs"):
        thread = threading.Thread(target=call)
        thread.start()
        thread.join()
    assert failed == [errno.EIO]
    assert f"{kind.__name__}.open() raised KeyboardInterrupt(): EIO" in caplog.text


class Cached(Notes):
    def entry(self, inode):
        entry = super().entry(inode)
        entry.entry_timeout = entry.attr_timeout = 300
        return entry


def test_notifications_reach_the_mount():
    cached = Cached()
    with directfuse.mount(cached, "/pyfs-notify"):
        inode = directfuse.stat("/pyfs-notify/a").st_ino
        cached.data[inode] += b" and more"
        assert directfuse.stat("/pyfs-notify/a").st_size == len(b"content of a")
        pyfuse3.invalidate_inode(inode, attr_only=True)
        assert directfuse.stat("/pyfs-notify/a").st_size == len(b"content of a and more")
        with pytest.raises(FileNotFoundError):
            pyfuse3.invalidate_entry(pyfuse3.ROOT_INODE, b"unknown")


WATCHED = []


class Watched(Cached):
    """A thread of its own sees changes, and tells of them."""

    def __init__(self):
        super().__init__()
        self.changes, self.answers = queue.SimpleQueue(), queue.SimpleQueue()
        threading.Thread(target=self.watch, daemon=True).start()
        WATCHED.append(self)

    def watch(self):
        for inode in iter(self.changes.get, None):
            try:
                self.answers.put(pyfuse3.invalidate_inode(inode))
            except BaseException as error:
                self.answers.put(error)


def test_notifications_of_a_thread_that_a_class_starts_reach_its_own_mount():
    with directfuse.mount(Watched, "/pyfs-one"), directfuse.mount(Watched, "/pyfs-other"):
        sizes = []
        for notes, point in zip(WATCHED, ("/pyfs-one", "/pyfs-other"), strict=True):
            inode = directfuse.stat(f"{point}/a").st_ino
            notes.data[inode] += b" and more"
            notes.changes.put(inode)
            assert notes.answers.get(timeout=10) is None
            sizes.append(directfuse.stat(f"{point}/a").st_size)
            notes.changes.put(None)
    assert sizes == [len(b"content of a and more")] * 2


class Replaced(Cached):
    """By setxattr() the name `a` becomes another file."""

    async def setxattr(self, inode, name, value, ctx):
        self.files[b"a"] = self.add(b"b", b"another")
        pyfuse3.invalidate_entry_async(pyfuse3.ROOT_INODE, b"a")


def test_invalidating_later_is_about_the_file_system_that_asks_for_it():
    """Also when the one that was the first to do so is gone."""

    def until_it_is_looked_up(point):
        directfuse.stat(f"{point}/a")
        directfuse.setxattr(f"{point}/a", "user.replace", b"")
        end = time.monotonic() + 10
        while directfuse.stat(f"{point}/a").st_size != len(b"another"):
            assert time.monotonic() < end

    with directfuse.mount(Replaced(), "/pyfs-second"):
        with directfuse.mount(Replaced(), "/pyfs-first"):
            until_it_is_looked_up("/pyfs-first")
        until_it_is_looked_up("/pyfs-second")


def test_the_log_has_what_cannot_be_invalidated_later(monkeypatch):
    class Asks(Notes):
        async def setxattr(self, inode, name, value, ctx):
            pyfuse3.invalidate_entry_async(pyfuse3.ROOT_INODE, b"unknown", 0, True)
            pyfuse3.invalidate_entry_async(pyfuse3.ROOT_INODE, value)

    logged = queue.SimpleQueue()
    monkeypatch.setattr(nodes.log, "exception", lambda text, *words: logged.put(text % words))
    with directfuse.mount(Asks(), "/pyfs-asks"):
        directfuse.setxattr("/pyfs-asks/a", "user.ask", b"strange")
        assert logged.get(timeout=10) == "invalidate_entry_async(1, b'strange')"


class WritesBack(Notes):
    """Leaves sizes and times to the kernel's write-back cache, as that allows it to."""

    enable_writeback_cache = True

    def __init__(self, *names):
        super().__init__(*names)
        self.times = {}

    def entry(self, inode):
        entry = super().entry(inode)
        entry.st_mtime_ns, entry.st_ctime_ns = self.times.get(inode, (0, 0))
        return entry

    async def setattr(self, inode, attr, fields, fh, ctx):
        mtime, ctime = self.times.get(inode, (0, 0))
        self.times[inode] = (
            attr.st_mtime_ns if fields.update_mtime else mtime,
            attr.st_ctime_ns if fields.update_ctime else ctime,
        )
        return await super().setattr(inode, attr, fields, fh, ctx)

    async def write(self, fh, off, buf):
        assert off <= len(self.data[fh]), "the kernel fills holes"
        return await super().write(fh, off, buf)

    async def release(self, fh):
        pass

    async def rename(self, parent_old, name_old, parent_new, name_new, flags, ctx):
        self.files[name_new] = self.files.pop(name_old)


class InterruptsItsWriter(Notes):
    """Once; the signal's handler is run in the middle of the operation."""

    async def write(self, fh, off, buf):
        self.events.append("write")
        if self.events == ["write"]:
            signal.raise_signal(signal.SIGUSR1)
        return await super().write(fh, off, buf)


@pytest.fixture
def raising_handler():
    def late(number, frame):
        raise TimeoutError("late")

    former = signal.signal(signal.SIGUSR1, late)
    yield
    signal.signal(signal.SIGUSR1, former)


def test_memory_is_written_back_though_a_signals_handler_raises_meanwhile(raising_handler):
    notes = InterruptsItsWriter()
    with directfuse.mount(notes, "/pyfs-memory"):
        fd = directfuse.os_open("/pyfs-memory/a", os.O_RDWR)
        memory = directfuse.mmap(fd, 7)
        memory[0:3] = b"CON"
        notes.events.clear()
        with pytest.raises(TimeoutError, match="late"):
            memory.close()
        assert memory.closed
        assert directfuse.pread(fd, 7, 0) == b"CONtent"
        directfuse.close(fd)


def test_memory_that_was_not_closed_is_written_back_though_a_signals_handler_raises(
    raising_handler, monkeypatch
):
    unraisable = []
    monkeypatch.setattr("sys.unraisablehook", lambda said: unraisable.append(said.exc_type))
    notes = InterruptsItsWriter()
    with directfuse.mount(notes, "/pyfs-memory"):
        fd = directfuse.os_open("/pyfs-memory/a", os.O_RDWR)
        memory = directfuse.mmap(fd, 7)
        memory[3:7] = b"TENT"
        notes.events.clear()
        del memory
        assert directfuse.pread(fd, 7, 0) == b"conTENT"
        directfuse.close(fd)
    assert unraisable == [TimeoutError]


def test_the_duties_of_the_write_back_cache():
    with directfuse.mount(WritesBack("a", "b"), "/pyfs-back") as mount:
        fd = directfuse.os_open("/pyfs-back/a", os.O_RDWR | os.O_TRUNC)
        assert directfuse.fstat(fd).st_size == 0
        assert directfuse.pwrite(fd, b"end", 100) == 3
        assert directfuse.pread(fd, 200, 0) == bytes(100) + b"end"
        assert directfuse.fstat(fd).st_mtime_ns > 0
        directfuse.close(fd)
        assert directfuse.stat("/pyfs-back/b").st_ctime_ns == 0
        directfuse.rename("/pyfs-back/b", "/pyfs-back/c")
        assert directfuse.stat("/pyfs-back/c").st_ctime_ns > 0
        directfuse.remove("/pyfs-back/c")
        assert mount.stats().driven["write"] == "inline"


def test_closed_files_leave_nothing_to_the_write_back_cache():
    served = WriteBack(WritesBack("a"))

    async def life():
        first, second = [(await served.open(2, os.O_RDWR, None)).fh for _ in range(2)]
        assert first == second
        await served.release(first)
        assert await served.write(second, 0, b"still open") == 10
        await served.release(second)

    with directfuse.mount(Notes, "/pyfs-any"):  # readies the classes of pyfuse3
        trio.run(life)
    assert not served._opened


def test_a_link_where_there_are_none():
    """link(2): EPERM, and so Linux says since 6.15 for a file system without the operation."""
    with directfuse.mount(Notes, "/pyfs-link"), pytest.raises(PermissionError):
        directfuse.link("/pyfs-link/a", "/pyfs-link/b")


class Stream(Notes):
    """Tells a size that its files do not have, and nobody can go back in them."""

    def entry(self, inode):
        entry = super().entry(inode)
        if inode != pyfuse3.ROOT_INODE:
            entry.st_size = 4096
        return entry

    async def open(self, inode, flags, ctx):
        return pyfuse3.FileInfo(fh=inode, direct_io=True, nonseekable=True)


@pytest.mark.parametrize("text", ["plain", "two\r\nlines\r", "\u20ac"])
def test_text_in_which_nobody_can_go_back(text):
    with directfuse.mount(Stream(content=text), "/objects-stream"):
        with directfuse.open("/objects-stream/a", encoding="utf-8") as file:
            assert file.read() == io.StringIO(text, newline=None).read()


def test_a_mountpoint_that_is_no_text():
    with directfuse.mount(Notes(), os.fsdecode(b"/objects-\xff")):
        assert directfuse.listdir(b"/objects-\xff") == [b"a"]


def test_a_session_that_did_not_open_needs_no_end():
    session = Host(Notes()).session
    before = sys.getrefcount(session)
    with pytest.raises(RuntimeError, match="fuse_session_mount"):
        session.open(["pyfuse3"], "/objects-outside")  # this thread is no plugin's
    session.close()
    assert sys.getrefcount(session) == before


def test_a_session_is_opened_once():
    """Else the first one would be lost."""
    with directfuse.mount(Notes(), "/objects-once") as mount:
        session = mount._program.host.session
        with pytest.raises(RuntimeError, match="is open"):
            session.open(["pyfuse3"], "/objects-twice")
        assert session.invalidate_inode(pyfuse3.ROOT_INODE, True) == 0


def test_a_program_that_is_refused_before_it_runs_is_not_kept():
    def program():
        pytest.fail("it is not run")

    before = sys.getrefcount(program)
    made, unknown = [], 1 << 15
    code, _ = _pyhost.mount(["program", "/objects-refused"], program, unknown, made)
    assert (code, made, sys.getrefcount(program)) == (-errno.EINVAL, [], before)


def test_others_print_while_it_is_mounted_although_there_is_no_output(tmp_path):
    """Where its descriptor was closed, sys.stdout is None, and print() does nothing."""
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent("""
            import sys, threading, directfuse

            class Slow:
                def __init__(self):
                    printing.start()
                    printing.join()
                    print("heard by nobody, too", flush=True)
                def getattr(self, path, fh=None):
                    return {"st_mode": 0o40755, "st_nlink": 2}
                def readdir(self, path, fh):
                    return [".", ".."]

            def say():
                print("nobody hears", flush=True)
                said.append(1)

            said = []
            printing = threading.Thread(target=say)
            with directfuse.mount(Slow, "/objects-silent"):
                sys.exit(said != [1] or sys.stdout is not None)
        """)
    )
    words = ["sh", "-c", 'exec "$@" >&-', "sh", sys.executable, str(script)]
    done = subprocess.run(words, stderr=subprocess.PIPE, text=True, timeout=40, check=False)
    assert (done.returncode, done.stderr) == (0, "")


class Guarded(Notes):
    """Its file lets user 1000 in by a list, though not by its mode."""

    def entry(self, inode):
        entry = super().entry(inode)
        if inode != pyfuse3.ROOT_INODE:
            entry.st_mode = stat.S_IFREG | 0o660
        return entry

    async def getxattr(self, inode, name, ctx):
        if inode == pyfuse3.ROOT_INODE or name != b"system.posix_acl_access":
            raise pyfuse3.FUSEError(errno.ENODATA)
        rights = (1, 6, -1), (2, 4, 1000), (4, 0, -1), (0x10, 6, -1), (0x20, 0, -1)
        return struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *entry) for entry in rights)


def may_read_as(uid, path):
    groups = os.getgroups()
    os.setgroups([])
    os.setegid(uid)
    os.seteuid(uid)
    directfuse.identity_refresh()
    try:
        directfuse.open(path).close()
    except PermissionError:
        return False
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups(groups)
        directfuse.identity_refresh()
    return True


@pytest.mark.skipif(os.geteuid() != 0, reason="acting as another user needs root")
@pytest.mark.parametrize("asks", [True, False])
def test_lists_are_consulted_for_who_asks_for_that(asks):
    guarded = Guarded()
    guarded.enable_acl = asks
    options = ["allow_other"] if asks else ["allow_other", "default_permissions"]
    with directfuse.mount(guarded, "/pyfs-lists", options=options):
        assert may_read_as(1000, "/pyfs-lists/a") == asks
        assert not may_read_as(1001, "/pyfs-lists/a")
