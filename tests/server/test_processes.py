"""What processes share after a fork, on a mount server as in a plain directory.

Each case runs on both, so what it expects is what Linux does.
"""

import errno
import fcntl
import os
import signal
import sys

import pytest

import directfuse

from .forks import begin_fork, ended, expect, in_fork
from .places import PLACES, open_place


@pytest.fixture(params=PLACES)
def place(request, tmp_path):
    """A directory: an ordinary one, or one in a mount server."""
    with open_place(request.param, tmp_path) as path:
        yield path


def opened(path, flags=os.O_RDWR | os.O_CREAT, content=b""):
    fd = directfuse.os_open(path, flags)
    if content:
        directfuse.pwrite(fd, content, 0)
    return fd


def content(path):
    with directfuse.open(path, "rb") as file:
        return file.read()


def test_a_position_is_the_descriptions_not_the_processs(place):
    fd = opened(f"{place}/f", content=b"abcdefghij")
    assert in_fork(lambda: expect(directfuse.read(fd, 3), b"abc")) == 0
    assert directfuse.read(fd, 3) == b"def"
    assert in_fork(lambda: directfuse.lseek(fd, -2, os.SEEK_CUR)) == 0
    assert directfuse.lseek(fd, 0, os.SEEK_CUR) == 4
    assert in_fork(lambda: directfuse.write(fd, b"XY")) == 0
    assert directfuse.read(fd, 9) == b"ghij"
    directfuse.close(fd)
    assert content(f"{place}/f") == b"abcdXYghij"


def test_two_processes_that_write_by_one_description_lose_nothing(place):
    fd = opened(f"{place}/f")
    line = b"0123456789abcdef\n"

    def write_lines():
        for _ in range(200):
            assert directfuse.write(fd, line) == len(line)

    pid = begin_fork(write_lines)
    write_lines()
    assert ended(pid) == 0
    assert directfuse.lseek(fd, 0, os.SEEK_CUR) == 400 * len(line)
    directfuse.close(fd)
    assert content(f"{place}/f") == line * 400


def test_status_flags_are_the_descriptions(place):
    fd = opened(f"{place}/f", content=b"0123456789")

    def append_from_now_on():
        flags = directfuse.fcntl(fd, fcntl.F_GETFL)
        directfuse.fcntl(fd, fcntl.F_SETFL, flags | os.O_APPEND)

    assert in_fork(append_from_now_on) == 0
    assert directfuse.fcntl(fd, fcntl.F_GETFL) & os.O_APPEND
    assert directfuse.write(fd, b"end") == 3
    directfuse.close(fd)
    assert content(f"{place}/f") == b"0123456789end"


def test_appends_of_many_descriptions_lose_nothing(place):
    def append(letter):
        fd = opened(f"{place}/f", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for _ in range(100):
            directfuse.write(fd, letter * 50)
        directfuse.close(fd)

    children = [begin_fork(lambda letter=letter: append(letter)) for letter in (b"a", b"b")]
    append(b"c")
    assert [ended(pid) for pid in children] == [0, 0]
    written = content(f"{place}/f")
    pieces = [written[at : at + 50] for at in range(0, len(written), 50)]
    assert sorted(pieces) == sorted([b"a" * 50, b"b" * 50, b"c" * 50] * 100)


def test_an_unlinked_file_lives_as_long_as_any_process_has_it(place):
    fd = opened(f"{place}/f", content=b"bytes")
    directfuse.unlink(f"{place}/f")
    ready, go = os.pipe()

    def child():
        os.read(ready, 1)
        assert directfuse.fstat(fd).st_nlink == 0
        assert directfuse.pread(fd, 9, 0) == b"bytes"
        directfuse.ftruncate(fd, 2)
        assert directfuse.fstat(fd).st_size == 2

    pid = begin_fork(child)
    directfuse.close(fd)
    assert not directfuse.path.exists(f"{place}/f")
    os.write(go, b"x")
    assert ended(pid) == 0
    os.close(ready)
    os.close(go)


def test_posix_locks_are_the_processs_own(place):
    fd = opened(f"{place}/f", content=b"0123456789")
    directfuse.lockf(fd, fcntl.LOCK_EX, 5)

    def child():
        with pytest.raises(OSError) as caught:  # inherited is the description, not the lock
            directfuse.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 5)
        assert caught.value.errno in (errno.EAGAIN, errno.EACCES)
        directfuse.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 5, 5)
        directfuse.close(directfuse.os_open(f"{place}/f", os.O_RDONLY))  # releases its own alone

    assert in_fork(child) == 0
    assert in_fork(lambda: expect(_locked(fd), True)) == 0
    other = directfuse.os_open(f"{place}/f", os.O_RDONLY)
    directfuse.close(other)  # any close releases the locks of the process
    assert in_fork(lambda: expect(_locked(fd), False)) == 0
    directfuse.close(fd)


