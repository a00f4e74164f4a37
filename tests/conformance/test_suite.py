"""The suite's own rules: a body reaches the file system through `fs.os` alone."""

import ast
import pathlib

import pytest

from .deviations import DEVIATIONS, SOMETIMES
from .routes import BACKENDS, ROUTES

BODIES = sorted(pathlib.Path(__file__).parent.glob("test_*.py"))
# What a body may take from os: nothing that reaches a file.
ALLOWED = {
    "fsencode", "fsdecode", "fspath", "geteuid", "getegid", "getpid", "makedev", "path", "urandom",
    "stat_result", "statvfs_result",
}  # fmt: skip


@pytest.mark.parametrize("path", BODIES, ids=lambda path: path.stem)
def test_bodies_use_only_constants_of_os(path):
    tree = ast.parse(path.read_text())
    used = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "os"
    }
    assert {name for name in used if not name.isupper()} - ALLOWED == set()


@pytest.mark.parametrize("path", BODIES, ids=lambda path: path.stem)
def test_bodies_name_neither_route_nor_backend(path):
    if path == pathlib.Path(__file__):
        return
    words = {
        node.value
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    assert words.isdisjoint({*ROUTES, *BACKENDS})


def test_deviations_name_routes_and_backends_that_exist():
    for route, backend, _, reason in [*DEVIATIONS, *SOMETIMES]:
        assert {*ROUTES, "*"}.issuperset(route if isinstance(route, tuple) else (route,))
        assert backend in {*BACKENDS, "*"}
        assert reason
