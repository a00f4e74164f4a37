"""A mount server from its start to its end: who keeps it, who shares it, what it leaves behind."""

import errno
import fcntl
import os
import resource
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import directfuse

from .forks import begin_fork, ended, in_fork


def _is_server(entry, mark):
    """A process that ends has no words any more, but its files: others learn of its end by them,
    and by the thread that its life is with, which may end behind the first one."""
    command = (entry / "cmdline").read_bytes().split(b"\0")[0]
    if command:
        return command.endswith(b"directfuse-server") and mark in (entry / "environ").read_bytes()
    name, _, state = (entry / "stat").read_text().partition(" (")[2].rpartition(") ")
    ended = state[0] in "ZX" and len(os.listdir(entry / "task")) <= 1
    return name == "directfuse-serv" and not ended


def servers():
    """Process ids of the servers of this test, and of any that is just ending."""
    found = set()
    mark = f"DF_TEST_SERVER={os.environ['DF_TEST_SERVER']}\0".encode()
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and _is_server(entry, mark):
                found.add(int(entry.name))
        except OSError:
            continue
    return found


def until(condition, seconds=30):
    """Polls: there is no event for another user's process that is not a child. What is waited for
    needs the processor more than this does."""
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, "it did not come to pass"
        time.sleep(0.001)


def the_server():
    """Process id of the one server; another may just be ending."""
    until(lambda: len(servers()) == 1)
    return servers().pop()


def children(process):
    """Of its first thread: their numbers."""
    return set(map(int, Path(f"/proc/{process}/task/{process}/children").read_text().split()))


def _is_stopped(process):
    """SIGSTOP takes effect thread by thread, some time after kill(2) has returned."""
    tasks = Path(f"/proc/{process}/task").glob("*/stat")
    states = {status.read_text().rpartition(")")[2].split()[0] for status in tasks}
    return states == {"T"}


def stop(process):
    os.kill(process, signal.SIGSTOP)
    until(lambda: _is_stopped(process))


@pytest.fixture
def point(tmp_path):
    return str(tmp_path / "mnt")


def test_it_is_a_process_of_its_own_that_ends_at_unmount(point):
    with directfuse.mount(["memfs", point], placement="server") as mount:
        the_server()
        assert mount.placement == "server"
        assert mount.stats().trips == 0
        directfuse.mkdir(f"{point}/d")
        assert mount.stats().trips > 0
    until(lambda: not servers())


def test_a_failed_mount_brings_the_plugins_words(point):
    with pytest.raises(directfuse.MountError) as caught:
        directfuse.mount(["memfs", "--nonsense", point], placement="server")
    assert "nonsense" in str(caught.value)
    until(lambda: not servers())


def test_a_relative_mountpoint_is_the_callers(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with directfuse.mount("memfs here", placement="server") as mount:
        assert mount.mountpoint == str(tmp_path / "here")


def test_two_mounts_have_two_servers(point):
    with (
        directfuse.mount(["memfs", point + "1"], placement="server"),
        directfuse.mount(["memfs", point + "2"], placement="server"),
    ):
        directfuse.mkdir(f"{point}1/only-here")
        assert directfuse.listdir(f"{point}2") == []
        until(lambda: len(servers()) == 2)


def test_a_forked_child_shares_the_file_system(point):
    with directfuse.mount(["memfs", point], placement="server"):
        assert in_fork(lambda: directfuse.mkdir(f"{point}/made")) == 0
        assert directfuse.listdir(point) == ["made"]


def test_a_forked_child_shares_open_files(point):
    with directfuse.mount(["memfs", point], placement="server"):
        fd = directfuse.os_open(f"{point}/f", os.O_CREAT | os.O_RDWR)
        directfuse.unlink(f"{point}/f")
        assert in_fork(lambda: directfuse.pwrite(fd, b"child", 0)) == 0
        assert directfuse.pread(fd, 9, 0) == b"child"
        directfuse.close(fd)


def test_a_file_that_the_parent_closes_is_open_in_the_child(point):
    with directfuse.mount(["memfs", point], placement="server"):
        fd = directfuse.os_open(f"{point}/f", os.O_CREAT | os.O_RDWR)
        directfuse.pwrite(fd, b"bytes", 0)
        read_end, write_end = os.pipe()

        def child():
            os.read(read_end, 1)
            assert directfuse.pread(fd, 9, 0) == b"bytes"

        pid = begin_fork(child)
        directfuse.close(fd)
        with pytest.raises(directfuse.UnmountError) as busy:
            directfuse.unmount(point)
        assert busy.value.errno == errno.EBUSY
        os.write(write_end, b"x")
        assert ended(pid) == 0
        os.close(read_end)
        os.close(write_end)
        until(lambda: _unmounts(point))


def _unmounts(point):
    try:
        directfuse.unmount(point)
    except directfuse.UnmountError as error:
        assert error.errno == errno.EBUSY  # the server has not seen yet that the child is gone
        return False
    return True


def test_locks_of_processes_meet(point):
    def try_lock():
        fd = directfuse.os_open(f"{point}/f", os.O_RDWR)
        with pytest.raises(BlockingIOError):
            directfuse.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)

    with directfuse.mount(["memfs", point], placement="server"):
        fd = directfuse.os_open(f"{point}/f", os.O_CREAT | os.O_RDWR)
        directfuse.lockf(fd, fcntl.LOCK_EX)
        assert in_fork(try_lock) == 0
        directfuse.close(fd)


