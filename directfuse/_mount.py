"""Mounts: from a command line to a file system in this process, and its end.

The command line is the one the file system's user knows; the plugin parses it and names the
mountpoint. What is left mounted at the exit of the interpreter is unmounted then, so that a plugin
that writes its data at unmount has written them.
"""

import atexit
import errno
import math
import os
import shlex
import shutil
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from directfuse import _call, _fast, _native, _paths
from directfuse._command import Command, is_command, library_of, point_of, words_of
from directfuse._errors import DirectfuseError, NotSupportedError, UnmountError
from directfuse._placement import (
    Options,
    Placed,
    Placement,
    Restart,
    choose,
    is_restarted,
    place,
    place_given,
    place_program,
)
from directfuse._python import meaning

if TYPE_CHECKING:
    from directfuse._python.programs import Program
    from directfuse._served import Given

__all__ = ["Command", "Mount", "OpStats", "Stats", "find_mount", "mount", "mounts", "unmount"]

#: Built-in file systems that wait for nothing but their own short locks (native/python/gil.h), in
#: this process: who asks another one waits for that.
_PROMPT = frozenset({"memfs"})

#: How long a fork waits for calls that are inside a Python file system.
_FORK_SECONDS = 1.0

_lock = threading.RLock()  # protects _ours
_ours: dict[int, "Mount"] = {}  # mounts that this module made and has not unmounted


def _report(words: str) -> None:
    import logging  # seldom needed, and a tenth of what importing this package takes

    logging.getLogger("directfuse").error(words)


_fast.listen_by(_report)


def _explain(error: OSError) -> None:
    """Says in a note why a forked child's calls fail (ENOTCONN): its parent's helpers are not its
    own."""
    for mount in list(_ours.values()):
        if mount.placement == "helper" and mount._pid != os.getpid():
            error.add_note(
                f"{mount.mountpoint} is served by a process of its own, to which only the process "
                f"that mounted it ({mount._pid}) is connected, and none that was forked from "
                'it; mount it with placement="server", and all of them share it'
            )


_fast.explain_by(_explain)
_call.explain_by(_explain)


def _before_fork() -> None:
    """Calls that are inside a Python file system end before the fork: that needs the GIL, which the
    forking thread holds from here on."""
    if any(found._program for found in list(_ours.values())):
        _fast.quiesce(_FORK_SECONDS)


# The first: `before` runs after those registered later.
os.register_at_fork(before=_before_fork, after_in_parent=_fast.forked, after_in_child=_fast.forked)

# A thread that is inside the lock when another one forks does not exist in the child.
os.register_at_fork(
    before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release
)


# ---- statistics ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OpStats:
    """What one operation of the plugin has done since the mount.

    calls: how often it was called; errors: how often it failed; bytes: that it has read or
    written; nanoseconds: spent in the plugin, 0 unless mounted with timing=True.
    """

    calls: int = 0
    errors: int = 0
    bytes: int = 0
    nanoseconds: int = 0


