"""`directfuse serve`: a server with a name, and who joins it."""

import errno
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

import directfuse
from directfuse import _named, _paths
from directfuse._cli import serve as serve_command
from directfuse._cli._failure import Failure
from directfuse._run import patiently
from directfuse._served import hello_message

from .test_lives import children, servers, stop, the_server, until


@pytest.fixture
def runtime(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path / "directfuse"


@pytest.fixture
def serve(runtime):
    started = []

    def start(command, name, *options, through=()):
        """through: words that the command is given to, such as those of prlimit(1)."""
        words = [sys.executable, "-m", "directfuse", "serve", command, f"--name={name}", *options]
        process = subprocess.Popen([*through, *words], stderr=subprocess.PIPE, text=True)
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


def test_one_of_several_file_systems_is_named_by_its_mountpoint(serve, runtime, tmp_path):
    source, first, second = (tmp_path / name for name in ("source", "first", "second"))
    source.mkdir()
    (tmp_path / "link").symlink_to(tmp_path)
    serve(f"memfs {first}", "two", "-m", f"passthrough {source} {second}")
    until(lambda: listens(runtime / "two.socket"), 20)
    with pytest.raises(directfuse.MountError) as caught:  # waits until all are mounted
        directfuse.mount("@two")
    assert caught.value.errno == errno.EINVAL
    assert {str(first), str(second)} <= set(str(caught.value.strerror).split())
    with pytest.raises(directfuse.MountError, match=str(second)) as caught:
        directfuse.mount(f"@two {source}")
    assert caught.value.errno == errno.ENOENT
    with (
        directfuse.mount("@two", f"{tmp_path}/link/./second/") as mount,
        directfuse.mount(f"@two {first}") as other,
    ):
        assert (mount.mountpoint, other.mountpoint) == (str(second), str(first))
        directfuse.mkdir(second / "made")
        assert source.joinpath("made").is_dir() and directfuse.listdir(first) == []
        assert directfuse.attach(f"@two {first}") is other


def test_several_file_systems_are_mounted_or_none(serve, runtime, tmp_path):
    server = serve(f"memfs {tmp_path}/a", "two", "-m", f"passthrough /nowhere {tmp_path}/b")
    _, said = server.communicate(timeout=20)
    assert server.returncode == 1 and "/nowhere" in said
    assert not (runtime / "two.socket").exists()


def test_how_many_file_systems_a_server_has(runtime):
    words = [sys.executable, "-m", "directfuse", "serve", "--name=x"]
    for count, why in (0, "command line is missing"), (65, "room for 64"):
        lines = [word for number in range(count) for word in ("-m", f"memfs /m{number}")]
        done = subprocess.run([*words, *lines], capture_output=True, text=True, timeout=30)
        assert done.returncode == 125 and why in done.stderr


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


def test_one_of_many_takes_the_name_of_a_server_that_is_gone(runtime):
    """Whoever comes meanwhile finds the name taken, and no socket is removed that is used."""
    path = _named.socket_path("gone", make=True)
    for _round in range(20):
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as dead:
            dead.bind(os.fspath(path))
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(_taken, [path] * 8))
        listeners = [listener for listener in found if listener]
        assert len(listeners) == 1 and listens(path)
        listeners[0].close()
        path.unlink()


def _taken(path):
    try:
        return serve_command._listen(path, "gone")
    except Failure as refused:
        assert "is running" in refused.message
        return None


def test_a_name_is_taken_until_all_of_its_server_is_gone(serve, runtime, tmp_path):
    """Else what the next one has made would be removed with what the last one had."""
    first = serve(f"memfs {tmp_path}/mnt", "again")
    until(lambda: listens(runtime / "again.socket"), 20)
    with directfuse.mount("@again"):
        server = the_server()
    first.send_signal(signal.SIGSTOP)
    os.kill(server, signal.SIGTERM)
    until(lambda: not servers(), 20)
    second = serve(f"memfs {tmp_path}/mnt", "again")
    _, said = second.communicate(timeout=20)
    first.send_signal(signal.SIGCONT)
    assert second.returncode == 125 and "is running" in said
    assert first.wait(20) == 0
    assert os.listdir(runtime) == []


