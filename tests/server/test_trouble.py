"""What is said when a server dies, its file system crashes, or it does not answer: one line."""

import errno
import logging
import os
import signal
import subprocess
import sys

import pytest

import directfuse

from .test_lives import point, servers, the_server, until  # noqa: F401


@pytest.fixture
def said(caplog):
    """Lines of the log; they come from the main thread, between two of its instructions."""
    caplog.set_level(logging.INFO, "directfuse")

    def lines():
        return [record.getMessage() for record in caplog.records if record.name == "directfuse"]

    return lines


def fails(call, code):
    with pytest.raises(OSError) as caught:
        call()
    assert caught.value.errno == code


def test_a_killed_server_is_said_once(point, said):  # noqa: F811
    mount = directfuse.mount(["memfs", point], placement="server")
    server = the_server()
    os.kill(server, signal.SIGKILL)
    until(lambda: not servers())
    for _ in range(3):
        fails(lambda: directfuse.listdir(point), errno.ENOTCONN)
    until(lambda: said())
    mount.unmount()
    assert len(said()) == 1
    assert f"{point}: its mount server (process {server}) was killed" in said()[0]


@pytest.mark.parametrize("options", [[], ["-o", "dies=recursion"]], ids=["wild", "full stack"])
def test_a_crash_of_the_file_system_is_said_by_its_name(point, moody, said, options):  # noqa: F811
    with directfuse.mount([moody, *options, point], placement="server"):
        assert directfuse.listdir(point)
        fd = directfuse.os_open(f"{point}/crash", os.O_RDONLY)
        fails(lambda: directfuse.read(fd, 1), errno.ENOTCONN)
        until(lambda: not servers())
        fails(lambda: directfuse.read(fd, 1), errno.ENOTCONN)
        directfuse.close(fd)
        until(lambda: said())
    assert len(said()) == 1
    assert "crashed in its file system (Segmentation fault)" in said()[0]


ENDS = pytest.mark.parametrize("dies, how", [("abort", "Aborted"), ("exit", "exit, status 3")])


@ENDS
def test_a_file_system_that_ends_itself_is_said_once(point, moody, said, dies, how):  # noqa: F811
    mount = directfuse.mount([moody, "-o", f"dies={dies}", point], placement="inline")
    fd = directfuse.os_open(f"{point}/crash", os.O_RDONLY)
    for _ in range(2):
        fails(lambda: directfuse.read(fd, 1), errno.EIO)
    directfuse.close(fd)
    until(lambda: said())
    mount.unmount()
    words = f"its file system has ended itself in the middle of a call ({how}): calls fail"
    assert said() == [f"{point}: {words}"]


@pytest.mark.parametrize("placement", ["inline", "server"])
def test_so_is_one_that_ends_itself_on_a_thread_of_its_own(point, moody, said, capfd, placement):  # noqa: F811
    mount = directfuse.mount([moody, "-o", "dies=thread", point], placement=placement)
    with directfuse.open(f"{point}/crash", "rb", buffering=0) as file:
        assert file.read(9) == b"crash"
    words = (
        f"{point}: its file system has ended itself on a thread of its own (Aborted): calls fail"
    )
    heard = capfd.readouterr().err.splitlines() if placement == "server" else said()
    assert heard == [f"directfuse: {words}" if placement == "server" else words]
    mount.unmount(lazy=True)


@ENDS
def test_behind_a_server_it_is_said_on_standard_error(point, moody, capfd, dies, how):  # noqa: F811
    with directfuse.mount([moody, "-o", f"dies={dies}", point], placement="server"):
        fd = directfuse.os_open(f"{point}/crash", os.O_RDONLY)
        fails(lambda: directfuse.read(fd, 1), errno.EIO)
        directfuse.close(fd)
    until(lambda: not servers())
    words = f"its file system has ended itself in the middle of a call ({how}): calls fail"
    assert capfd.readouterr().err == f"directfuse: {point}: {words}\n"


def test_the_end_of_a_helpers_program_is_said_once(point, moody, said):  # noqa: F811
    with directfuse.mount([moody, point], placement="helper"):
        fd = directfuse.os_open(f"{point}/crash", os.O_RDONLY)
        fails(lambda: directfuse.read(fd, 1), errno.ECONNABORTED)
        fails(lambda: directfuse.listdir(point), errno.ENOTCONN)
        fails(lambda: directfuse.close(fd), errno.ENOTCONN)
        until(lambda: said())
    assert len(said()) == 1
    assert said()[0].startswith(f"{point}: the program in its helper process has ended")


def test_a_server_that_does_not_answer_is_said_once(point, moody, said):  # noqa: F811
    with directfuse.mount([moody, point], placement="server", call_timeout=0.2) as mount:
        fd = directfuse.os_open(f"{point}/one", os.O_RDONLY)
        for _ in range(2):
            fails(lambda: directfuse.stat(f"{point}/sub/hang"), errno.ETIMEDOUT)
        directfuse._native.set_call_timeout(mount.id, 20_000)  # what follows is to be done
        assert directfuse.read(fd, 9) == b"one"  # others go on
        directfuse.close(fd)
        until(lambda: said())
        os.kill(the_server(), signal.SIGKILL)  # it would wait for its hanging call
        until(lambda: not servers())
    assert len(said()) == 1
    assert "has not answered within 0.2 s" in said()[0]


def test_a_server_that_is_told_to_end_is_no_crash(point, said):  # noqa: F811
    mount = directfuse.mount(["memfs", point], placement="server")
    os.kill(the_server(), signal.SIGTERM)
    until(lambda: not servers())
    fails(lambda: directfuse.listdir(point), errno.ENOTCONN)
    until(lambda: said())
    mount.unmount()
    assert "has ended" in said()[0]


def test_run_says_a_crash_at_once(moody, tmp_path):
    """Before the command has ended, which goes on."""
    script = f"cat {tmp_path}/mnt/crash; read line; cat {tmp_path}/mnt/one; echo $line"
    words = [sys.executable, "-m", "directfuse", "run", "-m", f"{moody} {tmp_path}/mnt", "--"]
    run = subprocess.Popen(
        [*words, "sh", "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    heard = []
    while not heard or not heard[-1].startswith("directfuse:"):
        heard.append(run.stderr.readline())
        assert heard[-1]
    assert "crashed in its file system (Segmentation fault)" in heard[-1]
    out, rest = run.communicate("still here\n", timeout=30)
    assert out == "still here\n" and run.returncode == 0
    assert "directfuse:" not in rest and "Input/output error" in rest
