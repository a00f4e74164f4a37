"""Mounts: from a command line to a file system in this process, and its end.

The command line is the one the file system's user knows; the plugin parses it and names the
mountpoint. What is left mounted at the exit of the interpreter is unmounted then, so that a plugin
that writes its data at unmount has written them.
"""

import atexit
import errno
import logging
import math
import os
import shlex
import shutil
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

from directfuse import _fast, _native, _paths
from directfuse._errors import DirectfuseError, MountError, NotSupportedError, UnmountError
from directfuse._python import meaning

if TYPE_CHECKING:
    from directfuse._python.programs import Program
    from directfuse._served import Given

__all__ = ["Command", "Mount", "OpStats", "Stats", "find_mount", "mount", "mounts", "unmount"]

Placement: TypeAlias = Literal["auto", "inline", "helper", "server"]
Restart: TypeAlias = Literal["never", "on-failure"]
Command: TypeAlias = str | Sequence[str | os.PathLike[str]]

#: Built-in file systems that wait for nothing but their own short locks (native/python/gil.h).
_PROMPT = frozenset({"memfs"})

#: How long a fork waits for calls that are inside a Python file system.
_FORK_SECONDS = 1.0

_lock = threading.RLock()  # protects _ours
_ours: dict[int, "Mount"] = {}  # mounts that this module made and has not unmounted


log = logging.getLogger("directfuse")
_fast.listen_by(log.error)


def _before_fork() -> None:
    """Calls that are inside a Python file system end before the fork: that needs the GIL, which the
    forking thread holds from here on."""
    if any(found._program for found in list(_ours.values())):
        _fast.quiesce(_FORK_SECONDS)


os.register_at_fork(before=_before_fork)  # the first: it runs after those registered later

# A thread that is inside the lock when another one forks does not exist in the child.
os.register_at_fork(
    before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release
)


# ---- statistics ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OpStats:
    """What one operation of the plugin did since the mount."""

    calls: int = 0
    errors: int = 0
    bytes: int = 0
    nanoseconds: int = 0  # spent in the plugin; 0 unless mounted with timing=True


@dataclass(frozen=True, slots=True)
class Stats:
    """What a mount did: sums, and each operation that was called."""

    calls: int
    errors: int
    bytes: int
    nanoseconds: int
    ops: dict[str, OpStats] = field(repr=False)
    driven: dict[str, str] = field(default_factory=dict, repr=False)
    """Of a Python file system: how each of its operations runs, "inline" or "loop: why"."""
    trips: int = 0
    """Messages to the mount server; 0 where it is inline."""
    slept: int = 0
    """For how many of them the caller slept."""
    hits: int = 0
    """Calls answered from memory shared with the server, without a message."""


def _make_stats(
    rows: list[_native.OpCounters],
    driven: dict[str, str],
    trips: _native.TripCounters | None,
) -> Stats:
    ops = {row.name: OpStats(*row[1:]) for row in rows if row.calls}
    return Stats(
        calls=sum(op.calls for op in ops.values()),
        errors=sum(op.errors for op in ops.values()),
        bytes=sum(op.bytes for op in ops.values()),
        nanoseconds=sum(op.nanoseconds for op in ops.values()),
        ops=ops,
        driven=driven,
        trips=trips.trips if trips else 0,
        slept=trips.slept if trips else 0,
        hits=trips.hits if trips else 0,
    )


# ---- the mount -----------------------------------------------------------------------------------


