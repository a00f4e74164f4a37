"""Programs of these tests, built from tests/server/sources when they are needed."""

from pathlib import Path

from building import build, fuse

SOURCES = Path(__file__).with_name("sources")


def built(name, tmp_path_factory):
    """The path of a FUSE program; skips where it cannot be built."""
    return compiled(name, tmp_path_factory, "-pie", "-fPIE", *fuse())


def compiled(name, tmp_path_factory, *options):
    """The same of a program that is no FUSE program, with options of the compiler."""
    return build(SOURCES / f"{name}.c", tmp_path_factory.mktemp(name) / name, *options)
