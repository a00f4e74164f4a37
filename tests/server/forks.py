"""Functions in forked children."""

import os
import traceback


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


def expect(have, wanted):
    assert have == wanted
