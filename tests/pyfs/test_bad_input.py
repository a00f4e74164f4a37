"""File systems that do not behave: the caller gets an error, the log the reason, others go on."""

import errno
import os
import reprlib
import stat
import subprocess
import sys
import textwrap
import threading

import pytest

import directfuse
from directfuse import _pyhost

pyfuse3 = pytest.importorskip("pyfuse3")
trio = pytest.importorskip("trio")

from server.forks import expect, in_fork  # noqa: E402

from .notes import Notes, Unmade  # noqa: E402  # needs pyfuse3


class Raising(Notes):
    error = None

    async def read(self, fh, off, size):
        raise self.error


class LateRaising(Raising):
    async def read(self, fh, off, size):
        await trio.lowlevel.checkpoint()
        raise self.error


@pytest.mark.parametrize("kind", [Raising, LateRaising])
@pytest.mark.parametrize(
    ("error", "code", "logged"),
    [
        (lambda: pyfuse3.FUSEError(errno.EACCES), errno.EACCES, False),
        (lambda: OSError(errno.ENOSPC, "full"), errno.ENOSPC, True),
        (lambda: PermissionError(), errno.EIO, True),
        (lambda: OSError(1 << 70, "no number of an error"), errno.EIO, True),
        (lambda: ValueError("what is this"), errno.EIO, True),
        (lambda: pyfuse3.FUSEError(0), errno.EIO, True),
        (lambda: SystemExit(3), errno.EIO, True),
        (lambda: GeneratorExit(), errno.EIO, True),
        (lambda: BaseExceptionGroup("both", [SystemExit(3)]), errno.EIO, True),
    ],
)
def test_what_an_operation_raises(kind, error, code, logged, caplog):
    raising = kind()
    with directfuse.mount(raising, "/bad-raises"):
        raising.error = error()
        fd = directfuse.os_open("/bad-raises/a", os.O_RDONLY)
        for _ in range(2):  # the file system goes on, and its loop
            with pytest.raises(OSError) as caught:
                directfuse.read(fd, 10)
            assert caught.value.errno == code
        directfuse.close(fd)
        assert directfuse.listdir("/bad-raises") == ["a"]
    text = caplog.text
    assert text.count(f"{kind.__name__}.read() raised") == (2 if logged else 0)
    assert text.count(": EIO\n") == (2 if code == errno.EIO else 0)
    assert ("Traceback" in text) == logged


@pytest.mark.parametrize("direct", [False, True])
def test_a_read_that_the_kernel_would_not_send_is_the_end_of_the_file(direct):
    """Its page cache knows the size; with direct_io it has none."""

    class Unreadable(Notes):
        async def open(self, inode, flags, ctx):
            return pyfuse3.FileInfo(fh=inode, direct_io=direct)

        async def read(self, fh, off, size):
            raise pyfuse3.FUSEError(errno.EBADF)

    with directfuse.mount(Unreadable(content="text"), "/bad-behind"):
        fd = directfuse.os_open("/bad-behind/a", os.O_RDONLY)
        ends = []
        for offset in (0, 3, 4, 5):
            try:
                ends.append(directfuse.pread(fd, 10, offset))
            except OSError as error:
                ends.append(error.errno)
        directfuse.close(fd)
    behind = errno.EBADF if direct else b""
    assert ends == [errno.EBADF, errno.EBADF, behind, behind]


@pytest.mark.parametrize("result", [None, 7, "text", b"x" * 11, object()])
def test_a_wrong_result_of_read_is_eio(result, caplog):
    class Wrong(Notes):
        async def read(self, fh, off, size):
            return result

    with directfuse.mount(Wrong(), "/bad-result"):
        fd = directfuse.os_open("/bad-result/a", os.O_RDONLY)
        with pytest.raises(OSError) as caught:
            directfuse.read(fd, 10)
        directfuse.close(fd)
    assert caught.value.errno == errno.EIO
    assert f"Wrong.read() returned {reprlib.repr(result)}: " in caplog.text


