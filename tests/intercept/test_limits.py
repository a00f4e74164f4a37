"""Programs that have used up their descriptors or their memory: as on Linux; see limits.c."""

import contextlib
import sys
import time
from pathlib import Path

import pytest

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


def test_a_limit_that_another_process_sets_stays(plain, mounted, compiled):
    """By prlimit(2), while it is raised for a moment."""
    wanted = plain(compiled("limits"), "outside")
    assert wanted.seen() == (0, b"lost 0\n", b"")
    assert mounted(compiled("limits"), "outside").seen() == wanted.seen()


SMALL, LARGE = "20000", "20000000"  # what is copied as a whole, and by chunks


@pytest.mark.parametrize("size", [SMALL, LARGE])
@pytest.mark.parametrize(
    ("means", "end"),
    [
        *(("descriptors", end) for end in ("unmap", "cover", "sync", "exit")),
        *(("memory", end) for end in ("unmap", "sync", "exit")),
    ],
)
def test_what_was_stored_is_written_without_means(plain, mounted, compiled, size, means, end):
    """A shared mapping's memory comes to the file, for which a copy and a descriptor are needed."""
    command = ["/bin/sh", "-c", '"$@" && cksum f', "sh", compiled("limits"), "stored"]
    wanted = plain(*command, size, means, end)
    assert wanted.status == 0 and wanted.out
    assert mounted(*command, size, means, end).seen() == wanted.seen()


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_changes_of_a_mapped_file_without_a_descriptor(mounted, compiled, size):
    """They fail as a whole: none comes to the mount and is overwritten by what memory shows."""
    script = f'"$0" refused {size} && wc -c <f && tr -d m <f'
    outcome = mounted("/bin/sh", "-c", script, compiled("limits"))
    failed = "-1 Input/output error"
    assert outcome.out.decode() == f"write: {failed}\ngrow: {failed}\npunch: {failed}\n{size}\n"
    assert outcome.status == 0


def test_the_first_file_of_a_mount_with_few_descriptors(plain, mounted, compiled):
    """The server is to know the process first, which takes descriptors: else nothing is made."""
    command = ["/bin/sh", "-c", 'at=$PWD && cd / && "$0" first "$at"', compiled("limits")]
    wanted = plain(*command)
    assert wanted.status == 0 and wanted.out.count(b": 0\n") == 4
    assert mounted(*command).seen() == wanted.seen()


@pytest.mark.parametrize("kind", ["ordinary", "real-time"])
def test_signals_of_timers_where_no_more_may_wait(plain, mounted, compiled, kind):
    """RLIMIT_SIGPENDING: one that comes while the thread is in the core waits once more."""
    wanted = plain(compiled("limits"), "timers", kind)
    assert wanted.seen() == (0, b"100 came, 0 of them wrong\n", b"")
    assert mounted(compiled("limits"), "timers", kind).seen() == wanted.seen()


@pytest.mark.parametrize("left", ["0", "1", "2", "9"])
def test_the_server_knows_a_child_that_finds_no_descriptor_left(mounted, compiled, left):
    """Else it waits for its birth when the run has ended, and then takes its files away."""
    mounted.through = ["/bin/sh", "-c", 'ulimit -n 64 && exec "$@"', "sh"]
    outcome = mounted(compiled("limits"), "child", left)
    assert outcome.seen() == (0, b"sockets of its own: 1\n", b"")


# Each of so many has a file open, and children that end before they tell the server of themselves.
_FILL = """
import errno, os, signal, sys
seen, children = set(), []
for i in range(int(sys.argv[1])):
    there, here = os.pipe()
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        try:
            os.open(f"f{i}", os.O_CREAT | os.O_RDWR)
            for _ in range(8):
                os.kill(os.fork() or os.getpid(), signal.SIGKILL)
            os.write(here, b"opened")
        except OSError as error:
            os.write(here, errno.errorcode[error.errno].encode())
        signal.pause()
    children.append(child)
    os.close(here)
    seen.add(os.read(there, 20).decode())
    os.close(there)
for child in children:
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
print("opened" in seen, "ENFILE" in seen, seen <= {"opened", "ENFILE", "EIO"})
"""


def serves(point):
    """Whether a mount server has it: what ends while it is looked at does not count."""
    for words in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            line = words.read_bytes()
            if b"directfuse-server" in line and point.encode() in line:
                return True
    return False


def test_a_server_without_descriptors_ends_with_the_run(mounted):
    """It had clients of whose end it could not hear."""
    mounted.through = ["prlimit", "--nofile=48:48"]
    outcome = mounted(sys.executable, "-S", "-c", _FILL, "60")
    assert (outcome.status, outcome.out) == (0, b"True True True\n")
    deadline = time.monotonic() + 30
    while serves(mounted.point) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not serves(mounted.point)


SPACE_WITH_FILES = """
import mmap, os, subprocess
from resource import RLIMIT_AS, setrlimit
M = 1 << 20
f = open("m", "w+b"); f.truncate(17 * M); m = mmap.mmap(f.fileno(), 0); print(m[5 * M])
limited = "ulimit -v 100000; echo child >f; cat f | cat"
print(subprocess.run(["sh", "-c", limited], capture_output=True))
pid = os.fork()
if pid == 0:
    setrlimit(RLIMIT_AS, (300 * M, 300 * M))
    for size in 200, 150, 1:
        try: held = mmap.mmap(-1, size * M); print(size)
        except OSError as e: print(e.strerror)
        if size == 200: keep = held
    print(open("f").read(), flush=True)
    os._exit(0)
os.waitpid(pid, 0)
"""


def test_a_limit_of_address_space_where_large_files_are_mapped(plain, mounted):
    """What the processes of the run share for these is none of the program's space."""
    command = [sys.executable, "-S", "-u", "-c", SPACE_WITH_FILES]
    wanted = plain(*command)
    assert wanted.status == 0 and b"child" in wanted.out
    assert mounted(*command).seen() == wanted.seen()
