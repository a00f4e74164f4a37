"""Signals and births, by programs that try what is hard."""

import errno
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import PROGRAMS


@pytest.mark.parametrize("flags", ["", "norewrite"])
def test_signals_keep_their_promises(plain, inside, compiled, flags):
    program = compiled("signals")
    wanted = plain(program)
    assert inside(program, flags=flags).seen() == wanted.seen()


@pytest.mark.parametrize("flags", ["", "norewrite"])
@pytest.mark.parametrize("threads", ["1", "8"])
def test_a_storm_of_signals(inside, compiled, flags, threads):
    found = inside(compiled("storm"), threads, "1500", flags=flags)
    assert (found.status, found.out) == (0, b"failures 0, handled enough 1\n")


#: Programs that print what they find, a line of it that says that they have tried it, how often.
_FOUND = {
    "ignores": (b"1 1 1 1 ignored", 5),
    "kept": (b"handled 2", 2),
    "lent": (b"ignored default; handled 2", 9),
    "parked": (b"another thread", 4),
    "returns": (b"executed with 0 blocked", 1),
    "sent": (b"handled: 3 0", 1),
    "stacks": (b"wrong 0", 1),
    "told": (b"handled: flags", 4),
    "unmaps": (b"ended, with one along", 6),
}


@pytest.mark.parametrize("flags", ["", "norewrite", "preload"])
@pytest.mark.parametrize("name", _FOUND)
def test_signals_are_as_without_us(plain, inside, compiled, flags, name):
    """Those that are blocked, also SIGBUS, which the core has open while it works, and those that
    the kernel never sees blocked; faults that are sent; actions, also shared ones, or all ignored;
    alternate stacks, also one that threads share, and threads that unmap the stack they run on:
    each call that traps is a signal."""
    program = compiled(name)
    line, times = _FOUND[name]
    wanted = plain(program, timeout=10)
    assert wanted.out.count(line) == times
    assert inside(program, flags=flags).seen() == wanted.seen()


#: Calls of stepped.c; of the core's instructions one of so many is tried: a step takes some
#: microseconds, and each instruction wants all the steps before it.
_STEPPED = {
    "pass": 1,
    "action": 3,
    "return": 5,
    "mask": 9,
    "fork": 29,
    "vfork": 61,
    "clone": 61,
    "execfails": 29,
}

#: In sweeps each is, but for calls that copy so much that it is 17,000 steps.
_LONG = {"vfork": 31, "clone": 31}

#: Sent at once, or the second so many instructions behind the first.
_SENT = {"SEGV": "0", "USR1": "0", "SYS": "0", "SEGV,BUS,USR1": "0", "USR1,SEGV": "40"}


def step(inside, program, call, sent, stride, flags, gap="0"):
    """What the tracer says in the end."""
    control = str(program.parent / f"{os.getpid()}-control")
    command = [program, "trace", control, sent, str(stride), gap]
    Path(control).unlink(missing_ok=True)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as tracer:
        try:
            found = inside(program, call, control, flags=flags, timeout=400)
            said = tracer.communicate(timeout=10)[0].splitlines()
        finally:
            tracer.kill()
    assert found.status == 0, said[-20:]
    return said


def is_clean(said):
    """Each of the tried instructions is as it should be, and there were some."""
    tried, wrong = re.fullmatch(r"\d+ steps, (\d+) tried, (\d+) wrong.*", said[-1]).groups()
    return int(tried) >= 10 and wrong == "0"


@pytest.mark.parametrize("flags", ["", "norewrite", "preload"])
@pytest.mark.parametrize("call", _STEPPED)
def test_a_signal_at_an_instruction(inside, compiled, call, flags):
    said = step(inside, compiled("stepped"), call, "SEGV", _STEPPED[call], flags)
    assert is_clean(said), said[:20] + said[-1:]


@pytest.mark.parametrize("flags", ["", "norewrite"])
@pytest.mark.parametrize("call", _STEPPED)
def test_a_signal_at_an_instruction_where_gs_is_the_programs(inside, compiled, call, flags):
    said = step(inside, compiled("stepped"), f"gs:{call}", "USR1", 2 * _STEPPED[call], flags)
    assert is_clean(said), said[:20] + said[-1:]


def _wants_instructions():
    if "fsgsbase" not in Path("/proc/cpuinfo").read_text(encoding="ascii"):
        pytest.skip("the processor cannot write the base of %gs")