WRONG = {
    "lookup": lambda: None,
    "getattr": lambda: {"st_mode": 1},
    "open": lambda: 3,
    "write": lambda: 1000,
    "statfs": lambda: os.statvfs("/"),
    "create": lambda: (1,),
    "getxattr": lambda: "text",
    "listxattr": lambda: 5,
    "opendir": lambda: -1,
}


def call(name, path):
    if name == "lookup":
        directfuse.stat(f"{path}/a")
    elif name == "getattr":
        directfuse.stat(path)
    elif name == "open":
        directfuse.open(f"{path}/a")
    elif name == "write":
        with directfuse.open(f"{path}/a", "wb", buffering=0) as file:
            file.write(b"abc")
    elif name == "statfs":
        directfuse.statvfs(path)
    elif name == "create":
        directfuse.open(f"{path}/new", "x")
    elif name == "opendir":
        directfuse.listdir(path)
    else:
        getattr(directfuse, name)(f"{path}/a", *(["user.x"] if name == "getxattr" else []))


@pytest.mark.parametrize("name", WRONG)
def test_wrong_results_are_eio(name, caplog):
    async def wrong(self, *arguments):
        return WRONG[name]()

    kind = type("Wrong", (Notes,), {name: wrong})
    with directfuse.mount(kind(), "/bad-results"):
        with pytest.raises(OSError) as caught:
            call(name, "/bad-results")
        assert caught.value.errno == errno.EIO
    assert f"Wrong.{name}() returned {reprlib.repr(WRONG[name]())}: " in caplog.text


def test_a_target_that_is_longer_than_a_path_is_eio(caplog):
    """As behind the kernel; it is not cut."""

    class Long(Notes):
        def entry(self, inode):
            entry = super().entry(inode)
            if inode != pyfuse3.ROOT_INODE:
                entry.st_mode = stat.S_IFLNK | 0o777
            return entry

        async def readlink(self, inode, ctx):
            return b"x" * 4096

    with directfuse.mount(Long(), "/bad-target"), pytest.raises(OSError) as caught:
        directfuse.readlink("/bad-target/a")
    assert caught.value.errno == errno.EIO
    assert "a target has at most 4095 bytes, not 4096" in caplog.text


def test_a_size_that_read_many_was_not_told_is_asked_for_again(monkeypatch):
    """After a signal, as everything else is."""
    notes = Notes()

    async def interrupted(inode, ctx=None):
        monkeypatch.undo()
        raise pyfuse3.FUSEError(errno.EINTR)

    with directfuse.mount(notes, "/bad-size"):
        fd = directfuse.os_open("/bad-size/a", os.O_RDONLY)
        monkeypatch.setattr(notes, "getattr", interrupted)
        assert directfuse.read_many([(fd, 0, 7), (fd, 0, None)]) == [b"content", b"content of a"]
        directfuse.close(fd)


def test_a_plain_function_in_place_of_a_coroutine_is_eio(caplog):
    class Plain(Notes):
        def open(self, inode, flags, ctx):
            return pyfuse3.FileInfo(fh=inode)

    with directfuse.mount(Plain(), "/bad-plain"):
        with pytest.raises(OSError) as caught:
            directfuse.open("/bad-plain/a")
    assert caught.value.errno == errno.EIO
    assert "Plain.open() raised TypeError('it has to be `async def`: it returned <" in caplog.text


@pytest.mark.parametrize("what", [Unmade, Unmade(), object(), 5, Notes.read])
def test_what_is_no_file_system_is_refused(what):
    with pytest.raises(directfuse.MountError, match="no file system") as caught:
        directfuse.mount(what, "/bad-kind")
    assert caught.value.errno == errno.EINVAL


