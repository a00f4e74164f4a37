"""Random call sequences: every route against a plain directory."""

from pathlib import Path

import hypothesis
import pytest
from building import build, plugin
from conformance.backends import BACKENDS, Backend
from conformance.mounts import user_xattrs
from conformance.routes import WHERE, Unavailable, open_route, where_id
from hypothesis.stateful import run_state_machine_as_test

from .machine import Machine

# The sweep tells what it finds as it is: to make it smaller takes minutes on each route, and they
# would be missing in .ci/run.
SHORT = hypothesis.settings(max_examples=150, stateful_step_count=50)
FEW = hypothesis.settings(SHORT, max_examples=60)
SWEEP = hypothesis.settings(
    max_examples=400,
    stateful_step_count=100,
    phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
)

# Of the kernel's own route it is the file systems that are tested, which all other routes share.
KERNELS = [pytest.mark.kernel_fuse, pytest.mark.sweep]
WHERES = pytest.mark.parametrize(
    "where",
    [
        pytest.param(
            where,
            id=where_id(where),
            marks=KERNELS if where[0] == "kernel" else [],
        )
        for where in WHERE
    ],
)


def compare(where, settings):
    """The machine on this route, its oracle a plain directory."""
    try:
        with open_route("plain", None) as oracle, open_route(*where) as subject:
            bound = type("Machine", (Machine,), {"oracle": oracle, "subject": subject})
            bound.has_xattrs = user_xattrs(oracle.source)
            bound.keeps_names = bool(subject.backend and subject.backend.keeps_names)
            run_state_machine_as_test(bound, settings=settings)
            subject.proof()
    except Unavailable as error:
        pytest.skip(f"{where_id(where)}: {error}")


@pytest.mark.timeout(300)  # seconds; one that passes takes ten, one that fails has to shrink
@WHERES
def test_random_calls_end_as_on_linux(where):
    # Calls of all but these may be trips to another process; plain is the oracle itself.
    compare(where, SHORT if where[0] == "inline" else FEW)


@pytest.fixture(scope="module")
def careful(tmp_path_factory):
    """passthrough without what it states of itself (docs/decisions/014): each name is looked up."""
    sources = sorted(Path(__file__).parents[2].glob("backends/passthrough/*.c"))
    path = tmp_path_factory.mktemp("careful") / "careful.so"
    stated = ["posix_names=a", "getattr_at=b", "posix_copies=c"]
    flags = ["-D_GNU_SOURCE", *(f"-Ddirectfuse_{word}" for word in stated)]
    path = build(sources[0], path, *sources[1:], *flags, *plugin())
    return Backend(path, source=True, keeps_names=True)


@pytest.mark.timeout(300)
def test_random_calls_on_names_that_are_looked_up_end_as_on_linux(careful, monkeypatch):
    monkeypatch.setitem(BACKENDS, careful.name, careful)
    compare(("inline", careful.name), SHORT)


@pytest.mark.sweep
@pytest.mark.timeout(3600)
@WHERES
def test_random_calls_end_as_on_linux_for_long(where):
    compare(where, SWEEP)
