"""What is wrong with the image of a command line that its program has refused.

Programs say that they cannot read it, not which file they mean or what it is instead; nor that it
lies in a mount which is not the kernel's.
"""

import os
import re
import stat
from collections.abc import Iterator, Sequence

from directfuse._command import positional_words

__all__ = ["kind_of", "remedies", "remedy"]

#: Where a file's kind is told, by which bytes, what it is called, and what mounts it.
_KINDS = (
    (0, b"hsqs", "a squashfs image", "squashfuse"),
    (0, b"PK\3\4", "a zip archive", "fuse-zip"),
    (0x8001, b"CD001", "an ISO image", "fuseiso"),
    (0x438, b"\x53\xef", "an ext2, 3 or 4 image", "fuse2fs"),
    (257, b"ustar", "a tar archive", "archivemount"),
)

#: Programs whose first word without a dash is such a file.
_READERS = frozenset(
    {"squashfuse", "squashfuse_ll", "fuse-zip", "fuseiso", "fuse2fs", "archivemount"}
)

_HEAD = 0x9000  # bytes that tell a file's kind
_SQUASHFS_SIZE = slice(40, 48)  # of its header: the bytes that are used, little-endian


def kind_of(path: str) -> str:
    """What the file is, and how it is mounted; "" where that is not known."""
    _, name, program = _kind(_head(path))
    return f"{path} is {name}; mount it by: {program} {path} MOUNTPOINT" if name else ""


def remedy(argv: Sequence[str]) -> str:
    """What is wrong with the file that the command line names, and what to do; "" for nothing."""
    program = os.path.basename(argv[0])
    if program not in _READERS:
        return ""
    words = positional_words(argv)
    return _wrong(words[0], program) if words else ""


def remedies(command_lines: Sequence[Sequence[str]]) -> list[str]:
    """The same of file systems that were to be mounted together, in one server."""
    found = []
    for argv in command_lines:
        beside = [point for other in command_lines if other is not argv for point in _point(other)]
        found.append(_unseen(argv, beside) or remedy(argv))
    return list(filter(None, found))


def _point(argv: Sequence[str]) -> list[str]:
    return [os.path.abspath(word) for word in positional_words(argv)[-1:]]


def _unseen(argv: Sequence[str], beside: Sequence[str]) -> str:
    """Whether it was to be built on what is mounted at one of these."""
    for path in _sources(argv):
        for point in beside:
            if path == point or path.startswith(f"{point}/"):
                return (
                    f"{path}: a file system does not see what is mounted beside it; to build one "
                    f"on {point}, use `directfuse serve` inside of a run that has {point}"
                )
    return ""


def _sources(argv: Sequence[str]) -> Iterator[str]:
    """As in lowerdir=/a:/b and /a=RW:/b=RO. What follows in host:/a is another machine's."""
    own = positional_words(argv)[-1:]
    for word in argv[1:]:
        if word not in own and (word.startswith("/") or "=/" in word):
            yield from (path for path in re.split("[=,:]", word) if path.startswith("/"))


def _wrong(path: str, program: str) -> str:
    try:
        state = os.stat(path)
        head = _head(path)
    except FileNotFoundError:
        where = "" if os.path.isabs(path) else _in_working_directory()
        return f"there is no {path}{where}"
    except OSError as error:
        return f"{path}: {error.strerror}"
    if stat.S_ISDIR(state.st_mode):
        return f"{path} is a directory; `mksquashfs {path} IMAGE` makes an image of it"
    if stat.S_ISREG(state.st_mode) and state.st_size == 0:
        return f"{path} is empty"
    magic, _, wanted = _kind(head)
    if wanted and not program.startswith(wanted):
        return kind_of(path)
    used = int.from_bytes(head[_SQUASHFS_SIZE], "little")
    if magic == b"hsqs" and used > state.st_size:
        return (
            f"{path} is cut off: {used} bytes by its header, {state.st_size} are there; copy it "
            "again"
        )
    return ""


def _in_working_directory() -> str:
    try:
        return f" in {os.getcwd()}"
    except FileNotFoundError:
        return ": the working directory has been removed"


def _head(path: str) -> bytes:
    """The file's first bytes; none of what is no file, which might be waited for."""
    if not os.path.isfile(path):
        return b""
    with open(path, "rb") as file:
        return file.read(_HEAD)


def _kind(head: bytes) -> tuple[bytes, str, str]:
    for at, magic, name, program in _KINDS:
        if head[at : at + len(magic)] == magic:
            return magic, name, program
    return b"", "", ""
