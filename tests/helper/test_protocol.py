"""What a server may get wrong, and what its helper makes of it."""

import errno
import fcntl
import json
import os
import select
import signal
import stat
import struct
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager, suppress

import pytest

import directfuse

from .conftest import SERVER, kernel_mount


def code_of(call):
    with pytest.raises(OSError) as caught:
        call()
    return caught.value.errno


def read(mount):
    with directfuse.open(f"{mount.mountpoint}/file", "rb", buffering=0) as file:
        return file.read(100)


@pytest.mark.parametrize("mode", ["good", "probe", "fork"])
def test_content(serve, mode):
    assert read(serve(mode)) == b"content\n"


def test_absent_name_is_remembered(serve):
    mount = serve("good")
    for _ in range(3):
        assert code_of(lambda: directfuse.stat(f"{mount.mountpoint}/no")) == errno.ENOENT


def test_what_the_server_does_not_know_is_asked_once(serve):
    """STATX and TMPFILE: GETATTR instead, and EOPNOTSUPP, as by the kernel."""
    mount, flags = serve("plain"), os.O_TMPFILE | os.O_RDWR
    for _ in range(2):
        stx = directfuse.statx(f"{mount.mountpoint}/file")
        assert (stx.stx_mask, stx.stx_btime_ns, stx.stx_size) == (0x7FF, None, 1 << 16)
        code = code_of(lambda: directfuse.os_open(mount.mountpoint, flags))
        assert code == errno.EOPNOTSUPP
    with directfuse.open(f"{mount.mountpoint}/file", "rb", buffering=0) as file:
        seen = json.loads(file.read(1 << 16))
    assert len(seen["51"]) == len(seen["52"]) == 1


def test_a_statx_that_knows_nothing_but_the_birth(serve):
    """What its mask does not name is not wrong; the type is the node's: fuse_do_statx()."""
    point = serve("birth").mountpoint
    stx = directfuse.statx(f"{point}/file")
    assert (stx.stx_mask, stat.S_IFMT(stx.stx_mode)) == (0x801, stat.S_IFREG)
    assert stx.stx_btime_ns == 1_234_567_890_123_456_789
    assert directfuse.stat(f"{point}/file").st_size == 1 << 16


def test_a_server_of_7_8(serve):
    """Rust's fuse and fuser: attributes without blksize, requests without umask and lock owner."""
    mount = serve("rust")
    root = mount.mountpoint
    assert directfuse.stat(f"{root}/file").st_size == 1 << 16
    assert directfuse.lstat(root).st_gid == 4242
    with directfuse.open(f"{root}/made", "wb", buffering=0) as file:
        assert file.write(b"data") == 4
    directfuse.mknod(f"{root}/node", 0o100600)
    with directfuse.open(f"{root}/file", "rb", buffering=0) as file:
        seen = json.loads(file.read(1 << 16))
    ((_, create),), ((_, mknod),), ((_, write),) = seen["35"], seen["8"], seen["16"]
    assert bytes.fromhex(create)[8:] == b"made\0"
    assert bytes.fromhex(mknod)[8:] == b"node\0"
    assert bytes.fromhex(write)[24:] == b"data"


@pytest.mark.parametrize("mode", ["short", "long"])
def test_reply_of_another_size_than_its_struct(serve, mode, tmp_path):
    mount = serve(mode)
    assert code_of(lambda: directfuse.stat(f"{mount.mountpoint}/file")) == errno.EIO
    with kernel_mount(tmp_path / "m", mode):
        assert code_of(lambda: os.stat(tmp_path / "m" / "file")) == errno.EIO


@pytest.mark.parametrize("mode", ["odd_lock", "long_lock"])
def test_a_lock_that_is_none(serve, mode, tmp_path):
    wanted = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    with directfuse.open(f"{serve(mode).mountpoint}/file", "rb", buffering=0) as file:
        assert code_of(lambda: directfuse.fcntl(file, fcntl.F_GETLK, wanted)) == errno.EIO
    with kernel_mount(tmp_path / "m", mode), open(tmp_path / "m" / "file", "rb") as file:
        assert code_of(lambda: fcntl.fcntl(file, fcntl.F_GETLK, wanted)) == errno.EIO


