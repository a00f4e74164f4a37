"""Mapped files whose bytes are written back while others write them."""

import pytest


@pytest.mark.parametrize("end", ["kill", "munmap"])
def test_what_is_written_beside_the_end_of_a_mapping_stays(plain, mounted, compiled, end):
    """The mapping's bytes are written back, but not old ones behind those of write(2)."""
    for where, rounds in (plain, "5"), (mounted, "60"):
        assert where(compiled("overtaken"), rounds, end).out == b"lost 0\n"
