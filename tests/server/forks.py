"""Functions in forked children."""

import os
import signal
import traceback
from contextlib import contextmanager


def begin_fork(function):
    """The process id of a forked child that runs function(); its status is 1 if that raises."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            function()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    return pid


def ended(pid):
    """The exit status of a child, when it has ended; negative: the signal that killed it."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def in_fork(function):
    """The exit status of function() in a forked child."""
    return ended(begin_fork(function))


@contextmanager
def meanwhile(function):
    """Runs function() in a forked child, and waits for it to end well. If what is done meanwhile
    fails, the child is ended and does not hide why by being left."""
    pid = begin_fork(function)
    try:
        yield
    except BaseException:
        os.kill(pid, signal.SIGKILL)
        ended(pid)
        raise
    assert ended(pid) == 0


def expect(have, wanted):
    assert have == wanted
