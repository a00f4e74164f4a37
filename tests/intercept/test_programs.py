"""Whole programs: the same output and the same status inside as without us, and none escapes."""

import os
import shutil
import subprocess
import sys

import pytest

from .conftest import PROGRAMS
from .scripts import SCRIPTS


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_program_does_the_same_inside(plain, inside, name):
    wanted = plain("/bin/sh", "-c", SCRIPTS[name])
    found = inside("/bin/sh", "-c", SCRIPTS[name])
    assert found.seen() == wanted.seen()
    assert found.events["escaped"] == 0
    assert found.events["execs"] >= 1
    assert found.calls["rt_sigaction"][0] + found.calls.get("execve", [0])[0] > 0


@pytest.mark.parametrize("name", ["pipeline", "static program", "subprocess", "trap", "threads"])
def test_the_same_without_changing_code(plain, inside, name):
    wanted = plain("/bin/sh", "-c", SCRIPTS[name])
    found = inside("/bin/sh", "-c", SCRIPTS[name], flags="norewrite")
    assert found.seen() == wanted.seen()
    assert found.events["rewritten"] == 0
    calls = sum(calls for calls, _ in found.calls.values())
    # A handler that comes before the call goes back to the program's own instruction.
    assert calls <= found.events["trapped"] <= calls + calls // 100


def test_programs_give_their_counters_back(inside):
    """Also those that execute another one, or whose parent waits for that: vfork."""
    python = (
        "import os; os.system('/bin/true'); os.posix_spawn('/bin/true', ['true'], {}); os.wait()"
    )
    script = f'/bin/true; (/bin/true); python3 -S -c "{python}"; exec /bin/true'
    found = inside("/bin/sh", "-c", script)
    assert found.status == 0
    assert found.events["execs"] >= 6
    assert found.owners == []


#: What shows LD_PRELOAD and our own variable, or depends on how the very first program was started.
_BY_LOADER_ONLY = {"environment"}


@pytest.mark.parametrize(
    "name", ["status", "killed", "pipeline", "git", "static program", "subprocess", "asyncio"]
)
def test_the_same_by_the_environment(plain, inside, name):
    wanted = plain("/bin/sh", "-c", SCRIPTS[name])
    found = inside("/bin/sh", "-c", SCRIPTS[name], flags="preload")
    assert found.seen() == wanted.seen()
    assert found.events["escaped"] == 0
    assert sum(calls for calls, _ in found.calls.values()) > 10


@pytest.mark.skipif(shutil.which("musl-gcc") is None, reason="musl-gcc is not installed")
def test_musl_by_the_environment(inside, tmp_path):
    """It gives constructors no arguments. As the first program, and as one that another starts."""
    program = tmp_path / "again"
    subprocess.run(["musl-gcc", PROGRAMS / "again.c", "-o", program], check=True)
    for command in ([program], ["/bin/sh", "-c", f"{program}; :"]):
        found = inside(*command, flags="preload")
        assert (found.status, found.out.splitlines()[:4]) == (0, [b"1", b"2", b"3", b"4"])
        assert found.events["execs"] >= 3


@pytest.mark.parametrize("name", ["status", "pipeline", "static program", "threads", "asyncio"])
def test_the_same_without_syscall_user_dispatch(plain, inside, name):
    wanted = plain("/bin/sh", "-c", SCRIPTS[name])
    found = inside("/bin/sh", "-c", SCRIPTS[name], flags="seccomp verbose")
    assert found.seen() == wanted.seen()
    assert found.notes == ["calls trap by seccomp, as asked"]


def test_writable_code_may_be_refused(plain, inside):
    """PR_SET_MDWE, as SELinux's execmem and execmod: calls trap, and it is said."""
    script = (
        "import ctypes, os, sys\n"
        "if ctypes.CDLL(None).prctl(65, 1, 0, 0, 0): sys.exit(77)\n"
        "os.execvp('sh', ['sh', '-c', 'for i in 1 2 3; do (echo $i) | cat; done'])"
    )
    wanted = plain(sys.executable, "-c", script)
    if wanted.status == 77:
        pytest.skip("this kernel has no PR_SET_MDWE")
    found = inside(sys.executable, "-c", script)
    assert found.seen() == wanted.seen()
    assert "writable code is refused here: every system call traps" in found.notes


@pytest.mark.sweep
@pytest.mark.parametrize("flags", ["norewrite", "preload", "seccomp"])
@pytest.mark.parametrize("name", sorted(set(SCRIPTS) - _BY_LOADER_ONLY))
def test_every_program_by_every_way(plain, inside, name, flags):
    wanted = plain("/bin/sh", "-c", SCRIPTS[name])
    assert inside("/bin/sh", "-c", SCRIPTS[name], flags=flags).seen() == wanted.seen()


@pytest.mark.skipif(os.geteuid() != 0, reason="chroot needs root")
def test_a_program_in_a_chroot_without_proc_starts_others(inside, compiled, tmp_path):
    jail = tmp_path / "jail"
    jail.mkdir()
    shutil.copy(compiled("again", "-static"), jail / "again")
    found = inside("chroot", jail, "/again")
    assert (found.status, found.out) == (0, b"1\n2\n3\n4\n/again\n")


def test_a_program_is_shown_by_the_name_that_its_file_has_now(plain, inside):
    script = r"""
    cp "$(command -v perl)" one; ln -s one link
    ./link -e 'for (1, 2) { my $n = readlink("/proc/self/exe"); $n =~ s!.*/!!; print "$n\n";
        rename "one", "two" }'
    """
    wanted = plain("/bin/sh", "-c", script)
    assert wanted.out == b"one\ntwo\n"
    assert inside("/bin/sh", "-c", script).seen() == wanted.seen()


_TYPES_OF_AUXV = """
import struct
with open("/proc/self/auxv", "rb") as vector:
    print(*sorted({kind for kind, _ in struct.iter_unpack("QQ", vector.read())}))
"""


def test_the_auxiliary_vector_in_proc_has_types_that_programs_know(plain, inside):
    """ClickHouse ends itself at any other. Ours is AT_IGNORE."""
    command = sys.executable, "-c", _TYPES_OF_AUXV
    wanted, found = plain(*command), inside(*command)
    assert {*found.out.split()} == {*wanted.out.split(), b"1"}


@pytest.mark.parametrize("flags", ["", "seccomp"])
def test_a_program_executes_itself_by_its_name_in_proc(plain, inside, flags):
    """Of that name the kernel knows the loader."""
    command = "perl", "-e", 'exec "/proc/self/exe", "-e", "print 1"'
    wanted = plain(*command)
    assert wanted.seen() == (0, b"1", b"")
    assert inside(*command, flags=flags).seen() == wanted.seen()


@pytest.mark.parametrize("flags", ["", "seccomp"])
def test_the_heap_begins_behind_a_program_of_a_fixed_address(plain, inside, compiled, flags):
    """Where a program was dumped with its heap, as GNU Common Lisp's are, it has to go on there."""
    program = compiled("heap", "-no-pie")
    for arguments in [], ["at once"]:
        wanted = plain(program, *arguments)
        assert wanted.seen() == (0, b"behind the program\ngrows\n", b"")
        assert inside(program, *arguments, flags=flags).seen() == wanted.seen()
