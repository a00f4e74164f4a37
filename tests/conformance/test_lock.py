"""flock(2), POSIX record locks and open file description locks (fcntl_locking(2))."""

import contextlib
import errno
import fcntl
import os
import threading

import pytest

from .expect import fails, flock_fields, flock_struct

EX, SH, UN, NB = fcntl.LOCK_EX, fcntl.LOCK_SH, fcntl.LOCK_UN, fcntl.LOCK_NB
READ, WRITE, UNLOCK = fcntl.F_RDLCK, fcntl.F_WRLCK, fcntl.F_UNLCK


@pytest.fixture
def pair(fs):
    """Two open file descriptions of one file of 100 bytes."""
    path = fs.make("f", b"x" * 100)
    return fs.open(path, os.O_RDWR), fs.open(path, os.O_RDWR)


@contextlib.contextmanager
def would_block():
    with fails((errno.EWOULDBLOCK, errno.EACCES)):  # fcntl_locking(2) allows both
        yield


# ---- flock -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "held, wanted, granted",
    [(SH, SH, True), (SH, EX, False), (EX, SH, False), (EX, EX, False)],
)
def test_flock_between_descriptions(fs, pair, held, wanted, granted):
    one, two = pair
    fs.os.flock(one, held)
    if granted:
        fs.os.flock(two, wanted | NB)
    else:
        with fails(errno.EWOULDBLOCK):
            fs.os.flock(two, wanted | NB)


def test_flock_unlocks(fs, pair):
    one, two = pair
    fs.os.flock(one, EX)
    fs.os.flock(one, UN)
    fs.os.flock(two, EX | NB)


def test_flock_ends_with_the_close(fs, pair):
    one, two = pair
    fs.os.flock(one, EX)
    fs.os.close(one)
    fs.after_close(lambda: fs.os.flock(two, EX | NB))


def test_flock_is_shared_by_duplicates(fs, pair):
    one, two = pair
    copy = fs.adopt(fs.os.dup(one))
    fs.os.flock(one, EX)
    fs.os.flock(copy, EX | NB)
    fs.os.close(one)
    with fails(errno.EWOULDBLOCK):
        fs.os.flock(two, SH | NB)
    fs.os.flock(copy, UN)
    fs.os.flock(two, SH | NB)


def test_flock_converts(fs, pair):
    one, two = pair
    fs.os.flock(one, EX)
    fs.os.flock(one, SH)
    fs.os.flock(two, SH | NB)
    with fails(errno.EWOULDBLOCK):
        fs.os.flock(two, EX | NB)


def test_flock_needs_no_write_access(fs):
    path = fs.make("f")
    one, two = fs.open(path), fs.open(path)
    fs.os.flock(one, EX)
    with fails(errno.EWOULDBLOCK):
        fs.os.flock(two, EX | NB)


def test_flock_of_a_directory(fs):
    one, two = fs.open(fs.root), fs.open(fs.root)
    fs.os.flock(one, EX)
    with fails(errno.EWOULDBLOCK):
        fs.os.flock(two, EX | NB)


def test_flock_by_another_name(fs):
    path = fs.make("f")
    fs.os.link(path, fs.path("g"))
    fs.os.flock(fs.open(path), EX)
    with fails(errno.EWOULDBLOCK):
        fs.os.flock(fs.open(fs.path("g")), EX | NB)


def test_flock_of_different_files(fs):
    fs.os.flock(fs.open(fs.make("f")), EX)
    fs.os.flock(fs.open(fs.make("g")), EX | NB)


def test_flock_with_a_senseless_operation_is_einval(fs, pair):
    with fails(errno.EINVAL):
        fs.os.flock(pair[0], 0)


def waits_for(release, acquire):
    """Runs acquire() in a thread; release() lets it through. In which order they ended."""
    order = []

    def wait():
        started.set()
        acquire()
        order.append("acquired")

    started = threading.Event()
    waiter = threading.Thread(target=wait, daemon=True)
    waiter.start()
    started.wait()
    order.append("released")
    release()
    waiter.join()
    return order


def test_flock_waits_until_it_is_free(fs, pair):
    one, two = pair
    fs.os.flock(one, EX)
    order = waits_for(lambda: fs.os.flock(one, UN), lambda: fs.os.flock(two, EX))
    assert order == ["released", "acquired"]


def test_flock_waits_until_the_holder_closes(fs, pair):
    one, two = pair
    fs.os.flock(one, EX)
    order = waits_for(lambda: fs.os.close(one), lambda: fs.os.flock(two, SH))
    assert order == ["released", "acquired"]


# ---- open file description locks ---------------------------------------------------------------


def ofd(fs, fd, type_, start=0, length=0, whence=os.SEEK_SET):
    fs.os.fcntl(fd, fcntl.F_OFD_SETLK, flock_struct(type_, start, length, whence))