def test_a_child_that_unmounts_only_leaves(point):
    with directfuse.mount(["memfs", point], placement="server"):
        assert in_fork(lambda: directfuse.unmount(point)) == 0
        directfuse.mkdir(f"{point}/still-here")


def test_it_ends_with_its_last_process(point):
    program = (
        "import directfuse, os\n"
        f"directfuse.mount(['memfs', {point!r}], placement='server')\n"
        "os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=30)
    until(lambda: not servers())


def test_more_processes_have_files_than_one_of_them_may_have(point, tmp_path):
    """The descriptors that a process may have are not shared out among all that use the mount."""
    script = f"""if True:
        import os
        (opened, tell), (over, end) = os.pipe(), os.pipe()
        for number in range(100):
            if os.fork() == 0:
                os.close(end)
                os.open(f"{point}/{{number}}", os.O_RDWR | os.O_CREAT)
                os.write(tell, b"x")
                os._exit(len(os.read(over, 1)))
        os.close(tell)
        os.close(end)
        assert sum(len(os.read(opened, 1)) for _ in range(100)) == 100
    """
    run = [sys.executable, "-m", "directfuse", "run", "-m", f"memfs {point}", "--"]
    limited = ["sh", "-c", 'ulimit -Sn 64 && exec "$@"', "sh"]
    done = subprocess.run([*limited, *run, sys.executable, "-c", script], timeout=60)
    assert done.returncode == 0


def test_a_lazy_unmount_ends_with_the_last_file(point):
    mount = directfuse.mount(["memfs", point], placement="server")
    fd = directfuse.os_open(f"{point}/f", os.O_CREAT | os.O_RDWR)
    mount.unmount(lazy=True)
    assert not directfuse.path.exists(f"{point}/f")
    assert directfuse.pwrite(fd, b"late", 0) == 4
    assert servers()
    directfuse.close(fd)
    until(lambda: not servers())


def test_a_lazy_unmount_holds_though_an_open_was_under_way(moody, point, tmp_path):
    """Whoever has not asked for it itself looks at what the server says."""
    hold, mark = tmp_path / "hold", tmp_path / "hanging"
    hold.touch()
    mount = directfuse.mount(
        [moody, "-o", f"hold={hold},hanging={mark}", point], placement="server"
    )
    read_end, write_end = os.pipe()
    looked_end, looks_end = os.pipe()

    def look():
        assert directfuse.stat(f"{point}/one")
        os.write(looks_end, b"x")
        os.read(read_end, 1)
        for _ in range(50):
            with pytest.raises(OSError) as caught:
                directfuse.stat(f"{point}/one")
            assert caught.value.errno == errno.ENOTCONN
            time.sleep(0.01)

    child = begin_fork(look)
    assert os.read(looked_end, 1) == b"x"
    with ThreadPoolExecutor() as pool:
        opening = pool.submit(directfuse.os_open, f"{point}/late", os.O_RDONLY)
        until(mark.exists)
        mount.unmount(lazy=True)
        hold.unlink()
        fd = opening.result()
    os.write(write_end, b"x")
    assert ended(child) == 0
    directfuse.close(fd)
    for end in (read_end, write_end, looked_end, looks_end):
        os.close(end)
    until(lambda: not servers())


def test_a_killed_server_is_enotconn_and_unmounts(point):
    mount = directfuse.mount(["memfs", point], placement="server")
    fd = directfuse.os_open(f"{point}/f", os.O_CREAT | os.O_RDWR)
    server = the_server()
    os.kill(server, signal.SIGKILL)
    until(lambda: not servers())
    for call in (lambda: directfuse.pread(fd, 1, 0), lambda: directfuse.stat(f"{point}/f")):
        with pytest.raises(OSError) as caught:
            call()
        assert caught.value.errno == errno.ENOTCONN
    directfuse.close(fd)
    mount.unmount()


def test_sigterm_writes_everything_and_ends(point, tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    mount = directfuse.mount(["passthrough", str(source), point], placement="server")
    with directfuse.open(f"{point}/f", "w") as file:
        file.write("kept")
    server = the_server()
    os.kill(server, signal.SIGTERM)
    until(lambda: not servers())
    assert (source / "f").read_text() == "kept"
    with pytest.raises(OSError):
        directfuse.listdir(point)
    mount.unmount()


def test_a_killed_client_leaves_nothing_behind(point):
    with directfuse.mount(["memfs", point], placement="server"):
        directfuse.close(directfuse.os_open(f"{point}/f", os.O_CREAT | os.O_RDWR))

        def child():
            directfuse.os_open(f"{point}/f", os.O_RDWR)
            os.kill(os.getpid(), signal.SIGKILL)

        assert in_fork(child) == -signal.SIGKILL
        until(lambda: _unmounts(point))


def test_the_end_of_a_process_is_seen_beside_a_child_that_could_not_join(point):
    """It had no descriptor left for a connection of its own, and kept its parent's open."""
    reads, writes = os.pipe()

    def parent():
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (0, most))
        child = begin_fork(signal.pause)
        os.write(writes, str(child).encode())

    with directfuse.mount(["memfs", point], placement="server"):
        server = f"/proc/{the_server()}/fd"
        before = len(os.listdir(server))
        assert in_fork(parent) == 0
        child = int(os.read(reads, 20))
        try:
            until(lambda: len(os.listdir(server)) == before)
        finally:
            os.kill(child, signal.SIGKILL)
    os.close(reads)
    os.close(writes)


def test_what_was_asked_once_is_answered_without_a_trip(point):
    with directfuse.mount(["memfs", point], placement="server") as mount:
        directfuse.mkdir(f"{point}/d")
        directfuse.stat(f"{point}/d")
        before = mount.stats()
        for _ in range(10):
            directfuse.stat(f"{point}/d")
        after = mount.stats()
    assert after.trips == before.trips
    assert after.hits == before.hits + 10


def test_what_one_process_changes_the_others_see_at_once(point):
    with directfuse.mount(["memfs", point], placement="server"):
        fd = directfuse.os_open(f"{point}/f", os.O_CREAT | os.O_RDWR)
        for size in range(1, 20):
            assert directfuse.stat(f"{point}/f").st_size == size - 1
            assert directfuse.fstat(fd).st_size == size - 1
            assert in_fork(lambda size=size: directfuse.pwrite(fd, b"x" * size, 0)) == 0
        assert directfuse.path.exists(f"{point}/f")
        assert in_fork(lambda: directfuse.rename(f"{point}/f", f"{point}/g")) == 0
        assert not directfuse.path.exists(f"{point}/f")
        assert directfuse.path.exists(f"{point}/g")
        directfuse.close(fd)


def test_a_plugin_that_allows_no_caching_is_asked_each_time(point, tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    with directfuse.mount(["passthrough", str(source), point], placement="server") as mount:
        for number in range(5):
            (source / "f").write_bytes(b"x" * number)
            assert directfuse.stat(f"{point}/f").st_size == number
        assert mount.stats().hits == 0


def test_what_has_ended_holds_nothing(point):
    """The kernel closes the files of a process before it can be waited for."""

    def hold():
        fds = [directfuse.os_open(f"{point}/f{i}", os.O_RDWR | os.O_CREAT) for i in range(50)]
        os._exit(0 if len(fds) == 50 else 1)

    for _ in range(5):
        mount = directfuse.mount(f"memfs {point}", placement="server")
        assert in_fork(hold) == 0
        mount.unmount()


WITHOUT_STANDARD = """
import os, sys
for fd in range(3):
    os.close(fd)
import directfuse
with directfuse.mount(sys.argv[1], placement="server"):
    with directfuse.open(sys.argv[2], "w") as f:
        f.write("content")
    child = os.fork()
    held = [fd for fd in range(3) if os.path.exists(f"/proc/self/fd/{fd}")]
    if child == 0:
        os._exit(len(held) + (directfuse.stat(sys.argv[2]).st_size != 7))
    status = os.waitpid(child, 0)[1]
with open(sys.argv[3], "w") as f:
    f.write(f"{held} {status}")
"""


def test_a_process_without_standard_descriptors_has_a_server(tmp_path):
    """None of ours takes their numbers, where what is written to them would go."""
    words = [f"memfs {tmp_path}/m", f"{tmp_path}/m/f", f"{tmp_path}/result"]
    subprocess.run([sys.executable, "-c", WITHOUT_STANDARD, *words], check=True, timeout=60)
    assert (tmp_path / "result").read_text() == "[] 0"


def _own_memory(server):
    """Bytes that are resident and no file's."""
    lines = Path(f"/proc/{server}/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("RssAnon:"))


def test_memory_of_removed_files_goes_back_though_others_stay(tmp_path):
    """Files of less than a page, which are in no shared memory: malloc kept it for ever."""
    count, size = 30_000, 2000
    with directfuse.mount(f"memfs {tmp_path}/mnt", placement="server"):
        server = the_server()
        for i in range(count):
            with directfuse.open(f"{tmp_path}/mnt/{i}", "wb", buffering=0) as file:
                file.write(bytes(size))
        full = _own_memory(server)
        for i in range(count):
            if i % 50:
                directfuse.unlink(f"{tmp_path}/mnt/{i}")
        until(lambda: full - _own_memory(server) > count * size / 2, 50)
