"""Path-keyed Python file systems, with the operations of fusepy, mfusepy and refuse: the side of a
session that is written in Python.

Their methods are called from C, on the thread that made the call (native/pyhost/path_*.c). A file
system that handles ctypes structures itself (raw_fi, lock, poll, read_buf ...) goes the long way:
its own library's ctypes callbacks, through our libfuse.
"""

import inspect
import logging
from collections.abc import Iterable
from typing import Any

from directfuse import _pyhost
from directfuse._python.nodes import report

__all__ = ["Host", "fuse_words", "is_path_file_system", "needs_ctypes"]

log = logging.getLogger("directfuse")

OPERATIONS = frozenset(
    (  # noqa: SIM905
        "getattr access chmod chown truncate utimens statfs setxattr getxattr listxattr "
        "removexattr mknod mkdir unlink rmdir symlink link rename readlink open create "
        "opendir flush release releasedir fsync fsyncdir fallocate flock read write readdir "
        "destroy"
    ).split()
)

#: Operations whose arguments are ctypes objects of the library.
CTYPES = ("lock", "poll", "read_buf", "write_buf", "ioctl", "init_with_config", "bmap")

#: Options of libfuse 2 that are settings of libfuse 3, in the order that settings() returns them.
SETTINGS = ("use_ino", "readdir_ino", "direct_io", "hard_remove")

#: The option of libfuse 2 by which open() is given O_TRUNC, and has to do it.
TRUNCATES = "atomic_o_trunc"

#: FUSE(...) options that mean nothing any more.
GONE = frozenset(
    (  # noqa: SIM905
        "nopath intr intr_signal big_writes large_read nonempty foreground debug nothreads"
    ).split()
)

FLAGS = {"debug": "-d", "nothreads": "-s"}


def is_path_file_system(ops: object) -> bool:
    """Whether the object (or class) has methods getattr() and readdir() about paths."""
    method = getattr(ops, "getattr", None)
    lists = getattr(ops, "readdir", None) or getattr(ops, "readdir_with_offset", None)
    return callable(method) and callable(lists) and not inspect.iscoroutinefunction(method)


def coroutines(ops: object) -> list[str]:
    """The operations that are `async def`, as none of fusepy's may be."""
    return [n for n in sorted(OPERATIONS) if inspect.iscoroutinefunction(getattr(ops, n, None))]


def implemented(ops: object, name: str) -> bool:
    """Whether the file system has an operation; mfusepy marks those that it only declares."""
    method = getattr(ops, name, None)
    return callable(method) and not getattr(method, "libfuse_ignore", False)


def needs_ctypes(ops: object, raw_fi: bool) -> bool:
    """Whether an operation wants what only the library's own callbacks make."""
    return raw_fi or any(implemented(ops, name) and not _of_base(ops, name) for name in CTYPES)


def _of_base(ops: object, name: str) -> bool:
    """Whether the method is the one that fusepy's Operations gives to everybody."""
    for kind in type(ops).__mro__:
        if name in kind.__dict__:
            return kind.__name__ == "Operations" and kind.__module__ in ("fuse", "refuse.high")
    return False


def fuse_words(mountpoint: str, options: dict[str, Any]) -> list[str]:
    """The command line of FUSE(operations, mountpoint, **options), for libfuse 3."""
    words = ["fuse", *(flag for name, flag in FLAGS.items() if options.get(name))]
    for name, value in options.items():
        if name in GONE or name in SETTINGS or name == TRUNCATES or value is False:
            continue
        words += ["-o", name if value is True else f"{name}={value}"]
    return [*words, mountpoint]


class Host:
    """One path-keyed file system."""

    def __init__(self, ops: Any, options: dict[str, Any] | None = None) -> None:
        self.ops = ops
        self.options = {"fsname": type(ops).__name__} | (options or {})
        methods = frozenset(name for name in OPERATIONS if implemented(ops, name))
        self.driven = dict.fromkeys(sorted(methods), "inline")
        self.session = _pyhost.PathSession(
            ops,
            self,
            methods,
            by_call=_wants_call(ops),
            nanoseconds=bool(getattr(ops, "use_ns", False)),
            create_flags=_create_takes_flags(ops),
            readdir_offset=implemented(ops, "readdir_with_offset"),
        )

    def run(self, mountpoint: str, words: Iterable[str] = ()) -> int:
        """init(), mounted, served, ended; the status of fuse_main()."""
        if implemented(self.ops, "init"):
            self.ops.init("/")
        head, *rest = fuse_words(mountpoint, self.options)
        return self.session.run([head, *rest, *words])  # what the user says comes last, and wins

    def settings(self) -> tuple[bool, ...]:
        """Of SETTINGS, what libfuse is to take, and whether O_TRUNC is truncate(); asked when the
        mount begins. With libfuse 2, which these libraries are for, open() does not see it."""
        asked = (bool(self.options.get(name)) for name in SETTINGS)
        return (*asked, implemented(self.ops, "truncate") and not self.options.get(TRUNCATES))

    def report(self, operation: str, error: BaseException, *returned: object) -> int:
        """The errno that an exception stands for, after it is written down."""
        return report(self.ops, operation, error, *returned)


def _wants_call(ops: Any) -> bool:
    """fusepy calls operations(name, ...), which LoggingMixIn and others redefine; its default only
    finds the method. mfusepy ignores it."""
    for kind in type(ops).__mro__:
        if kind.__module__ == "mfusepy":
            return False
        if "__call__" in kind.__dict__:
            return (kind.__module__, kind.__name__) not in (
                ("fuse", "Operations"),
                ("refuse.high", "Operations"),
            )
    return False


def _create_takes_flags(ops: Any) -> bool:
    """mfusepy's create(path, mode, flags); fusepy's takes two, or a fuse_file_info by default."""
    if not any(kind.__module__ == "mfusepy" for kind in type(ops).__mro__):
        return False
    return implemented(ops, "create") and len(inspect.signature(ops.create).parameters) != 2
