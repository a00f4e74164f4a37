"""`directfuse run`: a program, and whatever it starts, sees the mounts at their paths."""

import json
import os
import shlex
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, NoReturn, TextIO

import click

from directfuse import _kernel, _paths
from directfuse._cli._config import PLACEMENTS, RESTARTS, Config, check_placement, read_config
from directfuse._cli._failure import CANNOT_EXECUTE, NOT_FOUND, Failure
from directfuse._cli._output import one_cell, say
from directfuse._cli._words import FileName, Seconds
from directfuse._cli.mount import resolve, split
from directfuse._command import positional_words
from directfuse._mount_server import ServerFailed
from directfuse._named import Joined, is_joined
from directfuse._python import meaning
from directfuse._run import Serving, not_mounted, patiently, run_command
from directfuse._run_block import RunBlock, call_names, openat2_is_free

__all__ = [
    "check_restart",
    "config_option",
    "is_entered",
    "join",
    "mount_commands",
    "mount_options",
    "restart_option",
    "run",
    "timeout_option",
]

_REFUSED = ("/", "/dev", "/proc", "/sys")


restart_option = click.option(
    "--restart",
    type=click.Choice(RESTARTS),
    default=None,
    help="on-failure: start the mount server again when it dies; for read-only file systems "
    "(-o ro), whose open files stay open.",
)


timeout_option = click.option(
    "--call-timeout",
    type=Seconds(0, 1e6, min_open=True),
    default=None,
    metavar="SECONDS",
    help="A call that the file system has not answered by then ends in ETIMEDOUT; when all have "
    "ended it is waited for no longer, either.",
)


config_option = click.option(
    "--config",
    type=FileName(dir_okay=False, path_type=Path),
    callback=lambda _context, _option, path: read_config(path) if path else None,
    metavar="FILE",
    help="A TOML file with [[mount]] tables: command, placement; and restart.",
)


def mount_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """-m, --config, --placement: what is to be mounted."""
    for option in (
        click.option(
            "--placement",
            type=click.Choice(PLACEMENTS),
            default="auto",
            show_default=True,
            help="Where file systems run. Programs reach them in a mount server only.",
        ),
        config_option,
        click.option(
            "-m",
            "--mount",
            "lines",
            multiple=True,
            metavar="CMDLINE",
            help="A file system's command line, mountpoint included; may come several times. Or "
            "@NAME: that of `directfuse serve --name NAME`.",
        ),
    ):
        command = option(command)
    return command


