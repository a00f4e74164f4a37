"""Processes that make calls when told to: the hands of test_machine.py.

A crowd begins with one fork of the process that holds the mount, or with programs of their own
(`python -m server.workers`); all others are forks of those, and inherit their descriptors. Each has
a socket to the crowd, and ends when that does.
"""

import contextlib
import ctypes
import itertools
import os
import select
import signal
import stat
import subprocess
import sys
import traceback
from multiprocessing.connection import Client, Listener, wait
from pathlib import Path

SECONDS = 20  # after which a worker that says nothing hangs
PR_SET_CHILD_SUBREAPER = 36  # prctl(2)

# What stands for an argument that is another one in each world, or in each process.
FD, PATH = "descriptor", "path"


def fd(handle):
    return FD, handle


def path(name):
    return PATH, name


def summary(status):
    """What of a stat result the file system is not free to choose."""
    size = status.st_size if stat.S_ISREG(status.st_mode) else None
    return status.st_mode, status.st_nlink, size, status.st_uid, status.st_gid


def calls(mount):
    """How many this process has made."""
    stats = mount.stats()
    return stats.trips + stats.hits


class Worker:
    """In a process of its own. `fds`: its descriptors, by the number that the machine gave."""

    def __init__(self, namespace, root, address):
        self.os = namespace
        self.root = root
        self.address = address
        self.fds = {}

    def begin(self):
        """In the child, after a fork; never returns."""
        status = 1
        try:
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # its children are not waited for
            self.connection = Client(self.address)
            self.connection.send(os.getpid())
            while True:
                order, *arguments = self.connection.recv()
                self.connection.send(self.outcome(getattr(self, order), arguments))
        except EOFError:
            status = 0
        finally:
            os._exit(status)

    def outcome(self, order, arguments):
        try:
            return "returns", order(*arguments)
        except OSError as error:
            return "fails", error.errno
        except Exception:
            return "raises", traceback.format_exc()

    # ---- orders -------------------------------------------------------------------------------

    def call(self, function, *arguments):
        result = getattr(self.os, function)(*map(self._own, arguments))
        if hasattr(result, "st_mode"):
            return summary(result)
        return sorted(result) if isinstance(result, list) else result

    def make(self, handle, function, *arguments):
        """A call that makes a descriptor."""
        self.fds[handle] = getattr(self.os, function)(*map(self._own, arguments))

    def close(self, handle):
        self.os.close(self.fds.pop(handle))

    def fork(self):
        pid = os.fork()
        if pid == 0:
            self.connection.close()
            self.begin()
        return pid

    def calls(self, mountpoint):
        (mount,) = (mount for mount in self.os.mounts() if mount.mountpoint == mountpoint)
        return calls(mount)

    def leave(self):
        """Without closing anything."""
        os._exit(0)

    def _own(self, argument):
        if not isinstance(argument, tuple):
            return argument
        kind, what = argument
        return self.fds[what] if kind == FD else f"{self.root}/{what}"


class Crowd:
    """The workers of one world, by number; numbers are not used again. `pids`: the number of each
    process that there was."""

    def __init__(self, directory):
        self._listener = Listener(os.path.join(directory, "workers"))
        self._numbers = itertools.count()
        self._workers = {}  # (connection, pidfd)
        self._programs = []
        self.pids = {}

    def begin(self, namespace, root):
        """The number of a worker that is a child of this process."""
        worker = Worker(namespace, root, self._listener.address)
        if os.fork() == 0:
            worker.begin()
        return self._welcome()

    def start(self, root, *, run=None, join=None):
        """The number of one that is a program of its own: in a run that has joined the server of
        the name `run`, or one that joins that of the name `join` from Python, or an ordinary one.
        """
        words = [sys.executable, "-m", __name__, self._listener.address, root, join or ""]
        if run:
            words = [sys.executable, "-m", "directfuse", "run", "-m", run, "--", *words]
        tests = str(Path(__file__).parents[1])
        self._programs.append(subprocess.Popen(words, env=os.environ | {"PYTHONPATH": tests}))
        return self._welcome()

    def _welcome(self):
        number = next(self._numbers)
        connection = self._listener.accept()
        pid = self._received(connection)
        self.pids[pid] = number
        self._workers[number] = connection, os.pidfd_open(pid)
        return number

    def fork(self, number):
        """The number of the new worker, a child of that one."""
        self.tell(number, "fork")
        new = self._welcome()
        kind, pid = self.hear(number)
        assert kind == "returns" and self.pids[pid] == new
        return new

    def tell(self, number, order, *arguments):
        self._workers[number][0].send((order, *arguments))

    def hear(self, number):
        return self._received(self._workers[number][0])

    def _received(self, connection):
        assert connection.poll(SECONDS), "a worker does not answer"
        return connection.recv()

    def first_to_answer(self, numbers):
        """Of those that were told something, one that has ended."""
        connections = {self._workers[number][0]: number for number in numbers}
        ready = wait(connections, SECONDS)
        assert ready, "no worker answers"
        return connections[ready[0]]

    def kill(self, number):
        signal.pidfd_send_signal(self._workers[number][1], signal.SIGKILL)
        self._bury(number)

    def dismiss(self, number):
        self.tell(number, "leave")
        self._bury(number)

    def _bury(self, number):
        """Returns when it has ended: its descriptors and its locks are gone then."""
        connection, pidfd = self._workers.pop(number)
        ended = select.poll()
        ended.register(pidfd, select.POLLIN)
        assert ended.poll(SECONDS * 1000), "a worker does not end"
        with contextlib.suppress(ChildProcessError):  # a worker's child, and it has been reaped
            os.waitid(os.P_PIDFD, pidfd, os.WEXITED)
        os.close(pidfd)
        connection.close()

    def close(self):
        for number in list(self._workers):
            self.kill(number)
        for program in self._programs:
            program.wait(SECONDS)
        self._listener.close()


@contextlib.contextmanager
def orphans_are_ours():
    """Workers whose parent was killed are children of this process, to be waited for."""
    prctl = ctypes.CDLL(None).prctl
    assert prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
    try:
        yield
    finally:
        prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def main(address, root, join):
    """A worker that is a program."""
    if join:
        import directfuse as namespace

        namespace.mount(join)
    else:
        from conformance import linux as namespace
    Worker(namespace, root, address).begin()


if __name__ == "__main__":
    main(*sys.argv[1:])
