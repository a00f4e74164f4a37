"""One table of calls: calls.def, the public header and docs/compat.md hold the same rows."""

import re

import pytest

from .tree import HEADER, NATIVE, prototypes, shown, spelled, without_comments


@pytest.fixture(scope="module")
def calls(make_compat):
    return make_compat.read_calls(make_compat.CALLS.read_text())


def test_every_row_is_read(make_compat, calls):
    rows = re.findall(r"^DF_CALL\(", make_compat.CALLS.read_text(), re.MULTILINE)
    assert len(calls) == len(rows) > 0
    assert len({call.name for call in calls}) == len(calls)


def test_the_header_declares_each_call_as_the_table_has_it(calls):
    declared = prototypes(HEADER.read_text())
    wanted = {f"df_{c.name}": spelled(f"{c.type} df_{c.name}({c.parameters})") for c in calls}
    assert {name: declared.get(name) for name in wanted} == wanted


def test_a_family_lives_in_the_file_it_names(calls):
    for call in calls:
        path = NATIVE / "core" / call.file
        text = without_comments(path.read_text())
        defined = re.search(rf"^[\w \t*]*\bdf_call_{call.name}\(", text, re.MULTILINE)
        assert defined, f"df_call_{call.name} is not in {shown(path)}"


def test_the_compatibility_page_is_up_to_date(make_compat):
    assert make_compat.OUTPUT.read_text() == make_compat.page(), "run python docs/make_compat.py"
