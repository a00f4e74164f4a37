"""`directfuse run`: exit statuses, bad input, signals, several mounts, what is left behind."""

import functools
import json
import os
import resource
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import needs
import pytest
from building import build
from click.testing import CliRunner

from directfuse._cli.env import env
from directfuse._mount_server import MountServer

from .conftest import COMMAND, processes_with, said_clearly, shell, wait_until
from .filters import forbidden

pytestmark = needs.run


def test_a_program_and_its_children_see_the_mount(run, memory):
    point, mount = memory
    done = run("run", *mount, *shell(f"echo hi >{point}/a; cat {point}/a; ls {point}"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "hi\na\n", "")
    assert not point.exists()


def test_several_file_systems(run, memory, tmp_path):
    point, mount = memory
    source = tmp_path / "source"
    source.mkdir()
    (source / "f").write_text("from the passthrough\n")
    other = tmp_path / "other"
    line = f"passthrough {source} {other}"
    done = run("run", *mount, "-m", line, *shell(f"cp {other}/f {point}/g; cat {point}/g"))
    assert (done.returncode, done.stdout) == (0, "from the passthrough\n"), done.stderr


def test_a_mountpoint_that_is_taken_is_named_with_what_helps(run, memory):
    """In a run there is nothing that could be unmounted."""
    point, mount = memory
    done = run("run", *mount, *mount, "--", "true")
    assert done.returncode == 125
    assert f"{point} cannot be mounted on: something is mounted there" in done.stderr
    assert "name another mountpoint" in done.stderr


def test_more_file_systems_than_there_is_room_for_are_counted(run, tmp_path):
    lines = [word for i in range(65) for word in ("-m", f"memfs {tmp_path}/{i}")]
    done = run("run", *lines[2:], *shell(f"echo hi >{tmp_path}/64/a; ls -d {tmp_path}/* | wc -l"))
    assert (done.returncode, done.stdout) == (0, "64\n"), done.stderr
    done = run("run", *lines, "--", "/bin/true")
    assert (done.returncode, done.stdout) == (125, "")
    assert "65 file systems: a run has room for 64" in done.stderr


@pytest.mark.parametrize(
    ("command", "status"),
    [
        (["/bin/sh", "-c", "exit 7"], 7),
        (["/bin/sh", "-c", "kill -TERM $$"], -signal.SIGTERM),
        (["/bin/sh", "-c", "kill -INT $$"], -signal.SIGINT),
        (["/bin/sh", "-c", "kill -KILL $$"], -signal.SIGKILL),
        (["/bin/sh", "-c", "exit 130"], 130),
        (["no-such-command-of-ours"], 127),
        (["/etc/passwd"], 126),
        (["/etc"], 126),
    ],
)
def test_the_status_is_the_commands(run, memory, command, status):
    assert run("run", *memory[1], "--", *command).returncode == status


def test_the_status_is_the_commands_though_sigchld_was_ignored(run, memory):
    ignore = functools.partial(signal.signal, signal.SIGCHLD, signal.SIG_IGN)
    done = run("run", *memory[1], *shell("exit 7"), preexec_fn=ignore)
    assert (done.returncode, done.stderr) == (7, "")


def test_a_run_in_a_directory_that_was_removed(tmp_path):
    gone = tmp_path / "gone"
    script = f"mkdir {gone}; cd {gone}; rmdir {gone}; exec {shlex.join(COMMAND)} run -m "
    said = {}
    lines = (f"memfs {tmp_path}/m", "memfs m", f"squashfuse x.sqfs {tmp_path}/m")
    for line in (*lines, f"absent:Class {tmp_path}/n"):
        words = ["/bin/sh", "-c", f"{script} {shlex.quote(line)} -- echo ran"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=50, check=False)
        said[line.split()[1]] = done.stdout + done.stderr
    assert said[f"{tmp_path}/m"] == "ran\n"
    assert said["m"] == "Error: m: the working directory has been removed; name a path\n"
    assert "cannot import absent: No module named 'absent'" in said[f"{tmp_path}/n"]
    if shutil.which("squashfuse"):
        assert "(there is no x.sqfs: the working directory has been removed)" in said["x.sqfs"]


#: The program's parent is gone, and what is above waits for no orphans.
_KILLED_AND_NOT_WAITED_FOR = """
pid=$(sh -c 'sleep 100 >&- & echo $!'); kill -9 $pid
while [ -e /proc/$pid ] && ! grep -q ') Z' /proc/$pid/stat; do sleep 0.02; done
"""
_ADOPTS = """
import ctypes, subprocess, sys
PR_SET_CHILD_SUBREAPER = 36
ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
sys.exit(subprocess.call(sys.argv[1:]))
"""


def test_a_program_that_was_killed_and_nobody_waits_for_does_not_end_the_run_early(slow):
    """Before all was written, as if that program went on in the background."""
    mount, written = slow
    words = [*COMMAND, "run", *mount, *shell(_KILLED_AND_NOT_WAITED_FOR)]
    subprocess.run([sys.executable, "-c", _ADOPTS, *words], timeout=50, check=True)
    assert written.exists()


@pytest.mark.parametrize(("command", "end"), [("run", ["--", "true"]), ("env", [])])
def test_a_mount_that_fails_leaves_nothing_open(run, memory, command, end):
    """Python's development mode tells of it."""
    asked = {"PYTHONDEVMODE": "1", "PYTHONWARNINGS": "error"}
    done = run(command, *memory[1], *memory[1], *end, env=os.environ | asked)
    assert done.returncode == 125
    assert "Warning" not in done.stderr and "Traceback" not in done.stderr


def test_a_mount_that_fails_starts_nothing(run, tmp_path):
    done = run("run", "-m", f"passthrough /nonexistent/source {tmp_path}/x", *shell("echo started"))
    assert done.returncode == 125
    assert done.stdout == ""
    assert "/nonexistent/source" in done.stderr


@pytest.mark.parametrize("word", ["~", "~/x", "~nobody/x", "$HOME/x", "${HOME}/x"])
def test_what_the_shell_has_not_replaced_is_refused(run, tmp_path, word):
    """It would be mounted in the working directory, by that name."""
    for line in (f"memfs '{word}'", f"passthrough '{word}' {tmp_path}/m", f"'{word}' {tmp_path}/m"):
        done = run("run", "-m", line, *shell("echo started"))
        assert (done.returncode, done.stdout) == (125, ""), line
        assert f"{word}: ~ and $ are not replaced here" in done.stderr
    (tmp_path / word).mkdir(parents=True)
    assert run("run", "-m", f"memfs '{word}'", *shell("echo started")).stdout == "started\n"


def test_a_file_system_that_is_not_found_is_no_missing_command(run, tmp_path):
    done = run("run", "-m", f"no-such-file-system {tmp_path}/x", *shell("echo started"))
    assert (done.returncode, done.stdout) == (125, "")
    assert "no-such-file-system: neither a built-in file system (" in done.stderr
    assert ", fsspec) nor" in done.stderr


@pytest.mark.parametrize("command", [("run", "--", "/bin/true"), ("env", "-m", "memfs /x")])
def test_a_run_in_a_run_is_refused_with_the_reason(run, memory, command):
    done = run("run", *memory[1], "--", *COMMAND, *command)
    assert (done.returncode, done.stdout) == (125, "")
    assert "outer run" in done.stderr


#: What a program finds that was started by `sh -c`: its environment, what it ignores, descriptors.
_GIVEN = """
exec 9>"$0"
for fd in 0 1 2; do readlink /proc/$$/fd/$fd >&9 2>/dev/null || echo closed >&9; done
env | cut -d= -f1 | sort >&9
grep SigIgn /proc/$$/status | grep -o '.$' >&9
"""


@pytest.mark.parametrize(
    "given",
    ["exec env -i", "trap '' HUP; exec", "exec <&- >&- 2>&-; exec", "exec 2>&-; exec"],
    ids=["no environment", "nohup", "all closed", "no standard error"],
)
def test_a_program_is_given_what_the_run_was(memory, tmp_path, given):
    mount = memory[1]
    program = ["/bin/sh", "-c", _GIVEN]

    def found(*before):
        file = tmp_path / "found"
        words = shlex.join([*before, *program, str(file)])
        subprocess.run(["/bin/sh", "-c", f"{given} {words}"], timeout=50, check=False)
        return file.read_text()

    assert found() == found(*COMMAND, "run", *mount, "--")


def test_a_mount_of_the_run_is_not_the_kernels_to_unmount(run, memory):
    point, mount = memory
    done = run("run", *mount, "--", *COMMAND, "unmount", point)
    assert done.returncode == 125
    assert done.stderr.endswith("; it is a mount of this run, not the kernel's\n")


@pytest.mark.parametrize("point", ["/", "/proc", "/dev", "/dev/../dev", "/proc/x", "/dev/fd"])
def test_a_mountpoint_that_programs_need_is_refused(run, point):
    done = run("run", "-m", f"memfs {point}", "--", "/bin/true")
    assert done.returncode == 125
    assert "mountpoint" in done.stderr


def test_inline_is_refused_with_the_reason(run, memory):
    done = run("run", *memory[1], "--placement", "inline", "--", "/bin/true")
    assert done.returncode == 125
    assert "mount server" in done.stderr


def test_a_killed_server_is_eio_and_said(run, memory, tmp_path):
    point, mount = memory
    script = (
        f"echo x >{point}/f; for p in /proc/[0-9]*; do "
        "tr '\\0' ' ' <$p/cmdline 2>/dev/null | "
        f"grep -q '^[^ ]*/directfuse-server .*/lib/backends/memfs.so {point} ' "
        f"&& kill -KILL ${{p#/proc/}}; done; cat {point}/f; echo $?; echo on"
    )
    done = run("run", *mount, *shell(script))
    assert (done.returncode, done.stdout) == (0, "1\non\n")
    assert "Input/output error" in done.stderr
    words = "the mount server was killed, perhaps because memory ran out: files answer EIO"
    assert words in done.stderr


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_a_configuration_file(run, memory, tmp_path, encoding):
    point, _ = memory
    file = tmp_path / "mounts.toml"
    text = f'[[mount]]\ncommand = "memfs {point}"\nplacement = "server"\n'
    file.write_text(text, encoding=encoding)
    done = run("run", "--config", file, *shell(f"echo x >{point}/f; cat {point}/f"))
    assert (done.returncode, done.stdout) == (0, "x\n"), done.stderr


def test_all_of_a_configuration_is_read_from_a_pipe(run, tmp_path):
    """Whose words come once: its restart was "never" for whoever read it again."""
    text = f'restart = "on-failure"\n[[mount]]\ncommand = "memfs {tmp_path}/m"\n'
    done = run("run", "--config", "/dev/stdin", "--", "/bin/true", input=text)
    assert done.returncode == 125
    assert "restart=on-failure is for file systems that cannot be written" in done.stderr


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("mount = 1", "[[mount]]"),
        ('[[mount]]\ncommand = "memfs /x\\u0000"', "number 1: command holds a NUL character"),
        ("[[mount]]\nplacement = 'auto'", "command is missing"),
        ("[[mount]]\ncommand = 'memfs /x'\ncolour = 1", "unknown key 'colour'"),
        ("[[mount", "not TOML"),
        (b"title = '\xff'", "not TOML"),
        ("x = " + "[" * 100_000, "not TOML: maximum recursion depth"),
        ("x = " + "1" * 5000, "not TOML: Exceeds the limit"),
        ("#" * (1 << 20) + "\n", "has more than 1 MiB"),
        ("[[mounts]]\ncommand = 'memfs /x'", "unknown key 'mounts'; known: mount, restart"),
        ("[mount]\ncommand = 'memfs /x'", "mount is a table; it is written [[mount]]"),
        ("mount = ['memfs /x']", "[[mount]] number 1: is a string, no table"),
        ("[[mount]]\ncommand = 3", "command is a number, no string"),
        ("[[mount]]\ncommand = ['memfs', '/x']", "command is an array, no string"),
        ("[[mount]]\ncommand = ' '", "[[mount]] number 1: command is empty"),
        ("[[mount]]\ncommand = 'memfs /x'\nplacement = 'inline'", "number 1: inline is for a"),
        ("[[mount]]\ncommand = 2026-11-23", "command is a date or time, no string"),
        ("[[mount]]\ncommand = 'memfs /x'\nplacement = true", "placement is true or false, not"),
        ("[[mount]]\ncommand = 'memfs /x'\nplacement = 'here'", "placement is 'here', not one of"),
        ("restart = 1\n[[mount]]\ncommand = 'memfs /x'", "restart is a number, not one of never"),
    ],
)
def test_a_bad_configuration_file(run, tmp_path, text, words):
    file = tmp_path / "mounts.toml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    done = run("run", "--config", file, "--", "/bin/true")
    assert done.returncode == 125
    assert words in done.stderr and f"{file}" in done.stderr and said_clearly(done)


