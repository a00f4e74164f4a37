"""What a mapping costs, and which is right where it and its file system differ."""

import re
import sys

import pytest

from .conftest import PROGRAMS


@pytest.mark.parametrize("mapped", ["read", "write"])
def test_more_is_mapped_than_the_file_has(plain, mounted, mapped):
    """As bbolt and LMDB do; see beyond.py. To look at each piece of it takes minutes."""
    command = [sys.executable, "-S", PROGRAMS / "beyond.py", mapped]
    wanted = plain(*command)
    assert wanted.seen()[::2] == (0, b"") and b"left 24576 b'end' b'XYZ' b'new'" in wanted.out
    assert mounted(*command).seen() == wanted.seen()


def test_what_nobody_could_store_to_is_not_compared(mounted):
    """A sync asks for the file's bytes only where they may have been stored to through memory."""
    few, many = (
        mounted(sys.executable, "-S", PROGRAMS / "beyond.py", "read", rounds)
        for rounds in ("10", "110")
    )
    assert few.status == many.status == 0
    calls = [outcome.events["trips"] + outcome.events["hits"] for outcome in (few, many)]
    assert calls[1] - calls[0] <= 100 * 2, "a write and a sync each"


@pytest.mark.parametrize("size", [100, 20_000_000])
def test_what_cannot_be_stored_in_is_not_written_back(plain, mounted, tmp_path, size):
    """Who maps a file for reading does not undo what others do to it; see unstored.py."""
    (tmp_path / "source").mkdir()
    mounted.file_system = f"passthrough {tmp_path / 'source'}"
    words = [sys.executable, "-S", PROGRAMS / "unstored.py"]
    wanted = plain(*words, ".", str(size))
    assert (wanted.status, wanted.err) == (0, b"")
    assert mounted(*words, str(tmp_path / "source"), str(size)).seen() == wanted.seen()


SIZES = pytest.mark.parametrize(
    "size", [str(1 << 20), f"p{1 << 20}", str(20 << 20)], ids=["small", "private", "large"]
)


@pytest.mark.parametrize("size", [1 << 20, 20 << 20], ids=["small", "large"])
def test_what_a_child_stored_that_was_killed_is_there_when_it_has_been_waited_for(
    plain, mounted, tmp_path, size
):
    """Also for who looks from outside of the run; see buried.py."""
    (tmp_path / "source").mkdir()
    mounted.file_system = f"passthrough {tmp_path / 'source'}"
    words = [sys.executable, "-S", PROGRAMS / "buried.py"]
    wanted = plain(*words, ".", str(size))
    assert (wanted.status, wanted.err) == (0, b"") and b"False" not in wanted.out
    assert mounted(*words, str(tmp_path / "source"), str(size)).seen() == wanted.seen()


def test_what_a_killed_child_stored_far_behind_in_a_sparse_file_is_there(mounted):
    """The run ends, too: it does not look at all that the file could have had before."""
    script = """if True:
        import mmap, os, signal
        far = 1 << 61
        fd = os.open("far", os.O_RDWR | os.O_CREAT)
        os.ftruncate(fd, far + 4096)
        if (child := os.fork()) == 0:
            memory = mmap.mmap(fd, 4096, offset=far)
            memory[:3] = b"abc"
            os.kill(os.getpid(), signal.SIGKILL)
        os.waitpid(child, 0)
        print(os.pread(fd, 4, far))
    """
    assert mounted(sys.executable, "-S", "-c", script).seen() == (0, b"b'abc\\x00'\n", b"")


def test_who_has_ended_does_not_show_others_what_it_had_mapped(plain, mounted, tmp_path):
    """See outside.py."""
    (tmp_path / "source").mkdir()
    mounted.file_system = f"passthrough {tmp_path / 'source'}"
    words = [sys.executable, "-S", PROGRAMS / "outside.py"]
    assert plain(*words, ".", "300").seen() == (0, b"wrong: 0\n", b"")
    assert mounted(*words, str(tmp_path / "source"), "300").seen() == (0, b"wrong: 0\n", b"")


