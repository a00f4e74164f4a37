"""A time for all that is measured, shared out among its parts."""

import time
from collections.abc import Mapping

__all__ = ["Budget"]


class Budget:
    """Seconds for named parts, in their order, by weight. What one leaves the later ones get."""

    def __init__(self, seconds: float, weights: Mapping[str, float]) -> None:
        self.end = time.monotonic() + seconds
        self._weights = dict(weights)

    @property
    def is_over(self) -> bool:
        return time.monotonic() >= self.end

    def part(self, name: str) -> float:
        """Begins a part: the time.monotonic() at which it should end."""
        now = time.monotonic()
        weight = self._weights.pop(name)
        left = max(self.end - now, 0.0)
        return now + left * weight / (weight + sum(self._weights.values()))
