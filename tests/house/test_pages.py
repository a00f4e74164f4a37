"""Pages: their links lead somewhere, and every decision is in the index."""

import re

from .tree import ROOT, files, shown

LINK = re.compile(r"\]\(([^()\s]+)\)")
INDEX = ROOT / "docs/decisions/README.md"


def headings(path):
    """The anchors that a page has, as GitHub makes them."""
    found = re.findall(r"^#+ (.*)$", path.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in found}


def leads_somewhere(page, link):
    name, _, anchor = link.partition("#")
    target = page.parent / name if name else page
    return target.exists() and (not anchor or anchor in headings(target))


def test_links_lead_somewhere():
    links = [
        (page, link)
        for page in files("*.md")
        for link in LINK.findall(page.read_text())
        if "://" not in link
    ]
    assert len(links) > 50
    assert not [f"{shown(page)}: {link}" for page, link in links if not leads_somewhere(page, link)]


def test_every_decision_is_in_the_index():
    pages = sorted(path.name for path in INDEX.parent.glob("[0-9]*.md"))
    assert sorted(LINK.findall(INDEX.read_text())) == pages, f"add it to {shown(INDEX)}"
