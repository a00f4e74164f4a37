"""poll(2) and select(2) of files whose file system tells when they are ready: as on a kernel mount.

No file of a plain directory waits for anything, so what is expected stands here; the kernel's own
mount of the same file system has to agree.
"""

import os
import subprocess
import sys

import pytest
from building import build, fuse

from directfuse import _kernel

from .conftest import PROGRAMS, environment

WANTED = {
    "at_once": """\
nothing to read []
to write [(0, 'OUT')]
both [(0, 'IN|OUT')]
no events []
one of two [(1, 'IN')]
other names [(0, 'RDNORM|WRNORM')]
one left [(0, 'IN')]
none left []
full []
broken [(0, 'ERR')]
directory [(0, 'IN|OUT')]
path [(0, 'NVAL')]
closed [(0, 'NVAL')]
""",
    "by_select": """\
select nothing [0, 0, 0] [0, 0, 0]
select to write [0, 2, 0]
select to read [1, 0, 0]
select broken [1, 1, 0]
select later [1, 0, 0]
select a pipe [1, 0, 0]
select closed EBADF
""",
    "by_waiting": """\
later [(0, 'IN')]
later, of two [(0, 'IN')]
poked [(0, 'IN')]
poked only []
free [(0, 'OUT')]
a socket [(1, 'IN')]
among pipes [(2, 'IN')]
a copy [(0, 'IN')]
""",
    "together": "together [[(0, 'IN')], [(0, 'IN')], [(0, 'IN')]] [1, 1]\n",
    "closed_meanwhile": "closed [(0, 'NVAL')]\n",
    "by_signals": """\
poll EINTR 0 ['USR1']
ppoll EINTR ['USR1'] set()
ppoll, pending EINTR ['USR1']
ppoll, blocked 1 IN []
pselect, pending EINTR ['USR1']
pselect EINTR ['USR1'] {<Signals.SIGUSR1: 10>}
pselect, another EINTR ['USR2']
""",
    "silent": """\
can tell []
cannot [(0, 'IN|OUT')]
is not asked [(0, 'IN|OUT')]
""",
}
ENDS = ("itself", "killed")
WANTED |= dict.fromkeys(ENDS, "died [(0, 'ERR')]\ndead [(0, 'ERR')]\ndead, by select [1, 1, 0]\n")

#: Each needs a mount of its own.
ALONE = (*ENDS, "silent")
TOGETHER = [part for part in WANTED if part not in ALONE]

FILE_SYSTEMS = {
    "high": ("gates.c", "fuse3", ()),
    "low": ("gates_low.c", "fuse3", ()),
    "high of 2": ("gates.c", "fuse", ("-DFUSE_USE_VERSION=26",)),
}


@pytest.fixture(params=FILE_SYSTEMS)
def file_system(request, tmp_path):
    source, package, options = FILE_SYSTEMS[request.param]
    return build(PROGRAMS / source, tmp_path / "gates", *options, *fuse(package), "-pthread")


@pytest.fixture(params=["run", pytest.param("kernel", marks=pytest.mark.kernel_fuse)])
def told(request, file_system, tmp_path):
    """What ready.py tells of these parts, in a mount of the file system."""
    point = tmp_path / "mount"
    point.mkdir()

    def ready(through, parts):
        done = subprocess.run(
            [*through, sys.executable, "-S", PROGRAMS / "ready.py", point, *parts],
            capture_output=True,
            text=True,
            env=environment(),
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def by_run(*parts):
        mount = ["-m", f"{file_system} {point}"]
        return ready([sys.executable, "-m", "directfuse", "run", *mount, "--"], parts)

    def by_kernel(*parts):
        with _kernel.Program([file_system, os.fspath(point), "-f"]) as daemon:
            daemon.wait_mounted(30)
            return ready([], parts)

    return by_run if request.param == "run" else by_kernel


def test_files_are_ready_when_their_file_system_says_so(told):
    """At once and later, among pipes and sockets; with signals, threads and processes."""
    assert told(*TOGETHER) == "".join(WANTED[part] for part in TOGETHER)


@pytest.mark.parametrize("part", ALONE)
def test_when_it_tells_no_more(told, part):
    """Who waits when it ends sees an error; where it cannot tell, files are ready."""
    assert told(part) == WANTED[part]
