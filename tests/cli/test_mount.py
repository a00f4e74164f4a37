"""`directfuse mount` and `directfuse unmount`."""

import os
import select
import shutil
import signal
import stat
import subprocess

import pytest

import directfuse
from directfuse import _kernel, _paths

from .conftest import COMMAND, said_clearly

pytestmark = pytest.mark.kernel_fuse


def mounted(point):
    return _kernel.fuse_mount_at(str(point)) is not None


def test_mount_returns_when_mounted_and_unmount_takes_it_away(run, point):
    done = run("mount", f"memfs {point}")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert mounted(point)
    (point / "file").write_bytes(b"bytes")
    assert run("unmount", point).returncode == 0
    assert not mounted(point)
    assert not (point / "file").exists()


@pytest.mark.parametrize("options", [[], ["--foreground"]], ids=["behind", "foreground"])
def test_a_program_that_wants_a_password_reads_it(options, point, tmp_path):
    """As when it is called by itself: `echo password | encfs -S SOURCE MOUNTPOINT`."""
    source = tmp_path / "secret"
    source.mkdir()
    passthrough = _paths.program("passthrough")
    asks = script(tmp_path / "asks", f'read word; exec {passthrough} "$(pwd)/$word" "$1"')
    process = subprocess.Popen(
        [*COMMAND, "mount", *options, f"{asks} {point}"], stdin=subprocess.PIPE, cwd=tmp_path
    )
    process.stdin.write(b"secret\n")
    process.stdin.close()
    wait_until_mounted(point)
    (point / "file").write_text("words")
    subprocess.run([*COMMAND, "unmount", point], check=True)
    process.wait(20)
    assert (source / "file").read_text() == "words"


def test_a_relative_mountpoint_with_a_space(run, kernel, tmp_path):
    (tmp_path / "a b").mkdir()
    assert run("mount", "memfs 'a b'").returncode == 0
    try:
        assert mounted(tmp_path / "a b")
    finally:
        assert run("unmount", "a b").returncode == 0


