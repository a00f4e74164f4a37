"""Running a program inside: the mount server, the shared block of the run, the loader, its end.

A run consists of the command, whatever it starts, and one mount server. The server ends when the
last of them has ended; what it kept in memory is gone then.
"""

import os
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Self

from directfuse import _paths
from directfuse._run_block import RunBlock

__all__ = ["MountServer", "ServerFailed", "high_fd", "run_command", "serving"]

_READY = struct.Struct("<IIIiQ")  # struct df_join_message of native/channel/join.h
_WORDS = 4096  # bytes of what a server says when it fails
_HIGH_FD = 1024  # descriptors of ours are below it: within the reach of small limits
_FORWARDED = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT})


class ServerFailed(Exception):
    """A file system could not be mounted; the text is what its program said."""


class MountServer:
    """The file systems of a run, in a process of their own."""

    def __init__(self, command: Sequence[str]) -> None:
        self.command = list(command)
        ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket = ours
        with its:
            words = [str(_paths.server()), "--control", str(its.fileno()), "--", *command]
            self.process = subprocess.Popen(
                words, pass_fds=[its.fileno()], stdin=subprocess.DEVNULL, start_new_session=True
            )
        try:
            self._await()
        except BaseException:
            self.close()
            raise

    def _await(self) -> None:
        message = self.socket.recv(_READY.size + _WORDS)
        if len(message) < _READY.size:
            raise ServerFailed(f"it ended with status {self.process.wait()} and said nothing")
        *_, error, _size = _READY.unpack_from(message)
        if error != 0:
            said = message[_READY.size :].decode(errors="replace").strip("\0\n ")
            raise ServerFailed(said or os.strerror(-error))

    def leave(self) -> None:
        """No program is started any more: the server ends with the last that runs."""
        self.socket.close()

    def close(self) -> None:
        """Ends it, as SIGTERM does: what it has not written is written."""
        self.leave()
        self.process.terminate()
        self.process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.leave()


@contextmanager
def shadow_directory() -> Iterator[Path]:
    """A directory for the placeholders of open files: on tmpfs where there is one."""
    base = "/dev/shm" if os.access("/dev/shm", os.W_OK | os.X_OK) else None
    directory = Path(tempfile.mkdtemp(prefix="directfuse-", dir=base))
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


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
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = set(taken)
    number = (_HIGH_FD if soft == resource.RLIM_INFINITY else min(soft, _HIGH_FD)) - 1
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


@contextmanager
def serving(command_lines: Sequence[Sequence[str]]) -> Iterator[tuple[str, dict[int, int]]]:
    """Mounts; the configuration for the programs and the descriptors they inherit."""
    with ExitStack() as stack:
        config, fds = "", {}
        if command_lines:
            shadow = stack.enter_context(shadow_directory())
            server = stack.enter_context(MountServer(command_lines[0]))
            number = high_fd(())
            fds[server.socket.fileno()] = number
            config = f"server={number}\nshadow={shadow}\n"
        yield config, fds
