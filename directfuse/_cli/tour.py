"""`directfuse tour`: a real directory tree goes into memfs, is listed, read back and compared.

The same session runs on memfs inline, on the same memfs through a kernel FUSE mount, and on tmpfs;
its body is one function of the calls it makes, `os`'s or ours.
"""

import builtins
import os
import stat
import time
from collections.abc import Callable, Iterator, Sized
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import click

from directfuse import _kernel, _paths
from directfuse._cli._failure import Failure
from directfuse._cli._output import duration, json_option, print_json, print_table, progress, ratio
from directfuse._swept import swept_directory

__all__ = ["tour"]

PHASES = ("put", "list", "read", "remove")
ROUNDS = 3
_MIB = 1 << 20


# ---- the tree --------------------------------------------------------------------------------


@dataclass(slots=True)
class Tree:
    """A directory tree in memory; names are relative, parents before children."""

    directories: list[str] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    modes: dict[str, int] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)  # devices, sockets, what we may not read

    @property
    def size(self) -> int:
        return sum(map(len, self.files.values()))


def load(source: str, limit: int) -> Tree:
    """Reads `source`; Failure when it holds more than `limit` bytes."""
    tree = Tree()
    queue = [""]
    left = limit
    while queue:
        parent = queue.pop()
        try:
            entries = sorted(os.scandir(os.path.join(source, parent)), key=lambda e: e.name)
        except OSError:
            if not parent:
                raise
            tree.left_out.append(parent)
            continue
        for entry in entries:
            name = os.path.join(parent, entry.name)
            left -= _load_entry(tree, queue, entry, name, left)
            if left < 0:
                raise Failure(
                    f"{source}: holds more than {limit // _MIB} MiB; choose a smaller directory "
                    "or raise --limit"
                )
    return tree


def _contents(path: str, most: int) -> bytes:
    """Of /proc and /sys a regular file may hold more than it says, and may wait for more to come,
    which is BlockingIOError."""

    def open_it(name: str, flags: int) -> int:
        return os.open(name, flags | os.O_NONBLOCK)

    with builtins.open(path, "rb", opener=open_it) as file:
        data = file.read(most)
    if data is None:
        raise BlockingIOError
    return data


def _load_entry(tree: Tree, queue: list[str], entry: os.DirEntry[str], name: str, room: int) -> int:
    """Adds one entry, unless it holds more bytes than there is room for; returns how many."""
    try:
        attributes = entry.stat(follow_symlinks=False)
        mode = attributes.st_mode
        if stat.S_ISLNK(mode):
            tree.links[name] = os.readlink(entry.path)
        elif stat.S_ISDIR(mode):
            tree.directories.append(name)
            queue.append(name)
        elif stat.S_ISREG(mode):
            if attributes.st_size > room:
                return attributes.st_size
            tree.files[name] = _contents(entry.path, room + 1)
        else:
            tree.left_out.append(name)
            return 0
    except OSError:  # gone meanwhile, not ours to read, or, as some in /proc, not to be read at all
        tree.left_out.append(name)
        return 0
    tree.modes[name] = stat.S_IMODE(mode)
    return len(tree.files.get(name, b""))


# ---- the session: one body, three routes -----------------------------------------------------


@dataclass(frozen=True, slots=True)
class Route:
    """Where a session runs, and by whose calls: `os` and open(), or directfuse."""

    name: str
    root: str
    calls: ModuleType
    open: Callable[..., Any]


def put(route: Route, tree: Tree, root: str) -> None:
    """Makes every directory, file and symlink."""
    calls = route.calls
    calls.mkdir(root)
    for name in tree.directories:
        calls.mkdir(f"{root}/{name}")
    for name, data in tree.files.items():
        with route.open(f"{root}/{name}", "wb") as file:
            file.write(data)
        calls.chmod(f"{root}/{name}", tree.modes[name])
    for name, target in tree.links.items():
        calls.symlink(target, f"{root}/{name}")