def test_a_configuration_file_without_an_end(run):
    """It was read until the kernel killed the command, or another, for want of memory."""
    limited = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))}
    done = run("run", "--config", "/dev/zero", "--", "/bin/true", **limited)
    assert (done.returncode, said_clearly(done)) == (125, True)
    assert "/dev/zero: has more than 1 MiB" in done.stderr


def test_a_command_line_without_its_quotes_is_shown_with_them(run):
    done = run("run", "-m", "memfs", "/x y", "--", "true")
    assert done.returncode == 125 and "no mountpoint given" in done.stderr
    assert (
        "(-m takes the whole command line in one word: -m 'memfs '\"'\"'/x y'\"'\"'')"
        in done.stderr
    )


def test_a_command_is_no_mountpoint_that_was_forgotten(run):
    done = run("run", "-m", "memfs", "--", "true")
    assert done.returncode == 125 and "no mountpoint given: memfs MOUNTPOINT" in done.stderr
    assert "one word" not in done.stderr
    assert "-m 'memfs x')" in run("run", "-m", "memfs", "x", "--", "true").stderr


def test_a_file_system_in_the_place_of_the_command_is_shown_with_its_option(run):
    done = run("run", "memfs /x", "true")
    assert done.returncode == 127 and "-m 'memfs /x' -- COMMAND" in done.stderr
    assert "is given by -m" not in run("run", "--", "no-such-command").stderr


