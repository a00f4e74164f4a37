"""Include directions: a call crosses the rooms one way, and so do the includes."""

import re

import pytest

from .tree import NATIVE, ROOT, files, shown

#: A row of CONTRIBUTING.md: a room, its job, and in backquotes what it may include beside itself.
ROW = re.compile(r"^\| `native/(\w+)/` \|.*\| ([^|]*) \|$", re.MULTILINE)


def permitted():
    """Of each room the rooms, or single headers, that CONTRIBUTING.md allows it."""
    rows = ROW.findall((ROOT / "CONTRIBUTING.md").read_text())
    return {room: {room, *re.findall(r"`([\w/.]+)`", column)} for room, column in rows}


ROOMS = permitted()

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]', re.MULTILINE)


def room_of(path):
    return path.relative_to(NATIVE).parts[0]


def included(path):
    """What a file includes, as (room, name); system headers have no room."""
    for quote, name in INCLUDE.findall(path.read_text()):
        first = name.split("/")[0]
        if name == "directfuse.h":
            yield "include", name
        elif "/" in name and first in ROOMS:
            yield first, name
        elif quote == '"':
            yield room_of(path), name


def sources():
    return files("*.c", "*.h", under="native")


def test_every_room_has_a_row():
    assert {path.name for path in NATIVE.iterdir() if path.is_dir()} == set(ROOMS)


def test_a_room_includes_only_what_lies_behind_it():
    assert not [
        f"{shown(path)} includes {name}"
        for path in sources()
        for room, name in included(path)
        if not {room, name} & ROOMS[room_of(path)]
    ]


def test_no_room_lies_behind_itself():
    """What a room may include, and so on, never leads back to it."""
    left = {room: {name.split("/")[0] for name in ROOMS[room]} - {room} for room in ROOMS}
    while free := [room for room, names in left.items() if not names & set(left)]:
        for room in free:
            del left[room]
    assert not left


def test_only_hosts_know_fuse():
    assert not [
        f"{shown(path)} includes {name}"
        for path in sources()
        if room_of(path) in ("core", "wrap", "nodes", "paths", "api")
        for _, name in INCLUDE.findall(path.read_text())
        if "fuse" in name.split("/")[0] and name != "directfuse.h"
    ]


@pytest.mark.parametrize("folder", ["backends", "examples"])
def test_a_file_system_sees_public_headers_only(folder):
    """libfuse's, and its own by quotes; an application's directfuse.h in an example."""
    allowed = {"directfuse.h"} if folder == "examples" else set()
    assert not [
        f"{shown(path)} includes {name}"
        for path in files("*.c", "*.h", under=folder)
        for quote, name in INCLUDE.findall(path.read_text())
        if (quote == '"' and not (path.parent / name).is_file())
        or (quote == "<" and (NATIVE / name).exists())
        or (quote == "<" and (NATIVE / "include" / name).exists() and name not in allowed)
    ]


def test_one_python_module_touches_cffi():
    assert not [
        f"{shown(path)}: {line}"
        for path in files("*.py", under="directfuse")
        if path.name not in ("_native.py", "_build_cffi.py")
        for line in re.findall(r"^\s*(?:from|import)\s+.*", path.read_text(), re.MULTILINE)
        if re.search(r"\b_?cffi\b", line)
    ]


def named_in(path):
    """The C files that a CMakeLists.txt names, by a path from its folder or below a variable."""
    text = path.read_text().replace("${PROJECT_SOURCE_DIR}", str(ROOT))
    for variable, value in re.findall(r"^set\((\w+) (/[^ )]+)\)", text, re.MULTILINE):
        text = text.replace(f"${{{variable}}}", value)
    return {(path.parent / name).resolve() for name in re.findall(r"[-\w./]+\.c\b", text)}


def test_every_c_file_is_built():
    named = set().union(*map(named_in, files("CMakeLists.txt")))
    built = [*files("*.c", under="native"), *files("*.c", under="backends")]
    assert not [shown(path) for path in built if path not in named]
