"""Exported symbols: what the libraries offer is what the version scripts and the header say."""

import re

import pytest

from .tree import HEADER, NATIVE, exported_by, exported_by_map, files, prototypes

_paths = pytest.importorskip("directfuse._paths")

PUBLIC_MAP = NATIVE / "directfuse.map"


def is_private(node):
    return "PRIVATE" in node


@pytest.fixture(scope="module")
def public_map():
    return exported_by_map(PUBLIC_MAP)


def test_the_version_scripts_end_closed():
    for path in files("*.map", under="native"):
        assert re.search(r"local\s*:\s*\*\s*;", path.read_text()), path


def exported(node):
    return {name for name, version in exported_by(_paths.library()) if version == node} - {node}


def test_the_library_exports_its_version_script(public_map):
    for node, names in public_map.items():
        if not is_private(node):
            assert exported(node) == names


def test_private_exports_are_marked_in_a_header(public_map):
    """The private node takes what the source marks: nothing is exported by accident."""
    text = "".join(path.read_text() for path in files("*.h", under="native"))
    marked = set(re.findall(r"DF_PRIVATE_EXPORT\b[^;{]*?\b(df_\w+)\s*[(\[]", text))
    (node,) = filter(is_private, public_map)
    rows = (NATIVE / "core/calls.def").read_text()  # calls.h marks each
    calls = {
        f"df_call_{name}" for name in re.findall(r"^DF_CALL\([\w ]+, (\w+)", rows, re.MULTILINE)
    }
    assert exported(node) <= marked | calls


def test_the_public_symbols_are_the_documented_ones(public_map):
    public = [names for node, names in public_map.items() if not is_private(node)]
    exported = set().union(*public)
    assert exported == set(prototypes(HEADER.read_text()))


def test_every_exported_name_is_ours(public_map):
    names = {name for names in public_map.values() for name in names}
    assert {name for name in names if not name.startswith("df_")} == set()


def test_the_order_of_the_loader_names_functions_there_are():
    """Of others nothing would be put first, and nothing would say so."""
    named = re.findall(r"\(\.text\.(\w+) ", (NATIVE / "intercept/loader.ld").read_text())
    text = "".join(path.read_text() for path in files("*.c", "*.h", "*.def", under="native"))
    words = set(re.findall(r"\w+", text))
    assert named
    assert [name for name in named if name.removeprefix("dfi_do_") not in words] == []
