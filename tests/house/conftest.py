"""What several of the rules read."""

import importlib.util

import pytest

from .tree import ROOT


@pytest.fixture(scope="session")
def make_compat():
    """docs/make_compat.py: it reads both tables of calls, and makes their pages."""
    spec = importlib.util.spec_from_file_location("make_compat", ROOT / "docs/make_compat.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
