"""Include directions: a call crosses the rooms one way, and so do the includes."""

import re

import pytest

from .tree import NATIVE, ROOT, files, shown

#: Each room may include itself and these.
ROOMS = {
    "include": set(),
    "core": {"include"},
    "wrap": {"core"},
    "host": {"core"},
    "api": {"core", "host", "wrap", "include"},
    "libfuse": {"host", "core"},
    "python": {"core", "include"},  # a door, like api, that must see DF_NOT_OURS
}

#: From the rooms that mount, only the headers meant for them.
DOORS_OF_HOST = {"host/plugin.h", "wrap/count.h"}

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


SOURCES = [path for path in files("*.c", "*.h", under="native") if room_of(path) in ROOMS]


@pytest.mark.parametrize("path", SOURCES, ids=shown)
def test_a_room_includes_only_what_lies_behind_it(path):
    room = room_of(path)
    wrong = [name for other, name in included(path) if other not in ROOMS[room] | {room}]
    assert not wrong, f"{shown(path)} is in {room}/ and must not include {wrong}"


@pytest.mark.parametrize("path", [path for path in SOURCES if room_of(path) == "api"], ids=shown)
def test_the_c_door_meets_plugins_by_one_header(path):
    names = {name for room, name in included(path) if room in ("host", "wrap")}
    assert names <= DOORS_OF_HOST


@pytest.mark.parametrize(
    "path", [path for path in SOURCES if room_of(path) in ("core", "wrap", "api")], ids=shown
)
def test_only_hosts_know_fuse(path):
    fuse = [name for _, name in INCLUDE.findall(path.read_text()) if "fuse" in name.split("/")[0]]
    assert not set(fuse) - {"directfuse.h"}


@pytest.mark.parametrize("path", files("*.c", "*.h", under="backends"), ids=shown)
def test_a_backend_sees_public_headers_only(path):
    for quote, name in INCLUDE.findall(path.read_text()):
        if quote == '"':
            assert (path.parent / name).is_file(), f"{name} is not the backend's own"
        else:
            assert not (NATIVE / name).exists() and name != "directfuse.h"


@pytest.mark.parametrize("path", files("*.c", "*.h", under="examples"), ids=shown)
def test_an_example_sees_public_headers_only(path):
    private = [name for _, name in INCLUDE.findall(path.read_text()) if (NATIVE / name).exists()]
    assert not private


@pytest.mark.parametrize("path", files("*.py", under="directfuse"), ids=shown)
def test_one_python_module_touches_cffi(path):
    imports = re.findall(r"^\s*(?:from|import)\s+(.*)", path.read_text(), re.MULTILINE)
    touches = [line for line in imports if re.search(r"\b(?:_cffi|cffi)\b", line)]
    if path.name not in ("_native.py", "_build_cffi.py"):
        assert not touches, f"{shown(path)}: {touches}"


def test_every_c_file_is_built():
    lists = "".join(
        path.read_text() for path in files("CMakeLists.txt") if path.is_relative_to(ROOT)
    )
    built = [*files("*.c", under="native"), *files("*.c", under="backends")]
    missing = [shown(path) for path in built if path.name not in lists]
    assert not missing, f"in no CMakeLists.txt: {missing}"
