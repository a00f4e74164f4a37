"""Where a file system runs: in this process, in a helper process, in a mount server.

docs/programs.md has the rule of "auto".
"""

import errno
import os
import shlex
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from directfuse import _fast, _images, _native, _paths
from directfuse._command import library_of
from directfuse._errors import MountError, NotSupportedError, limit_remedy
from directfuse._python import meaning

if TYPE_CHECKING:
    from collections.abc import Sequence

    from directfuse._python.programs import Program
    from directfuse._served import Given

__all__ = [
    "Options",
    "Placed",
    "Placement",
    "Restart",
    "choose",
    "is_restarted",
    "place",
    "place_given",
    "place_program",
]

Placement: TypeAlias = Literal["auto", "inline", "helper", "server"]
Restart: TypeAlias = Literal["never", "on-failure"]


class Startable(Protocol):
    """What can be started: a library or program, a Python file system, what a server is given."""

    def start(
        self, argv: "Sequence[str]", *, flags: int, seconds: int, made: list[int]
    ) -> tuple[int, str]:
        """Runs it until it has mounted: the number of the mount here, which `made` gets, too,
        and what was said."""


@dataclass(frozen=True, slots=True)
class Options:
    """How a mount is wanted, wherever it runs."""

    count: bool = True
    timing: bool = False
    seconds: int = 0  # until it must have mounted; 0: no limit
    server: bool = False
    restart: bool = False
    made: list[int] = field(default_factory=list)
    """Numbers of what was mounted: who is interrupted right behind that undoes it."""

    @property
    def flags(self) -> int:
        """The same for the C library."""
        return _native.mount_flags(
            count=self.count,
            timing=self.timing,
            seconds=self.seconds,
            server=self.server,
            restart=self.restart,
        )


@dataclass(frozen=True, slots=True)
class Placed:
    """A file system that was started, and where."""

    entry: _native.MountEntry
    command: list[str]
    log: str
    placement: Placement = "inline"
    reason: str = ""  # why it is not inline
    program: "Program | None" = None


@dataclass(frozen=True, slots=True)
class _Library:
    """A shared object or a FUSE program, by its file."""

    path: str

    def start(
        self, argv: "Sequence[str]", *, flags: int, seconds: int, made: list[int]
    ) -> tuple[int, str]:
        _fast.expect_mount(True)
        try:
            code, words = _mount_library(self.path, argv, flags, made)
        finally:
            _fast.expect_mount(False)
        if code < 0:
            limited = _limit_of_server(-code, argv) if flags & _native.SERVER else ""
            raise MountError(-code, _with_remedies(words, argv, limited), shlex.join(argv))
        return code, words


def _mount_library(
    path: str, argv: "Sequence[str]", flags: int, made: list[int]
) -> tuple[int, str]:
    if not flags & _native.SERVER or argv[0].startswith("@"):
        return _native.mount(path, argv, flags, made)
    from directfuse import _served  # sockets, processes

    return _served.mount_program(path, argv, flags, made)


def _limit_of_server(code: int, argv: "Sequence[str]") -> str:
    """What helps where a limit of this process is in the way of starting or joining one."""
    if code == errno.EAGAIN and argv[0].startswith("@"):  # the server has no room, which is said
        return ""
    return limit_remedy(code)


def _with_remedies(words: str, argv: "Sequence[str]", limited: str) -> str:
    """What the program said; what is wrong with the file that it was given, or that stands in its
    place; and which limit of this process is in the way."""
    found = _images.remedy(argv) or (os.path.isfile(argv[0]) and _images.kind_of(argv[0]))
    return "\n".join(filter(None, [words, f"({found})" if found else "", limited]))


def choose(placement: Placement, argv: list[str]) -> Placement:
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
    if len(argv) > 2:
        raise MountError(
            errno.EINVAL,
            f"behind {argv[0]} stands the mountpoint of one of its file systems, at most; leave "
            "the rest out",
            shlex.join(argv),
        )
    return "server"


def is_restarted(restart: Restart, placement: Placement, argv: list[str]) -> bool:
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


def _start(argv: list[str], what: Startable, options: Options) -> Placed:
    """Starts it, and finds what it has mounted here."""
    code, words = what.start(argv, flags=options.flags, seconds=options.seconds, made=options.made)
    placement: Placement = "server" if options.server else "inline"
    for entry in _native.list_mounts():
        if entry.id == code:
            return Placed(entry, argv, words, placement)
    raise MountError(errno.EIO, "the file system unmounted itself at once", shlex.join(argv))


#: of loader/object.c, and of _python/foreign.py
_REMEDY = ": it cannot be loaded into a process; mount it with placement"


def place(argv: list[str], library: str, placement: Placement, options: Options) -> Placed:
    """Mounts where it was asked for, or where it can be."""
    if placement == "helper":
        return _start_helper(argv, library, "asked for", options)
    try:
        return _start(argv, _Library(library), options)
    except MountError as refusal:
        # ENOEXEC: found out before anything of it ran. A shared object is no program to start.
        inline = placement == "inline"
        if inline or refusal.errno != errno.ENOEXEC or not _is_program(library):
            raise
        reason = str(refusal.strerror)
    return _start_refused(argv, library, reason, options)


def _start_refused(argv: list[str], library: str, reason: str, options: Options) -> Placed:
    """As a helper, because of that reason."""
    try:
        return _start_helper(argv, library, reason, options)
    except MountError as failure:  # what kept it out of this process may be why
        reason = reason.partition(_REMEDY)[0]  # the remedy has just been tried
        failure.strerror = f"{failure.strerror}\n(not loaded into this process: {reason})"
        raise


def place_program(
    argv: list[str], program: "Program", placement: Placement, options: Options
) -> Placed:
    """Mounts a Python file system in this process; a command line elsewhere, if it has to be."""
    if placement == "helper":
        raise NotSupportedError(
            errno.ENOTSUP,
            "an object is no program that a helper could start; placement='server' serves a copy "
            "of it, placement='inline' itself",
            argv[0],
        )
    try:
        return replace(_start(argv, program, options), program=program)
    except MountError as refusal:
        if placement != "auto" or not program.elsewhere:
            raise
        reason = str(refusal.strerror)
    words = meaning.outside(argv) or argv
    return _start_refused(words, library_of(words), reason, options)


def place_given(argv: list[str], given: "Given", options: Options) -> Placed:
    """Mounts a Python file system in a mount server, which `given` starts and joins itself: to the
    C library it is no server to be started."""
    if options.restart:
        raise NotSupportedError(
            errno.ENOTSUP, "restart='on-failure' is not for Python file systems", argv[0]
        )
    return replace(_start(argv, given, replace(options, server=False)), placement="server")


def _is_program(path: str) -> bool:
    return os.access(path, os.X_OK) and not path.endswith(".so")


def _start_helper(argv: list[str], library: str, reason: str, options: Options) -> Placed:
    """With a server in the options the helper's own half runs there, so that processes share it."""
    helper = _paths.plugin(_paths.HELPER)
    if _paths.plugin(argv[0]) is not None:
        library = os.fspath(_paths.program(argv[0]) or library)
    if helper is None or library.endswith(".so"):
        raise MountError(
            errno.ENOEXEC, "a shared object is no program that a helper could start", library
        )
    placed = _start([_paths.HELPER, library, *argv[1:]], _Library(os.fspath(helper)), options)
    return replace(
        placed,
        command=argv,
        placement="server" if options.server else "helper",
        reason=reason,
    )
