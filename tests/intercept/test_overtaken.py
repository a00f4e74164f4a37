"""Mapped files whose bytes are brought, or written back, while others change them."""

import pytest
from building import build, fuse

from .conftest import PROGRAMS


@pytest.mark.parametrize("end", ["kill", "munmap"])
def test_what_is_written_beside_the_end_of_a_mapping_stays(plain, mounted, compiled, end):
    """The mapping's bytes are written back, but not old ones behind those of write(2)."""
    for where, rounds in (plain, "5"), (mounted, "60"):
        assert where(compiled("overtaken"), rounds, end).out == b"lost 0\n"


@pytest.mark.parametrize(
    ("change", "seen"),
    [
        ("write", "4 m n o o"),
        ("copy", "4 m n o o"),
        ("punch", "4 m 0 o o"),
        ("shrink", "1 m"),
        ("grow", "5 m o o o 0"),
        ("by name", "5 m o o o 0"),
        ("empty", "0"),
    ],
)
def test_what_is_changed_while_a_file_comes_to_be_mapped_stays(
    mounted, compiled, tmp_path, change, seen
):
    """Who maps it has copied the bytes of before, and writes back a page beside the change."""
    held_up = build(PROGRAMS / "held_up.c", tmp_path / "held_up", *fuse("fuse3"), "-pthread")
    mounted.file_system = str(held_up)
    done = mounted(compiled("changed_meanwhile"), change, mounted.deep, deep=True)
    assert done.out.decode() == f"0\n{seen}\n{seen}\n"


@pytest.mark.parametrize("beside", ["munmap", "kill", "write"])
@pytest.mark.parametrize("by", ["ftruncate", "open"])
def test_a_file_that_is_emptied_stays_empty_beside_the_end_of_a_mapping(
    plain, mounted, compiled, by, beside
):
    """Nothing is written back behind its end; and what is written has come there, or nothing."""
    for where, rounds in (plain, "20"), (mounted, "400"):
        assert where(compiled("emptied"), rounds, by, beside).out == b"wrong 0\n"


def test_a_file_that_several_change_and_map_is_one_file(plain, mounted, compiled):
    """Its size, its bytes by read(2), in memory and when it is opened anew."""
    for where, rounds in (plain, "5"), (mounted, "250"):
        assert where(compiled("resized"), rounds).out == b"one file\n"
