"""Locks of programs of a run and of processes that join from Python, on one server with a name:
each case does the same with two ordinary processes on a plain directory, and must end as there."""

import contextlib
import errno
import fcntl
import os

import needs
import pytest
from conformance.expect import flock_fields, flock_struct

import directfuse

from .built import built
from .named import served
from .workers import Crowd, fd, orphans_are_ours, path

pytestmark = needs.run

READ, WRITE, UNLOCK = fcntl.F_RDLCK, fcntl.F_WRLCK, fcntl.F_UNLCK
EX, SH, NB = fcntl.LOCK_EX, fcntl.LOCK_SH, fcntl.LOCK_NB
PARTIES = {"run": {"run": "@one"}, "joined": {"join": "@one"}}


class World:
    """Two processes, 0 and 1, with a descriptor of one file each: 0 and 1."""

    def __init__(self, directory, root, parties):
        self.crowd = Crowd(directory)
        for party in parties:
            self.crowd.start(root, **party)
        for party in 0, 1:
            assert self.open(party, party) == ("returns", None)

    def open(self, party, handle, name="f"):
        flags = os.O_RDWR | os.O_CREAT
        return self.ask(party, "make", handle, "os_open", path(name), flags, 0o644)

    def tell(self, party, *order):
        self.crowd.tell(party, *order)

    def hear(self, party):
        """With the party in place of a process's id."""
        how, what = self.crowd.hear(party)
        assert how != "raises", what
        if isinstance(what, bytes):
            *fields, pid = flock_fields(what)
            what = *fields, self.crowd.pids.get(pid, pid)
        return how, what

    def ask(self, party, *order):
        self.tell(party, *order)
        return self.hear(party)

    def lock(self, party, type_, start=0, length=0, how=fcntl.F_SETLK, handle=None):
        handle = party if handle is None else handle
        return self.ask(party, *self.locking(handle, type_, start, length, how))

    @staticmethod
    def locking(handle, type_, start, length, how):
        return "call", "fcntl", fd(handle), how, flock_struct(type_, start, length)

    def flock(self, party, operation, handle=None):
        return self.ask(party, "call", "flock", fd(party if handle is None else handle), operation)


PAIRS = [("run", "joined"), ("joined", "run")]


@contextlib.contextmanager
def opened(directory, words, *pairs):
    """For each pair a world: of ordinary processes (None), or on the server of those words."""
    with served(words, "one"), orphans_are_ours(), contextlib.ExitStack() as crowds:
        made = []
        for number, pair in enumerate(pairs):
            hall = directory / str(number)
            root = directory / ("mnt" if pair else "plain")
            hall.mkdir()
            parties = [PARTIES[name] for name in pair] if pair else [{}, {}]
            made.append(World(hall, str(root), parties))
            crowds.callback(made[-1].crowd.close)
        yield made


