"""Programs with AddressSanitizer, which ends a process that it comes into after other libraries."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from building import build, fuse, plugin

import directfuse

SOURCE = Path(__file__).parents[2] / "examples/hello.c"


@pytest.fixture
def point(tmp_path):
    return str(tmp_path / "m")


def sanitized(target, *options):
    if not has_library(target.with_name("probe")):
        pytest.skip("needs gcc and libasan")
    return build(SOURCE, target, "-fsanitize=address", *options)


def has_library(target):
    if shutil.which("gcc") is None:
        return False
    words = ["gcc", "-fsanitize=address", "-x", "c", "-", "-o", target]
    return not subprocess.run(words, input=b"int main(void) { return 0; }", check=False).returncode


@pytest.mark.parametrize("placement", ["auto", "server", "helper"])
def test_a_program_is_in_a_process_of_its_own(tmp_path, point, placement):
    program = sanitized(tmp_path / "it", *fuse())
    with directfuse.mount([program, point], placement=placement) as mount:
        assert directfuse.listdir(point) == ["greeting"]
        assert mount.placement == ("server" if placement == "server" else "helper")
        assert placement == "helper" or "libasan.so" in mount.reason


def test_a_library_is_for_a_process_that_begins_with_it(tmp_path, point):
    path = sanitized(tmp_path / "it.so", *plugin())
    with pytest.raises(directfuse.MountError) as caught:
        directfuse.mount([path, point])
    preload = re.search(r"LD_PRELOAD=(libasan\.so\.\d+)", str(caught.value))[1]
    script = f"import directfuse, os; directfuse.mount([{str(path)!r}, {point!r}]); "
    script += f"print(directfuse.listdir({point!r}), flush=True); os._exit(0)"
    words, env = [sys.executable, "-c", script], os.environ | {"LD_PRELOAD": preload}
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=False, timeout=50)
    assert done.stdout == "['greeting']\n", done.stderr