class Mixed:
    """fusepy's, but for one method."""

    def getattr(self, path, fh=None):
        return {"st_mode": stat.S_IFDIR | 0o755, "st_nlink": 2}

    def readdir(self, path, fh):
        return [".", ".."]

    async def read(self, path, size, offset, fh):
        return b""


def test_methods_of_both_kinds_are_refused():
    with pytest.raises(directfuse.MountError, match=r"its read\(\) is `async def`, as pyfuse3's"):
        directfuse.mount(Mixed(), "/bad-mixed")


def test_an_init_that_raises_refuses_the_mount():
    class Refuses(Notes):
        def init(self):
            raise RuntimeError("there is no data")

    with pytest.raises(directfuse.MountError, match="there is no data"):
        directfuse.mount(Refuses(), "/bad-init")
    assert not directfuse.mounts()


def test_a_connection_of_another_thread_is_refused_with_the_remedy():
    import sqlite3

    notes = Notes()
    notes.database = sqlite3.connect(":memory:")
    with pytest.raises(directfuse.MountError, match="check_same_thread=False"):
        directfuse.mount(notes, "/bad-sqlite")
    notes.database.close()


class Inside(Notes):
    """Makes one call into its own mount, in the operation that is asked for."""

    def __init__(self):
        super().__init__("a", "b")
        self.asked = self.call = self.error = None

    def enter(self, operation):
        if operation != self.asked:
            return
        self.asked = None
        try:
            self.call()
        except OSError as error:
            self.error = error.errno

    async def lookup(self, parent_inode, name, ctx=None):
        self.enter("lookup")
        return self.entry(self.files[name])

    async def unlink(self, parent_inode, name, ctx):
        self.enter("unlink")
        del self.files[name]

    async def readdir(self, fh, start_id, token):
        self.enter("readdir")

    async def read(self, fh, off, size):
        self.enter("read")
        return b""


class LateInside(Inside):
    """The same in its event loop."""

    async def lookup(self, parent_inode, name, ctx=None):
        await trio.sleep(0)
        return await Inside.lookup(self, parent_inode, name, ctx)

    async def unlink(self, parent_inode, name, ctx):
        await trio.sleep(0)
        await Inside.unlink(self, parent_inode, name, ctx)

    async def readdir(self, fh, start_id, token):
        await trio.sleep(0)
        await Inside.readdir(self, fh, start_id, token)

    async def read(self, fh, off, size):
        await trio.sleep(0)
        return await Inside.read(self, fh, off, size)


INSIDE_CALLS = {
    "read": lambda: directfuse.open("/bad-inside/a").read(),
    "lookup": lambda: directfuse.stat("/bad-inside/a"),
    "readdir": lambda: directfuse.listdir("/bad-inside"),
    "unlink": lambda: directfuse.unlink("/bad-inside/b"),
}


@pytest.mark.parametrize(
    ("operation", "inside"),
    [
        ("read", "lookup"),
        ("lookup", "lookup"),
        ("lookup", "unlink"),
        ("readdir", "unlink"),
        ("unlink", "lookup"),
        ("unlink", "unlink"),
    ],
)
@pytest.mark.parametrize("kind", [Inside, LateInside])
def test_calling_its_own_mount_is_an_error_not_a_deadlock(kind, operation, inside):
    notes = kind()
    notes.call = INSIDE_CALLS[inside]
    with directfuse.mount(notes, "/bad-inside"):
        notes.asked = operation
        INSIDE_CALLS[operation]()
    assert notes.error == errno.EDEADLK


def test_a_call_into_its_own_mount_is_written_down(caplog):
    notes = Inside()
    notes.call = INSIDE_CALLS["lookup"]
    with directfuse.mount(notes, "/bad-inside"):
        notes.asked = "read"
        INSIDE_CALLS["read"]()
    assert "Inside.lookup() raised OSError" in caplog.text
    assert "called into its own mount" in caplog.text


# ---- blocking ------------------------------------------------------------------------------------


