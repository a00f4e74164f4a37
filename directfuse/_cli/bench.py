"""`directfuse bench`: the same work on every route, in turn."""

import json
import signal
from pathlib import Path
from typing import Any

import click

from directfuse import _paths
from directfuse._bench.compare import compare
from directfuse._bench.machine import busy_words
from directfuse._bench.registry import ROUTES
from directfuse._bench.report import write_report
from directfuse._bench.session import LAYOUT, PARTS, Plan, run_benchmark
from directfuse._bench.subject import Subject, built_in, from_command
from directfuse._bench.tables import gain, sections
from directfuse._bench.worker import Lanes
from directfuse._bench.workload_sets import SETS, chosen
from directfuse._cli._failure import Failure
from directfuse._cli._output import json_option, print_json, print_table, progress
from directfuse._cli._words import FileName, Seconds, command_line_argument
from directfuse._cli.mount import split
from directfuse._errors import MountError
from directfuse._python import meaning

__all__ = ["bench"]

_LANES = 16  # most threads or processes


@click.command()
@command_line_argument(required=False)
@click.option("--quick", is_flag=True, help="Some seconds instead of a minute.")
@click.option(
    "--backend",
    "names",
    multiple=True,
    metavar="NAME[:OPTIONS]",
    help="Only this built-in file system, perhaps with mount options (repeatable).  "
    "[default: memfs and passthrough]",
)
@click.option(
    "--only",
    "patterns",
    multiple=True,
    metavar="NAME",
    help=f"Workloads: {', '.join(SETS)}, or a name with * and ? (repeatable).  [default: micro]",
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
@click.option(
    "--processes", default="", metavar="N,N…", help="How many processes at the same time, too."
)
@click.option("--programs", is_flag=True, help="Whole programs too: untar, git, gcc, sqlite …")
@click.option("--fio", is_flag=True, help="fio jobs too.")
@click.option("--figures", is_flag=True, help="Direct-FUSE's figures 5 to 8, on tmpfs and on disk.")
@click.option("--breakdown", is_flag=True, help="Where the time of one call goes.")
@click.option("--python/--no-python", "with_python", default=True, help="Time Python calls too.")
@click.option(
    "--budget",
    type=Seconds(min=1),
    metavar="SECONDS",
    help="Time for all of it.  [default: 60, 45 for a CMDLINE, 12 with --quick; more with parts]",
)
@click.option(
    "--directory",
    type=click.Path(exists=True, file_okay=False, writable=True),
    help="Where the plain files live.  [default: /dev/shm, a tmpfs]",
)
@click.option(
    "--report",
    "report_directory",
    type=FileName(file_okay=False, path_type=Path),
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
    processes: str,
    programs: bool,
    fio: bool,
    figures: bool,
    breakdown: bool,
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
      directfuse bench --backend memfs --only 'stat*' --only storm --threads 1,2 --processes 2
      directfuse bench --programs --report out
      directfuse bench --programs --compare out/results.json

    \b
    Exit status: 0; 1 something is worse than in --compare's results; 125 directfuse itself failed,
    or could measure nothing of a file system. Ctrl-C ends it, and what was measured until then is
    shown.
    """
    parts = {"programs": programs, "fio": fio, "figures": figures, "breakdown": breakdown}
    parts["python"] = with_python and command_line is None and (not names or "memfs" in names)
    asked = {name for name, is_asked in parts.items() if is_asked}
    plan = Plan(
        subjects=_subjects(command_line, names),
        patterns=_patterns(patterns),
        routes=_routes(routes, kernel),
        lanes=_lanes(threads, processes),
        seconds=budget or _seconds(quick, command_line, asked),
        most_rounds=25 if quick else 201,
        parts=asked,
        directory=directory,
    )
    earlier = _load(old) if old else None
    if report_directory is not None:
        _make(report_directory)
    results = _measured(plan)
    if report_directory is not None:
        _write(results, report_directory)
    (print_json if as_json else _print)(results)
    if results.get("interrupted"):
        return -signal.SIGINT
    if unmeasured := _unmeasured(results):
        raise Failure(f"{', '.join(unmeasured)}: nothing was measured; why is said above")
    return _print_comparison(earlier, results, as_json) if earlier else 0


# ---- what is asked for ---------------------------------------------------------------------------


def _subjects(command_line: str | None, names: tuple[str, ...]) -> list[Subject]:
    known = _paths.backend_names()
    unknown = sorted({name.partition(":")[0] for name in names} - set(known))
    if unknown:
        raise Failure(f"{unknown[0]}: no built-in file system; there are {', '.join(known)}")
    if command_line is None:
        return [built_in(name) for name in dict.fromkeys(names or known)]
    words = split(command_line)  # says what is wrong with its quotes
    if meaning.is_python(words):
        raise Failure(f"{words[0]}: is a Python file system, which bench does not measure")
    try:
        return [from_command(command_line), *map(built_in, names)]
    except MountError as error:
        raise Failure(f"{error.filename or command_line}: {error.strerror}") from error
    except ValueError as error:
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
    wanted = dict.fromkeys(routes or ROUTES)
    return [name for name in wanted if kernel or not name.startswith("kernel")]


def _lanes(threads: str, processes: str) -> list[Lanes]:
    """Threads, then processes."""
    found = [Lanes(str(number)) for number in _numbers("--threads", threads)]
    if processes:
        found += [Lanes(f"{number}p") for number in _numbers("--processes", processes)]
    return found


def _numbers(option: str, text: str) -> list[int]:
    try:
        numbers = list(dict.fromkeys(int(word) for word in text.split(",")))
    except ValueError:
        numbers = []
    if not numbers or not all(1 <= number <= _LANES for number in numbers):
        raise Failure(f"{option} {text}: wanted numbers from 1 to {_LANES}, with commas between")
    return numbers


def _seconds(quick: bool, command_line: str | None, parts: set[str]) -> float:
    """A budget that leaves as much to the workloads, whatever else is asked for."""
    if quick:
        return 12.0
    more = sum(PARTS[name] for name in parts if name != "python")
    return (45.0 if command_line else 60.0) + more


def _load(path: Path) -> dict[str, Any]:
    try:
        results: dict[str, Any] = json.loads(path.read_text())
        layout = results["layout"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Failure(f"{path}: not results of `directfuse bench --json`: {error}") from error
    if layout != LAYOUT:
        raise Failure(f"{path}: results of another release (layout {layout}, this has {LAYOUT})")
    return results


def _make(directory: Path) -> None:
    """Now, not when all has been measured."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Failure(f"--report {directory}: {error.strerror}") from error


def _measured(plan: Plan) -> dict[str, Any]:
    """Says before and after it that the machine was busy."""
    warning = busy_words()
    if warning:
        click.echo(f"directfuse bench: {warning}", err=True)
    with progress("Measuring…") as show:
        plan.progress = show
        results = run_benchmark(plan)
    if warning:
        results["notes"].append(warning)
    return results


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
    except OSError as error:
        results["notes"].append(f"pictures: left out: {error.filename}: {error.strerror}")
    try:
        write_report(results, directory, pictures)
    except OSError as error:
        raise Failure(f"{directory}: {error.strerror}") from error


def _apart(machine: dict[str, Any]) -> str:
    """How far its CPUs are from each other, before and after; nothing where there is one."""
    found = sorted({machine[f"ns between CPUs {when}"] for when in ("before", "after")} - {0})
    return f" ({' to '.join(map(str, found))} ns there and back)" if found else ""


def _print(results: dict[str, Any]) -> None:
    machine = results["machine"]
    click.echo(
        f"Linux {machine['kernel']}, {machine['cpus']} CPUs{_apart(machine)}, load "
        f"{machine['load before']}; plain directory on {machine['plain directory']}; 10th "
        "percentile of alternating rounds, × as long as our first route (~: 95 % interval wider "
        "than 1.5 times)"
    )
    for section in sections(results, narrow=True):
        click.echo(f"\n{section.title}")
        print_table(section.columns, section.cells, numbers=True)
    for subject in results["subjects"]:
        if words := gain(subject):
            click.echo(f"\n{subject['name']}. {words}.")
    for note in results["notes"]:
        click.echo(note, err=True)


def _unmeasured(results: dict[str, Any]) -> list[str]:
    """File systems of which there is no figure: every route was left out."""
    return [subject["name"] for subject in results["subjects"] if not subject["rows"]]


def _print_comparison(old: dict[str, Any], new: dict[str, Any], as_json: bool) -> int:
    columns, cells, worse = compare(old, new)
    if not as_json:
        click.echo("\nAgainst the older results" + ("" if cells else ": nothing has changed"))
        if cells:
            print_table(columns, cells)
    return 1 if worse else 0
