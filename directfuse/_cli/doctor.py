"""`directfuse doctor`: what works on this machine, proved by doing it."""

import errno
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import click

from directfuse import _kernel, _paths
from directfuse._cli._output import json_option, print_json, print_table, progress

__all__ = ["doctor"]

State = Literal["ok", "missing", "failed"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report. needed: without it directfuse cannot mount inline."""

    purpose: str
    name: str
    state: State
    detail: str
    remedy: str = ""
    needed: bool = False


@click.command()
@json_option
def doctor(as_json: bool) -> int:
    """Tell what works on this machine, what is missing, and which package brings it.

    Mounts each built-in file system inline, one for a program, and one through the kernel, and
    takes them away again.

    \b
    Examples:
      directfuse doctor
      directfuse doctor --json | jq '.[] | select(.state != "ok")'

    Exit status: 0 if inline mounts work, 1 if not; the rest of the report is advice.
    """
    with progress("Looking around…"):
        findings = [*_inline(), *_programs(), *_kernel_mounts(), *_building(), *_testing()]
    if as_json:
        print_json([asdict(finding) for finding in findings])
    else:
        print_table(
            ["For", "What", "State", "Detail"],
            [[f.purpose, f.name, f.state, _detail(f)] for f in findings],
        )
    return int(any(f.needed and f.state != "ok" for f in findings))


def _detail(finding: Finding) -> str:
    return ". ".join(filter(None, (finding.detail, finding.remedy)))


# ---- inline mounts: the part that has to work ------------------------------------------------


def _inline() -> Iterator[Finding]:
    reinstall = "Reinstall: pip install --force-reinstall directfuse"
    for name in ("_fast", "_cffi"):
        yield _check("inline", f"module {name}", partial(_import, name), reinstall, True)
    for library in (_paths.library, _paths.plugin_library):
        yield _check("inline", library.__name__, partial(_file, library), reinstall, True)
    for name in _paths.backend_names():
        yield _check("inline", name, partial(_mount_inline, name), reinstall, True)


def _check(
    purpose: str, name: str, attempt: Callable[[], str], remedy: str, needed: bool = False
) -> Finding:
    """Runs `attempt`, which returns a detail or raises."""
    try:
        return Finding(purpose, name, "ok", attempt(), needed=needed)
    except (OSError, ImportError, subprocess.SubprocessError, _kernel.MountFailed) as error:
        return Finding(purpose, name, "failed", str(error), remedy, needed)


def _import(name: str) -> str:
    module = importlib.import_module(f"directfuse.{name}")
    return str(module.__file__)


def _file(place: Callable[[], Path]) -> str:
    path = place()
    os.stat(path)
    return str(path)


def _mount_inline(name: str) -> str:
    import directfuse

    with tempfile.TemporaryDirectory(prefix="directfuse-doctor.") as source:
        point = f"{source}/inline"
        with directfuse.mount(example_command(name, point, source)):
            count = len(directfuse.listdir(point))
    return f"mounted inline, listed ({count} entries), unmounted"


def example_command(name: str, point: str, source: str) -> list[str]:
    """A command line that mounts a built-in file system at `point`."""
    return [name, *([source] if name == "passthrough" else []), point]


# ---- programs on mounts ----------------------------------------------------------------------


def _programs() -> Iterator[Finding]:
    remedy = "`directfuse run` needs x86-64 and Linux 5.11, or seccomp filters"
    yield _check("directfuse run", "memfs", _run_on_mount, remedy)


def _run_on_mount() -> str:
    """A shell writes a file into a memfs that it alone sees; says how its calls trapped."""
    with tempfile.TemporaryDirectory(prefix="directfuse-doctor.") as base:
        point = f"{base}/mount"
        script = f"echo written >{point}/file && cat {point}/file"
        words = [sys.executable, "-m", "directfuse", "run", "--verbose", "-m", f"memfs {point}"]
        done = subprocess.run(
            [*words, "--", "/bin/sh", "-c", script],
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
    if done.stdout != "written\n":
        raise OSError(f"status {done.returncode}: {done.stderr.strip()}")
    trap = re.search(r"calls trap by (.*)", done.stderr)
    return f"a shell wrote and read a file; its calls trap by {trap[1] if trap else '?'}"


# ---- kernel mounts: for comparison and for other programs ------------------------------------


def _kernel_mounts() -> Iterator[Finding]:
    needs = [_device(), _helper()]
    yield from needs
    if _paths.program("memfs"):
        lacks = [finding.name for finding in needs if finding.state != "ok"]
        remedy = f"It needs {' and '.join(lacks)}: see above" if lacks else _RIGHT
        yield _check("kernel mount", "memfs", _mount_through_kernel, remedy)


_RIGHT = (
    "The right to mount is missing: CAP_SYS_ADMIN, or a fusermount3 that is set-user-id root and "
    "may be so here; in a container: docker run --device /dev/fuse --cap-add SYS_ADMIN"
)


def _device() -> Finding:
    name = "/dev/fuse"
    try:
        os.close(os.open(name, os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        remedy = "modprobe fuse" if error.errno == errno.ENOENT else "ask for access to the device"
        return Finding("kernel mount", name, "missing", str(error.strerror), remedy)
    return Finding("kernel mount", name, "ok", "opens for reading and writing")


def _helper() -> Finding:
    found = shutil.which("fusermount3")
    if found is None:
        state: State = "ok" if os.geteuid() == 0 else "missing"
        detail = "not found; root mounts without it" if state == "ok" else "not found"
        return Finding("kernel mount", "fusermount3", state, detail, "Debian: apt install fuse3")
    return Finding("kernel mount", "fusermount3", "ok", found)


def _mount_through_kernel() -> str:
    program = _paths.program("memfs")
    with tempfile.TemporaryDirectory(prefix="directfuse-doctor.") as point:
        with _kernel.Program([str(program), point, "-f"]) as running:
            mount = running.wait_mounted(10.0)
            os.stat(point)
    return f"mounted as {mount.type}, stat answered, unmounted"


# ---- building plugins, running the tests -----------------------------------------------------


def _building() -> Iterator[Finding]:
    for program, package in (("gcc", "gcc libc6-dev"), ("pkg-config", "pkg-config")):
        yield _program("building plugins", program, package)
    yield _pkgconfig("building plugins", "fuse3", "libfuse3-dev")


def _testing() -> Iterator[Finding]:
    yield _pkgconfig("tests", "cmocka", "libcmocka-dev")
    for module in ("pytest", "hypothesis", "pyfuse3"):
        present = importlib.util.find_spec(module) is not None
        remedy = "" if present else "pip install 'directfuse[test]'"
        detail = "importable" if present else "not installed"
        yield Finding("tests", module, "ok" if present else "missing", detail, remedy)


def _program(purpose: str, name: str, package: str) -> Finding:
    found = shutil.which(name)
    if found is None:
        return Finding(purpose, name, "missing", "not found", f"Debian: apt install {package}")
    return Finding(purpose, name, "ok", found)


def _pkgconfig(purpose: str, library: str, package: str) -> Finding:
    tool = shutil.which("pkg-config")
    remedy = f"Debian: apt install {package}"
    if tool is None:
        return Finding(purpose, library, "missing", "pkg-config cannot tell", remedy)
    argv = [tool, "--modversion", library]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False)
    if done.returncode != 0:
        return Finding(purpose, library, "missing", "headers not found", remedy)
    return Finding(purpose, library, "ok", f"version {done.stdout.strip()}")
