"""What an unmodified Python program finds in the place of its FUSE library's entry points.

The libraries stay as they are, types, constants and all; the few functions that would reach the
kernel are replaced by ones that look who calls. On the thread of a program that directfuse runs,
they mount here; everywhere else they are the library's own, so that a process may do both.
"""

import asyncio
import contextlib
import ctypes
import errno
import importlib.abc
import importlib.machinery
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, NoReturn

from directfuse import _paths
from directfuse._python import foreign, loops, nodes, paths
from directfuse._python.nodes import log
from directfuse._python.suspend import LOOPS

__all__ = ["close_left", "install", "running", "starter"]

#: Per thread: the program it runs. `hosts`: file systems that init() has made, newest last.
running = threading.local()

#: The attribute of a threading.Thread that says by which program it was started.
_STARTER = "_directfuse_starter"


def _here() -> bool:
    return getattr(running, "program", None) is not None


# ---- pyfuse3 -------------------------------------------------------------------------------------

_initialised: list[nodes.Host] = []  # by init(), until close(); protected by _lock
_lock = threading.Lock()


def _find(thread: int) -> nodes.Host | None:
    """The host that a call of pyfuse3 in this thread means: that of init() in the same thread."""
    with _lock:
        mine = [host for host in _initialised if getattr(host, "thread", None) == thread]
    return mine[-1] if mine else None


async def _main(host: nodes.Host) -> None:
    """pyfuse3.main(): serves inside the loop that the program runs. Which one that is, not
    pyfuse3.asyncio.enable() tells: another program of this process may have called it."""
    import sniffio

    asynchronous = sniffio.current_async_library() == "asyncio"
    manager: Any = loops.foreign_asyncio if asynchronous else loops.foreign_trio
    async with manager(host.session.turn, host.timeout) as loop:
        host.adopt(loop)
        host.begin()
        try:
            await (_serve_asyncio if asynchronous else _serve_trio)(host)
        finally:
            host.adopt(None)


async def _serve_trio(host: nodes.Host) -> None:
    import trio

    try:
        await trio.to_thread.run_sync(host.serve, abandon_on_cancel=True)
    except trio.Cancelled:
        host.session.exit()
        raise


async def _serve_asyncio(host: nodes.Host) -> None:
    served = asyncio.get_running_loop().run_in_executor(None, host.serve)
    try:
        await asyncio.shield(served)
    except asyncio.CancelledError:
        host.session.exit()
        await served
        raise


def _check(code: int, what: str) -> None:
    if code:
        raise OSError(code, f"{what} returned: {os.strerror(code)}")


def _host() -> nodes.Host | None:
    """Of the program whose thread this is."""
    return _find(threading.get_ident())


def _lived_for() -> nodes.Host | None:
    """The same, or of the program that has started this thread; if init() has made it."""
    host = _host() or getattr(starter(), "host", None)
    with _lock:
        return host if host in _initialised else None


def _meant() -> nodes.Host | None:
    """That of the operation that runs on this thread, or of the program that has started it, which
    may be an object's. Of code that no program has started, as a thread of an object's, the only
    one."""
    program = starter()
    host = nodes.running() or _host() or getattr(program, "host", None)
    if host in nodes.hosts:
        return host
    return nodes.only() if program is None else None


def _patch_pyfuse3(pyfuse3: Any) -> None:
    names = (*_LIFE, *_NOTIFICATIONS)
    theirs = {name: getattr(pyfuse3, name) for name in names}
    ours = (*_life(theirs, pyfuse3.default_options), *_notifications(theirs))
    for name, function in zip(names, ours, strict=True):
        function.__doc__ = theirs[name].__doc__
        setattr(pyfuse3, name, function)


_LIFE = "init", "main", "close"


def _life(theirs: dict[str, Any], default_options: Any) -> tuple[Callable[..., Any], ...]:
    """_LIFE: ours for what runs here, else theirs."""

    def init(ops: Any, mountpoint: str, options: Any = default_options, **others: Any) -> None:
        if (program := starter()) is None:
            theirs["init"](ops, mountpoint, options, **others)
            return
        made = nodes.Host(ops)
        with program.threads.entered():
            made.open(os.path.abspath(mountpoint), options)
            made.thread = threading.get_ident()  # type: ignore[attr-defined]
            with _lock:
                _initialised.append(made)
            program.host = made

    async def main(min_tasks: int = 1, max_tasks: int = 99) -> None:
        ours = _lived_for()
        if ours is None:
            await theirs["main"](min_tasks, max_tasks)
        elif _here():
            await _main(ours)
        else:
            with starter().threads.serving():
                await _main(ours)

    def close(unmount: bool = True) -> None:
        if (ours := _lived_for()) is not None:
            _close(ours)
        elif starter() is None:
            theirs["close"](unmount)

    return init, main, close


