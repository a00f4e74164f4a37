"""Runs each native test program (cmocka) as one test, from the newest build that made them.

An editable installation builds them; DF_BUILD_DIR names another build, a sanitized one say.
"""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 110


def build_directory():
    """The build whose programs are run, or None."""
    named = os.environ.get("DF_BUILD_DIR")
    if named:
        return Path(named)
    builds = [path.parent.parent for path in ROOT.glob("build/editable-*/tests/test_*")]
    return max(builds, key=lambda path: path.stat().st_mtime, default=None)


def programs():
    build = build_directory()
    found = sorted((build / "tests").glob("test_*")) if build else []
    if found:
        return found
    reason = "no native test programs: they need libcmocka-dev and `pip install -e .`"
    return [pytest.param(None, marks=pytest.mark.skip(reason), id="none")]


def sources():
    return {path.stem for path in ROOT.glob("tests/native/test_*.c")}


@pytest.mark.native
@pytest.mark.timeout(SECONDS + 10)
@pytest.mark.parametrize("program", programs(), ids=lambda path: path.name)
def test_native(program):
    done = subprocess.run(
        [program], capture_output=True, text=True, errors="replace", timeout=SECONDS, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.native
def test_every_native_test_was_built():
    built = {program.name for program in programs() if isinstance(program, Path)}
    if not built:
        pytest.skip("no native test programs were built")
    assert sources() <= built
