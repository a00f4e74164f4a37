"""execve(2) of files that are odd: the errnos, ends and words of the kernel's."""

import os
import shutil
import sys

import pytest

from .conftest import PROGRAMS

_RANDOM = "150"

#: Of a file that cannot be a program the kernel is asked where it is its file. In a mount it is
#: ENOEXEC, whatever else the kernel would find first.
_OF_NO_PROGRAM = {b"EACCES", b"EIO"}

#: Names of 4,095 bytes, to which the name of the working directory comes.
_TOO_LONG = {b"interpreter of PATH_MAX", b"path of 4095"}


def _run(where, count):
    found = where(sys.executable, PROGRAMS / "executed.py", count)
    assert found.status == 0
    return found.out.split(b"\n")


def test_odd_programs_end_as_the_kernel_ends_them(plain, inside):
    wanted = _run(plain, _RANDOM)
    assert len(wanted) > 400
    assert _run(inside, _RANDOM) == wanted


def test_odd_programs_in_a_mount(plain, mounted):
    wanted, found = _run(plain, "0"), _run(mounted, "0")
    assert len(found) == len(wanted)
    for one, other in zip(wanted, found, strict=True):
        what, _, said = one.rpartition(b": ")
        if what in _TOO_LONG or (said in _OF_NO_PROGRAM and other == what + b": ENOEXEC"):
            continue
        assert other == one


@pytest.mark.parametrize("flags", ["", "seccomp"])
def test_a_program_begins_with_the_registers_that_execve_leaves(plain, inside, compiled, flags):
    begins = compiled("begins", "-nostdlib", "-static")
    wanted = plain(begins)
    assert (wanted.status, len(wanted.out), wanted.out[:-8].strip(b"\0")) == (0, 128, b"")
    assert inside(begins, flags=flags).seen() == wanted.seen()


_AS_NOBODY = """
import os
os.setgroups([])
os.setresuid(4321, 4321, 4321)
os.execv("./program", ["program"])
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user needs root")
def test_a_program_that_may_be_executed_but_not_read(tmp_path, plain, inside):
    """As sudo is on Fedora: only the kernel can run it."""
    for name in "plain", "inside":
        (tmp_path / name).mkdir()
        shutil.copy("/bin/true", tmp_path / name / "program")
        (tmp_path / name / "program").chmod(0o711)
    command = sys.executable, "-c", _AS_NOBODY
    found = inside(*command)
    assert (found.status, found.out) == (plain(*command).status, b"") == (0, b"")
    assert found.events["escaped"] == 1
    assert any("executed, but not read" in note for note in found.notes)
    assert b"PermissionError: [Errno 1]" in inside(*command, flags="strict").err


@pytest.mark.parametrize("threads", ["read", "ask"])
def test_what_threads_were_at_that_a_program_ends_by_execve(plain, mounted, compiled, threads):
    """They hold the file's position, and a place for a question."""
    program = compiled("succeeds")
    script = 'echo x > file && exec timeout -s KILL 30 "$0" file "$1" 60'
    for where in plain, mounted:
        found = where("/bin/sh", "-c", script, program, threads)
        assert (found.status, found.out) == (0, b"used\n")


_LINKS = """
mkdir one one/two && cp "$0" one/program && ln -s one/program link && ln -s ../link one/link
ln -s one/two away && ln "$0" beside 2>/dev/null || cp "$0" beside
printf '#!%s\\n' "$PWD/one/link" >script && chmod +x script
for path in one/program ./link "$PWD/one/link" away/../link one/../away/../program; do
    "$path" "$PWD" "$path"
done
./script; one/program "$PWD"
exec 9<beside && rm beside && /dev/fd/9 "$PWD" removed
mv one/two two && cp one/program two && cd two && mv ../two ../three
./program "${PWD%/*}" moved
"""


def _without(outcome, directory):
    return outcome.out.replace(directory.encode(), b"")


def test_what_a_program_is_called(plain, mounted, inside, compiled, tmp_path):
    """By /proc/self/exe Java, Node and dynamic linkers ($ORIGIN) find what lies beside them."""
    command = "/bin/sh", "-c", _LINKS, compiled("called")
    wanted = _without(plain(*command), f"{tmp_path}/plain")
    assert wanted.count(b": /one/program (") > 8
    assert _without(mounted(*command), f"{mounted.point}/plain") == wanted
    assert _without(inside(*command), f"{tmp_path}/inside") == wanted


_NO_FORMAT = """
echo 'echo "script of a shell"' >script; : >empty; chmod +x script empty
for file in script empty; do "./$file"; echo "$?"; done
"""


def test_a_file_that_is_no_program_is_the_shells_also_where_no_program_may_run_outside(
    plain, inside
):
    command = "/bin/sh", "-c", _NO_FORMAT
    wanted = plain(*command)
    assert wanted.seen() == (0, b"script of a shell\n0\n0\n", b"")
    assert inside(*command, flags="strict").seen() == wanted.seen()


_SET_USER_ID = "cp /bin/true program && chown 4321 program && chmod u+s program && exec "
_NOSUID = "mount -t tmpfs -o nosuid none /mnt && cp -p program /mnt && exec /mnt/program"


@pytest.mark.skipif(os.geteuid() != 0, reason="files of other users need root")
@pytest.mark.parametrize(
    ("command", "escaped"),
    [
        pytest.param("./program", 1, id="as elsewhere"),
        pytest.param("unshare -Ur ./program", 0, id="its owner is not in the user namespace"),
        pytest.param(f"unshare -m sh -c '{_NOSUID}'", 0, id="on a mount with nosuid"),
    ],
)
def test_a_program_runs_outside_only_if_it_gains_rights(inside, command, escaped):
    found = inside("/bin/sh", "-c", _SET_USER_ID + command)
    assert (found.status, found.events["escaped"]) == (0, escaped), found.err
