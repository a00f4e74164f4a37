"""What programs of a run learn from each other: sites are rewritten before anybody traps there."""

import os
import shlex
import sys

import pytest

#: A program whose own code holds a site, and one of the same size that does something else there.
_SOURCE = """
#include <stdio.h>
#include <unistd.h>
static long call(long nr) {{
    long result;
    if (nr) __asm__ volatile("{code}" : "=a"(result) : : "rcx", "r11", "memory");
    return result;
}}
int main(int argc, char **argv) {{ printf("%d\\n", (int)(call(argc) {compare})); return 0; }}
"""
_ASKS = {"code": "mov $39, %%eax\\n syscall\\n", "compare": "== getpid()"}
_COUNTS = {"code": "mov $39, %%eax\\n inc %%eax\\n", "compare": "- 39 + 0 * getpid()"}


def _repeat(command, count=8):
    return f"i=0; while [ $i -lt {count} ]; do {command}; i=$((i + 1)); done"


def test_later_programs_do_not_trap(plain, inside):
    script = _repeat("/bin/ls -d /etc; /bin/cat /dev/null", 20)
    wanted = plain("/bin/sh", "-c", script)
    found = inside("/bin/sh", "-c", script)
    trapping = inside("/bin/sh", "-c", script, flags="norewrite")
    assert found.seen() == trapping.seen() == wanted.seen()
    assert found.events["learnt"] > 10 * found.events["execs"]
    assert found.events["trapped"] < trapping.events["trapped"] / 3
    assert trapping.events["learnt"] == 0


def test_what_a_program_traps_at_often_is_learnt_though_few_programs_do(inside):
    """One program in four asks for the target of one link again and again: it does not trap for it
    any more, nor rewrites the site each time anew."""
    often = "import os\nfor i in range(6): os.readlink('/proc/self/exe')"
    round_ = f"{shlex.join([sys.executable, '-IS', '-c', often])}; /bin/true; /bin/true; /bin/true"
    few, many = (inside("/bin/sh", "-c", _repeat(round_, count)) for count in (8, 24))
    assert many.events["rewritten"] - few.events["rewritten"] < 16
    assert (many.status, many.out) == (0, b"")


def test_a_program_that_has_learnt_does_not_trap(inside):
    """But at its end: that call goes by a register's copy, for which there is no room."""
    few, many = (inside("/bin/sh", "-c", _repeat("/bin/true", count)) for count in (8, 28))
    assert many.events["trapped"] - few.events["trapped"] < 20 * 2


def _compile(plain, name, **words):
    script = f"cat >{name}.c && gcc -O1 {name}.c -o {name}"
    source = _SOURCE.format(**words).encode()
    assert plain("/bin/sh", "-c", script, stdin=None, input=source).status == 0


@pytest.mark.parametrize("change", ["cat b >p", "cp b c; mv c p"], ids=["written to", "replaced"])
def test_a_changed_program_is_not_taken_for_the_old_one(tmp_path, plain, inside, change):
    """Where the first one has its system call, the second one computes."""
    _compile(plain, "a", **_ASKS)
    _compile(plain, "b", **_COUNTS)
    assert (tmp_path / "plain/a").stat().st_size == (tmp_path / "plain/b").stat().st_size
    script = f"cd ../plain; cp a p; {_repeat('./p')}; {change}; {_repeat('./p')}; cp a p; ./p"
    found = inside("/bin/sh", "-c", script)
    assert found.out.split() == [b"1"] * 17
    assert found.events["learnt"] > 0


def test_many_programs_at_the_same_time(inside):
    loop = _repeat("/bin/echo -n x", 25)
    script = f"for n in 1 2 3 4 5 6; do ( {loop} ) & done; wait"
    found = inside("/bin/sh", "-c", script)
    assert found.out == b"x" * 150
    assert found.events["learnt"] > 0


def test_other_files_of_a_name(inside):
    """A library that a program loads, and one that lies where another has lain."""
    script = (
        "import ctypes, _ctypes\n"
        "for i in range(20):\n"
        "    for name in 'libm.so.6', 'libutil.so.1', 'libresolv.so.2':\n"
        "        _ctypes.dlclose(ctypes.CDLL(name)._handle)\n"
        "print(ctypes.CDLL('libm.so.6').abs is not None)"
    )
    found = inside(sys.executable, "-c", script)
    assert (found.status, found.out) == (0, b"True\n")


@pytest.mark.parametrize("rubbish", [b"\xff", b"\1\0\0\0", None], ids=["ones", "rings", "random"])
def test_nothing_in_the_table_is_believed(inside, rubbish):
    """Programs that share it may spoil it: that costs speed."""
    script = _repeat("/bin/ls -d /etc", 10)
    found = inside("/bin/sh", "-c", script, learnt=rubbish or os.urandom(4096))
    assert (found.status, found.out) == (0, b"/etc\n" * 10)


def test_who_only_looks_at_code_finds_it_as_it_is(inside):
    """As valgrind does, whose translations would jump to where there is nothing for it."""
    script = (
        "import mmap, sys\n"
        "with open(sys.argv[1], 'rb') as file:\n"
        "    rights = mmap.PROT_READ | mmap.PROT_EXEC\n"
        "    code = mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE, rights)\n"
        "    print(code[:] == file.read())\n"
    )
    libc = next(line.split()[-1] for line in open("/proc/self/maps") if "libc.so" in line)
    looking = shlex.join([sys.executable, "-S", "-c", script, libc])
    found = inside("/bin/sh", "-c", f"{_repeat('/bin/true', 8)}; {looking}")
    assert found.out == b"True\n"
    assert found.events["learnt"] > 0


@pytest.mark.parametrize("who", ["thread", "vfork"])
def test_rewriting_among_others_is_registered_for_while_there_are_none(
    plain, inside, compiled, who
):
    """When they are there, the kernel waits for all processors, for milliseconds (decision 088)."""
    program = compiled("registered")
    assert plain(program, who).out == b"Operation not permitted\n"
    assert inside(program, who).out == b"Success\n"
    assert inside(program, who, flags="norewrite").out == b"Operation not permitted\n"