@pytest.mark.parametrize("flags", ["", "norewrite", "seccomp"])
def test_bases_of_gs_are_the_programs(plain, inside, compiled, flags):
    """In threads, children, and handlers, which come at any time."""
    _wants_instructions()
    wanted = plain(compiled("based"), "file")
    assert b"handled some, wrong 0" in wanted.out
    assert inside(compiled("based"), "file", flags=flags).seen() == wanted.seen()


#: AT_HWCAP2 has no HWCAP2_FSGSBASE: what sets a base by the instruction would not be seen.
_HIDDEN = "import ctypes; print(ctypes.CDLL(None).getauxval(26) & 2)"


def test_programs_are_not_told_that_they_can_write_bases(inside):
    assert inside(sys.executable, "-c", _HIDDEN).seen() == (0, b"0\n", b"")


def test_bases_of_gs_are_the_programs_in_a_mount(plain, mounted, compiled):
    _wants_instructions()
    assert mounted(compiled("based"), "file").seen() == plain(compiled("based"), "file").seen()


@pytest.mark.sweep
@pytest.mark.timeout(400)
@pytest.mark.parametrize("flags", ["", "norewrite"])
@pytest.mark.parametrize("sent", _SENT)
@pytest.mark.parametrize("call", [*_STEPPED, *(f"gs:{call}" for call in _STEPPED)])
def test_signals_at_every_instruction(inside, compiled, call, sent, flags):
    stride = _LONG.get(call.removeprefix("gs:"), 1)
    said = step(inside, compiled("stepped"), call, sent, stride, flags, _SENT[sent])
    assert is_clean(said), said[:20] + said[-1:]


@pytest.mark.parametrize("flags", ["", "norewrite", "seccomp"])
def test_births_beside_threads_that_work(inside, compiled, flags):
    found = inside(compiled("births"), "10", ".", flags=flags)
    assert (found.status, found.out) == (0, b"failures 0\n")
    assert found.events["forks"] == 60
    assert found.events["escaped"] == 0


@pytest.mark.parametrize("program", ["/bin/true", "./script"])
def test_children_leave_no_memory_behind(plain, inside, compiled, tmp_path, program):
    """posix_spawn() shares the parent's memory with what executes."""
    for name in "plain", "inside":
        (tmp_path / name).mkdir()
        (tmp_path / name / "script").write_text("#!/bin/true\n")
        (tmp_path / name / "script").chmod(0o755)
    found = inside(compiled("spawns"), "200", program)
    assert found.seen() == plain(compiled("spawns"), "200", program).seen()
    assert found.out == b"pages more: 0\n"


def test_children_beside_us_leave_no_memory_behind(plain, inside, compiled):
    """Those that share it and run at the same time; some are killed, some have children."""
    found = inside(compiled("spawns"), "200")
    assert found.seen() == plain(compiled("spawns"), "200").seen()
    assert found.out == b"pages more: 0\n"


_UNWOUND = "-fexceptions", "-rdynamic"


@pytest.mark.parametrize("flags", ["", "norewrite", "seccomp"])
def test_what_unwinds_from_a_call(plain, inside, compiled, flags):
    """Backtraces in handlers and threads that are cancelled; see unwound.c."""
    program = compiled("unwound", *_UNWOUND)
    wanted = plain(program)
    assert b"unwound 1" in wanted.out and b"unwound 0" not in wanted.out
    assert inside(program, flags=flags).seen() == wanted.seen()


def test_what_unwinds_from_a_call_that_the_core_makes(plain, mounted, compiled):
    program = compiled("unwound", *_UNWOUND)
    assert mounted(program).seen() == plain(program).seen()


#: Signals come while valgrind waits in a system call: of a child, and from another process.
_INTERRUPTED = """
for i in 1 2 3; do sleep .1 & wait; echo $i >f$i; cat f$i; done; ls
trap 'echo got' USR1; (sleep .3; kill -USR1 $$) & sleep 1; wait; echo end
"""


def test_a_timeout_of_a_socket_is_not_begun_anew(plain, mounted, compiled):
    program = compiled("timed")
    wanted = plain(program)
    assert (wanted.out.count(b"done, behind three signals"), wanted.out.count(b"EINTR")) == (4, 6)
    assert mounted(program).seen() == wanted.seen()


@pytest.mark.sweep
@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed")
def test_valgrind_meets_signals(plain, mounted):
    command = "valgrind", "-q", "bash", "-c", _INTERRUPTED
    wanted = plain(*command)
    assert wanted.seen() == (0, b"1\n2\n3\nf1\nf2\nf3\ngot\nend\n", b"")
    assert mounted(*command).seen() == wanted.seen()


