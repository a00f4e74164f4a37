"""What a mapping costs and brings back, however much of it the file has; see beyond.py."""

import sys

import pytest

from .conftest import PROGRAMS


@pytest.mark.parametrize("mapped", ["read", "write"])
def test_more_is_mapped_than_the_file_has(plain, mounted, mapped):
    """As bbolt and LMDB do. To look at each piece of it at each sync takes minutes."""
    command = [sys.executable, "-S", PROGRAMS / "beyond.py", mapped]
    wanted = plain(*command)
    assert wanted.seen()[::2] == (0, b"") and b"left 24576 b'end' b'XYZ' b'new'" in wanted.out
    assert mounted(*command).seen() == wanted.seen()


def test_what_nobody_could_store_to_is_not_compared(mounted):
    """A sync asks for the file's bytes only where they may have been stored to through memory."""
    few, many = (
        mounted(sys.executable, "-S", PROGRAMS / "beyond.py", "read", rounds)
        for rounds in ("10", "110")
    )
    assert few.status == many.status == 0
    calls = [outcome.events["trips"] + outcome.events["hits"] for outcome in (few, many)]
    assert calls[1] - calls[0] <= 100 * 2, "a write and a sync each"
