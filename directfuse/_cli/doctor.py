"""`directfuse doctor`: what works on this machine, proved by doing it."""

import errno
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
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

    Mounts each built-in file system inline, one in a helper process, one for a program, and one
    through the kernel, and takes them away again; compiles a program with each library.

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


_REINSTALL = "Reinstall: pip install --force-reinstall directfuse"


def _inline() -> Iterator[Finding]:
    yield _check("inline", "/proc", _proc, "mount -t proc proc /proc", True)
    for name in ("_fast", "_cffi"):
        yield _check("inline", f"module {name}", partial(_import, name), _REINSTALL, True)
    for library in (_paths.library, _paths.plugin_library):
        yield _check("inline", library.__name__, partial(_file, library), _REINSTALL, True)
    for name in _paths.backend_names():
        yield _check("inline", name, partial(_mount_here, name, "inline"), _whole, True)
    yield _check("helper process", "memfs", partial(_mount_here, "memfs", "helper"), _whole)


def _whole(error: Exception) -> str:
    """What helps where a file of ours is missing or damaged; else the error names its remedy, as a
    limit of the process or a TMPDIR that is not there. Without /proc none can be loaded."""
    is_damaged = isinstance(error, OSError) and error.errno in (errno.ENOENT, errno.ENOEXEC)
    return _REINSTALL if is_damaged and os.path.lexists("/proc/self/exe") else ""


def _check(
    purpose: str,
    name: str,
    attempt: Callable[[], str],
    remedy: str | Callable[[Exception], str],
    needed: bool = False,
) -> Finding:
    """Runs `attempt`, which returns a detail or raises. remedy: its words, or what finds them."""
    try:
        return Finding(purpose, name, "ok", attempt(), needed=needed)
    except (OSError, ImportError, subprocess.SubprocessError, _kernel.MountFailed) as error:
        remedy = remedy(error) if callable(remedy) else remedy
        return Finding(purpose, name, "failed", str(error), remedy, needed)


def _proc() -> str:
    os.readlink("/proc/self/exe")
    return "mounted"


def _import(name: str) -> str:
    module = importlib.import_module(f"directfuse.{name}")
    return str(module.__file__)


def _file(place: Callable[[], Path]) -> str:
    path = place()
    os.stat(path)
    return str(path)


def _scratch() -> tempfile.TemporaryDirectory[str]:
    """In a container whose root is read-only, where runs have theirs, too."""
    try:
        base = tempfile.gettempdir()
    except FileNotFoundError:
        base = "/dev/shm"
    try:
        return tempfile.TemporaryDirectory(prefix="directfuse-doctor.", dir=base)
    except OSError as error:  # without its number, which would be that of a file of ours
        raise OSError(f"{base}: {error.strerror}; let TMPDIR name another directory") from error


def _mount_here(name: str, placement: Literal["inline", "helper"]) -> str:
    import directfuse

    with _scratch() as source:
        point = f"{source}/mount"
        with directfuse.mount(example_command(name, point, source), placement=placement):
            count = len(directfuse.listdir(point))
    return f"mounted, listed ({count} entries), unmounted"


def example_command(name: str, point: str, source: str) -> list[str]:
    """A command line that mounts a built-in file system at `point`."""
    return [name, *([source] if name == "passthrough" else []), point]


# ---- programs on mounts ----------------------------------------------------------------------


def _programs() -> Iterator[Finding]:
    yield _check("directfuse run", "memfs", _run_on_mount, _trapping)


def _trapping(error: Exception) -> str:
    """What helps where no system call can be trapped; else the error names its remedy, if any."""
    can = _paths.loader().is_file() and "cannot be interposed" not in str(error)
    return "" if can else "`directfuse run` needs x86-64 and Linux 5.11, or seccomp filters"


