"""`directfuse mount` and `directfuse unmount`: mounts through the kernel."""

import errno
import os
import re
import shlex
import shutil
from collections.abc import Callable, Sequence

import click

from directfuse import _images, _kernel, _paths
from directfuse._cli._elf import read_linkage
from directfuse._cli._failure import CANNOT_EXECUTE, NOT_FOUND, Failure
from directfuse._cli._output import progress, say
from directfuse._cli._words import Seconds, command_line_argument
from directfuse._cli.backends import fuse_api
from directfuse._command import positional_words, server_meant, unknown
from directfuse._mount_server import ServerFailed
from directfuse._named import end_server
from directfuse._python import meaning

__all__ = ["mount", "unmount"]

#: ~, ~/x, ~name/x, $NAME/x, ${NAME}/x
_UNEXPANDED = re.compile(r"~[\w.-]*(/|$)|\$(\w|\{\w+\})")
#: Words by which a program is asked about itself: it answers and mounts nothing.
_QUESTIONS = frozenset({"-h", "--help", "-V", "--version"})


@click.command()
@command_line_argument()
@click.option(
    "-f", "--foreground", is_flag=True, help="Stay until it is unmounted; Ctrl-C unmounts."
)
@click.option(
    "--timeout",
    type=Seconds(min=0.1),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="How long the file system may take to mount.",
)
def mount(command_line: str, foreground: bool, timeout: float) -> int:
    """Mount a FUSE file system through the kernel.

    CMDLINE is the file system's own command line in one word, mountpoint included. Its first word
    is a built-in file system (see `directfuse backends`), a path, or a program on PATH. Returns
    when the kernel lists the mount. A password that it wants is read from this command's input;
    from a terminal with --foreground.

    \b
    Examples:
      directfuse mount 'memfs /mnt/mem'
      directfuse mount 'passthrough /srv/data /mnt/data'
      directfuse mount -f 'sshfs host:/home /mnt/home -o reconnect'

    \b
    Exit status: 0 mounted; that of the program if it fails; 125 directfuse itself failed;
    126 the program cannot be executed; 127 it is not found.
    """
    argv = split(command_line)
    _check_kind(argv)
    argv = resolve(argv)
    _refuse_shared_object(argv[0])
    if _QUESTIONS.intersection(argv):
        os.execv(argv[0], argv)
    _refuse_occupied(argv)
    words = positional_words(argv)
    file = words[-1] if words and os.path.isfile(words[-1]) else None
    if foreground:
        return _stay(argv, timeout, file)
    with _start(argv, keep=True) as program, progress("Mounting…"):
        _wait(program, timeout, file)
    return 0


@click.command()
@click.argument("mountpoint", metavar="MOUNTPOINT|@NAME")
@click.option(
    "-l", "--lazy", is_flag=True, help="Detach now, even if files are open; do not wait for @NAME."
)
def unmount(mountpoint: str, lazy: bool) -> None:
    """Unmount a FUSE file system that is mounted through the kernel, or end a mount server.

    @NAME is the server of `directfuse serve --name NAME`. It is ended for everybody who has joined
    it, when its file system has written what it holds.

    \b
    Examples:
      directfuse unmount /mnt/mem
      directfuse unmount --lazy /mnt/stuck
      directfuse unmount @data

    \b
    Exit status: 0 unmounted; 125 it was not, and why is said.
    """
    if mountpoint.startswith("@"):
        _end_server(mountpoint.removeprefix("@"), wait=not lazy)
        return
    found = _kernel.mount_at(mountpoint)
    if found is None:
        raise Failure(f"{mountpoint}: {_not_mounted(mountpoint)}")
    if not found.is_fuse:
        raise Failure(f"{mountpoint}: holds a file system of type {found.type}, not FUSE")
    try:
        _kernel.unmount(mountpoint, lazy=lazy)
    except OSError as error:
        hint = _still_mounted(error.errno, mountpoint)
        raise Failure(f"{mountpoint}: {error.strerror}{hint}") from error


def _still_mounted(code: int | None, mountpoint: str) -> str:
    """What to do about that."""
    if code == errno.EBUSY:
        return f"; `fuser -vm {shlex.quote(mountpoint)}` names its users, --lazy detaches it"
    if code == errno.EINVAL and _kernel.is_in_run():
        return "; it is a mount of this run, not the kernel's"
    return ""


def _not_mounted(word: str) -> str:
    """Why there is nothing to unmount; and what would end the server of that name."""
    return f"nothing is mounted there ({server_meant(word) or 'see `findmnt -t fuse`'})"


def _end_server(name: str, *, wait: bool) -> None:
    try:
        end_server(name, say, wait=wait)
    except ServerFailed as error:
        raise Failure(str(error)) from error


