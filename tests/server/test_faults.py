"""Processes killed at any instant: what they leave, and that the others go on."""

import contextlib
import errno
import fcntl
import os
import signal
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import directfuse

from .built import built
from .forks import begin_fork, ended, expect, in_fork
from .test_lives import _unmounts, point, servers, stop, the_server, until  # noqa: F401

KILLS = [25, pytest.param(1000, marks=pytest.mark.sweep)]


def busy_client(point, ready):  # noqa: F811
    """Everything that a server keeps something for, again and again."""
    path = f"{point}/{os.getpid()}"
    os.write(ready, b"x")
    while True:
        fd = directfuse.os_open(path, os.O_CREAT | os.O_RDWR)
        directfuse.lockf(fd, fcntl.LOCK_EX)
        directfuse.pwrite(fd, b"x" * 5000, 0)
        directfuse.unlink(path)
        shared = directfuse.os_open(f"{point}/shared", os.O_RDWR)
        directfuse.flock(shared, fcntl.LOCK_EX)
        directfuse.pread(shared, 100, 0)
        directfuse.listdir(point)
        directfuse.close(shared)
        directfuse.close(fd)


def killed_after(microseconds, point):  # noqa: F811
    read_end, write_end = os.pipe()
    pid = begin_fork(lambda: busy_client(point, write_end))
    os.close(write_end)
    os.read(read_end, 1)
    os.close(read_end)
    limit = time.perf_counter_ns() + microseconds * 1000
    while time.perf_counter_ns() < limit:
        pass
    os.kill(pid, signal.SIGKILL)
    assert ended(pid) == -signal.SIGKILL


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kills", KILLS)
def test_killed_clients_leave_nothing(point, kills):  # noqa: F811
    with directfuse.mount(["memfs", point], placement="server"):
        directfuse.close(directfuse.os_open(f"{point}/shared", os.O_CREAT | os.O_RDWR))
        for number in range(kills):
            killed_after(number * 7 % 701, point)
        fd = directfuse.os_open(f"{point}/shared", os.O_RDWR)
        directfuse.flock(fd, fcntl.LOCK_EX)  # the last one's is released
        directfuse.close(fd)
        until(lambda: _unmounts(point), 20)
    until(lambda: not servers())


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kills", KILLS)
def test_a_client_killed_while_it_moves_a_shared_position(point, kills):  # noqa: F811
    """The lock of the position is its parent's again."""
    with directfuse.mount(["memfs", point], placement="server"):
        fd = directfuse.os_open(f"{point}/shared", os.O_CREAT | os.O_RDWR)
        ready, go = os.pipe()

        def move():
            os.write(go, b"x")
            while True:
                directfuse.write(fd, b"x" * 10)
                directfuse.lseek(fd, 0, os.SEEK_SET)

        for number in range(kills):
            pid = begin_fork(move)
            os.read(ready, 1)
            limit = time.perf_counter_ns() + number * 7 % 701 * 1000
            while time.perf_counter_ns() < limit:
                directfuse.write(fd, b"y" * 10)
            os.kill(pid, signal.SIGKILL)
            assert ended(pid) == -signal.SIGKILL
            directfuse.write(fd, b"y" * 10)
        os.close(ready)
        os.close(go)
        directfuse.close(fd)
        until(lambda: _unmounts(point), 20)


def _is_locked(fd):
    wanted = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    kind, *_ = struct.unpack("hhqqi4x", directfuse.fcntl(fd, fcntl.F_GETLK, wanted))
    return kind != fcntl.F_UNLCK


def test_a_process_killed_while_it_gets_a_lock_does_not_keep_it(point, tmp_path_factory):  # noqa: F811
    """Its files are closed before the file system gives the lock."""
    with directfuse.mount([built("late_locker", tmp_path_factory), point], placement="server"):
        file = directfuse.os_open(f"{point}/f", os.O_RDWR)
        pid = begin_fork(lambda: directfuse.lockf(file, fcntl.LOCK_EX))
        for moment in "begun", "unlocked", "go", "given":
            directfuse.close(directfuse.os_open(f"{point}/{moment}", os.O_RDONLY))
            if moment == "begun":
                os.kill(pid, signal.SIGKILL)
                assert ended(pid) == -signal.SIGKILL
        until(lambda: not _is_locked(file), 20)
        directfuse.close(file)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kills", [5, pytest.param(100, marks=pytest.mark.sweep)])
