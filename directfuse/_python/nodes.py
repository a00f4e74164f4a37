"""pyfuse3 file systems: the side of a session that is written in Python.

A Host owns one session (native/pyhost/node_*.c). It says which operations are driven inline and
which by the event loop, starts that loop when one is needed, and writes down what operations raise.
"""

import contextlib
import errno
import inspect
import logging
import os
import queue
import reprlib
import signal
import sqlite3
import sys
import threading
import traceback
import weakref
from collections.abc import Callable, Iterable
from typing import Any, TypeGuard

from directfuse import _pyhost
from directfuse._python import loops, suspend
from directfuse._python.writeback import DEPENDS, WriteBack

__all__ = ["Host", "asyncio_enabled", "hosts", "is_node_file_system", "only", "running"]

log = logging.getLogger("directfuse")

OPERATIONS = (  # noqa: SIM905
    "lookup forget getattr setattr readlink mknod mkdir unlink rmdir symlink rename link "
    "open read write flush release fsync opendir readdir releasedir fsyncdir statfs "
    "setxattr setxattr_flags getxattr listxattr removexattr access create poll"
).split()

_XATTR_CREATE, _XATTR_REPLACE = os.XATTR_CREATE, os.XATTR_REPLACE

#: In a forked child, loops of the parent: never freed, for their requests lie on stacks of threads
#: that do not exist, and would be answered.
_left_behind: list[loops.Loop] = []

#: Every host whose session is open; for what acts on "the" file system, and for fork.
hosts: "weakref.WeakSet[Host]" = weakref.WeakSet()


def is_node_file_system(ops: object) -> bool:
    """Whether the object (or class) has pyfuse3's operations: coroutines about inodes."""
    return all(
        inspect.iscoroutinefunction(getattr(ops, name, None)) for name in ("lookup", "getattr")
    )


def asyncio_enabled() -> bool:
    """Whether pyfuse3.asyncio.enable() was called in this process."""
    module = sys.modules.get("pyfuse3.asyncio")
    return module is not None and sys.modules["pyfuse3"].trio is module


def _wants_asyncio(ops: object) -> bool:
    """Which loop the operations are written for. enable() speaks for the whole process, which may
    serve file systems of both kinds: a class whose module has imported one of the two is of it."""
    for kind in type(ops).__mro__:
        imported = _loops_of(kind.__module__)
        if len(imported) == 1:
            return "asyncio" in imported
    return asyncio_enabled()


def _loops_of(module: str) -> set[str]:
    """Which of the two libraries a module of a program has imported under its own name."""
    if module.partition(".")[0] == "pyfuse3":
        return set()
    names = vars(sys.modules[module]) if module in sys.modules else {}
    return {
        name for name in ("asyncio", "trio") if name in names and names[name] is sys.modules[name]
    }


