"""Whole programs: the same output and the same status inside as without us, and none escapes."""

import pytest

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
    assert found.events["trapped"] == sum(calls for calls, _ in found.calls.values())