@pytest.mark.parametrize("line", ["ls -l /", "ls|wc"])
def test_a_line_that_only_a_shell_could_run_is_shown_to_it(run, memory, line):
    done = run("run", *memory[1], "--", line)
    assert done.returncode == 127 and f"-- sh -c '{line}'" in done.stderr
    assert "sh -c" not in run("run", *memory[1], "--", "no-such-command", "a|b").stderr


def test_a_run_without_a_mount_says_so(run):
    done = run("run", *shell("echo ran"))
    assert (done.returncode, done.stdout) == (0, "ran\n")
    assert done.stderr == "directfuse: nothing is mounted, for no file system was named (-m)\n"


@pytest.mark.parametrize("ready", [True, False])
def test_a_server_whose_start_is_interrupted_is_ended(monkeypatch, tmp_path, ready):
    """Also one that has said that it is ready; the signal may come with those words."""

    def interrupted(*arguments):
        monkeypatch.undo()
        raise KeyboardInterrupt

    if ready:
        monkeypatch.setattr(os, "pidfd_open", interrupted)
    else:
        monkeypatch.setattr(MountServer, "_await", interrupted)
    (image := tmp_path / "served").mkdir()
    done = CliRunner().invoke(env, ["-m", f"passthrough {image} {tmp_path}/mnt"])
    assert done.exit_code == 1
    wait_until(lambda: not processes_with(image))


