"""What is measured: a file system by its command line, on mountpoints of our choice."""

import os
import shlex
from dataclasses import dataclass, field

from directfuse import _command, _mount, _paths

__all__ = ["Subject", "built_in", "from_command"]

#: Options with which the kernel asks the file system every time. memfs has its own; a program on
#: libfuse's high-level API takes the library's. (libfuse 3 leaves the caching of data to the file
#: system; passthrough has no option for it, so reads of one file may come from the page cache.)
_ASK_ALWAYS = {"memfs": "timeout=0,direct_io"}
_ASK_ALWAYS_HIGH_LEVEL = "entry_timeout=0,attr_timeout=0,negative_timeout=0"


@dataclass(frozen=True)
class Subject:
    """A file system. words: its command line, the mountpoint replaced by `POINT`."""

    name: str
    words: list[str]
    library: str  #: what is loaded for it
    program: str | None  #: what mounts it through the kernel
    finds: bool = False  #: it holds files already, and nothing is written to it
    needs_point: bool = False  #: its mountpoint is to be there, though nothing is mounted
    needs_source: bool = False  #: its command line names a directory that it serves
    uncached: str = field(default="")  #: mount options
    handles_are_files: bool = False  #: its file handles are descriptors of real files
    scribble: bool = False  #: what it holds may be overwritten
    directory: str | None = None  #: where its files are to live; None: as for all
    routes: tuple[str, ...] = ()  #: only these; none: all
    patterns: tuple[str, ...] = ()  #: workloads of its own; none: as for all

    POINT = "\0mountpoint"
    SOURCE = "\0source"

    def command(self, point: str, source: str, *options: str) -> list[str]:
        """The words, with a mountpoint, a directory to serve, and mount options."""
        replaced = {self.POINT: point, self.SOURCE: source}
        words = [replaced.get(word, word) for word in self.words]
        given = ",".join(option for option in options if option)
        return [*words, *(["-o", given] if given else [])]


def built_in(asked: str) -> Subject:
    """A file system of ours by its name, or NAME:OPTIONS. passthrough serves a directory that the
    route gives it."""
    name, _, options = asked.partition(":")
    library, program = _paths.plugin(name), _paths.program(name)
    assert library is not None
    needs_source = name == "passthrough"
    source = [Subject.SOURCE] if needs_source else []
    return Subject(
        name=asked,
        words=[name, *source, Subject.POINT, *(["-o", options] if options else [])],
        library=os.fspath(library),
        program=os.fspath(program) if program else None,
        needs_source=needs_source,
        handles_are_files=needs_source,
        uncached=_ASK_ALWAYS.get(name, _ASK_ALWAYS_HIGH_LEVEL),
    )


def from_command(line: str) -> Subject:
    """A file system of the user's: its own command line, mounted once to learn which word is the
    mountpoint.

    Raises MountError, and ValueError when the mountpoint is no word of the line.
    """
    words = shlex.split(line)
    with _mount.mount(words) as mounted:
        point = mounted.mountpoint
    exists = os.path.isdir(point)
    where = [
        index
        for index, word in enumerate(words)
        if index and os.path.realpath(word) == os.path.realpath(point)
    ]
    if not where:
        raise ValueError(
            f"{point}: the mountpoint is no word of its own in this command line, so the file "
            "system cannot be mounted elsewhere for comparison"
        )
    library = _command.library_of(words)
    own = _paths.program(words[0])
    program = os.fspath(own) if own else library
    words[where[-1]] = Subject.POINT
    return Subject(
        name=line,
        words=words,
        library=library,
        program=program if os.access(program, os.X_OK) and not program.endswith(".so") else None,
        finds=True,
        needs_point=exists,
        uncached=_ASK_ALWAYS.get(words[0], _ASK_ALWAYS_HIGH_LEVEL),
    )