def _locked(fd):
    try:
        directfuse.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 5)
    except OSError:
        return True
    return False


def test_flock_is_the_descriptions(place):
    fd = opened(f"{place}/f")
    directfuse.flock(fd, fcntl.LOCK_EX)
    assert in_fork(lambda: directfuse.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)) == 0  # has it

    def another():
        mine = directfuse.os_open(f"{place}/f", os.O_RDWR)
        with pytest.raises(BlockingIOError):
            directfuse.flock(mine, fcntl.LOCK_EX | fcntl.LOCK_NB)

    assert in_fork(another) == 0
    assert in_fork(lambda: directfuse.flock(fd, fcntl.LOCK_UN)) == 0  # for all who share it
    other = directfuse.os_open(f"{place}/f", os.O_RDWR)
    directfuse.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    directfuse.close(other)
    directfuse.close(fd)


def die():
    os.kill(os.getpid(), signal.SIGKILL)


#: Ends of a process beside a server that hears of them by itself: what comes late does so at once
#: or in one of hundreds. All of pytest is forked each time.
ENDS = pytest.mark.parametrize("ends", [25, pytest.param(400, marks=pytest.mark.sweep)])


@ENDS
@pytest.mark.timeout(300)
def test_no_lock_is_left_of_a_process_that_has_ended(place, ends):
    """Once wait(2) has told of its end, as often as it is tried."""
    fd = opened(f"{place}/f")

    def child():
        directfuse.lockf(fd, fcntl.LOCK_EX)
        directfuse.flock(directfuse.os_open(f"{place}/f", os.O_RDWR), fcntl.LOCK_EX)
        die()

    for _ in range(ends):
        assert in_fork(child) == -signal.SIGKILL
        for lock in (directfuse.lockf, directfuse.flock):
            lock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            lock(fd, fcntl.LOCK_UN)
    directfuse.close(fd)


@ENDS
@pytest.mark.timeout(300)
def test_a_file_that_an_ended_process_had_open_leaves_its_directory(place, ends):
    """Where a name must be hidden as long as the file is open, it is gone with the process."""
    for _ in range(ends):
        directfuse.mkdir(f"{place}/d")
        fd = opened(f"{place}/d/f")
        assert in_fork(die) == -signal.SIGKILL
        directfuse.close(fd)
        directfuse.unlink(f"{place}/d/f")
        directfuse.rmdir(f"{place}/d")


def test_nothing_is_left_behind_an_exec(place):
    """Descriptors here are no kernel's: whatever their flag, exec closes them, and its locks go."""
    fd = opened(f"{place}/f")
    directfuse.fcntl(fd, fcntl.F_SETFD, fcntl.FD_CLOEXEC)
    directfuse.flock(fd, fcntl.LOCK_EX)
    ready, go = os.pipe()
    os.set_inheritable(go, True)
    program = f"import os; os.write({go}, b'x'); import sys; sys.stdin.read()"
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.dup2(read_end, 0)
        os.close(write_end)
        os.execv(sys.executable, [sys.executable, "-c", program])
    os.read(ready, 1)
    directfuse.close(fd)
    other = directfuse.os_open(f"{place}/f", os.O_RDWR)
    directfuse.flock(other, fcntl.LOCK_EX)  # waits, if at all, for the server to see the exec
    directfuse.close(other)
    for end in (ready, go, read_end, write_end):
        os.close(end)
    assert ended(pid) == 0


def test_children_of_children(place):
    fd = opened(f"{place}/f", content=b"abcdefghi")

    def child():
        assert directfuse.read(fd, 3) == b"abc"
        assert in_fork(lambda: expect(directfuse.read(fd, 3), b"def")) == 0
        assert directfuse.read(fd, 3) == b"ghi"

    assert in_fork(child) == 0
    assert directfuse.read(fd, 3) == b""
    directfuse.close(fd)