def test_passthrough_serves_its_source(run, point, tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    (source / "file").write_text("words")
    assert run("mount", f"passthrough {source} {point}").returncode == 0
    assert (point / "file").read_text() == "words"
    assert run("unmount", point).returncode == 0


@pytest.mark.parametrize("options", [[], ["--foreground"]], ids=["behind", "foreground"])
def test_a_directory_over_a_file_is_refused(run, kernel, tmp_path, options):
    """The kernel mounts it, and answers EIO to everything."""
    (tmp_path / "file").write_text("words")
    done = run("mount", *options, f"memfs {tmp_path}/file")
    assert done.returncode == 125 and said_clearly(done)
    assert "is a file" in done.stderr
    assert not mounted(tmp_path / "file")
    assert (tmp_path / "file").read_text() == "words"


def test_a_second_mount_on_top_is_refused(run, point):
    assert run("mount", f"memfs {point}").returncode == 0
    again = run("mount", f"memfs {point}")
    assert again.returncode == 125
    assert said_clearly(again)
    assert "mounted there already" in again.stderr
    assert run("unmount", point).returncode == 0
    assert not mounted(point)


def test_a_busy_mount_is_kept_unless_lazy(run, point):
    assert run("mount", f"memfs {point}").returncode == 0
    with open(point / "held", "w"):
        busy = run("unmount", point)
        assert busy.returncode == 125
        assert said_clearly(busy)
        assert "--lazy" in busy.stderr
        assert mounted(point)
        assert run("unmount", "--lazy", point).returncode == 0
        assert not mounted(point)


def test_a_failing_program_gives_its_words_and_status(run, kernel, tmp_path):
    done = run("mount", f"memfs {tmp_path}/missing")
    assert done.returncode not in (0, 125)
    assert said_clearly(done)
    assert "missing" in done.stderr


def test_what_does_without_dev_fuse_is_named(without_fuse, tmp_path):
    command = [*without_fuse, *COMMAND, "mount", f"memfs {tmp_path}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=50)
    assert done.returncode == 1 and "memfs ended with status 1" in done.stderr
    assert "/dev/fuse cannot be opened here; `directfuse run" in done.stderr


@pytest.mark.parametrize(
    ("command", "status", "words"),
    [
        ("no-such-file-system /x", 127, "no-such-file-system"),
        ("./plain.txt /x", 126, "not an executable"),
        ("memfs 'x", 125, "quotation"),
        ("", 125, "empty"),
        ("true /x", 125, "mounted nothing"),
        ("false /x", 1, "status 1"),
    ],
)
def test_what_cannot_be_mounted(run, tmp_path, command, status, words):
    (tmp_path / "plain.txt").write_text("text")
    done = run("mount", command)
    assert done.returncode == status
    assert said_clearly(done)
    assert words in done.stderr


def test_a_shared_object_is_refused_and_not_started(run, point, tmp_path):
    """gcc -shared makes it executable."""
    plugin = tmp_path / "memfs.so"
    shutil.copy(_paths.plugin("memfs"), plugin)
    plugin.chmod(0o755)
    done = run("mount", f"{plugin} {point}")
    assert done.returncode == 126
    assert "is a shared object" in done.stderr and "without -shared" in done.stderr


@pytest.mark.parametrize("name", ["no-such-file-system", "./no-such-plugin.so"])
def test_what_is_not_there_is_said_as_in_python(run, name):
    with pytest.raises(directfuse.MountError) as caught:
        directfuse.mount([name, "/x"])
    words = caught.value.strerror.replace(", fsspec)", ")")  # which is for Python alone
    assert f"{name}: {words}" in run("mount", f"{name} /x").stderr.replace("\n", " ")


def script(path, body):
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_a_program_that_never_mounts_is_ended(run, tmp_path):
    pidfile = tmp_path / "pid"
    slow = script(tmp_path / "slow", f"echo $$ > {pidfile}; echo waiting; exec sleep 1000")
    done = run("mount", "--timeout", "0.5", f"{slow} /x")
    assert done.returncode == 125
    assert "waiting" in done.stderr
    assert not os.path.exists(f"/proc/{pidfile.read_text().strip()}")


@pytest.mark.parametrize(
    "number, words",
    [(signal.SIGABRT, "signal 6 (Aborted)"), (40, "signal 40 (Real-time signal 6)")],
)
def test_a_program_that_a_signal_kills_is_told(run, tmp_path, number, words):
    done = run("mount", f"{script(tmp_path / 'killed', f'kill -{number} $$')} /x")
    assert done.returncode == 125 and f"killed was killed by {words}" in done.stderr


def test_a_background_process_that_never_mounts_is_ended(run, tmp_path):
    pidfile = tmp_path / "pid"
    slow = script(
        tmp_path / "slow", f"setsid sh -c 'echo $$ > {pidfile}; exec sleep 1000' & sleep 0.2"
    )
    done = run("mount", "--timeout", "1", f"{slow} /x")
    assert done.returncode == 125
    assert not os.path.exists(f"/proc/{pidfile.read_text().strip()}")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_foreground_stays_until_a_signal_and_unmounts(point, number):
    process = subprocess.Popen(
        [*COMMAND, "mount", "-f", f"memfs {point}"],
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),  # a shell's background ignores it
    )
    try:
        wait_until_mounted(point)
        assert process.poll() is None
        process.send_signal(number)
        process.communicate(timeout=20)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == -number
    assert not mounted(point)


def test_foreground_ends_when_somebody_unmounts(run, point):
    process = subprocess.Popen([*COMMAND, "mount", "-f", f"memfs {point}"], stderr=subprocess.PIPE)
    try:
        wait_until_mounted(point)
        assert run("unmount", point).returncode == 0
        process.communicate(timeout=20)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0


def wait_until_mounted(point):
    """Sleeps on the kernel's word: mountinfo is readable (POLLPRI) when the table changes."""
    with open("/proc/self/mountinfo") as table:
        poll = select.poll()
        poll.register(table, select.POLLPRI)
        while not mounted(point):
            assert poll.poll(20_000), "not mounted within 20 s"


@pytest.mark.parametrize(
    ("place", "words"),
    [("plain", "nothing is mounted"), ("/proc", "not FUSE"), ("none", "nothing")],
)
def test_unmount_of_what_is_no_fuse_mount(run, tmp_path, place, words):
    (tmp_path / "plain").mkdir()
    done = run("unmount", place)
    assert done.returncode == 125
    assert said_clearly(done)
    assert words in done.stderr
