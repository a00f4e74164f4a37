"""A session of the tests that is killed leaves nothing for long."""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

import pytest
from conformance.leftovers import hold, remove_leftovers
from conformance.mounts import memory_directory, mounts_below

#: A session that says where its file system is, and waits to be killed.
SESSION = """
import sys
sys.path.insert(0, sys.argv[1])
from conformance.routes import ROUTES, Unavailable
try:
    with ROUTES[sys.argv[2]](sys.argv[3] or None, readonly=True) as route:
        print(route.area, flush=True)
        sys.stdin.read()
except Unavailable:
    print("unavailable", flush=True)
"""


def processes_of(area):
    """Command lines in which the directory is named: the server of what is mounted there."""
    for entry in pathlib.Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and area.encode() in (entry / "cmdline").read_bytes():
                yield entry.name


@pytest.mark.timeout(60)
@pytest.mark.parametrize("where", [("plain", ""), ("kernel", "memfs")], ids="-".join)
def test_what_a_killed_session_left_goes_with_the_next(where):
    tests = str(pathlib.Path(__file__).parents[1])
    python = [sys.executable, "-c", SESSION, tests, *where]
    with subprocess.Popen(python, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as one:
        area = one.stdout.readline().strip()
        if area == "unavailable":
            pytest.skip("nothing can be mounted here")
        remove_leftovers()
        assert mounts_below(area)
        one.kill()
    assert one.returncode == -signal.SIGKILL and os.path.exists(area)
    remove_leftovers()
    assert not mounts_below(area) and not os.path.exists(area)
    while list(processes_of(area)):  # what is unmounted ends a moment later
        time.sleep(0.01)


def test_what_others_use_is_no_leftover():
    """Of a process that has another number there."""
    with tempfile.TemporaryDirectory(prefix="directfuse-test-0-", dir=memory_directory()) as area:
        held = hold(area)
        remove_leftovers()
        assert os.path.exists(area)
        os.close(held)
        remove_leftovers()
        assert not os.path.exists(area)
        os.mkdir(area)