@pytest.mark.parametrize("mode", ["huge", "larger", "largest"])
def test_more_data_than_were_asked_for(serve, mode):
    """What fits a message, what its reader has no room for, what the socket does not take."""
    mount = serve(mode)
    assert code_of(lambda: read(mount)) == errno.EIO
    assert directfuse.stat(f"{mount.mountpoint}/file").st_size == 1 << 16


@pytest.mark.parametrize("mode", ["huge", "larger", "largest"])
def test_more_data_than_the_kernel_asked_for(tmp_path, mode):
    point = tmp_path / "m"
    with kernel_mount(point, mode), open(point / "file", "rb", buffering=0) as file:
        assert code_of(lambda: file.read(100)) == errno.EIO


def test_messages_that_are_none(serve):
    mount = serve("garbage")
    assert read(mount) == b"content\n"
    assert read(mount) == b"content\n"


def test_an_unmount_of_something_else_ends_nothing(serve):
    mount = serve("stray")
    assert read(mount) == b"content\n"
    assert mount.mounted
    assert read(mount) == b"content\n"


def test_a_server_may_unmount_itself(serve):
    mount = serve("unmount")
    assert read(mount) == b"content\n"
    while mount.mounted:
        time.sleep(0.001)
    mount.unmount(lazy=True)


@contextmanager
def _alarm(*, restarts):
    """A signal with a handler, each 0.2 s, for the first may be too early; `restarts`: with
    SA_RESTART."""
    before = signal.signal(signal.SIGALRM, lambda *_: None)
    signal.siginterrupt(signal.SIGALRM, not restarts)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2, 0.2)
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("restarts", [False, True])
def test_a_signal_interrupts_the_request_of_its_thread(serve, restarts):
    """Whatever SA_RESTART says; the first try of the server is answered by EINTR, as it wants."""
    mount = serve("block")
    with _alarm(restarts=restarts):
        assert _read_again(mount) == b"content\n"


def _read_again(mount):
    """As programs do that are interrupted."""
    while True:
        try:
            return read(mount)
        except InterruptedError:
            pass


def test_a_signal_interrupts_a_thread_that_another_reads_for(serve):
    mount = serve("block2")
    done = []
    threads = [threading.Thread(target=lambda: done.append(_read_again(mount))) for _ in range(2)]
    before = signal.signal(signal.SIGUSR1, lambda *_: None)
    try:
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            for thread in threads:
                if thread.is_alive():
                    signal.pthread_kill(thread.ident, signal.SIGUSR1)
                thread.join(0.1)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert done == [b"content\n"] * 2


@pytest.fixture
def served(tmp_path):
    """The server that blocks, behind a mount server, by way of a script that cannot be loaded."""
    script = tmp_path / "start"
    script.write_text(f'#!/bin/sh\nexec {sys.executable} {SERVER} block "$1"\n')
    script.chmod(0o755)
    with directfuse.mount([str(script), str(tmp_path / "m")], placement="server") as mount:
        assert mount.placement == "server"
        yield mount


def test_a_signal_interrupts_behind_a_mount_server(served):
    with _alarm(restarts=False):
        assert _read_again(served) == b"content\n"


@pytest.fixture
def note(tmp_path, monkeypatch):
    """Where fuse_server.py notes an interrupt; to be asked for before it starts."""
    monkeypatch.setenv("FUSE_SERVER_NOTE", str(tmp_path / "note"))
    return tmp_path / "note"


def test_death_of_a_client_interrupts_behind_a_mount_server(note, served):
    pid = os.fork()
    if pid == 0:
        read(served)  # for ever
        os._exit(1)
    while not _sleeps(pid):
        time.sleep(0.01)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    for _ in range(1000):
        if note.exists() and note.read_text():
            break
        time.sleep(0.02)
    assert note.read_text() == "interrupted"
    assert read(served) == b"content\n"