def test_a_server_that_is_killed_ends_every_call(point, kills):  # noqa: F811
    """Calls of other threads are in flight, at another instant each time."""
    for number in range(kills):
        mount = directfuse.mount(["memfs", point], placement="server")
        fd = directfuse.os_open(f"{point}/f", os.O_CREAT | os.O_RDWR)
        seen = []

        def work(fd=fd, seen=seen):
            try:
                while True:
                    directfuse.pwrite(fd, b"x" * 4000, 0)
            except OSError as error:
                seen.append(error.errno)

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        limit = time.perf_counter_ns() + number * 13_000
        while time.perf_counter_ns() < limit:
            pass
        server = the_server()
        os.kill(server, signal.SIGKILL)
        for thread in threads:
            thread.join(20)
        assert seen == [errno.ENOTCONN] * 3
        directfuse.close(fd)
        mount.unmount()
        until(lambda: not servers())


def _sleeps(pid):
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "S"


def test_a_server_that_is_told_to_end_waits_for_no_lock(point):  # noqa: F811
    """Those who do find it gone: it is no signal of theirs that ends their wait."""
    mount = directfuse.mount(["memfs", point], placement="server")
    fd = directfuse.os_open(f"{point}/f", os.O_CREAT | os.O_RDWR)
    directfuse.lockf(fd, fcntl.LOCK_EX)

    def wait():
        with pytest.raises(OSError) as caught:
            directfuse.lockf(fd, fcntl.LOCK_EX)
        expect(caught.value.errno, errno.ENOTCONN)

    waiting = [begin_fork(wait) for _ in range(4)]
    until(lambda: all(map(_sleeps, waiting)))
    os.kill(the_server(), signal.SIGTERM)
    assert [ended(pid) for pid in waiting] == [0] * 4
    until(lambda: not servers(), 20)
    with pytest.raises(OSError):
        directfuse.close(fd)
    mount.unmount()


def answers(point):  # noqa: F811
    try:
        return directfuse.listdir(point) is not None
    except TimeoutError:
        return False


def test_a_server_that_hangs_is_waited_for_as_long_as_asked(point):  # noqa: F811
    with directfuse.mount(["memfs", point], placement="server", call_timeout=1):
        server = the_server()
        stop(server)
        try:
            with pytest.raises(TimeoutError):
                directfuse.mkdir(f"{point}/late")
        finally:
            os.kill(server, signal.SIGCONT)
        until(lambda: answers(point))
        directfuse.mkdir(f"{point}/in-time")
    with pytest.raises(TypeError, match="server"):
        directfuse.mount(["memfs", point], call_timeout=1)


@contextlib.contextmanager
def continued_late(server):
    """Of a server that is stopped. Who waits for it may hold the GIL, so this is done outside."""
    words = f"import os, time; time.sleep(40); os.kill({server}, {signal.SIGCONT})"
    with subprocess.Popen([sys.executable, "-c", words]) as late:
        yield
        assert late.poll() is None
        late.kill()


def test_a_fork_does_not_wait_for_a_server_that_is_stopped(point):  # noqa: F811
    """All threads wait for a fork, whatever they use. The child has what was open, no more."""
    with directfuse.mount(["memfs", point], placement="server"):
        server = the_server()
        file = directfuse.os_open(f"{point}/f", os.O_CREAT | os.O_RDWR)
        directfuse.write(file, b"text")

        def child():
            os.kill(server, signal.SIGCONT)
            expect(directfuse.pread(file, 9, 0), b"text")
            with pytest.raises(OSError) as caught:
                directfuse.open(f"{point}/f")
            expect(caught.value.errno, errno.ENFILE)

        stop(server)
        with continued_late(server):
            assert in_fork(child) == 0
        directfuse.close(file)