@pytest.mark.parametrize("words", [(), ("seccomp",)], ids=["prctl", "seccomp"])
@pytest.mark.parametrize(
    "flags", ["verbose", "verbose norewrite", "verbose seccomp", "verbose preload"]
)
def test_a_program_that_filters_its_calls(plain, inside, compiled, words, flags):
    program = compiled("filter")
    found = inside(program, *words, flags=flags)
    assert found.seen() == plain(program, *words).seen() == (0, b"50 -1\n", b"")
    if "norewrite" not in flags:
        assert "a program filters its system calls: it is rewritten no further" in found.notes


#: SECCOMP_SET_MODE_FILTER with no filter: programs ask so whether there are any.
_ASK = "import ctypes; print(ctypes.CDLL(None, use_errno=True).syscall(317, 1, 1, None))"


def test_to_ask_for_filters_changes_nothing(inside):
    found = inside(sys.executable, "-c", _ASK, flags="verbose")
    assert (found.status, found.out) == (0, b"-1\n")
    assert not [note for note in found.notes if "filters its system calls" in note]


@pytest.mark.parametrize("flags", ["", "norewrite", "seccomp", "preload"])
def test_a_handler_makes_the_calls_that_a_filter_refuses(plain, inside, compiled, flags):
    """As Chromium's and Firefox' sandboxes do; see broker.c."""
    program = compiled("broker")
    wanted = plain(program)
    assert wanted.status == 0 and wanted.out.endswith(
        b"thread: 4 text 4, -1, given, 1005; 20 calls, 0 wrong\n"
    )
    assert inside(program, flags=flags).seen() == wanted.seen()


def test_such_a_handler_in_a_mount(mounted, compiled):
    """What the mount answers by itself, that "other" is missing, no filter sees."""
    found = mounted(compiled("broker"))
    assert found.seen()[::2] == (0, b"")
    assert found.out.endswith(b"thread: 4 text 4, -1, given, 1005; 15 calls, 0 wrong\n")


@pytest.mark.parametrize("error", [errno.ENOSYS, errno.EPERM], ids=["ENOSYS", "EPERM"])
@pytest.mark.parametrize("flags", ["", "preload"])
def test_programs_start_under_a_filter_that_knows_no_young_calls(
    plain, inside, compiled, error, flags
):
    command = (
        compiled("older"),
        str(error),
        "/bin/sh",
        "-c",
        "echo words; ls /nonexistent; exit 5",
    )
    found = inside(*command, flags=flags)
    assert found.seen() == plain(*command).seen()
    assert (found.status, found.out) == (5, b"words\n")


@pytest.mark.parametrize("signal", ["SYS", "SEGV", "BUS"])
def test_the_first_process_of_a_namespace(plain, inside, signal):
    """Signals that are sent to it do not end it, also those whose handlers are the core's."""
    script = f"kill -{signal} $$; echo alive; /bin/echo child; kill -{signal} $$; echo again"
    command = ["unshare", "-fpr", "sh", "-c", script]
    wanted = plain(*command)
    if b"alive" not in wanted.out:
        pytest.skip("no PID namespaces here")
    assert inside(*command).seen() == wanted.seen()


@pytest.mark.sweep
@pytest.mark.timeout(200)
def test_a_long_storm(inside, compiled):
    found = inside(compiled("storm"), "12", "40000", timeout=180)
    assert (found.status, found.out) == (0, b"failures 0, handled enough 1\n")


@pytest.mark.sweep
@pytest.mark.parametrize("flags", ["", "norewrite", "seccomp"])
def test_a_go_program(plain, inside, tmp_path, flags):
    if shutil.which("go") is None:
        pytest.skip("no Go compiler. Debian: apt install golang-go")
    program = tmp_path / "program"
    environment = os.environ | {"CGO_ENABLED": "0", "GOCACHE": str(tmp_path / "cache")}
    command = ["go", "build", "-o", program, PROGRAMS / "program.go"]
    subprocess.run(command, check=True, env=environment, cwd=tmp_path)
    found = inside(program, flags=flags)
    assert found.seen() == plain(program).seen()
    assert found.events["escaped"] == 0


@pytest.mark.sweep
def test_strace_and_gdb_see_it(inside):
    quiet = ["-ex", "handle SIGSYS nostop noprint pass", "-ex", "run"]
    for tool, words in {
        "strace": ["strace", "-f", "-o", "trace", "/bin/sh", "-c", "echo traced; /bin/true"],
        "gdb": ["gdb", "-batch", *quiet, "--args", "/bin/echo", "traced"],
    }.items():
        if shutil.which(tool) is None:
            pytest.skip(f"no {tool}")
        found = inside(*words)
        assert found.status == 0 and b"traced\n" in found.out
        assert found.events["escaped"] == 0