class _Run(click.Command):
    """FILE is joined to --stats by "=". A word behind it is COMMAND, not to be written to."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, list(self._bare_stats_told(args)))

    def _bare_stats_told(self, args: list[str]) -> Iterator[str]:
        takes_word = {name for option in self.params if _takes_word(option) for name in option.opts}
        words = iter(args)
        for word in words:
            yield "--stats=-" if word == "--stats" else word
            if word in takes_word:
                yield from islice(words, 1)
            if word == "--" or not word.startswith("-"):
                break
        yield from words  # COMMAND


def _takes_word(option: click.Parameter) -> bool:
    return isinstance(option, click.Option) and not option.is_flag and option.name != "stats"


@click.command(cls=_Run, context_settings={"allow_interspersed_args": False})
@mount_options
@click.option(
    "--stats",
    type=FileName(readable=False, path_type=str),
    metavar="[=FILE]",
    help="What was called and by which way: a table on standard error, or JSON into FILE.",
)
@restart_option
@timeout_option
@click.option("--verbose", is_flag=True, help="Say what was chosen, and why.")
@click.option(
    "--strict", is_flag=True, help="Refuse (EPERM) what could only be run without the mounts."
)
@click.option("--no-rewrite", is_flag=True, help="Change no code: every system call traps.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def run(
    lines: Sequence[str],
    config: Config | None,
    placement: str,
    stats: str | None,
    restart: str | None,
    call_timeout: float | None,
    verbose: bool,
    strict: bool,
    no_rewrite: bool,
    command: Sequence[str],
) -> int:
    """Run COMMAND with file systems mounted for it alone: no mount, no root, no /dev/fuse.

    COMMAND and everything it starts see the file systems at their mountpoints, which need not
    exist. The file systems run in a mount server that ends with the last of these programs; or, by
    -m @NAME, in one that `directfuse serve` has started, which goes on. Without -m and --config
    nothing is mounted; COMMAND runs all the same, and that is said.

    \b
    Examples:
      directfuse run -m 'memfs /scratch' -- make -C /scratch/build
      directfuse run -m 'squashfuse data.sqfs /data' -- python train.py /data
      directfuse run --config mounts.toml --stats -- bash
      directfuse run -m @data -- ls /data

    \b
    Exit status: that of COMMAND (by the signal that ended it: a shell shows 128 + n); 127 it is
    not found; 126 it cannot be executed; 125 directfuse failed: then nothing was started.
    """
    commands = mount_commands(lines, config, placement, verbose)
    if _kernel.is_in_run():
        if stats or strict or no_rewrite:
            raise Failure("--stats, --strict, --no-rewrite: are the outer run's, give them there")
        if verbose:
            say(f"this is a program of a run with {commands[0][0]} already, and so is COMMAND")
        _become(command)
    file = None if stats in (None, "-") else _open_statistics(Path(str(stats)))
    again = (restart or (config and config.restart)) == "on-failure"
    check_restart(again, commands)
    _check_timeout(call_timeout, commands)
    try:
        serving = join(commands, verbose) or _serve(commands, again, call_timeout)
    except ServerFailed as error:
        raise Failure(f"{error}{_unquoted(lines, command)}") from error
    if not commands:
        say("nothing is mounted, for no file system was named (-m)")
    try:
        block = RunBlock(
            serving.config,
            _paths.loader(),
            verbose=verbose,
            strict=strict,
            norewrite=no_rewrite,
            openat2=openat2_is_free(),
        )
        with serving.watched(say):
            status = run_command(command, block, inherited=serving.inherited)
    except BaseException:
        serving.abandon()
        raise
    if status == NOT_FOUND:
        _say_what_was_meant(command, commands, stats)
    serving.end(block.has_programs, say)
    for note in block.notes():
        say(note)
    if stats is not None:
        _report(block, serving, file)
    return status


def _become(command: Sequence[str]) -> NoReturn:
    """Raises Failure, as a run says that it found no program."""
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them
        signal.signal(number, signal.SIG_DFL)
    error = _kernel.become(command)
    if isinstance(error, FileNotFoundError):
        raise Failure(f"{command[0]}: command not found", NOT_FOUND)
    raise Failure(f"{command[0]}: {error.strerror}", CANNOT_EXECUTE)


def _serve(commands: Sequence[Sequence[str]], restart: bool, timeout: float | None) -> Serving:
    """Raises ServerFailed."""
    with patiently(say, not_mounted(", ".join(words[0] for words in commands))):
        return Serving(commands, restart=restart, call_timeout=timeout)


def _say_what_was_meant(
    command: Sequence[str], commands: Sequence[Sequence[str]], stats: str | None
) -> None:
    """Where the word that was taken for COMMAND looks like that of an option, or like a line."""
    if not commands and " " in command[0]:
        line = shlex.quote(command[0])
        say(f"a file system is given by -m: directfuse run -m {line} -- COMMAND")
    elif stats == "-" and command[1:2]:
        say(f"statistics are written to a file by --stats={shlex.quote(command[0])}")
    elif len(command) == 1 and not set(" |;&<>").isdisjoint(command[0]):
        say(f"a line for a shell is given by sh -c: -- sh -c {shlex.quote(command[0])}")


def _unquoted(lines: Sequence[str], command: Sequence[str]) -> str:
    """A remedy for `-m memfs /x`, of which the shell makes a file system without a mountpoint."""
    if "/" not in command[0] and "--" not in command:
        return ""  # it is COMMAND
    bare = next((line for line in lines if len(split(line)) == 1 and line[0] != "@"), None)
    if bare is None:
        return ""
    whole = shlex.quote(f"{bare} {shlex.quote(command[0])}")
    return f"\n(-m takes the whole command line in one word: -m {whole})"


def mount_commands(
    lines: Sequence[str], config: Config | None, placement: str, verbose: bool
) -> list[list[str]]:
    """The command lines of all file systems, checked, their programs found. In a program of a run:
    @NAME, if is_entered()."""
    commands = [_command(line) for line in (*lines, *(config.lines if config else ()))]
    check_placement(placement)
    _check_named(commands)
    if _kernel.is_in_run() and not is_entered(commands):
        raise Failure(
            "this is a program of a run already, and programs are in one run at most: give its -m "
            "to the outer run, or start it outside"
        )
    for words in commands:
        positional = positional_words(words)
        if positional:
            _check_mountpoint(positional[-1], verbose)
    return commands


def is_entered(commands: Sequence[Sequence[str]]) -> bool:
    """Whether these are the file systems of the run that this is a program of."""
    return len(commands) == 1 and _is_named(commands[0]) and is_joined(commands[0][0][1:])


def _is_named(words: Sequence[str]) -> bool:
    """Whether the command line is @NAME, of a server that runs already."""
    return words[0].startswith("@")


def _check_named(commands: Sequence[Sequence[str]]) -> None:
    """All file systems of a run live in one server, and that one has its own mountpoint."""
    for words in filter(_is_named, commands):
        if len(words) > 1:
            raise Failure(f"{words[0]}: stands alone; the mountpoints are those of its server")
        if len(commands) > 1:
            raise Failure(
                f"{words[0]}: all file systems of a run are in one server: join it with no other "
                "-m, and give `directfuse serve` the others, too; or mount its file system here by "
                "its own command line"
            )


def join(commands: Sequence[Sequence[str]], verbose: bool) -> Joined | None:
    """The server that runs already; None: one is to be started. Raises ServerFailed."""
    if not commands or not _is_named(commands[0]):
        return None
    joined = Joined(commands[0][0].removeprefix("@"), say)
    try:
        for mountpoint in joined.mountpoints:
            _check_mountpoint(mountpoint, verbose)
    except Failure:
        joined.leave()
        raise
    if verbose:
        points = ", ".join(joined.mountpoints)
        click.echo(f"directfuse: @{joined.name} is mounted at {points}", err=True)
    return joined


def _command(line: str) -> list[str]:
    words = split(line)
    if _is_named(words) or meaning.is_python(words):
        return words
    builtin = _paths.plugin(words[0])  # not its program, which lacks what a plugin may add (014)
    try:
        return [str(builtin), *words[1:]] if builtin else resolve(words, meaning.names)
    except Failure as error:  # 126 and 127 are said of COMMAND
        raise Failure(error.message) from error


def check_restart(again: bool, commands: Sequence[Sequence[str]]) -> None:
    """The server of a Python file system is an interpreter, which no keeper could fork afresh."""
    for words in commands:
        if again and _is_named(words):
            raise Failure(f"{words[0]}: --restart on-failure is for `directfuse serve`, its server")
        if again and meaning.is_python(words):
            raise Failure(f"{words[0]}: --restart on-failure is not for Python file systems")


def _check_timeout(seconds: float | None, commands: Sequence[Sequence[str]]) -> None:
    """It is the server's."""
    for words in filter(_is_named, commands):
        if seconds is not None:
            raise Failure(f"{words[0]}: --call-timeout is for `directfuse serve`, its server")


