"""`directfuse bench` where something is missing or breaks: the rest runs, what is missing is named,
and nothing is left behind.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conformance.leftovers import is_held

from directfuse import _kernel
from directfuse._bench.worker import Refused, Worker
from directfuse._paths import bench_helper, plugin, program
from directfuse._swept import swept_directory

from .conftest import COMMAND

SMALL = ("bench", "--backend=memfs", "--only=fstat", "--no-python", "--json")


@pytest.fixture
def area(tmp_path):
    """A directory for the benchmark's files; empty again at the end, without a mount or process."""
    path = tmp_path / "area"
    path.mkdir()
    yield path
    assert list(path.iterdir()) == []
    assert not [mount for mount in _kernel.mounts() if mount.point.startswith(str(path))]
    deadline = time.monotonic() + 10  # a mount server ends by itself, a moment later
    while left := processes_at(path):
        assert time.monotonic() < deadline, left
        time.sleep(0.02)


def processes_at(path):
    """{pid: command line} of those that name the directory."""
    found = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{name}/cmdline", "rb") as file:
            words = file.read()
            if os.fsencode(path) in words and int(name) != os.getpid():
                found[int(name)] = words
    return found


def results_of(command, **how):
    """What a bench that prints JSON and ends well says."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=50, **how)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def is_run(words, name):
    return words.split(b"\0")[0].endswith(name)


def start(area, *words):
    """The command, running; SIGINT is as a terminal's."""
    return subprocess.Popen(
        [sys.executable, "-m", "directfuse", *words, f"--directory={area}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def wait_for(condition, process):
    deadline = time.monotonic() + 40
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)


def killing(process, area, name):
    """Kills each process of that name that appears, until the command ends; what it printed."""
    killed = []
    while process.poll() is None:
        for pid, words in processes_at(area).items():
            if is_run(words, name):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    killed.append(pid)
        time.sleep(0.02)
    assert killed
    return process.communicate(timeout=10)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--backend", "nonesuch"], "nonesuch"),
        (["--backend", "nonesuch:ro"], "nonesuch:"),
        (["--only", "nonesuch"], "nonesuch"),
        (["--threads", "many"], "many"),
        (["--processes", "0"], "--processes 0"),
        (["nonesuch /m"], "nonesuch"),
        (["os:nonesuch /m"], "is a Python file system"),
        (["--budget", "nan"], "nan is no number"),
        (
            ["--backend=memfs:nonesuch", "--route=inline", "--only=fstat", "--no-python"],
            "Error: memfs:nonesuch: nothing was measured",
        ),
        (["--report", "/proc/nonesuch"], "Error: --report /proc/nonesuch: No such file"),
    ],
)
def test_what_is_not_there(run, arguments, words):
    done = run("bench", *arguments)
    assert done.returncode == 125
    assert words in done.stderr


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("no-such-file-system /x", "Error: no-such-file-system: neither a built-in"),
        ("memfs 'x", 'Error: cannot split "memfs \'x" into words: No closing quotation'),
    ],
)
def test_a_wrong_command_line_is_answered_as_by_other_commands(run, line, words):
    done = run("bench", line)
    assert done.returncode == 125 and done.stderr.startswith(words), done.stderr


@pytest.mark.parametrize("text", ["#!/bin/sh", "{}", '{"layout": 1, "subjects": []}'])
def test_compared_with_what_are_no_results(run, tmp_path, text):
    (tmp_path / "old.json").write_text(text)
    done = run("bench", "--compare", tmp_path / "old.json")
    assert done.returncode == 125
    assert "results of" in done.stderr


def test_without_fio(run, area, tmp_path):
    (tmp_path / "bin").mkdir()
    for name in ("sh", "env"):
        (tmp_path / "bin" / name).symlink_to(f"/bin/{name}")
    words = (*SMALL, "--fio", "--programs", "--route=inline", "--budget=2", f"--directory={area}")
    done = run(*words, env={**os.environ, "PATH": str(tmp_path / "bin")})
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)
    assert results["subjects"][0]["rows"]
    notes = "\n".join(results["notes"])
    assert "fio is not installed (Debian: apt install fio)" in notes


