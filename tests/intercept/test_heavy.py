"""Large programs in a mount, by each door: the same output and status as in a plain directory, and
nothing at the real path. CPython's own tests of files: none fails that passes in a plain one."""

import os
import shutil
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.conformance.leftovers import public_directory

from .conftest import ByEnvironment, Mounted, environment
from .heavy_scripts import HEAVY_SCRIPTS

pytestmark = [pytest.mark.sweep, pytest.mark.timeout(400)]

_DOORS = {"run": Mounted, "env": ByEnvironment}


@pytest.fixture
def public():
    with public_directory() as directory:
        yield directory


@pytest.fixture(params=_DOORS)
def door(request, public):
    return _DOORS[request.param](public)


def _in_plain(directory, *command):
    (directory / "plain").mkdir()
    return subprocess.run(
        command,
        cwd=directory / "plain",
        env=environment(),
        capture_output=True,
        check=False,
        timeout=200,
        stdin=subprocess.DEVNULL,
    )


def _is_there(name):
    return os.path.exists(name) if name.startswith("/") else shutil.which(name) is not None


@pytest.mark.parametrize("name", HEAVY_SCRIPTS)
def test_a_large_program_does_the_same_in_a_mount(public, door, name):
    needs, script = HEAVY_SCRIPTS[name]
    for one in needs:
        if not _is_there(one):
            pytest.skip(f"{one} is not installed")
    wanted = _in_plain(public, "/bin/sh", "-c", script)
    found = door("/bin/sh", "-c", script, timeout=200)
    assert found.seen() == (wanted.returncode, wanted.stdout, wanted.stderr)
    assert wanted.returncode == 0
    assert wanted.stdout
    assert not os.path.lexists(door.point)


# ---- CPython's own tests -------------------------------------------------------------------------

_SUITE = Path("/usr/lib/python3.11/test/test_os.py")  # Debian: libpython3.11-testsuite

_MODULES = (
    "test_os",
    "test_io",
    "test_posix",
    "test_mmap",
    "test_shutil",
    "test_pathlib",
    "test_tempfile",
    "test_zipfile",
    "test_subprocess",
    "test_fcntl",
)


def _verdicts(report):
    """Test -> passed, failure, error or skipped."""
    verdicts = {}
    for case in ET.parse(report).getroot().iter("testcase"):
        bad = [kind for kind in ("failure", "error", "skipped") if case.find(kind) is not None]
        verdicts[case.get("name")] = bad[0] if bad else "passed"
    return verdicts


def _suite(module, directory, report):
    words = ["/usr/bin/python3", "-m", "test", "--timeout", "120", "--junit-xml", str(report)]
    return ["env", f"TMPDIR={directory}", *words, module]


@pytest.mark.parametrize("module", _MODULES)
def test_a_test_of_cpython_that_passes_in_a_plain_directory_passes_in_a_mount(public, module):
    if not _SUITE.is_file():
        pytest.skip("no test suite of CPython. Debian: apt install libpython3.11-testsuite")
    mounted = Mounted(public)
    reports = [public / "plain.xml", public / "mount.xml"]
    _in_plain(public, *_suite(module, public / "plain", reports[0]))
    done = mounted(*_suite(module, mounted.point, reports[1]), timeout=200)
    wanted, found = (_verdicts(report) for report in reports)
    differs = {
        name: found.get(name)
        for name, verdict in wanted.items()
        if verdict == "passed" and found.get(name) != "passed"
    }
    assert not differs, done.out[-4000:].decode(errors="replace")
    assert "passed" in wanted.values()
    assert not os.path.lexists(mounted.point)