class Blocking(Notes):
    """read(), and lookup() of "never", never return, in the loop; everything else does."""

    def __init__(self):
        super().__init__()
        self.begun = threading.Event()

    async def lookup(self, parent_inode, name, ctx=None):
        if name == b"never":
            self.begun.set()
            await trio.sleep_forever()
        return await super().lookup(parent_inode, name, ctx)

    async def read(self, fh, off, size):
        self.begun.set()
        await trio.sleep_forever()


def test_who_waits_for_ever_does_not_stop_the_others():
    blocking = Blocking()
    mount = directfuse.mount(blocking, "/bad-blocking")
    fd = directfuse.os_open("/bad-blocking/a", os.O_RDONLY)
    results = []

    def read():
        try:
            directfuse.read(fd, 10)
        except OSError as error:
            results.append(error.errno)

    reader = threading.Thread(target=read)
    reader.start()
    assert blocking.begun.wait(10)
    assert directfuse.stat("/bad-blocking/a").st_size == 12
    blocking_loop = mount._program.host._loop
    blocking_loop._ask_to_stop()  # nobody would wait for it for ever: its loop ends
    reader.join(10)
    assert results == [errno.EIO]
    directfuse.close(fd)
    mount.unmount()


def test_a_timeout_ends_what_waits_too_long():
    with directfuse.mount(Blocking(), "/bad-timeout", call_timeout=0.5):
        fd = directfuse.os_open("/bad-timeout/a", os.O_RDONLY)
        with pytest.raises(TimeoutError):
            directfuse.read(fd, 10)
        directfuse.close(fd)


class Suicidal(Notes):
    async def read(self, fh, off, size):
        await trio.sleep(0)
        trio.lowlevel.current_root_task().parent_nursery  # noqa: B018  # touches trio
        self.host._loop._nursery.cancel_scope.cancel()
        await trio.sleep_forever()


def test_an_operation_that_ends_its_own_loop():
    notes = Suicidal()
    mount = directfuse.mount(notes, "/bad-loop")
    notes.host = mount._program.host
    fd = directfuse.os_open("/bad-loop/a", os.O_RDONLY)
    for _ in range(2):  # the one that ends it, and one that comes after
        with pytest.raises(OSError) as caught:
            directfuse.read(fd, 10)
        assert caught.value.errno == errno.EIO
    assert directfuse.listdir("/bad-loop") == ["a"], "what runs inline goes on"
    directfuse.close(fd)
    mount.unmount()


# ---- fork, and the end of the interpreter --------------------------------------------------------


