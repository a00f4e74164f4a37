"""Running a program inside: the mount server, the shared block of the run, the loader, its end.

A run consists of the command, whatever it starts, and one mount server. The server ends when the
last of them has ended; what it kept in memory is gone then.
"""

import errno
import itertools
import os
import re
import select
import shlex
import signal
import socket
import struct
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import NamedTuple

from directfuse import _images, _paths
from directfuse._errors import asked, files_limit, limit_remedy
from directfuse._run_block import RunBlock
from directfuse._served import READY, program_for
from directfuse._shadow import Shadow

__all__ = [
    "MountServer",
    "OpCount",
    "ServerFailed",
    "Serving",
    "high_fd",
    "mapped_limit",
    "run_command",
    "timeout_variable",
    "watching",
]

_UCRED = struct.Struct("iII")
_WORDS = 4096  # bytes of what a server says when it fails
_TROUBLE = ("crash", "given", "hung", "died")  # first words of its report's lines: how it has ended
_FILES_NEEDED = 20  # of a server and its first program, which end in odd ways with less
_HIGH_FD = 1024  # descriptors of ours are below it: within the reach of small limits
_FORWARDED = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT})


class OpCount(NamedTuple):
    """What one operation of a file system did."""

    calls: int
    errors: int
    bytes: int


class ServerFailed(Exception):
    """A file system could not be mounted; the text is what its program said."""


def _named(file: str) -> str:
    """A file system as its users call it."""
    name, ending = os.path.splitext(os.path.basename(file))
    return name if _paths.plugin(name) == Path(file) else name + ending


def _explained(said: str, code: int, command_lines: Sequence[Sequence[str]]) -> str:
    """What the program said, of which command line, and what is wrong with its file."""
    lines = [shlex.join([_named(line[0]), *line[1:]]) for line in command_lines]
    remedies = [f"({remedy})" for line in command_lines if (remedy := _images.remedy(line))]
    remedies += filter(None, [limit_remedy(code)])
    return "\n".join([f"{' and '.join(lines)}: {said}", *remedies])