def _close(host: nodes.Host) -> None:
    with _lock:
        if host in _initialised:
            _initialised.remove(host)
    host.close()


def close_left(program: Any) -> None:
    """At the end of main, whose session does not outlive it: a thread of the program comes too late
    to close it, or nobody would."""
    if isinstance(program.host, nodes.Host):
        _close(program.host)


_NOTIFICATIONS = (
    "terminate",
    "invalidate_inode",
    "invalidate_entry",
    "invalidate_entry_async",
    "notify_store",
)


def _notifications(theirs: dict[str, Any]) -> tuple[Callable[..., Any], ...]:
    """_NOTIFICATIONS, which operations make, too."""

    def terminate() -> None:
        if (ours := _meant()) is not None:
            ours.session.exit()
        elif starter() is None:  # else it has ended already
            theirs["terminate"]()

    def invalidate_inode(inode: int, attr_only: bool = False) -> None:
        ours = _meant()
        if ours is None:
            theirs["invalidate_inode"](inode, attr_only)
        else:
            code = ours.session.invalidate_inode(inode, attr_only)
            _check(code, "fuse_lowlevel_notify_inval_inode")

    def invalidate_entry(inode_p: int, name: bytes, deleted: int = 0) -> None:
        ours = _meant()
        if ours is None:
            theirs["invalidate_entry"](inode_p, name, deleted)
        else:
            _invalidate_entry(ours, inode_p, name, deleted)

    def invalidate_entry_async(
        inode_p: int, name: bytes, deleted: int = 0, ignore_enoent: bool = False
    ) -> None:
        ours = _meant()
        if ours is None:
            theirs["invalidate_entry_async"](inode_p, name, deleted, ignore_enoent)
        else:
            ours.later.call(lambda: _invalidate_late(ours, inode_p, name, deleted, ignore_enoent))

    def notify_store(inode: int, offset: int, data: Any) -> None:
        ours = _meant()
        if ours is None:
            theirs["notify_store"](inode, offset, data)
        else:
            _check(ours.session.store(inode, offset, data), "fuse_lowlevel_notify_store")

    return terminate, invalidate_inode, invalidate_entry, invalidate_entry_async, notify_store


def _invalidate_entry(host: nodes.Host, inode_p: int, name: bytes, deleted: int) -> None:
    code = host.session.invalidate_entry(inode_p, name, deleted)
    _check(code, "fuse_lowlevel_notify_inval_entry")


def _invalidate_late(
    host: nodes.Host, inode_p: int, name: bytes, deleted: int, ignore_enoent: bool
) -> None:
    """Nobody waits for it: the log gets its errors."""
    try:
        _invalidate_entry(host, inode_p, name, deleted)
    except Exception as error:
        ignored = ignore_enoent and isinstance(error, FileNotFoundError)
        if not ignored and host in nodes.hosts:  # else it has ended meanwhile
            log.exception("invalidate_entry_async(%r, %r)", inode_p, name)


# ---- fusepy, mfusepy, refuse ---------------------------------------------------------------------


class _Library:
    """Two libfuses under one name: ours where a program of ours runs, else the other."""

    def __init__(self, theirs: Any, ours: Any) -> None:
        self._theirs = theirs
        self._ours = ours
        # Below both of ours; who calls is known there, whichever a session was made with.
        self._base = ctypes.CDLL(os.fspath(_paths.plugin_library()))
        self._base.fuse_get_context.restype = theirs.fuse_get_context.restype

    def _inside(self) -> Any:
        """The context of the operation of ours that this thread is in; None if it is in none."""
        context = self._base.fuse_get_context()
        return context if context and context.contents.fuse else None

    def fuse_get_context(self) -> Any:
        return self._inside() or self._theirs.fuse_get_context()

    def fuse_exit(self, fuse: Any) -> None:
        context = self._inside()
        ours = context and context.contents.fuse == getattr(fuse, "value", fuse)
        (self._base if ours else self._theirs).fuse_exit(fuse)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._theirs if starter() is None else self._ours, name)


