"""Reading files whose read() may bring less than it was asked for."""

from typing import Any

__all__ = ["read_exactly"]


def read_exactly(file: Any, size: int) -> bytes:
    """size bytes; fewer at the end of the file only."""
    data: bytes = file.read(size)
    if len(data) == size or not data:
        return data
    parts = [data]
    left = size - len(data)
    while left and (data := file.read(left)):
        parts.append(data)
        left -= len(data)
    return b"".join(parts)
