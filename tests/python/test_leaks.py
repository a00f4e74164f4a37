"""Nothing leaks: memory blocks, references, descriptors, over many turns of each call."""

import contextlib
import gc
import os
import sys
import weakref

import pytest

import directfuse

WARM, TURNS, ROUNDS = 50, 500, 10

#: Blocks that may remain after TURNS: caches of the interpreter, never one a turn.
SLACK = 20


def growth(act):
    """Blocks that TURNS calls leave behind, once the caches of the interpreter are full: these fill
    at any time, by a hundred blocks and more in the first rounds; what leaks, leaks in each."""

    def once():
        gc.collect()
        before = sys.getallocatedblocks()
        for _ in range(TURNS):
            act()
        gc.collect()
        return sys.getallocatedblocks() - before

    for _ in range(WARM):
        act()
    left = once()
    for _ in range(ROUNDS - 1):
        if left < SLACK:
            break
        left = once()
    return left


@pytest.fixture
def place(mem, fill, opened):
    """The mount with `f` of 100 bytes, `d`, `l` -> f, and a descriptor of f."""
    fill(f"{mem}/f", bytes(100))
    directfuse.mkdir(f"{mem}/d")
    directfuse.symlink("f", f"{mem}/l")
    directfuse.symlink("/dev/null", f"{mem}/out")
    directfuse.symlink("/", f"{mem}/top")
    directfuse.setxattr(f"{mem}/f", "user.a", b"v")
    return mem, opened(f"{mem}/f", os.O_RDWR)


def failing(act):
    with contextlib.suppress(OSError, TypeError, ValueError, OverflowError):
        act()
        raise AssertionError("it did not fail")


def with_open(path, *args, **options):
    with directfuse.open(path, *args, **options) as file:
        return file.read()


