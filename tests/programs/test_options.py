"""Wrong options of programs that use getopt(3): libc's words reach the caller, not our stderr."""

import os
import subprocess
from pathlib import Path

import pytest
from building import build, fuse

import directfuse

SOURCE = Path(__file__).parent / "sources" / "options.c"


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    path = tmp_path_factory.mktemp("options") / "program"
    return build(SOURCE, path, "-D_GNU_SOURCE", "-fPIE", "-pie", *fuse())


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