class Mount:
    """A file system of this process. A context manager: leaving it unmounts.

    After os.fork() the child has its own copy of an inline file system as it was then; what either
    changes the other does not see. One in a mount server they share, with its open files; when the
    child unmounts, only the child leaves.
    """

    def __init__(
        self,
        entry: _native.MountEntry,
        command: list[str] | None = None,
        log: str = "",
        placement: Placement = "inline",
    ) -> None:
        self._entry = entry
        self._pid = os.getpid()
        self._ended: Stats | None = None
        self.command = command
        self.log = log
        self.placement: Placement = placement
        self.reason = ""  #: why it is not inline
        self._program: Program | None = None

    @property
    def id(self) -> int:
        """The number of the mount, never used again in this process."""
        return self._entry.id

    @property
    def mountpoint(self) -> str:
        """Where it is mounted: absolute, without symlinks."""
        return self._entry.mountpoint

    @property
    def read_only(self) -> bool:
        """Whether it was mounted with -o ro."""
        return self._entry.read_only

    @property
    def device(self) -> int:
        """st_dev of its files."""
        return self._entry.dev

    @property
    def fsname(self) -> str:
        """What is mounted, as the plugin says."""
        return self._entry.fsname

    @property
    def subtype(self) -> str:
        """The kind of file system, as the plugin says."""
        return self._entry.subtype

    @property
    def mounted(self) -> bool:
        """Whether paths lead into it."""
        return any(entry.id == self.id for entry in _native.list_mounts())

    def stats(self) -> Stats:
        """Calls, errors, bytes and time by operation; those at the end once it is unmounted.

        Raises DirectfuseError (EINVAL) when it was mounted with count=False.
        """
        rows = _native.op_stats(self.id)
        if rows is not None:
            return _make_stats(rows, self._driven(), _native.trip_stats(self.id))
        if self._ended is None:
            raise DirectfuseError(
                errno.EINVAL, "nothing was counted: mounted with count=False", self.mountpoint
            )
        return self._ended

    def _driven(self) -> dict[str, str]:
        host = self._program and self._program.host
        return dict(host.driven) if host else {}

    def unmount(self, *, lazy: bool = False) -> None:
        """Ends the mount: calls in flight are waited for, then the plugin ends.

        lazy: leaves the name space at once, the plugin ends with the last open file.
        Raises UnmountError: EBUSY when files are open, EINVAL when it is unmounted already.
        """
        sys.audit("directfuse.unmount", self.mountpoint)
        rows, trips = _native.op_stats(self.id), _native.trip_stats(self.id)
        code = _native.unmount(self.id, lazy=lazy)
        if code:
            raise UnmountError(code, _unmount_words(code), self.mountpoint)
        if rows is not None:
            self._ended = _make_stats(rows, self._driven(), trips)
        with _lock:
            _ours.pop(self.id, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        """Unmounts, unless that was done, or this is a forked child: the mount is its parent's.

        When an exception passes, files that it left open do not replace it by their EBUSY: the
        mount is detached lazily.
        """
        if self._pid != os.getpid() or not self.mounted:
            return
        try:
            self.unmount()
        except UnmountError as busy:
            if kind is None or busy.errno != errno.EBUSY:
                raise
            self.unmount(lazy=True)

    def __repr__(self) -> str:
        what = shlex.join(self.command) if self.command else self.subtype or self.fsname
        state = "" if self.mounted else ", unmounted"
        return f"<directfuse.Mount {what!r} at {self.mountpoint!r}, {self.placement}{state}>"

    def __reduce__(self) -> Any:
        raise TypeError(
            "cannot pickle a Mount: its file system lives in this process; mount again where it is "
            f"needed, with directfuse.mount({self.command!r})"
        )


def _unmount_words(code: int) -> str:
    if code == errno.EBUSY:
        return "files are open in it; close them, or unmount(lazy=True) to end with the last"
    if code == errno.EINVAL:
        return "it is not mounted (any more)"
    return os.strerror(code)


# ---- mounting ------------------------------------------------------------------------------------


def mount(
    command: Command | object,
    mountpoint: str | os.PathLike[str] | None = None,
    *,
    placement: Placement = "auto",
    timing: bool = False,
    count: bool = True,
    may_wait: bool | None = None,
    timeout: float | None = None,
    options: Sequence[str] = (),
    call_timeout: float | None = None,
    restart: Restart = "never",
) -> Mount:
    """Mounts a FUSE file system in this process, without the kernel and without privilege.

    command: the file system's own command line, as one string or as words: "memfs /mem",
        ["passthrough", source, target]. Its first word is, in this order: a built-in file system
        (`directfuse backends` lists them); one that an installed package brings; module:Class, a
        Python file system; a Python script, or the path or name of a FUSE program, or of a shared
        object that holds one. The mountpoint need not exist.
        Or a Python file system itself: an object (or its class) with the operations of pyfuse3,
        fusepy, mfusepy or refuse.
    mountpoint: put behind the command line as its last word, when given; an object needs it.
    placement: "inline" runs the file system in this process, at the speed of a function call.
        "server" runs it in a process of its own, a mount server, which ends with its last user:
        forked processes share it, and its crash is an ENOTCONN here. "helper" runs the program as
        it is in a process of its own, which speaks the FUSE protocol to this one. "auto" is inline
        where the program can be loaded, else helper; a command line of one word "@NAME" joins the
        server that `directfuse serve --name NAME` has started. The mount's `placement` and `reason`
        tell which. A Python file system is inline; in a server, which is an interpreter then, its
        command line is run, or a pickled copy of an object served.
    timing: stats() tells the time spent in the plugin, for about 50 ns an operation.
    count: stats() counts; False spares a few ns an operation.
    may_wait: whether the plugin may wait for a network, a disk or another thread. Unless it is
        False for every mount of the process, calls release the GIL. None: known for what is built
        in, True for all else.
    timeout: seconds that the program may take until it is mounted, rounded up, at most 65535; then
        it is left behind and ETIMEDOUT raised. None: no limit.
    options: mount options of an object, as behind -o: ["ro", "allow_other"].
    call_timeout: of an object with pyfuse3's operations: seconds after which a call that its event
        loop has not answered fails with ETIMEDOUT. What runs inline cannot be stopped. With
        placement "server", of any call but one that waits for a lock; what it asked for may still
        happen.

    restart: with placement "server" and a read-only file system (-o ro): "on-failure" starts the
        server again when it dies or its file system crashes, at most five times a minute. Open
        files stay open, calls wait meanwhile; locks are gone.

    Raises MountError, whose text has the plugin's own words: ENOENT (no such file system), ENOEXEC
    (no FUSE program, or one that cannot be loaded safely), EBUSY (something is mounted there),
    EINVAL, EIO (the program ended before it mounted); NotSupportedError for what comes later.
    """
    program, given, argv = _meaning(command, mountpoint, options, call_timeout, placement)
    placement = _choose_placement(placement, argv)
    library = "" if program or given else library_of(argv)
    limited = _milliseconds(call_timeout) if given or _is_command(command) else 0
    if limited and placement != "server":
        raise TypeError("call_timeout is for placement='server' and for objects")
    again = _is_restarted(restart, placement, argv)
    if again and given is not None:
        raise NotSupportedError(
            errno.ENOTSUP, "restart='on-failure' is not for Python file systems", argv[0]
        )
    sys.audit("directfuse.mount", shlex.join(argv))
    seconds = _seconds(timeout)
    if given is not None:
        made = Mount(*_start(argv, given, count=count, timing=timing, seconds=seconds), "server")
    elif program is None:
        made = _place(argv, library, placement, again, count=count, timing=timing, seconds=seconds)
    else:
        made = _place_program(argv, program, placement, count=count, timing=timing, seconds=seconds)
    if limited:
        _native.set_call_timeout(made.id, limited)
    if may_wait is None:
        may_wait = made.placement == "server" or argv[0] not in _PROMPT
    if not may_wait:
        _fast.declare_prompt(made.id)
    with _lock:
        _ours[made.id] = made
    return made


def _is_command(command: Command | object) -> bool:
    return isinstance(command, str | bytes | bytearray | memoryview | os.PathLike | Sequence)


def _meaning(
    command: Command | object,
    mountpoint: str | os.PathLike[str] | None,
    options: Sequence[str],
    call_timeout: float | None,
    placement: Placement,
) -> tuple["Program | None", "Given | None", list[str]]:
    """A Python program for this process, or what a Python server is to be given, or neither; and
    the words of the command line."""
    if _is_command(command):
        if options:
            raise TypeError("options are for objects; a command line has -o")
        argv = _words(command)
        if mountpoint is not None:
            argv.append(os.fspath(mountpoint))
        if argv[0].startswith("@") or _paths.plugin(argv[0]):
            return None, None, argv
        if placement == "helper":
            return None, None, meaning.outside(argv) or argv
        if placement == "server":
            return None, _given() if meaning.is_python(argv) else None, argv
        return meaning.find(argv), None, argv
    if mountpoint is None:
        raise TypeError("an object needs a mountpoint: directfuse.mount(operations, '/m')")
    from directfuse._python import programs

    point = os.path.abspath(mountpoint)
    program = programs.of_object(command, point, list(options), call_timeout)
    if placement != "server":
        return program, None, program.words
    return None, _given(command, point, options), program.words


def _given(*of_object: Any) -> "Given":
    """What a Python server is given: to run a command line, or an object."""
    from directfuse import _served  # sockets, processes

    return _served.Given.of_object(*of_object) if of_object else _served.Given()


def _words(command: Any) -> list[str]:
    """The command line as words."""
    if isinstance(command, str):
        try:
            words = shlex.split(command)
        except ValueError as error:
            raise MountError(
                errno.EINVAL, f"cannot split the command line into words: {error}", command
            ) from None
    elif isinstance(command, Sequence) and not isinstance(command, bytes | bytearray | memoryview):
        words = [os.fspath(word) for word in command]
        if not all(isinstance(word, str) for word in words):
            raise TypeError("the words of a command line are str or os.PathLike[str]")
    else:
        raise TypeError("a command line is a str or a sequence of words")
    if not words or not words[0]:
        raise MountError(
            errno.EINVAL, "the command line is empty; for example: directfuse.mount('memfs /mem')"
        )
    for word in words:
        if "\0" in word:
            raise ValueError("embedded null byte")
    return words


def _choose_placement(placement: Placement, argv: list[str]) -> Placement:
    """What is known before the program is looked at: a name joins a server."""
    if placement not in ("auto", "inline", "helper", "server"):
        raise ValueError(f"placement is 'auto', 'inline', 'helper' or 'server', not {placement!r}")
    if not argv[0].startswith("@"):
        return placement
    if placement in ("inline", "helper"):
        raise NotSupportedError(
            errno.ENOTSUP,
            f"{argv[0]} names a mount server, it cannot be {placement}; leave placement out",
            argv[0],
        )
    if len(argv) > 1:
        raise MountError(
            errno.EINVAL,
            f"{argv[0]} is mounted where its server has mounted it; leave the rest out",
            shlex.join(argv),
        )
    return "server"


def library_of(argv: list[str]) -> str:
    """The file that the first word means: a plugin's shared object or a FUSE program. What it is,
    and whether it can be loaded, is found out from its bytes (native/host/object.c)."""
    name = argv[0]
    if name.startswith("@"):
        return name
    builtin = _paths.plugin(name)
    if builtin is not None:
        return os.fspath(builtin)
    if "/" not in name and not os.path.isfile(name):
        found = shutil.which(name)
        if found is None:
            known = ", ".join([*_paths.backend_names(), *meaning.names()])
            raise MountError(
                errno.ENOENT,
                f"neither a built-in file system ({known}) nor a program on PATH; a plugin of your "
                "own is named by its path, with a slash",
                name,
            )
        name = found
    if not os.path.exists(name):
        raise MountError(errno.ENOENT, "no such file", name)
    if not os.path.isfile(name):
        raise MountError(errno.ENOEXEC, "not a file, so no FUSE program", name)
    return os.path.abspath(name)


def _place(
    argv: list[str],
    library: str,
    placement: Placement,
    restart: bool,
    *,
    count: bool,
    timing: bool,
    seconds: int,
) -> Mount:
    """Mounts where it was asked for, or where it can be (docs/programs.md has the rule)."""
    server = placement == "server"
    if placement == "helper":
        return _start_helper(
            argv, library, "asked for", count=count, timing=timing, seconds=seconds
        )
    try:
        entry, _, log = _start(
            argv,
            library,
            server=server,
            restart=restart,
            count=count,
            timing=timing,
            seconds=seconds,
        )
        return Mount(entry, argv, log, "server" if server else "inline")
    except MountError as refusal:
        # ENOEXEC: found out before anything of it ran. A shared object is no program to start.
        inline = placement == "inline"
        if inline or refusal.errno != errno.ENOEXEC or not _is_program(library):
            raise
        reason = str(refusal.strerror)
        return _start_helper(
            argv,
            library,
            reason,
            server=server,
            restart=restart,
            count=count,
            timing=timing,
            seconds=seconds,
        )


def _place_program(
    argv: list[str],
    program: "Program",
    placement: Placement,
    *,
    count: bool,
    timing: bool,
    seconds: int,
) -> Mount:
    if placement == "helper":
        raise NotSupportedError(
            errno.ENOTSUP,
            "an object is no program that a helper could start; placement='server' serves a copy "
            "of it, placement='inline' itself",
            argv[0],
        )
    made = Mount(*_start(argv, program, count=count, timing=timing, seconds=seconds))
    made._program = program
    return made


def _is_program(path: str) -> bool:
    return os.access(path, os.X_OK) and not path.endswith(".so")


def _start_helper(
    argv: list[str],
    library: str,
    reason: str,
    *,
    server: bool = False,
    restart: bool = False,
    count: bool,
    timing: bool,
    seconds: int,
) -> Mount:
    """server: the helper's own half runs in a mount server, so that processes share it."""
    helper = _paths.plugin(_paths.HELPER)
    if _paths.plugin(argv[0]) is not None:
        library = os.fspath(_paths.program(argv[0]) or library)
    if helper is None or library.endswith(".so"):
        raise MountError(
            errno.ENOEXEC, "a shared object is no program that a helper could start", library
        )
    words = [_paths.HELPER, library, *argv[1:]]
    entry, _, log = _start(
        words,
        os.fspath(helper),
        server=server,
        restart=restart,
        count=count,
        timing=timing,
        seconds=seconds,
    )
    made = Mount(entry, argv, log, "server" if server else "helper")
    made.reason = reason
    return made


def _is_restarted(restart: Restart, placement: Placement, argv: list[str]) -> bool:
    if restart not in ("never", "on-failure"):
        raise ValueError(f"restart is 'never' or 'on-failure', not {restart!r}")
    if restart == "never":
        return False
    if placement != "server" or argv[0].startswith("@"):
        raise TypeError(
            "restart='on-failure' is for placement='server'; a named server is started so by "
            "`directfuse serve --restart on-failure`"
        )
    return True


def _milliseconds(timeout: float | None) -> int:
    if timeout is None:
        return 0
    if not 0 < timeout <= 1e6:
        raise ValueError("a call_timeout is more than 0 and at most a million seconds")
    return math.ceil(timeout * 1000)


def _seconds(timeout: float | None) -> int:
    if timeout is None:
        return 0
    if not 0 < timeout <= 65535:
        raise ValueError("a timeout is more than 0 and at most 65535 seconds")
    return math.ceil(timeout)


def _start(
    argv: list[str],
    what: "str | Program | Given",
    *,
    server: bool = False,
    restart: bool = False,
    count: bool,
    timing: bool,
    seconds: int,
) -> tuple[_native.MountEntry, list[str], str]:
    flags = _native.mount_flags(
        count=count, timing=timing, seconds=seconds, server=server, restart=restart
    )
    if isinstance(what, str):
        code, words = _start_library(argv, what, flags)
    else:
        code, words = what.start(argv, flags=flags, seconds=seconds)
    for entry in _native.list_mounts():
        if entry.id == code:
            return entry, argv, words
    _native.unmount(code, lazy=True)  # takes what the program left
    raise MountError(errno.EIO, "the file system unmounted itself at once", shlex.join(argv))


def find_mount(command: Command, mountpoint: str | os.PathLike[str] | None = None) -> Mount | None:
    """The mount of this process that mount() made of the same words, if it still is one."""
    argv = _words(command)
    if mountpoint is not None:
        argv.append(os.fspath(mountpoint))
    with _lock:
        alike = [found for found in _ours.values() if found.command == argv]
    return next((found for found in alike if found.mounted), None)


def _start_library(argv: list[str], library: str, flags: int) -> tuple[int, str]:
    _fast.expect_mount(True)
    try:
        code, words = _native.mount(library, argv, flags)
    finally:
        _fast.expect_mount(False)
    if code < 0:
        raise MountError(-code, words, shlex.join(argv))
    return code, words


# ---- listing, unmounting by path -----------------------------------------------------------------


def mounts() -> list[Mount]:
    """All mounts of this process, those that C code made too, in no particular order."""
    entries = _native.list_mounts()
    with _lock:
        return [_ours.get(entry.id) or Mount(entry) for entry in entries]


def unmount(mountpoint: str | os.PathLike[str], *, lazy: bool = False) -> None:
    """Unmounts what is mounted at a path; see Mount.unmount().

    Raises UnmountError (EINVAL) when no mount of this process is there.
    """
    wanted = os.path.realpath(mountpoint)
    for found in mounts():
        if found.mountpoint == wanted:
            found.unmount(lazy=lazy)
            return
    raise UnmountError(
        errno.EINVAL,
        "nothing is mounted there by this process (`directfuse unmount` is for kernel mounts)",
        os.fspath(mountpoint),
    )


# ---- the end of the interpreter ------------------------------------------------------------------


@atexit.register
def _unmount_all() -> None:
    """Lazily where files are still open. A forked child leaves its parent's file systems alone."""
    with _lock:
        left = [found for found in _ours.values() if found._pid == os.getpid()]
    for found in reversed(left):
        if _native.unmount(found.id, lazy=False, leave=True) == errno.EBUSY:
            _native.unmount(found.id, lazy=True, leave=True)
    if "directfuse._python.ends" in sys.modules:
        sys.modules["directfuse._python.ends"].close()
