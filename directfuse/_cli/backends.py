"""`directfuse backends`: what can be mounted on this machine."""

import os
import re
from collections.abc import Iterator

import click

from directfuse import _paths
from directfuse._cli._elf import Linkage, read_linkage
from directfuse._cli._output import json_option, print_json, print_table
from directfuse._python import meaning

__all__ = ["backends", "fuse_api"]

_LIBRARIES = {
    "libdf3.so.3": "libfuse 3",
    "libdf4.so.4": "libfuse 3",
    "libfuse3.so.3": "libfuse 3",
    "libfuse3.so.4": "libfuse 3",
    "libfuse.so.2": "libfuse 2",
}
_OF_A_VERSION = rb"(_\d+|_compat\d*|_versioned)*"
#: API -> names with which a program enters it, whatever version of the headers it was built with.
_ENTRY_POINTS = {
    "high-level": re.compile(rb"_*fuse_(main|main_real|new|setup)" + _OF_A_VERSION),
    "low-level": re.compile(rb"fuse_(session_new|lowlevel_new)" + _OF_A_VERSION),
}


@click.command()
@click.option("--path/--no-path", "on_path", default=True, help="Look for FUSE programs on PATH.")
@json_option
def backends(on_path: bool, as_json: bool) -> None:
    """List what can be mounted here.

    Inline: in your process (`directfuse.mount` in Python, `df_mount` in C). Helper: the program in
    a process of its own that speaks the FUSE protocol to yours (`placement="helper"`). Kernel:
    `directfuse mount`. FUSE programs found on PATH are loaded inline as they are, if they are
    dynamic and position-independent and have no thread-local storage of their own. They are known
    by the functions of libfuse that they link to: a tool that shares the code of its file system,
    such as cryfs-unmount, cannot be told from one. Python file systems of installed packages
    (entry points) are listed, too.

    \b
    Examples:
      directfuse backends
      directfuse backends --json | jq -r '.[].name'
    """
    rows = [*_builtins(), *_of_packages(), *(_programs_on_path() if on_path else ())]
    if as_json:
        print_json(rows)
        return
    print_table(
        ["Name", "API", "Inline", "Helper", "Kernel", "From"],
        [_columns(row) for row in rows],
    )


def _columns(row: dict[str, str]) -> list[str]:
    started = _yes(row["program"])
    return [row["name"], row["api"], row["inline"], row["helper"], started, row["from"]]


def _builtins() -> Iterator[dict[str, str]]:
    for name in _paths.backend_names():
        yield {
            "name": name,
            "api": fuse_api(read_linkage(str(_paths.plugin(name)))),
            "inline": "yes",
            "helper": _yes(str(_paths.program(name) or "")),
            "plugin": str(_paths.plugin(name)),
            "program": str(_paths.program(name) or ""),
            "from": "directfuse",
        }


def _of_packages() -> Iterator[dict[str, str]]:
    """Python file systems that installed packages bring, by their entry points."""
    for point in sorted(meaning.points()):
        yield {
            "name": point.name,
            "api": "Python",
            "inline": "yes",
            "helper": "no",
            "plugin": "",
            "program": "",
            "from": point.dist.name if point.dist else point.value,
        }


def _programs_on_path() -> Iterator[dict[str, str]]:
    """Dynamic executables that need libfuse, each once, in the order a shell finds them."""
    seen: set[str] = set()
    for directory in dict.fromkeys(os.get_exec_path()):
        try:
            entries = sorted(os.scandir(directory), key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            if entry.name in seen or not os.access(entry.path, os.X_OK):
                continue
            seen.add(entry.name)
            linkage = read_linkage(entry.path)
            if linkage is not None and fuse_api(linkage):
                inline = _inline(linkage)
                yield {
                    "name": entry.name,
                    "api": fuse_api(linkage),
                    "inline": inline,
                    "helper": "yes",
                    "plugin": entry.path if inline == "yes" else "",
                    "program": entry.path,
                    "from": directory,
                }


def _inline(linkage: Linkage) -> str:
    """Whether a program can be loaded into a process; native/loader/elf.c decides by the same
    fields, and has the last word."""
    if not linkage.movable:
        return "no: fixed addresses"
    return "no: thread-local storage" if linkage.tls else "yes"


def fuse_api(linkage: Linkage | None) -> str:
    """Which API of libfuse an ELF file is written against; "" when it serves none."""
    if linkage is None:
        return ""
    library = next((_LIBRARIES[name] for name in linkage.needed if name in _LIBRARIES), None)
    if library is None:
        return ""
    for api, entry_point in _ENTRY_POINTS.items():
        if any(entry_point.fullmatch(name) for name in linkage.strings):
            return f"{library}, {api}"
    return ""


def _yes(path: str) -> str:
    return "yes" if path else "no"