@dataclass(frozen=True, slots=True)
class Stats:
    """What a mount has done: `calls`, `errors`, `bytes` and `nanoseconds` are those of OpStats,
    summed over all operations; `ops` has each operation that was called, by its name."""

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
    """Those of the trips for which the caller slept until the answer was there."""
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
        placed: Placed | None = None,
    ) -> None:
        self._entry = entry
        self._pid = os.getpid()
        self._ended: Stats | None = None
        self._program = placed.program if placed else None
        self.command = placed.command if placed else None
        self.log = placed.log if placed else ""
        self.placement: Placement = placed.placement if placed else "inline"
        self.reason = placed.reason if placed else ""  #: why it is not inline

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
        """Calls, errors, bytes and time by operation; after the unmount those at its end.

        Raises DirectfuseError (EINVAL) when it was mounted with count=False, or has ended in
        another way than by this object's unmount().
        """
        rows = _native.op_stats(self.id)
        if rows is not None:
            return _make_stats(rows, self._driven(), _native.trip_stats(self.id))
        if self._ended is None:
            why = "mounted with count=False, or ended in another way than by this unmount()"
            raise DirectfuseError(errno.EINVAL, f"nothing is known: {why}", self.mountpoint)
        return self._ended

    def _driven(self) -> dict[str, str]:
        host = self._program and self._program.host
        return dict(host.driven) if host else {}

    def unmount(self, *, lazy: bool = False) -> None:
        """Ends the mount: waits for calls that are under way, then the plugin ends.

        lazy: paths do not lead into it any more at once; the plugin ends with the last open file.
        Raises UnmountError: EBUSY when files are open, or calls have not ended within five seconds;
        EINVAL when it is unmounted already. With a call_timeout, which a mount in a server may
        have, ETIMEDOUT after that time, at least a second. If it was calls of the file system that
        hung, its server has ended without it, and the mount is gone; if the file system was ending
        itself, it goes on with that, and another unmount() waits for it.
        """
        sys.audit("directfuse.unmount", self.mountpoint)
        rows, trips = _native.op_stats(self.id), _native.trip_stats(self.id)
        if rows is not None:  # before the end: who is interrupted in that, or another thread, asks
            self._ended = _make_stats(rows, self._driven(), trips)
        code = _native.unmount(self.id, lazy=lazy)
        hung = code == errno.ETIMEDOUT and not self.mounted
        if code and not hung:
            raise UnmountError(code, _unmount_words(code), self.mountpoint)
        with _lock:
            _ours.pop(self.id, None)
        if hung:
            raise UnmountError(code, _HUNG_WORDS, self.mountpoint)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        """Unmounts, unless that was done, or this is a forked child: the mount is its parent's.

        When an exception passes, files that it left open do not replace it by their EBUSY: the
        mount is detached lazily. Nor does a file system that hangs, by its ETIMEDOUT.
        """
        if self._pid != os.getpid() or not self.mounted:
            return
        try:
            self.unmount()
        except UnmountError as failure:
            if kind is None or failure.errno not in (errno.EBUSY, errno.ETIMEDOUT):
                raise
            if self.mounted:
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


_HUNG_WORDS = (
    "its file system did not end calls that it had begun; its server has ended without it, and "
    "what it had not written is lost"
)


