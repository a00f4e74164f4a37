"""The blocks of the pages work as printed."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from directfuse._cli._config import read_config
from tests.house.tree import shown

from .blocks import BLOCK, blocks, pages
from .conftest import ALONE

BLOCKS = [block for page in pages() for block in blocks(page)]

#: What a block may name that machines lack: programs, and modules of Python.
PROGRAMS = ("gcc", "mksquashfs", "pkg-config", "rclone", "squashfuse")
MODULES = ("PIL", "fsspec", "numpy", "pandas", "pyfuse3", "ratarmount", "torch")

#: A command of a session, with the lines that go on with it. Other lines are what it prints.
PROMPTED = re.compile(r"^\$ ((?:.*\\\n)*.*\n)", re.MULTILINE)
INDENTED = re.compile(r"\n\n(?: {4}|\t)(?! *[-*|\d])(.*)")


def need_what_it_names(text):
    words = set(re.findall(r"[\w-]+", text))
    if words & {"data", "sqfs"}:  # an image, which the belongings are to have
        words |= {"mksquashfs", "squashfuse"}
    missing = [name for name in words.intersection(PROGRAMS) if shutil.which(name) is None]
    missing += [name for name in words.intersection(MODULES) if not importlib.util.find_spec(name)]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}")


def alone():
    """A command with mounts and process numbers of its own, all of which end with it."""
    command = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    command += [] if os.getuid() == 0 else ["--map-root-user"]
    if subprocess.run([*command, "true"], capture_output=True, check=False).returncode:
        pytest.skip("needs user and PID namespaces")
    return [*command, "bash", "-c", ALONE, "bash"]


def in_shell(reader, text):
    if "directfuse mount" in text and not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("no access to /dev/fuse")
    return reader(text, *alone())


def in_session(reader, text):
    return in_shell(reader, "".join(PROMPTED.findall(text)))


def in_python(reader, text):
    if "def test_" not in text:
        return reader(text, sys.executable, Path(__file__).with_name("reader.py"))
    imports = "import directfuse\nfrom my_module import NotesFs\n\n"
    return reader(imports + text, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")


RUNNERS = {"console": in_session, "python": in_python, "sh": in_shell}


def test_every_block_says_what_it_is_of():
    """So that none is left out, as those without a language would be, and those by four blanks."""
    assert 2 * len(BLOCKS) == sum(page.read_text().count("```") for page in pages()) > 60
    assert not [str(one) for one in BLOCKS if one.language not in (*RUNNERS, "text", "toml")]
    others = {page: BLOCK.sub("", page.read_text()) for page in pages()}
    assert not [f"{shown(page)}: {it}" for page in others for it in INDENTED.findall(others[page])]


@pytest.mark.parametrize(
    "block", [one for one in BLOCKS if one.language in RUNNERS and not one.reason], ids=str
)
def test_blocks_work_as_printed(reader, block):
    need_what_it_names(block.text)
    done = RUNNERS[block.language](reader, block.text)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("block", [one for one in BLOCKS if one.language == "toml"], ids=str)
def test_toml_can_be_read(block, tmp_path):
    file = tmp_path / "block.toml"
    file.write_text(block.text)
    tables = tomllib.loads(block.text)
    assert tables
    if "mount" in tables:
        read_config(file)
