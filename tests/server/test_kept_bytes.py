"""What a mount server keeps of files and listings for all its clients: read without a trip, never
older than what any of them has changed.

What processes see runs in a plain directory too, so what it expects is what Linux does.
"""

import errno
import json
import os
import random
import signal
import stat
import time

import pytest

import directfuse

from .forks import begin_fork, ended, in_fork
from .test_lives import servers, the_server, until

PAGE = 4096


def put(path, data):
    with directfuse.open(path, "wb") as file:
        file.write(data)


def numbered(pages):
    return b"".join(b"%04d" % n * (PAGE // 4) for n in range(pages))


class Warm:
    """A file that this process has read often enough for all of it to be kept."""

    def __init__(self, path, data):
        put(path, data)
        self.fd = directfuse.os_open(path, os.O_RDWR)
        for _ in range(3):
            assert self.read(len(data) + 1) == data
            self.read(PAGE, len(data))

    def read(self, size=1 << 20, offset=0):
        return directfuse.pread(self.fd, size, offset)


# ---- what others change -------------------------------------------------------------------------


def _write(path, _data):
    fd = directfuse.os_open(path, os.O_WRONLY)
    directfuse.pwrite(fd, b"changed", 2 * PAGE - 3)
    directfuse.close(fd)


def _append(path, _data):
    fd = directfuse.os_open(path, os.O_WRONLY | os.O_APPEND)
    directfuse.write(fd, b"more")
    directfuse.close(fd)


def _write_behind_the_end(path, data):
    fd = directfuse.os_open(path, os.O_WRONLY)
    directfuse.pwrite(fd, b"far", len(data) + 3 * PAGE)
    directfuse.close(fd)


def _truncate_by_name(path, _data):
    directfuse.truncate(path, PAGE + 7)


def _truncate_and_grow(path, data):
    fd = directfuse.os_open(path, os.O_RDWR)
    directfuse.ftruncate(fd, 10)
    directfuse.ftruncate(fd, len(data))
    directfuse.close(fd)


def _open_truncating(path, _data):
    put(path, b"new")


def _copy(path, data):
    put(f"{path}.source", b"s" * len(data))
    source = directfuse.os_open(f"{path}.source", os.O_RDONLY)
    fd = directfuse.os_open(path, os.O_WRONLY)
    assert directfuse.copy_file_range(source, fd, 100, 0, PAGE) == 100
    directfuse.close(fd)
    directfuse.close(source)
    directfuse.unlink(f"{path}.source")


def _fallocate(path, data):
    fd = directfuse.os_open(path, os.O_RDWR)
    directfuse.posix_fallocate(fd, 0, len(data) + 100)
    directfuse.close(fd)


_CHANGES = [
    _write,
    _append,
    _write_behind_the_end,
    _truncate_by_name,
    _truncate_and_grow,
    _open_truncating,
    _copy,
    _fallocate,
]


@pytest.mark.parametrize("change", _CHANGES, ids=lambda change: change.__name__[1:])
@pytest.mark.parametrize("size", [3 * PAGE, 3 * PAGE + 100, 1000], ids=["pages", "odd", "small"])
def test_what_another_process_has_changed_is_read(place, tmp_path, change, size):
    path, oracle = f"{place}/f", str(tmp_path / "oracle")
    data = numbered(4)[:size]
    warm = Warm(path, data)
    assert in_fork(lambda: change(path, data)) == 0
    put(oracle, data)
    change(oracle, data)
    with open(oracle, "rb") as file:
        wanted = file.read()
    assert warm.read() == wanted
    with directfuse.open(path, "rb") as file:
        assert file.read() == wanted
    directfuse.close(warm.fd)


def test_another_file_under_the_name_is_another_file(place):
    old = Warm(f"{place}/f", b"old" * PAGE)

    def replace():
        put(f"{place}/g", b"new" * PAGE)
        directfuse.rename(f"{place}/g", f"{place}/f")

    assert in_fork(replace) == 0
    with directfuse.open(f"{place}/f", "rb") as file:
        assert file.read() == b"new" * PAGE
    assert old.read() == b"old" * PAGE
    directfuse.close(old.fd)
    for n in range(20):  # numbers of inodes are used again
        directfuse.unlink(f"{place}/f")
        put(f"{place}/f", b"%d" % n)
        with directfuse.open(f"{place}/f", "rb") as file:
            assert file.read() == b"%d" % n


def _worker(tell, hear, path):
    """Does what it is told, line by line, until there is no more."""
    fd = directfuse.os_open(path, os.O_RDWR)
    for line in os.fdopen(hear, "rb"):
        do, *words = json.loads(line)
        answer = ""
        if do == "read":
            answer = directfuse.pread(fd, words[1], words[0]).hex()
        elif do == "write":
            directfuse.pwrite(fd, bytes([words[2]]) * words[1], words[0])
        elif do == "truncate":
            directfuse.ftruncate(fd, words[0])
        elif do == "reopen":
            directfuse.close(fd)
            fd = directfuse.os_open(path, os.O_RDWR)
        os.write(tell, json.dumps(answer).encode() + b"\n")


@pytest.fixture
def workers(place):
    put(f"{place}/f", b"")
    started = []
    for _ in range(3):
        hear, to = os.pipe()
        from_, tell = os.pipe()

        def work(theirs=(tell, hear), ours=(to, *(other for _, other, _ in started))):
            for fd in ours:
                os.close(fd)
            _worker(*theirs, f"{place}/f")

        pid = begin_fork(work)
        os.close(hear)
        os.close(tell)
        started.append((pid, to, os.fdopen(from_, "rb")))
    yield started
    for pid, to, answers in started:
        os.close(to)
        assert ended(pid) == 0
        answers.close()


def _action(dice):
    do = dice.choices(["read", "write", "truncate", "reopen"], [60, 25, 5, 5])[0]
    offset = dice.choice([0, PAGE, 3 * PAGE, dice.randrange(6 * PAGE)])
    size = dice.choice([1, 100, PAGE, dice.randrange(1, 20 * PAGE)])
    return {
        "read": ("read", offset, size),
        "write": ("write", offset, size, dice.randrange(256)),
        "truncate": ("truncate", offset),
        "reopen": ("reopen",),
    }[do]


def test_processes_that_take_turns_see_one_file(workers):
    dice = random.Random(7)
    model = bytearray()
    for _ in range(400):
        do, *words = action = _action(dice)
        _pid, to, answers = dice.choice(workers)
        os.write(to, json.dumps(action).encode() + b"\n")
        answer = bytes.fromhex(json.loads(answers.readline()))
        if do == "read":
            assert answer == model[words[0] : words[0] + words[1]]
        elif do == "write":
            offset, size, byte = words
            model.extend(bytes(max(0, offset + size - len(model))))
            model[offset : offset + size] = bytes([byte]) * size
        elif do == "truncate":
            model[words[0] :] = bytes(max(0, words[0] - len(model)))


# ---- files that are closed ----------------------------------------------------------------------


@pytest.fixture
def through(request, tmp_path):
    """A mount of passthrough, which believes what it is told for long, and its directory."""
    (tmp_path / "source").mkdir()
    words = ["passthrough", str(tmp_path / "source"), str(tmp_path / "mnt")]
    words += ["-o", ",".join(["attr_timeout=100,entry_timeout=100", *request.param])]
    with directfuse.mount(words, placement="server") as mount:
        time.sleep(0.02)  # after 10 ms a server can tell times
        yield mount, tmp_path / "source"


def trips_of_reading(mount, path, wanted):
    """Of the reads alone. More than 32 KiB: no open brings them."""
    fd = directfuse.os_open(path, os.O_RDONLY)
    before = mount.stats().trips
    assert directfuse.pread(fd, len(wanted) + 1, 0) == wanted
    trips = mount.stats().trips - before
    directfuse.close(fd)
    return trips


@pytest.mark.parametrize("through", [["kernel_cache"], ["auto_cache"]], indirect=True)
def test_pages_of_a_closed_file_need_no_trip(through):
    mount, _source = through
    path, data = f"{mount.mountpoint}/f", numbered(9)
    put(path, data)
    assert trips_of_reading(mount, path, data) == 1
    assert trips_of_reading(mount, path, data) == 0
    directfuse.mkdir(f"{mount.mountpoint}/d")
    directfuse.rename(path, f"{mount.mountpoint}/d/f")
    directfuse.rename(f"{mount.mountpoint}/d", f"{mount.mountpoint}/e")
    put(path, b"another" * 2 * PAGE)
    assert trips_of_reading(mount, f"{mount.mountpoint}/e/f", data) == 0
    assert trips_of_reading(mount, path, b"another" * 2 * PAGE) == 1


@pytest.mark.parametrize("through", [[]], indirect=True)
def test_without_an_option_each_open_begins_anew(through):
    mount, source = through
    put(f"{mount.mountpoint}/f", b"old!" * 3 * PAGE)
    for data in (b"old!" * 3 * PAGE, b"new!" * 3 * PAGE):
        (source / "f").write_bytes(data)
        assert trips_of_reading(mount, f"{mount.mountpoint}/f", data) == 1


@pytest.mark.parametrize(
    "through", [["auto_cache"], ["auto_cache", "ac_attr_timeout=0"]], indirect=True
)
def test_auto_cache_compares_at_open(through, request):
    mount, source = through
    path = f"{mount.mountpoint}/f"
    put(path, b"old!" * 3 * PAGE)
    assert trips_of_reading(mount, path, b"old!" * 3 * PAGE) == 1
    (source / "f").write_bytes(b"new!" * 3 * PAGE)
    if "ac_attr_timeout=0" not in request.node.callspec.params["through"]:
        assert trips_of_reading(mount, path, b"old!" * 3 * PAGE) == 0  # in the attributes' time
        return
    assert trips_of_reading(mount, path, b"new!" * 3 * PAGE) == 1
    assert trips_of_reading(mount, path, b"new!" * 3 * PAGE) == 0


@pytest.mark.parametrize("through", [["kernel_cache"]], indirect=True)
def test_what_was_removed_behind_the_mount_is_not_read_under_its_name(through):
    mount, source = through
    path = f"{mount.mountpoint}/f"
    put(path, b"old" * 3 * PAGE)
    assert trips_of_reading(mount, path, b"old" * 3 * PAGE) == 1
    (source / "f").unlink()
    with pytest.raises(FileNotFoundError):
        directfuse.os_open(path, os.O_RDONLY)
    put(path, b"new" * PAGE)
    assert trips_of_reading(mount, path, b"new" * PAGE) == 1


def _shuffle(dice, names):
    """A call and its arguments: paths in either world."""
    do = dice.choice(["put", "put", "read", "read", "read", "rename", "rename", "unlink", "link"])
    first, second = dice.sample(names, 2)
    return {
        "put": ("put", first, b"%d " % dice.randrange(1 << 30) * dice.choice([1, PAGE, 3 * PAGE])),
        "read": ("read", first),
        "rename": dice.choice(
            [("rename", first, second), ("rename", "d", "e"), ("rename", "e", "d")]
        ),
        "unlink": ("unlink", first),
        "link": ("link", first, second),
    }[do]


def _done(namespace, root, do, first, *rest):
    try:
        if do == "put":
            with namespace.open(f"{root}/{first}", "wb") as file:
                file.write(rest[0])
        elif do == "read":
            with namespace.open(f"{root}/{first}", "rb") as file:
                return file.read()
        else:
            paths = [f"{root}/{name}" for name in (first, *rest)]
            getattr(namespace, do)(*paths)
    except OSError as error:
        return error.errno
    return None


class Plain:
    open, rename, unlink, link = map(staticmethod, (open, os.rename, os.unlink, os.link))


def test_names_that_move_lead_to_their_files(place, tmp_path):
    """Files that are closed after each step, so that their pages stand under what is known of
    names."""
    dice = random.Random(11)
    oracle = tmp_path / "oracle"
    names = [f"{d}/{n}" for d in ("d", "e") for n in ("a", "b", "c")]
    for directory in ("d", "e"):
        directfuse.mkdir(f"{place}/{directory}")
        os.makedirs(oracle / directory)
    for _ in range(800):
        action = _shuffle(dice, names)
        assert _done(directfuse, place, *action) == _done(Plain, oracle, *action), action


# ---- listings -----------------------------------------------------------------------------------


def test_a_listing_shows_what_another_process_has_changed(place):
    names = {f"name-{n:04}" for n in range(300)}
    directfuse.mkdir(f"{place}/d")
    for name in names:
        put(f"{place}/d/{name}", b"")
    for _ in range(3):
        assert set(directfuse.listdir(f"{place}/d")) == names
    assert in_fork(lambda: directfuse.mkdir(f"{place}/d/made")) == 0
    assert set(directfuse.listdir(f"{place}/d")) == names | {"made"}
    assert in_fork(lambda: directfuse.unlink(f"{place}/d/name-0007")) == 0
    assert in_fork(lambda: directfuse.rename(f"{place}/d/made", f"{place}/d/moved")) == 0
    assert set(directfuse.listdir(f"{place}/d")) == names - {"name-0007"} | {"moved"}


def _make(op):
    return lambda d: op(f"{d}/made")


def _symlink_and_unlink(d):
    directfuse.symlink("f", f"{d}/link")
    directfuse.unlink(f"{d}/link")
    directfuse.unlink(f"{d}/f")


#: What becomes of the names in a directory with a file f, a directory s and in it a file g, beside
#: which there are a directory e and a file o.
_NAMES = {
    "create": _make(lambda path: put(path, b"")),
    "mknod": _make(directfuse.mknod),
    "mkdir": _make(directfuse.mkdir),
    "symlink": _make(lambda path: directfuse.symlink("f", path)),
    "link": lambda d: directfuse.link(f"{d}/f", f"{d}/second"),
    "unlink": lambda d: directfuse.unlink(f"{d}/f"),
    "symlink-unlink": _symlink_and_unlink,
    "rmdir": lambda d: (directfuse.unlink(f"{d}/s/g"), directfuse.rmdir(f"{d}/s")),
    "rename-in": lambda d: directfuse.rename(f"{d}/f", f"{d}/moved"),
    "rename-from": lambda d: directfuse.rename(f"{d}/f", f"{d}/../e/f"),
    "rename-to": lambda d: directfuse.rename(f"{d}/../o", f"{d}/o"),
    "rename-over": lambda d: directfuse.rename(f"{d}/../o", f"{d}/f"),
    "rename-directory": lambda d: directfuse.rename(f"{d}/s", f"{d}/../e/s"),
    "rename-itself": lambda d: (
        directfuse.rename(d, f"{d[:-1]}e/d"),
        put(f"{d[:-1]}e/d/made", b""),
        directfuse.rename(f"{d[:-1]}e/d", d),
    ),
    "through-a-link": lambda d: (
        directfuse.symlink("d", f"{d}/../to-d"),
        put(f"{d}/../to-d/made", b""),
    ),
    "by-descriptor": lambda d: _at(d, "made"),
}


def _at(directory, name):
    fd = directfuse.os_open(directory, os.O_RDONLY)
    directfuse.mkdir(name, dir_fd=fd)
    directfuse.close(fd)


def _lay(root):
    directfuse.mkdir(root)
    for name in ("d", "d/s", "e"):
        directfuse.mkdir(f"{root}/{name}")
    for name in ("d/f", "d/s/g", "o"):
        put(f"{root}/{name}", b"bytes")


def _all_seen(root):
    """What is listed in each directory, by an open that is new, and how each name stats."""
    seen = {}
    for name in ("", "d", "d/s", "e", "e/s", "e/d", "e/f", "d/f", "d/made", "d/s/g", "e/s/g", "o"):
        path = f"{root}/{name}".rstrip("/")
        try:
            st = directfuse.stat(path)
            seen[name] = (st.st_mode,)
            if stat.S_ISREG(st.st_mode):
                seen[name] += (st.st_nlink, st.st_size)
            seen[name] += (sorted(directfuse.listdir(path)),)
        except OSError as error:
            seen[name] = (*seen.get(name, ()), error.errno)
    return seen


def _listed(fd):
    return sorted(directfuse.listdir(fd))


@pytest.mark.parametrize("change", _NAMES)
def test_changed_names_are_seen_wherever_they_are_listed_or_looked_for(place, tmp_path, change):
    """By who had them listed and looked at before, when another process has changed them."""
    root, oracle = f"{place}/root", str(tmp_path / "oracle")
    for top in (root, oracle):
        _lay(top)
    fds = {name: directfuse.os_open(f"{root}/{name}", os.O_RDONLY) for name in ("d", "e", "d/s")}
    for _ in range(3):
        assert _all_seen(root) == _all_seen(oracle)
        assert _listed(fds["d"]) == ["f", "s"]
    assert in_fork(lambda: _NAMES[change](f"{root}/d")) == 0
    _NAMES[change](f"{oracle}/d")
    assert _all_seen(root) == _all_seen(oracle)
    assert _listed(fds["d"]) == sorted(os.listdir(f"{oracle}/d"))
    assert _listed(fds["e"]) == sorted(os.listdir(f"{oracle}/e"))
    for fd in fds.values():
        directfuse.close(fd)


def test_what_changes_elsewhere_ends_no_listing_and_no_answer(memfs):
    """Neither names that are made, removed and moved in other directories, nor owners and modes of
    files."""
    root = f"{memfs.mountpoint}/root"
    _lay(root)
    for n in range(200):
        put(f"{root}/d/name-{n:03}", b"")
    fd = directfuse.os_open(f"{root}/d", os.O_RDONLY)

    def trips():
        before = memfs.stats().trips
        assert len(directfuse.listdir(fd)) == 202
        assert directfuse.stat(f"{root}/d/f").st_size == 5
        return memfs.stats().trips - before

    def elsewhere():
        put(f"{root}/e/made", b"x")
        directfuse.chmod(f"{root}/e/made", 0o600)
        directfuse.rename(f"{root}/e/made", f"{root}/moved")
        directfuse.unlink(f"{root}/moved")

    kept = [trips() for _ in range(3)][-1]
    for _ in range(3):
        elsewhere()
        assert trips() == kept
    directfuse.mkdir(f"{root}/e/made")
    directfuse.rmdir(f"{root}/e/made")
    assert trips() <= kept + 2  # attributes: a path may have led through it
    directfuse.unlink(f"{root}/d/name-000")
    put(f"{root}/d/name-000", b"")
    assert trips() > kept
    directfuse.close(fd)


def assert_kept(mount, warm, data):
    """All of the file is read without a trip."""
    before = mount.stats().trips
    assert warm.read(len(data)) == data
    assert mount.stats().trips == before


def _refused(call, *words):
    with pytest.raises(OSError):
        call(*words)


def _check_truncations(mount, point):
    """By names, also where it fails: of the other file everything stays."""
    first, second = Warm(f"{point}/first", numbered(9)), Warm(f"{point}/second", numbered(9))
    directfuse.mkdir(f"{point}/d")
    directfuse.symlink("first", f"{point}/soft")
    for name, size in (("first", 5 * PAGE), ("soft", 3 * PAGE + 5), ("first", 4 * PAGE)):
        directfuse.truncate(f"{point}/{name}", size)
        wanted = numbered(9)[: min(size, 3 * PAGE + 5 if size == 4 * PAGE else size)]
        assert first.read() == wanted.ljust(size, b"\0")
        assert first.read(PAGE, PAGE) == wanted[PAGE : 2 * PAGE]
        assert_kept(mount, second, numbered(9))
    _refused(directfuse.truncate, f"{point}/missing", 0)
    _refused(directfuse.truncate, f"{point}/d", 0)
    assert_kept(mount, second, numbered(9))
    directfuse.close(first.fd)
    directfuse.close(second.fd)


def test_truncate_by_name_ends_what_is_known_of_that_file(memfs):
    _check_truncations(memfs, memfs.mountpoint)


@pytest.mark.parametrize("through", [["kernel_cache"]], indirect=True)
def test_truncate_by_a_path_ends_what_is_known_of_that_file(through):
    mount, _source = through
    _check_truncations(mount, mount.mountpoint)
    path, data = f"{mount.mountpoint}/closed", numbered(9)
    put(path, data)
    assert trips_of_reading(mount, path, data) == 1
    directfuse.truncate(path, 8 * PAGE)
    assert trips_of_reading(mount, path, data[: 8 * PAGE]) == 1


def test_truncate_by_another_name_of_the_file(memfs):
    warm = Warm(f"{memfs.mountpoint}/f", numbered(9))
    other = Warm(f"{memfs.mountpoint}/other", numbered(9))
    directfuse.link(f"{memfs.mountpoint}/f", f"{memfs.mountpoint}/hard")
    directfuse.truncate(f"{memfs.mountpoint}/hard", PAGE + 1)
    assert warm.read() == numbered(9)[: PAGE + 1]
    assert_kept(memfs, other, numbered(9))
    directfuse.close(warm.fd)
    directfuse.close(other.fd)


# ---- without a trip -----------------------------------------------------------------------------


def test_what_is_kept_needs_no_trip(memfs):
    warm = Warm(f"{memfs.mountpoint}/f", numbered(40))
    before = memfs.stats()
    for page in range(40):
        assert warm.read(PAGE, page * PAGE) == b"%04d" % page * (PAGE // 4)
    assert warm.read(100, 3 * PAGE + 50) == (b"0003" * 100)[2:102]
    assert warm.read(PAGE, 40 * PAGE) == b""
    after = memfs.stats()
    assert after.trips == before.trips
    assert after.hits - before.hits == 42
    directfuse.close(warm.fd)


def test_other_processes_need_no_trip_for_it_either(memfs):
    warm = Warm(f"{memfs.mountpoint}/f", numbered(4))
    before = memfs.stats().trips

    def read_all():
        ours = memfs.stats().trips
        assert warm.read() == numbered(4)
        assert memfs.stats().trips == ours

    assert in_fork(read_all) == 0
    assert memfs.stats().trips - before <= 1  # the fork
    directfuse.close(warm.fd)


def test_one_trip_brings_pages_for_many_reads_of_a_sequential_reader(memfs):
    data = numbered(256)
    put(f"{memfs.mountpoint}/f", data)
    fd = directfuse.os_open(f"{memfs.mountpoint}/f", os.O_RDONLY)
    before = memfs.stats().trips
    assert b"".join(directfuse.read(fd, PAGE) for _ in range(256)) == data
    assert memfs.stats().trips - before < 20
    directfuse.close(fd)


def test_a_file_that_is_larger_than_all_room_drives_nothing_out(memfs):
    """Read from end to end, again and again, it would not be found the next time either."""
    put(f"{memfs.mountpoint}/large", b"")
    directfuse.truncate(f"{memfs.mountpoint}/large", 80 << 20)
    warm = Warm(f"{memfs.mountpoint}/f", numbered(64))
    fd = directfuse.os_open(f"{memfs.mountpoint}/large", os.O_RDONLY)
    for _ in range(3):
        for offset in range(0, 80 << 20, 1 << 20):
            assert len(directfuse.pread(fd, 1 << 20, offset)) == 1 << 20
    before = memfs.stats().trips
    assert b"".join(warm.read(PAGE, page * PAGE) for page in range(64)) == numbered(64)
    assert memfs.stats().trips == before
    directfuse.close(fd)
    directfuse.close(warm.fd)


def test_a_batch_of_what_is_kept_needs_no_trip(memfs):
    path = f"{memfs.mountpoint}/f"
    warm = Warm(path, numbered(4))
    pieces = [(warm.fd, page * PAGE, PAGE) for page in range(4)]
    into = [bytearray(PAGE) for _ in pieces]
    before = memfs.stats().trips
    directfuse.read_many(pieces, into=into)
    assert b"".join(into) == numbered(4)
    assert memfs.stats().trips == before
    directfuse.close(warm.fd)


def test_a_listing_that_is_kept_needs_no_trip_for_its_names(memfs):
    for n in range(1000):
        put(f"{memfs.mountpoint}/name-{n:04}", b"")
    for _ in range(3):
        directfuse.listdir(memfs.mountpoint)
    before = memfs.stats()
    assert len(directfuse.listdir(memfs.mountpoint)) == 1000
    after = memfs.stats()
    assert after.trips - before.trips <= 3  # open, fstat, close
    assert after.hits - before.hits >= 2  # the names, and their end


def test_attributes_of_what_is_changed_are_never_old(memfs):
    path = f"{memfs.mountpoint}/f"
    put(path, b"x" * 10)
    fd = directfuse.os_open(path, os.O_RDWR)
    assert directfuse.fstat(fd).st_size == 10
    assert in_fork(lambda: directfuse.truncate(path, 3)) == 0
    assert directfuse.fstat(fd).st_size == 3
    directfuse.pwrite(fd, b"abc", 3)
    assert directfuse.fstat(fd).st_size == 6
    directfuse.close(fd)


@pytest.mark.parametrize("name", ["memfs", "passthrough"])
def test_a_directory_is_closed_without_a_flush(tmp_path, name):
    """As by the kernel, whose directories have none; a program does not wait for it either."""
    source = [str(tmp_path)] if name == "passthrough" else []
    with directfuse.mount([name, *source, str(tmp_path / "mnt")], placement="server") as mount:
        fd = directfuse.os_open(mount.mountpoint, os.O_RDONLY | os.O_DIRECTORY)
        before = mount.stats().trips
        directfuse.close(fd)
        assert mount.stats().trips - before == 1  # it is dropped


@pytest.mark.parametrize("option", ["direct_io", "timeout=0"])
def test_nothing_is_kept_that_the_plugin_does_not_allow(tmp_path, option):
    words = ["memfs", str(tmp_path / "mnt"), "-o", option]
    with directfuse.mount(words, placement="server") as mount:
        warm = Warm(f"{mount.mountpoint}/f", b"x" * PAGE)
        before = mount.stats()
        for _ in range(10):
            warm.read(PAGE)
        assert mount.stats().trips - before.trips == 10
        directfuse.close(warm.fd)


def test_what_changes_behind_the_mount_is_seen_when_the_time_is_over(tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    words = ["passthrough", str(source), str(tmp_path / "mnt")]
    words += ["-o", "attr_timeout=0.2,entry_timeout=0.2"]
    with directfuse.mount(words, placement="server") as mount:
        warm = Warm(f"{mount.mountpoint}/f", b"old!" * PAGE)
        with open(source / "f", "r+b") as file:
            file.write(b"new!" * PAGE)
        until(lambda: warm.read() == b"new!" * PAGE)
        with open(source / "f", "r+b") as file:
            file.truncate(3)
        until(lambda: warm.read() == b"new")
        directfuse.close(warm.fd)


# ---- bounds -------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", ["0", "256K"])
def test_a_small_cache_is_right_too(tmp_path, monkeypatch, size):
    monkeypatch.setenv("DIRECTFUSE_CACHE", size)
    data = numbered(512)
    with directfuse.mount(["memfs", str(tmp_path / "mnt")], placement="server") as mount:
        put(f"{mount.mountpoint}/f", data)
        fd = directfuse.os_open(f"{mount.mountpoint}/f", os.O_RDONLY)
        before = mount.stats()
        for page in [n * 37 % 512 for n in range(1024)]:
            assert directfuse.pread(fd, PAGE, page * PAGE) == data[page * PAGE : (page + 1) * PAGE]
        assert mount.stats().trips - before.trips > 700
        directfuse.close(fd)


@pytest.mark.parametrize("name", ["memfs", "no_module:Notes"])
def test_a_size_of_the_cache_that_is_none_is_refused(tmp_path, monkeypatch, name):
    monkeypatch.setenv("DIRECTFUSE_CACHE", "1g")
    with pytest.raises(directfuse.MountError, match="DIRECTFUSE_CACHE=1g: is no size") as caught:
        directfuse.mount([name, tmp_path / "mnt"], placement="server")
    assert caught.value.errno == errno.EINVAL
    directfuse.mount(["memfs", tmp_path / "mnt"]).unmount()  # inline there is no such cache


def test_a_killed_server_answers_nothing_any_more(tmp_path):
    with directfuse.mount(["memfs", str(tmp_path / "mnt")], placement="server") as mount:
        warm = Warm(f"{mount.mountpoint}/f", b"x" * PAGE)
        os.kill(the_server(), signal.SIGKILL)
        until(lambda: not servers())
        with pytest.raises(OSError) as caught:
            warm.read(PAGE)
        assert caught.value.errno == errno.ENOTCONN
        directfuse.close(warm.fd)
