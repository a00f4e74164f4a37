"""Operations that may suspend: they run in an event loop, and nothing interleaves with them that
the loop itself would not let in between."""

import asyncio
import contextlib
import errno
import gc
import operator
import os
import signal
import sys
import threading
from types import SimpleNamespace

import pytest

import directfuse
from directfuse._pyhost import Turn
from directfuse._python import loops, nodes
from directfuse._python.loops import (
    AsyncioLoop,
    Loop,
    TrioLoop,
    _Tasks,
    foreign_asyncio,
    foreign_trio,
)
from directfuse._python.nodes import Host
from directfuse._python.suspend import why_suspends

pyfuse3 = pytest.importorskip("pyfuse3")
trio = pytest.importorskip("trio")

from .notes import Notes  # noqa: E402  # needs pyfuse3
from .programs import TESTS  # noqa: E402


class Slow(Notes):
    """Suspends in lookup and read."""

    async def lookup(self, parent_inode, name, ctx=None):
        await trio.sleep(0)
        self.thread = threading.current_thread()
        return await super().lookup(parent_inode, name, ctx)

    async def read(self, fh, off, size):
        await trio.lowlevel.checkpoint()
        return await super().read(fh, off, size)


def test_operations_that_may_suspend_run_in_a_loop_thread():
    slow = Slow()
    with directfuse.mount(slow, "/loops-slow") as mount:
        assert directfuse.open("/loops-slow/a").read() == "content of a"
        driven = mount.stats().driven
    assert slow.thread is not threading.current_thread()
    assert driven["getattr"] == "inline"
    assert driven["lookup"].startswith("loop: it ")
    assert not slow.thread.is_alive(), "the loop outlives its mount"


class Fickle(Notes):
    """Of the looks that are counted only the second finds anything, while the first goes on."""

    looks, begun = None, threading.Event()

    async def lookup(self, parent_inode, name, ctx=None):
        if self.looks is not None:
            self.looks += 1
        if self.looks == 1:
            self.token, self.go = trio.lowlevel.current_trio_token(), trio.Event()
            self.begun.set()
            await self.go.wait()
        if self.looks not in (None, 2):
            raise pyfuse3.FUSEError(errno.EACCES)
        return await super().lookup(parent_inode, name, ctx)


def test_an_entry_that_two_threads_look_at():
    """One fails, the other was faster: each has what it got itself."""
    fickle, ends = Fickle(), []

    def look():
        try:
            ends.append(operator.methodcaller("stat")(entry))  # looks at what comes back from C
        except Exception as error:
            ends.append(error)

    with directfuse.mount(fickle, "/loops-fickle"):
        (entry,) = directfuse.scandir("/loops-fickle")
        fickle.looks = 0
        thread = threading.Thread(target=look)
        thread.start()
        assert fickle.begun.wait(10)
        assert entry.stat().st_size == 12
        fickle.looks = 3
        fickle.token.run_sync_soon(fickle.go.set)
        thread.join()
    assert isinstance(ends[0], PermissionError)


@pytest.fixture
def asyncio_mode():
    import pyfuse3.asyncio

    pyfuse3.asyncio.enable()
    yield
    pyfuse3.asyncio.disable()


class SlowAsyncio(Notes):
    async def read(self, fh, off, size):
        await asyncio.sleep(0)
        self.loop = asyncio.get_running_loop()
        return await super().read(fh, off, size)


@pytest.mark.usefixtures("asyncio_mode")
def test_a_program_that_wants_asyncio_gets_it():
    slow = SlowAsyncio()
    with directfuse.mount(slow, "/loops-asyncio"):
        assert directfuse.open("/loops-asyncio/a").read() == "content of a"
    assert isinstance(slow.loop, asyncio.AbstractEventLoop)
    assert slow.loop.is_closed()


