"""Programs and libraries in a mount that several processes use: they share one copy of the code."""

import os
import shlex
import sys

import pytest
from building import build

#: More than there is room for where little is.
_BALLAST = "const char ballast[200000] = {{1, [199999] = 1}};\n"  # of str.format()

_LIBRARY = _BALLAST + "int answer(int given) {{ return given + {add} + ballast[given] - 1; }}\n"

_SMALL = "int answer(int given) { return given + 10; }\n"

_PROGRAM = (
    "#include <stdio.h>\n"
    + _BALLAST
    + 'int main(int argc, char **argv) {{ printf("{say} %d\\n", ballast[argc - 1]); return 0; }}\n'
)

#: Whether a process has memory that is of a copy for all, as others see it.
_LOOK = "import sys; print('/x/' in open(f'/proc/{sys.argv[1]}/maps').read())"

#: Tells that of itself, what it sees itself, and what the library says, again when it is told to.
_USE = """
import ctypes, os, subprocess, sys
library = ctypes.CDLL(sys.argv[1])
look = [sys.executable, "-S", "-c", sys.argv[2], str(os.getpid())]
sys.stdout.write(subprocess.check_output(look, text=True))
own = [line.split() for line in open("/proc/self/maps") if sys.argv[1][1:] in line]
print(any(words[1] == "r-xp" for words in own), any("/dev/shm" in words[-1] for words in own))
print(library.answer(0), flush=True)
open("ready", "w").close()
for line in sys.stdin:
    print(library.answer(0), flush=True)
"""

