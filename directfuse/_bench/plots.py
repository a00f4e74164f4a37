"""Pictures of results, as the papers draw theirs: bars of ratios, and throughput by size."""

from pathlib import Path
from typing import Any

__all__ = ["draw"]


def draw(results: dict[str, Any], directory: Path) -> list[str]:
    """Writes PNG and SVG files; names of the PNG ones. Raises ImportError without matplotlib."""
    import matplotlib

    matplotlib.use("Agg")
    directory.mkdir(parents=True, exist_ok=True)
    names = []
    for subject in results["subjects"]:
        stem = "".join(c if c.isalnum() else "-" for c in subject["name"])[:40]
        if any(row["ratios"] for row in subject["rows"]):
            names.append(_bars(subject, directory, f"{stem}-ratios"))
        if any(_size(row["op"]) for row in subject["rows"]):
            names.append(_throughput(subject, directory, f"{stem}-throughput"))
    return names


def _save(figure: Any, directory: Path, name: str) -> str:
    from matplotlib import pyplot

    figure.tight_layout()
    for kind in ("png", "svg"):
        figure.savefig(
            directory / f"{name}.{kind}",
            dpi=110,
            metadata={"Date": None} if kind == "svg" else None,
        )
    pyplot.close(figure)
    return f"{name}.png"


def _bars(subject: dict[str, Any], directory: Path, name: str) -> str:
    """How many times as long each route takes as ours."""
    from matplotlib import pyplot

    rows = [row for row in subject["rows"] if row["threads"] == 1 and row["ratios"]]
    routes = list(dict.fromkeys(route for row in rows for route in row["ratios"]))
    figure, axes = pyplot.subplots(figsize=(9, 0.55 * len(rows) + 1.5))
    height = 0.8 / len(routes)
    for index, route in enumerate(routes):
        at = [position + index * height for position in range(len(rows))]
        values = [row["ratios"].get(route, [float("nan")] * 3) for row in rows]
        errors = [[v[0] - v[1] for v in values], [v[2] - v[0] for v in values]]
        axes.barh(at, [v[0] for v in values], height, xerr=errors, label=route)
    axes.set_yticks([p + 0.4 - height / 2 for p in range(len(rows))], [row["op"] for row in rows])
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_xlabel(
        f"time as a multiple of {subject['own']} (log scale; right is slower than ours)"
    )
    axes.set_title(subject["name"])
    axes.legend(fontsize="small")
    return _save(figure, directory, name)


_UNITS = {"KiB": 1024, "MiB": 1024**2}


def _size(op: str) -> int:
    """Bytes that an operation moves, of those that are named by it; else 0."""
    words = op.replace(",", "").split()
    if words[0] not in ("pread", "pwrite") or len(words) < 3 or words[2] not in _UNITS:
        return 0
    return int(words[1]) * _UNITS[words[2]]


def _throughput(subject: dict[str, Any], directory: Path, name: str) -> str:
    """MB/s by size: read and write, sequential and random."""
    from matplotlib import pyplot

    figure, grid = pyplot.subplots(2, 2, figsize=(9, 7), sharex=True)
    for (way, order), axes in zip(
        ((way, order) for way in ("pread", "pwrite") for order in ("sequential", "random")),
        grid.flat,
        strict=True,
    ):
        lines: dict[str, list[tuple[int, float]]] = {}
        for row in subject["rows"]:
            if row["threads"] == 1 and row["op"].startswith(way) and row["op"].endswith(order):
                for route, found in row["routes"].items():
                    speed = _size(row["op"]) / found["p10"] * 1e3
                    lines.setdefault(route, []).append((_size(row["op"]) // 1024, speed))
        for route, points in lines.items():
            axes.plot(*zip(*sorted(points), strict=True), marker="o", label=route)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_title(f"{way}, {order}", fontsize="medium")
        axes.set_ylabel("MB/s")
        axes.set_xlabel("KiB an operation")
    grid.flat[0].legend(fontsize="small")
    figure.suptitle(subject["name"])
    return _save(figure, directory, name)