@pytest.mark.usefixtures("asyncio_mode")
def test_one_that_is_written_for_trio_gets_that_after_another_enabled_asyncio(
    tmp_path, monkeypatch
):
    (tmp_path / "for_trio.py").write_text(
        "import trio\nfrom pyfs.notes import Notes\nclass Fs(Notes):\n"
        "    async def read(self, fh, off, size):\n"
        "        await trio.sleep(0)\n"
        "        return await super().read(fh, off, size)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.syspath_prepend(TESTS)
    with directfuse.mount("for_trio:Fs /loops-for-trio"):
        assert directfuse.open("/loops-for-trio/a").read() == "content of a"


class Torn(Notes):
    """Between two suspensions an operation leaves something half done; nobody may see that."""

    halves = 0
    seen = False

    async def getattr(self, inode, ctx=None):  # inline
        self.seen = self.seen or self.halves % 2 == 1
        return self.entry(inode)

    async def read(self, fh, off, size):  # in the loop
        for _ in range(20):
            self.halves += 1
            for _ in range(200):
                self.seen = self.seen or self.halves % 2 == 0
            self.halves += 1
            await trio.sleep(0)
        return b""


def test_nothing_interleaves_that_trio_would_not_let_in_between():
    torn = Torn()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # so that threads do interleave, where they may
    try:
        with directfuse.mount(torn, "/loops-torn") as mount:
            descriptors = [directfuse.os_open("/loops-torn/a", 0) for _ in range(3)]

            def read(descriptor):
                for _ in range(3):
                    directfuse.pread(descriptor, 10, 0)

            def look(descriptor):
                for _ in range(200):
                    directfuse.fstat(descriptor)

            threads = [threading.Thread(target=read, args=[descriptors[0]]) for _ in range(2)]
            threads += [threading.Thread(target=look, args=[fd]) for fd in descriptors[1:]]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            for fd in descriptors:
                directfuse.close(fd)
            assert mount.stats().driven["getattr"] == "inline"
            assert mount.stats().driven["read"] != "inline"
    finally:
        sys.setswitchinterval(interval)
    assert not torn.seen


# ---- the judgement -------------------------------------------------------------------------------


async def elsewhere():
    await trio.sleep(0)


async def harmless():
    return 1


def notify():
    trio.lowlevel.current_task()


class Judged:
    def __init__(self):
        self.lock = trio.Lock()
        self.plain = threading.Lock()
        self.helper = Helper()

    async def plainly(self):
        with self.plain:
            return [value + 1 for value in range(3)]

    async def own(self):
        return await self.plainly()

    async def of_module(self):
        return await harmless()

    async def awaits_module(self):
        return await elsewhere()

    async def awaits_unknown(self, event):
        await event.wait()

    async def awaits_attribute(self):
        async with self.lock:
            pass

    async def touches_lock(self):
        self.lock.release()

    async def touches_by_name(self, channel):
        channel.send_nowait(1)

    async def touches_by_function(self):
        notify()

    async def touches_by_helper(self):
        self.helper.tell()

    async def imports(self):
        import trio.lowlevel as low

        low.current_task()

    async def iterates(self, source):
        async for _ in source:
            pass

    async def nested(self):
        def inner():
            trio.sleep(0)

        inner()


class Helper:
    def tell(self):
        trio.lowlevel.current_task()


SAFE = {"plainly", "own", "of_module"}
NAMES = [name for name, member in vars(Judged).items() if asyncio.iscoroutinefunction(member)]


@pytest.mark.parametrize("name", NAMES)
def test_judgement(name):
    judged = Judged()
    why = why_suspends(getattr(judged, name), judged)
    assert (why is None) == (name in SAFE), why


def test_a_wrong_judgement_is_an_error_and_does_not_happen_again(caplog):

    class Hidden(Notes):
        async def read(self, fh, off, size):
            return (await self.fetch(size))[off:]

        async def fetch(self, size):
            return b"fetched"

    hidden = Hidden()
    with directfuse.mount(hidden, "/loops-hidden") as mount:
        assert directfuse.open("/loops-hidden/a").read() == "fetched"
        assert mount.stats().driven["read"] == "inline"

        async def suspends(size):
            await trio.sleep(0)
            return b"later"

        hidden.fetch = suspends  # read() itself is the same as when it was judged
        with pytest.raises(OSError, match="Input/output"):
            directfuse.open("/loops-hidden/a").read()
        assert "suspended" in caplog.text
        assert directfuse.open("/loops-hidden/a").read() == "later"


class PostedJob:
    """A read, as the loop gets it."""

    operation = "read"

    def __init__(self):
        self.said = []
        self.refuse = self.answer

    def answer(self, what):
        if not self.said:  # only one answer goes out
            self.said.append(what)

    async def call(self):
        return b"read"


@pytest.mark.filterwarnings("error")
class Idle(Loop):
    """Has jobs, of which others see to it that they are run."""

    call = stop = _post = None


@pytest.mark.parametrize("early", [True, False])
def test_what_comes_while_a_loop_of_asyncio_ends_is_refused(early):
    """Whether it has become a task by then or not; and no coroutine is left that nobody awaits."""
    loop, owner, job = asyncio.new_event_loop(), Idle(), PostedJob()
    tasks = _Tasks(loop, None, owner)
    owner.alive = True
    owner.flying.add(job)

    async def end():
        if early:
            tasks._begin(job)
        owner.alive = False
        running = tasks.cancel()
        if not early:
            tasks._begin(job)
        assert len(running) == early
        await asyncio.gather(*running, return_exceptions=True)

    loop.run_until_complete(end())
    loop.close()
    gc.collect()
    assert (job.said, owner.flying) == ([errno.EIO], set())


@pytest.mark.parametrize("manager", [foreign_asyncio, foreign_trio])
def test_what_a_loop_of_the_programs_does_not_come_to_is_refused(manager):
    early, late = PostedJob(), PostedJob()

    async def program():
        async with manager(SimpleNamespace(take=int, give=int), None) as loop:
            loop.post(early)
        loop.post(late)
        return [*early.said], [*late.said], loop.flying

    ended = asyncio.run(program()) if manager is foreign_asyncio else trio.run(program)
    assert ended == ([errno.EIO], [errno.EIO], set())


def test_a_program_that_is_cancelled_while_its_loop_ends_gives_the_turn_back():
    """asyncio waits there for operations that were under way."""
    turn = Turn()
    loop = None

    async def lingers():
        task = asyncio.current_task()
        while not task.cancelling():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(60)
        await asyncio.sleep(60)

    async def program():
        nonlocal loop
        async with foreign_asyncio(turn, None) as loop:
            loop._tasks.running.add(asyncio.create_task(lingers()))
            await asyncio.sleep(0)
            asyncio.get_running_loop().call_soon(asyncio.current_task().cancel)

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(program())
    assert not turn.is_mine()


@pytest.mark.parametrize("kind", [AsyncioLoop, TrioLoop])
def test_a_loop_that_is_stopped_while_it_starts_leaves_no_thread(kind, monkeypatch):
    """The starting thread was interrupted by a signal, for example, whose handler raises."""

    class Interrupted(threading.Event):
        def wait(self, timeout=None):
            raise KeyboardInterrupt

    host = Host(Slow())
    monkeypatch.setattr(nodes.loops, "threading", SimpleNamespace(**vars(threading)))
    monkeypatch.setattr(nodes.loops.threading, "Event", Interrupted)
    monkeypatch.setattr(nodes.loops, "TrioLoop", kind)
    before = set(threading.enumerate())
    with pytest.raises(KeyboardInterrupt):
        host._running_loop()
    assert set(threading.enumerate()) <= before
    monkeypatch.undo()
    host._running_loop().call(int)
    host.close()
    assert set(threading.enumerate()) <= before


class Stopping(Notes):
    async def read(self, fh, off, size):
        await asyncio.sleep(0)
        asyncio.get_running_loop().stop()
        await asyncio.sleep(60)


@pytest.mark.usefixtures("asyncio_mode")
def test_an_operation_that_stops_its_own_loop():
    with directfuse.mount(Stopping(), "/loops-stopping"):
        fd = directfuse.os_open("/loops-stopping/a", 0)
        for _ in range(2):  # the one that stops it, and one that comes after
            with pytest.raises(OSError, match="Input/output"):
                directfuse.read(fd, 10)
        directfuse.close(fd)
        assert directfuse.listdir("/loops-stopping") == ["a"], "what runs inline goes on"


class Counting(Slow):
    """What its loop has done, as soon as it may."""

    def __init__(self):
        super().__init__()
        self.begun, self.may = threading.Event(), threading.Event()
        self.done = []

    async def do(self, name):
        self.begun.set()
        while not self.may.is_set():
            await trio.sleep(0)
        self.done.append(name)

    async def setattr(self, inode, attr, fields, fh, ctx):
        await self.do("setattr")
        return await super().setattr(inode, attr, fields, fh, ctx)

    async def release(self, fh):
        await self.do("release")


@pytest.fixture
def interrupts(monkeypatch):
    """interrupts(counting, name, early): while the loop does that operation, or before it gets it,
    a signal's handler raises something; not when it is run again for the caller."""
    post, left = loops.TrioLoop._post, []

    def late(number, frame):
        if left:
            left.pop().may.set()
            raise TimeoutError("late")

    def interrupt(counting, name, *, early):
        def interrupted(loop, job):
            if early and left and job.operation == name:
                signal.raise_signal(signal.SIGUSR1)
            post(loop, job)
            if left and job.operation == name:
                assert counting.begun.wait(10)
                signal.raise_signal(signal.SIGUSR1)

        left.append(counting)
        monkeypatch.setattr(loops.TrioLoop, "_post", interrupted)

    former = signal.signal(signal.SIGUSR1, late)
    yield interrupt
    signal.signal(signal.SIGUSR1, former)


@pytest.mark.parametrize("early", [False, True])
def test_what_a_signals_handler_interrupts_is_done_once(early, interrupts):
    """The caller asks again, as the handler raises nothing there."""
    counting = Counting()
    with directfuse.mount(counting, "/loops-interrupted"):
        interrupts(counting, "setattr", early=early)
        directfuse.truncate("/loops-interrupted/a", 3)
        assert directfuse.stat("/loops-interrupted/a").st_size == 3
    assert counting.done == ["setattr"]


@pytest.mark.parametrize("early", [False, True])
def test_a_file_is_released_though_a_signals_handler_raises(early, interrupts):
    """Nobody asks for that again."""
    counting = Counting()
    with directfuse.mount(counting, "/loops-released"):
        fd = directfuse.os_open("/loops-released/a", os.O_RDONLY)
        interrupts(counting, "release", early=early)
        directfuse.close(fd)
    assert counting.done == ["release"]