def test_who_has_no_descriptor_to_join_with_is_told_so(serve, runtime, tmp_path):
    """And not that the server had ended."""
    serve(f"memfs {tmp_path}/mnt", "well")
    until(lambda: listens(runtime / "well.socket"), 20)
    program = (
        "import directfuse, os, resource\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))\n"
        "for fd in range(62): os.dup2(0, fd) if fd > 2 else None\n"
        "try: directfuse.mount('@well')\n"
        "except directfuse.MountError as error: print(error.strerror)\n"
    )
    joining = [sys.executable, "-c", program]
    said = subprocess.check_output(joining, stdin=subprocess.DEVNULL, text=True, timeout=30)
    assert said.startswith("Too many open files\n(a process may have 64 open files here")


@pytest.mark.parametrize(
    ("orphan", "words"), [(False, "has been told to end"), (True, "does not answer")]
)
def test_unmount_says_that_it_waits(serve, runtime, tmp_path, orphan, words):
    """For a server that is stopped, and ends by SIGCONT; an orphan is asked first who it is."""
    serving = serve(f"memfs {tmp_path}/mnt", "late")
    until(lambda: listens(runtime / "late.socket"), 20)
    with directfuse.mount("@late"):
        server = the_server()
    stop(server)
    if orphan:
        serving.kill()
        serving.wait(20)
    unmount = [sys.executable, "-m", "directfuse", "unmount", "@late"]
    with subprocess.Popen(unmount, stderr=subprocess.PIPE, text=True) as unmounting:
        said = unmounting.stderr.readline()
        os.kill(server, signal.SIGCONT)
        assert unmounting.wait(20) == 0
    assert f"@late: {words}" in said
    assert serving.wait(20) == (-signal.SIGKILL if orphan else -signal.SIGTERM)


def test_serve_says_that_it_waits(serve, runtime, tmp_path):
    serving = serve(f"memfs {tmp_path}/mnt", "late")
    until(lambda: listens(runtime / "late.socket"), 20)
    with directfuse.mount("@late"):
        server = the_server()
    stop(server)
    serving.send_signal(signal.SIGTERM)
    said = serving.stderr.readline()
    os.kill(server, signal.SIGCONT)
    assert f"waiting for the mount server (process {server})" in said
    assert serving.wait(20) == -signal.SIGTERM


def test_serve_that_has_not_seen_the_mount_waits_for_it_all_the_same(serve, runtime, tmp_path):
    """It killed the server after two seconds, which others had joined and written to."""
    serving = serve(f"memfs {tmp_path}/mnt", "unseen")
    until(lambda: children(serving.pid), 20)
    stop(serving.pid)  # on most machines before it can have seen it
    with directfuse.mount("@unseen"):
        server = the_server()
    stop(server)
    serving.send_signal(signal.SIGTERM)
    serving.send_signal(signal.SIGCONT)
    said = serving.stderr.readline()
    os.kill(server, signal.SIGCONT)
    assert f"waiting for the mount server (process {server})" in said
    assert serving.wait(20) == -signal.SIGTERM


