"""Functions run in a forked child, as another user."""

import ctypes
import os
import pickle
import signal
import traceback

PR_SET_PDEATHSIG = 1  # prctl(2)

_libc = ctypes.CDLL(None)


def die_with_parent(sig=signal.SIGTERM):
    _libc.prctl(PR_SET_PDEATHSIG, int(sig), 0, 0, 0)


def in_child(before, func):
    """func() in a forked child after before(); its value, or its exception raised here."""
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        _child(before, func, write_end)
    os.close(write_end)
    try:
        with open(read_end, "rb") as pipe:
            answer = pipe.read()
    except BaseException:  # the time-out of the case
        os.kill(pid, signal.SIGKILL)
        raise
    finally:
        _, status = os.waitpid(pid, 0)
    if not answer:
        raise AssertionError(f"the child ended without an answer, wait status {status}")
    failed, value = pickle.loads(answer)
    if failed:
        raise value
    return value


def _child(before, func, write_end):
    """Never returns."""
    try:
        try:
            before()
            die_with_parent(signal.SIGKILL)
            answer = (False, func())
        except OSError as error:
            answer = (True, error)
        except BaseException:
            answer = (True, AssertionError(traceback.format_exc()))
        with open(write_end, "wb") as pipe:
            pipe.write(pickle.dumps(answer))
    finally:
        os._exit(0)
