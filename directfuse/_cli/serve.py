"""`directfuse serve`: a mount server with a name, for processes that are not related."""

import os
import shlex
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from directfuse._cli._background import Background, leave
from directfuse._cli._failure import Failure
from directfuse._cli._output import say
from directfuse._cli._words import FileName, command_line_argument
from directfuse._cli.mount import split
from directfuse._cli.run import check_restart, restart_option, timeout_option
from directfuse._command import library_of
from directfuse._errors import DirectfuseError, limit_remedy
from directfuse._mount_server import ServerFailed, timeout_variable
from directfuse._named import alone, remove_left, shadow_beside, socket_path, wait_for_server
from directfuse._python import meaning
from directfuse._run import not_ended, not_mounted, patiently
from directfuse._served import program_for

__all__ = ["serve"]

_ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_SEEN = 1.0  # seconds within which a signal has been seen
_SIGNALS = 128  # a status from there on tells of a signal, one below of an error


@click.command()
@command_line_argument()
@click.option("--name", required=True, help="What clients join it by: @NAME.")
@click.option(
    "--background",
    is_flag=True,
    help="Return when it is mounted and can be joined; `directfuse unmount @NAME` ends it.",
)
@click.option(
    "--log",
    type=FileName(dir_okay=False, readable=False, path_type=Path),
    metavar="FILE",
    help="Where its words go in the background, behind what is there. Otherwise to nobody.",
)
@restart_option
@timeout_option
def serve(
    command_line: str,
    name: str,
    background: bool,
    log: Path | None,
    restart: str,
    call_timeout: float | None,
) -> int:
    """Host a FUSE file system in a mount server that others join by its name.

    CMDLINE is the file system's own command line in one word, mountpoint included. Processes of the
    same user join with the command line @NAME, programs by `directfuse run -m @NAME`, and see the
    file system at that mountpoint; nothing is mounted. The server stays until it is ended (Ctrl-C,
    SIGTERM, `directfuse unmount @NAME`); then the file system writes what it holds.

    In the background it has a session of its own, its input is /dev/null, and it stays in the
    directory where it was started, which names in CMDLINE are relative to.

    \b
    Examples:
      directfuse serve 'sshfs host:/data /data' --name data --background
      directfuse run -m @data -- ls /data
      python -c "import directfuse; directfuse.mount('@data'); print(directfuse.listdir('/data'))"
      directfuse unmount @data

    \b
    Exit status: 0 unmounted, or --background: mounted; 1 not mounted; 125 directfuse itself failed.
    """
    argv = split(command_line)
    if argv[0].startswith("@"):
        raise Failure(f"{argv[0]}: is the name of a mount server; serve takes a file system's line")
    check_restart(restart == "on-failure", [argv])
    if log is not None and not background:
        raise click.UsageError("--log is for --background")
    path = _socket(name)
    if not background:
        return _serve(argv, name, path, restart == "on-failure", call_timeout, None)
    left = leave(log)
    if isinstance(left, int):
        return left
    with left.listening():
        return _serve(argv, name, path, restart == "on-failure", call_timeout, left)


def _socket(name: str) -> Path:
    if name.startswith("@"):
        raise Failure(f"--name {name}: without its @, which is for those who join: {name[1:]}")
    try:
        return socket_path(name, make=True)
    except ServerFailed as error:
        raise Failure(str(error)) from error


def _serve(
    argv: list[str],
    name: str,
    path: Path,
    restart: bool,
    call_timeout: float | None,
    background: Background | None,
) -> int:
    program = program_for([argv])
    if not meaning.is_python(argv):
        argv = [_file(argv), *argv[1:]]
    # Here it stays open, too: whoever wants the name next finds it taken until all of ours is gone.
    with _listen(path, name) as listener:
        try:
            with shadow_beside(path) as shadow:
                told = {"DIRECTFUSE_SHADOW": str(shadow)} | timeout_variable(call_timeout)
                return _run(program, argv, listener, restart, told, background)
        finally:
            path.unlink(missing_ok=True)


