"""Which functions of the core programs pass through first, for the order that they are linked in.

    python benchmarks/order.py > native/intercept/loader.ld

From a start of a program that does nothing, then of a shell and its child, of find and of cat on
files of a mount. Run it when much has changed there; a function that is missing in the list costs a
start nothing but a page.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

from steps import POINT, mappings_of, name_of

from directfuse import _paths
from directfuse._bench.own_routes import run_prefix

_HEAD = """\
/*
 * loader.ld - the order of directfuse-exec in memory, made by benchmarks/order.py.
 *
 * Every program that a run starts maps directfuse-exec anew, and pays for each stretch that it
 * touches: 5 us for 64 KiB. Of 200 KiB of code a start needs 34, all over them. They lie together
 * here, behind the constants, and then what a program's first calls need.
 */
SECTIONS
{
    .rodata : { *(.rodata .rodata.*) }
    .text.first :
    {
        *entry.S.o(.text) *copy.S.o(.text) *loader.S.o(.text)
"""
_TAIL = """\
    }
}
INSERT BEFORE .text;

/* What is written to begins on a page of its own: it is copied for each program. */
SECTIONS
{
    . = ALIGN(CONSTANT(MAXPAGESIZE));
}
INSERT BEFORE .data.rel.ro;

/* The table of mounts lies behind all that a start may do without. */
SECTIONS
{
    .bss.table : { *(.bss.table) }
}
INSERT AFTER .bss;
"""
_PROGRAMS = [
    "/bin/true",
    "sh -c '(:)'",
    f"find {POINT} -newer {POINT}",
    f"sh -c 'echo a >{POINT}/a; cat {POINT}/a'",
]


def in_assembly() -> set[str]:
    """Files of which all is put first."""
    files = (Path(__file__).parents[1] / "native/intercept").glob("*.S")
    return {name for file in files for name in re.findall(r"^(\w+):", file.read_text(), re.M)}


def starts(program: str) -> list[str]:
    """The functions of each instruction of a program, in a run that has learnt its sites."""
    helper = os.fspath(_paths.native_dir() / "libexec/df-starts")
    script = f"for i in 1 2 3 4 5 6 7 8 9; do {program} >/dev/null; done"
    with subprocess.Popen(
        [helper, "9", *run_prefix(["memfs", POINT]), "/bin/sh", "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as tracer:
        assert tracer.stdin and tracer.stdout
        mappings = mappings_of(int(tracer.stdout.readline()))
        tracer.stdin.close()
        return [name_of(int(at, 16), mappings) for at in tracer.stdout]


def functions() -> list[str]:
    others = in_assembly()
    found: dict[str, None] = {}
    for program in _PROGRAMS:
        for name in starts(program):
            function, _, file = name.partition(" ")
            function = function.partition(".")[0]
            if file == "(directfuse-exec)" and function not in others:
                found[function] = None
    return list(found)


def main() -> None:
    if len(sys.argv) > 1:
        raise SystemExit((__doc__ or "").strip())
    print(_HEAD, end="")
    for name in functions():
        print(f"        *(.text.{name} .text.{name}.*)")
    print(_TAIL, end="")


if __name__ == "__main__":
    main()
