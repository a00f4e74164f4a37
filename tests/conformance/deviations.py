"""Where a route differs from Linux on a local directory, and why: the only list of its kind.

Each row makes the cases it matches expected failures, strictly: one that passes fails the run, so
the list cannot outlive its reasons. A row is (route, backend, pattern, reason); "*" stands for any
route or backend, the pattern is matched by fnmatch against "test_file.py::test_name[parameters]",
the parameters without the route's.
"""

from fnmatch import fnmatchcase

DEVIATIONS: list[tuple[str, str, str, str]] = []


def deviation(route, backend, case):
    """The reason why this case fails there, or None."""
    for row_route, row_backend, pattern, reason in DEVIATIONS:
        here = row_route in ("*", route) and row_backend in ("*", backend)
        if here and fnmatchcase(case, _literal(pattern)):
            return reason
    return None


def _literal(pattern):
    """Brackets in a pattern are those of a test id, not fnmatch's."""
    return pattern.replace("[", "[[]")