@pytest.fixture
def place(tmp_path, monkeypatch):
    """With the mountpoint of a server to be, and a plain directory."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    (tmp_path / "plain").mkdir()
    (tmp_path / "source").mkdir()
    return tmp_path


@pytest.fixture(params=PAIRS, ids="-".join)
def worlds(request, place):
    """An ordinary one, and one of two parties."""
    with opened(place, f"memfs {place}/mnt", None, request.param) as made:
        yield made


@pytest.fixture(params=PAIRS, ids="-".join)
def on_passthrough(request, place):
    """As `worlds`: it hands flock(2) on to a real file, and leaves record locks to others."""
    words = f"passthrough {place}/source {place}/mnt"
    with opened(place, words, None, request.param) as made:
        yield made


@pytest.fixture(params=PARTIES)
def at_locker(request, place, tmp_path_factory):
    """Two of a kind, on a file system that keeps locks itself."""
    words = f"{built('locker', tmp_path_factory)} {place}/mnt"
    with opened(place, words, [request.param] * 2) as (world,):
        yield world


def compared(worlds, case):
    expected, seen = (case(world) for world in worlds)
    assert seen == expected
    return seen


def refused(outcome):
    return outcome == ("fails", errno.EAGAIN)


HOW = {
    "posix": (fcntl.F_SETLK, fcntl.F_GETLK),
    "ofd": (fcntl.F_OFD_SETLK, fcntl.F_OFD_GETLK),
}


@pytest.mark.parametrize("one", HOW)
@pytest.mark.parametrize("two", HOW)
def test_record_locks_conflict_and_tell_their_holder(worlds, one, two):
    def case(world):
        said = [world.lock(0, WRITE, 10, 10, HOW[one][0])]
        said += [world.lock(1, type_, 0, 0, HOW[two][1]) for type_ in (READ, WRITE)]
        said += [world.lock(1, READ, 15, 1, HOW[two][0]), world.lock(1, WRITE, 20, 5, HOW[two][0])]
        said += [world.lock(0, READ, 0, 0, HOW[one][1]), world.lock(0, UNLOCK, 0, 0, HOW[one][0])]
        return [*said, world.lock(1, WRITE, 0, 0, HOW[two][0])]

    said = compared(worlds, case)
    holder = 0 if one == "posix" else -1
    assert said[1] == ("returns", (WRITE, os.SEEK_SET, 10, 10, holder)) and refused(said[3])


def test_flock_conflicts_and_waits(worlds):
    def case(world):
        said = [world.flock(0, SH), world.flock(1, SH | NB), world.flock(1, EX | NB)]
        said.append(world.flock(0, EX | NB))
        world.tell(0, "call", "flock", fd(0), EX)
        return [*said, world.flock(1, fcntl.LOCK_UN), world.hear(0), world.flock(1, SH | NB)]

    said = compared(worlds, case)
    assert refused(said[2]) and refused(said[-1])


@pytest.mark.parametrize("wait", [fcntl.F_SETLKW, fcntl.F_OFD_SETLKW])
def test_a_lock_is_waited_for(worlds, wait):
    def case(world):
        said = [world.lock(0, WRITE)]
        world.tell(1, *world.locking(1, WRITE, 0, 0, wait))
        said += [world.lock(0, UNLOCK), world.hear(1), world.lock(0, WRITE)]
        return said

    assert refused(compared(worlds, case)[-1])


def test_two_that_wait_for_each_other_are_told(worlds):
    def case(world):
        said = [world.lock(party, WRITE, party, 1) for party in (0, 1)]
        for party in 0, 1:
            world.tell(party, *world.locking(party, WRITE, 1 - party, 1, fcntl.F_SETLKW))
        loser = world.crowd.first_to_answer([0, 1])
        said.append(world.hear(loser))
        said += [how for how, _ in (world.lock(loser, UNLOCK, loser, 1), world.hear(1 - loser))]
        return said

    assert compared(worlds, case)[2] == ("fails", errno.EDEADLK)


def test_any_close_of_the_file_drops_what_the_process_has_locked(worlds):
    def case(world):
        said = [world.open(0, 2), world.lock(0, WRITE, 0, 5), world.lock(1, WRITE)]
        said += [world.ask(0, "close", 2), world.lock(1, WRITE), world.lock(1, UNLOCK)]
        said += [world.ask(0, "make", 3, "dup", fd(0)), world.lock(0, WRITE), world.lock(1, WRITE)]
        return [*said, world.ask(0, "close", 3), world.lock(1, WRITE)]

    said = compared(worlds, case)
    assert refused(said[2]) and refused(said[8])


def test_locks_of_a_description_end_with_its_last_descriptor(worlds):
    def case(world):
        said = [world.lock(0, WRITE, 0, 5, fcntl.F_OFD_SETLK), world.flock(0, EX)]
        said += [world.ask(0, "make", 2, "dup", fd(0)), world.ask(0, "close", 0)]
        said += [world.lock(1, READ), world.flock(1, SH | NB), world.ask(0, "close", 2)]
        return [*said, world.lock(1, READ), world.flock(1, SH | NB)]

    said = compared(worlds, case)
    assert refused(said[4]) and refused(said[5])


def test_locks_end_with_a_process_that_is_killed(worlds):
    """Whoever has seen its end may have them."""

    def case(world):
        said = [world.lock(0, WRITE, 0, 5), world.lock(0, WRITE, 5, 5, fcntl.F_OFD_SETLK)]
        said += [world.flock(0, EX), world.lock(1, WRITE), world.flock(1, EX | NB)]
        world.crowd.kill(0)
        return [*said, world.lock(1, WRITE), world.flock(1, EX | NB)]

    said = compared(worlds, case)
    assert refused(said[3]) and refused(said[4])


def test_a_child_shares_the_locks_of_descriptions_and_no_others(worlds):
    """Also those that are taken after the fork, by either; 2 is the child."""

    def case(world):
        said = [world.lock(0, WRITE, 0, 5)]
        assert world.crowd.fork(0) == 2
        said += [world.lock(2, WRITE, 0, 5, handle=0), world.flock(2, EX | NB, handle=0)]
        said += [world.flock(0, EX | NB), world.flock(1, SH | NB)]
        said.append(world.lock(2, WRITE, 7, 1, fcntl.F_OFD_SETLK, handle=0))
        said.append(world.lock(0, WRITE, 7, 1, fcntl.F_OFD_SETLK))
        said += [world.lock(1, WRITE, 7, 1), world.ask(0, "close", 0)]
        said += [world.lock(1, WRITE, 7, 1), world.lock(1, WRITE, 0, 5), world.flock(1, EX | NB)]
        said += [world.ask(2, "close", 0), world.lock(1, WRITE), world.flock(1, EX | NB)]
        return said

    said = compared(worlds, case)
    assert refused(said[1]) and refused(said[4]) and refused(said[7])


def test_locks_of_files_that_lie_one_after_the_other_at_one_place_are_apart(worlds):
    """What is locked is the file, not the number that it has while it is open."""

    def case(world):
        said = [world.lock(0, WRITE), world.ask(0, "close", 0), world.ask(1, "close", 1)]
        said += [world.open(1, 2, "g"), world.open(0, 3, "f"), world.lock(1, WRITE, handle=2)]
        return [*said, world.lock(0, WRITE, handle=3), world.flock(0, EX | NB, handle=3)]

    compared(worlds, case)


def test_a_directory_is_locked(worlds):
    def case(world):
        opened = ("os_open", path("."), os.O_RDONLY | os.O_DIRECTORY, 0)
        said = [world.ask(party, "make", 2 + party, *opened) for party in (0, 1)]
        said += [world.flock(0, EX, handle=2), world.flock(1, SH | NB, handle=3)]
        said += [world.lock(0, READ, handle=2), world.lock(1, WRITE, handle=3)]
        return said

    assert refused(compared(worlds, case)[3])


def test_a_placeholder_that_the_application_closes_is_not_taken_for_another_file(place):
    """Its number may be that of a file of the application's by then."""
    with served(f"memfs {place}/mnt", "one"), directfuse.mount("@one"):
        files = [directfuse.os_open(f"{place}/mnt/{name}", os.O_RDWR | os.O_CREAT) for name in "ab"]
        for file in files:
            directfuse.flock(file, EX)
        placeholders = [
            int(number) for number in os.listdir("/proc/self/fd") if is_placeholder(number)
        ]
        assert len(placeholders) == 2
        for number in placeholders:
            os.dup2(os.open(place, os.O_RDONLY), number)
        directfuse.flock(files[0], EX | NB)
        other = directfuse.os_open(f"{place}/mnt/a", os.O_RDWR)
        with pytest.raises(BlockingIOError):
            directfuse.flock(other, EX | NB)
        for file in [*files, other]:
            directfuse.close(file)
        assert all(os.path.samestat(os.fstat(number), os.stat(place)) for number in placeholders)
        assert not any(map(is_placeholder, os.listdir("/proc/self/fd")))
        for number in placeholders:
            os.close(number)


