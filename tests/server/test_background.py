"""`directfuse serve --background`: it returns when others can join, and leaves nothing open."""

import os
import resource
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import needs
import pytest

import directfuse
from directfuse import _paths

from .built import built
from .test_lives import servers, the_server, until

DIRECTFUSE = [sys.executable, "-m", "directfuse"]


@pytest.fixture
def runtime(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path / "directfuse"


@pytest.fixture
def call(runtime, tmp_path):
    """Runs directfuse and waits until nobody has its output open any more."""

    def run(*words, **options):
        options = {"cwd": tmp_path, "timeout": 30} | options
        return subprocess.run(
            [*DIRECTFUSE, *map(str, words)], capture_output=True, text=True, check=False, **options
        )

    yield run
    for path in runtime.glob("*.socket"):
        run("unmount", f"@{path.stem}")


@pytest.fixture
def script(tmp_path):
    """Makes a program that does something before it is memfs: one for a helper process."""

    def make(before):
        path = tmp_path / "script"
        path.write_text(f'#!/bin/sh\n{before}\nexec {_paths.program("memfs")} "$@"\n')
        path.chmod(0o755)
        return path

    return make


def keeper_of(server):
    """The process of `directfuse serve`."""
    return int(Path(f"/proc/{server}/stat").read_text().rpartition(")")[2].split()[1])


def opened(pid):
    """By number, what a process has open."""
    return {int(entry.name): os.readlink(entry) for entry in Path(f"/proc/{pid}/fd").iterdir()}


def test_it_can_be_joined_when_the_command_returns(call, tmp_path):
    point = tmp_path / "mnt"
    for turn in range(3):
        done = call("serve", f"memfs {point}", "--name=soon", "--background")
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        with directfuse.mount("@soon"):
            directfuse.mkdir(point / f"made-{turn}")
            assert directfuse.listdir(point) == [f"made-{turn}"]
        assert call("unmount", "@soon").returncode == 0
        assert not servers()


def test_one_that_mounts_late_is_waited_for_and_named(call, script, tmp_path):
    slow, point = script("until test -e go; do sleep 0.01; done"), tmp_path / "mnt"
    words = [*DIRECTFUSE, "serve", f"{slow} {point}", "--name=late", "--background"]
    with subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        assert f"{slow}: has not mounted yet" in process.stderr.readline()
        assert process.poll() is None
        (tmp_path / "go").touch()
        assert process.wait(30) == 0
    with directfuse.mount("@late"):
        assert directfuse.listdir(point) == []


def test_it_is_detached(call, tmp_path):
    """By its pipes call() knows that nothing has them open; a shell's other descriptors go, too."""
    held = os.open(tmp_path / "held", os.O_RDWR | os.O_CREAT)
    os.set_inheritable(held, True)
    done = call("serve", f"memfs {tmp_path}/mnt", "--name=own", "--background", pass_fds=[held])
    os.close(held)
    assert done.returncode == 0
    server = the_server()
    for process in (server, keeper_of(server)):
        files = opened(process)
        assert str(tmp_path / "held") not in files.values()
        assert files[0] == "/dev/null"
        assert os.getsid(process) == process
    assert [opened(keeper_of(server))[number] for number in (1, 2)] == ["/dev/null"] * 2


def _ignore():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def _block():
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})


@pytest.mark.parametrize("how", [_ignore, _block])
def test_unmount_ends_a_server_that_was_started_without_sigterm(call, tmp_path, how):
    """It was waited for, and stayed."""
    words = ("serve", f"memfs {tmp_path}/mnt", "--name=deaf", "--background")
    assert call(*words, preexec_fn=how).returncode == 0
    done = call("unmount", "@deaf")
    assert (done.returncode, done.stderr) == (0, "")
    assert not servers()


def test_a_failure_has_the_words_and_the_status_of_the_foreground(call, tmp_path):
    for words in (f"memfs --nonsense {tmp_path}/mnt", "no-such-program-at-all /mnt", "memfs"):
        fore = call("serve", words, "--name=broken")
        back = call("serve", words, "--name=broken", "--background")
        assert back.returncode == fore.returncode and fore.returncode in (1, 125)
        assert back.stderr == fore.stderr != ""
    assert not servers() and not list((tmp_path / "directfuse").iterdir())


limits = pytest.mark.parametrize(
    ("limit", "remedy"),
    [
        (resource.RLIMIT_AS, "`ulimit -v unlimited`"),
        (resource.RLIMIT_FSIZE, "`ulimit -f unlimited`"),
    ],
    ids=["address space", "files"],
)


