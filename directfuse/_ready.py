"""Waiting until descriptors are ready, of any number: select(2) takes none above 1,023."""

import select

__all__ = ["ready"]


def ready(*fds: int, seconds: float | None = None) -> frozenset[int]:
    """Which of them can be read, or have ended, as soon as one is; none after that time."""
    waiting = select.poll()
    for fd in fds:
        waiting.register(fd, select.POLLIN)
    return frozenset(fd for fd, _ in waiting.poll(None if seconds is None else seconds * 1000))
