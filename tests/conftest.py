"""What holds for every test: its own time-out, and nothing left behind.

Time-outs are two. pytest-timeout's `signal` method fails the one test that hangs and lets the
session go on; but its handler runs in Python, so it cannot end a call that hangs inside native
code. For that there is a watchdog (faulthandler's C thread, which needs no GIL; pytest-timeout's
`thread` method does) that prints every thread's stack and ends the process some seconds later. To
start that thread takes as long as many a test, so that it is set anew once in some seconds.
"""

import ctypes
import faulthandler
import fcntl
import functools
import gc
import os
import signal
import sys
import time
import uuid

import hypothesis
import pytest

from directfuse import _paths

# The routes and their deviations from Linux serve more than the suite they live in.
sys.path.append(os.path.dirname(__file__))
from conformance.deviations import expect_deviations
from conformance.leftovers import PREFIX, remove_leftovers

#: What a test has beyond its limit before the watchdog ends it, at least and at most.
GRACE_SECONDS = 15, 25

#: What the end of a session may take: workers of xdist have ten seconds to go, and who frees what
#: it knows of 19,000 tests on a busy machine takes half a minute.
END_SECONDS = 120

#: In the environment of every process that the tests start.
TOKEN = "DIRECTFUSE_TEST_SESSION"
STDERR = pytest.StashKey()
WATCHED = pytest.StashKey()
LEAVERS = pytest.StashKey()

#: Seconds that a process may take which is just ending.
ENDS = 10


def pytest_configure(config):
    # A shell has its background jobs ignore it, and what the tests start would inherit that.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # Capturing is suspended here, so this is the terminal and not a test's stderr.
    config.stash[STDERR] = open(os.dup(2), "w")
    _draw_alike(seed=config.getoption("--hypothesis-seed"))


def _draw_alike(seed):
    """Random calls are the same in every run, as long as the test modules are (hypothesis tries the
    constants that it finds in them): what lands is decided by the change, not by chance. Who hunts
    for faults gives a seed."""
    settings = {"deadline": None, "database": None, "print_blob": True}
    hypothesis.settings.register_profile("alike", derandomize=seed is None, **settings)
    hypothesis.settings.load_profile("alike")


def pytest_report_header(config):
    seed = config.getoption("--hypothesis-seed")
    return None if seed is None else f"random calls: --hypothesis-seed={seed}"


def pytest_collection_finish(session):
    _settle()


def _settle():
    """Items and reports live to the end. gc.collect(), which many tests call, need not visit each
    again: behind 15,000 tests it took a quarter of a second."""
    gc.collect()
    gc.freeze()


def pytest_runtest_setup(item):
    if item.get_closest_marker("kernel_fuse") and not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("no access to /dev/fuse")


def pytest_unconfigure(config):
    """Threads that a failed test has left keep the interpreter from ending. A worker of xdist waits
    for the others here, and is killed at their end."""
    _watch(config, 0)
    if not hasattr(config, "workerinput"):
        faulthandler.dump_traceback_later(END_SECONDS, exit=True, file=config.stash[STDERR])


def _limit(item):
    """Seconds that pytest-timeout allows the test; 0: no limit."""
    option = item.config.getoption("timeout")
    if option is not None:
        return float(option)
    marker = item.get_closest_marker("timeout")
    if marker:
        return float(marker.args[0] if marker.args else marker.kwargs["timeout"])
    return float(item.config.getini("timeout") or 0)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    """The watchdog for hangs in native code."""
    _watch(item.config, 0 if item.config.getoption("usepdb") else _limit(item))
    return (yield)


@pytest.hookimpl(trylast=True)
def pytest_exception_interact(node):
    """pytest's own faulthandler plugin has just cancelled what it takes for its own (tryfirst): the
    rest of this test, and the next ones, are watched again."""
    if not node.config.getoption("usepdb"):
        node.config.stash[WATCHED] = 0
        _watch(node.config, _limit(node))


