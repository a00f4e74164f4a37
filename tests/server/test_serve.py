"""`directfuse serve`: a server with a name, and who joins it."""

import errno
import os
import signal
import socket
import subprocess
import sys

import pytest

import directfuse
from directfuse import _paths

from .test_lives import until


@pytest.fixture
def runtime(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path / "directfuse"


@pytest.fixture
def serve(runtime):
    started = []

    def start(command, name, *options):
        words = [sys.executable, "-m", "directfuse", "serve", command, "--name", name, *options]
        process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)


def listens(path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            return False
        return True


def test_processes_join_by_name_and_share(serve, runtime, tmp_path):
    point = tmp_path / "mnt"
    server = serve(f"memfs {point}", "shared")
    until(lambda: listens(runtime / "shared.socket"), 20)
    program = (
        "import directfuse\n"
        "with directfuse.mount('@shared') as m:\n"
        f"    directfuse.mkdir('{point}/made')\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=30)
    with directfuse.mount("@shared") as mount:
        assert mount.placement == "server" and mount.mountpoint == str(point)
        assert directfuse.listdir(point) == ["made"]
    with directfuse.mount("@shared"):  # leaving has not ended it
        assert directfuse.listdir(point) == ["made"]
    server.send_signal(signal.SIGTERM)
    server.communicate(timeout=20)
    assert not (runtime / "shared.socket").exists()


def test_a_program_that_cannot_be_loaded_is_served(serve, runtime, tmp_path):
    """As by placement="server" and `directfuse run`: our half of the helper is in the server."""
    program = tmp_path / "script"  # whose interpreter is no FUSE program
    program.write_text(f'#!/bin/sh\nexec {_paths.program("memfs")} "$@"\n')
    program.chmod(0o755)
    point = tmp_path / "mnt"
    server = serve(f"{program} {point}", "script")
    until(lambda: listens(runtime / "script.socket") or server.poll() is not None, 20)
    with directfuse.mount("@script") as mount:
        assert mount.placement == "server" and mount.mountpoint == str(point)
        directfuse.mkdir(point / "made")
    run = [sys.executable, "-m", "directfuse", "run", "-m", "@script", "--", "ls", str(point)]
    assert subprocess.check_output(run, text=True, timeout=30) == "made\n"


def test_a_name_is_taken_once_and_private(serve, runtime, tmp_path):
    serve(f"memfs {tmp_path}/mnt", "mine")
    until(lambda: listens(runtime / "mine.socket"), 20)
    assert runtime.stat().st_mode & 0o777 == 0o700
    second = serve(f"memfs {tmp_path}/mnt", "mine")
    _, said = second.communicate(timeout=20)
    assert second.returncode == 125 and "is running" in said


def test_what_cannot_be_mounted_says_why(serve, tmp_path):
    server = serve(f"memfs --nonsense {tmp_path}/mnt", "broken")
    _, said = server.communicate(timeout=20)
    assert server.returncode == 1 and "nonsense" in said


def test_an_unknown_name_and_wrong_words(runtime):
    with pytest.raises(directfuse.MountError) as caught:
        directfuse.mount("@nobody")
    assert caught.value.errno == errno.ENOENT and "directfuse serve" in str(caught.value)
    with pytest.raises(NotImplementedError, match="mount server"):
        directfuse.mount("@nobody", placement="inline")
    with pytest.raises(directfuse.MountError):
        directfuse.mount("@nobody /elsewhere")


def test_a_directory_of_others_is_refused(serve, runtime, tmp_path):
    runtime.mkdir()
    os.chmod(runtime, 0o777)
    server = serve(f"memfs {tmp_path}/mnt", "x")
    _, said = server.communicate(timeout=20)
    assert server.returncode == 125 and "only you" in said


@pytest.mark.parametrize(
    ("base", "words"), [("x" * 100, "too long"), ("missing/directory", "No such file")]
)
def test_where_no_socket_can_be_says_why(serve, runtime, tmp_path, monkeypatch, base, words):
    monkeypatch.setenv("XDG_RUNTIME_DIR", f"{tmp_path}/{base}")
    server = serve(f"memfs {tmp_path}/mnt", "x")
    _, said = server.communicate(timeout=20)
    assert server.returncode == 125 and words in said and "Traceback" not in said