CALLS = {
    "stat": lambda m, fd: directfuse.stat(f"{m}/f"),
    "stat of bytes": lambda m, fd: directfuse.stat(os.fsencode(m)),
    "stat with keywords": lambda m, fd: directfuse.stat(path=f"{m}/l", follow_symlinks=False),
    "stat that fails": lambda m, fd: failing(lambda: directfuse.stat(f"{m}/none")),
    "stat of a surrogate": lambda m, fd: failing(lambda: directfuse.stat(f"{m}/\udcff")),
    "stat that leaves": lambda m, fd: directfuse.stat(f"{m}/out"),
    "stat outside": lambda m, fd: directfuse.stat("/"),
    "stat outside that fails": lambda m, fd: failing(lambda: directfuse.stat("/nonexistent")),
    "stat of nonsense": lambda m, fd: failing(lambda: directfuse.stat(1.5)),
    "lstat": lambda m, fd: directfuse.lstat(f"{m}/l"),
    "fstat": lambda m, fd: directfuse.fstat(fd),
    "access": lambda m, fd: directfuse.access(f"{m}/f", os.R_OK),
    "access outside": lambda m, fd: directfuse.access("/none", os.R_OK),
    "pread": lambda m, fd: directfuse.pread(fd, 50, 60),
    "pread that fails": lambda m, fd: failing(lambda: directfuse.pread(fd, -1, 0)),
    "pwrite": lambda m, fd: directfuse.pwrite(fd, bytearray(10), 0),
    "pwrite that fails": lambda m, fd: failing(lambda: directfuse.pwrite(fd, "x", 0)),
    "preadv": lambda m, fd: directfuse.preadv(fd, [bytearray(5), bytearray(5)], 0),
    "preadv of many": lambda m, fd: directfuse.preadv(fd, [bytearray(1)] * 20, 0),
    "preadv that fails": lambda m, fd: failing(lambda: directfuse.preadv(fd, [bytearray(1), 5], 0)),
    "lseek": lambda m, fd: directfuse.lseek(fd, 0, 0),
    "os_open": lambda m, fd: directfuse.close(directfuse.os_open(f"{m}/f", os.O_RDONLY)),
    "os_open that fails": lambda m, fd: failing(lambda: directfuse.os_open(f"{m}/n", 0)),
    "open raw": lambda m, fd: with_open(f"{m}/f", "rb", 0),
    "open buffered": lambda m, fd: with_open(f"{m}/f", "rb"),
    "open text": lambda m, fd: with_open(f"{m}/f"),
    "open that fails": lambda m, fd: failing(lambda: directfuse.open(f"{m}/none")),
    "open of a directory": lambda m, fd: failing(lambda: directfuse.open(m)),
    "open in no language": lambda m, fd: failing(lambda: directfuse.open(f"{m}/f", newline="x")),
    "open that leaves": lambda m, fd: with_open(f"{m}/out"),
    "open outside": lambda m, fd: with_open("/dev/null"),
    "open by an opener": lambda m, fd: with_open(
        f"{m}/f", opener=lambda name, flags: directfuse.os_open(name, flags)
    ),
    "open by a real opener": lambda m, fd: with_open(
        f"{m}/f", opener=lambda name, flags: os.open("/dev/null", flags)
    ),
    "listdir": lambda m, fd: directfuse.listdir(m),
    "listdir of bytes": lambda m, fd: directfuse.listdir(os.fsencode(m)),
    "listdir that fails": lambda m, fd: failing(lambda: directfuse.listdir(f"{m}/f")),
    "scandir": lambda m, fd: [
        (entry.path, entry.stat(), entry.is_dir(), repr(entry)) for entry in directfuse.scandir(m)
    ],
    "scandir that leaves": lambda m, fd: [
        (entry.path, entry.is_dir()) for entry in directfuse.scandir(f"{m}/top")
    ],
    "walk": lambda m, fd: [*directfuse.walk(m)],
    "fwalk": lambda m, fd: [*directfuse.fwalk(m)],
    "read_many": lambda m, fd: directfuse.read_many([(fd, 0, 50), (f"{m}/f", 60, 80), f"{m}/f"]),
    "read_many into": lambda m, fd: directfuse.read_many([(fd, 0, 5)], [bytearray(9)]),
    "read_many into one": lambda m, fd: directfuse.read_many([f"{m}/f"], bytearray(9000)),
    "read_many of errors": lambda m, fd: directfuse.read_many(
        [f"{m}/none", b"/none", (fd, 0, None), (fd, 0, 3)], errors="return"
    ),
    "read_many that fails": lambda m, fd: failing(
        lambda: directfuse.read_many([(fd, 0, 5), ((1 << 30) + 99999, 0, 5)])
    ),
    "read_many of nonsense": lambda m, fd: failing(lambda: directfuse.read_many([(fd, 5)])),
    "borrow": lambda m, fd: directfuse.borrow(fd).release(),
    "mmap": lambda m, fd: directfuse.mmap(fd, 10)[0:5],
    "mkdir and rmdir": lambda m, fd: [directfuse.mkdir(f"{m}/n"), directfuse.rmdir(f"{m}/n")],
    "rename": lambda m, fd: [
        directfuse.rename(f"{m}/d", f"{m}/e"),
        directfuse.rename(f"{m}/e", f"{m}/d"),
    ],
    "readlink": lambda m, fd: directfuse.readlink(f"{m}/l"),
    "utime": lambda m, fd: directfuse.utime(f"{m}/f", ns=(1, 2)),
    "xattr": lambda m, fd: [directfuse.getxattr(fd, "user.a"), directfuse.listxattr(f"{m}/f")],
    "statvfs": lambda m, fd: directfuse.statvfs(m),
    "stats": lambda m, fd: directfuse.mounts()[0].stats(),
}


class Local:
    """What a caller has in a variable."""


def seen_after(act):
    """A weak reference to what the caller of a call that fails had, when it has returned."""
    local = Local()
    with contextlib.suppress(OSError):
        act()
        raise AssertionError("it did not fail")
    return weakref.ref(local)


