"""The one module that touches cffi: mounts and their statistics, and the raw calls of the core.

A raw call is `lib.df_call_<name>`, one for each row of native/core/calls.def: it returns what the
POSIX call returns, or a negative errno, or NOT_OURS. cffi releases the GIL around each.
"""

import errno
import itertools
import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

try:
    from directfuse._cffi import ffi, lib
except ModuleNotFoundError as error:  # Python started in a clone finds the package there first
    if error.name != "directfuse._cffi":
        raise
    _package = os.path.dirname(__file__)
    if os.path.isdir(_package):
        _why = "is directfuse's source, without its compiled parts: start Python in another "
        _why += "directory, or install the source itself: pip install -e ."
    else:
        _why = "is in an archive, and compiled parts are loaded from files only: install it into a "
        _why += "directory: pip install --target"
    raise ImportError(f"{_package} {_why}", name=error.name) from None

from directfuse._fast import attempt  # behind what says which parts are missing

__all__ = [
    "FD_BASE",
    "MOUNTS_MAX",
    "NOT_OURS",
    "SERVER",
    "MountEntry",
    "OpCounters",
    "TripCounters",
    "abandonable",
    "attempt",
    "call_stats",
    "configure_server",
    "ffi",
    "identity_refresh",
    "launch",
    "lib",
    "list_mounts",
    "memory_limit",
    "mount",
    "mount_flags",
    "mount_served",
    "op_stats",
    "points_of_server",
    "serve",
    "set_call_timeout",
    "size_of",
    "socket_path",
    "trip_stats",
    "umask",
    "unmount",
]

FD_BASE: int = lib.DF_FD_BASE
"""Descriptors from here up are virtual; the kernel gives out none so high."""

NOT_OURS: int = lib.DF_NOT_OURS
"""A raw call's answer: the path or descriptor belongs to the kernel."""

SERVER: int = lib.DF_MOUNT_SERVER
"""Of mount_flags(): in a mount server."""

_SECONDS = 16  # bits: DF_MOUNT_SECONDS() stands behind the other flags
_WORDS = 4096  # bytes kept of what a plugin says while it mounts
_PATH_MAX = 4096  # bytes, with NUL

MOUNTS_MAX = 64
"""File systems of a server: DF_MOUNT_COUNT (native/channel/layout.h)."""


class MountEntry(NamedTuple):
    """One line of the mount table."""

    id: int
    read_only: bool
    dev: int
    fsname: str
    subtype: str
    mountpoint: str


class OpCounters(NamedTuple):
    """Counters of one operation of a mount."""

    name: str
    calls: int
    errors: int
    bytes: int
    nanoseconds: int


class TripCounters(NamedTuple):
    """What calls into a mount server have cost."""

    trips: int
    spun: int
    slept: int
    hits: int


def mount(library: str | None, argv: Sequence[str], flags: int, made: list[int]) -> tuple[int, str]:
    """Number of the new mount, and what the plugin said; or minus the errno, and why.

    flags: those of mount_flags(). made: gets the number, too. A wait that a signal interrupts goes
    on when its handlers have run (PEP 475), for what is left of the seconds.
    """
    seconds = flags >> _SECONDS
    end = time.monotonic() + seconds
    while True:
        code, said = _with_words(lib.df_mount, library, argv, flags, made)
        if code != -errno.EINTR:
            return code, said
        if seconds:
            left = math.ceil(end - time.monotonic())
            if left <= 0:
                return -errno.ETIMEDOUT, f"it has not mounted anything within {seconds} seconds"
            flags = flags & (1 << _SECONDS) - 1 | left << _SECONDS


def launch(library: str, argv: Sequence[str], flags: int, sockets: list[int]) -> tuple[int, str]:
    """Starts a mount server: a socket to it, for mount_served(), or minus the errno, and why; which
    `sockets` gets, too. Until the server has mounted, closing the socket ends it."""
    return _with_words(lib.df_mount_launch, library, argv, flags, sockets)


def _with_words(
    function: Callable[..., int],
    library: str | None,
    argv: Sequence[str],
    flags: int,
    results: list[int],
) -> tuple[int, str]:
    words = [ffi.new("char[]", os.fsencode(word)) for word in argv]
    array = ffi.new("char *[]", [*words, ffi.NULL])
    message = ffi.new("char[]", _WORDS)
    name = ffi.NULL if library is None else os.fsencode(library)
    code = _noted(results, function, name, len(words), array, flags, message, _WORDS)
    return code, ffi.string(message).decode(errors="replace").strip()


def mount_served(socket: int, flags: int, made: list[int]) -> tuple[int, str]:
    """mount() for a mount server that was started with the other end of this socket."""
    message = ffi.new("char[]", _WORDS)
    code = _noted(made, lib.df_mount_served, socket, flags, message, _WORDS)
    return code, ffi.string(message).decode(errors="replace").strip()


def _noted(results: list[int], function: Callable[..., int], *arguments: Any) -> int:
    """function(*arguments), whose result is in the list before the handler of a signal that has
    come meanwhile can raise anything: extend() calls it without a step of the interpreter."""
    results.extend(itertools.starmap(function, [arguments]))
    return results[-1]


def build() -> bytes:
    """Which build of directfuse this is (native/core/build.h)."""
    return bytes(ffi.string(lib.df_build))


def points_of_server(name: str) -> tuple[list[str], int, str]:
    """Mountpoints of the mount server of that name, which is waited for until it has mounted; or
    none, the errno, and why. A signal interrupts the wait as mount()'s."""
    room = MOUNTS_MAX * _PATH_MAX
    points, message = ffi.new("char[]", room), ffi.new("char[]", _WORDS)
    code = -errno.EINTR
    while code == -errno.EINTR:
        code = lib.df_joined_points(os.fsencode(name), points, room, message, _WORDS)
    if code < 0:
        return [], -code, _text(message)
    return [os.fsdecode(point) for point in ffi.buffer(points)[:].split(b"\0")[:code]], 0, ""


