"""File systems that hang when their server is to end: it ends within the time-out for calls."""

import errno
import os
import shlex
import signal
import subprocess
import sys
import threading

import pytest

import directfuse

from .forks import begin_fork, ended
from .test_lives import children, point, servers, stop, the_server, until  # noqa: F401
from .test_trouble import fails

RUN = [sys.executable, "-m", "directfuse", "run"]
LINE = "without its file system"


def hung_lines(capfd):
    return capfd.readouterr().err.count(LINE)


@pytest.fixture
def mark(tmp_path):
    """There is this file as soon as a call hangs in the file system."""
    return tmp_path / "hanging"


@pytest.fixture
def words(moody, mark, point):  # noqa: F811
    return [moody, "-o", f"flushes,hanging={mark}", point]


def gives_up(call, mark):
    """A busy server may not even have begun it when it is given up: then again."""
    while True:
        fails(call, errno.ETIMEDOUT)
        if mark.exists():
            return


def limit(mount, milliseconds=200):
    """From now on: what came before is not to fail because the machine is busy."""
    directfuse._native.set_call_timeout(mount.id, milliseconds)


def unmount_gives_up(mount):
    """Its error. On a machine that stands still for a second the server has not ended by then, and
    goes on: the next one waits for it."""
    while True:
        with pytest.raises(directfuse.UnmountError) as caught:
            mount.unmount()
        assert caught.value.errno == errno.ETIMEDOUT
        if not mount.mounted:
            return caught.value


@pytest.mark.parametrize("restart", ["never", "on-failure"])
def test_a_signal_ends_the_wait_for_a_program_that_starts(moody, mark, point, restart):  # noqa: F811
    """Nor does its server wait for it, for nobody would use that."""

    class Enough(Exception):
        pass

    def ring(*_):
        if mark.exists():
            signal.setitimer(signal.ITIMER_REAL, 0)  # a second one could end what the first began
            raise Enough

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
    try:
        with pytest.raises(Enough):
            words = [moody, "-o", f"ro,starts,hanging={mark}", point]
            directfuse.mount(words, placement="server", restart=restart)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    until(lambda: not servers())


def test_an_unmount_gives_up_a_lookup_that_hangs(point, words, mark, capfd):  # noqa: F811
    mount = directfuse.mount(words, placement="server", call_timeout=0.2)
    gives_up(lambda: directfuse.stat(f"{point}/sub/hang"), mark)
    assert "did not end" in str(unmount_gives_up(mount))
    until(lambda: not servers())
    assert hung_lines(capfd) == 1
    assert mount.stats().calls > 0
    with pytest.raises(directfuse.UnmountError) as caught:
        mount.unmount()
    assert caught.value.errno == errno.EINVAL


def test_an_unmount_gives_up_a_read_whose_file_was_closed(point, words, mark):  # noqa: F811
    mount = directfuse.mount(words, placement="server")
    fd = directfuse.os_open(f"{point}/mute", os.O_RDONLY)
    limit(mount)
    gives_up(lambda: directfuse.read(fd, 1), mark)
    limit(mount, 20_000)
    directfuse.close(fd)
    limit(mount)
    unmount_gives_up(mount)
    until(lambda: not servers())


def test_an_unmount_gives_up_a_close_that_hangs(point, words):  # noqa: F811
    """Nothing is open any more, as the program sees it: not EBUSY."""
    mount = directfuse.mount(words, placement="server")
    fd = directfuse.os_open(f"{point}/sticky", os.O_RDONLY)
    limit(mount)
    fails(lambda: directfuse.close(fd), errno.ETIMEDOUT)
    unmount_gives_up(mount)
    until(lambda: not servers())


ASKS_FOR_AN_UNMOUNT = """
import os, sys, threading
from contextlib import suppress
from pathlib import Path
import directfuse
placement, point, mark, *words = sys.argv[1:]
mount = directfuse.mount([*words, point], placement=placement)
threading.Thread(target=lambda: directfuse.stat(f"{point}/sub/hang"), daemon=True).start()
while not Path(mark).exists():
    pass
try:
    mount.unmount()
except directfuse.UnmountError as error:
    print(error.errno, mount.mounted, directfuse.listdir(point)[0], flush=True)
if placement == "server":  # which would stay
    directfuse._native.set_call_timeout(mount.id, 200)
    with suppress(directfuse.UnmountError):
        mount.unmount()
os._exit(0)
"""


