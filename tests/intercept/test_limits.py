"""Programs that have used up their descriptors, RLIMIT_NOFILE: as on Linux; see limits.c."""

_COPY = 'cp "$0" copy && exec "$0" "$@"'


def test_programs_are_run_without_a_descriptor_that_is_left(plain, mounted, compiled):
    """Those on disk, in the mount, and scripts."""
    command = ["/bin/sh", "-c", _COPY, compiled("limits"), "programs"]
    wanted = plain(*command)
    assert wanted.status == 0
    assert mounted(*command).seen() == wanted.seen()


def test_a_limit_that_is_raised_for_a_moment_is_not_seen(plain, mounted, compiled):
    """Not by getrlimit(2), not by programs that are run, and what is set stays."""
    wanted = plain(compiled("limits"), "threads")
    assert wanted.seen() == (0, b"of children 0, seen 0, lost 0; wrong 0\n", b"")
    assert mounted(compiled("limits"), "threads").seen() == wanted.seen()