@limits
def test_a_limit_that_leaves_a_server_no_memory_is_named(call, tmp_path, limit, remedy):
    size = 400_000 << 10
    done = call(
        *("serve", f"memfs {tmp_path}/mnt", "--name=small"),
        preexec_fn=lambda: resource.setrlimit(limit, (size, size)),
    )
    assert done.returncode == 1 and "the mount server cannot begin" in done.stderr
    assert "may have 400000 KiB " in done.stderr and done.stderr.endswith(f"{remedy})\n")


@limits
def test_a_limit_that_leaves_a_server_no_memory_is_named_to_python(tmp_path, limit, remedy):
    size = 400_000 << 10
    text = f"import directfuse; directfuse.mount('memfs {tmp_path}/mnt', placement='server')"
    done = subprocess.run(
        [sys.executable, "-c", text],
        preexec_fn=lambda: resource.setrlimit(limit, (size, size)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert "may have 400000 KiB " in done.stderr and remedy in done.stderr, done.stderr


@pytest.mark.parametrize("options", [[], ["--background"]])
def test_what_a_file_system_says_stands_without_an_errno(call, options):
    done = call("serve", "memfs", "--name=mine", *options)
    assert done.returncode == 1 and "memfs: no mountpoint given" in done.stderr
    assert "Input/output error" not in done.stderr


def test_a_name_with_its_sign_is_refused(call, tmp_path):
    """One that joined it by @mine would look for another."""
    done = call("serve", f"memfs {tmp_path}/mnt", "--name=@mine", "--background")
    assert done.returncode == 125 and "without its @" in done.stderr


def test_a_server_that_is_joined_without_its_sign_is_shown_with_it(call, tmp_path):
    call("serve", f"memfs {tmp_path}/mnt", "--name=mine", "--background")
    done = call("run", "-m", "mine", "--", "true")
    assert done.returncode == 125 and "the mount server of that name is @mine" in done.stderr


def test_a_server_that_is_unmounted_without_its_sign_is_shown_with_it(call, tmp_path):
    call("serve", f"memfs {tmp_path}/mnt", "--name=mine", "--background")
    done = call("unmount", "mine")
    assert done.returncode == 125 and "(the mount server of that name is @mine)" in done.stderr
    assert "@" not in call("unmount", "other").stderr


def test_a_name_that_is_taken_is_refused(call, tmp_path):
    assert call("serve", f"memfs {tmp_path}/a", "--name=one", "--background").returncode == 0
    second = call("serve", f"memfs {tmp_path}/b", "--name=one", "--background")
    assert second.returncode == 125 and "is running" in second.stderr
    with directfuse.mount("@one") as mount:
        assert mount.mountpoint == f"{tmp_path}/a"


@pytest.fixture
def talking(tmp_path, monkeypatch):
    """Makes the command line of a Python file system that says something whenever it is asked."""

    def make(statement):
        (tmp_path / "talking.py").write_text(
            "import os, sys\n"
            "os.write(2, b'at the start\\n')\n"
            "class Empty:\n"
            "    def getattr(self, path, *_):\n"
            f"        {statement}\n"
            "        if path == '/x':\n"
            "            raise FileNotFoundError(2, 'none')\n"
            "        return {'st_mode': 0o40755, 'st_nlink': 2}\n"
            "    def readdir(self, *_):\n"
            "        return ['.', '..']\n"
        )
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
        return f"talking:Empty {tmp_path}/mnt"

    return make


def test_words_go_to_the_log_once_it_is_mounted(call, talking, tmp_path):
    log = tmp_path / "log"
    log.write_text("before\n")
    command = talking("os.write(2, b'later\\n') if path == '/later' else 0")
    done = call("serve", command, "--name=talks", "--background", "--log", "log")
    assert done.returncode == 0 and done.stderr == "at the start\n"
    with directfuse.mount("@talks"):
        directfuse.stat(f"{tmp_path}/mnt/later")
    until(lambda: "later" in log.read_text())
    assert log.read_text().startswith("before\nat the start\nlater\n")
    assert call("unmount", "@talks").returncode == 0


@pytest.mark.parametrize("options", [[], ["--background", "--log=log"]], ids=["here", "log"])
@pytest.mark.parametrize("how", ["loaded", "helper", "Python"])
def test_what_a_file_system_says_is_heard(call, talking, tmp_path, tmp_path_factory, how, options):
    """At its start and later, by whatever way; of a helper's program, as long as it stays in the
    foreground, what it has not kept in a buffer."""
    point, words = tmp_path / "mnt", ["complained", "logged", *(["printed"] * (how == "loaded"))]
    if how == "Python":
        command, words = talking("path == '/x' and print('said', path, file=sys.stderr)"), ["said"]
    else:
        program = built("talker", tmp_path_factory)
        wrapper = tmp_path / "wrapper"
        wrapper.write_text(f'#!/bin/sh\nexec {program} -f "$@"\n')
        wrapper.chmod(0o755)
        command = f"{program if how == 'loaded' else wrapper} {point}"
    heard = tmp_path / ("log" if options else "errors")
    heard.touch()
    with (tmp_path / "errors").open("wb") as errors:
        line = [*DIRECTFUSE, "serve", command, "--name=talks", *options]
        serve = subprocess.Popen(line, cwd=tmp_path, stderr=errors)
    until(lambda: "at the start" in heard.read_text(), 20)
    until((tmp_path / "directfuse/talks.shadow").exists, 20)
    with directfuse.mount("@talks"), pytest.raises(FileNotFoundError):
        directfuse.stat(f"{point}/x")
    until(lambda: all(f"{word} /x" in heard.read_text() for word in words))
    assert heard.read_text().count("at the start") == 1
    assert call("unmount", "@talks").returncode == 0
    assert serve.wait(20) == (0 if options else -signal.SIGTERM)


def test_words_without_a_log_stop_nobody(call, talking, tmp_path):
    """A megabyte for each stat, which no pipe takes."""
    command = talking("os.write(2, bytes(1 << 20)) if path == '/later' else 0")
    assert call("serve", command, "--name=talks", "--background").returncode == 0
    with directfuse.mount("@talks"):
        directfuse.stat(f"{tmp_path}/mnt/later")


def test_the_end_of_a_server_that_is_killed_is_in_the_log(call, tmp_path):
    log = tmp_path / "log"
    words = ["serve", f"memfs {tmp_path}/mnt", "--name=dies", "--background", "--log", log]
    assert call(*words).returncode == 0
    os.kill(the_server(), signal.SIGKILL)
    until(lambda: "ended by signal 9" in log.read_text())


def test_a_log_that_cannot_be_and_a_log_without_background_are_refused(call, tmp_path):
    words = ["serve", f"memfs {tmp_path}/mnt", "--name=x"]
    done = call(*words, "--background", "--log=missing/log")
    assert done.returncode == 125 and "No such file" in done.stderr
    done = call(*words, "--log=log")
    assert done.returncode == 125 and "--background" in done.stderr
    assert not (tmp_path / "log").exists() and not servers()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("options", [[], ["--background"]], ids=["foreground", "background"])
def test_interrupted_before_it_is_mounted_nothing_stays(call, script, tmp_path, options, number):
    begun = tmp_path / "begun"
    never = script("echo $$ >begun.pid; mv begun.pid begun; exec sleep 60")
    words = [*DIRECTFUSE, "serve", f"{never} {tmp_path}/mnt", "--name=never", *options]
    process = subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.DEVNULL)
    try:
        until(begun.exists, 20)
        process.send_signal(number)
        assert process.wait(20) == -number
    finally:
        process.kill()
        process.wait()
    until(lambda: not servers())  # who was told may end a moment later
    assert not list((tmp_path / "directfuse").iterdir())
    program = begun.read_text().strip()
    with suppress(ProcessLookupError):
        os.kill(int(program), signal.SIGKILL)  # else it is, ten seconds later
    until(lambda: not Path("/proc", program).exists())


@needs.run
def test_a_run_joins_at_once(call, tmp_path):
    directfuse_ = shlex.join(DIRECTFUSE)
    script = f"""
        {directfuse_} serve 'memfs {tmp_path}/mnt' --name job --background &&
        {directfuse_} run -m @job -- sh -c 'echo kept >{tmp_path}/mnt/file' &&
        {directfuse_} run -m @job -- cat {tmp_path}/mnt/file &&
        {directfuse_} unmount @job"""
    assert subprocess.check_output(["sh", "-c", script], text=True, timeout=60) == "kept\n"


def test_it_is_started_again(call, tmp_path):
    command = f"passthrough -o ro {tmp_path} {tmp_path}/mnt"
    again = ["--restart", "on-failure", "--log", tmp_path / "log"]
    assert call("serve", command, "--name=again", "--background", *again).returncode == 0
    with directfuse.mount("@again"):
        assert directfuse.stat(f"{tmp_path}/mnt").st_ino
    assert call("unmount", "@again").returncode == 0
    assert not servers()


def test_what_is_left_by_one_that_was_killed_goes_with_the_next_of_any_name(call, tmp_path):
    for name in ("killed", "alive"):
        words = ["serve", f"memfs {tmp_path}/{name}", f"--name={name}", "--background"]
        assert call(*words).returncode == 0
        if name == "killed":
            server = the_server()
            for process in (keeper_of(server), server):
                os.kill(process, signal.SIGKILL)
            shadow = (tmp_path / "directfuse/killed.shadow").readlink()
            until(lambda: not servers())
            assert shadow.is_dir()
    left = {entry.name for entry in (tmp_path / "directfuse").iterdir()}
    assert left == {"alive.socket", "alive.shadow"} and not shadow.exists()
    assert call("serve", "memfs /x", "--name=alive", "--background").returncode == 125
    with directfuse.mount("@alive"):  # and the one that lives was left alone
        assert directfuse.listdir(f"{tmp_path}/alive") == []


@pytest.mark.parametrize("base", ["missing", "file", "/proc"])
def test_a_name_that_can_be_nowhere_is_refused_with_the_remedy(call, tmp_path, monkeypatch, base):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / base))
    done = call("serve", "memfs /x", "--name=nowhere")
    assert done.returncode == 125
    assert done.stderr.startswith(f"Error: {tmp_path / base}/directfuse: ")
    assert "XDG_RUNTIME_DIR" in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.parametrize("restart", [[], ["--restart", "on-failure"]], ids=["once", "restart"])
