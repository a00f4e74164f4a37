"""Where a route differs from Linux on a local directory, and why: the only list of its kind.

Each row makes the cases it matches expected failures, strictly: one that passes fails the run, so
the list cannot outlive its reasons. A row is (route or routes, backend, pattern, reason); "*"
stands for any route or backend, the pattern is matched by fnmatch against
"test_file.py::test_name[parameters]", the parameters without the route's.
"""

from fnmatch import fnmatchcase

import pytest

from directfuse import _paths

HIDDEN = (
    "libfuse's high-level API renames an open file that loses its name to .fuse_hidden, which is "
    "there until the last close"
)
NO_ACLS = (
    "Linux consults the ACLs of a FUSE file system only when that has asked for it "
    "(FUSE_CAP_POSIX_ACL); else mode bits decide"
)
GONE = "Linux hands the removal of an ACL on to a FUSE file system, which has none to remove"
BY_PATH = "a plugin that is asked by path has none for a directory that was removed"

UNTOLD = (
    "Linux tells a file system that clears these bits itself nothing of a chown that names no id "
    "(FUSE_CAP_HANDLE_KILLPRIV, which libfuse passes on from 3.17 on)"
)

APART = ("kernel", "helper", "server")  # the file system has rights of its own, not the caller's

BY_PATHS = ("kernel", "helper")  # libfuse's own functions: elsewhere open directories are asked

# (route or routes, backend, case, reason)
DEVIATIONS: list[tuple[str | tuple[str, ...], str, str, str]] = [
    ("*", "passthrough", "test_unlinked.py::test_directory_shows_nothing", HIDDEN),
    ("*", "passthrough", "test_unlinked.py::test_directory_can_be_removed", HIDDEN),
    ("*", "passthrough", "test_unlinked.py::test_file_replaced_by_rename_goes_on", HIDDEN),
    ("*", "passthrough", "test_unlinked.py::test_several_generations_of_one_name", HIDDEN),
    (BY_PATHS, "passthrough", "test_unlinked.py::test_removed_directory_can_be_statted", BY_PATH),
    ("kernel", "passthrough", "test_unlinked.py::test_removed_directory_lists_nothing", BY_PATH),
    ("kernel", "passthrough", "test_unlinked.py::test_removed_directory_takes_no_entries", BY_PATH),
    ("kernel", "passthrough", "test_unlinked.py::test_name_of_a_removed_directory_*", BY_PATH),
    ((*APART, "inline"), "passthrough", "test_acl.py::test_acl_lets_a_user_in", NO_ACLS),
    (APART, "passthrough", "test_acl.py::test_acl_keeps_a_user_out", NO_ACLS),
    (APART, "passthrough", "test_acl.py::test_mask_limits_a_user", NO_ACLS),
    (APART, "passthrough", "test_acl.py::test_acl_names_a_group[2-False]", NO_ACLS),
    ((*APART, "inline"), "passthrough", "test_acl.py::test_access_asks_the_acl", NO_ACLS),
    ((*APART, "inline"), "passthrough", "test_acl.py::test_an_acl_that_changes_*", NO_ACLS),
    (APART, "passthrough", "test_acl.py::test_acl_of_a_directory_lets_pass", NO_ACLS),
    (
        (*APART, "inline"),
        "passthrough",
        "test_acl.py::test_acl_of_a_directory_lets_make_*",
        NO_ACLS,
    ),
    ((*APART, "inline"), "passthrough", "test_acl.py::test_acl_lets_truncate_and_touch", NO_ACLS),
    ("kernel", "memfs", "test_acl.py::test_acl_that_is_not_there_can_be_removed", GONE),
]

if b"libfuse3.so.4" in (_paths.native_dir() / "bin" / "passthrough").read_bytes():
    DEVIATIONS.append(("kernel", "passthrough", "test_mode.py::test_chown_of_neither_id_*", UNTOLD))

# Races: the same, but the moment may be missed, so that a pass proves nothing.
SOMETIMES: list[tuple[str | tuple[str, ...], str, str, str]] = [
    (("kernel", "helper"), "passthrough", "test_threads.py::test_name_that_is_replaced_*", HIDDEN),
]


def expect_deviations(items):
    """Marks the collected tests that the table names; for pytest_collection_modifyitems."""
    for item in items:
        case = _case(item)
        for table, strict in ((DEVIATIONS, True), (SOMETIMES, False)):
            reason = _reason(table, *case) if case else None
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


def _reason(table, route, backend, case):
    for row_route, row_backend, pattern, reason in table:
        routes = row_route if isinstance(row_route, tuple) else (row_route,)
        here = ("*" in routes or route in routes) and row_backend in ("*", backend)
        if here and fnmatchcase(case, _literal(pattern)):
            return reason
    return None


def _literal(pattern):
    """Brackets in a pattern are those of a test id, not fnmatch's."""
    return pattern.replace("[", "[[]")
