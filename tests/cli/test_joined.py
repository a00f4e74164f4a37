"""`directfuse run -m @NAME`, `directfuse env -m @NAME`: programs in a mount server that goes on."""

import contextlib
import errno
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
from pathlib import Path

import needs
import pytest

import directfuse

from .conftest import COMMAND, shell, wait_until

pytestmark = needs.run

_PPOLL = 271  # its system call, by which an answer of the server is waited for


def shadows():
    return {path for path in Path("/dev/shm").glob("directfuse-*") if path.is_dir()}


class Server:
    """`directfuse serve` of a memfs with the name "tmp"."""

    def __init__(self, directory, *words, line="memfs {point}"):
        self.point = directory / "mnt"
        self.link = directory / "directfuse/tmp.shadow"
        self.process = subprocess.Popen(
            [*COMMAND, "serve", line.format(point=self.point), "--name", "tmp", *words],
            stderr=subprocess.PIPE,
            text=True,
        )
        wait_until(lambda: self.link.is_symlink() or self.process.poll() is not None)
        self.shadow = self.link.readlink()

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.communicate(timeout=20)


@pytest.fixture
def start(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    started = []

    def call(*words, **options):
        started.append(Server(tmp_path, *words, **options))
        return started[-1]

    yield call
    for server in started:
        if server.process.poll() is None:
            server.end()


@pytest.fixture
def server(start):
    return start()


def begin(*command):
    """A run that has said that it is ready; the command goes on with the next line of its input."""
    process = subprocess.Popen(
        [*COMMAND, "run", "-m", "@tmp", *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout.readline() == "ready\n"
    return process


def python(program, *words):
    return ("--", "/usr/bin/python3", "-c", program, *map(str, words))


def test_runs_one_after_the_other_and_python_share_files(run, server):
    point = server.point
    first = run("run", "-m", "@tmp", *shell(f"mkdir {point}/d; echo hi >{point}/d/f"))
    assert (first.returncode, first.stderr) == (0, "")
    again = run("run", "-m", "@tmp", *shell(f"cd {point}/d; echo more >>f; cat f"))
    assert (again.returncode, again.stdout) == (0, "hi\nmore\n"), again.stderr
    with directfuse.mount("@tmp"):
        assert directfuse.listdir(point) == ["d"]
        assert directfuse.stat(point / "d/f").st_size == 8
    assert server.process.poll() is None
    assert not os.path.lexists(point)


@pytest.mark.parametrize("option", ["-m", "--config"])
def test_a_run_sees_all_file_systems_of_a_server(run, start, tmp_path, option):
    second, config = tmp_path / "second", tmp_path / "mounts.toml"
    config.write_text(f'[[mount]]\ncommand = "memfs {second}"\n')
    server = start(option, config if option == "--config" else f"memfs {second}")
    first = server.point
    line = (
        f"echo x >{first}/f && ln {first}/f {second}/f; mv {first}/f {second}/g && cat {second}/*"
    )
    done = run("run", "--verbose", "-m", "@tmp", *shell(line))
    assert (done.returncode, done.stdout) == (0, "x\n") and "cross-device" in done.stderr
    assert f"@tmp is mounted at {first}, {second}\n" in done.stderr
    again = run("run", "-m", "@tmp", *shell(f"ls -A {first} {second}"))
    assert again.stdout.split() == [f"{first}:", f"{second}:", "g"]


_RUN = shlex.join([*COMMAND, "run", "-m"])


def test_a_run_within_a_run_of_the_same_server(run, server, tmp_path):
    """Its command is one more program of the outer run."""
    script = tmp_path / "script"
    script.write_text(f"cat {server.point}/f; exit 3\n")  # no "#!": execvp(3) calls sh
    script.chmod(0o755)
    line = (
        f"echo x >{server.point}/f; {_RUN} @tmp -- {script}; echo $?; {_RUN} @tmp -- yes | head -1"
    )
    done = run("run", "-m", "@tmp", *shell(line))
    assert (done.stdout, done.stderr) == ("x\n3\ny\n", "")
    for inner, status, said in (
        (f"{_RUN} @tmp --verbose -- /bin/true", 0, "of a run with @tmp already"),
        (f"{_RUN} @tmp -- nothing-such", 127, "command not found"),
        (f"{_RUN} @tmp -- /etc/passwd", 126, "Permission denied"),
        (f"{_RUN} @tmp --stats -- echo started", 125, "outer run"),
        (f"{_RUN} @nobody -- echo started", 125, "one run at most"),
        (f"{_RUN} 'memfs /m' -- echo started", 125, "one run at most"),
        (shlex.join([*COMMAND, "env", "-m", "@tmp"]), 125, "nothing to enter"),
    ):
        done = run("run", "-m", "@tmp", *shell(inner))
        assert (done.returncode, done.stdout) == (status, ""), (inner, done)
        assert said in done.stderr, (inner, done)


def test_a_run_of_another_server_within_a_run(run, server, tmp_path):
    """Not that it is a run of any server counts, but of which."""
    line = f"{_RUN} @tmp -- echo started"
    assert run("run", "-m", f"memfs {tmp_path}/m", *shell(line)).returncode == 125


_HOLDER = """
import fcntl, mmap, os, sys
fd = os.open(sys.argv[1] + "/f", os.O_RDWR | os.O_CREAT)
os.ftruncate(fd, 4096)
fcntl.lockf(fd, fcntl.LOCK_EX, 10)
whole = os.open(sys.argv[1] + "/whole", os.O_RDWR | os.O_CREAT)
fcntl.flock(whole, fcntl.LOCK_EX)
memory = mmap.mmap(fd, 4096)
memory[:5] = b"first"
print("ready", flush=True)
sys.stdin.readline()
print(memory[5:11].decode(), flush=True)
"""

_OTHER = """
import fcntl, mmap, os, sys
fd = os.open(sys.argv[1] + "/f", os.O_RDWR)
whole = os.open(sys.argv[1] + "/whole", os.O_RDWR)
for call in (fcntl.lockf, fd, 10), (fcntl.flock, whole):
    try:
        call[0](call[1], fcntl.LOCK_EX | fcntl.LOCK_NB, *call[2:])
        print("taken")
    except BlockingIOError:
        print("held")
memory = mmap.mmap(fd, 4096)
print(memory[:5].decode())
memory[5:11] = b"second"
print(os.pread(fd, 11, 0).decode())
"""


def test_locks_and_mapped_memory_of_runs_at_the_same_time(run, server):
    holder = begin(*python(_HOLDER, server.point))
    other = run("run", "-m", "@tmp", *python(_OTHER, server.point))
    assert other.stdout.split() == ["held", "held", "first", "firstsecond"], other.stderr
    said, errors = holder.communicate("\n", timeout=20)
    assert (holder.returncode, said) == (0, "second\n"), errors
    free = run("run", "-m", "@tmp", *python(_OTHER, server.point))
    assert free.stdout.split()[:2] == ["taken", "taken"]


def test_a_run_that_is_killed_leaves_the_server_healthy(run, server):
    holder = begin(*python(_HOLDER, server.point))
    os.killpg(holder.pid, signal.SIGKILL)
    holder.communicate(timeout=20)

    def is_free():
        found = run("run", "-m", "@tmp", *python(_OTHER, server.point)).stdout.split()
        return found == ["taken", "taken", "first", "firstsecond"]

    wait_until(is_free)
    assert server.process.poll() is None


_WATCH = """
import ctypes, os, struct, sys
libc = ctypes.CDLL(None)
fd = libc.inotify_init1(0)
assert libc.inotify_add_watch(fd, sys.argv[1].encode(), 0x100 | 0x8 | 0x80) > 0
print("ready", flush=True)
while True:
    data = os.read(fd, 4096)
    while data:
        _, mask, _, size = struct.unpack_from("iIII", data)
        name = data[16 : 16 + size].rstrip(b"\\0").decode()
        print(mask, name, flush=True)
        data = data[16 + size :]
        if name == "last":
            sys.exit()
"""


def test_a_run_is_told_what_others_change(run, server):
    """inotify(7): another run, and a Python process that has joined."""
    watcher = begin(*python(_WATCH, server.point))
    assert run("run", "-m", "@tmp", *shell(f"echo >{server.point}/run")).returncode == 0
    with directfuse.mount("@tmp"):
        with directfuse.open(server.point / "python", "w") as file:
            file.write("x")
        directfuse.rename(server.point / "python", server.point / "last")
    said, errors = watcher.communicate(timeout=20)
    assert (watcher.returncode, errors) == (0, "")
    assert said.splitlines() == ["256 run", "8 run", "256 python", "8 python", "128 last"]


_AFTER = """
import os, subprocess, sys
fd = os.open(sys.argv[1] + "/f", os.O_RDWR | os.O_CREAT)
os.write(fd, b"x")
print("ready", flush=True)
sys.stdin.readline()
for call in (
    lambda: os.pread(fd, 1, 0),
    lambda: os.stat(sys.argv[1]),
    lambda: open(sys.argv[1] + "/f", "w"),
):
    try:
        print(call())
    except OSError as error:
        print(error.strerror)
print(subprocess.run(["cat", sys.argv[1] + "/f"], capture_output=True).stderr.decode(), end="")
print(subprocess.run(["echo", "on"], capture_output=True).stdout.decode(), end="")
"""


def only_child(process):
    return int(Path(f"/proc/{process}/task/{process}/children").read_text())


@pytest.mark.parametrize("how", ["asked", "killed"])
def test_the_servers_end_is_eio_and_said(server, how):
    """Programs go on, and the next that they start too; none sees what is really at the path."""
    holder = begin(*python(_AFTER, server.point))
    server.point.mkdir()
    (server.point / "f").write_text("real")
    if how == "killed":
        os.kill(only_child(server.process.pid), signal.SIGKILL)
        server.process.communicate(timeout=20)
    else:
        server.end()
    assert not server.shadow.exists()
    said = holder.stderr.readline()
    assert said == "directfuse: the mount server @tmp has ended: files answer EIO from now on\n"
    lines, _ = holder.communicate("\n", timeout=20)
    wanted = ["Input/output error"] * 3 + [f"cat: {server.point}/f: Input/output error", "on"]
    assert (holder.returncode, lines.splitlines()) == (0, wanted)
    assert (server.point / "f").read_text() == "real"


def test_nothing_is_left_of_the_server(run, start):
    before = shadows()
    server = start()
    assert run("run", "-m", "@tmp", *shell(f"echo x >{server.point}/f")).returncode == 0
    assert server.shadow.is_dir()
    server.end()
    assert not server.link.is_symlink()
    outer = server.shadow.parent
    assert not {outer, outer.with_name(outer.name + ".ended")} & (shadows() - before)


def test_a_directory_that_somebody_has_removed_is_no_missing_file(run, server):
    """As systemd does at a logout. What was there was ENOENT."""
    file = server.point / "f"
    process = begin(*shell(f"echo x >{file}; echo ready; read line; cat {file}; test -s {file}"))
    shutil.rmtree(server.shadow.parent)
    _, said = process.communicate("go on\n", timeout=50)
    assert (process.returncode, said) == (0, f"cat: {file}: Input/output error\n")
    refused = run("run", "-m", "@tmp", "--", "true")
    assert refused.returncode == 125
    assert f"{server.shadow}, has been removed" in refused.stderr


REMOVED = """
import os, socket, sys
where = sys.argv[1]
os.mkdir(f"{where}/sub")
print("ready", flush=True)
input()
for call, word in (
    (os.chdir, f"{where}/sub"),
    (socket.socket(socket.AF_UNIX).bind, f"{where}/socket"),
    (os.path.isdir, f"{where}/sub"),
):
    try:
        print(call.__name__, call(word))
    except OSError as error:
        print(call.__name__, error.strerror)
"""


def test_nor_is_it_a_missing_directory(server):
    process = begin(*python(REMOVED, server.point))
    shutil.rmtree(server.shadow.parent)
    said, _ = process.communicate("go on\n", timeout=50)
    assert said == "chdir Input/output error\nbind Input/output error\nisdir True\n"


def test_a_server_that_is_started_again_goes_on(start, tmp_path):
    """Only its keeper is what programs wait for."""
    (tmp_path / "source").mkdir()
    (tmp_path / "source/f").write_text("there")
    server = start("--restart", "on-failure", line=f"passthrough -o ro {tmp_path}/source {{point}}")
    script = f"echo ready; read line; cat {server.point}/f"
    holder = begin(*shell(script))
    os.kill(only_child(only_child(server.process.pid)), signal.SIGKILL)
    assert holder.communicate("\n", timeout=20) == ("there", "")


def test_a_python_file_system_is_joined_too(run, start, monkeypatch):
    pytest.importorskip("pyfuse3")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    server = start(line="pyfs.notes:Notes x {point}")
    first = run("run", "-m", "@tmp", *shell(f"echo hi >{server.point}/y"))
    assert first.returncode == 0, first.stderr
    again = run("run", "-m", "@tmp", *shell(f"cat {server.point}/y; ls {server.point}"))
    assert again.stdout == "hi\nx\ny\n", again.stderr


def test_what_is_refused(run, server, tmp_path):
    for words, said in (
        (["-m", "@nobody"], "directfuse serve"),
        (["-m", "@a/b"], "no slash"),
        (["-m", "@.hidden"], "no leading dot"),
        (["-m", "@tmp /elsewhere"], "the mountpoints are those of its server"),
        (["-m", "@tmp", "-m", f"memfs {tmp_path}/x"], "in one server"),
        (["--restart", "on-failure", "-m", "@tmp"], "directfuse serve"),
        (["--placement", "inline", "-m", "@tmp"], "mount server"),
    ):
        done = run("run", *words, *shell("echo started"))
        assert (done.returncode, done.stdout) == (125, ""), words
        assert said in done.stderr and "Traceback" not in done.stderr
    (tmp_path / "directfuse").chmod(0o755)
    done = run("run", "-m", "@tmp", *shell("echo started"))
    (tmp_path / "directfuse").chmod(0o700)
    assert (done.returncode, done.stdout) == (125, "")
    assert "only you" in done.stderr


@pytest.fixture
def slow(tmp_path, monkeypatch):
    """The name of a server that has not mounted anything yet, and so does not answer."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    (tmp_path / "directfuse").mkdir(0o700)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
        server.bind(str(tmp_path / "directfuse/slow.socket"))
        server.listen()
        yield "@slow"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_waits_until_its_server_has_mounted_can_be_ended(slow, number):
    """Its signals waited, too: Ctrl-C did nothing until the server answered."""
    run = subprocess.Popen([*COMMAND, "run", "-m", slow, "--", "true"])
    wait_until(lambda: Path(f"/proc/{run.pid}/syscall").read_text().startswith(f"{_PPOLL} "))
    run.send_signal(number)
    assert run.wait(timeout=20) == -number


def test_a_run_says_that_it_waits_for_a_server_to_answer(slow):
    words = [*COMMAND, "run", "-m", slow, "--", "true"]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as run:
        said = run.stderr.readline()
        run.send_signal(signal.SIGINT)
        assert run.wait(timeout=20) == -signal.SIGINT
    assert "@slow: does not answer" in said


def test_a_server_is_waited_for_no_longer_than_is_said(slow):
    def ignore(*_):
        with contextlib.suppress(FileNotFoundError):  # what fails meanwhile is another's errno
            directfuse.statx("/none")
        signal.setitimer(signal.ITIMER_REAL, 0.1)

    before = signal.signal(signal.SIGALRM, ignore)
    ignore()
    try:
        with pytest.raises(directfuse.MountError, match="has not mounted") as caught:
            directfuse.mount(slow, timeout=1)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert caught.value.errno == errno.ETIMEDOUT


@pytest.mark.parametrize("lines", [("memfs /proc",), ("memfs {point}", "-m", "memfs /proc")])
def test_a_mountpoint_that_programs_need_is_refused(run, start, lines):
    start(*lines[1:], line=lines[0])
    done = run("run", "-m", "@tmp", *shell("echo started"))
    assert (done.returncode, done.stdout) == (125, "")
    assert "cannot be a mountpoint" in done.stderr


def test_what_is_said_and_counted(run, server, tmp_path):
    file = tmp_path / "stats.json"
    words = ("--verbose", f"--stats={file}", "-m", "@tmp")
    done = run("run", *words, *shell(f"echo x >{server.point}/f"))
    assert f"@tmp is mounted at {server.point}" in done.stderr
    assert "operations of @tmp" in done.stderr
    report = json.loads(file.read_text())
    assert report["mounts"] == {}
    assert report["events"]["trips"] > 0


def test_by_the_environment(server):
    command = shlex.join(COMMAND)
    script = (
        f'eval "$({command} env -m @tmp)"; sh -c "echo y >{server.point}/f"; '
        f"{_RUN} @tmp -- cat {server.point}/f; "
        f'd=${{DIRECTFUSE_RUN%/run}}; eval "$({command} env --end)"; ls -d $d* || echo gone'
    )
    done = subprocess.run(
        ["/bin/bash", "-c", script], capture_output=True, text=True, check=False, timeout=50
    )
    assert done.stdout == "y\ngone\n", done.stderr
    with directfuse.mount("@tmp"):
        assert directfuse.listdir(server.point) == ["f"]


@pytest.mark.usefixtures("server")
def test_a_limit_of_open_files_is_named_where_a_run_joins():
    words = shlex.join([*COMMAND, "run", "-m", "@tmp", "--", "/bin/true"])
    status = set()
    for limit in range(6, 16):  # 126: of the loader, which opens the command
        script = f"ulimit -n {limit}; exec {words}"
        done = subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, timeout=50)
        status.add(done.returncode)
        assert ("`ulimit -n 1024`" in done.stderr) == (done.returncode != 0), done.stderr
    assert {125, 0} <= status <= {126, 125, 0}
