"""Where a route differs from Linux on a local directory, and why: the only list of its kind.

Each row makes the cases it matches expected failures, strictly: one that passes fails the run, so
the list cannot outlive its reasons. A row is (route, backend, pattern, reason); "*" stands for any
route or backend, the pattern is matched by fnmatch against "test_file.py::test_name[parameters]",
the parameters without the route's.
"""

from fnmatch import fnmatchcase

import pytest

_HIDDEN = (
    "an open file that is removed is renamed to .fuse_hidden..., as libfuse does for every "
    "high-level file system: its directory still holds it"
)
_NO_PATH = "libfuse asks a high-level file system by path, and a removed directory has none"

DEVIATIONS: list[tuple[str, str, str, str]] = [
    # Decision 004: what belongs to the process is read once.
    *(
        ("inline", "memfs", f"test_io.py::{case}", "RLIMIT_FSIZE is read with the identity")
        for case in (
            "test_write_past_the_file_size_limit_is_efbig",
            "test_write_across_the_file_size_limit_is_short",
            "test_truncate_past_the_file_size_limit_is_efbig",
        )
    ),
    (
        "inline",
        "*",
        "test_permission.py::test_walk_needs_the_x_bit[dot]",
        "the directory that a final '.' names is not asked for search permission",
    ),
    (
        "inline",
        "*",
        "test_walk.py::test_symlinks_inside_and_outside_count_together",
        "the kernel counts its own 40 once the way has left the mount",
    ),
    *(
        (
            "inline",
            "*",
            f"test_walk.py::test_every_call_follows_forty_symlinks[{call}]",
            "the symlinks of both paths count together",
        )
        for call in ("link", "rename")
    ),
    *(
        ("*", "passthrough", f"test_unlinked.py::{case}", _HIDDEN)
        for case in (
            "test_directory_shows_nothing",
            "test_directory_can_be_removed",
            "test_file_replaced_by_rename_goes_on",
            "test_several_generations_of_one_name",
        )
    ),
    *(
        ("*", "passthrough", f"test_unlinked.py::{case}", _NO_PATH)
        for case in (
            "test_removed_directory_can_be_statted",
            "test_removed_directory_lists_nothing",
        )
    ),
    *(
        ("kernel", "passthrough", f"test_unlinked.py::{case}", _NO_PATH)
        for case in (
            "test_removed_directory_takes_no_entries",
            "test_name_of_a_removed_directory_is_another_directory",
        )
    ),
]

#: Rows of the same shape for cases that only sometimes show the difference: threads that race.
RACES: list[tuple[str, str, str, str]] = [
    (
        "kernel",
        "passthrough",
        "test_threads.py::test_name_that_is_replaced_is_always_there",
        "libfuse hides the replaced open file first, and for a moment the name is absent",
    ),
]


def expect_deviations(items):
    """Marks the collected tests that the table names; for pytest_collection_modifyitems."""
    for item in items:
        case = _case(item)
        for rows, strict in ((DEVIATIONS, True), (RACES, False)):
            reason = _reason(rows, *case) if case else None
            if reason:
                item.add_marker(pytest.mark.xfail(reason=reason, strict=strict))


def _case(item):
    """(route, backend, "file::name[parameters]") of a test that has a route, or None."""
    callspec = getattr(item, "callspec", None)
    if callspec is None or "where" not in callspec.params:
        return None
    route, backend = callspec.params["where"]
    own = f"{route}-{backend}" if backend else route
    rest = callspec.id.removeprefix(own).removesuffix(own).strip("-")
    name = f"{item.path.name}::{item.originalname}" + (f"[{rest}]" if rest else "")
    return route, backend or "", name


def _reason(rows, route, backend, case):
    for row_route, row_backend, pattern, reason in rows:
        here = row_route in ("*", route) and row_backend in ("*", backend)
        if here and fnmatchcase(case, _literal(pattern)):
            return reason
    return None


def _literal(pattern):
    """Brackets in a pattern are those of a test id, not fnmatch's."""
    return pattern.replace("[", "[[]")