def list_tree(route: Route, root: str) -> dict[str, os.stat_result]:
    """What `ls -lR` asks: every name with its attributes."""
    found = {}
    queue = [""]
    while queue:
        parent = queue.pop()
        with route.calls.scandir(f"{root}/{parent}" if parent else root) as entries:
            for entry in entries:
                name = f"{parent}/{entry.name}" if parent else entry.name
                found[name] = entry.stat(follow_symlinks=False)
                if entry.is_dir(follow_symlinks=False):
                    queue.append(name)
    return found


def read(route: Route, tree: Tree, root: str) -> tuple[dict[str, bytes], dict[str, str]]:
    """The contents of every file, the target of every symlink."""
    contents = {}
    for name in tree.files:
        with route.open(f"{root}/{name}", "rb") as file:
            contents[name] = file.read()
    return contents, {name: route.calls.readlink(f"{root}/{name}") for name in tree.links}


def remove(route: Route, tree: Tree, root: str) -> None:
    """rm -r."""
    for name in (*tree.links, *tree.files):
        route.calls.unlink(f"{root}/{name}")
    for name in reversed(tree.directories):
        route.calls.rmdir(f"{root}/{name}")
    route.calls.rmdir(root)


def differences(
    tree: Tree,
    listed: dict[str, os.stat_result],
    contents: dict[str, bytes],
    targets: dict[str, str],
) -> list[str]:
    """What came back otherwise than it went in, one line each."""
    wanted = {*tree.directories, *tree.files, *tree.links}
    wrong = [f"{name}: is missing from the listing" for name in sorted(wanted - listed.keys())]
    wrong += [f"{name}: was never put there" for name in sorted(listed.keys() - wanted)]
    for name, data in tree.files.items():
        if contents[name] != data:
            wrong.append(f"{name}: other bytes came back")
        attributes = listed.get(name)
        if attributes is not None and attributes.st_size != len(data):
            wrong.append(f"{name}: listed with {attributes.st_size} bytes, has {len(data)}")
        if attributes is not None and stat.S_IMODE(attributes.st_mode) != tree.modes[name]:
            wrong.append(f"{name}: listed with mode {attributes.st_mode:o}")
    wrong += [f"{name}: other target" for name in tree.links if targets[name] != tree.links[name]]
    return wrong


def session(route: Route, tree: Tree, root: str) -> dict[str, int]:
    """Runs all phases below the new directory `root`; returns nanoseconds by phase."""
    taken = {}

    @contextmanager
    def phase(name: str) -> Iterator[None]:
        start = time.perf_counter_ns()
        yield
        taken[name] = time.perf_counter_ns() - start

    with phase("put"):
        put(route, tree, root)
    with phase("list"):
        listed = list_tree(route, root)
    with phase("read"):
        contents, targets = read(route, tree, root)
    wrong = differences(tree, listed, contents, targets)
    if wrong:
        raise Failure(f"{route.name}: what came back differs:\n" + "\n".join(wrong[:20]), 1)
    with phase("remove"):
        remove(route, tree, root)
    return taken


# ---- the routes ------------------------------------------------------------------------------


@contextmanager
def routes(kernel: bool) -> Iterator[tuple[list[Route], list[str]]]:
    """Everything this machine can run, and a word for each route it cannot."""
    import directfuse

    found: list[Route] = []
    notes: list[str] = []
    with ExitStack() as stack:
        base = stack.enter_context(_directory())
        inline = f"{base}/inline"
        stack.enter_context(directfuse.mount(["memfs", inline]))
        found.append(Route("inline", inline, directfuse, directfuse.open))
        if kernel:
            try:
                found.append(Route("kernel FUSE", _kernel_mount(stack, base), os, builtins.open))
            except (OSError, _kernel.MountFailed) as error:
                notes.append(f"No kernel FUSE mount here ({error}); `directfuse doctor` says more.")
        plain = f"{base}/plain"
        os.mkdir(plain)
        found.append(Route(_type_of(base), plain, os, builtins.open))
        yield found, notes


