"""Mapped files that are larger than the memory for them: the same as on a plain directory."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from building import fuse

pytestmark = pytest.mark.timeout(400)

PROGRAMS = Path(__file__).parent / "programs"


@pytest.fixture
def little(monkeypatch):
    """A process holds four chunks at most."""
    monkeypatch.setenv("DIRECTFUSE_MAPPED", "2M")


@pytest.fixture
def small(within):
    """As `mounted`, with 64 MiB of /dev/shm, as containers have it."""
    return within("size=64m")


def test_scans_and_stores_with_little_memory(plain, mounted, compiled, little):
    """Processes, threads, system calls, one that is killed; see shortage.c."""
    program = compiled("shortage")
    wanted = plain(program, "24")
    assert wanted.status == 0
    assert mounted(program, "24", timeout=200).seen() == wanted.seen()


def test_what_mmap_promises_with_little_memory(plain, mounted, compiled, little):
    program = compiled("mapping")
    wanted = plain(program, "24")
    assert wanted.status == 0
    assert mounted(program, "24", timeout=200).seen() == wanted.seen()


@pytest.mark.parametrize(("limit", "most"), [("1", 2), ("10M", 10)])
def test_a_process_holds_no_more_than_it_may(small, monkeypatch, limit, most):
    """Four chunks of 512 KiB at least."""
    monkeypatch.setenv("DIRECTFUSE_MAPPED", limit)
    script = (
        "import mmap, os\n"
        'f = open("m", "w+b"); f.truncate(40 << 20)\n'
        "m = mmap.mmap(f.fileno(), 0); m[::4096] = bytes(10 << 10)\n"
        'd = os.statvfs("/dev/shm"); print((d.f_blocks - d.f_bfree) * d.f_bsize >> 20)\n'
    )
    outcome = small(sys.executable, "-S", "-c", script)
    assert outcome.status == 0 and most <= int(outcome.out) < most + 4


MANY_MAPPINGS = """
import ctypes, mmap, os
f = open("m", "w+b"); f.truncate(1 << 30); f.seek(5 << 19); f.write(b"five"); f.flush()
m = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)
mprotect = ctypes.CDLL(None, use_errno=True).mprotect
most = int(open("/proc/sys/vm/max_map_count").read())
pages = mmap.mmap(-1, 2 * most * 4096)
start = ctypes.addressof(ctypes.c_char.from_buffer(pages))
used = len(open("/proc/self/maps").readlines())
for i in range((most - used) // 2 - 100):
    assert mprotect(ctypes.c_void_p(start + 8192 * i), ctypes.c_size_t(4096), 0) == 0
print(sum(m[i << 22] for i in range(1 << 8)), m[5 << 19 : (5 << 19) + 4])
print(sum(m[(i << 20) + (1 << 19)] for i in range(1 << 10)), sum(m[:: 1 << 19]))
"""


def test_as_many_mappings_as_a_process_may_have(plain, mounted):
    """Each chunk that is shown alone is one of the kernel's: those before it are given up."""
    wanted = plain(sys.executable, "-S", "-c", MANY_MAPPINGS)
    assert wanted.status == 0
    assert mounted(sys.executable, "-S", "-c", MANY_MAPPINGS).seen() == wanted.seen()


def test_a_program_whose_files_may_be_little_larger_than_what_it_maps(plain, mounted):
    """What the processes of a run tell each other is smaller than that."""
    script = (
        "import mmap, resource, signal\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_DFL)\n"
        'f = open("m", "w+b"); f.truncate(17 << 20)\n'
        "resource.setrlimit(resource.RLIMIT_FSIZE, (18 << 20, 18 << 20))\n"
        "print(sum(mmap.mmap(f.fileno(), 0)[::4096]))\n"
    )
    wanted = plain(sys.executable, "-S", "-c", script)
    assert wanted.seen() == (0, b"0\n", b"")
    assert mounted(sys.executable, "-S", "-c", script).seen() == wanted.seen()


def test_a_file_larger_than_all_of_dev_shm(plain, small, compiled):
    program = compiled("shortage")
    wanted = plain(program, "72")
    assert wanted.status == 0
    assert small(program, "72", timeout=200).seen() == wanted.seen()


@pytest.mark.parametrize("steps", ["follow", "holes", "lent"])
def test_shares_of_a_small_dev_shm(plain, small, compiled, steps):
    """What processes take leaves something for those that come later; see turns.c."""
    program = compiled("turns")
    wanted = plain(program, steps)
    assert wanted.status == 0
    assert small(program, steps).seen() == wanted.seen()


def test_what_is_left_of_those_who_are_killed(small, compiled):
    """Each has made room for a chunk, and has filled a part of it."""
    small.file_system = compiled("deadly", *fuse())
    outcome = small(compiled("turns"), "killed")
    assert outcome.seen() == (0, b"0 not killed, 0 differ\n", b"")


def test_a_child_keeps_no_lock_of_a_mapped_file(mounted, compiled):
    """It is forked while another thread reads the file."""
    mounted.file_system = compiled("deadly", *fuse())
    outcome = mounted(compiled("turns"), "forked", timeout=20)
    assert outcome.seen() == (0, b"touched: 1\nchild: exit 0, signal 0\n", b"")


def test_mapped_files_where_all_descriptors_are_used_up(plain, mounted, compiled):
    program = compiled("turns")
    wanted = plain(program, "full")
    assert wanted.status == 0
    assert mounted(program, "full").seen() == wanted.seen()


def test_memory_that_cannot_be_had_for_want_of_a_descriptor(mounted, compiled):
    """The hard limit leaves none: a signal, and no fault that comes again for ever."""
    assert mounted(compiled("turns"), "fuller").status == -signal.SIGSEGV


def test_numpy_in_a_small_dev_shm(plain, small):
    pytest.importorskip("numpy")
    script = (
        "import numpy as n, sys\n"
        'm = n.memmap("m", dtype="i8", mode="w+", shape=(16 << 20,))\n'
        "m[:] = n.arange(16 << 20); m.flush()\n"
        'r = n.memmap("m", dtype="i8", mode="r")\n'
        "print(r.sum(), (r[1:] > r[:-1]).all(), r[:: 1 << 15].sum())\n"
        'c = n.memmap("m", dtype="i8", mode="c"); c[:: 1 << 10] = 0; print(c.sum(), r.sum())\n'
    )
    wanted = plain(sys.executable, "-c", script)
    assert wanted.status == 0
    assert small(sys.executable, "-c", script, timeout=200).seen() == wanted.seen()


# The blobs are random: to deflate them, or to look for what they share, would be all of the time.
_GIT = (
    "git init -q . && git config user.email a@b && git config user.name n && "
    "git config core.compression 0 && git config pack.window 0 && "
    "for i in 1 2 3; do openssl enc -aes-128-ctr -pass pass:$i -nosalt -pbkdf2 </dev/zero "
    "2>/dev/null | head -c 30000000 >blob$i; done; "
    "git add . && GIT_AUTHOR_DATE='@1 +0000' GIT_COMMITTER_DATE='@1 +0000' git commit -qm one && "
    "git repack -adq && git fsck --full && git rev-parse HEAD && "
    "rm blob2 && git checkout blob2 2>/dev/null && cksum blob*"
)
_SQLITE = (
    "sqlite3 db 'pragma page_size=4096; create table t(a integer primary key, b blob); "
    "with recursive n(i) as (select 1 union all select i+1 from n where i<20000) "
    "insert into t select i, zeroblob(4000)||i from n;' && "
    "sqlite3 db 'pragma mmap_size=1000000000; select count(*), sum(length(b)), sum(a) from t; "
    "update t set b=a where a%3=0; select sum(length(b)) from t; pragma integrity_check;'"
)


@pytest.mark.parametrize(("tool", "script"), [("git", _GIT), ("sqlite3", _SQLITE)])
def test_programs_in_a_small_dev_shm(plain, small, tool, script):
    if subprocess.run(["which", tool], capture_output=True, check=False).returncode != 0:
        pytest.skip(f"{tool} is not installed")
    wanted = plain("/bin/sh", "-c", script)
    assert wanted.status == 0
    assert small("/bin/sh", "-c", script, timeout=200).seen() == wanted.seen()


@pytest.mark.parametrize(
    ("seed", "steps"),
    [(1, 30), *(pytest.param(seed, 300, marks=pytest.mark.sweep) for seed in range(2, 8))],
)
def test_random_accesses_by_several_processes(plain, mounted, little, seed, steps):
    """See mapped.py."""
    command = [sys.executable, PROGRAMS / "mapped.py", str(seed), str(steps)]
    wanted = plain(*command, timeout=200)
    assert wanted.status == 0
    assert mounted(*command, timeout=500).seen() == wanted.seen()
