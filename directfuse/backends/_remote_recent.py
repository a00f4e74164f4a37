"""What was told of paths last, up to a number of paths: the caches of a remote tree."""

from collections.abc import Iterator
from typing import Generic, TypeVar

__all__ = ["Recent"]

Value = TypeVar("Value")


class Recent(Generic[Value]):
    """By path what was told, and until when it is believed. Its user has the lock.

    What is no longer believed stays until there is too much: it still says how a path is named.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._count = 0
        self._told: dict[str, tuple[float, Value, int]] = {}  # the oldest first

    def __iter__(self) -> Iterator[str]:
        return iter(self._told)

    def get(self, path: str) -> tuple[float, Value | None]:
        """Time 0: nothing was told."""
        until, value, _ = self._told.get(path, (0.0, None, 0))
        return until, value

    def put(self, path: str, until: float, value: Value, count: int = 1) -> list[str]:
        """count: paths that the value tells of. Returns the paths that had to go for it."""
        self.pop(path)
        self._told[path] = until, value, count
        self._count += count
        gone = []
        while self._count > self._most and len(self._told) > 1:
            gone.append(next(iter(self._told)))
            self.pop(gone[-1])
        return gone

    def pop(self, path: str) -> None:
        """Nothing was told of it."""
        _, _, count = self._told.pop(path, (0.0, None, 0))
        self._count -= count