def _sleeps(pid):
    """In a system call for long enough that it is the one that blocks: its third look at that."""
    for _ in range(3):
        with open(f"/proc/{pid}/stat") as file:
            if file.read().rsplit(")", 1)[1].split()[0] != "S":
                return False
        time.sleep(0.1)
    return True


@pytest.mark.parametrize("threads", [1, 4])
def test_what_a_server_lost_is_sent_again(serve, threads):
    """NOTIFY_RESEND of 7.40; only what bears its mark is answered then."""
    mount = serve("lose")
    file = directfuse.open(f"{mount.mountpoint}/file", "rb", buffering=0)
    done = []
    workers = [threading.Thread(target=lambda: done.append(file.read(100))) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(20)
    assert sorted(done)[-1] == b"content\n" and len(done) == threads


def test_a_reply_that_is_spliced_is_one_message(serve):
    """A socket would cut it after sixteen buffers of the pipe."""
    mount = serve("splice")
    with directfuse.open(f"{mount.mountpoint}/file", "rb", buffering=0) as file:
        data = []
        reader = threading.Thread(target=lambda: data.append(file.read(1 << 16)), daemon=True)
        reader.start()
        reader.join(20)
        assert data == [b"content\n" * 8192]


@pytest.mark.parametrize("mode", ["positive", "least", "restarts"])
def test_an_error_that_is_none(serve, mode):
    """The kernel takes no such answer, and goes on waiting."""
    assert code_of(lambda: read(serve(mode))) == errno.ERANGE


@pytest.mark.parametrize("mode", ["notify", "expire", "epoch"])
def test_notification_drops_a_name(serve, mode):
    mount = serve(mode)
    assert not directfuse.path.exists(f"{mount.mountpoint}/late")
    assert not directfuse.path.exists(f"{mount.mountpoint}/late")  # from the cache
    assert read(mount) == b"content\n"  # the notification comes before the data
    assert directfuse.path.exists(f"{mount.mountpoint}/late")


def test_open_files_with_one_number_become_ready_one_by_one(serve):
    """A server that keeps nothing of open files gives all of them the same."""
    point = serve("poll").mountpoint
    ready = []

    def wait(which):
        with directfuse.open(f"{point}/file", "rb", buffering=0) as file:
            if directfuse.poll([(file, select.POLLIN)], 20_000):
                ready.append(which)

    def waiting():
        with directfuse.open(f"{point}/file", "rb", buffering=0) as server:
            polls = json.loads(server.read(1 << 16)).get("40", ())
        return len({body[16:32] for _, body in polls} - {"0" * 16})

    workers = [threading.Thread(target=wait, args=(which,)) for which in (0, 1)]
    for which, worker in enumerate(workers):
        worker.start()
        while waiting() <= which:
            assert worker.is_alive()
    for which, worker in enumerate(workers):
        assert not directfuse.path.exists(f"{point}/wake {which}")
        worker.join()
        assert ready == [0, 1][: which + 1]


def test_what_is_to_be_pruned_is_forgotten_unless_it_is_in_use(serve):
    """NOTIFY_PRUNE of 7.45, for a node nobody knows, the root and "file": as by the kernel, whose
    FORGET says how often it was looked up."""
    forget, lookup, file = "2", "1", b"file\0".hex()
    mount = serve("prune")

    def prune(name):
        assert not directfuse.path.exists(f"{mount.mountpoint}/{name}")
        with directfuse.open(f"{mount.mountpoint}/file", "rb", buffering=0) as server:
            return json.loads(server.read(1 << 16))

    with directfuse.open(f"{mount.mountpoint}/file", "rb"):
        assert forget not in prune("prune it")
    seen = prune("prune it now")
    assert seen[forget] == [[0, struct.pack("<Q", 1).hex()]]
    assert [body for _, body in seen[lookup]].count(file) == 2


def test_nodes_that_are_forgotten_together_are_told_in_one_message(serve):
    """BATCH_FORGET of 7.16."""
    batch, forget = "42", "2"
    point = serve("prune").mountpoint
    directfuse.mkdir(f"{point}/directory")
    directfuse.symlink("target", f"{point}/link")
    directfuse.mknod(f"{point}/node", 0o100640)
    assert not directfuse.path.exists(f"{point}/prune what was made")
    assert not directfuse.path.exists(f"{point}/absent")  # a call that looks up a name forgets
    with directfuse.open(f"{point}/file", "rb", buffering=0) as server:
        seen = json.loads(server.read(1 << 16))
    ((extension, body),) = seen[batch]
    count, _, *pairs = struct.unpack("<II6Q", bytes.fromhex(body))
    assert (extension, count) == (0, 3)
    assert sorted(zip(pairs[::2], pairs[1::2], strict=True)) == [(3, 1), (4, 1), (5, 1)]
    assert forget not in seen


def test_server_dies_in_a_call(serve):
    mount = serve("die")
    file = directfuse.open(f"{mount.mountpoint}/file", "rb", buffering=0)
    assert code_of(lambda: file.read(1)) == errno.ECONNABORTED
    assert code_of(file.close) == errno.ENOTCONN
    assert code_of(lambda: directfuse.listdir(mount.mountpoint)) == errno.ENOTCONN
    mount.unmount()


@pytest.mark.parametrize(
    "call",
    [
        lambda mount: directfuse.listdir(mount.mountpoint),  # by native/python
        lambda mount: directfuse.statvfs(mount.mountpoint),  # by cffi
    ],
)
def test_call_in_a_forked_child(serve, call):
    """The kernel's error for a connection that is gone; a note says what to do."""
    mount = serve("good")
    pid = os.fork()
    if pid == 0:
        try:
            call(mount)
            os._exit(0)
        except OSError as error:
            (note,) = error.__notes__
            told = mount.mountpoint in note and 'placement="server"' in note
            os._exit(error.errno if told else 1)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == errno.ENOTCONN
    assert read(mount) == b"content\n"


# ---- mounting that fails -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ("refuse", "the remote host does not answer"),
        ("old", "speaks FUSE 7.7"),
        ("leave", "ended before it answered INIT"),
    ],
)
def test_reason_is_told(serve, mode, words):
    with pytest.raises(directfuse.MountError, match=words) as caught:
        serve(mode)
    assert caught.value.errno == errno.EIO


