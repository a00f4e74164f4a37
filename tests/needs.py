"""What a machine may lack that tests need."""

import pytest

from directfuse import _paths

#: `directfuse run`, of tests that are not all about it.
run = pytest.mark.skipif(
    not _paths.loader().is_file(), reason="directfuse run is built for x86-64 only"
)