def test_fork_while_other_threads_call():
    stop = threading.Event()
    with directfuse.mount(Notes(), "/bad-fork"):

        def call():
            while not stop.is_set():
                directfuse.listdir("/bad-fork")

        threads = [threading.Thread(target=call) for _ in range(2)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(5):
                assert in_fork(lambda: expect(directfuse.listdir("/bad-fork"), ["a"])) == 0
        finally:
            stop.set()
            for thread in threads:
                thread.join()


def test_fork_while_an_operation_runs():
    """The child does not have the thread; the file system serves it nevertheless."""

    class Stuck(Notes):
        inside, go = threading.Event(), threading.Event()

        async def read(self, fh, off, size):
            self.inside.set()
            self.go.wait()
            return b""

    stuck = Stuck()
    with directfuse.mount(stuck, "/bad-stuck"):
        reader = threading.Thread(target=lambda: directfuse.open("/bad-stuck/a").read())
        reader.start()
        try:
            assert stuck.inside.wait(10)
            assert in_fork(lambda: expect(directfuse.listdir("/bad-stuck"), ["a"])) == 0
        finally:
            stuck.go.set()
            reader.join()


def test_an_operation_that_forks_is_still_inside_in_the_child():
    """The end of the interpreter, which waits for those that are, would not wait for the next."""

    class Forking(Notes):
        async def read(self, fh, off, size):
            status = in_fork(lambda: expect(_pyhost.close(0), False))
            return b"" if off else str(status).encode()

    with directfuse.mount(Forking(), "/bad-forking"):
        assert directfuse.open("/bad-forking/a").read() == "0"


def test_the_loop_starts_again_in_a_child():
    class Slow(Notes):
        async def read(self, fh, off, size):
            await trio.sleep(0)
            return await super().read(fh, off, size)

    with directfuse.mount(Slow(), "/bad-slow"):
        assert directfuse.open("/bad-slow/a").read() == "content of a"
        assert in_fork(lambda: expect(directfuse.open("/bad-slow/a").read(), "content of a")) == 0
        assert directfuse.open("/bad-slow/a").read() == "content of a"


def run(code):
    """A Python program of its own, from its text."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=30,
        cwd=os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
    )


@pytest.mark.parametrize("left", ["pass", "file = directfuse.open('/end/a')"])
@pytest.mark.parametrize("kind", ["Notes", "Slow"])
def test_the_interpreter_ends_with_mounts_alive(kind, left):
    done = run(f"""
        import atexit, directfuse, trio
        from pyfs.notes import Notes
        class Slow(Notes):
            async def read(self, fh, off, size):
                await trio.sleep(0)
                return await super().read(fh, off, size)
        mount = directfuse.mount({kind}(), "/end")
        print(directfuse.open("/end/a").read())
        {left}
    """)
    assert (done.returncode, done.stdout, done.stderr) == (0, "content of a\n", "")


@pytest.mark.sweep
def test_threads_may_tell_of_changes_while_the_mount_ends(monkeypatch):
    """It met freed memory, in one of some hundred ends."""
    monkeypatch.setenv("MALLOC_PERTURB_", "85")
    done = run("""
        import contextlib, sys, threading, directfuse
        sys.path.insert(0, "")
        from pyfs.notes import Notes

        def tell(session, ended):
            while not ended.is_set():
                with contextlib.suppress(RuntimeError):  # it is not open
                    session.invalidate_entry(1, b"a", 0)
                    session.invalidate_inode(2, False)
                    session.store(2, 0, bytes(100))

        sys.setswitchinterval(1e-6)
        for number in range(60):
            ended = threading.Event()
            with directfuse.mount(Notes(), f"/bad-told-{number}") as mount:
                arguments = mount._program.host.session, ended
                tellers = [threading.Thread(target=tell, args=arguments) for _ in range(4)]
                for teller in tellers:
                    teller.start()
            ended.set()
            for teller in tellers:
                teller.join()
    """)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("call", ["open('/end/a').read()", "stat('/end/never')"])
def test_the_interpreter_ends_while_an_operation_blocks(call):
    """By an open file, which keeps the mount; and by a name, for which an unmount waits."""
    done = run(f"""
        import directfuse, threading
        from pyfs.test_bad_input import Blocking
        blocking = Blocking()
        directfuse.mount(blocking, "/end")
        call = lambda: directfuse.{call}
        threading.Thread(target=call, daemon=True).start()
        assert blocking.begun.wait(10)
        print("ends")
    """)
    assert done.stdout == "ends\n"
    assert done.returncode == 0, done.stderr


def test_an_operation_that_blocks_keeps_no_other_file_system():
    """What that has retired for readers to leave is freed at its end, whoever is inside."""
    done = run("""
        import directfuse, threading
        from pyfs.test_bad_input import Blocking
        blocking = Blocking()
        directfuse.mount(blocking, "/blocks")
        reader = threading.Thread(target=lambda: directfuse.open("/blocks/a").read(), daemon=True)
        reader.start()
        assert blocking.begun.wait(10)
        with directfuse.mount(["memfs", "/other"]):
            for number in range(100):
                directfuse.mkdir(f"/other/{number}")
                directfuse.rmdir(f"/other/{number}")
        print("unmounted")
    """)
    assert (done.stdout, done.returncode) == ("unmounted\n", 0), done.stderr


def test_what_a_signals_handler_raises_in_an_operation_reaches_the_caller():
    """By a hot call (read) and another one (truncate)."""
    done = run("""
        import directfuse, os, signal, sys
        from pyfs.memory import Memory
        from pyfs.notes import Notes
        def interrupt():
            os.kill(os.getpid(), number)
            for _ in range(1000000):
                pass
        class Nodes(Notes):
            async def read(self, fh, off, size):
                interrupt()
            async def setattr(self, inode, attr, fields, fh, ctx):
                interrupt()
        class Paths(Memory):
            def read(self, path, size, offset, fh):
                interrupt()
            def truncate(self, path, length, fh=None):
                interrupt()
        def late(number, frame):
            raise TimeoutError("late")
        signal.signal(signal.SIGALRM, late)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))
        for number in signal.SIGINT, signal.SIGTERM, signal.SIGALRM:
            for made in Nodes(), Paths():
                with directfuse.mount(made, "/interrupted"):
                    fd = directfuse.os_open("/interrupted/a", 0)
                    for call in directfuse.read, directfuse.truncate:
                        try:
                            call(fd if call is directfuse.read else "/interrupted/a", 5)
                        except BaseException as error:
                            print(repr(error))
                    directfuse.close(fd)
    """)
    ends = ["KeyboardInterrupt()", "SystemExit(3)", "TimeoutError('late')"]
    assert done.stdout.split("\n")[:-1] == [end for end in ends for _ in range(4)], done.stderr
    assert (done.returncode, done.stderr) == (0, "")


def test_a_signals_handler_that_raises_while_a_file_system_is_mounted():
    """Nothing is mounted then, and nothing is left for the interpreter's end to wait for."""
    done = run("""
        import directfuse, os, signal
        from pyfs.memory import Memory
        from pyfs.notes import Notes
        class Nodes(Notes):
            def init(self):
                os.kill(os.getpid(), signal.SIGINT)
        class Paths(Memory):
            def init(self, path):
                os.kill(os.getpid(), signal.SIGINT)
        for made in Nodes(), Paths():
            try:
                directfuse.mount(made, "/interrupted")
            except KeyboardInterrupt as error:
                print(repr(error), directfuse.mounts())
    """)
    assert (done.stdout, done.stderr) == ("KeyboardInterrupt() []\n" * 2, "")