def is_placeholder(number):
    with contextlib.suppress(FileNotFoundError):
        return "/f/0." in os.readlink(f"/proc/self/fd/{number}")


@pytest.mark.parametrize("setting, getting", HOW.values(), ids=HOW)
def test_a_file_system_that_keeps_locks_itself_is_asked(at_locker, setting, getting):
    for party in 0, 1:
        assert at_locker.lock(party, READ, 0, 0, setting) == ("fails", errno.EDOM)
        told = at_locker.ask(party, *at_locker.locking(party, READ, 0, 0, getting))
        assert told[0] == "returns" and told[1][:4] == (WRITE, os.SEEK_SET, 3, 4)
        assert at_locker.flock(party, EX) == ("fails", errno.ERANGE)
        assert at_locker.flock(party, 77) == ("fails", errno.EINVAL)


def test_one_that_keeps_one_kind_of_lock_is_asked_for_that(on_passthrough):
    def case(world):
        said = [world.flock(0, EX), world.flock(1, SH | NB), world.lock(0, WRITE)]
        said += [world.lock(1, READ), world.flock(0, SH), world.flock(1, SH | NB)]
        return [*said, world.ask(0, "close", 0), world.lock(1, WRITE)]

    said = compared(on_passthrough, case)
    assert refused(said[1]) and refused(said[3])
