"""Functions run as another user: in a forked child, or in a thread."""

import concurrent.futures
import ctypes
import os
import pickle
import signal
import traceback

PR_SET_PDEATHSIG = 1  # prctl(2)

SYS_SETGROUPS, SYS_SETRESUID, SYS_SETRESGID = 116, 117, 119  # x86-64, asm/unistd_64.h

_libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent(sig=signal.SIGTERM):
    _libc.prctl(PR_SET_PDEATHSIG, int(sig), 0, 0, 0)


def set_thread_identity(uid, gid, groups):
    """Of this thread alone, which the system calls change; the C library's functions change all
    threads (nptl(7))."""
    ids = (ctypes.c_uint32 * len(groups))(*groups)
    for call in (
        (SYS_SETGROUPS, ctypes.c_long(len(groups)), ids),
        (SYS_SETRESGID, *(ctypes.c_long(gid),) * 3),
        (SYS_SETRESUID, *(ctypes.c_long(uid),) * 3),
    ):
        if _libc.syscall(ctypes.c_long(call[0]), *call[1:]) < 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))


def in_thread(before, func):
    """func() in a thread of its own after before(); its value, or its exception raised here."""

    def run():
        before()
        return func()

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        return pool.submit(run).result()


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
