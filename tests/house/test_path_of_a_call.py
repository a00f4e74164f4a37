"""docs/path-of-a-call.md stays true: every `file:function` it names exists in that file."""

import re

from .tree import ROOT, without_comments

PAGE = ROOT / "docs/path-of-a-call.md"
HOP = re.compile(r"`([\w./-]+\.(?:c|h|py|def)):(\w+)`")


def hops():
    return sorted(set(HOP.findall(PAGE.read_text())))


def defines(path, name):
    text = path.read_text()
    if path.suffix == ".py":
        pattern = rf"^\s*(?:async )?(?:def|class) {name}\b|^{name}\b.*="
        return re.search(pattern, text, re.MULTILINE)
    return re.search(rf"\b{name}\b\s*[(=\[,{{]", without_comments(text))


def test_the_page_follows_open_and_read():
    assert len(hops()) >= 10


def test_every_hop_exists():
    assert not [
        f"{file}:{name}"
        for file, name in hops()
        if not (ROOT / file).is_file() or not defines(ROOT / file, name)
    ]