def socket_path(name: str, *, make: bool) -> tuple[int, str]:
    """0 or the errno, and where the mount server of that name listens (native/api/joined.h).

    The path is empty after EINVAL and ENAMETOOLONG: there is none.
    """
    path = ffi.new("char[]", lib.DF_SOCKET_PATH_SIZE)
    error = -int(lib.df_joined_socket_path(os.fsencode(name), make, path))
    none = error in (errno.EINVAL, errno.ENAMETOOLONG)
    return error, "" if none else _text(path)


def size_of(variable: str) -> tuple[int, str]:
    """Bytes that a variable of the environment names, 0: it is not set; and why it is no size, or
    nothing (native/process/size.h)."""
    size = ffi.new("uint64_t *")
    message = ffi.new("char[]", _WORDS)
    lib.df_size_of(variable.encode(), size, message, _WORDS)
    return size[0], _text(message)


def memory_limit() -> tuple[int, bytes] | None:
    """Bytes that this process and others of its cgroup may have, and the directory of that cgroup;
    None: as much as the machine has (native/process/memory_limit.h)."""
    limit = ffi.new("struct df_memory_limit *")
    if not lib.df_memory_limit_find(limit):
        return None
    return int(limit.bytes), bytes(ffi.string(limit.directory))


def configure_server() -> str:
    """Before serve(), and what it serves: why it cannot be as the environment has it, or nothing
    (native/server/process.h)."""
    message = ffi.new("char[]", _WORDS)
    lib.df_server_process_configure(message, _WORDS)
    return _text(message)


@contextmanager
def abandonable(control: int) -> Iterator[None]:
    """While a server mounts, whoever waits at the other end of the socket (-1: nobody) may end it
    by going away, and anybody by a signal (native/process/abandoned.h)."""
    lib.df_abandoned_watch(control)
    try:
        yield
    finally:
        lib.df_abandoned_over()


def serve(*, control: int, listener: int, stay: bool, report: int) -> int:
    """Serves what this process has mounted until the end (native/server/process.h); 0 or the errno.

    -1 stands for a descriptor that there is not.
    """
    return -int(lib.df_server_process(control, listener, stay, report, ffi.NULL))


def mount_flags(
    *, count: bool, timing: bool, seconds: int, server: bool = False, restart: bool = False
) -> int:
    """DF_MOUNT_* of df_mount() and df_mount_function()."""
    flags: int = (lib.DF_MOUNT_TIMING if timing else 0) | (0 if count else lib.DF_MOUNT_NOSTATS)
    flags |= SERVER if server else 0
    flags |= lib.DF_MOUNT_RESTART if restart else 0
    return flags | seconds << _SECONDS


def unmount(mount_id: int, *, lazy: bool, leave: bool = False) -> int:
    """0, or the errno. leave: a mount in a server goes on there if others use it."""
    flags = (lib.DF_UNMOUNT_LAZY if lazy else 0) | (lib.DF_UNMOUNT_LEAVE if leave else 0)
    return -int(lib.df_unmount(mount_id, flags))


def list_mounts() -> list[MountEntry]:
    """All mounts of this process, those that C code made too."""
    count = lib.df_mounts(ffi.NULL, 0)
    while True:
        room = count
        entries = ffi.new("struct df_mount_info[]", room)
        count = lib.df_mounts(entries, room)
        if count <= room:  # else others have mounted meanwhile
            return [_mount_entry(entries[i]) for i in range(count)]


def _mount_entry(info: Any) -> MountEntry:
    return MountEntry(
        info.id,
        bool(info.read_only),
        info.dev,
        _text(info.fsname),
        _text(info.subtype),
        _text(info.mountpoint),
    )


def _text(array: Any) -> str:
    return os.fsdecode(ffi.string(array))


def op_stats(mount_id: int) -> list[OpCounters] | None:
    """Counters of all operations; None when nothing is counted or the mount is gone."""
    count = lib.df_stats(mount_id, ffi.NULL, 0)
    if count < 0:
        return None
    rows = ffi.new("struct df_op_stats[]", count)
    if lib.df_stats(mount_id, rows, count) < 0:
        return None
    return [
        OpCounters(_text(row.name), row.calls, row.errors, row.bytes, row.nanoseconds)
        for row in rows
    ]


def trip_stats(mount_id: int) -> TripCounters | None:
    """Trips to the mount server; None when the mount is inline or gone."""
    row = ffi.new("struct df_trip_stats *")
    if lib.df_trip_stats(mount_id, row) < 0:
        return None
    return TripCounters(row.trips, row.spun, row.slept, row.hits)


def set_call_timeout(mount_id: int, milliseconds: int) -> None:
    """Of a mount in a server; 0: none."""
    lib.df_set_call_timeout(mount_id, milliseconds)


def call_stats() -> dict[str, tuple[int, int]]:
    """Calls that reached no plugin: name -> (handed to the kernel, refused)."""
    count = lib.df_call_stats(ffi.NULL, 0)
    rows = ffi.new("struct df_call_stats[]", count)
    lib.df_call_stats(rows, count)
    return {_text(row.name): (row.passed, row.refused) for row in rows}


def umask(mask: int) -> int:
    """Sets the mask for the process and for mounts; the former one."""
    former: int = lib.df_umask(mask)
    return former


def identity_refresh() -> int:
    """0, or the errno."""
    return -int(lib.df_identity_refresh())