class Later:
    """What a file system leaves to a thread of its own, because it may have to wait for the very
    operation that asks for it; begun when there is something to do."""

    def __init__(self) -> None:
        self._calls: queue.SimpleQueue[Callable[[], object] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._begun = False

    def call(self, what: Callable[[], object]) -> None:
        with self._lock:
            begins, self._begun = not self._begun, True
        if begins:
            threading.Thread(target=self._run, name="directfuse later", daemon=True).start()
        self._calls.put(what)

    def _run(self) -> None:
        for call in iter(self._calls.get, None):
            call()

    def end(self) -> None:
        self._calls.put(None)


class Host:
    """One pyfuse3 file system: its session, its loop, its log."""

    def __init__(self, ops: Any, *, timeout: float | None = None) -> None:
        import pyfuse3

        self.ops = ops
        self.timeout = timeout
        self.driven: dict[str, str] = {}
        self.error: type[Exception] = pyfuse3.FUSEError
        self._writes_back = bool(getattr(ops, "enable_writeback_cache", False))
        served = WriteBack(ops) if self._writes_back else ops
        acls = bool(getattr(ops, "enable_acl", False))
        self.session = _pyhost.NodeSession(served, self, pyfuse3, self._writes_back, acls)
        self._loop: loops.Loop | None = None
        self._own_loop = False
        self.later = Later()
        self._make_locks()
        self._lost: str | None = None  # why operations that need the loop cannot be served

    def _make_locks(self) -> None:
        self._loop_lock = threading.Lock()
        self._end_lock = threading.Lock()
        self._serve_lock = threading.Lock()  # held by who serves

    # ---- life ----

    def open(self, mountpoint: str, options: Iterable[str]) -> None:
        """Makes the session; on the plugin's thread. The mount comes with serve()."""
        check_threads(self.ops)
        words = ["pyfuse3"]
        for option in options:
            words += ["-o", option]
        self.session.open(words, mountpoint)
        hosts.add(self)

    def serve(self) -> None:
        """Serves until the unmount."""
        with self._serve_lock:
            result = self.session.loop()
        if result:
            raise OSError(-result, os.strerror(-result)) if result < 0 else RuntimeError(result)

    def run(self, mountpoint: str, options: Iterable[str]) -> None:
        """The whole life of a file system without a program: init(), mounted, served, ended."""
        self.open(mountpoint, options)
        try:
            self.begin()
            self.serve()
        finally:
            self.close()

    def begin(self) -> None:
        """init(), inside the loop where the file system needs one."""
        suspends = [name for name in OPERATIONS if self._why(name, self._method(name))]
        init = getattr(self.ops, "init", None)
        if suspends or (init and suspend.why_touches(init, self.ops)):
            loop = self._running_loop()
            if init:
                loop.call(init)
        elif init:
            init()
        for name in OPERATIONS:  # for stats(); an operation is judged again when it is called first
            if self._method(name):
                self._record(name, self._why(name, self._method(name)))

    def close(self) -> None:
        """Ends the session, and the loop if it is ours; once, and it has ended for whoever asks."""
        with self._end_lock:
            hosts.discard(self)
            self.later.end()
            self._close_session()
            with self._loop_lock:
                loop, self._loop = self._loop, None
            if loop and self._own_loop:
                loop.stop()

    def _close_session(self) -> None:
        """The thread that serves is another one where main() was cancelled, and may be late."""
        with contextlib.suppress(RuntimeError):  # it is not open
            self.session.exit()
        with self._serve_lock:
            self.session.close()

    # ---- inline, or in the loop ----

    def judge(self, name: str, method: Any) -> bool:
        """Whether an operation is driven inline; asked when the file system has a new method."""
        why = self._why(name, method)
        self._record(name, why)
        return why is None

    def _record(self, name: str, why: str | None) -> None:
        self.driven[name] = f"loop: {why}" if why else "inline"

    def _method(self, name: str) -> Any:
        return getattr(self if name == "setxattr_flags" else self.ops, name, None)

    def _why(self, name: str, method: Any) -> str | None:
        if method is None:
            return None
        if self._writes_back and name in DEPENDS and method != getattr(self.ops, name):
            parts = (self._why(part, self._method(part)) for part in DEPENDS[name])
            return next(filter(None, parts), None)
        if name == "forget" and not inspect.iscoroutinefunction(method):
            return suspend.why_touches(method, self.ops)
        if name == "setxattr_flags":
            both = (self._why(each, self._method(each)) for each in ("getxattr", "setxattr"))
            return next(filter(None, both), None)
        return suspend.why_suspends(method, self.ops)

    async def setxattr_flags(
        self, inode: int, name: bytes, value: bytes, flags: int, ctx: object
    ) -> None:
        """setxattr(2) with XATTR_CREATE or XATTR_REPLACE: pyfuse3 asks for the attribute first."""
        try:
            await self.ops.getxattr(inode, name, ctx)
        except self.error as failure:
            if flags & _XATTR_REPLACE or failure.errno != errno.ENODATA:  # type: ignore[attr-defined]
                raise
        else:
            if flags & _XATTR_CREATE:
                raise self.error(errno.EEXIST)
        await self.ops.setxattr(inode, name, value, ctx)

    def adopt(self, loop: loops.Loop | None) -> None:
        """The program's own loop, as long as it runs."""
        self._loop = loop

    def post(self, job: _pyhost.Job) -> None:
        """Hands a request to the loop."""
        if self._lost:
            log.error("%s: %s", job.operation, self._lost)
            job.refuse(errno.EIO)
            return
        self._running_loop().post(job)

    def _running_loop(self) -> loops.Loop:
        with self._loop_lock:
            if self._loop is None:
                kind = loops.AsyncioLoop if _wants_asyncio(self.ops) else loops.TrioLoop
                loop = kind(
                    self.session.turn, f"directfuse {type(self.ops).__name__}", self.timeout
                )
                try:
                    loop.start()
                    self._loop, self._own_loop = loop, True
                except BaseException:
                    loop.stop()
                    raise
            return self._loop

    # ---- what operations raise ----

    def report(self, operation: str, error: BaseException, *returned: object) -> int:
        """The errno that an exception stands for. Other than FUSEError they end a pyfuse3 program
        that is mounted through the kernel; here the file system goes on, and the log has them."""
        return report(self.ops, operation, error, *returned)

    # ---- fork ----

    def after_fork(self) -> None:
        """In the child: threads other than this one, loops among them, do not exist."""
        was_taken = self.session.turn.renew()
        self.later = Later()
        self._make_locks()
        if self._loop is not None:
            flying = self._loop.flying
            _left_behind.append(self._loop)
            self._loop = None
            if was_taken or flying or not self._own_loop:
                self._lost = (
                    "its event loop is in the process that was forked; mount again in the child"
                )


def report(ops: object, operation: str, error: BaseException, *returned: object) -> int:
    """Writes an exception down; the errno for the caller. What the operation has returned comes
    along when the exception is about that; one with a traceback comes from code of the file system
    even then, a generator's for example.

    Minus the number of a signal, if its handler has raised it: that is the caller's, not written
    down."""
    if number := _signal_of(error):
        return -number
    name = f"{type(ops).__name__}.{operation}()"
    if isinstance(error, OSError) and _is_errno(error.errno):
        log.warning("%s raised %r", name, error, exc_info=error)
        return error.errno
    if returned and error.__traceback__ is None:
        log.error("%s returned %s: %s: EIO", name, reprlib.repr(returned[0]), error)
    else:
        log.error("%s raised %r: EIO", name, error, exc_info=error)
    return errno.EIO


def _is_errno(number: object) -> TypeGuard[int]:
    """Whether the kernel could say it (MAX_ERRNO)."""
    return isinstance(number, int) and 0 < number <= 4095


def _signal_of(error: BaseException) -> int:
    """The signal whose handler ran in the middle of an operation, and raised it; 0: none."""
    if threading.current_thread() is not threading.main_thread():
        return 0  # they run there, in no other
    if isinstance(error, KeyboardInterrupt):  # its handler is in C, mostly, and has no frame
        return signal.SIGINT
    handlers = {
        getattr(signal.getsignal(number), "__code__", None): number
        for number in signal.valid_signals()
    }
    frames = traceback.walk_tb(error.__traceback__)
    return next((handlers[f.f_code] for f, _ in frames if f.f_code in handlers), 0)


def check_threads(ops: object) -> None:
    """Refuses what SQLite would refuse at the first call from another thread."""
    for name, value in vars(ops).items() if hasattr(ops, "__dict__") else ():
        if isinstance(value, sqlite3.Connection):
            try:
                value.cursor().close()
            except sqlite3.ProgrammingError as error:
                raise RuntimeError(
                    f"{type(ops).__name__}.{name} is a connection to SQLite that serves the thread "
                    "alone which made it; operations run on the threads of their callers, one at a "
                    f"time: connect with check_same_thread=False, or mount the class "
                    f"{type(ops).__name__} itself, which is made where it is served"
                ) from error


def running() -> Host | None:
    """The file system whose code runs on this thread; None: there is none, or there are several."""
    mine = [host for host in list(hosts) if host.session.turn.is_mine()]
    return mine[0] if len(mine) == 1 else None


def only() -> Host | None:
    """The one file system that there is; None: there is none."""
    found = list(hosts)
    if len(found) <= 1:
        return next(iter(found), None)
    raise RuntimeError(f"{len(found)} pyfuse3 file systems are mounted: which one is meant?")
