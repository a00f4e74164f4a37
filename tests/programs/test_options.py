"""Options of programs that use getopt(3) or argp_parse(3): libc's words reach the caller, not our
stderr, and libc ends the program, not us."""

import os
import subprocess
from pathlib import Path

import pytest
from building import build, fuse

import directfuse

SOURCES = Path(__file__).parent / "sources"


def compiled(source, tmp_path_factory):
    path = tmp_path_factory.mktemp("options") / "program"
    return build(SOURCES / source, path, "-D_GNU_SOURCE", "-fPIE", "-pie", *fuse())


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return compiled("options.c", tmp_path_factory)


@pytest.fixture(scope="module")
def program_of_argp(tmp_path_factory):
    return compiled("argp.c", tmp_path_factory)


WRONG = [
    ["--nonsense"],
    ["--nonsense=1"],
    ["--plain=1"],
    ["-p", "--value"],
    ["-x"],
    ["--plain", "-xp"],
    ["file", "-px"],
    ["-v"],
    ["-pv"],
]


@pytest.mark.parametrize("arguments", WRONG, ids=" ".join)
def test_words_are_those_of_a_process_of_its_own(program, arguments, capfd):
    alone = subprocess.run([program, *arguments], capture_output=True, text=True)
    assert alone.returncode == 3
    with pytest.raises(directfuse.MountError, match="returned 3 ") as caught:
        directfuse.mount([program, *arguments], placement="inline")
    assert str(caught.value).startswith(f"[Errno 5] {alone.stderr}")
    assert capfd.readouterr() == ("", "")


def test_an_ambiguous_option_is_named(program, capfd):
    with pytest.raises(directfuse.MountError, match="option '--almost' is ambiguous"):
        directfuse.mount([program, "--almost"], placement="inline")
    assert capfd.readouterr() == ("", "")


def test_a_program_may_ask_for_silence(program, monkeypatch, capfd):
    monkeypatch.setitem(os.environ, "SILENT", "1")
    with pytest.raises(directfuse.MountError) as caught:
        directfuse.mount([program, "-x"], placement="inline")
    assert "invalid" not in str(caught.value)
    assert capfd.readouterr() == ("", "")


ARGP = [["--help"], ["-?"], ["--usage"], ["--version"], ["-V"]]  # end it
ARGP += [["--failure"], ["--error"], ["--use"]]  # the program's own
ARGP += [["--nonsense"], ["-x"], ["-px"], ["file", "-v"], ["--plain=1"], ["one", "two"]]
ARGP += [["--result"], ["-r", "-x"], ["file", "-v1"], ["--valu=1", "--", "-x"]]  # let it go on


def end_alone(program, arguments):
    """Its status and its words, without the empty lines."""
    done = subprocess.run(
        [program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    lines = done.stdout.splitlines(keepends=True)
    return done.returncode, "".join(line for line in lines if line != "\n")


NO_ERRORS, NO_HELP, IN_ORDER, NO_EXIT, LONG_ONLY = 2, 16, 8, 32, 64  # ARGP_... of argp.h


@pytest.mark.parametrize(
    ("flags", "arguments"),
    [
        *[(0, arguments) for arguments in ARGP],
        *[(NO_EXIT, arguments) for arguments in ARGP],
        *[(NO_ERRORS, arguments) for arguments in (["-x"], ["--error"], ["-V"])],
        *[(NO_HELP, arguments) for arguments in (["-?"], ["--help"], ["-u"])],
        *[(LONG_ONLY, arguments) for arguments in (["-nonsense"], ["-plain", "-x"], ["-help"])],
        (IN_ORDER, ["one", "two", "-x"]),
    ],
)
def test_argp_does_what_it_does_in_a_process_of_its_own(
    program_of_argp, flags, arguments, monkeypatch, capfd
):
    monkeypatch.setenv("FLAGS", str(flags))
    status, words = end_alone(program_of_argp, arguments)
    with pytest.raises(directfuse.MountError, match=f"returned {status} ") as caught:
        directfuse.mount([program_of_argp, *arguments], placement="inline")
    assert str(caught.value).startswith(f"[Errno 5] {words}")
    assert capfd.readouterr() == ("", "")


def test_argp_may_leave_arguments_to_the_program(program_of_argp, monkeypatch):
    monkeypatch.setenv("REST", "1")
    status, words = end_alone(program_of_argp, ["one", "two"])
    with pytest.raises(directfuse.MountError, match=f"returned {status} ") as caught:
        directfuse.mount([program_of_argp, "one", "two"], placement="inline")
    assert str(caught.value).startswith(f"[Errno 5] {words}")