def test_the_interpreter_ends_with_a_mount_that_nobody_heard_of():
    """A signal's handler raises right behind the mounting, and once more while that is undone."""
    done = run("""
        import directfuse
        from directfuse import _mount
        from pyfs.notes import Notes
        def interrupted(*_):
            raise KeyboardInterrupt
        _mount._made = _mount._undo = interrupted
        try:
            directfuse.mount(Notes(), "/unheard")
        except KeyboardInterrupt:
            print(directfuse.listdir("/unheard"))
    """)
    assert (done.returncode, done.stdout, done.stderr) == (0, "['a']\n", "")


@pytest.mark.parametrize("place", ["loops.TrioLoop._post", "nodes.Host.post"])
def test_a_signals_handler_that_raises_while_a_loop_is_asked(place):
    """Nobody would answer what the loop has not got."""
    done = run(f"""
        import directfuse, os, signal, sys, trio
        from directfuse._python import loops, nodes
        from pyfs.notes import Notes
        class Slow(Notes):
            async def read(self, fh, off, size):
                await trio.sleep(0)
                return await super().read(fh, off, size)
        def interrupted(self, job):
            {place} = post
            os.kill(os.getpid(), signal.SIGTERM)
            for _ in range(1000000):
                pass
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))
        post, {place} = {place}, interrupted
        with directfuse.mount(Slow(), "/interrupted"):
            fd = directfuse.os_open("/interrupted/a", 0)
            try:
                directfuse.read(fd, 7)
            except SystemExit as error:
                print(repr(error), directfuse.read(fd, 7))
            directfuse.close(fd)
    """)
    assert (done.stdout, done.stderr) == ("SystemExit(3) b'content'\n", "")


