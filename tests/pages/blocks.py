"""The blocks of the pages: which language, where, and whether they can be run here.

A block that cannot has a comment on the line before it, which readers of the page are not shown:
`<!-- not run: REASON -->`.
"""

import re
import textwrap
from dataclasses import dataclass
from pathlib import Path

from tests.house.tree import ROOT, files, shown

BLOCK = re.compile(
    r"^(?:<!-- not run: (?P<reason>[^\n]+) -->\n)?"
    r"(?P<indent> *)```(?P<language>\w*)\n(?P<text>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """One block of a page, without its indentation."""

    page: Path
    line: int
    language: str
    text: str
    reason: str | None  # why it is not run

    def __str__(self) -> str:
        return f"{shown(self.page)}:{self.line}"


def pages() -> list[Path]:
    """Those for users and developers. A decision tells what was so when it was made."""
    return [page for page in files("*.md") if page.parent != ROOT / "docs/decisions"]


def blocks(page: Path) -> list[Block]:
    text = page.read_text()
    return [
        Block(
            page,
            text.count("\n", 0, found.start("language")) + 1,
            found["language"],
            textwrap.dedent(found["text"]),
            found["reason"],
        )
        for found in BLOCK.finditer(text)
    ]
