"""The pytest plugin: the fixture `directfuse_mount` (entry point pytest11)."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import pytest

import directfuse

MountFunction: TypeAlias = Callable[..., directfuse.Mount]

_numbers = itertools.count()


@pytest.fixture
def directfuse_mount() -> Iterator[MountFunction]:
    """Mounts file systems inside the test's process, and unmounts them when the test is over.

    directfuse_mount(what, mountpoint=None, **options) is directfuse.mount(): `what` is a Python
    file system (an object or a class) or a command line. Without a mountpoint each mount gets one
    of its own, of which nothing exists on disk. It returns the directfuse.Mount.

    A file that the test leaves open does not fail it; the mount then ends with that file.
    """
    made: list[directfuse.Mount] = []

    def mount(what: Any, mountpoint: str | None = None, **options: Any) -> directfuse.Mount:
        if mountpoint is None and not isinstance(what, str | list | tuple):
            mountpoint = f"/directfuse-test-{next(_numbers)}"
        mounted = directfuse.mount(what, mountpoint, **options)
        made.append(mounted)
        return mounted

    yield mount
    for mounted in reversed(made):
        if not mounted.mounted:
            continue
        try:
            mounted.unmount()
        except directfuse.UnmountError:
            mounted.unmount(lazy=True)
