"""Results as one page, in Markdown and in HTML."""

import html
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from directfuse._bench.tables import Section, costs, sections

__all__ = ["markdown", "page", "write_report"]

_HOW = (
    "Each round takes a sample of every route, in changing order. kernel FUSE: entry, attribute "
    "and, where the file system can, page caches off; cached: as the file system likes. How it is "
    "measured, and what is fair: benchmarks/README.md."
)


def _machine(results: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in results["machine"].items())


def _all(results: dict[str, Any]) -> Iterator[Section]:
    yield from sections(results)
    yield from costs(results)


def _used(results: dict[str, Any]) -> dict[str, str]:
    """Words for the routes that were gone."""
    subjects = [*results["subjects"], *results.get("figures", [])]
    used = {route for subject in subjects for route in subject["proof"]}
    return {name: words for name, words in results["routes"].items() if name in used}


def _proofs(results: dict[str, Any]) -> Iterator[tuple[str, dict[str, str]]]:
    for subject in [*results["subjects"], *results.get("figures", [])]:
        if subject["proof"]:
            yield f"What proves the routes: {subject['name']}", subject["proof"]


def markdown(results: dict[str, Any], pictures: list[str]) -> str:
    """One page."""
    parts = ["# What `directfuse bench` measured", _machine(results), _HOW]
    parts.append("\n".join(f"- **{name}**: {words}" for name, words in _used(results).items()))
    parts += [f"![{name}]({name})" for name in pictures]
    for section in _all(results):
        lines = [f"## {section.title}", "", section.words, ""]
        lines += ["| " + " | ".join(section.columns) + " |"]
        lines.append("|---|" + "---:|" * (len(section.columns) - 1))
        lines += ["| " + " | ".join(row) + " |" for row in section.cells]
        parts.append("\n".join(lines))
    for title, proofs in _proofs(results):
        rows = [f"- {route}: {words}" for route, words in proofs.items()]
        parts.append("\n".join([f"## {title}", "", *rows]))
    if results["notes"]:
        parts.append("\n".join(["## Notes", "", *(f"- {note}" for note in results["notes"])]))
    return "\n\n".join(part for part in parts if part) + "\n"


_STYLE = (
    "body{font:15px/1.4 sans-serif;margin:2em auto;max-width:84em;padding:0 1em;color:#222}"
    "div{overflow-x:auto}table{border-collapse:collapse;margin:.5em 0 1.5em;font-size:13px}"
    "td,th{padding:.25em .6em;text-align:right;border-bottom:1px solid #ddd;white-space:nowrap}"
    "td:first-child,th:first-child{text-align:left;position:sticky;left:0;background:#fff}"
    "tbody tr:hover td{background:#f3f6fa}img{max-width:100%}p{max-width:60em}"
)


def page(results: dict[str, Any], pictures: list[str]) -> str:
    """The same as one HTML page."""
    text = html.escape
    parts = ["<h1>What directfuse bench measured</h1>"]
    parts += [f"<p>{text(words)}</p>" for words in (_machine(results), _HOW)]
    parts.append(_list({text(name): text(words) for name, words in _used(results).items()}))
    parts += [f'<p><img src="{text(name)}" alt="{text(name)}"></p>' for name in pictures]
    parts += [_table(section) for section in _all(results)]
    for title, proofs in _proofs(results):
        proven = {text(route): text(words) for route, words in proofs.items()}
        parts.append(f"<h2>{text(title)}</h2>{_list(proven)}")
    if results["notes"]:
        items = "".join(f"<li>{text(note)}</li>" for note in results["notes"])
        parts.append(f"<h2>Notes</h2><ul>{items}</ul>")
    head = f"<meta charset=utf-8><title>directfuse bench</title><style>{_STYLE}</style>"
    return f"<!doctype html><html lang=en><head>{head}</head><body>{''.join(parts)}</body></html>\n"


def _list(items: dict[str, str]) -> str:
    return "<ul>" + "".join(f"<li><b>{k}</b>: {v}</li>" for k, v in items.items()) + "</ul>"


def _table(section: Section) -> str:
    head = "".join(f"<th>{html.escape(cell)}</th>" for cell in section.columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>"
        for row in section.cells
    )
    return (
        f"<h2>{html.escape(section.title)}</h2><p>{html.escape(section.words)}</p><div><table>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _json(results: dict[str, Any]) -> str:
    """A line for each of the innermost objects and lists: short, and its changes can be read."""
    text = json.dumps(results, indent=1, ensure_ascii=False)
    # A line break in JSON is never part of a string.
    return re.sub(r"[\[{][^\[\]{}]*[\]}]", lambda m: re.sub(r"\n *", " ", m[0]), text) + "\n"


def write_report(results: dict[str, Any], directory: Path, pictures: list[str]) -> None:
    """results.json, report.md, report.html."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "results.json").write_text(_json(results))
    (directory / "report.md").write_text(markdown(results, pictures))
    (directory / "report.html").write_text(page(results, pictures))
