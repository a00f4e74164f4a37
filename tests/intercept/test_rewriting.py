"""Sites that become jumps: where they do, and where they must not."""

import pytest


@pytest.mark.parametrize("flags", ["", "norewrite"])
def test_code_that_takes_the_place_of_rewritten_code(plain, inside, compiled, flags):
    """It is the program's own: it stays writable, and has its own system calls."""
    wanted = plain(compiled("recoded"))
    assert wanted.seen() == (0, b"done\n", b"")
    found = inside(compiled("recoded"), flags=flags)
    assert found.seen() == wanted.seen()
    assert (found.events["rewritten"] > 6) == (flags == "")
