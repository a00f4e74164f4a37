"""patch(): `open`, `os`, `io` and `fcntl` see the mounts, in this process and without LD_PRELOAD.

The modules' own names are replaced, and what other modules took from them before
(`from os import stat`, `tarfile.bltn_open`): a name that holds os.stat then holds directfuse.stat.
Ours serve real paths and descriptors with the very function that they stand in for, so it does no
harm where another thread, or code that nobody thought of, calls them.
"""

import builtins
import contextlib
import errno
import fcntl
import functools
import inspect
import io
import os
import stat
import sys
import threading
import types
from collections.abc import Callable
from operator import index
from typing import Any, TypeVar, cast

import directfuse
from directfuse import _real
from directfuse._call import is_ours, path_or_fd
from directfuse._files import lock_in_the_way

__all__ = ["patch"]

_F = TypeVar("_F", bound=Callable[..., Any])

#: Protects the two below. The handler of a signal, or a finalizer, may enter where it is held.
_lock = threading.RLock()
_depth = 0  # patch() contexts in force
_undo: list[tuple[dict[str, Any], str, Any, Any]] = []  # (names, name, before, ours)

os.register_at_fork(
    before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release
)


class patch(contextlib.ContextDecorator):  # noqa: N801  # it is used as a function is
    """While it is in force, `open`, `os.*`, `pathlib` and what is built on them see the mounts.

        with directfuse.mount("squashfuse data.sqfs /data"), directfuse.patch():
            pathlib.Path("/data").rglob("*.png")

    A context manager and a decorator, of coroutine functions and generators, too. It acts on the
    whole process, all threads included; it nests, and the last one out restores what was. What is
    not covered: docs/python.md.
    """

    def __init__(self) -> None:
        self._entered = 0  # how often; protected by _lock

    def __enter__(self) -> None:
        global _depth
        counted = False
        try:
            with _lock:
                _depth += 1
                self._entered += 1
                counted = True
                if _depth == 1:
                    _install()
        except BaseException:  # of a signal's handler: nobody else would end it
            if counted:
                self.__exit__()
            raise

    def __exit__(self, *error: object) -> None:
        global _depth
        with _lock:
            if self._entered == 0:  # it would end another's
                raise RuntimeError("this patch() is not in force")
            self._entered -= 1
            _depth -= 1
            if _depth == 0:
                _restore()

    def __call__(self, func: _F) -> _F:
        """The function, and this in force for as long as it runs."""
        for runs_later, decorated in _LATER.items():
            if runs_later(func):
                return cast("_F", functools.wraps(func)(decorated(self, func)))
        return super().__call__(func)


def _coroutine(context: patch, function: Callable[..., Any]) -> Callable[..., Any]:
    async def patched(*arguments: Any, **options: Any) -> Any:
        with context:
            return await function(*arguments, **options)

    return patched


def _generator(context: patch, function: Callable[..., Any]) -> Callable[..., Any]:
    def patched(*arguments: Any, **options: Any) -> Any:
        with context:
            return (yield from function(*arguments, **options))

    return patched


def _refused(_context: patch, _function: Callable[..., Any]) -> Callable[..., Any]:
    raise TypeError("patch() decorates no asynchronous generator: use it as a context in there")


#: Functions that have not run yet when their calls return, and what decorates them.
_LATER = {
    inspect.iscoroutinefunction: _coroutine,
    inspect.isgeneratorfunction: _generator,
    inspect.isasyncgenfunction: _refused,
}


# ---- what stands in for what ---------------------------------------------------------------------

#: Public names of os that mean something else here.
_NOT_OF_OS = {"DirEntry", "lockf", "open", "path"}


def _of_os() -> list[str]:
    """Names of the package that are functions of os, and its own. What os builds on those in Python
    (walk, makedirs ...) stays: it finds ours, and the library knows more of it than others may
    (pathlib walks with an argument that os keeps for it)."""
    shared = set(directfuse.__all__) & set(_real.os.__all__) - _NOT_OF_OS
    built = {name for name in shared if inspect.isfunction(getattr(_real.os, name))}
    return sorted(shared - built)


#: Calls after which the identity of the process has to be read again.
_IDENTITY = [
    "initgroups",
    "setegid",
    "seteuid",
    "setgid",
    "setgroups",
    "setregid",
    "setresgid",
    "setresuid",
    "setreuid",
    "setuid",
]


