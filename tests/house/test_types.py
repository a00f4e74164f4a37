"""What a type checker tells a user's program of our functions: as much as of those of os."""

import subprocess
import sys

import pytest

PROGRAM = """
from collections.abc import Iterator
from pathlib import Path
from typing import assert_type

import directfuse

assert_type(directfuse.walk("/m"), Iterator[tuple[str, list[str], list[str]]])
assert_type(directfuse.walk(Path("/m")), Iterator[tuple[str, list[str], list[str]]])
assert_type(directfuse.walk(b"/m"), Iterator[tuple[bytes, list[bytes], list[bytes]]])
assert_type(directfuse.fwalk(), Iterator[tuple[str, list[str], list[str], int]])
assert_type(directfuse.fwalk(Path("/m")), Iterator[tuple[str, list[str], list[str], int]])
assert_type(directfuse.fwalk(b"/m"), Iterator[tuple[bytes, list[bytes], list[bytes], int]])
assert_type(directfuse.listdir(Path("/m")), list[str])
assert_type(directfuse.listdir(b"/m"), list[bytes])
assert_type(directfuse.readlink(Path("/m/f")), str)
assert_type(directfuse.readlink(b"/m/f"), bytes)
assert_type(directfuse.path.realpath(Path("/m/f")), str)
assert_type(directfuse.path.realpath(b"/m/f", strict=True), bytes)
assert_type([entry.name for entry in directfuse.scandir("/m")], list[str])
assert_type(directfuse.open("/m/f", "rb").read(), bytes)
assert_type(directfuse.open("/m/f").read(), str)
"""


def test_names_have_the_type_of_the_path(tmp_path):
    """They were Any, which `mypy --strict` does not let a function return that says str."""
    pytest.importorskip("mypy", reason="needs mypy, of directfuse[dev]")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    words = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", tmp_path / "cache", program]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