def test_a_signal_while_the_thread_that_watches_starts_ends_it(monkeypatch):
    """It stayed, and said after five seconds that somebody waits, when nobody did any more."""
    start = threading.Thread.start

    def interrupted(thread):
        start(thread)
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)  # blocked here as yet

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    before = set(threading.enumerate())
    with pytest.raises(KeyboardInterrupt), patiently(print, "waiting"):
        pytest.fail("the signal has not come")
    assert set(threading.enumerate()) == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_the_server_starts_leaves_none_behind(runtime, monkeypatch, number):
    made = []

    def start(*words, **options):
        made.append(subprocess.Popen(*words, **options))
        signal.raise_signal(number)
        return made[0]

    def unwind(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(serve_command, "subprocess", SimpleNamespace(Popen=start))
    before = signal.signal(number, unwind)
    program = [sys.executable, "-c", "import time; time.sleep(60)"]
    with socket.socket() as listener, pytest.raises(KeyboardInterrupt):
        serve_command._run(program, ["memfs", "/mnt"], listener, False, {})
    assert signal.signal(number, before) is unwind
    assert made[0].poll() == -signal.SIGTERM


def test_a_file_in_the_place_of_the_socket_is_left_alone(serve, runtime, tmp_path):
    runtime.mkdir(mode=0o700)
    (runtime / "x.socket").write_text("mine")
    _, said = (server := serve(f"memfs {tmp_path}/mnt", "x")).communicate(timeout=20)
    assert server.returncode == 125 and "no socket" in said
    assert (runtime / "x.socket").read_text() == "mine"


def test_what_cannot_be_mounted_says_why(serve, tmp_path):
    server = serve(f"memfs --nonsense {tmp_path}/mnt", "broken")
    _, said = server.communicate(timeout=20)
    assert server.returncode == 1 and "nonsense" in said


@pytest.mark.parametrize("name", [".hidden", "a/b", "", "n" * 64])
def test_a_name_that_is_none_is_refused_by_both_sides(serve, runtime, name):
    with pytest.raises(directfuse.MountError, match=f"'{name}' is no name") as caught:
        directfuse.mount([f"@{name}"])
    assert caught.value.errno == errno.EINVAL
    server = serve("memfs /mnt", name)
    _, said = server.communicate(timeout=20)
    assert server.returncode == 125 and "no slash" in said


@pytest.mark.parametrize("name", ["a b", "ü€", "new\nline", "at@", "-dash", "quo'te"])
def test_odd_names_are_names(serve, runtime, tmp_path, name):
    serve(f"memfs {tmp_path}/mnt", name)
    until(lambda: listens(runtime / f"{name}.socket"), 20)
    with directfuse.mount([f"@{name}"]) as mount:
        assert mount.mountpoint == f"{tmp_path}/mnt"


def test_an_unknown_name_and_wrong_words(runtime):
    with pytest.raises(directfuse.MountError) as caught:
        directfuse.mount("@nobody")
    assert caught.value.errno == errno.ENOENT and "directfuse serve" in str(caught.value)
    with pytest.raises(NotImplementedError, match="mount server"):
        directfuse.mount("@nobody", placement="inline")
    with pytest.raises(directfuse.MountError, match="at most") as caught:
        directfuse.mount("@nobody /some /where")
    assert caught.value.errno == errno.EINVAL


def test_a_directory_of_others_is_refused(serve, runtime, tmp_path):
    runtime.mkdir()
    os.chmod(runtime, 0o777)
    server = serve(f"memfs {tmp_path}/mnt", "x")
    _, said = server.communicate(timeout=20)
    assert server.returncode == 125 and "only you" in said and "let XDG_RUNTIME_DIR" in said
    with pytest.raises(directfuse.MountError, match=r"only you.*let XDG_RUNTIME_DIR") as caught:
        directfuse.mount("@x")
    assert caught.value.errno == errno.EACCES


@pytest.mark.parametrize(("base", "words"), [("x" * 100, "too long"), ("no/where", "No such file")])
def test_where_no_socket_can_be_says_why(serve, runtime, tmp_path, monkeypatch, base, words):
    monkeypatch.setenv("XDG_RUNTIME_DIR", f"{tmp_path}/{base}")
    server = serve(f"memfs {tmp_path}/mnt", "x")
    _, said = server.communicate(timeout=20)
    assert server.returncode == 125 and words in said and "Traceback" not in said


def descriptors(server):
    return len(os.listdir(f"/proc/{server}/fd"))


@contextmanager
def connected(runtime, name):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
        client.connect(str(runtime / f"{name}.socket"))
        yield client


def is_idle(server):
    """The thread that would accept waits for news."""
    return Path(f"/proc/{server}/syscall").read_text() != "running\n"


def test_a_server_without_a_descriptor_for_who_connects_waits_for_one(serve, runtime, tmp_path):
    """It was told of him again and again, on a whole processor."""
    serve(f"memfs {tmp_path}/mnt", "full")
    until(lambda: listens(runtime / "full.socket"), 20)
    with directfuse.mount("@full"):  # it has begun
        server = the_server()
    resource.prlimit(server, resource.RLIMIT_NOFILE, (3, 1000))
    with connected(runtime, "full"):
        time.sleep(0.1)
        assert sum(is_idle(server) for _ in range(500)) > 450
    resource.prlimit(server, resource.RLIMIT_NOFILE, (1000, 1000))
    with directfuse.mount("@full"):
        assert directfuse.listdir(f"{tmp_path}/mnt") == []


@pytest.mark.parametrize("limit", [10, 11])
def test_a_server_that_nobody_could_ever_join_does_not_begin(serve, tmp_path, limit):
    """It had numbers for its own descriptors and none for who connects: `serve` waited for ever."""
    through = ("prlimit", f"--nofile={limit}:{limit}")
    server = serve(f"memfs {tmp_path}/mnt", "poor", through=through)
    _, said = server.communicate(timeout=20)
    assert server.returncode == 1, said
    assert "the mount server cannot begin: Too many open files" in said
    assert said.endswith("`ulimit -n 1024`)\n")


def test_a_message_with_more_descriptors_than_one_leaves_none(serve, runtime, tmp_path):
    serve(f"memfs {tmp_path}/mnt", "many")
    until(lambda: listens(runtime / "many.socket"), 20)
    server = the_server()
    with connected(runtime, "many") as client:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ours, theirs:
            before = descriptors(server)
            for _ in range(20):  # each is welcomed as a client, of whom the server has one
                socket.send_fds(client, [hello_message()], [theirs.fileno()] * 2)
                ours.recv(4096)
            assert descriptors(server) - before < 30


#: Says, as nobody, that it is each of the clients that there may be, in each way, and goes.
_STRANGER = """
import os, socket, sys
sys.path.insert(0, sys.argv[1])
from directfuse._served import READY, hello_message
MAGIC, BORN, PLACE, TAKE, TICKET = READY.unpack(hello_message())[0], 1, 4, 5, 1 << 31
os.setgroups([])
os.setresgid(65534, 65534, 65534)
os.setresuid(65534, 65534, 65534)
for kind in BORN, PLACE, TAKE:
    for client in [4096 * generation + place for generation in range(3) for place in range(40)]:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
            server.connect("private.socket")
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            message = READY.pack(MAGIC, kind, client, 0, TICKET, b"")
            socket.send_fds(server, [message], [theirs.fileno()])
            theirs.close()
            answer = READY.unpack(ours.recv(4096))
            assert answer[3] == -13, answer
            ours.close()
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user needs root")
def test_other_users_are_no_clients_whatever_they_say(serve, runtime, tmp_path):
    serve(f"memfs {tmp_path}/mnt", "private")
    until(lambda: listens(runtime / "private.socket"), 20)
    assert (runtime / "private.socket").stat().st_mode & 0o777 == 0o600
    with directfuse.mount("@private"), directfuse.open(tmp_path / "mnt/file", "w+") as file:
        file.write("kept")
        file.flush()
        (runtime / "private.socket").chmod(0o777)
        runtime.chmod(0o755)
        words = [sys.executable, "-c", _STRANGER, str(Path(directfuse.__file__).parents[1])]
        subprocess.run(words, cwd=runtime, check=True, timeout=50)
        file.seek(0)
        assert file.read() == "kept"
