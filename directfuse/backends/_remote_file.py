"""Open files of the fsspec backend: readers that keep what they fetched, drafts of what is written.

A reader outlives close() for a while, with the blocks that fsspec's cache holds for it, so that the
next open of the same, unchanged file finds them. A draft is a whole new object: it lies in memory
(on disk when it is large) until close() or fsync() stores it.
"""

import shutil
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from directfuse._exactly import read_exactly

__all__ = ["Draft", "Reader", "Readers"]

_KEPT = 16  # readers that nobody has open
_IN_MEMORY = 32 << 20  # bytes of a draft, before it goes to a temporary file
_COPY = 4 << 20  # bytes moved at once


class Reader:
    """A file of fsspec, for any number of openers. fsspec's files are not made for threads."""

    def __init__(self, file: Any, version: object) -> None:
        self.version = version
        self.users = 0  # protected by the lock of Readers
        self._file = file
        self._lock = threading.Lock()

    def read(self, size: int, offset: int) -> bytes:
        """size bytes from offset on; fewer at the end of the file only."""
        with self._lock:
            self._file.seek(offset)
            return read_exactly(self._file, size)

    def close(self) -> None:
        with self._lock:
            self._file.close()


class Readers:
    """Readers by name: those in use, and the last that were."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # protects all below
        self._named: OrderedDict[str, Reader] = OrderedDict()

    def take(self, name: str, version: object, open_file: Callable[[], Any]) -> Reader:
        """A reader of this version of the file; give it back."""
        with self._lock:
            reader = self._named.get(name)
            if reader is not None and reader.version == version:
                reader.users += 1
                self._named.move_to_end(name)
                return reader
        reader = Reader(open_file(), version)  # may take its time: without the lock
        reader.users = 1
        with self._lock:
            former = self._named.get(name)
            self._named[name] = reader
            unused = self._surplus()
            if former is not None and former.users == 0:
                unused.append(former)
        _close(unused)
        return reader

    def give(self, reader: Reader) -> None:
        """One user less."""
        with self._lock:
            reader.users -= 1
            kept = any(one is reader for one in self._named.values())
            unused = self._surplus() if kept else [reader] if reader.users == 0 else []
        _close(unused)

    def forget(self, name: str) -> None:
        """The file has changed, or is gone."""
        with self._lock:
            reader = self._named.pop(name, None)
            unused = [reader] if reader is not None and reader.users == 0 else []
        _close(unused)

    def clear(self) -> None:
        with self._lock:
            unused = [reader for reader in self._named.values() if reader.users == 0]
            self._named.clear()
        _close(unused)

    def _surplus(self) -> list[Reader]:
        """Takes out the oldest of those that nobody uses. The lock is held."""
        idle = [name for name, reader in self._named.items() if reader.users == 0]
        return [self._named.pop(name) for name in idle[: max(0, len(idle) - _KEPT)]]


def _close(readers: list[Reader]) -> None:
    for reader in readers:
        reader.close()


class Draft:
    """What an object will be once it is stored. Protected by `lock`, which its users take."""

    def __init__(self, name: str) -> None:
        self.name = name  # of the object, changed by rename
        self.lock = threading.RLock()
        self.users = 0
        self.dirty = False  # has what is not stored
        self.dropped = False  # its name was removed: it is never stored
        self.closed = False  # by its last user
        self.modified = 0  # nanoseconds since 1970
        self._data = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)

    def load(self, file: Any) -> None:
        """Begins with what the object is now."""
        shutil.copyfileobj(file, self._data, _COPY)

    def store(self, file: Any) -> None:
        """Writes all of it."""
        self._data.seek(0)
        shutil.copyfileobj(self._data, file, _COPY)

    @property
    def size(self) -> int:
        return self._data.seek(0, 2)

    def read(self, size: int, offset: int) -> bytes:
        self._data.seek(offset)
        return self._data.read(size)

    def write(self, data: bytes, offset: int) -> int:
        gap = offset - self.size
        if gap > 0:
            self._extend(gap)
        self._data.seek(offset)
        self.dirty = True
        return self._data.write(data)

    def truncate(self, length: int) -> None:
        gap = length - self.size
        if gap > 0:
            self._extend(gap)
        self._data.truncate(length)
        self.dirty = True

    def close(self) -> None:
        """Who has found it before may still come, and is to look at what was stored."""
        with self.lock:
            self.closed = True
            self._data.close()

    def _extend(self, count: int) -> None:
        """Zeros, as a hole reads; the position is at the end."""
        while count > 0:
            count -= self._data.write(bytes(min(count, _COPY)))
