"""Sites that become jumps: where they do, and where they must not."""

import ctypes
import random
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from building import build

_NATIVE = Path(__file__).parents[2] / "native"


@pytest.mark.parametrize("flags", ["", "norewrite"])
def test_code_that_takes_the_place_of_rewritten_code(plain, inside, compiled, flags):
    """It is the program's own: it stays writable, and has its own system calls."""
    wanted = plain(compiled("recoded"))
    assert wanted.seen() == (0, b"done\n", b"")
    found = inside(compiled("recoded"), flags=flags)
    assert found.seen() == wanted.seen()
    assert (found.events["rewritten"] > 6) == (flags == "")


_SEEDS = [*range(2), *(pytest.param(seed, marks=pytest.mark.sweep) for seed in range(2, 30))]


@pytest.mark.parametrize("flags", ["", "seccomp"])
@pytest.mark.parametrize("threads", ["0", "3"])
@pytest.mark.parametrize("seed", _SEEDS)
def test_random_code_does_what_it_did(plain, inside, compiled, seed, threads, flags):
    command = compiled("sites"), str(seed), threads
    wanted = plain(*command)
    assert (wanted.status, wanted.out.count(b"\n")) == (0, 1)
    found = inside(*command, flags=flags)
    assert found.seen() == wanted.seen()
    assert found.events["rewritten"] > 1000


def test_code_that_is_sealed_keeps_no_other_from_being_rewritten(plain, inside, compiled):
    wanted = plain(compiled("sealed"))
    if not wanted.out.startswith(b"sealed"):
        pytest.skip("no mseal(2) before Linux 6.10")
    found = inside(compiled("sealed"))
    assert found.seen() == wanted.seen() == (0, b"sealed\n5010\n", b"")
    assert found.events["trapped"] < 1000


def test_code_that_a_child_may_be_executing_is_not_written_to_in_pieces(plain, inside, compiled):
    """One that shares the memory and is no thread."""
    command = compiled("beside"), "1000"
    wanted = plain(*command)
    assert wanted.seen() == (0, b"1000\n", b"")
    found = inside(*command)
    assert found.seen() == wanted.seen()
    assert found.events["trapped"] > 1000


def test_reads_of_a_program_with_threads_trap_no_more_than_others(plain, inside, compiled):
    """Also in the first program of a run, which has nobody to learn from."""
    wanted = plain(compiled("readers"))
    assert wanted.seen() == (0, b"4 threads, 40000 bytes, sum 5098000\n", b"")
    found = inside(compiled("readers"))
    assert found.seen() == wanted.seen()
    assert found.events["trapped"] < 1000


@pytest.mark.parametrize("flags", ["", "seccomp"])
def test_a_handler_finds_the_programs_own_instructions(plain, inside, compiled, flags):
    wanted = plain(compiled("places"))
    assert wanted.seen() == (
        0,
        b"calls: signals, 0 elsewhere\ncancellable: signals, 0 elsewhere\n",
        b"",
    )
    found = inside(compiled("places"), flags=flags)
    assert found.seen() == wanted.seen()
    # Both are rewritten. Each of 6,000 signals may send one call back to the program's instruction.
    assert flags or found.events["trapped"] < 6000 + 1000


def test_a_thread_is_cancelled_at_any_moment(plain, inside, compiled):
    wanted = plain(compiled("cancelled"))
    assert wanted.seen() == (0, b"2000 of 2000\n", b"")
    assert inside(compiled("cancelled")).seen() == wanted.seen()


# ---- how long instructions are ------------------------------------------------------------------

_SYSCALL, _SLOT = b"\x0f\x05", 48


class _Plan(ctypes.Structure):
    """struct dfi_plan of site.h."""

    _fields_ = (
        ("size", ctypes.c_size_t),
        ("first", ctypes.c_size_t),
        ("moved", ctypes.c_ubyte * 24),
        ("moved_size", ctypes.c_size_t),
        ("branch", ctypes.c_long),
        ("target", ctypes.c_size_t),
        ("address", ctypes.c_long),
        ("address_end", ctypes.c_long),
        ("operand", ctypes.c_size_t),
        ("hole", ctypes.c_size_t),
    )