@SIZES
@pytest.mark.parametrize("backend", ["memfs", "passthrough"])
def test_a_file_is_mapped_again_as_it_is_then(plain, mounted, tmp_path, monkeypatch, size, backend):
    """What is kept for the next who maps it is not shown when it has changed; see remapped.py."""
    changes = ["none", "write", "none", "same", "append", "truncate", "stored", "again", "none"]
    changes += ["stored", "killed", "none"]
    if backend == "passthrough":
        (tmp_path / "source").mkdir()
        mounted.file_system = f"passthrough {tmp_path / 'source'}"
        changes += ["elsewhere", "none"]
    command = [sys.executable, "-S", PROGRAMS / "remapped.py", size, *changes]
    wanted = plain(*command)
    assert wanted.seen()[::2] == (0, b"") and wanted.out.count(b"True\n") == len(changes) + 1
    if backend == "passthrough":
        monkeypatch.setenv("DIRECTFUSE_SOURCE", str(tmp_path / "source"))
    assert mounted(*command).seen() == wanted.seen()


@SIZES
def test_a_file_that_is_mapped_again_is_not_read_again(mounted, size):
    """A small one that is mapped privately is read twice: the first time it is a copy."""
    words = sys.executable, "-S", PROGRAMS / "remapped.py", size
    once, often = (mounted(*words, *["none"] * times) for times in (1, 6))
    assert once.status == often.status == 0
    asked = [outcome.events["trips"] + outcome.events["hits"] for outcome in (once, often)]
    assert asked[1] - asked[0] < 5 * 20


def test_memory_that_is_mapped_once_more_is_the_files(plain, mounted, compiled):
    """Until the program stores there, though it is private; see once_more.c."""
    program = compiled("once_more")
    wanted = plain(program)
    assert wanted.seen()[::2] == (0, b"")
    assert mounted(program).seen() == wanted.seen()


def test_what_is_appended_while_a_file_is_mapped(plain, mounted, compiled):
    """Also what comes while the bytes are copied for the first mapping; see appended.c."""
    command = compiled("appended"), "60"
    assert plain(*command).seen() == mounted(*command).seen() == (0, b"0 wrong\n", b"")


def test_mappings_show_what_the_file_has(plain, mounted):
    """It is brought in pieces, of which one is asked for while another is copied; see pieces.py."""
    command = [sys.executable, "-S", PROGRAMS / "pieces.py"]
    wanted = plain(*command)
    assert wanted.seen() == (0, b"as they are 42\n", b"")
    assert mounted(*command).seen() == wanted.seen()


@pytest.mark.parametrize("size", [1 << 20, 20 << 20], ids=["small", "large"])
def test_a_child_has_none_of_what_its_parent_keeps_for_itself(plain, mounted, size):
    """MADV_DONTFORK; see left_behind.py."""
    command = [sys.executable, "-S", PROGRAMS / "left_behind.py", str(size)]
    wanted = plain(*command)
    assert (wanted.status, wanted.err) == (0, b"")
    assert wanted.out.count(b"SIGSEGV") == 2
    assert mounted(*command).seen() == wanted.seen()


def test_what_is_mapped_has_its_name(plain, mounted):
    """In /proc/self/maps, by which programs find their functions; see areas.py."""
    command = [sys.executable, "-S", PROGRAMS / "areas.py"]
    wanted = plain(*command)
    assert wanted.seen()[::2] == (0, b"")
    assert re.search(rb"'program' \d+ \d+ 'r-xp' True", wanted.out)
    assert mounted(*command).seen() == wanted.seen()


def test_what_is_mapped_of_a_mount_alone_is_told_anew(inside):
    """Else the kernel's own file is read, which tells of each moment."""
    link = "import os; print(os.readlink(f'/proc/self/fd/{os.open(\"/proc/self/maps\", 0)}'))"
    found = inside(sys.executable, "-c", link)
    assert found.status == 0 and found.out.startswith(b"/proc/")
