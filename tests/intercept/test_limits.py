"""Programs that have used up their descriptors, RLIMIT_NOFILE: as on Linux; see limits.c."""

_COPY = 'cp "$0" copy && exec "$0" "$@"'


def test_programs_are_run_without_a_descriptor_that_is_left(plain, mounted, compiled):
    """Those on disk, in the mount, and scripts."""
    command = ["/bin/sh", "-c", _COPY, compiled("limits")]
    wanted = plain(*command)
    assert wanted.status == 0
    assert mounted(*command).seen() == wanted.seen()
