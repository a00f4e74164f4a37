"""Python file systems as programs: made from an object or a command line; their main().

A program runs on the plugin's thread (native/pyhost/run.c), as the main() of a C program does: it
makes its file system there, serves, and returns after the unmount.
"""

import builtins
import contextlib
import errno
import importlib
import inspect
import os
import shlex
import signal
import sys
import threading
import traceback
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TextIO

from directfuse import _fast, _pyhost
from directfuse._errors import MountError
from directfuse._python import ends, nodes, patches, paths, threads
from directfuse._python.meaning import class_meant

__all__ = ["Program", "of_factory", "of_module", "of_object", "of_script"]

_start_lock = threading.Lock()  # sys.argv is one for all: one program starts at a time


def _forget_lock() -> None:
    """In a forked child the thread that started a program does not exist."""
    global _start_lock
    _start_lock = threading.Lock()


os.register_at_fork(after_in_child=_forget_lock)

#: Signals that this process blocks for itself alone: it is a mount server.
taken_signals: set[signal.Signals] = set()


class Program:
    """A Python program that is to be a plugin."""

    def __init__(self, words: Sequence[str], body: Callable[["Program"], None]) -> None:
        self.words = list(words)
        self.body = body
        self.host: nodes.Host | paths.Host | None = None  # the file system, once it is made
        self.failure: BaseException | None = None
        self.elsewhere = ""  # why it can only run in a process of its own
        self.said: list[str] = []  # what it printed until it was mounted
        self.process = 0  # that runs it
        self.turn: threading.Lock | None = None  # while it starts: for programs that it starts
        self.blocked: set[int] = set()  # signals, for its children
        self.threads = threads.Threads()

    def main(self) -> int:
        """The status, as a program's."""
        patches.running.program = self
        self.process = os.getpid()
        try:
            with self.threads.outlived():
                self.body(self)
        except SystemExit as ended:
            return self._status(ended.code)
        except BaseException as error:
            self.failure = error
            self.said.append("".join(traceback.format_exception_only(error)))
            return 1
        finally:
            patches.close_left(self)
            patches.running.program = None
        return 0

    def start(
        self, _: Sequence[str], *, flags: int, seconds: int, made: list[int]
    ) -> tuple[int, str]:
        """Runs it until it has mounted: the mount's number, and what was said. Or MountError.

        (The words are our own, and the flags tell the seconds: so a server of one is started.)
        """
        self.blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ()) - taken_signals
        patches.install()
        ends.install()
        ends.made.append(made)
        with _turn(), _stage(self):
            _fast.expect_mount(True)
            try:
                code, words = _pyhost.mount(self.words, self.main, flags, made)
            finally:
                _fast.expect_mount(False)
        words = "\n".join(filter(None, (words.strip(), "".join(self.said).strip())))
        if code > 0:
            return code, words
        if isinstance(self.failure, MountError):
            raise self.failure
        if self.elsewhere:
            raise MountError(errno.ENOEXEC, self.elsewhere, shlex.join(self.words))
        raise MountError(-code, words, shlex.join(self.words)) from self.failure

    def _status(self, code: object) -> int:
        if code is None or isinstance(code, int):
            return code or 0
        self.said.append(str(code))
        return 1


# ---- objects -------------------------------------------------------------------------------------


def of_object(
    ops: Any, mountpoint: str, options: Sequence[str] = (), timeout: float | None = None
) -> Program:
    """The program of a file system that is an object, or a class to be made without arguments."""
    ops = _operations_of(ops)
    check_object(ops)
    name = getattr(ops, "__name__", type(ops).__name__)

    def body(program: Program) -> None:
        made = ops() if isinstance(ops, type) else ops
        _serve(program, made, mountpoint, options, timeout)

    return Program([name, mountpoint], body)


def _operations_of(ops: Any) -> Any:
    """A file system of fsspec has operations of other names."""
    fsspec = sys.modules.get("fsspec")
    if fsspec is None or not isinstance(ops, fsspec.AbstractFileSystem):
        return ops
    from directfuse.backends.fsspec import FsspecOperations

    return FsspecOperations(ops)


def _why_not(ops: Any) -> str | None:
    """Why it is no file system, or half of each kind; None: it is one."""
    if nodes.is_node_file_system(ops):
        return None
    if inspect.iscoroutinefunction(getattr(ops, "getattr", None)):
        return (
            "its getattr() is `async def`, as pyfuse3's, but it has no lookup() that is, too; the "
            "methods of fusepy and mfusepy are plain functions"
        )
    if not paths.is_path_file_system(ops):
        return (
            "neither pyfuse3's coroutines lookup() and getattr(), nor the methods getattr() and "
            "readdir() of fusepy and mfusepy"
        )
    mixed = paths.coroutines(ops)
    if mixed:
        return (
            f"its {mixed[0]}() is `async def`, as pyfuse3's, but its getattr() is a plain "
            "function, as all methods of fusepy and mfusepy"
        )
    return None