def _unmount_words(code: int) -> str:
    if code == errno.ETIMEDOUT:
        return "its file system has not ended yet, and goes on by itself"
    if code == errno.EBUSY:
        return (
            "files are open in it, or calls are under way; close them, or unmount(lazy=True) to "
            "end with the last (or its server is stopped, or another thread is unmounting it)"
        )
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
        "server" runs it in a process of its own, a mount server, which ends with its last client:
        forked processes share it, and if it crashes, calls fail with ENOTCONN. "helper" runs the
        unmodified program in a process of its own, which speaks the FUSE protocol to this one.
        "auto" is inline where the program can be loaded, else helper; the command line "@NAME", or
        "@NAME MOUNTPOINT" where it has several file systems, joins the server that `directfuse
        serve --name NAME` has started. The mount's `placement` and `reason` say what was chosen.
        A Python file system is inline. Its server is a Python interpreter, which runs its command
        line, or serves a pickled copy of an object.
    timing: whether stats() measures the time spent in the plugin; costs about 50 ns an operation.
    count: whether stats() counts operations; False saves a few ns an operation.
    may_wait: whether the plugin may wait for a network, a disk or another thread. Unless it is
        False for every mount of the process, calls release the GIL. None: known for what is built
        in, True for all else.
    timeout: seconds that the program may take until it is mounted, rounded up, at most 65535; after
        that MountError (ETIMEDOUT) is raised, and what the program mounts later is refused (with
        placement "server" the program is ended). None: no limit.
    options: mount options of an object, as behind -o: ["ro", "allow_other"].
    call_timeout: seconds after which a call fails with ETIMEDOUT, at most a million. With placement
        "server" it is for any call that does not wait for a lock, though what the call asked for
        may still happen; unmount() and the server's own end are limited by it, too. Inline it is
        only for objects with pyfuse3's operations, and only for those that an event loop runs: what
        runs on the caller's thread cannot be stopped. None: no limit.
    restart: "on-failure", with placement "server" and a read-only file system (-o ro), starts the
        server again when it dies or its file system crashes, at most five times a minute. Open
        files stay open, calls wait meanwhile; locks are lost.

    Returns the Mount. Raises MountError, whose text has the plugin's own words: ENOENT (no such
    file system), ENOEXEC (no FUSE program, or one that cannot be loaded safely), EBUSY (something
    is mounted there), EINVAL, EIO (the program ended before it mounted); NotSupportedError where
    this version cannot do what is asked; ValueError and TypeError for arguments that make no sense.
    """
    program, given, argv = _meaning(command, mountpoint, options, call_timeout, placement)
    placement = choose(placement, argv)
    library = "" if program or given else library_of(argv)
    limited = _milliseconds(call_timeout) if given or is_command(command) else 0
    if limited and placement != "server":
        raise TypeError("call_timeout is for placement='server' and for objects")
    again = is_restarted(restart, placement, argv)
    wanted = Options(count, timing, _seconds(timeout), server=placement == "server", restart=again)
    sys.audit("directfuse.mount", shlex.join(argv))
    try:
        if given is not None:
            placed = place_given(argv, given, wanted)
        elif program is not None:
            fixed = placement == "auto" and not is_command(command)  # an object is for no helper
            placed = place_program(argv, program, "inline" if fixed else placement, wanted)
        else:
            placed = place(argv, library, placement, wanted)
        return _made(placed, limited, may_wait)
    except BaseException:  # of a signal's handler, too: who gets no mount has none
        _undo(wanted.made)
        raise


def _made(placed: Placed, limited: int, may_wait: bool | None) -> Mount:
    """limited: milliseconds that a call may take, 0: any. may_wait: as of mount()."""
    made = Mount(placed.entry, placed)
    if limited:
        _native.set_call_timeout(made.id, limited)
    if may_wait is None:
        may_wait = made.placement != "inline" or placed.command[0] not in _PROMPT
    if not may_wait:
        _fast.declare_prompt(made.id)
    with _lock:
        _ours[made.id] = made
    return made


def _undo(made: list[int]) -> None:
    """made: numbers of mounts, some of which may have ended; and errors."""
    for number in made:
        if number > 0:
            _native.unmount(number, lazy=True)
            with _lock:
                _ours.pop(number, None)


def _meaning(
    command: Command | object,
    mountpoint: str | os.PathLike[str] | None,
    options: Sequence[str],
    call_timeout: float | None,
    placement: Placement,
) -> tuple["Program | None", "Given | None", list[str]]:
    """A Python program for this process, or what a Python server is to be given, or neither; and
    the words of the command line."""
    if is_command(command):
        if options:
            raise TypeError("options are for objects; a command line has -o")
        argv = words_of(command, mountpoint)
        if argv[0].startswith("@") or _paths.plugin(argv[0]):
            return None, None, argv
        if placement == "helper":
            return None, None, meaning.outside(argv) or argv
        if placement == "server":
            return None, _given() if meaning.is_python(argv) else None, argv
        return _program(argv, placement), None, argv
    if mountpoint is None:
        raise TypeError("an object needs a mountpoint: directfuse.mount(operations, '/m')")
    if isinstance(options, str):
        raise TypeError(f"options are a sequence: options=[{options!r}]")
    from directfuse._python import programs

    point = os.path.abspath(point_of(mountpoint))
    program = programs.of_object(command, point, list(options), call_timeout)
    if placement != "server":
        return program, None, program.words
    return None, _given(command, point, options), program.words


def _program(argv: list[str], placement: Placement) -> "Program | None":
    """A script of another Python is a program like any other, which is for a helper."""
    try:
        return meaning.find(argv)
    except NotSupportedError:
        if placement != "auto" or shutil.which(argv[0]) is None:
            raise
    return None


def _given(*of_object: Any) -> "Given":
    """What a Python server is given: to run a command line, or an object."""
    from directfuse import _served  # sockets, processes

    return _served.Given.of_object(*of_object) if of_object else _served.Given()


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


def find_mount(command: Command, mountpoint: str | os.PathLike[str] | None = None) -> Mount | None:
    """The mount of this process that mount() made of the same words, if it still is one."""
    argv = words_of(command, mountpoint)
    with _lock:
        alike = [found for found in _ours.values() if found.command == argv]
    return next((found for found in alike if found.mounted), None)


# ---- listing, unmounting by path -----------------------------------------------------------------


def mounts() -> list[Mount]:
    """All mounts of this process, those that C code made too, in no particular order."""
    entries = _native.list_mounts()
    with _lock:
        return [_ours.get(entry.id) or Mount(entry) for entry in entries]


def unmount(mountpoint: str | os.PathLike[str], *, lazy: bool = False) -> None:
    """Unmounts what is mounted at `mountpoint`, a path that may lead there by links.

    lazy, and what is raised: as of Mount.unmount(); UnmountError (EINVAL) when no mount of this
    process is there.
    """
    wanted = os.path.realpath(point_of(mountpoint))
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
        code = _native.unmount(found.id, lazy=False, leave=True)
        if code in (errno.EBUSY, errno.ETIMEDOUT) and found.mounted:
            _native.unmount(found.id, lazy=True, leave=True)
    if "directfuse._python.ends" in sys.modules:
        sys.modules["directfuse._python.ends"].close()
