"""docs/path-of-a-call.md stays true: every `file:function` it names exists in that file."""

import re

import pytest

from .tree import ROOT, without_comments

PAGE = ROOT / "docs/path-of-a-call.md"
HOP = re.compile(r"`([\w./-]+\.(?:c|h|py|def)):(\w+)`")


def hops():
    return sorted(set(HOP.findall(PAGE.read_text()))) if PAGE.exists() else []


def test_the_page_follows_open_and_read():
    assert len(hops()) >= 10


@pytest.mark.parametrize(("file", "function"), hops())
def test_a_hop_exists(file, function):
    path = ROOT / file
    assert path.is_file(), f"{file} does not exist"
    text = path.read_text()
    if path.suffix == ".py":
        pattern = rf"^\s*(?:async )?(?:def|class) {function}\b|^{function}\b.*="
        defined = re.search(pattern, text, re.MULTILINE)
    else:
        defined = re.search(rf"\b{function}\b\s*[(=\[]", without_comments(text))
    assert defined, f"{file} has no {function}"