def test_statistics_name_a_mountpoint_of_several_lines(run, tmp_path):
    """Its second line was taken for an operation."""
    point, file = tmp_path / "a\nb \\012\u2028\rc", tmp_path / "stats.json"
    mount = ("-m", f"memfs {shlex.quote(str(point))}")
    done = run("run", f"--stats={file}", *mount, "--", "mkdir", point / "d")
    assert done.returncode == 0, done.stderr
    report = json.loads(file.read_text())
    assert report["mounts"].keys() == {str(point)}
    assert report["mounts"][str(point)]["mkdir"]["calls"] == 1
    done = run("run", "--stats", *mount, "--", "mkdir", point / "d")
    assert f"mkdir\t1\t0\t0\t{tmp_path}/a b \\012" in done.stderr


def test_statistics_that_cannot_be_written_are_refused_before_the_start(run, tmp_path):
    done = run("run", "--stats=missing/stats.json", "--", "touch", tmp_path / "started")
    assert done.returncode == 125 and not (tmp_path / "started").exists()
    assert done.stderr == "Error: --stats=missing/stats.json: No such file or directory\n"


def test_statistics_never_go_to_the_program_behind_the_option(run, memory, tmp_path):
    script = tmp_path / "train.sh"
    script.write_text("#!/bin/sh\necho ran $1\n")
    script.chmod(0o755)
    done = run("run", *memory[1], "--stats", "./train.sh", "--stats")
    assert (done.returncode, done.stdout) == (0, "ran --stats\n")
    assert done.stderr.startswith("operation\tcalls") and "echo" in script.read_text()
    done = run("run", "--stats", "stats.json", *memory[1], "--", "true")
    assert done.returncode == 127 and "by --stats=stats.json" in done.stderr