_PYTHON = shlex.join([sys.executable, "-S", "-c", _USE, "./l.so", _LOOK])


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Libraries a.so and b.so, which answer 10 and 20, and programs a and b, of one size each; and
    small.so, which answers as a.so does."""
    directory = tmp_path_factory.mktemp("code")
    for name, add in ("a", 10), ("b", 20):
        (directory / f"{name}.c").write_text(_LIBRARY.format(add=add))
        build(directory / f"{name}.c", directory / f"{name}.so", "-shared", "-fPIC", "-O1")
        (directory / f"{name}.c").write_text(_PROGRAM.format(say=name))
        build(directory / f"{name}.c", directory / name, "-O1")
    (directory / "small.c").write_text(_SMALL)
    build(directory / "small.c", directory / "small.so", "-shared", "-fPIC", "-O1")
    return directory


def _loop(command, count=5):
    return f"for n in $(seq {count}); do {command}; done"


def _shared(found):
    """Whether each process had code that it shares; and all that it said besides."""
    lines = found.out.decode().splitlines()
    assert found.status == 0, found
    return [line == "True" for line in lines[::3]], lines[1::3], lines[2::3]


@pytest.mark.parametrize("name", ["a.so", "small.so"])
def test_processes_share_the_code_of_a_library(mounted, made, name):
    script = f"cp {made}/{name} l.so; {_loop(f'{_PYTHON} </dev/null')}"
    shared, own, said = _shared(mounted("/bin/sh", "-c", script))
    assert shared[0] is False and shared[-1] is True
    assert set(own) == {"True False"} and set(said) == {"10"}


def test_processes_share_the_code_of_a_program(mounted):
    look = shlex.join([sys.executable, "-S", "-c", _LOOK])
    use = shlex.quote(f"{look} $$; true")
    found = mounted("/bin/sh", "-c", f"cp /bin/bash sh; {_loop(f'./sh -c {use}')}")
    shared = found.out.split()
    assert shared[0] == b"False" and shared[-1] == b"True", found


def test_a_program_whose_code_is_shared_keeps_its_name(mounted):
    """Which dynamic linkers replace $ORIGIN by: /proc/self/exe."""
    use = shlex.quote("[ /proc/self/exe -ef sh ] && echo same; readlink /proc/$$/exe; true")
    found = mounted("/bin/sh", "-c", f"cp /bin/bash sh; {_loop(f'./sh -c {use}')}")
    names = found.out.decode().split()
    assert names == ["same", names[1]] * 5 and names[1].startswith(f"{mounted.point}/"), found


def test_programs_of_other_users_share_the_code(mounted):
    """Whatever the umask of who has made the copy."""
    path = "next(line.split()[-1] for line in open(f'/proc/{sys.argv[1]}/maps') if '/x/' in line)"
    look = shlex.join(
        [sys.executable, "-S", "-c", f"import os, sys; print(os.stat({path}).st_mode)"]
    )
    use = shlex.quote(f"{look} $$; true")
    script = f"umask 077; cp /bin/bash sh; {_loop('./sh -c true')}; ./sh -c {use}"
    found = mounted("/bin/sh", "-c", script)
    assert found.out == b"%d\n" % 0o100444, found


@pytest.mark.parametrize("change", ["cat {new} >{old}", "cp {new} {old}.n; mv {old}.n {old}"])
def test_a_changed_file_is_not_taken_for_the_old_one(mounted, made, change):
    """Nor does who runs the old one notice: it goes on with that, also when it is written to."""
    new = change.format(new=f"{made}/b.so", old="l.so")
    program = change.format(new=f"{made}/b", old="p")
    begin = f"cp {made}/a.so l.so; cp {made}/a p; {_loop(f'{_PYTHON} </dev/null >/dev/null')}"
    begin += f"; {_loop('./p >/dev/null')}"
    wait = "until [ -e ready ]; do sleep 0.05; done"
    use = f"rm ready; ({wait}; {new}; {program}; echo) | {_PYTHON}"
    script = f"{begin}; {use}; {_loop(f'{_PYTHON} </dev/null')}; {_loop('./p')}"
    found = mounted("/bin/sh", "-c", script)
    lines = found.out.decode().splitlines()
    assert lines[:4] == ["True", "True False", "10", "10"]
    assert set(lines[6:19:3]) == {"20"} and lines[19:] == ["b 1"] * 5


def test_code_is_executed_where_memory_may_not_become_executable(mounted, made):
    """PR_SET_MDWE: a file may be mapped to be executed, a copy in memory may not."""
    use = "import ctypes, sys\nif ctypes.CDLL(None).prctl(65, 1, 0, 0, 0): sys.exit(77)\n"
    use += "print(ctypes.CDLL('./l.so').answer(0))"
    load = shlex.join([sys.executable, "-S", "-c", use])
    found = mounted("/bin/sh", "-c", f"cp {made}/a.so l.so; {_loop(load)}")
    if found.status == 77:
        pytest.skip("this kernel has no PR_SET_MDWE")
    assert found.out.split() == [b"10"] * 5, found


def test_what_no_program_maps_is_not_copied(mounted, made):
    """As the debug information of a large library: only what is mapped is copied then."""
    script = f"cp {made}/a.so l.so; truncate -s +4M l.so; {_loop(f'{_PYTHON} </dev/null')}"
    shared, _, said = _shared(mounted("/bin/sh", "-c", script))
    assert not any(shared) and set(said) == {"10"}


def test_code_that_is_open_for_writing_is_not_shared(mounted, made):
    script = f"cp {made}/a.so l.so; exec 3>>l.so; {_loop(f'{_PYTHON} </dev/null')}"
    shared, _, said = _shared(mounted("/bin/sh", "-c", script))
    assert not any(shared) and set(said) == {"10"}


@pytest.mark.skipif(os.geteuid() != 0, reason="a mount namespace needs root")
@pytest.mark.parametrize("options", ["noexec", "size=1m"], ids=["noexec", "small"])
def test_where_code_cannot_be_shared_it_is_copied(within, made, options):
    mounted = within(options)
    script = f"cp {made}/a.so l.so; {_loop(f'{_PYTHON} </dev/null')}"
    shared, own, said = _shared(mounted("/bin/sh", "-c", script))
    assert not any(shared)
    assert set(own) == {"True False"} and set(said) == {"10"}


@pytest.mark.skipif(os.geteuid() != 0, reason="a mount namespace needs root")
def test_shared_code_is_there_when_no_memory_is_left(within, tmp_path):
    """Zeros, too, which are a hole of other files of the run."""
    (tmp_path / "z.c").write_text(
        "const char zeros[1 << 20] = {1}; int answer(int given) { return 10 + zeros[given]; }"
    )
    build(tmp_path / "z.c", tmp_path / "z.so", "-shared", "-fPIC", "-O1")
    use = "import ctypes, subprocess; answer = ctypes.CDLL('./l.so').answer\n"
    use += "look = 'grep -q /x/ /proc/$PPID/maps && echo shared'\n"
    use += "subprocess.run(look + '; cat /dev/zero >/dev/shm/full 2>&-', shell=True)\n"
    use += "print(answer(700000))"
    load = shlex.join([sys.executable, "-S", "-c", "import ctypes; ctypes.CDLL('./l.so')"])
    last = shlex.join([sys.executable, "-S", "-c", use])
    script = f"cp {tmp_path}/z.so l.so; {_loop(load)}; {last}"
    found = within("size=64m")("/bin/sh", "-c", script)
    assert found.out == b"shared\n10\n", found