def test_without_rights_and_dev_fuse(area, without_fuse):
    results = results_of([*without_fuse, *COMMAND, *SMALL, "--budget=3", f"--directory={area}"])
    subject = results["subjects"][0]
    assert {"plain directory", "inline", "inline, Python", "server", "run"} <= set(subject["proof"])
    notes = "\n".join(results["notes"])
    for route in ("kernel FUSE", "kernel FUSE cached"):
        assert f"memfs, {route}: left out: /dev/fuse cannot be opened" in notes
        assert route not in subject["proof"]


#: Mounts the disk $0, runs a command and tells what it leaves there: in a mount namespace, which
#: ends with it, however it does.
_DISK = (
    'mount -t tmpfs -o size=2m full "$0" && "$@"; status=$?; ls -A "$0" >"$0.left"; exit $status'
)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a tmpfs needs root")
def test_a_full_disk(tmp_path):
    """2 MiB hold no route's files: the plain directory is named, memfs goes on."""
    disk = tmp_path / "disk"
    disk.mkdir()
    words = ("--route=plain directory", "--route=inline", f"--directory={disk}", "--budget=2")
    inside = ["unshare", "--mount", "sh", "-c", _DISK, disk]
    results = results_of([*inside, *COMMAND, *SMALL, *words], cwd=tmp_path)
    assert list(results["subjects"][0]["rows"][0]["routes"]) == ["inline"]
    notes = "\n".join(results["notes"])
    assert "plain directory: left out: " in notes and "No space left on device" in notes
    assert (tmp_path / "disk.left").read_text() == ""


def test_a_report_on_a_full_disk(run, tmp_path):
    (tmp_path / "report").symlink_to("/dev/full")
    words = ("bench", "--backend=memfs", "--only=fstat", "--route=inline", "--no-python")
    done = run(*words, "--budget=1", "--report", tmp_path / "file/report")
    assert done.returncode == 0 and (tmp_path / "file/report/results.json").exists()
    (tmp_path / "file/report/results.json").unlink()
    (tmp_path / "file/report/results.json").symlink_to("/dev/full")
    done = run(*words, "--budget=1", "--report", tmp_path / "file/report")
    assert done.returncode == 125
    assert "No space left on device" in done.stderr


@pytest.mark.kernel_fuse
@pytest.mark.parametrize("victim", ["kernel FUSE cached", "server"])
def test_a_killed_daemon(kernel, area, victim):
    """The other routes go on, and the results say which rows were lost, and why."""
    words = ("--route=inline", f"--route={victim}", "--budget=6", "--only=stat*", "--only=open*")
    process = start(area, *SMALL, *words)
    name = b"bin/memfs" if victim != "server" else b"directfuse-server"
    out, err = killing(process, area, name)
    assert process.returncode == 0, err
    results = json.loads(out)
    assert all("inline" in row["routes"] for row in results["subjects"][0]["rows"])
    assert any(f"memfs, {victim}: left out: " in note for note in results["notes"]), results