def test_unmount_ends_a_server_whose_serve_was_killed(call, tmp_path, restart):
    """Nothing is left, and the name is free."""
    command = f"passthrough -o ro {tmp_path} {tmp_path}/mnt"
    start = ["serve", command, "--name=orphan", "--background", *restart]
    assert call(*start).returncode == 0
    shadow = (tmp_path / "directfuse/orphan.shadow").readlink()
    serves = [pid for pid in the_parents() if is_serve(pid)]
    assert len(serves) == 1
    os.kill(serves[0], signal.SIGKILL)
    until(lambda: not is_serve(serves[0]))
    with directfuse.mount("@orphan"):
        assert directfuse.listdir(f"{tmp_path}/mnt")
    done = call("unmount", "@orphan")
    assert (done.returncode, done.stderr) == (0, "")
    until(lambda: not servers())
    assert not list((tmp_path / "directfuse").iterdir()) and not shadow.exists()
    assert call("unmount", "@orphan").returncode == 125
    assert call(*start).returncode == 0


def test_unmount_signals_nobody_who_has_the_number_of_a_serve_that_is_gone(call, runtime, tmp_path):
    """Here that is this process: it has called listen(), and has the socket no more."""
    runtime.mkdir(0o700)
    came = []
    former = signal.signal(signal.SIGTERM, lambda number, _: came.append(number))
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind(str(runtime / "other.socket"))
            listener.listen()
            fd = listener.fileno()
            words = [_paths.server(), "--listen", str(fd), "--stay", "--"]
            server = subprocess.Popen(
                [*words, _paths.plugin("memfs"), tmp_path / "mnt"], pass_fds=[fd]
            )
        with directfuse.mount("@other"):
            assert directfuse.listdir(tmp_path / "mnt") == []
        assert call("unmount", "@other").returncode == 0
        assert server.wait(20) == 0 and not came
    finally:
        signal.signal(signal.SIGTERM, former)


def the_parents():
    """Of all servers of this test."""
    return [keeper_of(server) for server in servers()]


def is_serve(pid):
    try:
        return b"serve" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except FileNotFoundError:
        return False


def test_its_directory_goes_although_its_name_is_gone(call, tmp_path):
    """Somebody has cleaned $XDG_RUNTIME_DIR."""
    words = ["serve", f"memfs {tmp_path}/mnt", "--name=cleaned", "--background"]
    assert call(*words).returncode == 0
    shadow = (tmp_path / "directfuse/cleaned.shadow").readlink()
    assert shadow.is_dir()
    shutil.rmtree(tmp_path / "directfuse")
    serve = keeper_of(the_server())
    os.kill(serve, signal.SIGTERM)
    until(lambda: not is_serve(serve))
    assert not servers() and not shadow.exists()


def test_unmount_of_no_server_says_so(call, runtime):
    done = call("unmount", "@nobody")
    assert done.returncode == 125 and "no mount server" in done.stderr