def _our_library(theirs: Any) -> Any:
    """Ours with the interface of the one that the module was made for."""
    version = theirs.fuse_version()
    name = "libdf2.so.2" if version < 30 else _paths.PLUGIN_LIBRARY
    return ctypes.CDLL(os.fspath(_paths.plugin_library().with_name(name)))


def _patch_fuse(module: Any) -> None:
    theirs = getattr(module, "_libfuse", None)
    if not isinstance(theirs, ctypes.CDLL):
        if hasattr(module, "FuseAPIVersion"):  # python-fuse
            _patch_linked(module, "main")
        return  # no libfuse of theirs: another module of that name
    library = _Library(theirs, _our_library(theirs))
    module._libfuse = library
    if hasattr(module, "fuse_main_real"):
        module.fuse_main_real = lambda *arguments: library.fuse_main_real(*arguments)
    _patch_class(module.FUSE)


def _patch_linked(module: Any, entry: str) -> None:
    """A library of foreign.LINKED that the host of a program has imported before it."""
    theirs = getattr(module, entry)

    def enter(*arguments: Any, **options: Any) -> Any:
        if _is_its_own():
            foreign.refuse(running.program, module.__name__)
        return theirs(*arguments, **options)

    setattr(module, entry, enter)


def _patch_class(kind: Any) -> None:
    theirs: Callable[..., None] = kind.__init__

    def __init__(  # noqa: N807
        self: Any,
        operations: Any,
        mountpoint: str,
        raw_fi: bool = False,
        *rest: Any,
        **options: Any,
    ) -> None:
        plain = options.get("encoding", "utf-8") == "utf-8" and not rest
        if (program := starter()) is None:
            theirs(self, operations, mountpoint, raw_fi, *rest, **options)
            return
        with program.threads.serving():
            if not plain or paths.needs_ctypes(operations, raw_fi):
                theirs(self, operations, mountpoint, raw_fi, *rest, **options)
                return
            for name in ("encoding", "errors"):
                options.pop(name, None)
            program.host = paths.Host(operations, options)
            if status := program.host.run(mountpoint):
                raise RuntimeError(status)

    kind.__init__ = __init__


# ---- installing ----------------------------------------------------------------------------------

_PATCHES: dict[str, Callable[[Any], None]] = {
    "pyfuse3": _patch_pyfuse3,
    "mfusepy": _patch_fuse,
    "fuse": _patch_fuse,
    "refuse.high": _patch_fuse,
    "llfuse": lambda module: _patch_linked(module, "init"),
}


class _Loader(importlib.abc.Loader):
    """Patches a library as soon as it is imported. fusepy, mfusepy and refuse need some libfuse to
    be imported at all: where the system has none, ours."""

    def __init__(self, name: str, inner: Any) -> None:
        self.name = name
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        module: ModuleType | None = self.inner.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        with _own_libfuse():
            try:
                self.inner.exec_module(module)
            except OSError:
                library = "libdf2.so.2" if self.name != "mfusepy" else _paths.PLUGIN_LIBRARY
                path = os.fspath(_paths.plugin_library().with_name(library))
                with _environment("FUSE_LIBRARY_PATH", path):
                    self.inner.exec_module(module)
        _PATCHES[self.name](module)


@contextlib.contextmanager
def _own_libfuse() -> Iterator[None]:
    """Around the import of a library that has a patch: it keeps its libfuse beside ours."""
    former = getattr(running, "patching", False)
    running.patching = True
    try:
        yield
    finally:
        running.patching = former


def _wants_ours() -> bool:
    """Whether a libfuse that is loaded here is to be ours."""
    return _is_its_own() and not getattr(running, "patching", False)


@contextlib.contextmanager
def _environment(name: str, value: str) -> Any:
    former = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if former is None:
            del os.environ[name]
        else:
            os.environ[name] = former


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name in foreign.LINKED and _is_its_own():
            foreign.refuse(running.program, name)
        if name not in _PATCHES:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec and spec.loader:
            spec.loader = _Loader(name, spec.loader)
        return spec


def _patch_signal() -> None:
    theirs = signal.signal

    def set_handler(number: int, handler: Any) -> Any:
        """A program's own handlers: signals are the host's, and Python takes none off the main
        thread. Event loops find out by this very error that they are off it."""
        caller = sys._getframe(1).f_globals.get("__name__", "")
        if _here() and caller.partition(".")[0] not in LOOPS:
            return signal.SIG_DFL
        return theirs(number, handler)

    signal.signal = set_handler  # type: ignore[assignment]


