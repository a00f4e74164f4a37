"""What `directfuse run` and its mount server leave when they are killed: nothing for long."""

import contextlib
import fcntl
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import needs
import pytest

from directfuse import _paths
from directfuse._mount_server import Report
from directfuse._run import Serving
from directfuse._shadow import Shadow

from .conftest import COMMAND, wait_until

pytestmark = needs.run


@pytest.fixture
def begin(tmp_path):
    """begin(SCRIPT): a run of memfs, in a process group of its own; its directory of placeholders;
    its server's id."""
    point = tmp_path / "m"
    started = []

    def call(script):
        words = [*COMMAND, "run", "-m", f"memfs {point}", "--", "/bin/sh", "-c"]
        run = subprocess.Popen(
            [*words, f"echo ready; {script}"], start_new_session=True, stdout=subprocess.PIPE
        )
        started.append(run)
        assert run.stdout.readline() == b"ready\n"
        return run, *server_of(point)

    yield call
    for run in started:
        run.kill()
        run.communicate()


def server_of(point):
    """Its shadow, which it is told of in its environment, and its id."""
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (path / "cmdline").read_bytes().split(b"\0")
            if words[0].endswith(b"directfuse-server") and os.fsencode(point) in words:
                told = (path / "environ").read_bytes().split(b"\0")
                named = [word for word in told if word.startswith(b"DIRECTFUSE_SHADOW=")]
                return Path(os.fsdecode(named[0].partition(b"=")[2])), int(path.name)
    raise LookupError(point)


def wait_for(path):
    return f"while [ ! -e {shlex.quote(str(path))} ]; do sleep 0.02; done; "


def test_programs_go_on_without_it_and_the_directory_goes_with_the_last(begin, tmp_path):
    go, result = tmp_path / "go", tmp_path / "result"
    script = wait_for(go) + f"echo written > {tmp_path}/m/f; cp {tmp_path}/m/f {result}"
    run, shadow, _ = begin(script)
    assert shadow.is_dir()
    run.kill()
    run.wait()
    go.touch()
    outer = shadow.parent
    wait_until(lambda: not list(outer.parent.glob(f"{outer.name}*")))
    assert result.read_text() == "written\n"


def test_what_is_left_of_run_and_server_goes_with_the_next_run(begin):
    run, shadow, server = begin("exec sleep 1000")
    other = Shadow()
    os.kill(server, signal.SIGKILL)
    os.killpg(run.pid, signal.SIGKILL)

    def is_removed():
        Shadow().remove()
        return not shadow.exists()

    wait_until(is_removed)
    assert other.path.is_dir()
    other.remove()
    assert not other.path.exists()


_MAPS = """
import mmap, os, sys, time

file, mapped, go, closed = sys.argv[1:]
with open(file, "w+b") as f:
    f.truncate(8192)
    with mmap.mmap(f.fileno(), 8192) as m:
        m[0] = 1
        open(mapped, "w").close()
        while not os.path.exists(go):
            time.sleep(0.02)
open(closed, "w").close()
while os.path.exists(go):
    time.sleep(0.02)
"""


def test_the_data_of_a_mapped_file_go_though_somebody_maps_another_at_its_close(begin, tmp_path):
    """Who maps one has the lock of the run."""
    steps = [tmp_path / name for name in ("mapped", "go", "closed")]
    mapped, go, closed = steps
    words = [sys.executable, "-S", "-c", _MAPS, tmp_path / "m" / "f", *steps]
    _, shadow, _ = begin("exec " + shlex.join(map(str, words)))
    wait_until(mapped.exists)
    with (shadow / "lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert len(list((shadow / "d").iterdir())) == 1
        go.touch()
        wait_until(closed.exists)
    wait_until(lambda: not list((shadow / "d").iterdir()))
    go.unlink()


def test_a_server_that_is_killed_as_the_last_program_ends_is_said(tmp_path):
    """Its programs are told of its end before the process is gone, and may be faster."""
    said = []
    for kill in (False, True):
        serving = Serving([[str(_paths.plugin("memfs")), str(tmp_path / "m")]])
        if kill:
            os.kill(server_of(tmp_path / "m")[1], signal.SIGKILL)
        serving.end(lambda: False, said.append)
        assert len(said) == kill
    how = "was killed, perhaps because memory ran out"
    assert said == [f"the mount server {how}: what was not written is lost"]


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("died\nmount /m\n", "perhaps not all was written"),
        ("died\n", "what was not written is lost"),
        ("mount /m\ncrash 11\n", "what was not written is lost"),
        ("", "what was not written is lost"),
    ],
)
def test_data_are_lost_for_certain_only_with_the_server(lines, words):
    """Not with a file system that has ended itself, perhaps in good order, if the server ended
    behind it; see native/server/process.h."""
    report = Report()
    os.write(report.fd, lines.encode())
    assert not report.has_unmounted
    assert report.cost() == words
    os.close(report.fd)