class MountServer:
    """The file systems of a run, in a process of their own."""

    def __init__(
        self,
        command_lines: Sequence[Sequence[str]],
        listener: socket.socket | None = None,
        *,
        restart: bool = False,
        shadow: Path | None = None,
        call_timeout: float | None = None,
    ) -> None:
        """listener: where others join it; then it stays until it is terminated. restart: it is
        started again when it dies, and says so on standard error. shadow: the directory of the run
        that it serves. call_timeout: seconds that a call may take, and its end; None: any."""
        self.socket, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.pid = 0
        self._command_lines = command_lines
        self._report = asked(os.memfd_create, "directfuse-report")
        self._process = -1  # a descriptor of the server
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        counts = [word for line in command_lines for word in ("--words", str(len(line)))]
        words = [word for line in command_lines for word in line]
        named = ["--listen", str(listener.fileno()), "--stay"] if listener else []
        named += ["--restart", "--say"] if restart else []
        named += ["--report", str(self._report)]
        fds = [its.fileno(), self._report, *([listener.fileno()] if listener else [])]
        program = program_for(command_lines)
        with its:
            subprocess.run(
                [*program, "--control", str(its.fileno()), *named, *counts, "--", *words],
                pass_fds=fds,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL if listener else 2,  # the command's output is its own
                stderr=subprocess.DEVNULL if listener else 2,
                start_new_session=True,
                env=os.environ
                | ({"DIRECTFUSE_SHADOW": str(shadow)} if shadow else {})
                | timeout_variable(call_timeout),
                check=False,
            )
        self._await()

    def _await(self) -> None:
        room = READY.size + _WORDS
        message, ancillary, *_ = self.socket.recvmsg(room, socket.CMSG_SPACE(_UCRED.size))
        if len(message) < READY.size:
            raise ServerFailed("the mount server ended and said nothing")
        *_, error, keeper, _build = READY.unpack_from(message)
        if error != 0:
            said = message[READY.size :].decode(errors="replace").strip("\0\n ")
            raise ServerFailed(_explained(said or os.strerror(-error), -error, self._command_lines))
        for level, kind, data in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_CREDENTIALS):
                self.pid = keeper or _UCRED.unpack(data)[0]
                self._process = asked(os.pidfd_open, self.pid)

    def leave(self) -> None:
        """No program is started from here any more: the server ends with the last that runs."""
        self.socket.close()

    def let_go_of_output(self) -> None:
        """Its standard error is who called us's, who may wait for the end of all that has it."""
        if self._process >= 0 and not self.wait(0):
            signal.pidfd_send_signal(self._process, signal.SIGHUP)

    def wait(self, seconds: float) -> bool:
        """Whether it has ended, and written what it had to write, within that time."""
        if self._process < 0:
            return True
        return bool(select.select([self._process], [], [], seconds)[0])

    def wait_or(self, other: int) -> bool:
        """Whether it has ended before the other descriptor was ready."""
        return self._process in select.select([self._process, other], [], [])[0]

    def last_words(self) -> str:
        """How it has ended, as far as it could tell (native/server/crash.h)."""
        how, again = "has ended", ""
        for line in self._report_lines():
            if line.startswith("crash "):
                number = int(line.removeprefix("crash "))
                how = f"crashed in its file system ({signal.strsignal(number)})"
            if line == "given up":
                again = " too often and is not started again"
            if line.startswith("hung "):
                seconds = line.removeprefix("hung ")
                how = f"has ended without its file systems, which answered nothing for {seconds} s"
            if line == "died":
                how = "has ended after a file system of it had ended itself"
        return how + again

    @property
    def has_unmounted(self) -> bool:
        """Whether, once it has ended, its file systems had ended before it; not one of those that
        it was started again for."""
        names = [line.partition(" ")[0] for line in self._report_lines()]
        fates = [name for name in names if name in ("mount", *_TROUBLE)]
        return fates[-1:] == ["mount"] and "died" not in fates

    def ended_before(self) -> list[str]:
        """Mountpoints of those that have ended by themselves, once it has ended."""
        lines = self._report_lines()
        pairs = itertools.pairwise(lines)
        return [line.partition(" ")[2] for line, after in pairs if after == "ended"]

    def _report_lines(self) -> list[str]:
        size = os.fstat(self._report).st_size
        return os.fsdecode(os.pread(self._report, size, 0)).splitlines()

    def report(self) -> dict[str, dict[str, OpCount]]:
        """By mountpoint and operation, once it has ended; nothing before."""
        mounts: dict[str, dict[str, OpCount]] = {}
        for line in self._report_lines():
            name, _, rest = line.partition(" ")
            if name in (*_TROUBLE, "ended"):
                continue
            if name == "mount":
                ops = mounts[rest] = {}
            else:
                ops[name] = OpCount(*map(int, rest.split()))
        return mounts

    def terminate(self) -> None:
        """Ends it although programs run: their files answer EIO."""
        self.leave()
        if self._process >= 0 and not self.wait(0):
            signal.pidfd_send_signal(self._process, signal.SIGTERM)


def timeout_variable(call_timeout: float | None) -> dict[str, str]:
    """What tells a server that is started how long calls may take (native/server/process.c)."""
    return {} if call_timeout is None else {"DIRECTFUSE_CALL_TIMEOUT": str(call_timeout)}


def mapped_limit() -> str:
    """A line of a run's configuration: what one process holds at most of large files that it maps.

    From DIRECTFUSE_MAPPED, bytes with K, M or G behind the number. Empty: as much as there is.
    """
    text = os.environ.get("DIRECTFUSE_MAPPED", "")
    match = re.fullmatch(r"(\d+)([KMG]?)", text)
    if match is None:
        return ""
    return f"mapped={int(match[1]) << {'': 0, 'K': 10, 'M': 20, 'G': 30}[match[2]]}\n"


