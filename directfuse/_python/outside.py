"""A Python file system as a FUSE server of its own: what a helper process runs for it, so that
other programs and forked processes can share it.

    python -P -m directfuse._python.outside module:Class ARGUMENTS MOUNTPOINT -o OPTIONS

Its protocol is that of the library it is written for: pyfuse3, or mfusepy for classes with fusepy's
operations. Nothing is mounted, for the helper answers "/dev/fuse" (backends/helper).
"""

import importlib
import sys
from collections.abc import Sequence
from typing import Any

from directfuse._errors import MountError
from directfuse._python import meaning, nodes, programs

__all__ = ["main"]


def main(words: Sequence[str]) -> int:
    """Serves until it is unmounted; an exit status."""
    try:
        made, mountpoint, options = programs.make_file_system(words, _factory(words[0]))
        programs.check_object(made)
    except MountError as error:
        print(error.strerror, file=sys.stderr)
        return 1
    if nodes.is_node_file_system(made):
        return _serve_nodes(made, mountpoint, options)
    return _serve_paths(made, mountpoint, options)


def _factory(name: str) -> Any:
    for point in meaning.points(name=name):
        return point.load()
    return programs.load_attribute(name)


def _serve_nodes(ops: Any, mountpoint: str, options: Sequence[str]) -> int:
    import asyncio

    import pyfuse3
    import trio

    pyfuse3.init(ops, mountpoint, {*pyfuse3.default_options, *options})
    try:
        if nodes.asyncio_enabled():
            asyncio.run(pyfuse3.main())
        else:
            trio.run(pyfuse3.main)
    finally:
        pyfuse3.close()
    return 0


def _serve_paths(ops: Any, mountpoint: str, options: Sequence[str]) -> int:
    try:
        mfusepy = importlib.import_module("mfusepy")
    except (ImportError, OSError) as error:
        print(f"mfusepy is needed for it: pip install mfusepy ({error})", file=sys.stderr)
        return 1
    words: dict[str, Any] = {}
    for option in ",".join(options).split(","):
        name, equals, value = option.partition("=")
        if name:
            words[name] = value if equals else True
    mfusepy.FUSE(ops, mountpoint, foreground=True, nothreads=True, **words)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
