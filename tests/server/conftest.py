"""A file system of our own that fails when it is asked to."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SOURCE = Path(__file__).with_name("sources") / "moody.c"
FUSE3 = ["-D_FILE_OFFSET_BITS=64", "-I/usr/include/fuse3", "-lfuse3"]


@pytest.fixture(scope="session")
def moody(tmp_path_factory):
    """The path of the program."""
    if shutil.which("gcc") is None or not os.path.exists("/usr/include/fuse3/fuse.h"):
        pytest.skip("needs gcc and libfuse3-dev")
    target = tmp_path_factory.mktemp("moody") / "moody"
    subprocess.run(["gcc", "-O1", "-pie", "-fPIE", SOURCE, "-o", target, *FUSE3], check=True)
    return str(target)
