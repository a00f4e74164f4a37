"""Bytes of a file as memory: mmap and borrow."""

import mmap as _mmap
from typing import Any

from directfuse._call import is_ours
from directfuse._fast import Mapping, fstat

__all__ = ["Mapping", "borrow", "mmap"]

_ACCESS = {
    _mmap.ACCESS_READ: (_mmap.MAP_SHARED, _mmap.PROT_READ),
    _mmap.ACCESS_WRITE: (_mmap.MAP_SHARED, _mmap.PROT_READ | _mmap.PROT_WRITE),
    _mmap.ACCESS_COPY: (_mmap.MAP_PRIVATE, _mmap.PROT_READ | _mmap.PROT_WRITE),
}


def mmap(
    fileno: int,
    length: int,
    flags: int = _mmap.MAP_SHARED,
    prot: int = _mmap.PROT_READ | _mmap.PROT_WRITE,
    access: int = _mmap.ACCESS_DEFAULT,
    offset: int = 0,
) -> Any:
    """mmap.mmap: length bytes of an open file from offset on as memory, all when length is 0.

    offset is a multiple of mmap.ALLOCATIONGRANULARITY, as with mmap.mmap.

    A real descriptor gives an mmap.mmap, a virtual one a Mapping: use it as a buffer (memoryview,
    numpy.frombuffer), index it, flush() and close() it. A shared writable Mapping is written back
    by flush() and close(), and is not coherent with other mappings or with write() in between.
    """
    if not is_ours(fileno):
        return _mmap.mmap(fileno, length, flags, prot, access, offset)
    if access != _mmap.ACCESS_DEFAULT:
        flags, prot = _meant_by(access, flags, prot)
    length = _length_of(fileno, length, offset)
    if flags & _mmap.MAP_ANONYMOUS:  # of no file, whatever the descriptor
        return _mmap.mmap(-1, length, flags, prot)
    return Mapping(fileno, length, prot, flags, offset)


def _meant_by(access: int, flags: int, prot: int) -> tuple[int, int]:
    """Flags and protection; those that were given must be the defaults."""
    if (flags, prot) != _ACCESS[_mmap.ACCESS_WRITE]:
        raise ValueError("mmap can't specify both access and flags, prot.")
    if access not in _ACCESS:
        raise ValueError("mmap invalid access parameter.")
    return _ACCESS[access]


def _length_of(fd: int, length: int, offset: int) -> int:
    """Where it is 0: all that is in the file from the offset on."""
    if length < 0 or offset < 0:
        raise OverflowError("memory mapped length and offset must be positive or 0")
    size = fstat(fd).st_size
    if length == 0 and size == 0:
        raise ValueError("cannot mmap an empty file")
    if length == 0 and offset >= size:
        raise ValueError("mmap offset is greater than file size")
    if offset + length > size:
        raise ValueError("mmap length is greater than file size")
    return length or size - offset


def borrow(fd: int, size: int | None = None, offset: int = 0) -> memoryview:
    """Bytes of an open file to look at, without a copy where the plugin can lend them.

    fd: a descriptor open for reading, a real one too; size and offset in bytes: fewer at the end of
    the file, all up to it when size is None. The view is read-only; what is written to the file
    while it is held may or may not show in it. Release it (`with borrow(...) as view`) or drop it
    to give the bytes back. Raises ValueError when size or offset is negative, and the OSError of
    fstat(2) and mmap(2).
    """
    end = fstat(fd).st_size
    length = max(0, min(end - offset, end if size is None else size))
    if offset < 0 or (size is not None and size < 0):
        raise ValueError("size and offset must not be negative")
    if length == 0:
        return memoryview(b"")
    ahead = offset % _mmap.ALLOCATIONGRANULARITY  # offsets of mmap(2) are whole pages
    start, length = offset - ahead, length + ahead
    if is_ours(fd):
        mapping: Any = Mapping(fd, length, _mmap.PROT_READ, _mmap.MAP_PRIVATE, start)
    else:
        mapping = _mmap.mmap(fd, length, _mmap.MAP_PRIVATE, _mmap.PROT_READ, offset=start)
    return memoryview(mapping)[ahead:]
