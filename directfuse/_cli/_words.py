"""Words of the commands: CMDLINE, a file system's own command line in one word; seconds; files."""

import math
import shlex
from collections.abc import Callable
from typing import Any

import click

__all__ = ["FileName", "Seconds", "command_line_argument"]


class Seconds(click.FloatRange):
    """nan, which is in every range to click, is in none."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        seconds = float(super().convert(value, param, ctx))
        if math.isnan(seconds):
            self.fail(f"{value} is no number of seconds", param, ctx)
        return seconds


class FileName(click.Path):
    """The empty one, which a shell makes of a variable that is not set, is "." to pathlib."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("the name is empty", param, ctx)
        return super().convert(value, param, ctx)


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
    if len(words) > 1 and " " in words[0]:
        rest = shlex.join(words[1:])
        raise click.UsageError(
            f"{rest}: not expected behind the file system's command line", context
        )
    if len(words) > 1:
        whole = shlex.quote(shlex.join(words))
        raise click.UsageError(f"the file system's command line is one word here: {whole}", context)
    return words[0] if words else None