def check_object(ops: Any) -> None:
    """Refuses what is no file system."""
    why = _why_not(ops)
    if why is None:
        return
    what = ops.__qualname__ if isinstance(ops, type) else f"an object of {type(ops).__qualname__}"
    raise MountError(
        errno.EINVAL,
        f"{what} is no file system: {why}",
        getattr(ops, "__name__", type(ops).__name__),
    )


def _serve(
    program: Program, ops: Any, mountpoint: str, options: Sequence[str], timeout: float | None
) -> None:
    check_object(ops)
    if nodes.is_node_file_system(ops):
        import pyfuse3

        host = nodes.Host(ops, timeout=timeout)
        program.host = host
        host.run(mountpoint, [*pyfuse3.default_options, *_defaults(ops, options), *options])
        return
    by_path = paths.Host(ops)
    program.host = by_path
    words = [word for option in options for word in ("-o", option)]
    if status := by_path.run(mountpoint, words):
        raise RuntimeError(f"fuse_main() returned {status}")


def _defaults(ops: Any, options: Sequence[str]) -> list[str]:
    named = any(part.startswith("fsname=") for text in options for part in text.split(","))
    return [] if named else [f"fsname={type(ops).__name__}"]


# ---- module:Class ARGUMENTS MOUNTPOINT -o OPTIONS ------------------------------------------------


def of_factory(words: Sequence[str], load: Callable[[], Any] | None = None) -> Program:
    """Of a class, a function or an object: what `load` returns, or module:attribute names."""

    def body(program: Program) -> None:
        factory = _load_entry(words[0], load) if load else load_attribute(words[0])
        made, mountpoint, options = make_file_system(words, factory)
        _serve(program, made, mountpoint, options, None)

    return Program(words, body)


def make_file_system(words: Sequence[str], factory: Any) -> tuple[Any, str, list[str]]:
    """The file system of a command line, its mountpoint, its options.

    A class may read its command line itself: from_command_line(words behind the first) returns
    these three.
    """
    if callable(own := getattr(factory, "from_command_line", None)):
        return own(words[1:])  # type: ignore[no-any-return]
    rest, options = _split_options(words[1:])
    if not rest:
        raise MountError(errno.EINVAL, "the command line names no mountpoint", shlex.join(words))
    *arguments, mountpoint = rest
    keywords = dict(word[2:].split("=", 1) for word in arguments if _is_keyword(word))
    positional = [word for word in arguments if not _is_keyword(word)]
    if not callable(factory) or (not isinstance(factory, type) and _is_file_system(factory)):
        if arguments:
            raise MountError(
                errno.EINVAL, f"{words[0]} is an object, which takes no arguments", *arguments[:1]
            )
        return factory, mountpoint, options
    with contextlib.suppress(ValueError):  # of many compiled classes nobody knows what they take
        signature = inspect.signature(factory)
        try:
            signature.bind(*positional, **keywords)
        except TypeError as error:
            raise MountError(errno.EINVAL, f"{words[0]}: {error}", shlex.join(words)) from None
    return factory(*positional, **keywords), mountpoint, options


def _is_keyword(word: str) -> bool:
    name, equals, _ = word.removeprefix("--").partition("=")
    return word.startswith("--") and bool(equals) and name.isidentifier()


def _is_file_system(value: Any) -> bool:
    return nodes.is_node_file_system(value) or paths.is_path_file_system(value)


def _split_options(words: Sequence[str]) -> tuple[list[str], list[str]]:
    rest: list[str] = []
    options: list[str] = []
    pending = iter(words)
    for word in pending:
        if word == "-o":
            options.append(next(pending, ""))
        elif word.startswith("-o") and len(word) > 2:
            options.append(word[2:])
        else:
            rest.append(word)
    return rest, options


def _load_entry(name: str, load: Callable[[], Any]) -> Any:
    """An entry point may stand for more than is installed."""
    try:
        return load()
    except ImportError as error:
        raise MountError(errno.ENOENT, str(error), name) from error


def load_attribute(name: str) -> Any:
    module_name, _, attribute = name.partition(":")
    parts = attribute.split(".")
    if module_name[:1] in ("", ".") or not all(map(str.isidentifier, parts)):
        raise MountError(errno.EINVAL, "a Python file system is named as module:Class", name)
    try:
        value = _import(module_name)
    except ImportError as error:
        words, hint = f"cannot import {module_name}: {error}", class_meant(name)
        raise MountError(errno.ENOENT, f"{words}; {hint}" if hint else words, name) from error
    for part in parts:
        if not hasattr(value, part):
            raise MountError(errno.ENOENT, f"{module_name} has no {attribute}", name)
        value = getattr(value, part)
    return value


