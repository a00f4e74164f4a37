"""Answers of a file system that make no sense (tests/server/sources/liar.c): each call of a program
comes to an end, in an error or in what the kernel would make of it, and the server goes on."""

import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import needs
import pytest

from .built import built

pytestmark = needs.run

REGULAR = {"back", "ahead", "blind", "huge", "more", "grows", "large", "empty"}


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """By name and call, what came of it each time."""
    liar = built("liar", tmp_path_factory)
    program = [sys.executable, "-S", Path(__file__).with_name("lied.py"), "/liar"]
    done = subprocess.run(
        [sys.executable, "-m", "directfuse", "run", "-m", f"{liar} /liar", "--", *program],
        stdout=subprocess.PIPE,
        text=True,
        timeout=100,
    )
    lines = done.stdout.splitlines()
    assert (done.returncode, lines[-1]) == (0, "end"), lines[-3:]
    answers = defaultdict(list)
    for line in lines[:-1]:
        name, what, answer = line.split(" ", 2)
        answers[name, what].append(answer)
    return answers


def test_more_than_was_wanted_is_an_error(found):
    """Of bytes of the file; behind its end no kernel asks."""
    assert found["more", "read"] == ["EIO", "EIO", "EIO", "b''"] * 2
    assert set(found["more", "write"]) == {"EIO"}
    for name in REGULAR - {"empty"}:
        assert set(found[name, "copy"]) == {"EIO"}, name


def test_a_search_for_data_that_goes_back_ends_at_the_end(found):
    """It was looked for again and again, with the lock of all mappings of the run."""
    assert found["back", "map"] == ["b'aaa'"] * 6


def test_who_cannot_tell_where_data_are_is_read(found):
    """No kernel asks that to map a file."""
    assert found["blind", "seek"][:2] == ["EINVAL", "EINVAL"]
    assert found["blind", "map"] == ["b'aaa'"] * 6


def test_what_is_no_file_and_what_has_no_size_is_an_error(found):
    for name in "negative", "nothing", "link":
        told = {answer for (of, _), answers in found.items() if of == name for answer in answers}
        assert told == {"EIO"}, name


def test_names_that_are_none_are_not_listed(found):
    assert found[".", "list"] == ["EIO"]
    assert found["partly", "list"] == ["name EIO"], "those before are"
