"""Open files of directfuse.filesystem: io's buffered files over the raw file of a mount.

They are subclasses that add what fsspec asks of a file (path, fs, size, pickling, commit and
discard) and change nothing on the way of read(), which stays C from end to end.
"""

import errno
import io
import operator
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from directfuse import _fast, _names
from directfuse import path as _path
from directfuse._call import descriptor_of

__all__ = ["open_file"]

_NOREPLACE = 1  # renameat2(2)


@contextmanager
def _called(path: str) -> Iterator[None]:
    """Errors of a file's temporary name are about the file, of which alone its user knows."""
    try:
        yield
    except OSError as error:
        error.filename = path
        del error.filename2  # str() would show a None
        raise


class _Opened:
    """What fsspec asks of a file, beside io's."""

    fs: Any
    path: str
    raw: Any
    closed: bool
    autocommit = True
    _temporary: str | None = None
    _exclusive = False

    @property
    def full_name(self) -> str:
        """The URL."""
        return f"directfuse://{self.path}"

    @property
    def size(self) -> int:
        """Bytes in the file now, those still in the buffer not among them."""
        return _fast.fstat(descriptor_of(self.raw)).st_size

    @property
    def blocksize(self) -> int:
        """Bytes that are worth reading at once."""
        return _fast.fstat(descriptor_of(self.raw)).st_blksize

    def commit(self) -> None:
        """Ends a transaction: what was written appears under its name, at once and whole."""
        if self._temporary is None:
            raise RuntimeError("this file was not opened in a transaction")
        self.close()  # type: ignore[attr-defined]
        with _called(self.path):
            if self._exclusive:
                _names.renameat2(self._temporary, self.path, _NOREPLACE)
            else:
                _names.replace(self._temporary, self.path)
        self._temporary = None

    def discard(self) -> None:
        """Ends a transaction: what was written is gone."""
        if self._temporary is None:
            raise RuntimeError("this file was not opened in a transaction")
        self.close()  # type: ignore[attr-defined]
        _names.unlink(self._temporary)
        self._temporary = None

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(
            f"cannot pickle {self.path!r} while it is open for writing: close it and pickle the "
            "path, or the fsspec.core.OpenFile"
        )


class _Reader(_Opened, io.BufferedReader):
    def __reduce_ex__(self, protocol: Any) -> Any:
        if self.closed:
            raise TypeError(f"cannot pickle the closed file {self.path!r}; pickle the path")
        return _reopen, (self.fs, self.path, self.tell())


class _Writer(_Opened, io.BufferedWriter):
    pass


class _Both(_Opened, io.BufferedRandom):
    pass


def _reopen(fs: Any, path: str, position: int) -> Any:
    file = open_file(fs, path, "rb", None, True)
    file.seek(position)
    return file


def open_file(fs: Any, path: str, mode: str, block_size: Any, autocommit: bool) -> Any:
    """A buffered file; mode is that of open(), with "b".

    block_size: bytes of the buffer, None or 0: the standard one. autocommit=False writes beside the
    file (new bytes only; "a" begins with a copy) until commit().
    """
    size = 0 if block_size is None else operator.index(block_size)
    if size < 0:
        raise ValueError(f"block_size is a number of bytes, not {block_size!r}")
    temporary = None
    if not autocommit and "r" not in mode:
        temporary = _beside(path, mode)
    with _called(path):
        opened = temporary or path
        raw: Any = _fast.open(opened, mode.replace("x", "w") if temporary else mode, buffering=0)
    kind = _Both if "+" in mode else _Reader if "r" in mode else _Writer
    file = kind(raw, size or io.DEFAULT_BUFFER_SIZE)
    file.fs, file.path, file.autocommit = fs, path, autocommit
    file._temporary, file._exclusive = temporary, "x" in mode
    return file


def _beside(path: str, mode: str) -> str:
    """The name that a transaction writes under, in the same directory so that rename() serves."""
    if "x" in mode and _path.lexists(path):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
    directory, _, name = path.rpartition("/")
    known_by = os.fsencode(name)[:200].decode(errors="ignore")  # a name is limited in bytes
    temporary = f"{directory}/.{known_by}.{os.urandom(4).hex()}"
    if "a" in mode and _path.exists(path):
        with (
            _called(path),
            _fast.open(path, "rb") as source,
            _fast.open(temporary, "xb") as target,
        ):
            while data := source.read(1 << 20):
                target.write(data)
    return temporary
