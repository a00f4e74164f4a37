"""`directfuse serve`: a mount server with a name, for processes that are not related."""

import os
import shlex
import signal
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

from directfuse import _images
from directfuse._cli._background import Background, leave
from directfuse._cli._config import Config
from directfuse._cli._failure import Failure, tell
from directfuse._cli._output import say
from directfuse._cli._start import heed_sigterm
from directfuse._cli._words import FileName, command_line_argument
from directfuse._cli.mount import split
from directfuse._cli.run import check_restart, config_option, restart_option, timeout_option
from directfuse._command import library_of
from directfuse._errors import DirectfuseError, limit_remedy
from directfuse._mount_server import ServerFailed, check_count, timeout_variable, words_of_all
from directfuse._named import alone, remove_left, shadow_beside, socket_path, wait_for_server
from directfuse._python import meaning
from directfuse._run import not_ended, not_mounted, patiently
from directfuse._served import program_for

__all__ = ["serve"]

_ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_SEEN = 1.0  # seconds within which a signal has been seen
_SIGNALS = 128  # a status from there on tells of a signal, one below of an error


@click.command()
@command_line_argument(required=False)
@click.option(
    "-m",
    "--mount",
    "lines",
    multiple=True,
    metavar="CMDLINE",
    help="A file system, as CMDLINE; may come several times. All are in the same server.",
)
@config_option
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
    command_line: str | None,
    lines: Sequence[str],
    config: Config | None,
    name: str,
    background: bool,
    log: Path | None,
    restart: str | None,
    call_timeout: float | None,
) -> int:
    """Host FUSE file systems in a mount server that others join by its name.

    CMDLINE is a file system's own command line in one word, mountpoint included. Programs of the
    same user join by `directfuse run -m @NAME`, and see all file systems of the server at their
    mountpoints; nothing is mounted. Python and C join with the command line @NAME; where the server
    has several file systems, with @NAME and the mountpoint of one. The server stays until it is
    ended (Ctrl-C, SIGTERM, `directfuse unmount @NAME`); then its file systems write what they hold.

    In the background it has a session of its own, its input is /dev/null, and it stays in the
    directory where it was started, which names in CMDLINE are relative to.

    \b
    Examples:
      directfuse serve 'sshfs host:/data /data' --name data --background
      directfuse serve -m 'squashfuse env.sqfs /env' -m 'memfs /scratch' --name job --background
      directfuse run -m @data -- ls /data
      python -c "import directfuse; directfuse.mount('@data'); print(directfuse.listdir('/data'))"
      directfuse unmount @data

    \b
    Exit status: 0 unmounted, or --background: mounted; 1 not mounted; 125 directfuse itself failed.
    """
    given = (*filter(None, [command_line]), *lines, *(config.lines if config else ()))
    commands = [split(line) for line in given]
    if not commands:
        raise click.UsageError("a file system's command line is missing: CMDLINE, or -m CMDLINE")
    _check(commands)
    again = (restart or (config and config.restart)) == "on-failure"
    check_restart(again, commands)
    if log is not None and not background:
        raise click.UsageError("--log is for --background")
    path = _socket(name)
    heed_sigterm()  # by which `directfuse unmount @NAME` ends it
    if not background:
        status = _serve(commands, name, path, again, call_timeout, None)
        return _with_remedies(commands, status)
    left = leave(log)
    if isinstance(left, int):
        return left
    with left.listening():
        status = _serve(commands, name, path, again, call_timeout, left)
    return _with_remedies(commands, status)


def _check(commands: Sequence[Sequence[str]]) -> None:
    for argv in commands:
        if argv[0].startswith("@"):
            name = argv[0]
            raise Failure(
                f"{name}: is the name of a mount server; serve takes a file system's line"
            )
    try:
        check_count(commands, "a mount server")
    except ServerFailed as error:
        raise Failure(str(error)) from error


def _socket(name: str) -> Path:
    if name.startswith("@"):
        raise Failure(f"--name {name}: without its @, which is for those who join: {name[1:]}")
    try:
        return socket_path(name, make=True)
    except ServerFailed as error:
        raise Failure(str(error)) from error


def _serve(
    commands: list[list[str]],
    name: str,
    path: Path,
    restart: bool,
    call_timeout: float | None,
    background: Background | None,
) -> int:
    program = program_for(commands)
    commands = [argv if meaning.is_python(argv) else [_file(argv), *argv[1:]] for argv in commands]
    # Here it stays open, too: whoever wants the name next finds it taken until all of ours is gone.
    with _listen(path, name) as listener:
        try:
            with shadow_beside(path) as shadow:
                told = {"DIRECTFUSE_SHADOW": str(shadow)} | timeout_variable(call_timeout)
                return _run(program, commands, listener, restart, told, background)
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
    commands: list[list[str]],
    listener: socket.socket,
    restart: bool,
    told: dict[str, str],
    background: Background | None = None,
) -> int:
    server = None
    try:
        with _signals_postponed():  # else one that came now would leave a server that nobody knows
            server = _start(program, commands, listener, restart, told, background)
        with patiently(say, not_mounted(", ".join(argv[0] for argv in commands))):
            mounted = wait_for_server(listener.getsockname(), server.pid)
        if mounted and background:
            background.begun()
        status = _wait(server)
    except BaseException:  # Ctrl-C, SIGTERM: as for the server
        if server:
            _end(server)
        raise
    if status < 0:
        lines = " and ".join(map(shlex.join, commands))
        raise Failure(f"{lines}: the mount server was ended by signal {-status}")
    return status


def _with_remedies(commands: Sequence[Sequence[str]], status: int) -> int:
    """Of the server's status an exit status. It has said why it is none of success; what is wrong
    with a file and how a limit is raised, it does not know."""
    if not 0 < status < _SIGNALS:
        return status
    for image in _images.remedies(commands):
        tell(f"({image})")
    if limit := limit_remedy(status):
        tell(limit)
    return 1


def _start(
    program: list[str],
    commands: list[list[str]],
    listener: socket.socket,
    restart: bool,
    told: dict[str, str],
    background: Background | None,
) -> "subprocess.Popen[bytes]":
    number = listener.fileno()
    again = ["--restart", "--say"] if restart else []
    return subprocess.Popen(
        [*program, "--listen", str(number), "--stay", *again, *words_of_all(commands)],
        stdin=0,  # as they are here, also where they were closed: fill_standard()
        stdout=background.words if background else 1,
        stderr=background.words if background else 2,
        pass_fds=[number],
        start_new_session=True,
        env=os.environ | told,
    )
