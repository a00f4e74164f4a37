"""Fixtures of the conformance suite: `fs` for every case, and what only some cases need."""

import os

import pytest

from .mounts import user_xattrs
from .routes import WHERE, Unavailable, open_route, where_id

MARKS = {"kernel": [pytest.mark.kernel_fuse]}
PARAMS = [pytest.param(where, id=where_id(where), marks=MARKS.get(where[0], [])) for where in WHERE]


def _opened(where, **options):
    try:
        with open_route(*where, **options) as route:
            yield route
            route.proof()
    except Unavailable as error:
        pytest.skip(f"{where_id(where)}: {error}")


@pytest.fixture(scope="module", params=PARAMS)
def where(request):
    """(route, backend): nothing but the fixtures here may look at it."""
    return request.param


@pytest.fixture(scope="module")
def route(where):
    """One file system for all cases of a module."""
    yield from _opened(where)


@pytest.fixture(scope="module")
def readonly(where):
    """A read-only file system: `base`, `os`, and `existing`, the name of a file in it or None."""
    yield from _opened(where, readonly=True)


@pytest.fixture
def fs(route):
    """An empty directory of its own on the file system."""
    with route.fresh() as fs:
        yield fs


@pytest.fixture
def user(fs):
    """fs.as_user, or a skip with the reason."""
    if os.geteuid() != 0:
        pytest.skip("acting as another user needs root")
    return fs.as_user


@pytest.fixture
def xattrs(route):
    """Skips where the directory behind the route keeps no user attributes."""
    if (route.backend is None or route.backend.source) and not user_xattrs(route.source):
        pytest.skip("the temporary directory keeps no user.* attributes (tmpfs: Linux 6.6)")
