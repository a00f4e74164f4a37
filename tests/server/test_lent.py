"""Bytes that a file system lends are read where they lie (docs/decisions/096): the same bytes as
ever, whatever becomes of the file, and no copy of them is made."""

import json
import os
import random
import subprocess
import sys
import threading

import pytest

import directfuse

from .forks import expect, in_fork

PAGE, CHUNK = 4096, 2 << 20


DIRECTFUSE = [sys.executable, "-m", "directfuse"]


@pytest.fixture
def mount(tmp_path):
    with directfuse.mount(["memfs", str(tmp_path / "mnt")], placement="server") as mount:
        yield mount


def write(path, data):
    with directfuse.open(path, "wb") as file:
        file.write(data)


def read(path):
    with directfuse.open(path, "rb", buffering=0) as file:
        return file.read()


# ---- that it is so ------------------------------------------------------------------------------


def operations(tmp_path, command, what="bytes"):
    """Of memfs, in which COMMAND has run: {name: bytes}, or "calls"."""
    stats = tmp_path / "stats.json"
    run = [*DIRECTFUSE, "run", f"--stats={stats}", "-m", f"memfs {tmp_path}/mnt"]
    subprocess.run(
        [*run, "--", "sh", "-ec", command],
        cwd=tmp_path,
        check=True,
        timeout=60,
        capture_output=True,
    )
    (found,) = json.loads(stats.read_text())["mounts"].values()
    return {name: op[what] for name, op in found.items()}


@pytest.mark.parametrize("size", [PAGE, 20_000, 300_000, CHUNK])
def test_nothing_is_copied(tmp_path, size):
    (tmp_path / "data").write_bytes(random.Random(size).randbytes(size))
    found = operations(tmp_path, "cp data mnt/f; cmp mnt/f data")
    assert found["lend"] >= size
    assert "read" not in found


def test_less_than_a_page_is_copied(tmp_path):
    (tmp_path / "data").write_bytes(b"a few words")
    found = operations(tmp_path, "cp data mnt/f; cmp mnt/f data")
    assert "lend" not in found
    assert found["read"] >= 11


def test_large_reads_are_lent_at_once(tmp_path):
    """Once it is known that this file system lends."""
    (tmp_path / "data").write_bytes(random.Random(1).randbytes(CHUNK))
    once = "cp data mnt/f; cp data mnt/g; cmp -n 4096 mnt/f data"
    found = operations(tmp_path, f"{once}; dd if=mnt/g bs=1M of=copy; cmp copy data")
    assert found.get("read", 0) == 0
    assert found["lend"] >= CHUNK + PAGE


#: Pages in an order in which no two follow each other: nothing is read ahead. Page 5 may be a hole.
PAGES = """
import os, sys
data, hole = os.open(sys.argv[1], os.O_RDONLY), sys.argv[2:]
for page in [page * 7 % 64 for page in range(64)]:
    expected = bytes([0 if hole and page == 5 else page]) * 4096
    assert os.pread(data, 4096, page * 4096) == expected, page
"""


def reads_of_pages(tmp_path, command):
    """How often the file system is asked for bytes by COMMAND, which makes mnt/f and reads it."""
    (tmp_path / "pages.py").write_text(PAGES)
    (tmp_path / "data").write_bytes(b"".join(bytes([page]) * PAGE for page in range(64)))
    known = "cp data mnt/g; cmp -n 1 mnt/g data; cp data mnt/f"  # to lend
    found = operations(tmp_path, f"{known}; {command}", "calls")
    return found["lend"] + found.get("read", 0)


def test_what_lies_around_a_page_is_shown_with_it(tmp_path):
    """64 pages in no order are four reads of 64 KiB each, beside the one of mnt/g."""
    assert reads_of_pages(tmp_path, f"{sys.executable} pages.py mnt/f") <= 5


def test_what_lies_around_a_hole_is_not_read_with_it_again(tmp_path):
    """It is not lent in one piece: then each page is asked for by itself, as everywhere."""
    command = f"fallocate -p -o 20480 -l 4096 mnt/f; {sys.executable} pages.py mnt/f hole"
    assert 32 <= reads_of_pages(tmp_path, command) <= 70


#: The server writes it back when it has seen the end of the process, a moment after wait(2).
STORED = """
import mmap, os, signal, sys, time
with open(sys.argv[1], "wb") as file:
    file.write(b"a" * 200_000)
with open(sys.argv[1], "rb") as file:
    assert file.read() == b"a" * 200_000
if os.fork() == 0:
    memory = mmap.mmap(os.open(sys.argv[1], os.O_RDWR), 200_000)
    memory[100], memory[150_000] = 98, 99
    os.kill(os.getpid(), signal.SIGKILL)
os.wait()
end = time.monotonic() + 20
found = None
while found != (98, 99, 97) and time.monotonic() < end:
    with open(sys.argv[1], "rb") as file:
        data = file.read()
    found = data[100], data[150_000], data[0]
print(*found, len(data))
"""


