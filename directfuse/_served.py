"""Starting mount servers from Python: which program serves, and what a Python one is given.

A server of C file systems is directfuse-server. One of Python file systems is an interpreter
(directfuse/_python/server.py), for Python is never embedded in another program.
"""

import errno
import io
import os
import pickle
import shlex
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Self

from directfuse import _native, _paths
from directfuse._errors import MountError, NotSupportedError, asked
from directfuse._python import meaning
from directfuse._ready import ready

__all__ = ["READY", "Given", "hello_message", "mount_program", "program_for", "ready_message"]

READY = struct.Struct("<IIIiQ32s")  #: struct df_join_message of native/channel/join.h
_MAGIC, _KIND_HELLO, _KIND_READY = 0x64664A32, 0, 3
_MESSAGE = 4096 - READY.size  # bytes of the words of a refusal


def ready_message(code: int, text: str) -> bytes:
    """What a server says that cannot begin: an errno and why."""
    words = text.encode(errors="replace")[:_MESSAGE]
    return READY.pack(_MAGIC, _KIND_READY, 0, -code, 0, _native.build()) + words


def hello_message() -> bytes:
    """What a process says that would be a client, with a socket for the answer."""
    return READY.pack(_MAGIC, _KIND_HELLO, 0, 0, 0, _native.build())


def program_for(command_lines: Sequence[Sequence[str]]) -> list[str]:
    """The first words of the server for these file systems."""
    if not os.path.exists("/proc/self/exe"):  # by which a program finds libraries beside it
        raise NotSupportedError(errno.ENOTSUP, "/proc is not mounted: no mount server can start")
    if any(meaning.is_python(words) for words in command_lines):
        return _interpreter()
    return [os.fspath(_paths.server())]


def _interpreter() -> list[str]:
    """-P: what lies in the working directory is no module of ours."""
    if not sys.executable:
        raise NotSupportedError(errno.ENOTSUP, "this Python does not know its own program")
    return [*_paths.MODULE, "directfuse._python.server"]


# ---- what a Python server is given ---------------------------------------------------------------


def _search_path() -> Iterator[str]:
    """sys.path, in which "" is the working directory."""
    for text in sys.path:
        with suppress(FileNotFoundError):  # that was removed: nothing is found there
            yield text or os.getcwd()


@dataclass
class Given:
    """Where modules are found here; and an object, pickled, that is to be served."""

    path: list[str] = field(default_factory=lambda: list(_search_path()))
    main: dict[str, Any] = field(default_factory=dict)  # how to have this __main__ there
    pickled: bytes = b""
    mountpoint: str = ""
    options: list[str] = field(default_factory=list)

    @classmethod
    def of_object(cls, ops: Any, mountpoint: str, options: Sequence[str]) -> Self:
        """A copy of it. NotSupportedError if it has none that could travel."""
        _check_volatile(ops)
        try:
            pickled = pickle.dumps(ops)
        except Exception as error:  # anything that __reduce__ raises
            raise NotSupportedError(
                errno.ENOTSUP,
                f"a server is sent a pickled copy of an object, and {_name(ops)} has none "
                f"({error}); name its class instead: "
                f"mount('module:{_name(ops)} ARGUMENTS {mountpoint}', placement='server')",
                _name(ops),
            ) from error
        main = _main_module() if b"__main__" in pickled or b"__mp_main__" in pickled else {}
        return cls(main=main, pickled=pickled, mountpoint=mountpoint, options=list(options))

    @property
    def is_object(self) -> bool:
        return bool(self.pickled)

    def revive(self) -> Any:
        """The object, in the server."""
        _import_main(self.main)
        try:
            return pickle.loads(self.pickled)
        except Exception as error:
            raise MountError(
                errno.EINVAL,
                f"the object's copy cannot be made in the server: {type(error).__name__}: {error} "
                "(its class has to be in a module that can be imported)",
            ) from error

    def start(
        self, argv: Sequence[str], *, flags: int, seconds: int, made: list[int]
    ) -> tuple[int, str]:
        """Starts an interpreter that serves the words, or the object, and joins it: the number of
        the mount here, and what was said. Or MountError: ETIMEDOUT after so many seconds, 0: never.
        """
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        number = self._dump()
        with ours:
            try:
                with theirs:
                    _launch(argv, theirs.fileno(), number)
            finally:
                os.close(number)
            if not _await(ours.fileno(), seconds):
                words = f"it has not mounted anything within {seconds} seconds"
                raise MountError(errno.ETIMEDOUT, words, shlex.join(argv))
            code, words = _native.mount_served(ours.fileno(), flags, made)
        if code > 0:
            return code, words
        refusal = NotSupportedError if code == -errno.ENOTSUP else MountError
        raise refusal(-code, words, shlex.join(argv))

    def _dump(self) -> int:
        """A descriptor of a file with it."""
        fd = asked(os.memfd_create, "directfuse-given")
        with open(fd, "wb", closefd=False) as file:
            pickle.dump(self.__dict__, file)
        os.lseek(fd, 0, os.SEEK_SET)
        return fd

    @classmethod
    def load(cls, file: BinaryIO | io.BufferedReader) -> Self:
        """In the server, whose modules are found as here from then on."""
        given = cls(**pickle.load(file))
        sys.path += [text for text in given.path if text not in sys.path]
        return given