def _import(name: str) -> types.ModuleType:
    """As `python -m` finds it: the working directory counts."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name.partition(".")[0]:
            raise
        with _search_path(""):  # where that was removed, nothing is found in it
            return importlib.import_module(name)


@contextlib.contextmanager
def _search_path(directory: str) -> Iterator[None]:
    """Behind all others. An entry of the same name that was there before stays where it is."""
    sys.path.append(directory)
    try:
        yield
    finally:
        del sys.path[max(i for i, entry in enumerate(sys.path) if entry == directory)]


# ---- scripts -------------------------------------------------------------------------------------


def _main_module(path: str | None) -> types.ModuleType:
    module = types.ModuleType("__main__")
    module.__file__ = path
    vars(module)["__builtins__"] = builtins  # in other modules it is a dictionary; scripts ask
    return module


def of_script(path: str, words: Sequence[str]) -> Program:
    """python PATH WORDS..."""

    def body(program: Program) -> None:
        with open(path, "rb") as file:
            code = compile(file.read(), path, "exec")
        module = _main_module(path)
        with _search_path(os.path.dirname(os.path.abspath(path))):
            exec(code, module.__dict__)
        if program.host is None:
            program.said += _unserved(module, path, words[1:])

    return Program([path, *words[1:]], body)


def _unserved(module: types.ModuleType, path: str, arguments: Sequence[str]) -> Iterator[str]:
    """The remedy for a script that has a file system's class, and no main() that serves it."""
    directory, file = os.path.split(os.path.abspath(path))
    name = os.path.splitext(file)[0]
    where = "" if directory == os.getcwd() else f", in {directory}"
    for value in vars(module).values():
        if isinstance(value, type) and value.__module__ == "__main__" and _is_file_system(value):
            line = shlex.join([f"{name}:{value.__name__}", *arguments])
            yield f"(it defines the file system {value.__name__}; mount that by: {line}{where})\n"


def of_module(words: Sequence[str]) -> Program:
    """python -m NAME ARGUMENTS"""
    name = words[2]

    def body(_: Program) -> None:
        with _search_path(""):
            _run_module(name)

    return Program([name, *words[3:]], body)


def _run_module(name: str) -> None:
    spec = importlib.util.find_spec(name)
    if spec is not None and spec.submodule_search_locations is not None:
        spec = importlib.util.find_spec(f"{name}.__main__")
    loader: Any = spec.loader if spec else None
    if spec is None or loader is None or not hasattr(loader, "get_code"):
        raise MountError(errno.ENOENT, f"no module {name} that could be run", name)
    module = _main_module(spec.origin)
    module.__spec__ = spec
    module.__package__ = spec.parent
    exec(loader.get_code(spec.name), module.__dict__)


# ---- starting ------------------------------------------------------------------------------------


def _turn() -> threading.Lock:
    """What a start waits for. A program that mounts what it is built on while it starts itself is
    not to wait for its own start."""
    starter = patches.starter()
    return starter.turn if starter and starter.turn else _start_lock


class _Voice:
    """sys.stdout or sys.stderr while a program starts: what it prints becomes the mount's message,
    what other threads print goes where it went."""

    def __init__(self, program: Program, former: TextIO | None) -> None:
        """former: None where the descriptor was closed when Python started."""
        self.program = program
        self.former = former
        self.starting = True

    def write(self, text: str) -> int:
        if self.starting and getattr(patches.running, "program", None) is self.program:
            self.program.said.append(text)
            return len(text)
        return self.former.write(text) if self.former else len(text)

    def flush(self) -> None:
        if self.former:
            self.former.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.former, name)


@contextlib.contextmanager
def _stage(program: Program) -> Iterator[None]:
    """What a program takes for its own while it starts: its arguments, its voice."""
    former = sys.argv, sys.stdout, sys.stderr
    voices = _Voice(program, sys.stdout), _Voice(program, sys.stderr)
    sys.argv = program.words
    sys.stdout, sys.stderr = voices
    program.turn = threading.Lock()
    try:
        yield
    finally:
        program.turn = None
        for voice in voices:  # a logging handler may have kept it
            voice.starting = False
        if sys.stdout is voices[0]:
            sys.stdout = former[1]
        if sys.stderr is voices[1]:
            sys.stderr = former[2]
        sys.argv = former[0]
