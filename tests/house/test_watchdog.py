"""A session of the tests comes to an end, whatever hangs in native code or is left behind."""

import pathlib
import subprocess
import sys

#: The hooks of this suite, with a watchdog whose patience is shorter, but for a busy machine too.
CONFTEST = """
import sys
sys.path.insert(0, {tests!r})
import conftest as suite
suite.GRACE_SECONDS = 7, 9
suite.END_SECONDS = 9
from conftest import *
"""

#: A signal does not end the wait for a mutex, and a PyDLL's call keeps the GIL: no handler runs.
HANGS = """
import ctypes

def test_fails():
    assert False

def test_hangs():
    mutex = ctypes.create_string_buffer(64)
    for _ in range(2):
        ctypes.PyDLL(None).pthread_mutex_lock(mutex)
"""

#: The interpreter waits for this thread at its end.
LEAVES = """
import threading

def test_leaves():
    threading.Thread(target=threading.Event().wait).start()
"""


def session(tmp_path, text):
    """A session of pytest with one module of tests, from its text."""
    tests = str(pathlib.Path(__file__).parents[1])
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "conftest.py").write_text(CONFTEST.format(tests=tests))
    (tmp_path / "below" / "test_it.py").write_text(text)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = kernel_fuse\n")
    options = ["-p", "no:cacheprovider", "--timeout=1", "--import-mode=importlib"]
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *options, tmp_path],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=40,
    )


def test_a_failure_leaves_the_watchdog_on(tmp_path):
    done = session(tmp_path, HANGS)
    assert done.returncode == 1
    assert "F" in done.stdout
    assert "Timeout (0:00:10)!" in done.stderr and "in test_hangs" in done.stderr


def test_the_end_of_a_session_is_watched(tmp_path):
    done = session(tmp_path, LEAVES)
    assert done.returncode == 1
    assert "1 passed" in done.stdout, done.stderr
    assert "Timeout (0:00:09)!" in done.stderr and "in _shutdown" in done.stderr
