"""`directfuse bench`: the same work on every route, in turn."""

import json
import os
from pathlib import Path
from typing import Any

import click

from directfuse import _paths
from directfuse._bench.report import compare, sections, write_report
from directfuse._bench.routes import ROUTES
from directfuse._bench.session import SETS, Plan, chosen, run_benchmark
from directfuse._bench.subject import Subject, built_in, from_command
from directfuse._cli._failure import Failure
from directfuse._cli._output import json_option, print_json, print_table, progress
from directfuse._errors import MountError

__all__ = ["bench"]

_BUSY = 0.5  # load for each CPU from which a machine is called busy


@click.command()
@click.argument("command_line", metavar="[CMDLINE]", required=False)
@click.option("--quick", is_flag=True, help="Some seconds instead of a minute.")
@click.option(
    "--backend",
    "names",
    multiple=True,
    metavar="NAME",
    help="Only this built-in file system (repeatable).  [default: memfs and passthrough]",
)
@click.option(
    "--only",
    "patterns",
    multiple=True,
    metavar="NAME",
    help="Workloads: micro, figures, or a name with * and ? (repeatable).  [default: micro]",
)
@click.option(
    "--route",
    "routes",
    multiple=True,
    type=click.Choice(list(ROUTES)),
    help="Only this route (repeatable).  [default: all that can be gone here]",
)
@click.option("--kernel/--no-kernel", default=True, help="Compare with kernel FUSE mounts.")
@click.option("--threads", default="1", metavar="N,N…", help="How many threads.  [default: 1]")
@click.option("--programs", is_flag=True, help="Whole programs too: untar, git, gcc, sqlite …")
@click.option("--python/--no-python", "with_python", default=True, help="Time Python calls too.")
@click.option(
    "--budget",
    type=click.FloatRange(min=1),
    metavar="SECONDS",
    help="Time for all rounds.  [default: 60, or 12 with --quick]",
)
@click.option(
    "--directory",
    type=click.Path(exists=True, file_okay=False, writable=True),
    help="Where the plain files live.  [default: /dev/shm, a tmpfs]",
)
@click.option(
    "--report",
    "report_directory",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIRECTORY",
    help="Write results.json, report.md, report.html and pictures (needs directfuse[plot]) there.",
)
@click.option(
    "--compare",
    "old",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="OLD.json",
    help="Show what has changed since these results; exit status 1 if anything is worse.",
)
@json_option
def bench(
    command_line: str | None,
    quick: bool,
    names: tuple[str, ...],
    patterns: tuple[str, ...],
    routes: tuple[str, ...],
    kernel: bool,
    threads: str,
    programs: bool,
    with_python: bool,
    budget: float | None,
    directory: str | None,
    report_directory: Path | None,
    old: Path | None,
    as_json: bool,
) -> int:
    """Compare a plain directory, kernel FUSE mounts and ours, operation by operation.

    Every operation is timed on every route, in turn, round after round. Without CMDLINE the
    built-in file systems are measured; with the command line of a FUSE file system of yours, what
    it would gain: its own files are read, nothing is written.

    "kernel FUSE" asks the file system each time; "cached" lets the kernel cache as the file system
    likes; both are always shown.

    \b
    Examples:
      directfuse bench --quick
      directfuse bench 'squashfuse data.sqfs /data'
      directfuse bench --backend memfs --only 'stat*' --only figures --threads 1,2
      directfuse bench --programs --report out
      directfuse bench --programs --compare out/results.json

    \b
    Exit status: 0; 1 something is worse than in --compare's results; 125 directfuse itself failed.
    """
    plan = Plan(
        subjects=_subjects(command_line, names),
        patterns=_patterns(patterns),
        routes=_routes(routes, kernel),
        threads=_threads(threads),
        seconds=budget or (12.0 if quick else 60.0),
        most_rounds=25 if quick else 201,
        programs=programs,
        python=with_python and command_line is None and (not names or "memfs" in names),
        directory=directory,
    )
    earlier = _load(old) if old else None
    _warn_if_busy()
    with progress("Measuring…") as show:
        plan.progress = show
        results = run_benchmark(plan)
    if report_directory is not None:
        _write(results, report_directory)
    if as_json:
        print_json(results)
    else:
        _print(results)
    return _print_comparison(earlier, results, as_json) if earlier else 0


# ---- what is asked for ---------------------------------------------------------------------------


def _subjects(command_line: str | None, names: tuple[str, ...]) -> list[Subject]:
    known = _paths.backend_names()
    unknown = sorted(set(names) - set(known))
    if unknown:
        raise Failure(f"{unknown[0]}: no built-in file system; there are {', '.join(known)}")
    if command_line is None:
        return [built_in(name) for name in names or known]
    try:
        return [from_command(command_line), *map(built_in, names)]
    except (MountError, ValueError) as error:
        raise Failure(str(error)) from error


def _patterns(patterns: tuple[str, ...]) -> list[str]:
    wanted = list(patterns) or ["micro"]
    try:
        chosen(wanted)
    except ValueError as error:
        sets = ", ".join(SETS)
        raise Failure(
            f"{error}: no workload of that name; there are the sets {sets}, and what "
            "`directfuse bench --json` names"
        ) from error
    return wanted


def _routes(routes: tuple[str, ...], kernel: bool) -> list[str]:
    wanted = list(routes) or list(ROUTES)
    return [name for name in wanted if kernel or not name.startswith("kernel")]


def _threads(text: str) -> list[int]:
    try:
        numbers = [int(word) for word in text.split(",")]
    except ValueError:
        numbers = []
    if not numbers or not all(1 <= number <= 16 for number in numbers):
        raise Failure(f"--threads {text}: wanted numbers from 1 to 16, with commas between them")
    return numbers


def _load(path: Path) -> dict[str, Any]:
    try:
        results: dict[str, Any] = json.loads(path.read_text())
        results["subjects"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Failure(f"{path}: not results of `directfuse bench --json`: {error}") from error
    return results


def _warn_if_busy() -> None:
    load, cpus = os.getloadavg()[0], os.cpu_count() or 1
    if load > _BUSY * cpus:
        click.echo(
            f"directfuse bench: this machine is busy (load {load:.1f} on {cpus} CPUs): trust "
            "ratios, and those with narrow intervals",
            err=True,
        )


# ---- what is shown -------------------------------------------------------------------------------


def _write(results: dict[str, Any], directory: Path) -> None:
    pictures: list[str] = []
    try:
        from directfuse._bench.plots import draw

        pictures = draw(results, directory)
    except ImportError:
        results["notes"].append(
            "pictures: left out: matplotlib is missing: pip install directfuse[plot]"
        )
    try:
        write_report(results, directory, pictures)
    except OSError as error:
        raise Failure(f"{directory}: {error.strerror}") from error


def _print(results: dict[str, Any]) -> None:
    machine = results["machine"]
    click.echo(
        f"Linux {machine['kernel']}, {machine['cpus']} CPUs, load {machine['load before']}; plain "
        f"directory on {machine['plain directory']}; 10th percentile of alternating rounds"
    )
    for title, columns, cells in sections(results):
        click.echo(f"\n{title}")
        print_table(columns, cells, numbers=True)
    for note in results["notes"]:
        click.echo(note, err=True)


def _print_comparison(old: dict[str, Any], new: dict[str, Any], as_json: bool) -> int:
    columns, cells, worse = compare(old, new)
    if not as_json:
        click.echo("\nAgainst the older results" + ("" if cells else ": nothing has changed"))
        if cells:
            print_table(columns, cells)
    return 1 if worse else 0
