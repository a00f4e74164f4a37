"""Signals and births, by programs that try what is hard."""

import subprocess
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parent / "programs"


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    directory = tmp_path_factory.mktemp("programs")

    def call(name, *options):
        target = directory / name
        if not target.exists():
            source = PROGRAMS / f"{name}.c"
            subprocess.run(["gcc", "-O1", "-pthread", *options, source, "-o", target], check=True)
        return target

    return call


@pytest.mark.parametrize("flags", ["", "norewrite"])
def test_signals_keep_their_promises(plain, inside, compiled, flags):
    program = compiled("signals")
    wanted = plain(program)
    assert inside(program, flags=flags).seen() == wanted.seen()


@pytest.mark.parametrize("flags", ["", "norewrite"])
@pytest.mark.parametrize("threads", ["1", "8"])
def test_a_storm_of_signals(inside, compiled, flags, threads):
    found = inside(compiled("storm"), threads, "1500", flags=flags)
    assert (found.status, found.out) == (0, b"failures 0, handled enough 1\n")


@pytest.mark.sweep
@pytest.mark.timeout(200)
def test_a_long_storm(inside, compiled):
    found = inside(compiled("storm"), "12", "40000", timeout=180)
    assert (found.status, found.out) == (0, b"failures 0, handled enough 1\n")