class Serving:
    """The file systems of a run and the directory of its programs' placeholders.

    config: what programs are told. inherited: descriptors they need, and at which number.
    """

    def __init__(
        self,
        command_lines: Sequence[Sequence[str]],
        *,
        restart: bool = False,
        call_timeout: float | None = None,
    ) -> None:
        self.config = ""
        self.inherited: dict[int, int] = {}
        self._server: MountServer | None = None
        self._shadow: Shadow | None = None
        self._is_said = False  # that the server has ended
        if not command_lines:
            return
        if files_limit() < _FILES_NEEDED:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        self._shadow = Shadow()
        shadow = self._shadow.hidden
        try:
            self._server = MountServer(
                command_lines, restart=restart, shadow=shadow, call_timeout=call_timeout
            )
        except BaseException:
            self._remove()
            raise
        number = high_fd(())
        self.inherited[self._server.socket.fileno()] = number
        self.config = f"server={number}\nshadow={shadow}\n{mapped_limit()}"

    def report(self) -> dict[str, dict[str, OpCount]]:
        """What each file system did, after the end; nothing while its server still runs."""
        return self._server.report() if self._server is not None else {}

    def watched(self, say: Callable[[str], None]) -> AbstractContextManager[None]:
        """While programs run: says so, at once, when the file systems end before them."""
        if self._server is None:
            return nullcontext()
        return watching(lambda over: self._watch(over, say))

    def _watch(self, over: int, say: Callable[[str], None]) -> None:
        assert self._server is not None
        if self._server.wait_or(over):
            self._is_said = True
            say(f"the mount server {self._server.last_words()}: files answer EIO from now on")

    def end(self, has_programs: Callable[[], bool], say: Callable[[str], None]) -> None:
        """The command has ended. Waits until all is written, unless other programs still run; says
        so if it is not. Interrupted, it waits no longer for what hangs."""
        if self._server is None:
            return
        self._server.leave()
        try:
            if not self._wait_for_end(has_programs):
                return
        except BaseException:
            self.abandon()
            self._say_end(say)
            raise
        self._say_end(say)
        self._remove()

    def _wait_for_end(self, has_programs: Callable[[], bool]) -> bool:
        """False: other programs run; the directory is left to the server."""
        assert self._server is not None and self._shadow is not None
        while not self._server.wait(0.02):
            if has_programs():
                self._server.let_go_of_output()
                self._shadow.leave()
                return False
        return True

    def _say_end(self, say: Callable[[str], None]) -> None:
        """Programs may have ended of a server that is killed before it was gone."""
        assert self._server is not None
        if not self._server.wait(0) or self._is_said:
            return
        if not self._server.has_unmounted:
            say(f"the mount server {self._server.last_words()}: what was not written is lost")
            return
        for point in self._server.ended_before():
            say(f"{point}: its file system ended by itself before the programs: calls gave EIO")

    def abandon(self) -> None:
        """The command was not started, or we are interrupted. A server that is told to end twice
        gives up what hangs."""
        for seconds in (5, 10):
            if self._server is not None:
                self._server.terminate()
                if self._server.wait(seconds):
                    break
        self._remove()

    def _remove(self) -> None:
        if self._shadow is not None:
            self._shadow.remove()


@contextmanager
def watching(watch: Callable[[int], None]) -> Iterator[None]:
    """A thread beside the body, which no signal is for: watch(fd) returns when fd is readable."""
    over = os.eventfd(0, os.EFD_CLOEXEC)
    watcher = threading.Thread(target=watch, args=(over,))
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        watcher.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    try:
        yield
    finally:
        os.eventfd_write(over, 1)
        watcher.join()
        os.close(over)


def run_command(
    command: Sequence[str],
    block: RunBlock,
    *,
    inherited: Mapping[int, int] | None = None,
    environment: Mapping[str, str] | None = None,
) -> int:
    """Starts a command in a run and waits for it; its status as a shell shows it.

    inherited: descriptors the programs need, and at which number. SIGINT, SIGTERM, SIGHUP and
    SIGQUIT that are sent to this process are sent on to the command.
    """
    loader = str(_paths.loader())
    fds = dict(inherited or {})
    number = high_fd(fds.values())
    fds[block.fd] = number
    watched = _FORWARDED | {signal.SIGCHLD}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    try:
        pid = os.posix_spawn(
            loader,
            ["directfuse-exec", str(number), *command],
            os.environ if environment is None else environment,
            file_actions=[(os.POSIX_SPAWN_DUP2, fd, at) for fd, at in fds.items()],
            setsigmask=before,
            setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],  # Python ignores them
        )
        return _wait(pid, watched)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def high_fd(taken: Iterable[int]) -> int:
    """The highest descriptor number that is free, within the limits."""
    used = set(taken)
    number = min(files_limit(), _HIGH_FD) - 1
    while number in used or _is_open(number):
        number -= 1
    return number


def _is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def _wait(pid: int, watched: frozenset[signal.Signals]) -> int:
    while True:
        came = signal.sigwaitinfo(watched)
        if came.si_signo in _FORWARDED:
            # What a terminal sends (si_code above 0) reaches the command without us.
            if came.si_code <= 0:
                os.kill(pid, came.si_signo)
            continue
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended == pid:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code