def _file(argv: list[str]) -> str:
    """What the first word means: the server finds out whether it can be loaded."""
    try:
        return library_of(argv)
    except DirectfuseError as error:
        raise Failure(f"{error.filename or argv[0]}: {error.strerror}") from error


def _listen(path: Path, name: str) -> socket.socket:
    """A name whose server is gone is taken over, by one of those who want it."""
    with alone(path.parent):
        remove_left(path.parent)
        _make_room(path, name)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            listener.bind(os.fspath(path))
        except OSError as error:  # which names no file
            raise OSError(error.errno, error.strerror, os.fspath(path)) from error
        path.chmod(0o600)  # whatever the umask: connect(2) wants the right to write
        listener.listen(socket.SOMAXCONN)
        return listener


def _make_room(path: Path, name: str) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as probe:
        try:
            probe.connect(os.fspath(path))
        except FileNotFoundError:
            return
        except ConnectionRefusedError:
            if not path.is_socket():
                raise Failure(f"--name {name}: {path} is there, and no socket") from None
            path.unlink()
        else:
            raise Failure(f"--name {name}: a mount server of that name is running")


@contextmanager
def _signals_postponed() -> Iterator[None]:
    """Those that end us by an exception raise it afterwards."""
    came: list[int] = []
    handlers = {number: signal.getsignal(number) for number in _ENDS}
    ours = {number: handler for number, handler in handlers.items() if callable(handler)}
    for number in ours:
        signal.signal(number, lambda number, _frame: came.append(number))
    try:
        yield
    finally:
        for number, handler in ours.items():
            signal.signal(number, handler)
    for postponed in came:
        signal.raise_signal(postponed)


def _end(server: subprocess.Popen[bytes]) -> None:
    """Interrupted again, it is told again, and gives up what hangs; the third time we go alone.

    One that still mounts ends at once. Only it knows: it may have mounted, and others may have
    joined it and written, before that is seen here.
    """
    for _ in range(2):
        server.send_signal(signal.SIGTERM)
        try:
            with patiently(say, not_ended(server.pid)):
                server.wait()
        except (KeyboardInterrupt, SystemExit):
            continue
        return


def _wait(server: subprocess.Popen[bytes]) -> int:
    """As server.wait(), for which a signal that comes right before it begins has not come."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    try:
        while (status := server.poll()) is None:
            signal.sigtimedwait({signal.SIGCHLD}, _SEEN)
        return status
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _run(
    program: list[str],
    argv: list[str],
    listener: socket.socket,
    restart: bool,
    told: dict[str, str],
    background: Background | None = None,
) -> int:
    server = None
    try:
        with _signals_postponed():  # else one that came now would leave a server that nobody knows
            server = _start(program, argv, listener, restart, told, background)
        with patiently(say, not_mounted(argv[0])):
            mounted = wait_for_server(listener.getsockname(), server.pid)
        if mounted and background:
            background.begun()
        status = _wait(server)
    except BaseException:  # Ctrl-C, SIGTERM: as for the server
        if server:
            _end(server)
        raise
    if status < 0:
        raise Failure(f"{shlex.join(argv)}: the mount server was ended by signal {-status}")
    return _refused(status) if 0 < status < _SIGNALS else status


def _refused(code: int) -> int:
    """The server has said why; how a limit is raised, it does not know. An exit status."""
    if remedy := limit_remedy(code):
        click.echo(remedy, err=True)
    return 1


def _start(
    program: list[str],
    argv: list[str],
    listener: socket.socket,
    restart: bool,
    told: dict[str, str],
    background: Background | None,
) -> "subprocess.Popen[bytes]":
    number = listener.fileno()
    again = ["--restart", "--say"] if restart else []
    return subprocess.Popen(
        [*program, "--listen", str(number), "--stay", *again, "--", *argv],
        stdin=0,  # as they are here, also where they were closed: fill_standard()
        stdout=background.words if background else 1,
        stderr=background.words if background else 2,
        pass_fds=[number],
        start_new_session=True,
        env=os.environ | told,
    )
