"""How commands show things: a table on a terminal, tabs in a pipe, JSON on request."""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click

from directfuse._cli._failure import tell

__all__ = [
    "duration",
    "json_option",
    "one_cell",
    "print_json",
    "print_table",
    "progress",
    "ratio",
    "say",
]

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def say(words: str) -> None:
    """A line on standard error, beside what others write there."""
    tell(f"directfuse: {words}")


def print_json(value: Any) -> None:
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def print_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], *, title: str = "", numbers: bool = False
) -> None:
    """A rich table on a terminal; lines with tabs elsewhere, so that cut(1) and awk(1) work.

    numbers: every column but the first is aligned to the right.
    """
    if not sys.stdout.isatty():
        for row in (columns, *rows):
            click.echo("\t".join(map(one_cell, row)))
        return
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, title=title or None, title_justify="left", pad_edge=False)
    for index, name in enumerate(columns):
        table.add_column(name, justify="right" if numbers and index else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    Console().print(table)


def one_cell(text: str) -> str:
    """What a program said may have lines and tabs of its own."""
    return text.replace("\n", " ").replace("\t", " ")


@contextmanager
def progress(words: str) -> Iterator[Callable[[str], None]]:
    """Shows that something is going on, on a terminal only; yields what changes the words."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True).status(words) as status:
        yield lambda words: status.update(Text(words))


def duration(nanoseconds: float) -> str:
    """As a reader likes it: 34 ns, 1.2 µs, 18 µs, 3.4 ms, 1.20 s."""
    for limit, unit, name in ((1e3, 1, "ns"), (1e6, 1e3, "µs"), (1e9, 1e6, "ms")):
        if nanoseconds < limit:
            value = nanoseconds / unit
            return f"{value:.0f} {name}" if value >= 10 or unit == 1 else f"{value:.1f} {name}"
    return f"{nanoseconds / 1e9:.2f} s"


def ratio(value: float) -> str:
    """1234×, 12.3×, 0.95×."""
    return f"{value:,.0f}×" if value >= 100 else f"{value:.1f}×" if value >= 10 else f"{value:.2f}×"
