"""Pictures of results, as the papers draw theirs: bars of ratios, throughput by size, programs."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

__all__ = ["draw", "summary"]

#: One colour for a route in every picture; blues are the kernel's, warm ones ours.
_COLOURS = {
    "plain directory": "#4d4d4d",
    "kernel FUSE": "#08519c",
    "kernel FUSE cached": "#4292c6",
    "kernel FUSE io_uring": "#41b6c4",
    "kernel FUSE passthrough": "#a6bddb",
    "inline": "#d94801",
    "inline, Python": "#fdae6b",
    "server": "#238b45",
    "helper": "#88419d",
    "run": "#c51b8a",
}


def draw(results: dict[str, Any], directory: Path) -> list[str]:
    """Writes PNG and SVG files; names of the PNG ones. Raises ImportError without matplotlib."""
    _set_up()
    directory.mkdir(parents=True, exist_ok=True)
    return list(_pictures(results, directory))


def _set_up() -> None:
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams.update({"svg.hashsalt": "directfuse", "font.size": 9})


def _pictures(results: dict[str, Any], directory: Path) -> Iterator[str]:
    for subject in results["subjects"]:
        if any(row["ratios"] for row in _single(subject)):
            yield _ratios(subject, directory)
    for subject in results.get("figures", []):
        if subject["rows"]:
            yield _throughput(subject, directory)
    for name, rows in results.get("programs", {}).items():
        if rows:
            yield _programs(name, rows, directory)
    if results.get("breakdown"):
        yield _breakdown(results["breakdown"], directory)


def _stem(name: str) -> str:
    words = "".join(c if c.isalnum() else " " for c in name).split()
    return "-".join(words)[:40].rstrip("-")


def _save(figure: Any, directory: Path, name: str) -> str:
    from matplotlib import pyplot

    for kind in ("png", "svg"):
        figure.savefig(
            directory / f"{name}.{kind}",
            dpi=110,
            metadata={"Date": None} if kind == "svg" else None,
        )
    pyplot.close(figure)
    return f"{name}.png"


def _legend(figure: Any, axes: Any) -> None:
    """Below the picture, where it hides nothing."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, fontsize="small", ncols=5, loc="outside lower center")


def _grouped(
    axes: Any,
    labels: Sequence[str],
    routes: Sequence[str],
    value: Callable[[int, str], list[float] | None],
) -> None:
    """Horizontal bars: a group for each label, a bar for each route, whiskers for the interval."""
    height = 0.82 / len(routes)
    for index, route in enumerate(routes):
        found = [value(position, route) for position in range(len(labels))]
        kept = [(at, bar) for at, bar in enumerate(found) if bar is not None]
        axes.barh(
            [at + (index + 0.5) * height - 0.41 for at, _ in kept],
            [bar[0] - 1 for _, bar in kept],  # from 1: to the right slower, to the left faster
            height,
            left=1,
            xerr=[[bar[0] - bar[1] for _, bar in kept], [bar[2] - bar[0] for _, bar in kept]],
            error_kw={"elinewidth": 0.7, "ecolor": "#999999"},
            label=route,
            color=_COLOURS.get(route),
        )
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.set_xscale("log")
    axes.axvline(1, color="black", linewidth=0.8)
    axes.grid(axis="x", linewidth=0.3)
    axes.set_axisbelow(True)
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:g}×")


_ROWS_IN_COLUMN = 12  # of a picture


def _looked_up(ratios: Sequence[dict[str, Any]]) -> Callable[[int, str], list[float] | None]:
    return lambda at, route: ratios[at].get(route)


def summary(
    panels: dict[str, list[dict[str, Any]]], routes: Sequence[str], directory: Path, name: str
) -> None:
    """Some rows of some file systems side by side, against our route."""
    from matplotlib import pyplot

    _set_up()
    rows = max(len(rows) for rows in panels.values())
    figure, grid = pyplot.subplots(
        1, len(panels), figsize=(10, 0.5 * rows + 1.2), squeeze=False, sharey=True,
        layout="constrained",
    )  # fmt: skip
    for (title, panel), axes in zip(panels.items(), grid.flat, strict=True):
        labels, ratios = zip(*((row["op"], row["ratios"]) for row in panel), strict=True)
        _grouped(axes, labels, routes, _looked_up(ratios))
        axes.set_title(title)
        axes.set_xlabel("time as a multiple of inline (log scale)")
    _legend(figure, grid.flat[0])
    _save(figure, directory, name)


# ---- how many times as long as ours --------------------------------------------------------------


def _single(subject: dict[str, Any]) -> list[dict[str, Any]]:
    """Rows of one lane."""
    return [row for row in subject["rows"] if row["lanes"] == "1"]