def _replacements() -> list[tuple[Any, str, Any]]:
    """(module, name, ours)."""
    rows: list[tuple[Any, str, Any]] = [
        (builtins, "open", directfuse.open),
        (io, "open", directfuse.open),
        (os, "open", directfuse.os_open),
        (os, "chdir", _chdir),
        (os, "fchdir", _fchdir),
        (os, "lockf", _lockf),
        (os, "get_inheritable", _get_inheritable),
        (os, "set_inheritable", _set_inheritable),
        (os, "get_blocking", _get_blocking),
        (os, "set_blocking", _set_blocking),
        (os, "sendfile", _sendfile),
    ]
    rows += [(os, name, getattr(directfuse, name)) for name in _of_os()]
    rows += [(fcntl, name, getattr(directfuse, name)) for name in _FCNTL]
    rows += [(os, name, _then_refresh(getattr(_real.os, name))) for name in _IDENTITY]
    return rows


_FCNTL = ("fcntl", "flock", "ioctl", "lockf")


class _Unbound:
    """A Python function in the place of a builtin one, which an attribute of a class may hold
    (`unlink = os.unlink`): it is called without the object."""

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self.function = function

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return self.function(*arguments, **options)

    def __reduce__(self) -> Any:
        return _bare, (self.function,)


def _bare(function: Any) -> Any:
    """What another process unpickles: the function by its name in this package."""
    return function


@functools.cache
def _unbound(function: Any) -> Any:
    return _Unbound(function) if isinstance(function, types.FunctionType) else function


# ---- installing and restoring --------------------------------------------------------------------
#
# What is done by a call is noted ahead of it: a signal's handler may raise behind the call.


def _install() -> None:
    """The lock is held."""
    ours: dict[int, Any] = {}
    for module, name, function in _replacements():
        before = getattr(module, name)
        if isinstance(before, types.BuiltinFunctionType):
            function = _unbound(function)
        ours[id(before)] = function
        _put(vars(module), name, before, function)
    for module in list(sys.modules.values()):
        if isinstance(module, types.ModuleType) and not _is_left_alone(module.__name__):
            _replace_in(vars(module), ours)
    for names in (os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks):
        _extend(names, ours)
    _extend(os.supports_effective_ids, ours)
    _install_tempfile(ours)
    _install_glob(ours)
    _install_numpy(ours)


def _is_left_alone(name: str) -> bool:
    """Our own modules call both worlds by name; the import system reads the real one."""
    return name.split(".")[0] in _LEFT_ALONE


_LEFT_ALONE = {
    "directfuse",
    "posix",
    "_io",
    "_frozen_importlib",
    "_frozen_importlib_external",
    "importlib",
    "zipimport",
}


def _replace_in(names: dict[str, Any], ours: dict[int, Any]) -> None:
    for name, value in list(names.items()):
        if isinstance(value, types.BuiltinFunctionType | types.FunctionType) and id(value) in ours:
            _put(names, name, value, ours[id(value)])


def _put(names: dict[str, Any], name: str, before: Any, function: Any) -> None:
    names[name] = function
    _undo.append((names, name, before, function))


_added: list[tuple[set[Any], Any]] = []  # to os.supports_*


def _extend(names: set[Any], ours: dict[int, Any]) -> None:
    """os.supports_dir_fd and its like hold the functions themselves."""
    for function in [ours[id(one)] for one in names if id(one) in ours]:
        if function not in names:
            _added.append((names, function))
            names.add(function)


def _install_tempfile(ours: dict[int, Any]) -> None:
    """A temporary file keeps the function that will remove it in a default argument."""
    closer = getattr(sys.modules.get("tempfile"), "_TemporaryFileCloser", None)
    for name in ("close", "cleanup"):
        method = getattr(closer, name, None)
        defaults = getattr(method, "__defaults__", None)
        if defaults:
            changed = tuple(ours.get(id(one), one) for one in defaults)
            _defaults.append((method, defaults))
            method.__defaults__ = changed  # type: ignore[union-attr]


_defaults: list[tuple[Any, Any]] = []


def _install_glob(ours: dict[int, Any]) -> None:
    """From Python 3.13 on pathlib's globbing keeps os.scandir and os.lstat in its classes."""
    for kind in vars(sys.modules.get("glob", object)).values():
        for name, kept in list(vars(kind).items()) if isinstance(kind, type) else ():
            if isinstance(kept, staticmethod) and id(kept.__func__) in ours:
                _kept.append((kind, name, kept))
                setattr(kind, name, staticmethod(ours[id(kept.__func__)]))


_kept: list[tuple[type, str, Any]] = []


def _install_numpy(ours: dict[int, Any]) -> None:
    """numpy's readers and writers of text keep open in a table, which an object of a module has."""
    openers = getattr(sys.modules.get("numpy.lib._datasource"), "_file_openers", None)
    table = getattr(openers, "_file_openers", None)
    if isinstance(table, dict):
        _replace_in(table, ours)


