"""Writes docs/compat.md and docs/compat-run.md: the tables of calls from native/core/calls.def and
native/syscalls/syscalls.def, the first followed by what people wrote.

python docs/make_compat.py            # writes both
python docs/make_compat.py --check    # exits with 1 when one is not up to date
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
SYSCALLS = ROOT / "native/syscalls/syscalls.def"
RUN_OUTPUT = ROOT / "docs/compat-run.md"

HEAD = """\
<!-- Made by docs/make_compat.py from native/core/calls.def and docs/compat_duties.md. -->
# What is compatible, and what is not

Measured against Linux on a local file system; where FUSE itself differs, against the same file
system mounted through the kernel.

## Calls

`full`: as Linux does it. `partial`: as Linux, but for what the note says. Anything not listed here
does not exist in directfuse.
"""

RUN_HEAD = """\
<!-- Made by docs/make_compat.py from native/syscalls/syscalls.def. -->
# System calls of programs under `directfuse run`

Every system call of Linux on x86-64, up to 7.2.

- `handled`: when it concerns a mount, it is done here, as Linux does it on a local file system;
  else it is the kernel's
- `partial`: the same, but for what the note says
- `passed`: always the kernel's
- `refused`: when it concerns a mount (*always*: in any case) the answer is the error named, or that
  of a path which leads nowhere, or of other arguments; else it is the kernel's
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


_SYSCALL = re.compile(
    r"DFI_CALL\((?P<number>\d+), (?P<name>\w+), \"(?P<arguments>[fdp-]*)\", [A-Z_0| ]+, "
    r"(?P<level>[A-Z]+), (?P<handler>\w+), (?P<error>\w+), \"(?P<note>[^\"]*)\"\)"
)


@dataclass(frozen=True)
class SystemCall:
    """One row of syscalls.def."""

    family: str
    number: int
    name: str
    arguments: str
    level: str
    handler: str
    error: str
    note: str


def read_system_calls(text: str) -> list[SystemCall]:
    """All rows, in the order of the file."""
    return list(_system_call_rows(re.sub(r"^/\*\n.*?\*/", "", text, flags=re.DOTALL)))


def _system_call_rows(text: str) -> Iterator[SystemCall]:
    family = ""
    for match in re.finditer(
        rf"/\* --- (?P<title>[^:*\n]+?)(: \S+)? --- \*/|{_SYSCALL.pattern}", text
    ):
        if match["title"]:
            family = match["title"]
        else:
            row = match.groupdict()
            yield SystemCall(family, int(row["number"]), *(row[k] for k in _SYSCALL_TEXTS))


_SYSCALL_TEXTS = ("name", "arguments", "level", "handler", "error", "note")


def _answer(row: SystemCall) -> str:
    if row.level != "REFUSED":
        return row.note
    always = ", always" if row.handler == "dfi_refuse" else ""
    return f"{row.error}{always}" + (f": {row.note}" if row.note else "")


def render_system_calls(rows: list[SystemCall]) -> str:
    """The page of `directfuse run`."""
    parts = [RUN_HEAD]
    for family in dict.fromkeys(row.family for row in rows):
        parts.append(f"\n## {family[0].upper()}{family[1:]}\n\n")
        parts.append("| call | number | support | note |\n|---|---|---|---|\n")
        parts += [
            f"| `{row.name}` | {row.number} | {row.level.lower()} | {_answer(row)} |\n"
            for row in rows
            if row.family == family
        ]
    return "".join(parts)


def run_page() -> str:
    """What docs/compat-run.md should hold now."""
    return render_system_calls(read_system_calls(SYSCALLS.read_text()))


def page() -> str:
    """What docs/compat.md should hold now."""
    return render(read_calls(CALLS.read_text()), DUTIES.read_text())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="only tell whether it is up to date")
    check = parser.parse_args().check
    pages = {OUTPUT: page(), RUN_OUTPUT: run_page()}
    if not check:
        for path, wanted in pages.items():
            path.write_text(wanted)
        return 0
    old = [p for p, wanted in pages.items() if not p.exists() or p.read_text() != wanted]
    for path in old:
        name = path.relative_to(ROOT)
        print(f"{name} is out of date: run python docs/make_compat.py", file=sys.stderr)
    return int(bool(old))


if __name__ == "__main__":
    sys.exit(main())
