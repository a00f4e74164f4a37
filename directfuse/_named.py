"""Mount servers with a name: where they are found, and runs that join one.

Beside its socket, NAME.socket, lies a link NAME.shadow to the directory that all joined runs share.
"""

import errno
import fcntl
import os
import signal
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from directfuse import _kernel, _native
from directfuse._errors import asked, limit_remedy
from directfuse._mount_server import ServerFailed
from directfuse._ready import ready
from directfuse._run import high_fd, mapped_limit, patiently, watching
from directfuse._served import READY, hello_message
from directfuse._shadow import discard_shadow, shadow_directory

__all__ = [
    "Joined",
    "NoServer",
    "alone",
    "end_listener",
    "end_server",
    "is_joined",
    "remove_left",
    "shadow_beside",
    "socket_path",
    "wait_for_server",
]

_UCRED = struct.Struct("iII")
_LAST_SECONDS = 10  # for what started a server again to end behind it


def socket_path(name: str, *, make: bool = False) -> Path:
    """Where the server of that name listens, if there is one. make: its directory too.

    Raises ServerFailed: it cannot be a name, or others could enter the directory.
    """
    error, path = _native.socket_path(name, make=make)
    if error == errno.EINVAL:
        raise ServerFailed(f"{name!r}: a name has 1 to 63 bytes, no slash, no leading dot")
    if error == errno.ENAMETOOLONG:
        raise ServerFailed(f"{name!r}: too long for the socket of a server in $XDG_RUNTIME_DIR")
    found = Path(path)
    if error and (make or error != errno.ENOENT):
        raise ServerFailed(_no_directory(found.parent, error))
    return found


def _no_directory(directory: Path, error: int) -> str:
    """Why sockets cannot be there, and what would help."""
    if error == errno.EACCES and os.path.lexists(directory):
        why = f"{directory}: must be a directory that only you can enter (mode 0700)"
        return f"{why}; let XDG_RUNTIME_DIR name another place if it is another user's"
    why, base = f"{directory}: {os.strerror(error)}", directory.parent
    if os.environ.get("XDG_RUNTIME_DIR") and base.is_absolute() and str(base) != "/tmp":
        return f"{why} (let XDG_RUNTIME_DIR be a directory that you can write to, or unset it)"
    return why


# ---- its life ------------------------------------------------------------------------------------


@contextmanager
def _asked(door: socket.socket) -> Iterator[socket.socket]:
    """Where the server answers, and who it is, that somebody would join, when all is mounted."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours:
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        with theirs:
            socket.send_fds(door, [hello_message()], [theirs.fileno()])
        yield ours


def wait_for_server(path: str, process: int) -> bool:
    """Until the server of that socket lets others join, which it does when all is mounted.

    process: of the server. False: it has ended before that.
    """
    ended = asked(os.pidfd_open, process)
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as door:
            door.connect(path)
            with _asked(door) as answer:
                return ended not in ready(answer.fileno(), ended)
    finally:
        os.close(ended)


def end_server(name: str, say: Callable[[str], None], *, wait: bool = True) -> None:
    """Ends the server of that name as SIGTERM does. wait: until it has written what it holds.
    say: is told when that takes long.

    Raises ServerFailed: there is none, or it is another's.
    """
    path = socket_path(name)
    is_alone = end_listener(path, f"@{name}", say, wait=wait)
    if wait and is_alone:
        _await_nobody(path)
        with alone(path.parent):
            remove_left(path.parent)


class NoServer(ServerFailed):
    """Nobody listens where a server did, or could have."""


def end_listener(path: Path, who: str, say: Callable[[str], None], *, wait: bool = True) -> bool:
    """Ends the server of that socket. who: it is to users. wait, say: as above. Whether it is
    alone: nobody else sees to what it leaves.

    Raises NoServer: it has ended; ServerFailed: it is another's.
    """
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as door:
            door.connect(os.fspath(path))
            with patiently(say, _unanswered(who)):
                server, is_alone = _who_ends_it(door, path)
    except (FileNotFoundError, ConnectionError, ProcessLookupError) as error:
        raise NoServer(f"{who}: no mount server has that name") from error
    try:
        signal.pidfd_send_signal(server, signal.SIGTERM)
        if wait:
            _await_end(server, who, say)
    except PermissionError as error:
        raise ServerFailed(f"{who}: its server is another user's") from error
    finally:
        os.close(server)
    return is_alone


def _unanswered(who: str) -> str:
    return f"{who}: does not answer: it has not mounted yet, hangs or is stopped; waiting"


def _await_end(server: int, who: str, say: Callable[[str], None]) -> None:
    words = f"{who}: has been told to end, and still writes, hangs or is stopped; waiting"
    with patiently(say, words):
        ready(server)


def _await_nobody(path: Path) -> None:
    """Until nobody listens there: what starts a server again ends behind it."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as probe, suppress(OSError):
        probe.settimeout(_LAST_SECONDS)
        probe.connect(os.fspath(path))  # refused: nobody does
        probe.recv(1)  # nobody answers any more: this ends when the last of them has closed


def _who_ends_it(door: socket.socket, path: Path) -> tuple[int, bool]:
    """A descriptor of the process to be told; whether it is the server itself: `directfuse serve`,
    which listens, has given it the socket, and sees to what is left, may have been killed, and
    `directfuse env` has ended."""
    credentials = door.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size)
    number = _UCRED.unpack(credentials)[0]
    with suppress(ProcessLookupError):
        process = asked(os.pidfd_open, number)
        listens = _has_open(number, _listeners(path))
        if listens and not ready(process, seconds=0):
            return process, False
        os.close(process)  # it has ended, and its number may be another's by now
    return asked(os.pidfd_open, _server_behind(door)), True