def _watch(config, limit):
    """Has the watchdog wait for a test of this limit in seconds, or for none."""
    least, most = (limit + grace for grace in GRACE_SECONDS)
    now, end = time.monotonic(), config.stash.get(WATCHED, 0)
    if limit and not now + least <= end <= now + most:
        faulthandler.dump_traceback_later(most, exit=True, file=config.stash[STDERR])
        config.stash[WATCHED] = now + most
    elif not limit and end:
        faulthandler.cancel_dump_traceback_later()
        config.stash[WATCHED] = 0


#: Virtual descriptors have numbers from here on, small ones first; nobody has this many open.
FIRST_VIRTUAL, MANY = 1 << 30, 256


@functools.cache
def _fcntl():
    """The C door's: exceptions cost."""
    return ctypes.CDLL(str(_paths.library())).df_fcntl


def _virtual():
    """The virtual descriptors that are open in this process."""
    flags = _fcntl()
    numbers = range(FIRST_VIRTUAL, FIRST_VIRTUAL + MANY)
    return {f"descriptor {fd}" for fd in numbers if flags(fd, fcntl.F_GETFD) >= 0}


def _children():
    """The children of this process that have not been waited for."""
    with open(f"/proc/self/task/{os.getpid()}/children") as file:
        return {f"child {pid}" for pid in file.read().split()}


def _described(thing):
    """Of a child also what it is and does: "child 123 (name) Z"."""
    kind, number = thing.split()
    if kind != "child":
        return thing
    with open(f"/proc/{number}/stat") as file:
        return " ".join([kind, *file.read().split()[:3]])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item, nextitem):
    """Which test has left what: a fixture that several share closes it later."""
    result = yield
    if nextitem is None or nextitem.path != item.path:
        _settle()
    leavers = item.config.stash.setdefault(LEAVERS, {})
    left = _virtual() | _children()
    for thing in leavers.keys() - left:
        del leavers[thing]
    for thing in left - leavers.keys():
        leavers[thing] = item.nodeid
    return result


def pytest_collection_modifyitems(items):
    expect_deviations(items)


# ---- nothing is left behind --------------------------------------------------------------------


def _fuse_mounts(directories):
    """FUSE mounts in the directories of this session; others may run beside it."""
    with open("/proc/self/mountinfo") as table:
        fields = [line.split(" - ", 1) for line in table]
    mounts = {left.split()[4] for left, right in fields if right.startswith("fuse")}
    return {mount for mount in mounts if any(part in mount for part in directories)}


def _processes(token):
    """Processes that carry the token in their environment, as "pid command"."""
    found = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                environment = file.read().split(b"\0")
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                command = file.read().replace(b"\0", b" ").decode(errors="replace")
        except OSError:  # it has ended, or is another user's
            continue
        if f"{TOKEN}={token}".encode() in environment:
            found.add(f"{pid} {command}")
    return found


def _left(token):
    """As _processes(), of those that do not end by themselves: the last test's server is just
    ending."""
    patience = time.monotonic() + ENDS
    while (left := _processes(token)) and time.monotonic() < patience:
        time.sleep(0.05)
    return left


@pytest.fixture(scope="session", autouse=True)
def nothing_left_behind(request, tmp_path_factory):
    """No FUSE mount, no process and no virtual descriptor outlives the tests that made it. What did
    because they were killed goes first."""
    remove_leftovers()
    token = os.environ[TOKEN] = uuid.uuid4().hex
    directories = (PREFIX, str(tmp_path_factory.getbasetemp()))
    children = _children()
    yield
    del os.environ[TOKEN]
    assert _fuse_mounts(directories) == set()
    assert _left(token) == set()
    left = _virtual() | (_children() - children)
    leavers = request.config.stash.get(LEAVERS, {})
    assert not left, {_described(thing): leavers.get(thing, "a fixture") for thing in left}
