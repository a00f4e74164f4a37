"""What programs do that have a process to themselves: it works as it would there, and the host is
as it was before. The program is compiled here, against the real libfuse (habits.c)."""

import os

import pytest

import directfuse

from .test_unruly import compiled, text_of


@pytest.fixture(scope="session")
def habits(tmp_path_factory):
    return compiled("habits.c", tmp_path_factory.mktemp("habits") / "habits", "-pie", "-fPIE")


@pytest.fixture
def point(tmp_path):
    return str(tmp_path / "m")


def said_by(program, habit):
    """What it says before it mounts anything, which it then does not."""
    with pytest.raises(directfuse.MountError) as caught:
        directfuse.mount([program, "--before", habit, "--help"], placement="inline")
    return str(caught.value)


def test_children_that_it_has_waited_for_take_no_descriptors(habits, point):
    with directfuse.mount([habits, point]):
        before = len(os.listdir("/proc/self/fd"))
        assert text_of(f"{point}/children") == "100"
        assert len(os.listdir("/proc/self/fd")) < before + 20


def test_children_that_it_has_waited_for_are_no_daemons(habits):
    assert "perhaps to live on in the background" not in said_by(habits, "children")
