"""directfuse.attach: the mount that a command line has made, made once."""

import os
import pickle
import threading

import pytest

import directfuse
from directfuse import _attach


def test_it_mounts_once(tmp_path):
    command = ["memfs", str(tmp_path / "m")]
    first = directfuse.attach(command)
    try:
        assert directfuse.attach(command) is first
        assert directfuse.attach(f"memfs {tmp_path}/m") is first
        assert directfuse.attach("memfs", mountpoint=tmp_path / "m") is first
    finally:
        first.unmount()
    with directfuse.attach(command) as again:
        assert again is not first and again.mounted


def test_what_mount_made_is_found(tmp_path):
    with directfuse.mount(["memfs", tmp_path / "m"]) as mount:
        assert directfuse.attach(f"memfs {tmp_path}/m") is mount
        with pytest.raises(directfuse.MountError, match="mounted"):
            directfuse.attach(f"memfs -o size=1M {tmp_path}/m")


def test_threads_make_one(tmp_path):
    barrier = threading.Barrier(6, timeout=20)
    made = []

    def work():
        barrier.wait()
        made.append(directfuse.attach(f"memfs {tmp_path}/m"))

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({mount.id for mount in made}) == 1
    made[0].unmount()


def test_a_forked_child_finds_its_copy(tmp_path):
    with directfuse.attach(f"memfs {tmp_path}/m") as mount:
        with directfuse.open(f"{mount.mountpoint}/x", "w") as file:
            file.write("copied")
        child = os.fork()
        if child == 0:
            try:
                same = directfuse.attach(f"memfs {tmp_path}/m") is mount
                with directfuse.open(f"{mount.mountpoint}/x") as file:
                    os._exit(0 if same and file.read() == "copied" else 1)
            finally:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_errors_are_those_of_mount():
    with pytest.raises(directfuse.MountError, match="neither a built-in file system"):
        directfuse.attach("no-such-file-system /m")
    with pytest.raises(directfuse.MountError, match="empty"):
        directfuse.attach("")


@pytest.mark.parametrize(
    ("command", "what"),
    [
        ("memfs /none", "memfs"),
        ("'memfs' /none", "memfs"),
        (["memfs", "/none"], "memfs"),
        ("fsspec memory:// /none", "fsspec's memory://"),
        ("fsspec -o ro simplecache::memory://x /none", "fsspec's memory://"),
        ("fsspec zip://*::memory /none", "fsspec's memory://"),
    ],
)
def test_what_is_in_memory_alone_is_not_revived_elsewhere(command, what):
    with pytest.raises(pickle.UnpicklingError, match=f"^{what} keeps its files in the process"):
        _attach.revive(command)


def test_what_is_no_command_line_is_not_revived():
    with pytest.raises(pickle.UnpicklingError, match="No closing quotation"):
        _attach.revive("memfs '/m")
