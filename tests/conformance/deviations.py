"""Where a route differs from Linux on a local directory, and why: the only list of its kind.

Each row makes the cases it matches expected failures, strictly: one that passes fails the run, so
the list cannot outlive its reasons. A row is (route, backend, pattern, reason); "*" stands for any
route or backend, the pattern is matched by fnmatch against "test_file.py::test_name[parameters]",
the parameters without the route's.
"""

from fnmatch import fnmatchcase

import pytest

DEVIATIONS: list[tuple[str, str, str, str]] = []


def expect_deviations(items):
    """Marks the collected tests that the table names; for pytest_collection_modifyitems."""
    for item in items:
        case = _case(item)
        reason = _reason(*case) if case else None
        if reason:
            item.add_marker(pytest.mark.xfail(reason=reason, strict=True))


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


def _reason(route, backend, case):
    for row_route, row_backend, pattern, reason in DEVIATIONS:
        here = row_route in ("*", route) and row_backend in ("*", backend)
        if here and fnmatchcase(case, _literal(pattern)):
            return reason
    return None


def _literal(pattern):
    """Brackets in a pattern are those of a test id, not fnmatch's."""
    return pattern.replace("[", "[[]")