def _listeners(path: Path) -> set[str]:
    """The sockets that listen at that path, as links of /proc/PID/fd show them."""
    accepts, found = 1 << 16, set()
    with suppress(OSError), open("/proc/net/unix", "rb") as file:
        for words in map(bytes.split, file):
            if words[7:] == os.fsencode(path).split() and int(words[3], 16) & accepts:
                found.add(f"socket:[{int(words[6])}]")
    return found


def _has_open(process: int, links: set[str]) -> bool:
    """False where that cannot be seen: then it is another user's, or another's altogether."""
    with suppress(OSError), os.scandir(f"/proc/{process}/fd") as entries:
        for entry in entries:
            with suppress(FileNotFoundError):  # closed meanwhile
                if os.readlink(entry) in links:
                    return True
    return False


def _server_behind(door: socket.socket) -> int:
    """The process of the server. Raises ConnectionError: it has ended."""
    with _asked(door) as answer:
        message, ancillary, *_ = answer.recvmsg(READY.size, socket.CMSG_SPACE(_UCRED.size))
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_CREDENTIALS) and message:
            return int(_UCRED.unpack(data[: _UCRED.size])[0])
    raise ConnectionError


@contextmanager
def alone(directory: Path) -> Iterator[None]:
    """No other process takes a name there meanwhile."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


# ---- the directory that joined runs share --------------------------------------------------------


@contextmanager
def shadow_beside(path: Path) -> Iterator[Path]:
    """The directory, while the server of that socket is there."""
    link = path.with_suffix(".shadow")
    _remove(link)  # of a server whose end nobody saw
    shadow = shadow_directory()
    link.symlink_to(shadow)
    try:
        yield shadow
    finally:
        discard_shadow(shadow)  # first: killed behind it, we leave a link by which that is seen
        with suppress(OSError):  # somebody has cleaned $XDG_RUNTIME_DIR
            if link.readlink() == shadow:
                link.unlink()


def remove_left(directory: Path) -> None:
    """What servers that were killed have left there. Meanwhile nobody may take a name."""
    for path in directory.glob("*.socket"):
        if path.is_socket() and not _listens(path):
            path.unlink(missing_ok=True)
            _remove(path.with_suffix(".shadow"))


def _listens(path: Path) -> bool:
    """Somebody does, perhaps one who has much to do."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK) as probe:
        return probe.connect_ex(os.fspath(path)) not in (errno.ECONNREFUSED, errno.ENOENT)


def _remove(link: Path) -> None:
    """With the directory that it leads to."""
    with suppress(FileNotFoundError):
        discard_shadow(link.readlink())  # first, as above
        link.unlink()


def is_joined(name: str) -> bool:
    """Whether this process is a program of a run that has joined the server of that name."""
    try:
        return _kernel.is_in_run(socket_path(name).with_suffix(".shadow").readlink())
    except (ServerFailed, OSError):  # there is none
        return False


# ---- joining -------------------------------------------------------------------------------------


class Joined:
    """What Serving is to other runs, to one whose file systems are those of a server with a name.

    config, inherited: as of Serving. mountpoints: the server's. path: its socket.
    """

    def __init__(self, name: str, say: Callable[[str], None]) -> None:
        """say: is told when the server is waited for. Raises ServerFailed: no such server, or it
        lets us not in."""
        self.name = name
        self.path = socket_path(name)
        with patiently(say, _unanswered(f"@{name}")):
            self.mountpoints = _mountpoints(name)
        self._link = self.path.with_suffix(".shadow")
        try:
            self._shadow = self._link.readlink()
        except FileNotFoundError as error:
            raise ServerFailed(f"@{name}: its server has no directory for programs") from error
        connection = self._connect()
        if connection is None:
            raise ServerFailed(f"@{name}: its server has just ended")
        self._socket = connection
        if not self._shadow.is_dir():
            self.leave()
            raise ServerFailed(_removed(name, self._shadow))
        number = high_fd(())
        self.inherited = {connection.fileno(): number}
        self.config = f"server={number}\nshadow={self._shadow}\n{mapped_limit()}"

    def _connect(self) -> socket.socket | None:
        """To that very server; None: it is gone."""
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            connection.connect(os.fspath(self.path))
            if self._link.readlink() == self._shadow:
                return connection
        except OSError:
            pass
        connection.close()
        return None

    def watched(self, say: Callable[[str], None]) -> AbstractContextManager[None]:
        """While programs run: says so, at once, when the server ends before them."""
        return watching(lambda over: self._watch(over, say))

    def _watch(self, over: int, say: Callable[[str], None]) -> None:
        """A server that is started again has lost our connection, but not who may connect."""
        while connection := self._connect():
            with connection:
                lost = connection.fileno()
                if lost not in ready(lost, over):
                    return
        say(f"the mount server @{self.name} has ended: files answer EIO from now on")

    def end(self, has_programs: Callable[[], bool], say: Callable[[str], None]) -> None:
        """The command has ended; the server stays."""
        self.leave()

    def leave(self) -> None:
        """No program is started from here any more."""
        self._socket.close()

    abandon = leave


def _removed(name: str, shadow: Path) -> str:
    return (
        f"@{name}: its directory for programs, {shadow}, has been removed (by systemd, perhaps, "
        "which does so at a user's last logout: RemoveIPC=); begin the server again"
    )


def _mountpoints(name: str) -> list[str]:
    """By joining it, as programs do; who may not is refused here, and told why."""
    points, code, why = _native.points_of_server(name)
    if code:
        remedy = limit_remedy(code) if code != errno.EAGAIN else ""  # its room, not a limit of ours
        raise ServerFailed("\n".join(filter(None, [f"@{name}: {why}", remedy])))
    if not points:
        raise ServerFailed(f"@{name}: its server has no file system any more")
    return points