def split(command_line: str) -> list[str]:
    """The words of a command line, as the shell splits them."""
    try:
        words = shlex.split(command_line)
    except ValueError as error:
        raise Failure(f"cannot split {command_line!r} into words: {error}") from error
    if not words:
        raise Failure("the file system's command line is empty; for example: 'memfs /mnt/mem'")
    _refuse_unexpanded([words[0], *positional_words(words)])
    return words


def _refuse_unexpanded(words: Sequence[str]) -> None:
    """In quotes the shell has left them as they are, and a mountpoint need not exist: it would be a
    directory called ~ here, and the one that is meant empty."""
    for word in words:
        if _UNEXPANDED.match(word) and not os.path.lexists(word):
            raise Failure(
                f"{word}: ~ and $ are not replaced here, nor in single quotes by a shell; write "
                f'"… $HOME/…" in double quotes, or ./{word} for a name that begins so'
            )


def resolve(argv: list[str], others: Callable[[], Sequence[str]] = tuple) -> list[str]:
    """The same command line with the path of the program as its first word. others: what says the
    names that would do besides those of the built-in file systems, called when this one does not.
    """
    name = argv[0]
    builtin = _paths.program(name)
    found = str(builtin) if builtin else shutil.which(name)
    if found is not None:
        return [found, *argv[1:]]
    if "/" in name and os.path.exists(name):
        image = _images.kind_of(name) if os.path.isfile(name) else ""
        raise Failure(image or f"{name}: is not an executable file", CANNOT_EXECUTE)
    raise Failure(f"{name}: {unknown(name, others())}", NOT_FOUND)


def _check_kind(argv: list[str]) -> None:
    """What has no program that could mount through the kernel."""
    name = argv[0]
    if name.startswith("@"):
        raise Failure(
            f"{name}: is the name of a mount server, which programs join by `directfuse run -m "
            f"{name}`; through the kernel its file system is mounted by its own command line"
        )
    if meaning.is_python(argv) and not os.path.isfile(shutil.which(name) or name):
        raise Failure(
            f"{name}: is a Python file system, which only a program of its own could mount through "
            "the kernel; `directfuse run` and `directfuse serve` need none"
        )


def _refuse_shared_object(path: str) -> None:
    """gcc makes it executable, but started it jumps to address 0. A program that is linked
    statically asks for no dynamic linker, either, and needs no library."""
    linkage = read_linkage(path)
    if linkage is not None and linkage.needed and not linkage.program:
        raise Failure(
            f"{path}: is a shared object, which `directfuse run` loads and nobody can start; "
            "the kernel mounts a program of the same source, built without -shared",
            CANNOT_EXECUTE,
        )


def _refuse_occupied(argv: list[str]) -> None:
    """A second mount on top of the first would hide it without a word."""
    words = positional_words(argv)
    occupied = _kernel.fuse_mount_at(words[-1]) if words else None
    if occupied is not None:
        point = shlex.quote(words[-1])
        raise Failure(
            f"{words[-1]}: {occupied.source} ({occupied.type}) is mounted there already; "
            f"`directfuse unmount {point}` makes room"
        )


def _refuse_directory_over(file: str) -> None:
    """The kernel mounts a directory over a file, too, and answers EIO from then on."""
    try:
        os.stat(file)
    except OSError as error:
        if error.errno != errno.EIO:
            return
        _kernel.unmount(file, lazy=True)
        raise Failure(f"{file}: is a file, and the root of the file system is none") from None


def _stay(argv: list[str], timeout: float, file: str | None) -> int:
    if fuse_api(read_linkage(argv[0])):
        argv = [*argv, "-f"]  # it then keeps its standard error, and Ctrl-C is ours alone
    with _start(argv, quiet=False) as program:
        _wait(program, timeout, file)
        return program.wait_unmounted()


def _start(argv: list[str], *, keep: bool = False, quiet: bool = True) -> _kernel.Program:
    try:
        return _kernel.Program(argv, adopt=True, keep=keep, quiet=quiet)
    except OSError as error:
        raise Failure(f"{argv[0]}: {error.strerror}", CANNOT_EXECUTE) from error


def _wait(program: _kernel.Program, timeout: float, file: str | None) -> None:
    """Until it is mounted. file: the mountpoint, where it is one."""
    try:
        program.wait_mounted(timeout)
    except _kernel.MountFailed as error:
        status = error.status if error.status is not None and error.status > 0 else None
        words = f"{error}{_remedy(program.argv)}"
        raise Failure(words, *([status] if status else [])) from error
    except TimeoutError as error:
        words = program.words()
        raise Failure(f"{error}" + (f". It said:\n{words}" if words else "")) from error
    if file is not None:
        _refuse_directory_over(file)


def _remedy(argv: Sequence[str]) -> str:
    """What is wrong with the image, or what does without the kernel; "" where neither helps."""
    words = _images.remedy(argv)
    if not words and not os.access("/dev/fuse", os.R_OK | os.W_OK):
        words = "/dev/fuse cannot be opened here; `directfuse run -m '…' -- COMMAND` needs none"
    return f"\n({words})" if words else ""