def _restore() -> None:
    """The lock is held. To the end, whatever a signal's handler raises."""
    try:
        _put_back()
    except BaseException:
        _put_back()
        raise


def _put_back() -> None:
    """What somebody else has replaced in the meantime is left as it is."""
    for names, name, before, function in reversed(_undo):
        if names.get(name) is function:
            names[name] = before
    for known, function in _added:
        known.discard(function)
    for method, defaults in _defaults:
        method.__defaults__ = defaults
    for kind, name, kept in _kept:
        setattr(kind, name, kept)
    for done in (_undo, _added, _defaults, _kept):
        done.clear()


# ---- functions of os that have no namesake in the package ----------------------------------------


def _refuse(what: str, subject: Any) -> OSError:
    return OSError(
        errno.EOPNOTSUPP, f"{what} (a mount of this process, not of the kernel)", subject
    )


@functools.wraps(os.chdir)
def _chdir(path: Any) -> None:
    path = path_or_fd(path)
    if isinstance(path, int):
        _fchdir(path)
        return
    try:
        fd = directfuse.os_open(path, os.O_PATH | os.O_DIRECTORY)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        raise  # perhaps of a path in a mount, which os would not find
    except (OSError, TypeError, ValueError):
        fd = -1
    try:
        if is_ours(fd):
            raise _refuse("a mount cannot be the working directory", path)
    finally:
        if fd >= 0:
            directfuse.close(fd)
    _real.os.chdir(path)


@functools.wraps(os.fchdir)
def _fchdir(fd: int) -> None:
    if is_ours(fd):
        if not stat.S_ISDIR(directfuse.fstat(index(fd)).st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        raise _refuse("a mount cannot be the working directory", fd)
    _real.os.fchdir(fd)


@functools.wraps(os.lockf)
def _lockf(fd: int, command: int, length: int, /) -> None:
    if not is_ours(fd):
        _real.os.lockf(fd, command, length)
        return
    fd, command = index(fd), index(command)
    if command == os.F_TEST:
        if lock_in_the_way(fd, length):
            raise OSError(errno.EACCES, os.strerror(errno.EACCES))
        return
    kinds = {
        os.F_LOCK: fcntl.LOCK_EX,
        os.F_TLOCK: fcntl.LOCK_EX | fcntl.LOCK_NB,
        os.F_ULOCK: fcntl.LOCK_UN,
    }
    if command not in kinds:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
    directfuse.lockf(fd, kinds[command], length, 0, os.SEEK_CUR)


@functools.wraps(os.get_inheritable)
def _get_inheritable(fd: int, /) -> bool:
    if not is_ours(fd):
        return _real.os.get_inheritable(fd)
    return not directfuse.fcntl(index(fd), fcntl.F_GETFD) & fcntl.FD_CLOEXEC


@functools.wraps(os.set_inheritable)
def _set_inheritable(fd: int, inheritable: bool, /) -> None:
    if not is_ours(fd):
        _real.os.set_inheritable(fd, inheritable)
        return
    directfuse.fcntl(index(fd), fcntl.F_GETFD)  # it is open
    if inheritable:
        raise _refuse("no other program can inherit the descriptor", fd)


@functools.wraps(os.get_blocking)
def _get_blocking(fd: int, /) -> bool:
    if not is_ours(fd):
        return _real.os.get_blocking(fd)
    return not directfuse.fcntl(index(fd), fcntl.F_GETFL) & os.O_NONBLOCK


@functools.wraps(os.set_blocking)
def _set_blocking(fd: int, blocking: bool, /) -> None:
    if not is_ours(fd):
        _real.os.set_blocking(fd, blocking)
        return
    fd = index(fd)
    flags = directfuse.fcntl(fd, fcntl.F_GETFL)
    wanted = flags & ~os.O_NONBLOCK if blocking else flags | os.O_NONBLOCK
    directfuse.fcntl(fd, fcntl.F_SETFL, wanted)


@functools.wraps(os.sendfile)
def _sendfile(out_fd: int, in_fd: int, offset: int | None, count: int) -> int:
    """Between a mount and anything else the bytes go through a buffer. A socket may take fewer than
    were read, or none."""
    if not is_ours(out_fd) and not is_ours(in_fd):
        return _real.os.sendfile(out_fd, in_fd, offset, count)
    start = directfuse.lseek(in_fd, 0, os.SEEK_CUR) if offset is None else offset
    data = directfuse.pread(in_fd, min(count, 1 << 20), start)
    sent = directfuse.write(out_fd, data) if data else 0
    if offset is None:
        directfuse.lseek(in_fd, start + sent, os.SEEK_SET)
    return sent


def _then_refresh(real: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(real)
    def change(*arguments: Any) -> None:
        real(*arguments)
        directfuse.identity_refresh()

    return change