def _patch_asyncio() -> None:
    """A program gets a loop on its thread, as it would on the main thread of its own process."""
    if sys.version_info >= (3, 14):
        return  # there is none on the main thread either
    policy: Any = asyncio.DefaultEventLoopPolicy
    theirs = policy.get_event_loop

    def get_event_loop(self: Any) -> Any:
        try:
            return theirs(self)
        except RuntimeError:
            if not _here():
                raise
        self.set_event_loop(self.new_event_loop())
        return theirs(self)

    policy.get_event_loop = get_event_loop


def _patch_sqlite() -> None:
    theirs = sqlite3.connect

    def connect(*arguments: Any, **options: Any) -> Any:
        """A file system's connection serves its operations, which run on their callers' threads,
        one at a time."""
        if _here() and len(arguments) < 5:
            options.setdefault("check_same_thread", False)
        return theirs(*arguments, **options)

    sqlite3.connect = connect
    sqlite3.dbapi2.connect = connect


def _runs_here(program: Any) -> bool:
    """Whether this is the process that runs it, and not a child it forked."""
    return program is not None and program.process == os.getpid()


def _is_its_own() -> bool:
    """Whether the caller is a program in the process that runs it, on whichever of its threads."""
    return starter() is not None


def starter() -> Any:
    """The program that runs in this thread or has started it, in the process that runs it."""
    thread = threading.current_thread()
    program = getattr(running, "program", None) or getattr(thread, _STARTER, None)
    return program if _runs_here(program) else None


@contextlib.contextmanager
def _signals_as_given() -> Iterator[None]:
    """Around a fork. The thread of a program blocks all signals, which are the host's, and so do
    those that it starts: a child would hear of none, SIGTERM among them."""
    if (program := starter()) is None:
        yield
        return
    blocked = signal.pthread_sigmask(signal.SIG_SETMASK, program.blocked)
    try:
        yield
    finally:
        if _runs_here(program):
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def _patch_threads() -> None:
    theirs = threading.Thread.start

    def start(self: threading.Thread) -> None:
        if (program := starter()) is not None:
            setattr(self, _STARTER, program)
            program.threads.add(self)
        theirs(self)

    threading.Thread.start = start  # type: ignore[method-assign]


def _patch_children() -> None:
    theirs: Callable[..., int] = subprocess._fork_exec  # type: ignore[attr-defined]

    def fork_exec(*arguments: Any) -> int:
        with _signals_as_given():
            return theirs(*arguments)

    subprocess._fork_exec = fork_exec  # type: ignore[attr-defined]


def _patch_leaving() -> None:
    """A program that leaves for the background or another program would take its host along: its
    process is the host's. A pool of processes it may have."""
    fork, leave = os.fork, os._exit

    def fork_away() -> int:
        caller = sys._getframe(1).f_globals.get("__name__", "")
        is_main = _runs_here(getattr(running, "program", None))
        if is_main and caller.partition(".")[0] != "multiprocessing":
            words = "os.fork(): the program has to stay in the foreground (it may have -f for that)"
            raise OSError(errno.ENOTSUP, words)
        with _signals_as_given():
            return fork()

    def end(status: int) -> NoReturn:
        if _is_its_own():
            raise SystemExit(status)
        leave(status)

    os.fork, os._exit = fork_away, end
    os.execv, os.execve = _never_its_own(os.execv), _never_its_own(os.execve)


def _never_its_own(become: Callable[..., NoReturn]) -> Callable[..., NoReturn]:
    def become_another(path: Any, *arguments: Any) -> NoReturn:
        if _is_its_own():
            words = "the program wanted to become another one (exec), which would replace this "
            raise OSError(errno.ENOTSUP, f"{words}process: mount that one", path)
        become(path, *arguments)

    return become_another


_install_lock = threading.Lock()
_installed = False


def install() -> None:
    """Once in a process, before the first Python file system."""
    global _installed
    with _install_lock:
        if _installed:
            return
        _installed = True
        sys.meta_path.insert(0, _Finder())
        for name, patch in _PATCHES.items():
            if name in sys.modules:
                patch(sys.modules[name])
        _patch_signal()
        _patch_leaving()
        _patch_threads()
        _patch_children()
        _patch_sqlite()
        _patch_asyncio()
        foreign.patch_ctypes(_wants_ours)
