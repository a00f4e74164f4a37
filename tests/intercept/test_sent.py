"""Files whose descriptors are sent to other processes by messages."""

from .conftest import PROGRAMS
from .test_mounts import assert_like_plain


def test_several_messages_in_one_call(plain, mounted, compiled):
    program = compiled("messages")
    wanted = plain(program)
    assert wanted.seen()[::2] == (0, b"")
    assert mounted(program).seen() == wanted.seen()


def test_a_file_that_was_sent_is_kept_for_the_receiver_and_no_other(plain, mounted, tmp_path):
    """On passthrough the kernel has the locks, until the file is closed."""
    (tmp_path / "below").mkdir()
    mounted.file_system = f"passthrough {tmp_path / 'below'}"
    assert_like_plain(plain, mounted, "-S", PROGRAMS / "passed.py")