def _directory() -> AbstractContextManager[str]:
    """On tmpfs where there is one, so that no disk is measured."""
    shared = "/dev/shm"
    return swept_directory("directfuse-tour.", shared if os.access(shared, os.W_OK) else None)


def _kernel_mount(stack: ExitStack, base: str) -> str:
    point = f"{base}/kernel"
    os.mkdir(point)
    argv = [str(_paths.program("memfs")), point, "-f"]
    stack.enter_context(_kernel.Program(argv)).wait_mounted(15.0)
    return point


def _type_of(path: str) -> str:
    """Type of the file system that holds `path`: "tmpfs" and the like."""
    holding = [m for m in _kernel.mounts() if os.path.commonpath([m.point, path]) == m.point]
    return max(reversed(holding), key=lambda mount: len(mount.point)).type


# ---- the command -----------------------------------------------------------------------------


@click.command()
@click.argument("directory", required=False, type=click.Path(exists=True, file_okay=False))
@click.option("--kernel/--no-kernel", default=True, help="Compare with a kernel FUSE mount.")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=1024,
    show_default=True,
    metavar="MIB",
    help="Refuse a tree with more bytes: it is held in memory several times.",
)
@json_option
def tour(directory: str | None, kernel: bool, limit: int, as_json: bool) -> None:
    """Take a real directory tree through memfs and back.

    Puts DIRECTORY (by default, the installed package) into memfs inside this process, lists it,
    reads it back, compares every name, byte, mode and link with the original, and removes it; then
    does the same through a kernel FUSE mount of the same file system and on tmpfs, three times in
    turn, and prints the best time of each. What cannot be read, devices, sockets and FIFOs are left
    out, and counted.

    \b
    Examples:
      directfuse tour
      directfuse tour ~/src/project
      directfuse tour --no-kernel --json /etc

    Exit status: 0 if everything came back as it was, 1 if not; 125 there was nothing to compare.
    """
    source = directory or str(Path(__file__).parents[1])
    with progress(f"Reading {source}…"):
        tree = load(source, limit * _MIB)
    best: dict[str, dict[str, int]] = {}
    with routes(kernel) as (found, notes), progress("On tour…"):
        for turn in range(ROUNDS):
            for route in found:
                taken = session(route, tree, f"{route.root}/tour-{turn}")
                before = best.setdefault(route.name, taken)
                best[route.name] = {phase: min(before[phase], taken[phase]) for phase in PHASES}
    if as_json:
        print_json(_report(source, tree, best))
    else:
        _print(source, tree, best, notes)


def _report(source: str, tree: Tree, best: dict[str, dict[str, int]]) -> dict[str, Any]:
    return {
        "source": source,
        "directories": len(tree.directories),
        "files": len(tree.files),
        "links": len(tree.links),
        "bytes": tree.size,
        "left_out": tree.left_out,
        "ns": best,
    }


def _counted(things: Sized, one: str, many: str) -> str:
    return f"{len(things)} {one if len(things) == 1 else many}"


def _print(source: str, tree: Tree, best: dict[str, dict[str, int]], notes: list[str]) -> None:
    click.echo(
        f"{source}: {_counted(tree.files, 'file', 'files')} ({tree.size / _MIB:.1f} MiB), "
        f"{_counted(tree.directories, 'directory', 'directories')}, "
        f"{_counted(tree.links, 'link', 'links')}: put into memfs, listed, read back, equal."
    )
    if tree.left_out:
        click.echo(f"Left out (unreadable or special): {len(tree.left_out)}")
    others = [name for name in best if name != "inline"]
    rows = []
    for phase in (*PHASES, "all"):
        own = _time(best["inline"], phase)
        row = [phase, duration(own)]
        for name in others:
            row += [duration(_time(best[name], phase)), ratio(_time(best[name], phase) / own)]
        rows.append(row)
    columns = ["Phase", "Inline"]
    for name in others:
        columns += [name, "÷ inline"]
    print_table(columns, rows, numbers=True)
    for note in notes:
        click.echo(note)


def _time(taken: dict[str, int], phase: str) -> int:
    return sum(taken.values()) if phase == "all" else taken[phase]