def _name(ops: Any) -> str:
    return str(getattr(ops, "__qualname__", type(ops).__qualname__))


def _main_module() -> dict[str, Any]:
    """As multiprocessing's spawn has it: the script is imported, without its __main__ part."""
    from multiprocessing import spawn

    data: dict[str, Any] = spawn.get_preparation_data("directfuse-server")
    return {key: data[key] for key in data if key.startswith("init_main")}


def _import_main(main: dict[str, Any]) -> None:
    if not main:
        return
    from multiprocessing import process, spawn

    this: Any = process.current_process()
    this._inheriting = True  # a script that would serve its objects again is refused, and told why
    try:
        spawn.prepare(main)
    finally:
        del this._inheriting
    if _native.list_mounts():
        raise MountError(
            errno.EBUSY,
            "the script mounts when it is imported, as it is for an object of its own classes: put "
            "that under `if __name__ == '__main__':`",
        )


def _check_volatile(ops: Any) -> None:
    """fsspec's "memory" is one store for a process: a copy would be empty without a word."""
    memory = sys.modules.get("fsspec.implementations.memory")
    if memory is not None and isinstance(ops, memory.MemoryFileSystem):
        raise NotSupportedError(
            errno.ENOTSUP,
            "fsspec's memory file system keeps its files in this process: a server would find it "
            "empty; mount it inline, or memfs with placement='server'",
            _name(ops),
        )


# ---- starting ------------------------------------------------------------------------------------


def _launch(argv: Sequence[str], control: int, given: int) -> None:
    words = ["--control", str(control), "--given", str(given), "--", *argv]
    subprocess.run(
        [*_interpreter(), *words],
        pass_fds=[control, given],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,  # what it prints later is for nobody; errors are the process's
        start_new_session=True,
        check=False,
    )


def _await(server: int, seconds: int = 0) -> bool:
    """Whether the server has something to say, within that time if it is limited. Here Ctrl-C
    works; who leaves by that, or late, closes the socket, which ends the server."""
    return bool(ready(server, seconds=seconds or None))


def mount_program(path: str, argv: Sequence[str], flags: int, made: list[int]) -> tuple[int, str]:
    """Starts directfuse-server for a FUSE program, and joins it: _native.mount(), which a signal
    ends while the program starts. The server sees to the limit of the flags."""
    sockets: list[int] = []
    try:
        number, words = _native.launch(path, argv, flags, sockets)
        if number < 0:
            return number, words
        _await(number)
        return _native.mount_served(number, flags, made)
    finally:
        for number in sockets:
            if number >= 0:
                os.close(number)
