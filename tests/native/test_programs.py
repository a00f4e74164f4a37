"""Runs each native test program as one test, from the newest build that made them.

An editable installation builds them; DF_BUILD_DIR names another build, a sanitized one say. CTest
knows the commands and their time-outs.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HOW = "native test programs need libcmocka-dev, ctest and `pip install -e '.[test]'`"


def build_directory():
    """The build whose programs are run, or None."""
    named = os.environ.get("DF_BUILD_DIR")
    if named:
        return Path(named)
    builds = ROOT.glob("build/editable-*/tests/native/CTestTestfile.cmake")
    newest = max(builds, key=lambda path: path.stat().st_mtime, default=None)
    return newest and newest.parents[2]


def ctest():
    """The ctest beside this Python (the [test] extra brings one), or the system's."""
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", "")])
    return shutil.which("ctest", path=path)


def listed():
    """What CTest knows: (name, command, properties) of each test."""
    build, program = build_directory(), ctest()
    if build is None or program is None:
        return []
    argv = [program, "--test-dir", build, "--show-only=json-v1"]
    known = json.loads(subprocess.run(argv, capture_output=True, check=True).stdout)
    return [
        (test["name"], test.get("command"), {p["name"]: p["value"] for p in test["properties"]})
        for test in known["tests"]
    ]


def cases():
    found = [
        pytest.param(
            command,
            properties,
            id=name,
            marks=pytest.mark.timeout(float(properties.get("TIMEOUT", 120)) + 10),
        )
        for name, command, properties in listed()
    ]
    return found or [pytest.param(None, None, id="none", marks=pytest.mark.skip(reason=HOW))]


@pytest.mark.native
@pytest.mark.parametrize(("command", "properties"), cases())
def test_native(command, properties):
    assert command, "was not built"
    done = subprocess.run(
        command,
        cwd=properties.get("WORKING_DIRECTORY"),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=float(properties.get("TIMEOUT", 120)),
        check=False,
    )
    if done.returncode != 0 and done.returncode == properties.get("SKIP_RETURN_CODE"):
        pytest.skip(done.stdout.strip().splitlines()[-1])
    assert done.returncode == 0, done.stdout


@pytest.mark.native
def test_every_native_test_is_known_to_ctest():
    names = {name for name, _, _ in listed()}
    if not names:
        pytest.skip(HOW)
    assert {path.stem for path in ROOT.glob("tests/native/test_*.c")} <= names
