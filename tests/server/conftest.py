"""A file system of our own that fails when it is asked to."""

import pytest

from .built import built


@pytest.fixture(scope="session")
def moody(tmp_path_factory):
    """The path of the program."""
    return built("moody", tmp_path_factory)
