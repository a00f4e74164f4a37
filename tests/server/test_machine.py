"""Random calls of several processes on one mount server, against processes on a plain directory.

What one process does, its twin does on the oracle; after each call both must have ended alike, by
value or by errno. Processes fork (and share their descriptors from then on), leave, and are killed.

Left out where passthrough is the file system: names that go while their file is open anywhere.
libfuse's high-level API renames such files (.fuse_hidden) until the last close, on a kernel mount
as here; so all processes close everything first. On memfs such files are unlinked and replaced.
"""

import contextlib
import fcntl
import os
import stat
import tempfile
import time

import hypothesis
import pytest
from conformance.expect import flock_fields, flock_struct
from conformance.leftovers import PREFIX
from conformance.routes import Plain
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    multiple,
    rule,
    run_state_machine_as_test,
)
from state.machine import groups, modes, names, offsets, open_flags, pattern, sizes, tree

from .named import Named
from .shared import Shared
from .test_lives import until
from .workers import Crowd, fd, orphans_are_ours, path

SHORT = hypothesis.settings(max_examples=5, stateful_step_count=150)
SWEEP = hypothesis.settings(max_examples=60, stateful_step_count=200)

SETTLING_SECONDS = 5
FIRST, MOST = 3, 8  #: processes at the beginning, and at any time

known = Bundle("known")  # names that were made; some are gone by now
handles = Bundle("handles")  # numbers of descriptors, the same in every process that has them
anywhere = st.one_of(
    st.lists(names, min_size=1, max_size=2).map("/".join), st.sampled_from(["a/..", "b/", "."])
)
below = st.tuples(known, names).map("/".join)
paths = known | known | below | anywhere
fresh = below | anywhere
targets = st.sampled_from(["a", "b", "b/c", ".", "missing", "a/", "./c"])
who = st.integers(0, MOST - 1)
numbers = st.integers(0, 9)
lock_types = st.sampled_from([fcntl.F_RDLCK, fcntl.F_WRLCK, fcntl.F_UNLCK])
setting = st.sampled_from([fcntl.F_SETLK, fcntl.F_SETLK, fcntl.F_OFD_SETLK])
getting = st.sampled_from([fcntl.F_GETLK, fcntl.F_GETLK, fcntl.F_OFD_GETLK])
conflicting = st.sampled_from([fcntl.F_RDLCK, fcntl.F_WRLCK])
flocks = st.sampled_from([fcntl.LOCK_SH, fcntl.LOCK_EX, fcntl.LOCK_UN])


