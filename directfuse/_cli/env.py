"""`directfuse env`: mounts for programs that others start, by the environment."""

import os
import shlex
import socket
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import click

from directfuse import _paths
from directfuse._cli._config import Config
from directfuse._cli._failure import Failure
from directfuse._cli._output import say
from directfuse._cli._start import output_is_closed
from directfuse._cli.run import is_entered, join, mount_commands, mount_options
from directfuse._mount_server import MountServer, ServerFailed
from directfuse._named import Joined, NoServer, end_listener
from directfuse._run import high_fd, mapped_limit
from directfuse._run_block import RunBlock, dispatch_is_there, openat2_is_free
from directfuse._shadow import discard_shadow, is_around_shadow, shadow_directory
from directfuse._swept import remove

__all__ = ["env"]

_VARIABLE = "DIRECTFUSE_RUN"  # native/intercept/preload.c
_SOCKET = "run.socket"  # in the run's directory: where its programs join
_LINK = "preload.so"  # in the run's directory: to the library that enters programs


@click.command()
@mount_options
@click.option("--end", is_flag=True, help="End what the environment names: unmount, and unset it.")
def env(lines: Sequence[str], config: Config | None, placement: str, end: bool) -> None:
    """Print shell commands that make programs see file systems: for eval.

    The programs are entered by LD_PRELOAD, where a launcher or a batch system lets only the
    environment be set. The shell that evaluates them runs already and is not entered: its own cd
    and redirections do not see the file systems, what it starts does; `exec "$SHELL"` enters.
    `directfuse run` sees more: static programs that such a shell starts, what a program does
    before its first library is loaded, and threads started by other libraries' constructors are
    not interposed here. The file systems stay until --end, and that of -m @NAME as long as
    `directfuse serve` hosts it.

    \b
    Examples:
      eval "$(directfuse env -m 'memfs /scratch')"
      mpirun -x LD_PRELOAD -x DIRECTFUSE_RUN program /scratch
      eval "$(directfuse env --end)"
      eval "$(directfuse env -m @data)"

    \b
    Exit status: 0; 125 nothing was mounted, and nothing is printed.
    """
    if end:
        if lines or config is not None:
            raise click.UsageError("--end stands alone: it ends what DIRECTFUSE_RUN names")
        _end()
        return
    if output_is_closed():
        raise Failure("standard output is closed: who could end what was mounted is not told of it")
    commands = mount_commands(lines, config, placement, verbose=False)
    if is_entered(commands):
        raise Failure(f"this is a program of a run with {commands[0][0]} already: nothing to enter")
    if config and config.restart == "on-failure":
        raise Failure(f"{config.path}: restart is for `directfuse run` and `directfuse serve`")
    if not commands:
        raise Failure("nothing to mount; for example: directfuse env -m 'memfs /scratch'")
    if not dispatch_is_there():  # else no program would start where the variables are set
        raise Failure(
            "programs are entered by LD_PRELOAD only by Syscall User Dispatch (Linux 5.11), which "
            "is missing here, or which a seccomp filter forbids: use `directfuse run`"
        )
    try:
        joined = join(commands, verbose=False)
    except ServerFailed as error:
        raise Failure(str(error)) from error
    shadow = shadow_directory()
    directory = shadow.parent
    try:
        if joined is None:
            _begin(directory, commands, shadow)
        else:
            _begin_joined(directory, joined)
        _tell(directory)
    except BaseException:  # an interruption, a full disk: who was not told of it could not end it
        with suppress(Failure, OSError):
            _end_server(directory, wait=False)
        discard_shadow(shadow)
        raise


def _tell(directory: Path) -> None:
    before = os.environ.get("LD_PRELOAD")
    preload = f"{_preload(directory)}{':' + before if before else ''}"
    lines = [
        f"export {_VARIABLE}={shlex.quote(str(directory / 'run'))}",
        f"export LD_PRELOAD={shlex.quote(preload)}",
    ]
    click.echo("\n".join(lines))


def _preload(directory: Path) -> Path:
    """The library by a name that may stand in a list: the dynamic linker divides it at these."""
    library = _paths.preload_library()
    if not {" ", ":"} & {*str(library)}:
        return library
    link = directory / _LINK
    link.symlink_to(library)
    return link


def _begin(directory: Path, commands: Sequence[Sequence[str]], shadow: Path) -> None:
    limit = mapped_limit()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(str(directory / _SOCKET))
        (directory / _SOCKET).chmod(0o600)  # whatever the umask
        listener.listen()
        try:
            server = MountServer(commands, listener, shadow=shadow)
        except ServerFailed as error:
            raise Failure(str(error)) from error
    try:
        server.leave()
        text = f"server={high_fd(())}\nshadow={shadow}\n{limit}"
        RunBlock(text, _paths.loader(), file=directory / "run", openat2=openat2_is_free()).close()
    except BaseException:
        server.terminate()
        raise


def _begin_joined(directory: Path, joined: Joined) -> None:
    """Programs connect to the named socket, by a link where they look for the run's own."""
    joined.leave()
    (directory / _SOCKET).symlink_to(joined.path)
    RunBlock(
        joined.config, _paths.loader(), file=directory / "run", openat2=openat2_is_free()
    ).close()


def _end_server(directory: Path, *, wait: bool = True) -> None:
    """Not one that was joined: it is others'. wait: until it has written what it holds."""
    path = directory / _SOCKET
    if path.is_symlink():
        return
    try:
        with suppress(NoServer):  # it was killed
            end_listener(path, str(directory), say, wait=wait)
    except ServerFailed as error:
        raise Failure(str(error)) from error


def _is_of_a_run(directory: Path) -> bool:
    return is_around_shadow(directory) and os.path.lexists(directory / _SOCKET)


def _end() -> None:
    name = os.environ.get(_VARIABLE)
    if name is None:
        raise Failure(f"{_VARIABLE} is not set: there is nothing to end")
    directory = Path(name).parent
    if directory.exists():
        if not _is_of_a_run(directory):  # all that is in it would be removed
            raise Failure(f"{_VARIABLE}={name}: is nothing that `directfuse env` has made")
        _end_server(directory)
        remove(directory)
    else:  # by another shell, which had the same environment
        click.echo(f"directfuse env: {directory}: has been ended already", err=True)
    ours = {"", str(_paths.preload_library()), str(directory / _LINK)}
    rest = [word for word in os.environ.get("LD_PRELOAD", "").split(":") if word not in ours]
    click.echo(f"unset {_VARIABLE}")
    click.echo(f"export LD_PRELOAD={shlex.quote(':'.join(rest))}" if rest else "unset LD_PRELOAD")