@pytest.mark.parametrize("placement", ["inline", "server"])
def test_an_unmount_is_told_of_calls_that_hang(point, words, mark, placement):  # noqa: F811
    """Without a time-out, too: EBUSY as of umount(2), and the mount goes on."""
    script = [sys.executable, "-c", ASKS_FOR_AN_UNMOUNT, placement, point, mark, *words[:-1]]
    done = subprocess.run(script, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == f"{errno.EBUSY} True one\n", done.stderr
    until(lambda: not servers())


def test_an_unmount_waits_for_no_server_that_is_stopped(point):  # noqa: F811
    """It could not be interrupted, either."""
    mount = directfuse.mount(["memfs", point], placement="server")
    directfuse.mkdir(f"{point}/d")
    server = the_server()
    stop(server)
    try:
        fails(mount.unmount, errno.EBUSY)
    finally:
        os.kill(server, signal.SIGCONT)
    assert directfuse.listdir(point) == ["d"]
    mount.unmount()
    until(lambda: not servers())


def test_files_that_are_open_still_keep_the_mount(point, words):  # noqa: F811
    with directfuse.mount(words, placement="server", call_timeout=100) as mount:
        fd = directfuse.os_open(f"{point}/one", os.O_RDONLY)
        fails(mount.unmount, errno.EBUSY)
        assert directfuse.read(fd, 3) == b"one"
        directfuse.close(fd)


def test_an_exception_is_not_replaced_by_that_of_the_unmount(point, words):  # noqa: F811
    with (
        pytest.raises(TimeoutError) as caught,
        directfuse.mount(words, placement="server", call_timeout=0.2),
    ):
        directfuse.stat(f"{point}/sub/hang")
    assert caught.value.filename.endswith("hang")
    until(lambda: not servers())


def test_a_thread_that_hangs_meanwhile_finds_the_server_gone(point, words, mark):  # noqa: F811
    """It asked before there was a time-out, so it waits for ever."""
    mount = directfuse.mount(words, placement="server")
    seen = []

    def look():
        try:
            directfuse.stat(f"{point}/sub/hang")
        except OSError as error:
            seen.append(error.errno)

    thread = threading.Thread(target=look)
    thread.start()
    until(mark.exists)
    limit(mount)
    unmount_gives_up(mount)
    thread.join(20)
    assert seen == [errno.ENOTCONN]
    until(lambda: not servers())


def test_the_end_of_a_file_system_is_not_cut_off(point, moody, tmp_path):  # noqa: F811
    """It may write for longer than a call takes: who unmounts is told that it goes on."""
    hold, done = tmp_path / "hold", tmp_path / "done"
    hold.touch()
    words = [moody, "-o", f"hold={hold},ended={done}", point]
    mount = directfuse.mount(words, placement="server")
    assert directfuse.listdir(point)
    limit(mount)
    with pytest.raises(directfuse.UnmountError, match="goes on by itself") as caught:
        mount.unmount()
    assert caught.value.errno == errno.ETIMEDOUT
    assert mount.mounted and the_server()
    hold.unlink()
    directfuse._native.set_call_timeout(mount.id, 0)
    mount.unmount()
    until(lambda: not servers())
    assert done.exists()


def test_who_unmounts_what_is_ending_is_told(point, moody, tmp_path):  # noqa: F811
    hold = tmp_path / "hold"
    hold.touch()
    mount = directfuse.mount([moody, "-o", f"hold={hold}", point])
    first = threading.Thread(target=mount.unmount)
    first.start()
    until(lambda: not mount.mounted)
    try:
        words = "another thread is unmounting it"
        with pytest.raises(directfuse.UnmountError, match=words) as caught:
            mount.unmount()
    finally:
        hold.unlink()
        first.join()
    assert caught.value.errno == errno.EBUSY


@pytest.mark.parametrize("name", ["mute", "sticky"])
def test_a_server_whose_last_user_is_killed_gives_up_what_hangs(point, words, mark, name):  # noqa: F811
    """Reading at that moment, or closed for it then."""
    script = (
        "import directfuse, os, sys\n"
        f"words = {words!r}\n"
        "mount = directfuse.mount(words, placement='server', call_timeout=3)\n"
        f"fd = directfuse.os_open({point!r} + '/{name}', os.O_RDONLY)\n"
        "print('open', flush=True)\n"
        "directfuse.read(fd, 1)\n"
        "sys.stdin.read(1)\n"
    )
    python = [sys.executable, "-c", script]
    with subprocess.Popen(python, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as client:
        assert client.stdout.readline() == b"open\n"
        the_server()
        until(lambda: name == "sticky" or mark.exists())
        client.kill()
    until(lambda: not servers(), 20)


def test_others_come_and_go_while_the_close_of_one_hangs(point, words):  # noqa: F811
    """It was killed, and what it had open is closed for it: nobody else waits for that."""
    mount = directfuse.mount(words, placement="server")

    def open_and_die():
        directfuse.os_open(f"{point}/sticky", os.O_RDONLY)
        os.kill(os.getpid(), signal.SIGKILL)

    assert ended(begin_fork(open_and_die)) == -signal.SIGKILL
    for _ in range(3):
        pid = begin_fork(lambda: directfuse.close(directfuse.os_open(f"{point}/one", os.O_RDONLY)))
        assert ended(pid) == 0
    limit(mount)
    unmount_gives_up(mount)
    until(lambda: not servers())


def test_serve_ends_when_it_is_told_to(words, mark, point, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    serve = [sys.executable, "-m", "directfuse", "serve", "--call-timeout", "0.2"]
    serve += ["--name", "moody", shlex.join(words)]
    with subprocess.Popen(serve, stderr=subprocess.PIPE, text=True) as serving:
        until(lambda: (tmp_path / "directfuse/moody.shadow").is_symlink())
        until(lambda: len(servers()) == 1)
        mount = _joined("@moody")
        gives_up(lambda: directfuse.stat(f"{point}/sub/hang"), mark)  # in the time that serve says
        os.kill(the_server(), signal.SIGTERM)
        assert serving.wait(20) == 1
        assert serving.stderr.read().count(LINE) == 1
    mount.unmount()
    assert not (tmp_path / "directfuse/moody.socket").exists()
    until(lambda: not servers())


def _joined(name):
    """Its server may not have mounted yet."""
    found = []

    def found_it():
        try:
            found.append(directfuse.mount(name))
        except directfuse.MountError:
            return False
        return True

    until(found_it)
    return found[0]


def test_run_ends_though_its_file_system_hangs(words, point):  # noqa: F811
    run = [*RUN, "--call-timeout", "2", "-m", shlex.join(words), "--"]
    made = subprocess.run(
        [*run, "sh", "-c", f"cat {point}/mute; cat {point}/one"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert made.returncode == 0 and made.stdout == "one"
    assert "Connection timed out" in made.stderr
    assert made.stderr.count("without its file systems") == 1
    until(lambda: not servers())


def test_a_program_starts_though_what_execve_closes_hangs(words, point):  # noqa: F811
    run = [*RUN, "--call-timeout", "2", "-m", shlex.join(words), "--"]
    script = f"""if True:
        import os
        os.open("{point}/sticky", os.O_RDONLY | os.O_CLOEXEC)
        os.execvp("cat", ["cat", "{point}/one"])
    """
    made = subprocess.run(
        [*run, sys.executable, "-c", script], capture_output=True, timeout=60, check=False
    )
    assert (made.returncode, made.stdout) == (0, b"one")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_that_ends_a_program_ends_it_in_a_call_that_hangs(words, mark, point, number):  # noqa: F811
    """Behind a kernel mount it would stay until the file system answers."""

    def wait():
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        directfuse.read(directfuse.os_open(f"{point}/mute", os.O_RDONLY), 10)

    mount = directfuse.mount(words, placement="server")
    pid = begin_fork(wait)
    until(mark.exists)
    os.kill(pid, number)
    assert ended(pid) == -number
    os.kill(the_server(), signal.SIGKILL)
    mount.unmount()
    until(lambda: not servers())


# ---- told to end twice, without a time-out -------------------------------------------------------


def test_a_server_that_is_told_twice_gives_up_what_hangs(words, mark, point, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    serve = [sys.executable, "-m", "directfuse", "serve", "--name", "moody", shlex.join(words)]
    with subprocess.Popen(serve, stderr=subprocess.PIPE, text=True) as serving:
        until((tmp_path / "directfuse/moody.shadow").is_symlink)
        mount = _joined("@moody")
        directfuse._native.set_call_timeout(mount.id, 200)
        gives_up(lambda: directfuse.stat(f"{point}/sub/hang"), mark)
        serving.send_signal(signal.SIGTERM)
        with pytest.raises(subprocess.TimeoutExpired):
            serving.wait(0.5)
        serving.send_signal(signal.SIGTERM)
        assert serving.wait(30) == -signal.SIGTERM
        assert serving.stderr.read().count(LINE) == 1
    mount.unmount()
    until(lambda: not servers())


def test_a_run_says_that_it_waits_for_its_server(point):  # noqa: F811
    """Which is stopped, and goes on by SIGCONT."""
    run = [*RUN, "-m", f"memfs {point}", "--", "cat"]
    with subprocess.Popen(
        run, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as running:
        running.stdin.write(b"begun\n")
        running.stdin.flush()
        assert running.stdout.readline() == b"begun\n"
        (server,) = servers()
        stop(server)
        running.stdin.close()
        said = running.stderr.readline()
        os.kill(server, signal.SIGCONT)
        assert running.wait(30) == 0
    assert f"waiting for the mount server (process {server})".encode() in said


@pytest.mark.sweep
def test_a_run_that_is_interrupted_twice_gives_up_what_hangs(words, mark, point):  # noqa: F811
    """The first ends the program, which waits for the file system, as any."""
    run = [*RUN, "-m", shlex.join(words), "--", "cat", f"{point}/mute"]
    with subprocess.Popen(
        run, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as running:
        until(mark.exists)
        os.killpg(running.pid, signal.SIGINT)
        until(lambda: children(running.pid) <= servers())
        running.send_signal(signal.SIGINT)
        assert running.wait(50) == -signal.SIGINT
        said = running.stderr.read()
    assert said.count("without its file systems") <= 1  # unless it had not yet begun to wait
    until(lambda: not servers())
