"""Command lines: the words that name a file system, and the file that the first of them means."""

import errno
import functools
import os
import shlex
import shutil
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from directfuse import _native, _paths
from directfuse._errors import MountError
from directfuse._python import meaning

__all__ = [
    "Command",
    "is_command",
    "library_of",
    "point_of",
    "positional_words",
    "server_meant",
    "unknown",
    "words_of",
]

Command: TypeAlias = str | Sequence[str | os.PathLike[str]]


def is_command(command: Command | object) -> bool:
    """Whether it is meant as a command line, and not as a file system itself."""
    return isinstance(command, str | bytes | bytearray | memoryview | os.PathLike | Sequence)


@functools.lru_cache(maxsize=64)  # data loaders attach() the same one for each batch
def _split(line: str) -> tuple[str, ...]:
    return tuple(shlex.split(line))


def point_of(mountpoint: Any) -> str:
    """A mountpoint as the text that it is."""
    point = mountpoint if isinstance(mountpoint, bytes) else os.fspath(mountpoint)
    if not isinstance(point, str):
        raise TypeError("a mountpoint is a str or os.PathLike[str]; of bytes: os.fsdecode(...)")
    return point


def words_of(command: Any, mountpoint: Any = None) -> list[str]:
    """The command line as words, with the mountpoint behind it where one is given."""
    if isinstance(command, str):
        try:
            words = list(_split(command))
        except ValueError as error:
            raise MountError(
                errno.EINVAL, f"cannot split the command line into words: {error}", command
            ) from None
    elif isinstance(command, Sequence) and not isinstance(command, bytes | bytearray | memoryview):
        words = [os.fspath(word) for word in command]
        if not all(isinstance(word, str) for word in words):
            raise TypeError("the words of a command line are str or os.PathLike[str]")
    else:
        raise TypeError("a command line is a str or a sequence of words")
    if not words or not words[0]:
        raise MountError(
            errno.EINVAL, "the command line is empty; for example: directfuse.mount('memfs /mem')"
        )
    if mountpoint is not None:
        words.append(point_of(mountpoint))
    for word in words:
        if "\0" in word:
            raise ValueError("embedded null byte")
    return words


def server_meant(word: str) -> str:
    """What to say of a word without an @ that is a mount server's name; else nothing."""
    error, path = (errno.EINVAL, "") if "/" in word else _native.socket_path(word, make=False)
    found = not error and os.path.exists(path)
    return f"the mount server of that name is @{word}" if found else ""


def unknown(name: str, others: Iterable[str] = ()) -> str:
    """What to say of the first word of a command line that means nothing, and what would help.
    others: as those of _paths.unknown()."""
    words, hint = _paths.unknown(name, others), meaning.class_meant(name) or server_meant(name)
    return f"{words}; {hint}" if hint else words


def library_of(argv: list[str]) -> str:
    """The file that the first word means: a plugin's shared object or a FUSE program. What it is,
    and whether it can be loaded, is found out from its bytes (native/loader/object.c)."""
    name = argv[0]
    if name.startswith("@"):
        return name
    builtin = _paths.plugin(name)
    if builtin is not None:
        return os.fspath(builtin)
    if "/" not in name:  # as a shell: a file of the working directory is named by its path
        found = shutil.which(name)
        if found is None:
            raise MountError(errno.ENOENT, unknown(name, meaning.names()), name)
        name = found
    if not os.path.exists(name):
        raise MountError(errno.ENOENT, unknown(name), name)
    if not os.path.isfile(name):
        raise MountError(errno.ENOEXEC, "not a file, so no FUSE program", name)
    return os.path.abspath(name)


def positional_words(argv: Sequence[str]) -> list[str]:
    """The words of a FUSE command line that may be paths: no options, no value of -o."""
    words: list[str] = []
    skip = False
    for word in argv[1:]:
        if skip:
            skip = False
        elif word == "-o":
            skip = True
        elif word and not word.startswith("-"):
            words.append(word)
    return words
