"""What a command line means: a Python file system, or nothing that is Python.

Light: it is asked about every command line whose first word is no built-in file system.
"""

import errno
import os
import shutil
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from directfuse import _paths
from directfuse._errors import NotSupportedError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from directfuse._python.programs import Program

__all__ = ["GROUP", "class_meant", "find", "is_python", "names", "outside", "points"]

#: Entry points that name file systems: a class, a function or an object, as module:Class does.
GROUP = "directfuse.backends"


def _shebang(path: str) -> list[str] | None:
    """The interpreter's words of a script; None when it is none."""
    with open(path, "rb") as file:
        if file.read(2) != b"#!":
            return None
        line = file.readline(1024)
    return line.decode(errors="replace").split()


def _is_python(word: str) -> bool:
    return os.path.basename(word).startswith("python")


def _check_interpreter(words: list[str], path: str) -> None:
    """A script of another environment would miss its libraries here."""
    interpreter = words[0]
    if os.path.basename(interpreter) == "env":
        return
    theirs = os.path.dirname(os.path.dirname(os.path.abspath(interpreter)))
    installed = os.path.realpath(interpreter) == os.path.realpath(sys.executable)
    if not os.path.samefile(theirs, sys.prefix) and not (
        installed and not os.path.exists(os.path.join(theirs, "pyvenv.cfg"))
    ):
        raise NotSupportedError(
            errno.ENOTSUP,
            f"it belongs to another Python, {interpreter}; mount it with placement='helper', or "
            f"install it for this one, {sys.executable}",
            path,
        )


def _script(words: Sequence[str]) -> str | None:
    """The path of a Python script that the first word means."""
    path = words[0]
    if "/" not in path and not os.path.isfile(path):
        path = shutil.which(path) or path
    if not os.path.isfile(path):
        return None
    interpreter = _shebang(path)
    if interpreter and any(map(_is_python, interpreter)):
        _check_interpreter(interpreter, path)
    elif not path.endswith(".py"):
        return None
    return path


def points(**select: Any) -> "tuple[EntryPoint, ...]":
    """What installed packages bring. Imported here: it takes a quarter as long as all of
    directfuse, and built-in file systems and programs by their path have no need of it."""
    from importlib.metadata import entry_points

    return tuple(entry_points(group=GROUP, **select))


def names() -> list[str]:
    """File systems that installed packages bring, sorted."""
    return sorted({point.name for point in points()})


def _named(name: str) -> "tuple[EntryPoint, ...]":
    """The entry points that a first word means: a path means none."""
    return () if "/" in name else points(name=name)


def outside(words: Sequence[str]) -> list[str] | None:
    """The command line that serves a Python file system from a process of its own; None when the
    words mean nothing of ours: a script has an interpreter, which need not be this one."""
    name = words[0]
    if _is_attribute(name) or _named(name):
        return [*_paths.MODULE, "directfuse._python.outside", *words]
    if name.endswith(".py") and os.path.isfile(name) and not os.access(name, os.X_OK):
        return [sys.executable, *words]
    return None


def _is_attribute(name: str) -> bool:
    """module:Class"""
    return ":" in name and "/" not in name and not name.startswith("@")


def class_meant(name: str) -> str:
    """What to say of FILE.py:Class, which means nothing; of any other word nothing."""
    file, _, attribute = name.rpartition(":")
    if not file.endswith(".py") or not os.path.isfile(file):
        return ""
    module = os.path.basename(file).removesuffix(".py")
    return f"a class is named by its module, which is imported: {module}:{attribute}"


def _is_interpreter(words: Sequence[str]) -> bool:
    """python SCRIPT, python -m MODULE"""
    return _is_python(os.path.basename(words[0])) and len(words) > 1


def is_python(words: Sequence[str]) -> bool:
    """Whether the words mean a Python file system that an interpreter like this one can run. What
    belongs to another Python is a program like any other."""
    name = words[0]
    if _paths.plugin(name) is not None:
        return False
    if _is_attribute(name) or _named(name):
        return True
    try:
        if _is_interpreter(words):
            path = shutil.which(name)
            if path is not None:
                _check_interpreter([path], path)
            return path is not None
        return _script(words) is not None
    except NotSupportedError:
        return False


def find(words: Sequence[str]) -> "Program | None":
    """The Python program that a command line means, or None: built-in file systems come before
    it, executables that are no Python scripts after it; neither is looked for here."""
    name = words[0]
    named = _named(name)
    python = _is_interpreter(words)
    script = None if named or python else _script(words)
    if not named and not python and script is None and not _is_attribute(name):
        return None
    from directfuse._python import programs  # asyncio, sqlite3 and more

    if named:
        return programs.of_factory(words, named[0].load)
    if script:
        return programs.of_script(script, words)
    if not python:
        return programs.of_factory(words)
    if words[1] == "-m" and len(words) > 2:
        return programs.of_module(words)
    return programs.of_script(words[1], words[1:])