class Processes(RuleBasedStateMachine):
    """What both machines share: processes that come and go, and descriptors that they share.

    `backend` is mounted anew for each run, so that its unmount says what the run left open.
    """

    backend = None
    route = Shared

    def __init__(self):
        """a/b/, a/c (with a second name, b) and c -> a, made by the first process."""
        super().__init__()
        self.seed = 0
        self.next_handle = 0
        self.deaths = 0
        self.holders = {}  # of each descriptor: the processes that have it
        self._contexts = contextlib.ExitStack()
        with contextlib.ExitStack() as undo:
            routes = [undo.enter_context(route) for route in (Plain(), self.route(self.backend))]
            self.subject = routes[1]
            self.worlds = [undo.enter_context(route.fresh()) for route in routes]
            undo.enter_context(orphans_are_ours())
            self.crowds = [self._crowd(fs, undo) for fs in self.worlds]
            self.workers = [0]
            self._begin()
            self._prove_route()
            self._contexts = undo.pop_all()

    def _crowd(self, fs, undo):
        directory = undo.enter_context(tempfile.TemporaryDirectory(prefix=PREFIX))
        crowd = Crowd(directory)
        undo.callback(crowd.close)
        crowd.begin(fs.os, fs.root)
        return crowd

    def _begin(self):
        self.call(0, "mkdir", path("a"), 0o755)
        self.call(0, "mkdir", path("a/b"), 0o755)
        self.open_as(0, "a/c", os.O_RDWR | os.O_CREAT, 0o644)
        self.both(0, "call", "write", fd(0), self.bytes(10_000))
        self.close_in(0, 0)
        self.call(0, "link", path("a/c"), path("b"))
        self.call(0, "symlink", "a", path("c"))
        for number in range(FIRST - 1):
            self.fork(number)

    def _prove_route(self):
        """The first process, which made these names, asked the server (each counts its own)."""
        (how, by_process) = self.outcomes(self.crowds[1], [(0, "calls", self.subject.base)])[0]
        assert how == "returns" and by_process > self.subject.calls()

    @initialize(target=known)
    def begin_with_names(self):
        return multiple("a", "a/b", "a/c", "b", "c")

    @initialize(target=handles)
    def begin_with_handles(self):
        """One from before a fork, and each process's own of the same file."""
        shared = self.open_as(0, "b", os.O_RDWR, 0)
        self.fork(0)
        own = [self.open_as(worker, "b", os.O_RDWR, 0) for worker in self.workers]
        return multiple(shared, *own)

    def teardown(self):
        with self._contexts:
            for worker in list(self.workers):
                self.end(worker, "kill")
            self.subject.proof()
            one, two = (tree(fs, fs.root) for fs in self.worlds)
            assert two == one
            inodes = [
                groups(fs, fs.root, found)
                for fs, found in zip(self.worlds, (one, two), strict=True)
            ]
            assert inodes[1] == inodes[0]

    # ---- how a call is made -------------------------------------------------------------------

    def one_of(self, number, workers=None):
        workers = sorted(self.workers if workers is None else workers)
        return workers[number % len(workers)]

    def holder(self, handle, number):
        """A process that has the descriptor, or None."""
        return self.one_of(number, self.holders[handle]) if self.holders.get(handle) else None

    def both(self, worker, *order):
        """What the two have ended with, alike."""
        return self.at_once([(worker, *order)])[0]

    def at_once(self, orders):
        """The outcomes of orders to different processes under way at the same time, sorted: they
        must be such that it does not matter which comes first."""
        outcomes = [self.outcomes(crowd, orders) for crowd in self.crowds]
        assert outcomes[1] == outcomes[0], f"{outcomes[1]} instead of {outcomes[0]}"
        return outcomes[0]

    def outcomes(self, crowd, orders):
        for worker, *order in orders:
            crowd.tell(worker, *order)
        ended = sorted(crowd.hear(worker) for worker, *_ in orders)
        assert all(how != "raises" for how, _ in ended), ended
        return ended

    def call(self, worker, function, *arguments):
        return self.both(worker, "call", function, *arguments)

    def on(self, handle, number, function, *arguments):
        """A call on a descriptor, in one of the processes that have it; None: there is none."""
        worker = self.holder(handle, number)
        return None if worker is None else self.call(worker, function, fd(handle), *arguments)

    def is_directory(self, handle, number):
        ended = self.on(handle, number, "fstat")
        return ended and stat.S_ISDIR(ended[1][0])

    def name(self, name, number, function, *arguments):
        """As call(); gives the name to the bundle when the call succeeded."""
        ended = self.call(self.one_of(number), function, *arguments)
        return name if ended[0] == "returns" else multiple()

    def make(self, worker, function, *arguments):
        """The number of the descriptor that the call makes, or nothing."""
        handle = self.next_handle
        if self.both(worker, "make", handle, function, *arguments)[0] != "returns":
            return multiple()
        self.next_handle += 1
        self.holders[handle] = {worker}
        return handle

    def open_as(self, worker, name, flags, mode):
        return self.make(worker, "os_open", path(name), flags, mode)

    def close_in(self, worker, handle):
        self.both(worker, "close", handle)
        self.holders[handle].discard(worker)

    def before_names_go(self):
        """See above. What a process that died had open, the server closes a moment later."""
        if not self.subject.backend.keeps_names:
            return
        for handle in self.holders:
            for worker in sorted(self.holders[handle]):
                self.close_in(worker, handle)
        until(lambda: not self.subject.opened())

    def bytes(self, size):
        self.seed += 1
        return pattern(self.seed, size)[:size]

    # ---- processes ----------------------------------------------------------------------------

    def fork(self, worker):
        new = [crowd.fork(worker) for crowd in self.crowds]
        assert new[0] == new[1]
        self.workers.append(new[0])
        for holders in self.holders.values():
            if worker in holders:
                holders.add(new[0])

    def end(self, worker, how):
        for crowd in self.crowds:
            getattr(crowd, how)(worker)
        self.workers.remove(worker)
        self.deaths += 1
        for holders in self.holders.values():
            holders.discard(worker)

    @rule(number=who)
    def a_process_forks(self, number):
        if len(self.workers) < MOST:
            self.fork(self.one_of(number))

    @rule(number=who, how=st.sampled_from(["kill", "dismiss"]))
    def a_process_ends(self, number, how):
        if len(self.workers) > 1:
            self.end(self.one_of(number), how)

    # ---- descriptors --------------------------------------------------------------------------

    @rule(target=handles, number=who, name=st.sampled_from(["b", "a/c"]))
    def open_again(self, number, name):
        """What may be one file still."""
        return self.open_as(self.one_of(number), name, os.O_RDWR, 0)

    @rule(target=handles, number=who, handle=handles)
    def dup(self, number, handle):
        worker = self.holder(handle, number)
        return multiple() if worker is None else self.make(worker, "dup", fd(handle))

    @rule(number=who, handle=handles)
    def close(self, number, handle):
        worker = self.holder(handle, number)
        if worker is not None:
            self.close_in(worker, handle)

    @rule(handle=consumes(handles))
    def close_everywhere(self, handle):
        for worker in sorted(self.holders[handle]):
            self.close_in(worker, handle)


