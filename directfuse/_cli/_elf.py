"""Reads what an ELF file links to, and whether it could be loaded into another process."""

import os
import struct
from dataclasses import dataclass

__all__ = ["Linkage", "read_linkage"]

# elf(5), 64-bit little-endian: the only kind that runs where we do.
_IDENT = b"\x7fELF\x02\x01"
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_DYNAMIC = struct.Struct("<qQ")
_PT_LOAD, _PT_DYNAMIC, _PT_INTERP, _PT_TLS = 1, 2, 3, 7
_ET_DYN = 3
_DT_NEEDED, _DT_STRTAB, _DT_STRSZ = 1, 5, 10


@dataclass(frozen=True, slots=True)
class Linkage:
    """needed: SONAMEs; strings: every name of the dynamic symbol table, and more; movable: runs at
    any address; tls: has thread-local storage of its own; program: asks for a dynamic linker, which
    no shared object does that is only loaded."""

    needed: frozenset[str]
    strings: frozenset[bytes]
    movable: bool
    tls: bool
    program: bool


def read_linkage(path: str) -> Linkage | None:
    """The linkage of a dynamic ELF file; None for any other file, or one that cannot be read."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        return _read(fd)
    except (OSError, struct.error):  # cut short, or no regular file
        return None
    finally:
        os.close(fd)


def _read(fd: int) -> Linkage | None:
    head = os.pread(fd, _HEADER.size, 0)
    if not head.startswith(_IDENT):
        return None
    _, kind, _, _, _, table, _, _, _, size, count, *_ = _HEADER.unpack(head)
    if size != _SEGMENT.size:
        return None
    segments = list(_SEGMENT.iter_unpack(os.pread(fd, size * count, table)))
    dynamic = _dynamic(fd, segments)
    values = dict(dynamic)
    offset = _offset_of(segments, values.get(_DT_STRTAB, 0))
    if offset is None:
        return None
    strings = os.pread(fd, values.get(_DT_STRSZ, 0), offset)
    return Linkage(
        needed=frozenset(_string(strings, value) for tag, value in dynamic if tag == _DT_NEEDED),
        strings=frozenset(strings.split(b"\0")),
        movable=kind == _ET_DYN,
        tls=any(segment[0] == _PT_TLS for segment in segments),
        program=any(segment[0] == _PT_INTERP for segment in segments),
    )


def _dynamic(fd: int, segments: list[tuple[int, ...]]) -> list[tuple[int, int]]:
    for kind, _, offset, _, _, length, _, _ in segments:
        if kind == _PT_DYNAMIC:
            whole = os.pread(fd, length - length % _DYNAMIC.size, offset)
            return list(_DYNAMIC.iter_unpack(whole))
    return []


def _offset_of(segments: list[tuple[int, ...]], address: int) -> int | None:
    for kind, _, offset, start, _, length, _, _ in segments:
        if kind == _PT_LOAD and start <= address < start + length:
            return address - start + offset
    return None


def _string(strings: bytes, at: int) -> str:
    return strings[at:].partition(b"\0")[0].decode(errors="replace")
