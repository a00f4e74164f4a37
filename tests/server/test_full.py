"""A machine that has no shared memory left: calls go on with what there is, nothing gets SIGBUS."""

import concurrent.futures
import contextlib
import errno
import logging
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from building import build

import directfuse

from .test_lives import in_fork

SOURCES = Path(__file__).with_name("sources")
MIB = 1 << 20
FIXED = 6 * MIB  # what a server takes at its start, and not much more


@pytest.fixture(scope="session")
def preloaded(tmp_path_factory):
    return build(
        SOURCES / "bounded_memory.c",
        tmp_path_factory.mktemp("bounded") / "bounded.so",
        "-shared",
        "-fPIC",
    )


@pytest.fixture
def memory(preloaded, tmp_path, monkeypatch):
    """A function: servers started from now on have so many bytes, all together.

    Of a file system that is mounted nowhere any more, but open here: nothing of it is left when
    this process ends, however it does."""
    where = tmp_path / "memory"
    where.mkdir()
    with contextlib.ExitStack() as ends:

        def bound(size):
            command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", where]
            if subprocess.run(command, capture_output=True).returncode != 0:
                pytest.skip("needs a file system of bounded size")
            fd = os.open(where, os.O_PATH | os.O_DIRECTORY)
            ends.callback(os.close, fd)
            subprocess.run(["umount", "-l", where], check=True)
            monkeypatch.setenv("DF_TEST_MEMORY", f"/proc/{os.getpid()}/fd/{fd}")
            monkeypatch.setenv("LD_PRELOAD", preloaded)

        yield bound


def mounted(tmp_path):
    return directfuse.mount(["memfs", str(tmp_path / "mnt")], placement="server")


def test_signals_do_not_keep_a_server_from_its_memory(tmp_path, monkeypatch):
    path = build(SOURCES / "interrupted_memory.c", tmp_path / "interrupted.so", "-shared", "-fPIC")
    monkeypatch.setenv("LD_PRELOAD", path)
    with mounted(tmp_path) as mount:
        assert directfuse.listdir(mount.mountpoint) == []


def used_up(mount):
    """Reads and writes more than there is memory for; all is as on any file system."""
    path = f"{mount.mountpoint}/large"
    data = os.urandom(MIB) * 4
    fd = directfuse.os_open(path, os.O_RDWR | os.O_CREAT)
    for at in range(0, len(data), MIB):
        assert directfuse.pwrite(fd, data[at : at + MIB], at) == MIB
    for size in (4096, 100_000, MIB, 4 * MIB):
        for _ in range(3):
            got = b"".join(directfuse.pread(fd, size, at) for at in range(0, len(data), size))
            assert got == data
    directfuse.close(fd)


def test_calls_go_on_when_there_is_no_more(memory, tmp_path, caplog):
    memory(FIXED + 2 * MIB)
    with mounted(tmp_path) as mount, caplog.at_level(logging.ERROR, "directfuse"):
        used_up(mount)
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            list(pool.map(lambda _: used_up_by_one(mount), range(64)))
        assert in_fork(lambda: used_up(mount)) == 0
        before = mount.stats().hits
        for _ in range(100):
            directfuse.stat(f"{mount.mountpoint}/large")
        assert mount.stats().hits - before >= 99  # what there is goes on to be used
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 1 and "no shared memory left" in lines[0]


def used_up_by_one(mount):
    fd = directfuse.os_open(f"{mount.mountpoint}/large", os.O_RDONLY)
    assert len(directfuse.pread(fd, MIB, 0)) == MIB
    assert "large" in directfuse.listdir(mount.mountpoint)
    directfuse.close(fd)


def test_files_that_there_is_no_memory_for_are_not_opened(memory, tmp_path):
    memory(FIXED + 2 * MIB)
    with mounted(tmp_path) as mount:
        used_up(mount)
        files = []
        with pytest.raises(OSError) as caught:
            files.extend(
                directfuse.os_open(f"{mount.mountpoint}/large", os.O_RDONLY) for _ in range(20000)
            )
        assert caught.value.errno == errno.ENFILE
        for fd in files:
            directfuse.close(fd)
        with directfuse.open(f"{mount.mountpoint}/large", "rb") as file:
            assert len(file.read(10)) == 10


def test_without_memory_for_a_cache_there_is_none(memory, tmp_path):
    memory(3 * MIB // 2)
    with mounted(tmp_path) as mount:
        used_up(mount)
        assert mount.stats().hits == 0


def test_answers_are_known_as_far_as_there_is_memory(memory, tmp_path):
    memory(FIXED)
    with mounted(tmp_path) as mount:
        paths = [f"{mount.mountpoint}/{number}" for number in range(20000)]
        assert not any(directfuse.path.exists(path) for path in paths)
        before = mount.stats().hits
        assert not any(directfuse.path.exists(path) for path in paths)
        assert 0 < mount.stats().hits - before < len(paths)


def test_a_run_says_it_once(memory, tmp_path):
    memory(FIXED + 2 * MIB)
    program = (
        "dd if=/dev/urandom of=x bs=1M count=4; for i in 1 2 3 4; do cat x; done | cksum; sleep 1.5"
    )
    command = [sys.executable, "-m", "directfuse", "run", "-m", f"memfs {tmp_path}/mnt", "--"]
    command += ["sh", "-c", f"cd {tmp_path}/mnt && {program}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stdout.split()[1] == str(16 * MIB)
    assert done.stderr.count("no shared memory left") == 1


@pytest.mark.parametrize("hard", [False, True])
def test_a_limit_of_the_size_of_files_kills_no_server(hard):
    code = "import directfuse; directfuse.mount('memfs /mnt-limited', placement='server').unmount()"
    limits = (16 * MIB, 16 * MIB if hard else resource.RLIM_INFINITY)
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limits),
    )
    assert (done.returncode == 0) == (not hard), done.stderr
    assert not hard or "Errno 27" in done.stderr  # EFBIG


def test_a_server_that_has_no_memory_at_all_is_an_error(memory, tmp_path):
    memory(MIB // 2)
    with pytest.raises(OSError) as caught:
        mounted(tmp_path)
    assert caught.value.errno in (errno.ENOSPC, errno.ENOMEM)