def test_who_asks_for_the_size_behind_a_real_link_leaves_the_gil_to_the_loop(tmp_path):
    link = os.fspath(tmp_path / "link")
    os.symlink("/bad-link/a", link)
    done = run(f"""
        import directfuse, trio
        from pyfs.notes import Notes
        class Slow(Notes):
            async def getattr(self, inode, ctx=None):
                await trio.sleep(0.02)
                return self.entry(inode)
        with directfuse.mount(Slow(), "/bad-link"):
            print(directfuse.read_many([{link!r}]))
    """)
    assert (done.returncode, done.stdout) == (0, "[b'content of a']\n"), done.stderr


_ENDED = """
class Ends(Notes):
    async def unlink(self, parent, name, ctx):
        pyfuse3.terminate()
ended = directfuse.mount(Ends(), "/bad-ended")
directfuse.remove("/bad-ended/a")
while ended.mounted:
    time.sleep(0.01)
"""


@pytest.mark.parametrize("left", ["", _ENDED], ids=["", "none"])
@pytest.mark.parametrize("act", ["directfuse.listdir(fd)", "scan.close()"])
def test_who_lists_a_descriptor_leaves_the_gil_to_who_forks(act, left):
    """The gate of the core is closed while a fork begins: who waits there has given up the GIL,
    also where only prompt mounts are left, for which it is kept otherwise."""
    mount = '"memfs /bad-gate"' if left else 'Notes(), "/bad-gate"'
    left = textwrap.indent(left, " " * 8)
    done = run(f"""
        import os, threading, time
        import directfuse, pyfuse3
        from directfuse import _fast
        from pyfs.notes import Notes
        closed = threading.Event()
        def list_it():
            closed.wait()
            {act}
            print("listed")
        def sleeps():
            with open(f"/proc/self/task/{{lister.native_id}}/stat") as file:
                return file.read().rpartition(") ")[2][0] == "S"
        def close_the_gate(seconds):
            quiesce(seconds)
            closed.set()
            looks = 0
            while looks < 3:
                looks = looks + 1 if sleeps() else 0
                time.sleep(0.01)
        quiesce, _fast.quiesce = _fast.quiesce, close_the_gate
        {left}
        with directfuse.mount({mount}):
            fd = directfuse.os_open("/bad-gate", os.O_RDONLY | os.O_DIRECTORY)
            scan = directfuse.scandir(fd)
            lister = threading.Thread(target=list_it)
            lister.start()
            if os.fork() == 0:
                os._exit(0)
            lister.join()
            scan.close()
            directfuse.close(fd)
    """)
    assert (done.returncode, done.stdout) == (0, "listed\n"), done.stderr


def test_fork_while_the_loop_has_work(caplog):
    """The child cannot finish it: what needs the loop is refused there, what does not goes on."""
    blocking = Blocking()
    mount = directfuse.mount(blocking, "/bad-work")
    fd = directfuse.os_open("/bad-work/a", os.O_RDONLY)

    def read():
        with pytest.raises(OSError, match="Input/output"):
            directfuse.read(fd, 10)

    reader = threading.Thread(target=read)
    reader.start()
    assert blocking.begun.wait(10)

    def child():
        assert directfuse.listdir("/bad-work") == ["a"]
        with pytest.raises(OSError) as caught:
            directfuse.open("/bad-work/a").read()
        assert caught.value.errno == errno.EIO

    try:
        assert in_fork(child) == 0
    finally:
        mount._program.host._loop._ask_to_stop()
        reader.join(10)
        directfuse.close(fd)
        mount.unmount()