@pytest.mark.parametrize("option", ["--stats=/dev/full", "--stats"])
def test_the_status_is_the_commands_though_statistics_are_lost(memory, option):
    words = [*COMMAND, "run", option, *map(str, memory[1]), *shell("exit 7")]
    with open("/dev/full", "w") as full:
        assert subprocess.run(words, stderr=full, timeout=50, check=False).returncode == 7


@pytest.mark.parametrize("call, number", [("memfd_create", 319), ("pidfd_open", 434)])
def test_a_system_call_that_is_forbidden_is_named(call, number):
    """As by the seccomp profile of a container."""
    words = [*forbidden(number), *COMMAND, "run", "-m", "memfs /m", "--", "true"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 125 and said_clearly(done)
    assert done.stderr.startswith(f"Error: {call}(2): Operation not permitted: a seccomp filter")


@pytest.mark.parametrize(
    "command",
    [
        [sys.executable, "-c", "import directfuse; directfuse.mount('memfs /m')"],
        [*COMMAND, "run", "-m", "memfs /m", "--", "true"],
    ],
)
def test_threads_that_are_forbidden_are_no_shortage(command):
    clone3 = 435
    command = [*forbidden(clone3), *command]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "Operation not permitted (a seccomp filter forbids it, perhaps)" in done.stderr
    assert "memfs.so: no thread" in done.stderr  # of several file systems, this one


def test_a_file_system_that_has_not_mounted_yet_is_named(tmp_path, monkeypatch):
    (tmp_path / "late.py").write_text(LATE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    words = [*COMMAND, "run", "-m", "late:Late /m", "--", "true"]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as run:
        said = run.stderr.readline()
        run.send_signal(signal.SIGINT)
        assert run.wait(timeout=20) == -signal.SIGINT
    assert said.startswith("directfuse: late:Late: has not mounted yet")


LATE = """
import time

class Late:
    def init(self, path):
        time.sleep(100)

    def getattr(self, path, fh=None):
        return {"st_mode": 0o40755}

    def readdir(self, path, fh=None):
        return [".", ".."]
"""


def test_statistics(run, memory, tmp_path):
    point, mount = memory
    file = tmp_path / "stats.json"
    run("run", *mount, f"--stats={file}", *shell(f"echo x >{point}/f; cat {point}/f; /bin/true"))
    report = json.loads(file.read_text())
    assert report["events"]["execs"] == 3
    assert report["events"]["escaped"] == 0
    assert report["calls"]["openat"]["calls"] > report["calls"]["openat"]["passed"]
    assert report["mounts"][str(point)]["write"] == {"calls": 1, "errors": 0, "bytes": 2}
    assert report["events"]["trips"] > 0
    run(
        "run",
        *mount,
        f"--stats={file}",
        *shell(f"cd {point}; for i in 1 2 3 4 5 6 7 8 9; do test -e x; done"),
    )
    again = json.loads(file.read_text())
    assert again["events"]["hits"] > report["events"]["hits"]


def test_verbose_says_how_calls_trap(run, memory):
    done = run("run", "--verbose", *memory[1], "--", "/bin/true")
    assert "calls trap by" in done.stderr


def _start(memory, script):
    """A run in a session of its own; it has begun when its first line is read."""
    process = subprocess.Popen(
        [*COMMAND, "run", *memory[1], *shell(script)],
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout.readline() == b"ready\n"
    return process


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_is_sent_on(memory, number):
    process = _start(
        memory, f"trap 'exit 9' {number.name[3:]}; echo ready; while :; do sleep 0.05; done"
    )
    process.send_signal(number)
    process.stdout.close()
    assert process.wait(20) == 9


def test_births_beside_threads_that_use_the_mount(run, memory, tmp_path):
    point, mount = memory
    source = Path(__file__).parents[1] / "intercept/programs/births.c"
    build(source, tmp_path / "births", "-pthread")
    done = run(
        "run", *mount, *shell(f"mkdir {point}/d && ./births 10 {point}/d; ls {point}/d | wc -l")
    )
    assert (done.returncode, done.stdout) == (0, "failures 0\n3\n"), done.stderr


def test_what_runs_on_keeps_the_mount(memory, tmp_path):
    point, _ = memory
    late = tmp_path / "late"
    script = (
        f"echo ready; echo x >{point}/f; "
        f"(while [ ! -e {tmp_path}/go ]; do sleep 0.02; done; cat {point}/f >{late}) &"
    )
    process = _start(memory, script)
    process.stdout.close()
    assert process.wait(20) == 0
    (tmp_path / "go").touch()
    wait_until(lambda: late.exists() and late.read_text() == "x\n")
    wait_until(lambda: not processes_with(point))


#: On one processor, on which the program only runs when this has nothing to do.
_STOPS_WHAT_STARTS = """
import os, signal, sys
os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
end, other = os.pipe()
child = os.fork()
if child == 0:
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    for fd in range(3):
        os.dup2(os.open(os.devnull, os.O_RDWR), fd)
    os.execvp("sleep", ["sleep", "100"])
with open(sys.argv[1], "w") as file:
    file.write(str(child))
os.close(other)
os.read(end, 1)
os.kill(child, signal.SIGSTOP)
"""


def test_what_is_stopped_at_its_start_runs_on(run, memory, tmp_path):
    """It does not keep the command line waiting, though it cannot have said that it is there."""
    _, mount = memory
    command = (sys.executable, "-c", _STOPS_WHAT_STARTS, tmp_path / "child")
    try:
        done = run("run", *mount, "--", *command, timeout=20)
        assert (done.returncode, done.stderr) == (0, "")
    finally:
        os.kill(int((tmp_path / "child").read_text()), signal.SIGKILL)


@pytest.mark.parametrize("options", [(), ("--restart", "on-failure")], ids=["once", "again"])
def test_output_ends_with_the_command_though_others_run_on(run, tmp_path, options):
    point, late = tmp_path / "point", tmp_path / "late"
    (tmp_path / "source").mkdir()
    mount = f"passthrough {tmp_path}/source {point} -o ro"
    waits = f"(while [ ! -e {tmp_path}/go ]; do sleep 0.02; done; ls -d {point} >{late})"
    script = f"echo words; echo more >&2; {waits} >/dev/null 2>&1 </dev/null &"
    done = run("run", *options, "-m", mount, *shell(script), timeout=20)
    assert (done.returncode, done.stdout, done.stderr) == (0, "words\n", "more\n")
    assert not late.exists()  # run() has read both pipes to their ends
    (tmp_path / "go").touch()
    wait_until(lambda: late.exists() and late.read_text() == f"{point}\n")
    wait_until(lambda: not processes_with(point))


def test_a_mount_in_a_mount(run, memory):
    point, mount = memory
    script = (
        f"cd {point}; mkdir inner || echo it is there; echo outer >f; echo x >inner/g; "
        "cat inner/../f; cd inner; ls; cd ..; rmdir inner || echo it is busy; mv inner/g h; cat h"
    )
    done = run("run", *mount, "-m", f"memfs {point}/inner", *shell(script))
    assert (done.returncode, done.stdout) == (0, "it is there\nouter\ng\nit is busy\nx\n")


def with_shared_memory(options, command):
    """Runs a command where /dev/shm is a tmpfs of its own."""
    words = ["unshare", "--mount", "sh", "-c"]
    mount = f"mount -t tmpfs -o {options} none /dev/shm"
    if subprocess.run([*words, mount], check=False, capture_output=True).returncode != 0:
        pytest.skip("mounting another /dev/shm is not permitted here")
    return subprocess.run(
        [*words, f'{mount} && exec "$@"', "sh", *COMMAND, *command],
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )


def test_shared_memory_that_is_mounted_noexec(memory):
    """Programs and libraries in a mount are run all the same."""
    point, mount = memory
    library = "ldconfig -p | sed -n 's,.*=> \\(.*/libz.so.1\\),\\1,p' | head -1"
    programs = f"cp /bin/echo e; ./e ran; cp $({library}) l.so; LD_PRELOAD=$PWD/l.so ./e loaded"
    script = f"cd {point}; {programs}"
    done = with_shared_memory("noexec", ["run", *mount, *shell(script)])
    assert (done.returncode, done.stdout, done.stderr) == (0, "ran\nloaded\n", "")


def test_shared_memory_that_is_smaller_than_a_mapped_file(memory):
    """What was touched is given up again for what is touched next."""
    point, mount = memory
    python = (
        "import mmap, os; m = mmap.mmap(os.open('f', os.O_RDWR), 0); print(m[:1], m.find(b'y'))"
    )
    script = (
        f"cd {point}; head -c 30000000 /dev/zero | tr '\\0' x >f; "
        f'python3 -S -c "{python}"; echo $?; wc -c <f; echo more >>f; tail -c 5 f'
    )
    done = with_shared_memory("size=4m", ["run", *mount, *shell(script)])
    assert (done.returncode, done.stdout) == (0, "b'x' -1\n0\n30000000\nmore\n"), done.stderr


def test_shared_memory_without_room_for_open_files(memory):
    """As many as there are placeholders for; then ENOSPC. Those that are open go on."""
    point, mount = memory
    python = (
        "import errno, os\n"
        "fds = []\n"
        "try:\n"
        "    while len(fds) < 400:\n"
        "        fds.append(os.open(f'f{len(fds)}', os.O_RDWR | os.O_CREAT))\n"
        "except OSError as error:\n"
        "    print(errno.errorcode[error.errno], 5 < len(fds) < 100)\n"
        "for fd in fds:\n"
        "    os.write(fd, b'text'); os.fsync(fd)\n"
        "print({os.pread(fd, 9, 0) for fd in fds}); os.close(fds[0])\n"
        "print(os.open('f1', os.O_RDONLY) == fds[0])\n"
    )
    script = f"cd {point}; python3 -S -c {shlex.quote(python)}"
    done = with_shared_memory("size=200k,nr_inodes=60", ["run", *mount, *shell(script)])
    assert (done.returncode, done.stdout) == (0, "ENOSPC True\n{b'text'}\nTrue\n"), done.stderr


def test_shared_memory_that_is_full(memory):
    """A file that is mapped at once and does not fit: ENOMEM; the file goes on."""
    point, mount = memory
    python = "import mmap, os; mmap.mmap(os.open('f', os.O_RDWR), 0)"
    script = (
        f'cd {point}; head -c 8000000 /dev/zero >f; python3 -S -c "{python}" 2>&1 | tail -1; '
        "wc -c <f; echo more >>f; tail -c 5 f"
    )
    done = with_shared_memory("size=4m", ["run", *mount, *shell(script)])
    wanted = "OSError: [Errno 12] Cannot allocate memory\n8000000\nmore\n"
    assert (done.returncode, done.stdout) == (0, wanted), done.stderr


def test_env_refuses_what_it_would_not_do(run, tmp_path):
    file = tmp_path / "mounts.toml"
    file.write_text("restart = 'on-failure'\n[[mount]]\ncommand = 'memfs -o ro /m'\n")
    done = run("env", "--config", file)
    assert (done.returncode, done.stdout) == (125, "") and said_clearly(done)
    assert f"{file}: restart is for `directfuse run`" in done.stderr
