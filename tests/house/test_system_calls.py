"""One table of system calls: syscalls.def, its handlers, the kernel's numbers, and the page."""

import re
from pathlib import Path

import pytest

from .tree import NATIVE, without_comments

ROOMS = [NATIVE / room for room in ("intercept", "syscalls", "client")]
NUMBERS = Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h")

#: Macros that make handlers: the first argument is the name.
MAKERS = "DFI_BY_FD|DFI_ATTR_BY_FD|DFI_BY_PATH|DFI_XATTR|DFI_CHANGES_IDS|DFI_CHANGE_BY_PATH"


@pytest.fixture(scope="module")
def rows(make_compat):
    return make_compat.read_system_calls(make_compat.SYSCALLS.read_text())


@pytest.fixture(scope="module")
def handlers():
    """Every function that a row may name and that is defined."""
    text = "".join(
        without_comments(path.read_text()) for room in ROOMS for path in room.glob("*.c")
    )
    made = {f"dfi_do_{name}" for name in re.findall(rf"^(?:{MAKERS})\((\w+)", text, re.MULTILINE)}
    return made | set(re.findall(r"^long (dfi_\w+)\(struct dfi_frame \*", text, re.MULTILINE))


def test_every_row_is_read(make_compat, rows):
    lines = re.findall(r"^DFI_CALL\(", make_compat.SYSCALLS.read_text(), re.MULTILINE)
    assert len(rows) == len(lines) > 300
    assert len({row.name for row in rows}) == len({row.number for row in rows}) == len(rows)


def test_numbers_are_the_kernels(rows):
    if not NUMBERS.exists():
        pytest.skip(f"no {NUMBERS}")
    found = re.findall(r"#define __NR_(\w+) (\d+)", NUMBERS.read_text())
    known = {name: int(number) for name, number in found}
    assert {r.name: r.number for r in rows if r.name in known} == known


def test_every_handler_exists(rows, handlers):
    assert {row.handler for row in rows} <= handlers


def test_the_level_is_that_of_the_handler(rows):
    for row in rows:
        passes = row.handler == ("dfi_pass_fd" if row.arguments[:1] == "f" else "dfi_pass")
        assert passes == (row.level == "PASSED"), row.name
        refuses = row.handler in ("dfi_refuse", "dfi_refuse_ours")
        assert refuses == (row.level == "REFUSED") == (row.error != "0"), row.name


def test_what_differs_is_said(rows):
    assert not [row.name for row in rows if row.level == "PARTIAL" and not row.note]


def test_no_path_is_passed_unseen(rows):
    """A path may lead into a mount: somebody has to look."""
    assert not [row.name for row in rows if "p" in row.arguments and row.level == "PASSED"]


def test_the_page_is_up_to_date(make_compat):
    assert make_compat.RUN_OUTPUT.read_text() == make_compat.run_page(), (
        "run python docs/make_compat.py"
    )
