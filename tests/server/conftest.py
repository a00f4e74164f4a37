"""Directories that are compared, and file systems in mount servers."""

import uuid

import pytest

import directfuse

from .built import built
from .places import BELIEVED, PLACES, open_place


@pytest.fixture(autouse=True)
def _marked(monkeypatch):
    """The servers that a test starts are known by their environment: one that another test has left
    behind is that test's failure alone."""
    monkeypatch.setenv("DF_TEST_SERVER", uuid.uuid4().hex)


@pytest.fixture(scope="session")
def moody(tmp_path_factory):
    """The path of a file system of our own that fails when it is asked to."""
    return built("moody", tmp_path_factory)


@pytest.fixture(params=[*PLACES, BELIEVED])
def place(request, tmp_path):
    """A directory: an ordinary one, or one in a mount server."""
    with open_place(request.param, tmp_path) as path:
        yield path


@pytest.fixture
def memfs(tmp_path):
    with directfuse.mount(["memfs", str(tmp_path / "mnt")], placement="server") as mount:
        yield mount