FAILING = {
    "stat": lambda our, root: our.stat(f"{root}/none"),
    "listdir": lambda our, root: our.listdir(f"{root}/none"),
    "mkdir": lambda our, root: our.mkdir(root),
    "makedirs": lambda our, root: our.makedirs(root),
    "rename": lambda our, root: our.rename(f"{root}/none", f"{root}/x"),
    "rmdir": lambda our, root: our.rmdir(f"{root}/none"),
    "readlink": lambda our, root: our.readlink(root),
    "chmod": lambda our, root: our.chmod(f"{root}/none", 0o600),
    "truncate": lambda our, root: our.truncate(root, 0),
    "utime": lambda our, root: our.utime(f"{root}/none"),
    "statvfs": lambda our, root: our.statvfs(f"{root}/none"),
    "getxattr": lambda our, root: our.getxattr(root, "user.none"),
    "setxattr": lambda our, root: our.setxattr(root, "none", memoryview(b"value")),
    "fsync": lambda our, root: our.fsync((1 << 30) + 99999),
    "dup": lambda our, root: our.dup((1 << 30) + 99999),
}


@pytest.mark.parametrize("name", FAILING)
@pytest.mark.parametrize("our", [os, directfuse], ids=["os", "directfuse"])
def test_an_error_keeps_nothing_alive_that_its_callers_had(our, name, mem, tmp_path):
    """As a cycle of itself, its traceback and a frame would, until the garbage is collected."""
    root = tmp_path if our is os else mem
    gc.disable()
    try:
        assert seen_after(lambda: FAILING[name](our, root))() is None
    finally:
        gc.enable()


def test_an_error_that_is_kept_does_not_hold_a_buffer(mem, opened):
    fd = opened(f"{mem}/f")
    data = bytearray(8)
    with pytest.raises(OSError) as kept:
        directfuse.setxattr(f"{mem}/f", "none", data)
    with pytest.raises(OSError) as kept_too:
        directfuse.ioctl(fd, 0x4004_1234, data)
    data.append(0)  # BufferError, if somebody had it
    del kept, kept_too


@pytest.mark.parametrize("name", CALLS)
def test_no_block_is_left_behind(name, place):
    assert growth(lambda: CALLS[name](*place)) < SLACK


def test_references_of_what_goes_through(place):
    mem, fd = place
    path, data, buffer = f"{mem}/f", bytes(5), bytearray(5)
    objects = (path, data, buffer, None, True)
    before = [sys.getrefcount(item) for item in objects[:3]]
    for _ in range(100):
        directfuse.stat(path)
        directfuse.pwrite(fd, data, 0)
        directfuse.preadv(fd, [buffer], 0)
        directfuse.access(path, os.F_OK)
        failing(lambda: directfuse.open(path, "rb", opener=lambda *_: -5))
        directfuse.open(path, "rb", 0).close()
    gc.collect()
    assert [sys.getrefcount(item) for item in objects[:3]] == before


def test_descriptors_come_back(place):
    """Every error path of opening gives the descriptor back: the next one has the same number."""
    mem, _ = place
    first = directfuse.os_open(f"{mem}/f", os.O_RDONLY)
    directfuse.close(first)
    for _ in range(100):
        failing(lambda: directfuse.open(mem))
        with contextlib.suppress(LookupError):
            directfuse.open(f"{mem}/f", encoding="no-such")
        failing(lambda: directfuse.open(f"{mem}/f", newline="x"))
        directfuse.listdir(mem)
        [*directfuse.scandir(mem)]
    again = directfuse.os_open(f"{mem}/f", os.O_RDONLY)
    directfuse.close(again)
    assert again == first


def sanitized():
    with open("/proc/self/maps") as file:
        return "libasan" in file.read()


@pytest.mark.skipif(sanitized(), reason="AddressSanitizer keeps freed memory in quarantine")
def test_mounting_and_unmounting_gives_memory_back(tmp_path, fill):
    def turn():
        with directfuse.mount(["memfs", tmp_path / "m"]):
            fill(f"{tmp_path}/m/f", bytes(1 << 20))

    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    for _ in range(10):
        turn()
    before = resident()
    for _ in range(30):
        turn()
    assert resident() - before < 16 << 20