def _ratios(subject: dict[str, Any], directory: Path) -> str:
    from matplotlib import pyplot

    rows = [row for row in _single(subject) if row["ratios"]]
    routes = list(dict.fromkeys(route for row in rows for route in row["ratios"]))
    columns = 2 if len(rows) > _ROWS_IN_COLUMN else 1
    in_column = -(-len(rows) // columns)
    height = in_column * (0.11 * len(routes) + 0.1) + 1.4
    figure, grid = pyplot.subplots(
        1,
        columns,
        figsize=(7.5 * columns, height),
        squeeze=False,
        sharex=True,
        layout="constrained",
    )
    for column, axes in enumerate(grid.flat):
        some = rows[column * in_column : (column + 1) * in_column]
        labels = [row["op"] for row in some]
        _grouped(axes, labels, routes, _looked_up([row["ratios"] for row in some]))
        axes.set_xlabel(f"time as a multiple of {subject['own']} (log scale; right: slower)")
    figure.suptitle(subject["name"])
    _legend(figure, grid.flat[0])
    return _save(figure, directory, f"{_stem(subject['name'])}-ratios")


def _programs(name: str, rows: list[dict[str, Any]], directory: Path) -> str:
    from matplotlib import pyplot

    routes = list(dict.fromkeys(route for row in rows for route in row["ratios"]))
    figure, axes = pyplot.subplots(figsize=(9, 0.42 * len(rows) + 1.6), layout="constrained")
    labels = [row["program"] for row in rows]
    _grouped(axes, labels, routes, _looked_up([row["ratios"] for row in rows]))
    axes.set_xlabel("time as a multiple of the plain directory (log scale; left: faster)")
    axes.set_title(f"{name}: whole programs")
    _legend(figure, axes)
    return _save(figure, directory, f"{_stem(name)}-programs")


# ---- Direct-FUSE's figures -----------------------------------------------------------------------

_UNITS = {"KiB": 1024, "MiB": 1024**2}
_WHOLE = 8 * 1024**2


def _piece(op: str) -> tuple[int, int]:
    """Bytes of a piece, and bytes that an operation moves; zeros for one that moves none."""
    words = op.replace(",", "").split()
    if words[0] in ("pread", "pwrite"):
        size = int(words[1]) * _UNITS[words[2]]
        return size, size
    if words[0] in ("cold", "synced"):
        return int(words[6]) * _UNITS[words[7]], _WHOLE
    return 0, 0


_PANELS = [
    (title, ways, order)
    for order in ("sequential", "random")
    for title, ways in (("read", ("pread", "cold")), ("write", ("pwrite", "synced")))
]


def _throughput(subject: dict[str, Any], directory: Path) -> str:
    """MB/s by size, as bars side by side: figures 5 to 8 of the paper are such panels."""
    from matplotlib import pyplot

    figure, grid = pyplot.subplots(2, 2, figsize=(9.5, 7), sharey=True, layout="constrained")
    for (title, ways, order), axes in zip(_PANELS, grid.flat, strict=True):
        rows = [row for row in subject["rows"] if row["op"].startswith(ways)]
        rows = sorted((row for row in rows if row["op"].endswith(order)), key=_by_piece)
        if rows:
            _panel(axes, rows)
        else:
            axes.text(0.5, 0.5, "not measured", ha="center", transform=axes.transAxes)
        axes.set_title(f"{order} {title}", fontsize="medium")
        axes.set_ylabel("MB/s (log scale)")
    figure.suptitle(f"{subject['name']}: throughput by size of a transfer")
    _legend(figure, grid.flat[0])
    return _save(figure, directory, f"{_stem(subject['name'])}-throughput")


def _by_piece(row: dict[str, Any]) -> int:
    return _piece(row["op"])[0]


def _panel(axes: Any, rows: list[dict[str, Any]]) -> None:
    routes = list(dict.fromkeys(route for row in rows for route in row["routes"]))
    width = 0.82 / max(len(routes), 1)
    for index, route in enumerate(routes):
        kept = [(at, row) for at, row in enumerate(rows) if route in row["routes"]]
        speeds = [_piece(row["op"])[1] / row["routes"][route]["p10"] * 1e3 for _, row in kept]
        at = [position + (index + 0.5) * width - 0.41 for position, _ in kept]
        axes.bar(at, speeds, width, label=route, color=_COLOURS.get(route))
    sizes = [_by_piece(row) // 1024 for row in rows]
    axes.set_xticks(range(len(rows)), [f"{size} KiB" if size < 1024 else "1 MiB" for size in sizes])
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(lambda y, _: f"{y:,.0f}")
    axes.grid(axis="y", linewidth=0.3)
    axes.set_axisbelow(True)


# ---- where the time of a call goes ---------------------------------------------------------------


def _breakdown(rows: list[dict[str, Any]], directory: Path) -> str:
    from matplotlib import pyplot

    parts = [
        ("core", "door and core", "#fdd0a2"),
        ("host", "host and plugin", "#d94801"),
        ("python", "Python", "#7f2704"),
    ]
    figure, axes = pyplot.subplots(figsize=(9, 0.5 * len(rows) + 1.6), layout="constrained")
    left = [0.0] * len(rows)
    for key, label, colour in parts:
        values = [row[key] or 0.0 for row in rows]
        axes.barh(range(len(rows)), values, 0.6, left=left, label=label, color=colour)
        left = [a + b for a, b in zip(left, values, strict=True)]
    for at, row in enumerate(rows):
        if row["kernel"]:
            axes.text(left[at], at, f"  kernel FUSE: {row['kernel'] / 1e3:.0f} µs", va="center")
    axes.set_yticks(range(len(rows)), [row["op"] for row in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlim(0, max(left) * 1.3)
    axes.set_xlabel("ns a call, on a file system that answers at once")
    axes.set_title("Breakdown of a call")
    _legend(figure, axes)
    return _save(figure, directory, "breakdown")
