"""Include directions: a call crosses the rooms one way, and so do the includes."""

import re

import pytest

from .tree import NATIVE, files, shown

#: Each room may include itself and these.
ROOMS = {
    "include": set(),
    "core": {"include"},
    "wrap": {"core"},
    "channel": {"core"},  # what a message is made of: ops.h, call.h
    "host": {"core"},
    "loader": {"core", "host"},
    "nodes": {"core", "host"},
    "lowlevel": {"core", "host", "loader", "nodes"},
    "paths": {"core", "host"},
    "highlevel": {"core", "host", "loader", "paths"},
    "server": {"core", "channel", "include"},  # main.c mounts by the public header
    "api": {"core", "channel", "loader", "wrap", "server", "include"},
    "libfuse": {"core", "host", "loader", "lowlevel", "highlevel"},
    "intercept": set(),  # lives in other programs, no libc; knows of no mount
    "syscalls": {"channel", "core", "intercept"},  # lives there, too
    "python": {"core", "include"},  # a door, like api, that must see DF_NOT_OURS
    "pyhost": {"include"},  # a plugin: libfuse's API, and the function that mounts it
}

#: From the rooms that mount, only the headers meant for them.
DOORS_OF_MOUNTS = {"loader/plugin.h", "wrap/count.h"}

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
    return [path for path in files("*.c", "*.h", under="native") if room_of(path) in ROOMS]


def test_a_room_includes_only_what_lies_behind_it():
    assert not [
        f"{shown(path)} includes {name}"
        for path in sources()
        for room, name in included(path)
        if room not in ROOMS[room_of(path)] | {room_of(path)}
    ]


def test_the_c_door_meets_plugins_by_one_header():
    assert not [
        f"{shown(path)} includes {name}"
        for path in sources()
        if room_of(path) == "api"
        for room, name in included(path)
        if room in ("loader", "wrap") and name not in DOORS_OF_MOUNTS
    ]


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


def test_every_c_file_is_built():
    lists = "".join(path.read_text() for path in files("CMakeLists.txt"))
    built = [*files("*.c", under="native"), *files("*.c", under="backends")]
    assert not [shown(path) for path in built if path.name not in lists]