def _check_mountpoint(word: str, verbose: bool) -> None:
    try:
        point = os.path.abspath(word)
    except FileNotFoundError as error:
        raise Failure(f"{word}: the working directory has been removed; name a path") from error
    for name in (point, os.path.realpath(point)):
        if name in _REFUSED:
            raise Failure(f"{point}: cannot be a mountpoint of programs, which need what is there")
        if name.startswith("/proc/"):
            raise Failure(f"{point}: cannot be a mountpoint: /proc is each process's own")
    if verbose and os.path.isdir(point) and os.listdir(point):
        click.echo(f"directfuse: {point}: hides the directory of that name", err=True)


# ---- what was done -------------------------------------------------------------------------------


def _report(block: RunBlock, serving: Serving | Joined, file: TextIO | None) -> None:
    report = _statistics(block, serving)
    if isinstance(serving, Joined):
        say(f"operations of @{serving.name} are those of all its clients: not told here")
    if file is None:
        with suppress(OSError):
            _print(report)
        return
    try:
        with file:
            file.write(json.dumps(report, indent=2) + "\n")
    except OSError as error:  # COMMAND has ended: the status is its own
        say(f"--stats={file.name}: {error.strerror}")


def _open_statistics(file: Path) -> TextIO:
    """Before anything is started: 125 says that nothing was."""
    try:
        return file.open("w")
    except OSError as error:
        raise Failure(f"--stats={file}: {error.strerror}") from error


def _statistics(block: RunBlock, serving: Serving | Joined) -> dict[str, Any]:
    names = call_names()
    mounts = {} if isinstance(serving, Joined) else serving.report()
    counts = sorted(block.calls().items(), key=lambda item: -item[1].calls)
    return {
        "mounts": {
            point: {name: count._asdict() for name, count in ops.items()}
            for point, ops in mounts.items()
        },
        "events": block.events(),
        "calls": {names.get(number, str(number)): count._asdict() for number, count in counts},
    }


def _print(report: dict[str, Any]) -> None:
    """Three tables on standard error, columns between tabs."""
    rows: list[tuple[str, ...]] = [("operation", "calls", "errors", "bytes", "mount")]
    for point, ops in report["mounts"].items():
        rows += [(name, *map(str, count.values()), point) for name, count in ops.items()]
    rows.append(("system call", "calls", "passed to the kernel"))
    rows += [(name, *map(str, count.values())) for name, count in report["calls"].items()]
    rows.append(("event", "count"))
    rows += [(name, str(count)) for name, count in report["events"].items()]
    for row in rows:
        click.echo("\t".join(map(one_cell, row)), err=True)
