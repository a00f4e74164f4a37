"""FUSE programs of these tests, built from tests/server/sources when they are needed."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SOURCES = Path(__file__).with_name("sources")
FUSE3 = ["-D_FILE_OFFSET_BITS=64", "-I/usr/include/fuse3", "-lfuse3"]


def built(name, tmp_path_factory):
    """The path of the program; skips where it cannot be built."""
    if not os.path.exists("/usr/include/fuse3/fuse.h"):
        pytest.skip("needs libfuse3-dev")
    return compiled(name, tmp_path_factory, "-pie", "-fPIE", *FUSE3)


def compiled(name, tmp_path_factory, *options):
    """The same of a program that is no FUSE program, with options of the compiler."""
    if shutil.which("gcc") is None:
        pytest.skip("needs gcc")
    target = tmp_path_factory.mktemp(name) / name
    source = SOURCES / f"{name}.c"
    subprocess.run(["gcc", "-O1", source, "-o", target, *options], check=True)
    return str(target)
