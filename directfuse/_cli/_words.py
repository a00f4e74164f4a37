"""The argument CMDLINE of the commands: a file system's own command line, in one word."""

import shlex
from collections.abc import Callable
from typing import Any

import click

__all__ = ["command_line_argument"]


def command_line_argument(*, required: bool = True) -> Callable[[Any], Any]:
    """Passes `command_line`, a text; None where it is not required and is not there."""
    metavar = "CMDLINE" if required else "[CMDLINE]"
    return click.argument(
        "command_line", metavar=metavar, nargs=-1, required=required, callback=_one_word
    )


def _one_word(
    context: click.Context, _parameter: click.Parameter, words: tuple[str, ...]
) -> str | None:
    """Without quotes it is what people write first."""
    if len(words) > 1:
        whole = shlex.quote(shlex.join(words))
        raise click.UsageError(f"the file system's command line is one word here: {whole}", context)
    return words[0] if words else None
