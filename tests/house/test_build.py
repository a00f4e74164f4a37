"""What two processes have in common is of one build (native/core/build.h), and Python's copies of
C's numbers are C's."""

import re
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

from .test_includes import ROOMS
from .tree import NATIVE, ROOT

_run_block = pytest.importorskip("directfuse._run_block")
_served = pytest.importorskip("directfuse._served")

CMAKE = shutil.which("cmake", path=sysconfig.get_path("scripts")) or shutil.which("cmake")


def digest(tree, out):
    script = tree / "cmake/build.cmake"
    subprocess.run([CMAKE, "-DRELEASE=1.2.3", f"-DOUT={out}", "-P", script], check=True)
    return re.search(r'"(1\.2\.3-[0-9a-f]{16})"', out.read_text())[1]


@pytest.fixture
def copy(tmp_path):
    if CMAKE is None:
        pytest.skip("needs cmake")
    for part in ("cmake", "native"):
        shutil.copytree(ROOT / part, tmp_path / part, copy_function=shutil.copyfile)
    return tmp_path


def test_the_same_sources_are_the_same_build(copy, tmp_path):
    """Wherever they lie, and whenever they were written."""
    assert digest(copy, tmp_path / "a.c") == digest(ROOT, tmp_path / "b.c")


@pytest.mark.parametrize(
    "name", ["channel/message.h", "core/ops.def", "server/execute.c", "intercept/run.h"]
)
def test_other_sources_are_another_build(copy, tmp_path, name):
    before = digest(copy, tmp_path / "a.c")
    with open(copy / "native" / name, "a") as file:
        file.write("\n")
    assert digest(copy, tmp_path / "b.c") != before


def test_a_build_is_made_of_all_rooms_that_its_processes_consist_of():
    """A server and its clients are of one build if they agree about every room behind theirs."""
    rooms = {"server", "syscalls"}
    while behind := {name.split("/")[0] for room in rooms for name in ROOMS[room]} - rooms:
        rooms |= behind
    listed = re.search(r"foreach\(room ([\w\s]+)\)", (ROOT / "cmake/build.cmake").read_text())
    assert set(listed[1].split()) == rooms


# ---- Python's numbers ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def numbers(tmp_path_factory):
    """Of expressions in C, by their text."""
    if shutil.which("gcc") is None:
        pytest.skip("needs gcc")

    def ask(header, *expressions):
        folder = tmp_path_factory.mktemp("numbers")
        lines = [f'printf("%lld\\n", (long long)({text}));' for text in expressions]
        source = f'#include <stdio.h>\n#include "{header}"\nint main(void) {{ {"".join(lines)} }}\n'
        (folder / "ask.c").write_text(source)
        command = ["gcc", "-D_GNU_SOURCE", f"-I{NATIVE}", f"-I{NATIVE}/include", "ask.c", "-o", "a"]
        subprocess.run(command, cwd=folder, check=True)
        said = subprocess.check_output(folder / "a", text=True).split()
        return [int(text) for text in said]

    return ask


def test_what_a_server_says_at_its_start(numbers):
    message = numbers(
        "channel/join.h",
        "sizeof(struct df_join_message)",
        "offsetof(struct df_join_message, error)",
        "offsetof(struct df_join_message, size)",
        "offsetof(struct df_join_message, build)",
        "DF_JOIN_MAGIC",
        "DF_JOIN_READY",
    )
    said = _served.ready_message(5, "why")
    magic, kind, _, error, _, _ = _served.READY.unpack_from(said)
    assert error == -5 and said[_served.READY.size :] == b"why"
    assert message == [_served.READY.size, 12, 16, 24, magic, kind]


def test_what_a_run_shares(numbers):
    of_run = "offsetof(struct dfi_run, {})".format
    assert numbers(
        "intercept/run.h",
        of_run("size"),
        of_run("log_used"),
        of_run("events"),
        of_run("owners"),
        of_run("loader"),
        "sizeof(struct dfi_run)",
        "sizeof(struct dfi_counts)",
        "DFI_RUN_SLOTS",
        "DFI_EVENTS",
        "DFI_RUN_MAGIC",
        "DFI_RUN_VERBOSE | DFI_RUN_STRICT << 8 | DFI_RUN_NOREWRITE << 16 | DFI_RUN_SECCOMP << 24"
        " | (uint64_t)DFI_RUN_OPENAT2 << 32",
    ) == [
        48,
        _run_block._LOG_USED,
        _run_block._EVENTS_AT,
        _run_block._OWNERS_AT,
        _run_block._LOADER_AT,
        _run_block._LOADER_AT + _run_block._LOADER_ROOM,
        _run_block._SLOT.size,
        _run_block._SLOT_COUNT,
        len(_run_block.EVENTS),
        _run_block._MAGIC,
        sum(bit << 8 * place for place, bit in enumerate(_run_block._FLAGS.values())),
    ]
    assert numbers("intercept/learn.h", "sizeof(struct dfi_learn)") <= [_run_block._LEARN_SIZE]


def test_events_have_the_names_of_c():
    text = Path(NATIVE / "intercept/intercept.h").read_text()
    listed = re.search(r"enum dfi_event \{(.*?)\bDFI_EVENTS\b", text, re.DOTALL)[1]
    names = re.findall(r"\bDFI_EVENT_(\w+)|\bDFI_(\w+),", listed)
    assert [(a or b).lower() for a, b in names] == list(_run_block.EVENTS)