def test_what_a_killed_process_has_stored_in_a_mapping_is_kept(tmp_path):
    """The server looks for what it has changed by a read of its own."""
    plain = subprocess.run([sys.executable, "-c", STORED, tmp_path / "f"], capture_output=True)
    run = [*DIRECTFUSE, "run", "-m", f"memfs {tmp_path}/mnt", "--"]
    mine = subprocess.run(
        [*run, sys.executable, "-c", STORED, f"{tmp_path}/mnt/f"], capture_output=True, timeout=60
    )
    assert mine.stdout == plain.stdout == b"98 99 97 200000\n"


# ---- that nobody sees it -----------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, PAGE - 1, PAGE, 20_000, 300_000, CHUNK, CHUNK + 1])
def test_is_what_was_written(mount, size):
    data = random.Random(size).randbytes(size)
    write(f"{mount.mountpoint}/f", data)
    assert read(f"{mount.mountpoint}/f") == data
    assert in_fork(lambda: expect(read(f"{mount.mountpoint}/f"), data)) == 0


def _grow(path, fd, data):
    directfuse.pwrite(fd, b"more", len(data))
    return data + b"more"


def _overwrite(path, fd, data):
    directfuse.pwrite(fd, b"new", PAGE - 1)
    return data[: PAGE - 1] + b"new" + data[PAGE + 2 :]


def _cut(path, fd, data):
    directfuse.truncate(path, 5000)
    return data[:5000]


def _cut_and_grow(path, fd, data):
    directfuse.ftruncate(fd, 100)
    directfuse.ftruncate(fd, len(data))
    return data[:100] + bytes(len(data) - 100)


def _write_anew(path, fd, data):
    write(path, data[::-1])
    return data[::-1]


def _replace(path, fd, data):
    write(f"{path}.new", data[::-1])
    directfuse.rename(f"{path}.new", path)
    return data[::-1]


@pytest.mark.parametrize(
    "change",
    [_grow, _overwrite, _cut, _cut_and_grow, _write_anew, _replace],
    ids=lambda f: f.__name__,
)
def test_changes_are_seen_at_once(mount, change):
    """By who has read it before, and whose memory it was becomes another's."""
    path, data = f"{mount.mountpoint}/f", random.Random(2).randbytes(20_000)
    write(path, data)
    assert read(path) == data
    fd = directfuse.os_open(path, os.O_RDWR)
    expected = change(path, fd, data)
    for i in range(20):
        write(f"{mount.mountpoint}/other-{i}", bytes([i]) * 20_000)
    assert read(path) == expected
    directfuse.close(fd)


def test_a_removed_file_stays_what_it_was(mount):
    path, data = f"{mount.mountpoint}/f", random.Random(3).randbytes(20_000)
    write(path, data)
    fd = directfuse.os_open(path, os.O_RDONLY)
    assert directfuse.pread(fd, len(data), 0) == data
    directfuse.unlink(path)
    for i in range(20):
        write(f"{mount.mountpoint}/other-{i}", bytes([i]) * 20_000)
    assert directfuse.pread(fd, len(data), 0) == data
    directfuse.close(fd)


def test_files_that_move_are_never_read_as_others(mount):
    """They grow, and are cut and replaced, so that their memory goes from one to another, while
    others read: each byte of a file is its own."""
    over, wrong = threading.Event(), []

    def churn(number):
        rng = random.Random(number)
        for _ in range(150):
            path = f"{mount.mountpoint}/{number}"
            with directfuse.open(path, rng.choice(["wb", "ab"])) as file:
                for _ in range(rng.randrange(1, 5)):
                    file.write(bytes([number]) * rng.randrange(1, 30_000))
            if rng.random() < 0.3:
                directfuse.truncate(path, rng.randrange(20_000))

    def look(number):
        while not over.is_set():
            try:
                data = read(f"{mount.mountpoint}/{number}")
            except FileNotFoundError:
                continue
            if set(data) - {0, number}:  # a truncation makes files longer, too
                wrong.append((number, set(data)))

    numbers = range(1, 5)
    readers = [threading.Thread(target=look, args=(n,)) for n in numbers]
    writers = [threading.Thread(target=churn, args=(n,)) for n in numbers]
    for thread in readers + writers:
        thread.start()
    for thread in writers:
        thread.join()
    over.set()
    for thread in readers:
        thread.join()
    assert not wrong


def test_more_than_there_is_to_lend_is_read_all_the_same(mount):
    """As much again is memory of the file system's own."""
    block = random.Random(4).randbytes(CHUNK)
    count = 150  # of 2 MiB: 300 MiB
    with directfuse.open(f"{mount.mountpoint}/f", "wb", buffering=0) as file:
        for i in range(count):
            file.write(i.to_bytes(4, "little") + block[4:])
    with directfuse.open(f"{mount.mountpoint}/f", "rb", buffering=0) as file:
        for i in range(count):
            got = file.read(CHUNK)
            while len(got) < CHUNK:
                got += file.read(CHUNK - len(got))
            assert got == i.to_bytes(4, "little") + block[4:], i
