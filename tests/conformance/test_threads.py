"""Several threads on one file system: nothing is lost, nothing is seen half done."""

import errno
import os
import threading

THREADS = 4


def together(work, count=THREADS):
    """work(number) in `count` threads that start at once; their results, or the first error."""
    results, errors = [None] * count, []
    barrier = threading.Barrier(count)

    def run(number):
        barrier.wait()
        try:
            results[number] = work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return results


def test_appends_are_whole(fs):
    path = fs.make("f")
    records = 200

    def append(number):
        fd = fs.os.os_open(path, os.O_WRONLY | os.O_APPEND)
        for _ in range(records):
            fs.os.write(fd, bytes([number]) * 100)
        fs.os.close(fd)

    together(append)
    data = fs.data(path)
    pieces = [data[start : start + 100] for start in range(0, len(data), 100)]
    assert all(len(set(piece)) == 1 for piece in pieces)
    assert sorted(piece[0] for piece in pieces) == sorted(list(range(THREADS)) * records)


def test_shared_offset_loses_nothing(fs):
    """POSIX 2.9.7: writes through one description are atomic with respect to the offset."""
    path = fs.path("f")
    fd = fs.open(path, os.O_CREAT | os.O_WRONLY)

    def write(number):
        for _ in range(200):
            fs.os.write(fd, bytes([number]) * 10)

    together(write)
    assert fs.os.stat(path).st_size == THREADS * 200 * 10


def test_writes_to_different_places(fs):
    path = fs.path("f")
    fd = fs.open(path, os.O_CREAT | os.O_RDWR)
    size = 1000

    def write(number):
        for step in range(50):
            offset = (step * THREADS + number) * size
            fs.os.pwrite(fd, bytes([number]) * size, offset)

    together(write)
    data = fs.data(path)
    expected = b"".join(bytes([number]) * size for number in range(THREADS))
    assert data == expected * 50


def test_exclusive_create_has_one_winner(fs):
    def create(_):
        won = 0
        for number in range(100):
            try:
                fd = fs.os.os_open(fs.path(str(number)), os.O_CREAT | os.O_EXCL | os.O_WRONLY)
            except FileExistsError:
                continue
            fs.os.close(fd)
            won += 1
        return won

    assert sum(together(create)) == 100


def test_name_that_is_replaced_is_always_there(fs):
    path = fs.make("f", b"0" * 50)

    def work(number):
        for step in range(100):
            if number == 0:
                temporary = fs.path("temporary")
                fd = fs.os.os_open(temporary, os.O_CREAT | os.O_WRONLY)
                fs.os.write(fd, b"%d" % (step % 10) * 50)
                fs.os.close(fd)
                fs.os.rename(temporary, path)
            else:
                data = fs.data(path)
                assert len(data) == 50 and len(set(data)) == 1

    together(work)
    assert fs.names() == ["f"]


def test_directory_moves_under_the_walkers(fs):
    fs.mkdir("a")
    fs.make("a/f", b"abc")

    def work(number):
        for _ in range(100):
            if number == 0:
                fs.os.rename(fs.path("a"), fs.path("b"))
                fs.os.rename(fs.path("b"), fs.path("a"))
            else:
                for name in ("a/f", "b/f"):
                    try:
                        assert fs.data(fs.path(name)) == b"abc"
                    except OSError as error:
                        assert error.errno == errno.ENOENT

    together(work)
    assert fs.data(fs.path("a/f")) == b"abc"


def test_entries_come_and_go_under_a_listing(fs):
    for number in range(100):
        fs.make(f"stays-{number}")

    def work(number):
        for step in range(50):
            if number < 2:
                name = f"comes-{number}-{step}"
                fs.make(name)
                fs.os.unlink(fs.path(name))
            else:
                names = fs.os.listdir(fs.root)
                assert len(names) == len(set(names))
                assert sum(name.startswith("stays-") for name in names) == 100

    together(work)
    assert len(fs.names()) == 100


def test_descriptors_come_and_go(fs):
    path = fs.make("f", b"abc")

    def work(_):
        for _ in range(200):
            fd = fs.os.os_open(path, os.O_RDONLY)
            copy = fs.os.dup(fd)
            fs.os.close(fd)
            assert fs.os.pread(copy, 3, 0) == b"abc"
            fs.os.close(copy)

    together(work)
