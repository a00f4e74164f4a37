"""poll, select and epoll of files whose file system tells when they are ready, as Linux has them.

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
select all 0 0
select all 1 1
select nothing [0, 0, 0] [0, 0, 0]
select to write [0, 2, 0]
select to read [1, 0, 0]
select broken [1, 1, 0]
select later [1, 0, 0]
select a pipe [1, 0, 0]
select, bits behind 1 1
select, high numbers [1, 0, 0]
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
    "race": "taken 500 {0}\n",
    "by_signals": """\
poll EINTR 0 ['USR1']
ppoll EINTR ['USR1'] set()
ppoll, pending EINTR ['USR1']
ppoll, blocked 1 IN []
pselect, pending EINTR ['USR1']
pselect EINTR ['USR1'] {<Signals.SIGUSR1: 10>}
pselect, another EINTR ['USR2']
""",
    "wrong_masks": """\
mask there 8 1 1
mask bad 8 EFAULT EFAULT
mask there 7 EINVAL EINVAL
mask bad 7 EINVAL EINVAL
""",
    "epoll_before": "before [('a', 'OUT')]\n",
    "epoll_controls": """\
add done
again EEXIST
a copy done
another open done
change done
change another ENOENT
remove done ENOENT
add once more done
first in another ENOENT
a directory EPERM
a path EBADF
exclusive done EINVAL
not any more EINVAL
too exclusive EINVAL
a pipe EINVAL
a file EINVAL EINVAL
closed EBADF EBADF
no event EFAULT
no such call EINVAL
""",
    "epoll_levels": """\
nothing [] []
level [('a', 'IN')] [('a', 'IN')]
taken []
later [('a', 'IN')]
to write [('a', 'OUT')]
both [('a', 'IN|OUT')]
one at a time [('a', 'IN|OUT'), ('b', 'OUT')]
one removed [('b', 'OUT')]
none left []
a pipe [('pipe', 'IN')]
broken [('broken', 'ERR'), ('pipe', 'IN')]
all [('b', 'OUT'), ('broken', 'ERR'), ('pipe', 'IN')]
""",
    "epoll_edges": """\
edge [('a', 'IN')] []
told again [('a', 'IN')] []
more [('a', 'IN')] []
poked []
edge later [('a', 'IN')]
changed [('a', 'IN')] []
once [('a', 'IN')] []
no more []
once again [('a', 'IN')] []
""",
    "epoll_lives": """\
a copy is left [('a', 'IN')]
none is left []
in a child [('a', 'IN')]
of a child [('a', 'IN'), ('b', 'OUT')]
after it [] ENOENT
1
in another 1 [(0, 'IN')]
""",
    "epoll_together": """\
together [[('a', 'IN')], [('a', 'IN')]]
""",
    "epoll_signals": """\
epoll_wait EINTR
epoll_pwait EINTR ['USR1']
epoll_pwait2 EINTR ['USR1', 'USR1']
no room EINVAL 0
no memory EFAULT
""",
    "silent": """\
can tell []
cannot [(0, 'IN|OUT'), (1, 'IN|OUT'), (2, 'IN|OUT')]
is not asked [(0, 'IN|OUT')]
""",
}
#: When the file system ends.
END = """\
died [(0, 'ERR')]
watched [('a', 'ERR'), ('b', 'ERR')]
dead [(0, 'ERR')]
dead, by select [1, 1, 0]
"""
ENDS = ("itself", "killed")
WANTED |= dict.fromkeys(ENDS, END)

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


class Told:
    """What programs tell in a mount of a file system, by either route."""

    def __init__(self, file_system, point):
        self.file_system, self.point = file_system, point
        point.mkdir()

    def _program(self, through, program, words):
        done = subprocess.run(
            [*through, sys.executable, "-S", PROGRAMS / program, self.point, *words],
            capture_output=True,
            text=True,
            env=environment(),
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def by_run(self, program, *words):
        mount = ["-m", f"{self.file_system} {self.point}"]
        through = [sys.executable, "-m", "directfuse", "run", *mount, "--"]
        return self._program(through, program, words)

    def by_kernel(self, program, *words):
        with _kernel.Program([self.file_system, os.fspath(self.point), "-f"]) as daemon:
            daemon.wait_mounted(30)
            return self._program([], program, words)


@pytest.fixture
def told_by(file_system, tmp_path):
    return Told(file_system, tmp_path / "mount")


@pytest.fixture(params=["run", pytest.param("kernel", marks=pytest.mark.kernel_fuse)])
def told(request, told_by):
    """What ready.py tells of these parts."""
    route = told_by.by_run if request.param == "run" else told_by.by_kernel
    return lambda *parts: route("ready.py", *parts)


def test_files_are_ready_when_their_file_system_says_so(told):
    """At once and later, among pipes and sockets; with signals, threads and processes."""
    assert told(*TOGETHER) == "".join(WANTED[part] for part in TOGETHER)


@pytest.mark.parametrize("part", ALONE)
def test_when_it_tells_no_more(told, part):
    """Who waits when it ends sees an error; where it cannot tell, files are ready."""
    assert told(part) == WANTED[part]


@pytest.mark.kernel_fuse
def test_random_calls_find_what_they_find_on_a_kernel_mount(told_by):
    """Of poll, select and two epoll instances, amid opens, copies, closes and changes."""
    seeds = "0", "200"
    assert told_by.by_run("ready_random.py", *seeds) == told_by.by_kernel("ready_random.py", *seeds)


_UNTOLD = """\
can tell done
cannot EPERM
another EPERM
two [(0, 'IN'), (1, 'IN')]
"""


def test_a_file_system_that_turns_out_not_to_tell_is_as_a_disk(told_by):
    """Where it cannot be known before, as of a helper's. Else each open of Go's would ask."""
    assert told_by.by_run("ready.py", "untold") == _UNTOLD


_ORDINARY = """
import errno, os, select
fd, epoll = os.open("f", os.O_RDWR | os.O_CREAT), select.epoll()
poll = select.poll()
poll.register(fd, select.POLLIN | select.POLLOUT | select.POLLPRI)
print([events for _, events in poll.poll()])
print([len(found) for found in select.select([fd], [fd], [fd])])
try:
    epoll.register(fd, select.EPOLLIN)
except OSError as error:
    print(errno.errorcode[error.errno])
"""


def test_files_of_other_file_systems_are_as_those_of_a_disk(plain, mounted):
    wanted = plain(sys.executable, "-S", "-c", _ORDINARY)
    assert wanted.out == b"[5]\n[1, 1, 0]\nEPERM\n"
    assert mounted(sys.executable, "-S", "-c", _ORDINARY).seen() == wanted.seen()