class Locks(Processes):
    """Few files, open often, and locked."""

    def lock(self, handle, number, function, *arguments):
        """What a process had locked that has died, the server unlocks a moment later."""
        worker = self.holder(handle, number)
        if worker is None:
            return
        order = (worker, "call", function, fd(handle), *arguments)
        wanted, seen = (self.lock_outcome(crowd, order) for crowd in self.crowds)
        limit = time.monotonic() + SETTLING_SECONDS
        while seen != wanted and self.deaths and time.monotonic() < limit:
            seen = self.lock_outcome(self.crowds[1], order)
        assert seen == wanted, f"{seen} instead of {wanted}"

    def lock_outcome(self, crowd, order):
        """With the number of the process that holds the lock in place of its id."""
        ((how, what),) = self.outcomes(crowd, [order])
        if isinstance(what, bytes):
            *fields, pid = flock_fields(what)
            what = *fields, crowd.pids.get(pid, pid)
        return how, what

    @rule(number=who, handle=handles, type_=lock_types, start=numbers, length=numbers, how=setting)
    def set_lock(self, number, handle, type_, start, length, how):
        self.lock(handle, number, "fcntl", how, flock_struct(type_, start, length))

    @rule(number=who, handle=handles, type_=conflicting, start=numbers, length=numbers, how=getting)
    def get_lock(self, number, handle, type_, start, length, how):
        self.lock(handle, number, "fcntl", how, flock_struct(type_, start, length))

    @rule(number=who, handle=handles, operation=flocks)
    def flock(self, number, handle, operation):
        self.lock(handle, number, "flock", operation | fcntl.LOCK_NB)