def _run_on_mount() -> str:
    """A shell writes a file into a memfs that it alone sees; says how its calls trapped."""
    with _scratch() as base:
        point = shlex.quote(f"{base}/mount")
        script = f"echo written >{point}/file && cat {point}/file"
        words = [*_paths.COMMAND, "run", "--verbose", "-m", f"memfs {point}"]
        done = subprocess.run(
            [*words, "--", "/bin/sh", "-c", script],
            capture_output=True,
            text=True,
            errors="replace",
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


_DEVICE = "/dev/fuse"


def _device() -> Finding:
    name = _DEVICE
    remedy = "ask for access to the device"
    try:
        fd = os.open(name, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        if error.errno == errno.ENOENT:
            remedy = "modprobe fuse"
        return Finding("kernel mount", name, "missing", str(error.strerror), remedy)
    try:
        if _is_unmounted_connection(fd):
            return Finding("kernel mount", name, "ok", "opens, and answers as FUSE does")
    finally:
        os.close(fd)
    remedy = "make it anew: rm /dev/fuse && mknod -m 666 /dev/fuse c 10 229"
    return Finding("kernel mount", name, "failed", "is not the kernel's FUSE device", remedy)


def _is_unmounted_connection(fd: int) -> bool:
    """The kernel refuses to read requests of what is not mounted, and nothing else does."""
    try:
        os.read(fd, 1)
    except OSError as error:
        return error.errno == errno.EPERM
    return False


def _helper() -> Finding:
    remedy = "Debian: apt install fuse3"
    if shutil.which("fusermount3") is None and os.geteuid() == 0:
        detail = "not found; root mounts without it"
        return Finding("kernel mount", "fusermount3", "ok", detail, remedy)
    return _program("kernel mount", "fusermount3", "fuse3")


def _mount_through_kernel() -> str:
    program = _paths.program("memfs")
    with _scratch() as point:
        with _kernel.Program([str(program), point, "-f"]) as running:
            mount = running.wait_mounted(10.0)
            os.stat(point)
    return f"mounted as {mount.type}, stat answered, unmounted"


# ---- building plugins, running the tests -----------------------------------------------------


def _building() -> Iterator[Finding]:
    yield _program("building plugins", "gcc", "gcc libc6-dev", _compiles)
    yield _program("building plugins", "pkg-config", "pkg-config")
    yield _pkgconfig("building plugins", "fuse3", "libfuse3-dev", _INCLUDES_FUSE)


def _testing() -> Iterator[Finding]:
    yield _pkgconfig("tests", "cmocka", "libcmocka-dev", _INCLUDES_CMOCKA)
    for module in ("pytest", "hypothesis", "pyfuse3"):
        if importlib.util.find_spec(module) is None:
            remedy = "pip install 'directfuse[test]'"
            yield Finding("tests", module, "missing", "not installed", remedy)
        else:
            remedy = f"pip install --force-reinstall {module}"
            yield _check("tests", module, partial(_imports, module), remedy)


def _program(
    purpose: str, name: str, package: str, attempt: Callable[[str], str] | None = None
) -> Finding:
    """Found, and it does something: what `attempt` says of it, or tells its version."""
    found, remedy = shutil.which(name), f"Debian: apt install {package}"
    if found is None:
        return Finding(purpose, name, "missing", "not found", remedy)
    return _check(purpose, name, partial(attempt or _starts, found), remedy)


def _starts(program: str) -> str:
    _said([program, "--version"])
    return program


def _imports(module: str) -> str:
    """In a process of its own: what it breaks is not ours."""
    _said([sys.executable, "-c", f"import {module}"])
    return "importable"


_INCLUDES_FUSE = "#define FUSE_USE_VERSION 31\n#include <fuse.h>\n"
_INCLUDES_CMOCKA = (
    "#include <stdarg.h>\n#include <stddef.h>\n#include <stdint.h>\n#include <setjmp.h>\n"
    "#include <cmocka.h>\n"
)


def _compiles(compiler: str, flags: Sequence[str] = (), includes: str = "") -> str:
    text = f'{includes}#include <stdio.h>\nint main(void) {{ return puts("") < 0; }}\n'
    with _scratch() as base:
        _said([compiler, "-x", "c", "-", "-o", f"{base}/program", *flags], text)
    return compiler


def _pkgconfig(purpose: str, library: str, package: str, includes: str) -> Finding:
    """Its headers and its library, as a program is built with them."""
    tool, compiler = shutil.which("pkg-config"), shutil.which("gcc")
    remedy = f"Debian: apt install {package}"
    if tool is None:
        return Finding(purpose, library, "missing", "pkg-config cannot tell", remedy)
    argv = [tool, "--modversion", library]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False)
    if done.returncode != 0:
        return Finding(purpose, library, "missing", "headers not found", remedy)

    def attempt() -> str:
        if compiler is not None:
            flags = _said([tool, "--cflags", "--libs", library]).split()
            _compiles(compiler, flags, includes)
        return f"version {done.stdout.strip()}"

    return _check(purpose, library, attempt, remedy)


def _said(argv: Sequence[str], text: str = "") -> str:
    """What a program prints. Raises OSError: it fails; with its words, in one line."""
    done = subprocess.run(
        argv, input=text, capture_output=True, text=True, errors="replace", timeout=30, check=False
    )
    if done.returncode != 0:
        words = " ".join(done.stderr.split()) or f"ended with status {done.returncode}"
        raise OSError(f"{argv[0]}: {words[:300]}")
    return done.stdout
