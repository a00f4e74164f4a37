"""Results as text: Markdown, one page of HTML, and what became of an older run's numbers."""

import html
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from directfuse._cli._output import duration, ratio

__all__ = ["compare", "markdown", "page", "table", "write_report"]

WORSE = 1.10  # a row that is slower than before by more than this, and by more than its interval


# ---- tables --------------------------------------------------------------------------------------


def table(rows: list[dict[str, Any]], own: str | None) -> tuple[list[str], list[list[str]]]:
    """Columns and cells: our route, then every other with its ratio to ours and the interval."""
    routes = list(dict.fromkeys(route for row in rows for route in row["routes"]))
    others = [route for route in routes if route != own]
    columns = ["Operation", *([own] if own else [])]
    for route in others:
        columns += [route, *([f"÷ {own}"] if own else [])]
    cells = []
    for row in rows:
        title = row["op"] + (f" × {row['threads']} threads" if row["threads"] > 1 else "")
        line = [title, *([_time(row, own)] if own else [])]
        for route in others:
            line += [_time(row, route), *([_ratio(row, route)] if own else [])]
        cells.append(line)
    return columns, cells


def _time(row: dict[str, Any], route: str) -> str:
    found = row["routes"].get(route)
    return duration(found["p10"]) if found else "–"


def _ratio(row: dict[str, Any], route: str) -> str:
    found = row["ratios"].get(route)
    if not found:
        return "–"
    low, high = ratio(found[1]).rstrip("×"), ratio(found[2]).rstrip("×")
    return f"{ratio(found[0])} ({low}–{high})"


def program_table(rows: list[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Seconds, and each route as a multiple of the plain directory."""
    routes = list(rows[0]["seconds"]) if rows else []
    columns = ["Program", *routes]
    cells = []
    for row in rows:
        line = [row["program"]]
        for route in routes:
            seconds, found = row["seconds"][route], row["ratios"].get(route)
            line.append(f"{seconds:.3f} s" + (f" ({found[0]:.2f}×)" if found else ""))
        cells.append(line)
    return columns, cells


def sections(results: dict[str, Any]) -> Iterator[tuple[str, list[str], list[list[str]]]]:
    """Title, columns, cells of every table of the results."""
    for subject in results["subjects"]:
        if subject["rows"]:
            yield (subject["name"], *table(subject["rows"], subject["own"]))
    for name, rows in results.get("programs", {}).items():
        if rows:
            yield (f"{name}: whole programs", *program_table(rows))
    if results.get("python"):
        yield ("Python calls", *table(results["python"], "directfuse"))


# ---- pages ---------------------------------------------------------------------------------------


def markdown(results: dict[str, Any], pictures: list[str]) -> str:
    """One page."""
    machine = ", ".join(f"{name} {value}" for name, value in results["machine"].items())
    parts = ["# What `directfuse bench` measured", machine]
    parts += [
        "Times are the 10th percentile of the rounds, an operation of one thread; ratios are the "
        "median of the rounds' ratios to our route with its 95 % interval. How it is measured and "
        "what is fair: `benchmarks/README.md`."
    ]
    used = {route for subject in results["subjects"] for route in subject["proof"]}
    lines = [f"- **{name}**: {words}" for name, words in results["routes"].items() if name in used]
    parts.append("\n".join(lines))
    parts += [f"![{name}]({name})" for name in pictures]
    for title, columns, cells in sections(results):
        lines = [f"## {title}", "", "| " + " | ".join(columns) + " |"]
        lines.append("|---|" + "---:|" * (len(columns) - 1))
        lines += ["| " + " | ".join(row) + " |" for row in cells]
        parts.append("\n".join(lines))
    for subject in results["subjects"]:
        if subject["proof"]:
            rows = [f"- {route}: {words}" for route, words in subject["proof"].items()]
            parts.append("\n".join([f"### Routes of {subject['name']}", "", *rows]))
    if results["notes"]:
        parts.append("\n".join(["## Left out", "", *(f"- {note}" for note in results["notes"])]))
    return "\n\n".join(parts) + "\n"


_STYLE = (
    "body{font:15px sans-serif;margin:2em auto;max-width:80em;padding:0 1em}"
    "table{border-collapse:collapse;margin:1em 0}td,th{padding:.25em .7em;text-align:right;"
    "border-bottom:1px solid #ddd}td:first-child,th:first-child{text-align:left}img{max-width:100%}"
)


def page(results: dict[str, Any], pictures: list[str]) -> str:
    """The same as one HTML page."""
    machine = ", ".join(f"{name} {value}" for name, value in results["machine"].items())
    parts = [f"<h1>What directfuse bench measured</h1><p>{html.escape(machine)}</p>"]
    parts += [f'<img src="{html.escape(name)}" alt="{html.escape(name)}">' for name in pictures]
    for title, columns, cells in sections(results):
        head = "".join(f"<th>{html.escape(cell)}</th>" for cell in columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>"
            for row in cells
        )
        parts.append(f"<h2>{html.escape(title)}</h2><table><tr>{head}</tr>{body}</table>")
    notes = "".join(f"<li>{html.escape(note)}</li>" for note in results["notes"])
    parts.append(f"<h2>Left out</h2><ul>{notes}</ul>" if notes else "")
    head = f"<meta charset=utf-8><title>directfuse bench</title><style>{_STYLE}</style>"
    return f"<!doctype html><html><head>{head}</head><body>{''.join(parts)}</body></html>\n"


def write_report(results: dict[str, Any], directory: Path, pictures: list[str]) -> None:
    """results.json, report.md, report.html."""
    directory.mkdir(parents=True, exist_ok=True)
    text = json.dumps(results, indent=1, ensure_ascii=False)
    (directory / "results.json").write_text(text + "\n")
    (directory / "report.md").write_text(markdown(results, pictures))
    (directory / "report.html").write_text(page(results, pictures))


# ---- then and now --------------------------------------------------------------------------------


def _by_key(results: dict[str, Any]) -> dict[tuple[str, str, int], dict[str, Any]]:
    return {
        (subject["name"], row["op"], row["threads"]): row
        for subject in results["subjects"]
        for row in subject["rows"]
    }


def compare(old: dict[str, Any], new: dict[str, Any]) -> tuple[list[str], list[list[str]], bool]:
    """Rows whose ratio to another route has changed beyond both intervals, and whether any of them
    is worse: ratios are compared, for absolute times drift with the machine."""
    cells, worse = [], False
    before = _by_key(old)
    for key, row in _by_key(new).items():
        for route, now in row["ratios"].items():
            then = before.get(key, {}).get("ratios", {}).get(route)
            if not then or (then[1] <= now[2] and now[1] <= then[2]):
                continue
            change = now[0] / then[0]
            if 1 / WORSE < change < WORSE:
                continue
            worse = worse or change < 1
            verdict = "worse" if change < 1 else "better"
            cells.append([*key[:2], str(key[2]), route, ratio(then[0]), ratio(now[0]), verdict])
    return ["Subject", "Operation", "Threads", "Against", "Then", "Now", ""], cells, worse