class Machine(Locks):
    """Everything."""

    # ---- descriptors --------------------------------------------------------------------------

    @rule(target=handles, number=who, name=paths, flags=open_flags, mode=modes)
    def open(self, number, name, flags, mode):
        return self.open_as(self.one_of(number), name, flags, mode)

    @rule(target=handles, number=who, name=known)
    def open_what_was_made(self, number, name):
        return self.open_as(self.one_of(number), name, os.O_RDWR, 0)

    @rule(target=handles, number=who, name=paths)
    def open_directory(self, number, name):
        return self.open_as(self.one_of(number), name, os.O_RDONLY | os.O_DIRECTORY, 0)

    @rule(number=who, handle=handles, size=sizes)
    def read(self, number, handle, size):
        self.on(handle, number, "read", size)

    @rule(number=who, handle=handles, size=sizes)
    def write(self, number, handle, size):
        self.on(handle, number, "write", self.bytes(size))

    @rule(number=who, handle=handles, size=sizes, offset=offsets)
    def pread(self, number, handle, size, offset):
        self.on(handle, number, "pread", size, offset)

    @rule(number=who, handle=handles, size=sizes, offset=offsets)
    def pwrite(self, number, handle, size, offset):
        self.on(handle, number, "pwrite", self.bytes(size), offset)

    @rule(
        number=who,
        handle=handles,
        offset=st.one_of(offsets, st.just(-5)),
        whence=st.sampled_from([os.SEEK_SET, os.SEEK_CUR, os.SEEK_END]),
    )
    def lseek(self, number, handle, offset, whence):
        """The offset of a directory is opaque, that of a file is not."""
        if self.is_directory(handle, number) is False:
            self.on(handle, number, "lseek", offset, whence)

    @rule(number=who, handle=handles, size=offsets)
    def ftruncate(self, number, handle, size):
        self.on(handle, number, "ftruncate", size)

    @rule(number=who, handle=handles)
    def fstat(self, number, handle):
        self.on(handle, number, "fstat")

    @rule(number=who, handle=handles)
    def list_descriptor(self, number, handle):
        """Not a file's: Python's os.listdir() closes a duplicate of it when it fails, and so drops
        the POSIX locks that its process has there. Linux's getdents(2) drops none."""
        if self.is_directory(handle, number):
            self.on(handle, number, "listdir")

    @rule(number=who, handle=handles, mode=modes)
    def fchmod(self, number, handle, mode):
        self.on(handle, number, "fchmod", mode)

    @rule(number=who, handle=handles, flags=st.sampled_from([0, os.O_APPEND]))
    def set_status_flags(self, number, handle, flags):
        """For all that share the description."""
        self.on(handle, number, "fcntl", fcntl.F_SETFL, flags)

    @rule(number=who, handle=handles)
    def get_status_flags(self, number, handle):
        self.on(handle, number, "fcntl", fcntl.F_GETFL)

    # ---- at the same time ---------------------------------------------------------------------

    @rule(first=who, second=who, name=paths, size=sizes)
    def append_at_once(self, first, second, name, size):
        """Two descriptions with O_APPEND, the same bytes: both are there afterwards."""
        workers = {self.one_of(first), self.one_of(second)}
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        opened = [(worker, self.open_as(worker, name, flags, 0o644)) for worker in sorted(workers)]
        opened = [(worker, handle) for worker, handle in opened if handle in self.holders]
        if opened:
            data = self.bytes(size)
            self.at_once([(worker, "call", "write", fd(its), data) for worker, its in opened])
            for worker, handle in opened:
                self.close_in(worker, handle)
        self.call(self.one_of(second + 1), "stat", path(name))

    @rule(handle=handles, size=sizes)
    def write_at_once(self, handle, size):
        """One description, shared: each write has its own place."""
        data = self.bytes(size)
        self.all_at_once(handle, "write", data)

    @rule(handle=handles, size=sizes)
    def read_at_once(self, handle, size):
        """Each byte is read once."""
        self.all_at_once(handle, "read", size)

    def all_at_once(self, handle, function, argument):
        workers = sorted(self.holders.get(handle, ()))
        self.at_once([(worker, "call", function, fd(handle), argument) for worker in workers])

    # ---- names --------------------------------------------------------------------------------

    @rule(target=known, number=who, name=fresh, mode=modes)
    def mkdir(self, number, name, mode):
        return self.name(name, number, "mkdir", path(name), mode)

    @rule(number=who, name=paths)
    def rmdir(self, number, name):
        self.before_names_go()
        self.call(self.one_of(number), "rmdir", path(name))

    @rule(number=who, name=paths)
    def unlink(self, number, name):
        self.before_names_go()
        self.call(self.one_of(number), "unlink", path(name))

    @rule(target=known, number=who, source=paths, to=paths)
    def rename(self, number, source, to):
        self.before_names_go()
        return self.name(to, number, "rename", path(source), path(to))

    @rule(target=known, number=who, source=paths, to=fresh)
    def link(self, number, source, to):
        return self.name(to, number, "link", path(source), path(to))

    @rule(target=known, number=who, to=targets, name=fresh)
    def symlink(self, number, to, name):
        return self.name(name, number, "symlink", to, path(name))

    @rule(number=who, name=paths, function=st.sampled_from(["stat", "lstat", "readlink"]))
    def look(self, number, name, function):
        self.call(self.one_of(number), function, path(name))

    @rule(name=paths)
    def look_from_everywhere(self, name):
        for worker in self.workers:
            self.call(worker, "stat", path(name))

    @rule(number=who, name=paths)
    def listdir(self, number, name):
        self.call(self.one_of(number), "listdir", path(name))

    @rule(number=who, name=paths, mode=modes)
    def chmod(self, number, name, mode):
        self.call(self.one_of(number), "chmod", path(name), mode)

    @rule(number=who, name=paths, size=offsets)
    def truncate(self, number, name, size):
        self.call(self.one_of(number), "truncate", path(name), size)


class OneSpace(Locks):
    """Locks of all who can reach a server with a name: processes that have joined it from Python,
    their children, and programs of a run."""

    route = Named

    def _begin(self):
        super()._begin()
        for by in {"run": self.route.name_of_it}, {"join": self.route.name_of_it}:
            new = [
                crowd.start(fs.root, **options)
                for crowd, fs, options in zip(self.crowds, self.worlds, ({}, by), strict=True)
            ]
            assert new[0] == new[1]
            self.workers.append(new[0])


def compare(machine, backend, settings):
    bound = type("Bound", (machine,), {"backend": backend})
    run_state_machine_as_test(bound, settings=settings)


MACHINES = [Machine, Locks, OneSpace]
BACKENDS = ["memfs", "passthrough", "memfs-writeback"]
#: Locks of one space are the kernel's, whatever the file system: by default it has one.
QUICK = [
    (machine, backend)
    for backend in BACKENDS
    for machine in MACHINES
    if machine is not OneSpace or backend == "memfs"
]


@pytest.mark.timeout(300)  # seconds; one that fails has to shrink
@pytest.mark.parametrize(("machine", "backend"), QUICK)
def test_random_calls_of_several_processes_end_as_on_linux(machine, backend):
    compare(machine, backend, SHORT)


@pytest.mark.sweep
@pytest.mark.timeout(900)
@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("backend", BACKENDS)
def test_random_calls_of_several_processes_end_as_on_linux_for_long(machine, backend):
    compare(machine, backend, SWEEP)
