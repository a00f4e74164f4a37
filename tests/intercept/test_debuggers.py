"""Debuggers inside, and the programs that they debug there."""

import shutil
import subprocess

import pytest

from .conftest import PROGRAMS

_KINDS = {
    "dynamic": ("-fpie", "-pie"),
    "fixed": ("-fno-pie", "-no-pie"),
    "static": ("-static",),
    "static-pie": ("-static-pie",),
}

#: Starts $0 beside itself, waits until it has said something, has $@ done with it, and ends it.
_BESIDE = """
mkfifo said && { "$0" wait > said & } && pid=$! && read words < said && echo "$words"
"$@" $pid
kill $pid
"""


#: The others show what these two show.
_PARAMS = [
    kind if kind in ("dynamic", "static-pie") else pytest.param(kind, marks=pytest.mark.sweep)
    for kind in _KINDS
]


@pytest.fixture(params=_PARAMS)
def program(request, tmp_path):
    """With symbols: something to stop in."""
    name = tmp_path / request.param
    source = PROGRAMS / "debugged.c"
    subprocess.run(["gcc", "-g", *_KINDS[request.param], source, "-o", name], check=True)
    return name


def gdb(*commands):
    if shutil.which("gdb") is None:
        pytest.skip("no gdb. Debian: apt install gdb")
    return ["gdb", "-batch", "-nx", *(word for command in commands for word in ("-ex", command))]


@pytest.mark.parametrize("flags", ["", "norewrite", "seccomp"])
def test_a_breakpoint_is_met(inside, program, flags):
    """Where the kernel has put the loader; and calls that trap are no signals of the program."""
    breakpoints = "break main", "break count_up if number == 3"
    commands = gdb(*breakpoints, "run", "continue", "backtrace", "finish", "delete", "continue")
    found = inside(*commands, program, flags=flags)
    words = found.out.decode()
    assert "Breakpoint 1, main" in words
    assert "Breakpoint 2, count_up (number=3)" in words
    assert "in main (argc=1" in words
    assert "Value returned is $1 = 6" in words
    assert "counter 10\n" in words and "exited normally" in words
    assert "SIGSYS" not in words
    assert found.status == 0


@pytest.mark.parametrize("flags", ["", "norewrite"])
def test_a_tracer_that_waits_by_waitid(plain, inside, compiled, flags):
    command = compiled("waitid"), "/bin/sh", "-c", "kill -USR1 $$"
    wanted = plain(*command)
    assert wanted.out == b"child 4 5\nchild 4 10\nchild 2 10\n"
    assert inside(*command, flags=flags).seen() == wanted.seen()


@pytest.mark.parametrize("flags", ["", "norewrite", "seccomp"])
def test_a_tracer_that_waits_as_for_any_child(plain, inside, compiled, flags):
    """Without __WALL: no call that traps is told as a stop; see traced.c."""
    program = compiled("traced")
    wanted = plain(program)
    assert wanted.status == 0 and b"waitpid exited 5\n" in wanted.out
    assert inside(program, flags=flags).seen() == wanted.seen()


def test_a_debugger_is_attached(inside, program):
    """It asks /proc which program that is, and where."""
    commands = gdb("info symbol main", "print counter")
    found = inside("/bin/sh", "-c", _BESIDE, program, *commands, "-p")
    words = found.out.decode()
    assert "main in section .text" in words
    assert "$1 = 10\n" in words


def test_the_program_of_another_process(inside, program):
    """By its absolute name, by a relative one, and opened."""
    script = 'readlink /proc/$1/exe; cmp /proc/$1/exe "$0" && echo same; cd /proc/$1; readlink exe'
    found = inside("/bin/sh", "-c", _BESIDE, program, "/bin/sh", "-c", script, program)
    assert found.out.decode().splitlines() == ["counter 10", str(program), "same", str(program)]


def test_a_program_that_is_executed_by_the_one_that_is_debugged(inside, program):
    commands = gdb(
        "set follow-exec-mode new", "set breakpoint pending on", "break count_up if number == 2",
        "run", "backtrace", "kill",
    )  # fmt: skip
    found = inside(*commands, "--args", "/bin/sh", "-c", f"exec {program}")
    words = found.out.decode()
    assert "in main (argc=1" in words, words


def test_environment_and_arguments_end_where_they_end(plain, inside):
    """Behind them the loader has found what it was told."""
    shown = "/proc/self/environ", "/proc/self/cmdline"
    command = ["/usr/bin/env", "-i", "A=1", "B=2", "/bin/cat", *shown]
    assert inside(*command).seen() == plain(*command).seen()


def test_a_tracer_without_events_is_stopped_for_where_each_program_begins(plain, inside, compiled):
    begins = compiled("begins", "-nostdlib", "-static")
    command = compiled("starts"), "/bin/sh", "-c", 'exec "$0" >/dev/null', begins
    wanted = plain(*command)
    assert (wanted.status, wanted.out.count(b"5: at ")) == (0, 2)
    assert inside(*command).seen() == wanted.seen()