def ofd_test(fs, fd, type_, start=0, length=0):
    """(type, start, length) of what stands in the way."""
    answer = fs.os.fcntl(fd, fcntl.F_OFD_GETLK, flock_struct(type_, start, length))
    found, _, start, length, _ = flock_fields(answer)
    return found if found == UNLOCK else (found, start, length)


@pytest.mark.parametrize(
    "held, wanted, granted",
    [(READ, READ, True), (READ, WRITE, False), (WRITE, READ, False), (WRITE, WRITE, False)],
)
def test_ofd_locks_on_one_range(fs, pair, held, wanted, granted):
    one, two = pair
    ofd(fs, one, held, 0, 10)
    if granted:
        ofd(fs, two, wanted, 5, 10)
    else:
        with would_block():
            ofd(fs, two, wanted, 5, 10)


@pytest.mark.parametrize(
    "start, length, granted",
    [(0, 10, True), (0, 11, False), (19, 1, False), (20, 1, True), (20, 0, True), (0, 0, False)],
)
def test_ofd_ranges(fs, pair, start, length, granted):
    one, two = pair
    ofd(fs, one, WRITE, 10, 10)
    if granted:
        ofd(fs, two, WRITE, start, length)
    else:
        with would_block():
            ofd(fs, two, WRITE, start, length)


def test_ofd_lock_to_the_end_of_the_file(fs, pair):
    one, two = pair
    ofd(fs, one, WRITE, 50, 0)
    ofd(fs, two, WRITE, 0, 50)
    with would_block():
        ofd(fs, two, WRITE, 1 << 40, 1)


@pytest.mark.parametrize(
    "whence, start, length, first",
    [(os.SEEK_CUR, 5, 10, 15), (os.SEEK_END, -10, 10, 90), (os.SEEK_SET, 30, -10, 20)],
)
def test_ofd_range_by_whence(fs, pair, whence, start, length, first):
    one, two = pair
    fs.os.lseek(one, 10, os.SEEK_SET)
    ofd(fs, one, WRITE, start, length, whence)
    assert ofd_test(fs, two, WRITE) == (WRITE, first, 10)


def test_ofd_test_names_the_conflict(fs, pair):
    one, two = pair
    assert ofd_test(fs, two, WRITE) == UNLOCK
    ofd(fs, one, READ, 10, 20)
    assert ofd_test(fs, two, READ) == UNLOCK
    assert ofd_test(fs, two, WRITE) == (READ, 10, 20)
    assert ofd_test(fs, two, WRITE, 30, 5) == UNLOCK
    assert ofd_test(fs, one, WRITE) == UNLOCK


def test_ofd_holder_has_no_process(fs, pair):
    one, two = pair
    ofd(fs, one, WRITE)
    answer = fs.os.fcntl(two, fcntl.F_OFD_GETLK, flock_struct(WRITE))
    assert flock_fields(answer)[4] == -1


def test_ofd_unlock_in_the_middle_splits(fs, pair):
    one, two = pair
    ofd(fs, one, WRITE, 0, 30)
    ofd(fs, one, UNLOCK, 10, 10)
    ofd(fs, two, WRITE, 10, 10)
    with would_block():
        ofd(fs, two, WRITE, 9, 1)
    with would_block():
        ofd(fs, two, WRITE, 20, 1)


def test_ofd_neighbours_join(fs, pair):
    one, two = pair
    ofd(fs, one, WRITE, 0, 10)
    ofd(fs, one, WRITE, 10, 10)
    assert ofd_test(fs, two, WRITE) == (WRITE, 0, 20)


def test_ofd_part_is_converted(fs, pair):
    one, two = pair
    ofd(fs, one, WRITE, 0, 30)
    ofd(fs, one, READ, 10, 10)
    ofd(fs, two, READ, 10, 10)
    with would_block():
        ofd(fs, two, READ, 0, 10)


def test_ofd_lock_ends_with_the_close(fs, pair):
    one, two = pair
    ofd(fs, one, WRITE)
    fs.os.close(one)
    fs.after_close(lambda: ofd(fs, two, WRITE))


def test_ofd_lock_is_shared_by_duplicates(fs, pair):
    one, two = pair
    copy = fs.adopt(fs.os.dup(one))
    ofd(fs, one, WRITE)
    ofd(fs, copy, WRITE)
    fs.os.close(one)
    with would_block():
        ofd(fs, two, WRITE)


def test_ofd_lock_outlives_the_close_of_another_descriptor(fs, pair):
    one, two = pair
    third = fs.open(fs.path("f"), os.O_RDWR)
    ofd(fs, one, WRITE)
    fs.os.close(third)
    with would_block():
        ofd(fs, two, WRITE)


@pytest.mark.parametrize("access, type_", [(os.O_RDONLY, WRITE), (os.O_WRONLY, READ)])
def test_ofd_lock_needs_the_access(fs, access, type_):
    fd = fs.open(fs.make("f"), access)
    with fails(errno.EBADF):
        ofd(fs, fd, type_)


