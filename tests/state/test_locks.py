"""Random record locks of several owners: every route against a plain directory."""

import errno
import fcntl
import os

import hypothesis
import pytest
from conformance.expect import flock_fields, flock_struct
from conformance.routes import Unavailable, open_route, where_id
from hypothesis import strategies as some

from .test_machine import SHORT, WHERES

OWNERS = 4  #: open file descriptions; the first asks for POSIX locks (the process's), too
NUMBERS = some.integers(min_value=0, max_value=9)
TYPES = some.sampled_from((fcntl.F_RDLCK, fcntl.F_WRLCK, fcntl.F_UNLCK))
COMMANDS = some.sampled_from(
    (fcntl.F_OFD_SETLK, fcntl.F_OFD_SETLK, fcntl.F_OFD_GETLK, fcntl.F_SETLK, fcntl.F_GETLK)
)
#: (owner, command, type, start, length)
STEPS = some.lists(
    some.tuples(some.integers(0, OWNERS - 1), COMMANDS, TYPES, NUMBERS, NUMBERS), max_size=30
)


class Locks:
    """One file on a route, open several times; its last close ends all locks."""

    def __init__(self, fs):
        self.os = fs.os
        flags, path = os.O_RDWR | os.O_CREAT, fs.path("locked")
        self.fds = [self.os.os_open(path, flags, 0o600) for _ in range(OWNERS)]

    def step(self, owner, command, type_, start, length):
        """What Linux would answer: an error's number, or the lock that is shown."""
        posix = command in (fcntl.F_SETLK, fcntl.F_GETLK)
        fd = self.fds[0 if posix else owner]
        try:
            answer = self.os.fcntl(fd, command, flock_struct(type_, start, length))
        except OSError as error:
            return errno.EAGAIN if error.errno == errno.EACCES else error.errno
        found, _, start, length, pid = flock_fields(answer)
        if command not in (fcntl.F_OFD_GETLK, fcntl.F_GETLK) or found == fcntl.F_UNLCK:
            return found
        return found, start, length, pid

    def close(self):
        for fd in self.fds:
            self.os.close(fd)


def shows_own_locks(oracle):
    """F_OFD_GETLK with F_UNLCK: Linux 6.5."""
    locks = Locks(oracle)
    try:
        return locks.step(0, fcntl.F_OFD_GETLK, fcntl.F_UNLCK, 0, 0) != errno.EINVAL
    finally:
        locks.close()


def compare(oracle, subject):
    newer = shows_own_locks(oracle)

    @hypothesis.settings(SHORT)
    @hypothesis.given(STEPS)
    def run(steps):
        theirs, ours = Locks(oracle), Locks(subject)
        try:
            for step in steps:
                if newer or step[1:3] != (fcntl.F_OFD_GETLK, fcntl.F_UNLCK):
                    assert ours.step(*step) == theirs.step(*step), step
        finally:
            ours.close()
            theirs.close()

    run()


@pytest.mark.timeout(300)
@WHERES
def test_random_record_locks_end_as_on_linux(where):
    try:
        with open_route("plain", None) as plain, open_route(*where) as route:
            with plain.fresh() as oracle, route.fresh() as subject:
                compare(oracle, subject)
            route.proof()
    except Unavailable as error:
        pytest.skip(f"{where_id(where)}: {error}")
