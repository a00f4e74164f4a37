"""The command line: the group, its exit statuses, and where each command lives.

Exit statuses: 0 done; 1 the answer is no (a check failed, trees differ); 125 directfuse itself
failed or was used wrongly; 126, 127 the program cannot be executed, or is not found; `mount` hands
through the status of the file system's own program. A status below 0 is inside: who was interrupted
by a signal, or ran what a signal has ended, ends by that signal.
"""

import gc
import importlib
import os
import signal
import sys
from contextlib import suppress

import click

from directfuse._cli._end import end_by
from directfuse._cli._failure import OWN_FAILURE, Failure, tell
from directfuse._cli._start import (
    fill_standard,
    let_names_out,
    restore_locale,
    unwind_by_signals,
    wait_for_children,
)
from directfuse._errors import limit_remedy

__all__ = ["main"]

# Name, module, one line for --help: a command's module is imported when the command runs.
_COMMANDS = {
    "run": ("run", "Run a program that sees file systems at their mountpoints."),
    "env": ("env", "Print what makes programs see file systems by their environment."),
    "mount": ("mount", "Mount a FUSE file system through the kernel."),
    "unmount": ("mount", "Unmount a FUSE file system."),
    "serve": ("serve", "Host a file system in a mount server that others join by name."),
    "backends": ("backends", "List what can be mounted here."),
    "doctor": ("doctor", "Tell what works on this machine and what is missing."),
    "paths": ("paths", "Tell where libraries, headers and pkg-config files are."),
    "bench": ("bench", "Compare plain directory, kernel FUSE mount and inline."),
    "tour": ("tour", "Take a real directory tree through memfs and back."),
}


class _Group(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module = importlib.import_module(f"directfuse._cli.{_COMMANDS[cmd_name][0]}")
        gc.enable()  # directfuse_command has disabled it
        command = getattr(module, cmd_name)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            import difflib  # 3 ms

            near = difflib.get_close_matches(args[0], _COMMANDS, 1)
            if not near or "Did you mean" in error.message:
                raise
            words = f"{error.message} (Did you mean '{near[0]}'?)"
            raise click.UsageError(words, error.ctx) from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, words) for name, (_, words) in _COMMANDS.items()])


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="directfuse", message="%(prog)s %(version)s")
def directfuse() -> None:
    """FUSE file systems as plugins: function calls in place of a kernel mount.

    \b
    Examples:
      directfuse run -m 'memfs /scratch' -- make -C /scratch/build
      directfuse backends
      directfuse tour ~/src
      directfuse bench --quick
      directfuse mount 'memfs /mnt/mem' && directfuse unmount /mnt/mem

    Exit status: 0 done, 1 the answer is no, 125 directfuse itself failed, 126 and 127 as the shell.
    """


def main(name: str = "directfuse") -> None:
    """Runs the command line and exits."""
    fill_standard()
    let_names_out()
    restore_locale()
    wait_for_children()
    status = _run(name)
    _give_up_output()
    gc.freeze()  # else Python, at its end, looks through all that was imported: 15 ms
    if status < 0:
        end_by(-status)
    sys.exit(status)


def _give_up_output() -> None:
    """What could not be written. Python would try once more at its end, say so, and end by 120."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(name: str) -> int:
    try:
        unwind_by_signals()
        # Not directfuse.main(): it turns a closed pipe into status 1, our "the answer is no".
        with directfuse.make_context(name, sys.argv[1:]) as context:
            result = directfuse.invoke(context)
        sys.stdout.flush()
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.ClickException as error:
        with suppress(OSError):  # as in tell()
            error.show()
        return error.status if isinstance(error, Failure) else OWN_FAILURE
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else OWN_FAILURE
    except (click.Abort, KeyboardInterrupt):
        tell("Interrupted.")
        return -signal.SIGINT
    except BrokenPipeError:  # the reader of our output has gone: `directfuse backends | head -1`
        return -signal.SIGPIPE
    except OSError as error:
        words = [f"Error: {error.filename or name}: {error.strerror or error}"]
        tell(" ".join(filter(None, [*words, limit_remedy(error.errno)])))
        return OWN_FAILURE
    return result if isinstance(result, int) else 0