@pytest.mark.parametrize(
    "fields, error",
    [
        ({"start": -1}, errno.EINVAL),
        ({"start": 5, "length": -6}, errno.EINVAL),
        ({"start": 2**62, "length": 2**62 + 1}, errno.EOVERFLOW),
        ({"pid": 1}, errno.EBADF),
    ],
    ids=["start", "length", "end", "pid"],
)
def test_what_is_wrong_with_a_lock_besides_its_access(fs, fields, error):
    fd = fs.open(fs.make("f"), os.O_RDONLY)
    with fails(error):
        fs.os.fcntl(fd, fcntl.F_OFD_SETLK, flock_struct(WRITE, **fields))


@pytest.mark.parametrize(
    "fields",
    [
        {"type_": 77},
        {"type_": WRITE, "whence": 77},
        {"type_": WRITE, "start": -1},
        {"type_": WRITE, "start": 5, "length": -6},
        {"type_": WRITE, "pid": 1},
    ],
    ids=["type", "whence", "start", "length", "pid"],
)
def test_ofd_nonsense_is_einval(fs, pair, fields):
    with fails(errno.EINVAL):
        fs.os.fcntl(pair[0], fcntl.F_OFD_SETLK, flock_struct(**fields))


def test_ofd_lock_waits_until_it_is_free(fs, pair):
    one, two = pair
    ofd(fs, one, WRITE, 0, 10)
    request = flock_struct(WRITE, 5, 10)
    order = waits_for(
        lambda: ofd(fs, one, UNLOCK, 0, 10),
        lambda: fs.os.fcntl(two, fcntl.F_OFD_SETLKW, request),
    )
    assert order == ["released", "acquired"]


def test_a_record_lock_whose_descriptor_is_closed_meanwhile_is_not_there(fs, pair):
    """Whether the wait for it had begun by then or not: fcntl_setlk() of Linux."""
    one, two = pair
    ofd(fs, one, WRITE)
    errors = []

    def acquire():
        with fails(errno.EBADF):
            fs.os.fcntl(two, fcntl.F_SETLKW, flock_struct(WRITE))
        errors.append(errno.EBADF)

    def release():
        fs.os.close(two)
        ofd(fs, one, UNLOCK)

    waits_for(release, acquire)
    assert errors == [errno.EBADF]
    assert ofd_test(fs, one, WRITE) == UNLOCK


def test_ofd_and_flock_do_not_meet(fs, pair):
    one, two = pair
    fs.os.flock(one, EX)
    ofd(fs, two, WRITE)


# ---- POSIX locks: owned by the process ---------------------------------------------------------


def posix(fs, fd, type_, start=0, length=0):
    fs.os.fcntl(fd, fcntl.F_SETLK, flock_struct(type_, start, length))


def test_posix_locks_of_one_process_do_not_conflict(fs, pair):
    one, two = pair
    posix(fs, one, WRITE)
    posix(fs, two, WRITE)
    answer = fs.os.fcntl(two, fcntl.F_GETLK, flock_struct(WRITE))
    assert flock_fields(answer)[0] == UNLOCK


def test_posix_lock_conflicts_with_an_ofd_lock(fs, pair):
    one, two = pair
    ofd(fs, one, WRITE, 0, 10)
    with would_block():
        posix(fs, two, WRITE, 5, 10)
    with would_block():
        posix(fs, one, READ, 5, 10)
    posix(fs, two, WRITE, 10, 10)


def test_ofd_lock_conflicts_with_a_posix_lock(fs, pair):
    one, two = pair
    posix(fs, one, READ, 0, 10)
    ofd(fs, two, READ, 0, 10)
    with would_block():
        ofd(fs, two, WRITE, 0, 10)


def test_posix_locks_end_with_any_close_of_the_file(fs, pair):
    """fcntl_locking(2): the well-known trap."""
    one, two = pair
    third = fs.open(fs.path("f"))
    posix(fs, one, WRITE)
    fs.os.close(third)
    ofd(fs, two, WRITE)


def test_posix_holder_is_the_process(fs, pair):
    one, two = pair
    posix(fs, one, WRITE, 3, 4)
    answer = fs.os.fcntl(two, fcntl.F_OFD_GETLK, flock_struct(WRITE))
    assert flock_fields(answer) == (WRITE, os.SEEK_SET, 3, 4, os.getpid())


def test_posix_lock_waits_for_an_ofd_lock(fs, pair):
    one, two = pair
    ofd(fs, one, WRITE)
    order = waits_for(
        lambda: ofd(fs, one, UNLOCK),
        lambda: fs.os.fcntl(two, fcntl.F_SETLKW, flock_struct(WRITE)),
    )
    assert order == ["released", "acquired"]


def test_locks_of_an_unlinked_file(fs, pair):
    one, two = pair
    fs.os.unlink(fs.path("f"))
    ofd(fs, one, WRITE)
    with would_block():
        ofd(fs, two, WRITE)
