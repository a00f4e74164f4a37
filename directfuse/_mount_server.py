"""The mount server of a run, as who starts it sees it: its start, its end, and what it reports."""

import errno
import itertools
import os
import shlex
import signal
import socket
import struct
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from directfuse import _images, _kernel, _native, _paths
from directfuse._errors import asked, limit_remedy
from directfuse._ready import ready
from directfuse._served import READY, program_for

__all__ = [
    "MountServer",
    "OpCount",
    "ServerFailed",
    "check_count",
    "timeout_variable",
    "words_of_all",
]

_UCRED = struct.Struct("iII")
_WORDS = 4096  # bytes of what a server says when it fails
_TROUBLE = ("crash", "given", "hung", "died")  # first words of its report's lines: how it has ended


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
    remedies = [f"({remedy})" for remedy in _images.remedies(command_lines)]
    remedies += filter(None, [limit_remedy(code)])
    return "\n".join([f"{' and '.join(lines)}: {said}", *remedies])


class Report:
    """What a server writes before its end (native/server/process.h; crash.h and keeper.h in
    native/process/)."""

    def __init__(self) -> None:
        self.fd = asked(os.memfd_create, "directfuse-report")

    def _lines(self) -> list[str]:
        size = os.fstat(self.fd).st_size
        text = os.fsdecode(os.pread(self.fd, size, 0))
        return list(filter(None, text.split("\n")))

    def last_words(self) -> str:
        """How it has ended, as far as it could tell (native/process/crash.h)."""
        how = "has ended" if self._fates() else "was killed, perhaps because memory ran out"
        again = ""
        for line in self._lines():
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

    def cost(self) -> str:
        """What it has cost that it did not end after all its file systems. One that has ended
        itself, by fuse_exit() in a helper process for example, may have seen to its data."""
        if self._fates()[-1:] == ["mount"]:
            return "perhaps not all was written"
        return "what was not written is lost"

    def _fates(self) -> list[str]:
        """How it has ended, of a server that was started again each time."""
        names = [line.partition(" ")[0] for line in self._lines()]
        return [name for name in names if name in ("mount", *_TROUBLE)]

    @property
    def has_unmounted(self) -> bool:
        """Whether, once it has ended, its file systems had ended before it; not one of those that
        it was started again for."""
        fates = self._fates()
        return fates[-1:] == ["mount"] and "died" not in fates

    def ended_before(self) -> list[str]:
        """Mountpoints of those that have ended by themselves, once it has ended."""
        lines = self._lines()
        pairs = itertools.pairwise(lines)
        points = [line.partition(" ")[2] for line, after in pairs if after == "ended"]
        return list(map(_kernel.unescaped, points))

    def operations(self) -> dict[str, dict[str, OpCount]]:
        """By mountpoint and operation, once it has ended; nothing before."""
        mounts: dict[str, dict[str, OpCount]] = {}
        for line in self._lines():
            name, _, rest = line.partition(" ")
            if name in (*_TROUBLE, "ended"):
                continue
            if name == "mount":
                ops = mounts[_kernel.unescaped(rest)] = {}
            else:
                ops[name] = OpCount(*map(int, rest.split()))
        return mounts


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
        check_count(command_lines, "a run")
        self.socket, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.pid = 0
        self._command_lines = command_lines
        self.report = Report()
        self._process = -1  # a descriptor of the server
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        told = timeout_variable(call_timeout)
        if shadow:
            told["DIRECTFUSE_SHADOW"] = str(shadow)
        try:
            with its:
                self._start(its, listener, ["--restart", "--say"] if restart else [], told)
            self._await()
        except ServerFailed:
            self.leave()
            raise
        except BaseException:
            self._call_off()
            raise

    def _call_off(self) -> None:
        """We are interrupted. One that has said that it is ready is ended, and one that cannot say
        so any more ends by itself."""
        self.socket.shutdown(socket.SHUT_RD)
        with suppress(ServerFailed):  # it has said nothing
            self._await()
        self.terminate()

    def _start(
        self,
        its: socket.socket,
        listener: socket.socket | None,
        how: list[str],
        told: dict[str, str],
    ) -> None:
        """its: the server's end of the socket. how: options. told: by the environment."""
        fds = {"--control": its.fileno(), "--report": self.report.fd}
        options = [*how]
        if listener:
            fds["--listen"] = listener.fileno()
            options.append("--stay")
        options += [word for name, fd in fds.items() for word in (name, str(fd))]
        output = subprocess.DEVNULL if listener else 2  # the command's output is its own
        subprocess.run(
            [*program_for(self._command_lines), *options, *words_of_all(self._command_lines)],
            pass_fds=fds.values(),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            env=os.environ | told,
            check=False,
        )

    def _await(self) -> None:
        """What it says stays there until we know who it is: whoever is interrupted looks again."""
        room, beside = READY.size + _WORDS, socket.CMSG_SPACE(_UCRED.size)
        message, ancillary, *_ = self.socket.recvmsg(room, beside, socket.MSG_PEEK)
        if len(message) < READY.size:
            words = ["the mount server ended and said nothing", limit_remedy(errno.EFBIG)]
            raise ServerFailed(" ".join(filter(None, words)))  # SIGXFSZ, perhaps
        *_, error, keeper, _build = READY.unpack_from(message)
        if error != 0:
            said = message[READY.size :].decode(errors="replace").strip("\0\n ")
            raise ServerFailed(_explained(said or os.strerror(-error), -error, self._command_lines))
        for level, kind, data in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_CREDENTIALS):
                self.pid = keeper or _UCRED.unpack(data)[0]
                self._process = asked(os.pidfd_open, self.pid)
        self.socket.recv(1)

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
        if not ready(self._process, seconds=seconds):
            return False
        with suppress(ChildProcessError):  # it is process 1's, or has been waited for
            os.waitid(os.P_PIDFD, self._process, os.WEXITED | os.WNOHANG)
        return True

    def wait_or(self, other: int) -> bool:
        """Whether it has ended before the other descriptor was ready."""
        return self._process in ready(self._process, other)

    def terminate(self) -> None:
        """Ends it although programs run: their files answer EIO."""
        self.leave()
        if self._process >= 0 and not self.wait(0):
            signal.pidfd_send_signal(self._process, signal.SIGTERM)


def check_count(command_lines: Sequence[Sequence[str]], who: str) -> None:
    """Raises ServerFailed: they are too many for a server, which the user knows as that."""
    if len(command_lines) > _native.MOUNTS_MAX:
        room = f"{who} has room for {_native.MOUNTS_MAX}"
        raise ServerFailed(f"{len(command_lines)} file systems: {room}")


def words_of_all(command_lines: Sequence[Sequence[str]]) -> list[str]:
    """The end of a server's own command line: those of its file systems (native/server/main.c)."""
    counts = [word for line in command_lines for word in ("--words", str(len(line)))]
    return [*counts, "--", *(word for line in command_lines for word in line)]


def timeout_variable(call_timeout: float | None) -> dict[str, str]:
    """What tells a server that is started how long calls may take (native/server/process.c)."""
    return {} if call_timeout is None else {"DIRECTFUSE_CALL_TIMEOUT": str(call_timeout)}
