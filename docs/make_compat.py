"""Writes docs/compat.md: the table of calls from native/core/calls.def, then what people wrote.

python docs/make_compat.py            # writes docs/compat.md
python docs/make_compat.py --check    # exits with 1 when it is not up to date
"""

import argparse
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CALLS = ROOT / "native/core/calls.def"
DUTIES = ROOT / "docs/compat_duties.md"
OUTPUT = ROOT / "docs/compat.md"

HEAD = """\
<!-- Made by docs/make_compat.py from native/core/calls.def and docs/compat_duties.md. -->
# What is compatible, and what is not

Measured against Linux on a local file system; where FUSE itself differs, against the same file
system mounted through the kernel.

## Calls

`full`: as Linux does it. `partial`: as Linux, but for what the note says. Anything not listed here
does not exist in directfuse.
"""

_FAMILY = re.compile(r"/\* --- (?:(?P<title>[^:*\n]+): )?(?P<file>\S+) --- \*/")
_ROW = re.compile(
    r"DF_CALL\(\s*(?P<type>[\w *]+?)\s*,\s*(?P<name>\w+)\s*,\s*\((?P<parameters>[^()]*)\)\s*,"
    r"\s*\((?P<arguments>[^()]*)\)\s*,\s*(?P<level>FULL|PARTIAL)\s*,\s*(?P<note>(?:\"[^\"]*\"\s*)+)\)"
)


@dataclass(frozen=True)
class Call:
    """One row of calls.def."""

    family: str
    file: str
    type: str
    name: str
    parameters: str
    level: str
    note: str


def read_calls(text: str) -> list[Call]:
    """All rows, in the order of the file."""
    return list(_rows(re.sub(r"^/\*\n.*?\*/", "", text, flags=re.DOTALL)))


def _rows(text: str) -> Iterator[Call]:
    family = file = ""
    for match in re.finditer(f"{_FAMILY.pattern}|{_ROW.pattern}", text):
        if match["file"]:  # without a title: the family goes on in another file
            family, file = match["title"] or family, match["file"]
        else:
            parameters = " ".join(match["parameters"].split())
            note = "".join(re.findall(r'"([^"]*)"', match["note"]))
            yield Call(family, file, match["type"], match["name"], parameters, match["level"], note)


def render(calls: list[Call], duties: str) -> str:
    """The page."""
    parts = [HEAD]
    for family in dict.fromkeys(call.family for call in calls):
        rows = [call for call in calls if call.family == family]
        where = ", ".join(dict.fromkeys(f"`native/core/{call.file}`" for call in rows))
        parts.append(f"\n### {family[0].upper()}{family[1:]} ({where})\n\n")
        parts.append("| call | support | note |\n|---|---|---|\n")
        parts += [f"| `df_{row.name}` | {row.level.lower()} | {row.note} |\n" for row in rows]
    return "".join(parts) + "\n" + duties


def page() -> str:
    """What docs/compat.md should hold now."""
    return render(read_calls(CALLS.read_text()), DUTIES.read_text())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="only tell whether it is up to date")
    check = parser.parse_args().check
    wanted = page()
    if check:
        current = OUTPUT.read_text() if OUTPUT.exists() else ""
        if current != wanted:
            print("docs/compat.md is out of date: run python docs/make_compat.py", file=sys.stderr)
        return int(current != wanted)
    OUTPUT.write_text(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main())