@pytest.mark.sweep
@pytest.mark.kernel_fuse
@pytest.mark.timeout(120)
def test_a_daemon_killed_while_programs_run(kernel, area):
    """Programs go on in the plain directory, and each row says that the mount is missing."""
    routes = ("--route=plain directory", "--route=kernel FUSE cached")
    process = start(area, *SMALL, "--programs", *routes, "--budget=10")

    def programs_run():
        points = [m.point for m in _kernel.mounts() if m.point.startswith(str(area))]
        return any("programs-mount" in point for point in points)

    wait_for(programs_run, process)
    out, err = killing(process, area, b"bin/memfs")
    assert process.returncode == 0, err
    results = json.loads(out)
    assert any("kernel FUSE cached: left out: " in note for note in results["notes"])
    assert results["programs"]["memfs"][-1]["routes"].keys() == {"plain directory"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("part", ["--route=run", "--programs"])
def test_interrupted_in_the_middle(area, number, part):
    words = (*SMALL, "--route=inline", "--route=run", "--route=kernel FUSE", part, "--budget=60")
    process = start(area, *words)

    def measures():
        return any(is_run(words, b"df-bench") for words in processes_at(area).values())

    wait_for(measures, process)
    process.send_signal(number)
    out, err = process.communicate(timeout=40)
    assert process.returncode == -number, err
    assert "Traceback" not in err
    if number == signal.SIGINT:
        assert json.loads(out)["interrupted"]


def stopped_with_a_directory(area):
    """A benchmark that has made one more, which it holds. Stopped, so that it does not end before
    the test has looked."""
    before = {*area.iterdir()}
    process = start(area, *SMALL, "--route=inline", "--programs", "--budget=60")
    wait_for(lambda: any(is_held(path) for path in {*area.iterdir()} - before), process)
    process.send_signal(signal.SIGSTOP)
    return process


def test_what_a_killed_one_leaves_goes_with_the_next(area):
    """Not what one that runs needs, nor what is mounted there."""
    process, others = stopped_with_a_directory(area), stopped_with_a_directory(area)
    try:
        assert len({*area.iterdir()}) == 2
        process.kill()
        process.communicate()
        kept = [path for path in area.iterdir() if is_held(path)]
        with swept_directory("directfuse-bench.", str(area)) as base:
            assert {*area.iterdir()} == {*kept, Path(base)} and len(kept) == 1
        assert kept[0].exists()
    finally:
        others.send_signal(signal.SIGINT)
        others.send_signal(signal.SIGCONT)
        others.communicate(timeout=40)


def test_where_there_is_no_room_is_named(tmp_path):
    """A write that fails names no file, so it was said of "directfuse" that there is no space."""
    with (
        pytest.raises(OSError, match="No space") as caught,
        swept_directory("full-", str(tmp_path)) as base,
        open("/dev/full", "wb", buffering=0) as file,
    ):
        file.write(b"x")
    assert caught.value.filename == base


def test_what_is_mounted_in_what_is_left_is_not_removed_with_it(kernel, tmp_path):
    """A user's own file system: it is unmounted."""
    (tmp_path / "source").mkdir()
    (tmp_path / "source/precious").touch()
    point = tmp_path / "left-1/mnt"
    point.mkdir(parents=True)
    command = [str(program("passthrough")), str(tmp_path / "source"), str(point), "-f"]
    with _kernel.Program(command) as running:
        running.wait_mounted(10)
        with swept_directory("left-", str(tmp_path)):
            assert not point.parent.exists() and _kernel.mount_at(str(point)) is None
        running.wait_unmounted()
    assert (tmp_path / "source/precious").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["kernel:/nonexistent"], "/nonexistent: making files: No such file"),
        (["--lanes", "17", "kernel:/tmp"], "df-bench"),
        (["--mount", "nonesuch", "nonesuch", "/m", "--", "inline:/m"], "nonesuch"),
        (["--find", "kernel:/proc/self/fdinfo/nothing"], "no files found"),
    ],
)
def test_a_worker_that_cannot_begin_says_why(words, said):
    with pytest.raises(Refused, match=said), Worker([str(bench_helper()), *words]):
        pass


def test_what_others_do_in_its_directory_goes_on(tmp_path):
    """It is not the command line that makes a process the worker's."""
    other = subprocess.Popen(["sh", "-c", "read line; exit 7", tmp_path], stdin=subprocess.PIPE)
    with pytest.raises(Refused), Worker([str(bench_helper()), "--find", f"kernel:{tmp_path}"]):
        pass
    other.communicate(b"\n", timeout=20)
    assert other.returncode == 7


def test_a_worker_that_dies_says_how(tmp_path):
    with Worker([str(bench_helper()), f"kernel:{tmp_path}"]) as worker:
        assert worker.sample("fstat", 10)["ns"] > 0
        os.kill(worker.pid, signal.SIGKILL)
        with pytest.raises(Refused, match="signal 9 "):
            worker.sample("fstat", 10)


def test_a_file_system_that_hangs_is_left_out(monkeypatch):
    monkeypatch.setattr("directfuse._bench.worker.ANSWER_SECONDS", 0.3)
    mount = ["--mount", str(plugin("memfs")), "memfs", "/nowhere-hangs", "--"]
    worker = Worker([str(bench_helper()), *mount, "inline:/nowhere-hangs"])
    monkeypatch.setattr("directfuse._bench.worker.ANSWER_SECONDS", 20.0)
    with worker:
        monkeypatch.setattr("directfuse._bench.worker.ANSWER_SECONDS", 0.3)
        os.kill(worker.pid, signal.SIGSTOP)
        with pytest.raises(Refused, match="no answer"):
            worker.sample("fstat", 10)
    assert not os.path.exists(f"/proc/{worker.pid}")