#: Opens the device, and again when its number is another file's.
REOPENS = """
import os, stat
number = os.open("/dev/fuse", os.O_RDWR)
os.close(number)
while os.open("/", os.O_RDONLY) < number:
    pass
assert stat.S_ISSOCK(os.fstat(os.open("/dev/fuse", os.O_RDWR)).st_mode)
"""


def test_device_that_was_closed_is_no_other_file():
    with pytest.raises(directfuse.MountError, match="status 0 before it mounted"):
        directfuse.mount([sys.executable, "-c", REOPENS, "/nowhere/here"], placement="helper")


def test_program_that_is_no_server():
    with pytest.raises(directfuse.MountError, match="before it mounted anything"):
        directfuse.mount(["true", "/nowhere/at/all"], placement="helper")


def test_library_is_no_program():
    with pytest.raises(
        directfuse.MountError, match="no program that a helper could start"
    ) as caught:
        directfuse.mount([sys.modules["directfuse._fast"].__file__, "/m"], placement="helper")
    assert caught.value.errno == errno.ENOEXEC


@pytest.fixture
def temporary(monkeypatch):
    """TMPDIR, of a name short enough for a socket's; pytest's own are not."""
    with tempfile.TemporaryDirectory(dir="/tmp") as directory:
        monkeypatch.setenv("TMPDIR", directory)
        yield directory


def test_nothing_is_left_behind(tmp_path, temporary):
    before = set(os.listdir("/proc/self/fd"))
    mount = directfuse.mount(
        [sys.executable, SERVER, "good", str(tmp_path / "nowhere")], placement="helper"
    )
    assert read(mount) == b"content\n"
    assert os.listdir(temporary)
    mount.unmount()
    assert set(os.listdir("/proc/self/fd")) == before
    assert os.listdir(temporary) == []