@pytest.fixture
def planned(tmp_path):
    """What of the bytes before a syscall would be moved."""
    library = tmp_path / "site.so"
    source = _NATIVE / "intercept" / "site.c"
    plan_of = ctypes.CDLL(build(source, library, "-shared", "-fPIC", f"-I{_NATIVE}")).dfi_site_plan

    def call(code, number):
        plan = _Plan()
        memory = ctypes.create_string_buffer(code + _SYSCALL, len(code) + len(_SYSCALL))
        at = ctypes.byref(memory, len(code))
        plan_of(at, ctypes.c_size_t(len(code)), ctypes.c_ulong(number), ctypes.byref(plan))
        return code[len(code) - plan.size :] if plan.size else b""

    return call


def test_a_constant_that_looks_like_the_number_is_none(planned):
    number = bytes.fromhex("b8 27000000")
    assert planned(b"\x90" * 8 + number, 39) == number
    for rex, register in ("48", "bb"), ("49", "be"), ("4c", "b8"):
        constant = bytes.fromhex(rex + register) + b"\x90" * 3 + number
        assert planned(b"\x90" * 8 + constant, 39) == b""
        assert planned(b"\x90" * 8 + number + constant, 39) == b""


_PREFIXES = (b"", b"", b"", b"\x66", b"\x64", b"\x66\x64", b"\x64\x66", b"\x66\x66")
_OPCODES = bytes.fromhex("01030b2123292b31333b8083858b8d898d90b8b9bdbfc1c6c7f7810f0f0f")
_SECOND = bytes([*range(0x40, 0x50), *range(0x90, 0xA0)]) + bytes.fromhex("1f10112829 6c6e6f7f")


def _draw_instruction(draw):
    """Or what begins like one."""
    opcode = bytes([draw.choice(_OPCODES) if draw.random() < 0.9 else draw.randrange(256)])
    if opcode == b"\x0f":
        opcode += bytes([draw.choice(_SECOND)])
    rex = bytes([0x40 | draw.randrange(16)]) if draw.random() < 0.4 else b""
    return draw.choice(_PREFIXES) + rex + opcode + draw.randbytes(draw.randrange(9))


def _draw_code(draw):
    number = draw.randrange(300)
    moves = b"\xb8" + number.to_bytes(4, "little")
    last = b"".join(_draw_instruction(draw) for _ in range(draw.choice((1, 1, 1, 2))))
    return draw.randbytes(8) + moves + last[:19], number


def _disassembled(file):
    """Address and text of each instruction."""
    command = "objdump", "-D", "-z", "-w", "-b", "binary", "-mi386:x86-64", file
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = re.finditer(r"^\s*([0-9a-f]+):\t[0-9a-f ]+\t?(.*)$", text, re.MULTILINE)
    return {int(line[1], 16): line[2].strip() for line in found}


#: What goes elsewhere, depends on where it stands, or is no instruction at all.
_STAYS = re.compile(r"\(bad\)|rip|^(data16 |fs |rex\S* )*(j|call|ret|loop|int|xbegin|lock|rep)")


@pytest.mark.skipif(shutil.which("objdump") is None, reason="objdump is not installed")
@pytest.mark.parametrize(
    "count", [60_000, pytest.param(2_000_000, marks=pytest.mark.sweep)], ids=["few", "many"]
)
def test_what_is_moved_are_whole_instructions(tmp_path, planned, count):
    draw = random.Random(count)
    moved = {planned(*_draw_code(draw)) for _ in range(count)} - {b""}
    moved = [code for code in moved if code[0] == 0xB8]  # what the draw has put there
    assert len(moved) > count // 50
    file = tmp_path / "code"
    file.write_bytes(b"".join((code + _SYSCALL).ljust(_SLOT, b"\x90") for code in moved))
    found = _disassembled(file)
    for slot, code in enumerate(moved):
        begin, end = slot * _SLOT, slot * _SLOT + len(code)
        inner = [found[at] for at in range(begin, end) if at in found]
        assert found.get(end) == "syscall", (code.hex(" "), inner)
        assert not any(map(_STAYS.search, inner)), (code.hex(" "), inner)