def test_temporary_directory_behind_a_symlink(tmp_path, temporary, monkeypatch):
    """A program mounts at its mountpoint with symlinks resolved."""
    os.symlink(".", f"{temporary}/link")
    monkeypatch.setenv("TMPDIR", f"{temporary}/link")
    point = str(tmp_path / "nowhere")
    with directfuse.mount(["memfs", point], placement="helper") as mount:
        assert mount.mountpoint == point


def test_empty_directory_behind_the_mountpoint(tmp_path):
    """`server MOUNTPOINT SOURCE`, both empty: what is kept in the source stays there."""
    point, source = tmp_path / "point", tmp_path / "source"
    point.mkdir()
    source.mkdir()
    command = [sys.executable, SERVER, "good", str(point), str(source)]
    with directfuse.mount(command, placement="helper") as mount:
        assert mount.mountpoint == str(point)
        assert read(mount) == b"content\n"
    assert os.listdir(source) == ["kept"]


def test_program_that_is_started_again_may_unmount_before_it_ends(tmp_path):
    """It is not waited for until it is killed, after ten seconds."""
    for name in ("point", "source"):
        (tmp_path / name).mkdir()
    command = [sys.executable, SERVER, "tidy", str(tmp_path / "point"), str(tmp_path / "source")]
    with directfuse.mount(command, placement="helper", timeout=9) as mount:
        assert read(mount) == b"content\n"


KILLED = """
import os, signal, sys
import directfuse
directfuse.mount([sys.executable, *sys.argv[1:]], placement="helper")
assert os.listdir(os.environ["TMPDIR"])
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_host_that_is_killed_leaves_nothing(tmp_path, temporary):
    """Its directory goes with it."""
    words = [sys.executable, "-c", KILLED, SERVER, "good", str(tmp_path / "nowhere")]
    done = subprocess.run(words, timeout=50, check=False)
    assert done.returncode == -signal.SIGKILL
    for _ in range(1000):
        if not os.listdir(temporary):
            return
        time.sleep(0.02)
    raise AssertionError(os.listdir(temporary))


STOPPED = """
import os, pathlib, signal, sys, threading
import directfuse
mount = directfuse.mount(["memfs", "-f", sys.argv[1]], placement="helper")
file = directfuse.os_open(f"{sys.argv[1]}/f", os.O_CREAT | os.O_RDWR)
children = pathlib.Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
(helper,) = map(int, children)
writer = threading.Thread(target=directfuse.write, args=(file, b"x"))
sys.setswitchinterval(1000)  # the GIL changes hands where it is given up, and nowhere else
os.kill(helper, signal.SIGSTOP)
writer.start()
os.kill(helper, signal.SIGCONT)
writer.join()
directfuse.close(file)
mount.unmount()
"""


def test_a_helper_that_does_not_answer_holds_up_its_caller_alone(tmp_path):
    """Not the interpreter, although memfs itself is so quick that calls keep the GIL."""
    words = [sys.executable, "-c", STOPPED, str(tmp_path / "nowhere")]
    assert subprocess.run(words, timeout=50, check=False).returncode == 0


@pytest.mark.sweep
def test_program_that_outlives_a_killed_host_is_ended(tmp_path, temporary, monkeypatch):
    """After ten seconds, by SIGTERM, as at an unmount."""
    note = tmp_path / "note"
    monkeypatch.setenv("FUSE_SERVER_NOTE", str(note))
    words = [sys.executable, "-c", KILLED, SERVER, "stay", str(tmp_path / "nowhere")]
    done = subprocess.run(words, timeout=50, check=False)
    assert done.returncode == -signal.SIGKILL
    with suppress(ProcessLookupError):
        program = os.pidfd_open(int(note.read_text()))
        assert select.select([program], [], [], 50)[0]
        os.close(program)
