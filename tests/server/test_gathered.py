"""Writes that a mount server keeps for a file system that wants them gathered
(FUSE_CAP_WRITEBACK_CACHE): what it is asked for and when, what others see meanwhile, what is lost
with whom. Where Linux can be asked, a kernel mount of the same program says what is right.
"""

import contextlib
import errno
import itertools
import os
import signal
import subprocess
import sys

import pytest
from conformance.mounts import MNT_DETACH, mounted, umount

import directfuse

from .built import built
from .forks import begin_fork, ended, expect, in_fork
from .test_lives import servers, the_server, until

RUN = [sys.executable, "-m", "directfuse", "run", "-m"]
PAGE = 4096
MIB = 1 << 20

KILLS = [12, pytest.param(400, marks=pytest.mark.sweep)]


@pytest.fixture(scope="module")
def gatherer(tmp_path_factory):
    """The path of the program."""
    return built("gatherer", tmp_path_factory)


class World:
    """A mount of the program: `os` reaches it, `source` is what it shows."""

    def __init__(self, area, functions, more=""):
        self.os = functions
        self.point = str(area / "mnt")
        self.source = area / "source"
        self.log = area / "log"
        self.failing = area / "fail"
        self.seen = 0
        self.source.mkdir()
        self.options = f"root={self.source},log={self.log},fail={self.failing}{more}"

    def open(self, name="a", flags=os.O_RDWR | os.O_CREAT):
        return (getattr(self.os, "os_open", None) or self.os.open)(f"{self.point}/{name}", flags)

    def asked(self):
        """What the program was asked for since the last time; times the kernel tells when it
        likes."""
        lines = [line for line in self.log.read_text().splitlines() if line != "utimens"]
        new, self.seen = lines[self.seen :], len(lines)
        return new

    def fail(self, number):
        self.failing.write_text(str(number))

    def content(self, name="a"):
        return (self.source / name).read_bytes()


@contextlib.contextmanager
def served(program, area, more=""):
    world = World(area, directfuse, more)
    with directfuse.mount([program, world.point, "-o", world.options], placement="server"):
        assert world.asked() == ["init gathered"]
        yield world


@contextlib.contextmanager
def on_linux(program, area, more=""):
    if not os.access("/dev/fuse", os.R_OK | os.W_OK) or os.geteuid() != 0:
        pytest.skip("needs root and /dev/fuse")
    world = World(area, os, more)
    os.mkdir(world.point)
    daemon = subprocess.Popen([program, "-f", "-s", "-o", world.options, world.point])
    try:
        until(lambda: mounted(world.point) and world.log.exists() and world.log.read_text())
        assert world.asked() == ["init gathered"]
        yield world
    finally:
        if mounted(world.point):
            umount(world.point, MNT_DETACH)  # a case that has failed may have it open
        daemon.terminate()
        daemon.wait()


PLACES = {"kernel": on_linux, "server": served}


@pytest.fixture(params=PLACES)
def world(request, gatherer, tmp_path):
    with PLACES[request.param](gatherer, tmp_path) as world:
        yield world


@pytest.fixture
def server(gatherer, tmp_path):
    with served(gatherer, tmp_path) as world:
        yield world


# ---- what the file system is asked for, and when -------------------------------------------------


def test_small_writes_arrive_together_at_fsync(world):
    fd = world.open()
    for number in range(512):
        assert world.os.pwrite(fd, b"%04d" % number * (PAGE // 4), number * PAGE) == PAGE
    assert world.asked() == []
    world.os.fsync(fd)
    assert world.asked() == [
        f"write {MIB} 0 gathered",
        f"write {MIB} {MIB} gathered",
        "fsync",
    ]
    assert world.content() == b"".join(b"%04d" % n * (PAGE // 4) for n in range(512))
    world.os.close(fd)


def test_a_page_that_is_written_again_and_again_arrives_once(world):
    fd = world.open()
    for number in range(100):
        world.os.pwrite(fd, bytes([number]) * PAGE, PAGE)
    world.os.close(fd)
    assert world.asked()[:2] == [f"write {PAGE} {PAGE} gathered", "flush"]
    assert world.content() == bytes(PAGE) + bytes([99]) * PAGE


def test_appends_arrive_at_close_where_they_belong(world):
    (world.source / "a").write_bytes(b"there ")
    fd = world.open(flags=os.O_WRONLY | os.O_APPEND)
    world.os.write(fd, b"and ")
    world.os.write(fd, b"back")
    assert world.asked() == []
    assert world.os.fstat(fd).st_size == 14
    world.os.close(fd)
    assert world.content() == b"there and back"


def test_a_write_in_sync_is_not_kept_inline(gatherer, tmp_path):
    world = World(tmp_path, directfuse)
    with directfuse.mount([gatherer, world.point, "-o", world.options], placement="inline"):
        fd = world.open()
        directfuse.pwrite(fd, b"now", 0)
        assert world.asked() == ["init plain", "write 3 0"]
        directfuse.close(fd)


def test_what_does_not_fit_is_written_meanwhile(gatherer, tmp_path, monkeypatch):
    monkeypatch.setenv("DIRECTFUSE_CACHE", "1M")
    with served(gatherer, tmp_path) as world:
        fd = world.open()
        data = b"".join(b"%04d" % n * (PAGE // 4) for n in range(1000))
        for at in range(0, len(data), PAGE):
            directfuse.pwrite(fd, data[at : at + PAGE], at)
        kept = 1000 * PAGE - sum(int(line.split()[1]) for line in world.asked() if "write" in line)
        assert 0 < kept <= MIB // 5
        assert directfuse.pread(fd, len(data), 0) == data
        directfuse.close(fd)
        assert world.content() == data


def _copy(world, fd):
    other = world.open("copy")
    world.os.copy_file_range(fd, other, PAGE)
    world.os.close(other)


@pytest.mark.parametrize(
    "look",
    [
        lambda w, fd: w.os.close(w.open(flags=os.O_RDONLY | os.O_DIRECT)),
        lambda w, fd: w.os.posix_fallocate(fd, 0, 3 * PAGE),
        lambda w, fd: w.os.lseek(fd, 0, os.SEEK_DATA),
        lambda w, fd: w.os.truncate(f"{w.point}/a", 2 * PAGE),
        lambda w, fd: w.os.ftruncate(fd, 2 * PAGE),
        lambda w, fd: w.os.close(w.os.dup(fd)),
        _copy,
        lambda w, fd: w.os.chmod(f"{w.point}/a", 0o600),
    ],
    ids=["O_DIRECT", "fallocate", "SEEK_DATA", "truncate", "ftruncate", "close", "copy", "chmod"],
)
def test_it_arrives_before_the_file_is_looked_at_in_another_way(server, look):
    fd = server.open()
    directfuse.pwrite(fd, b"x" * PAGE, 0)
    assert server.asked() == []
    look(server, fd)
    assert server.asked()[0] == f"write {PAGE} 0 gathered"
    assert server.content()[:PAGE] == b"x" * PAGE
    directfuse.close(fd)


@pytest.mark.parametrize("how", ["os.fsync(fd)", "os.sync()", "libc.syncfs(fd)", "m.flush()"])
def test_programs_of_a_run_can_ask_for_it(gatherer, tmp_path, how):
    world = World(tmp_path, os)
    script = f"""if True:
        import ctypes, mmap, os
        libc = ctypes.CDLL(None)
        fd = os.open({world.point + "/a"!r}, os.O_RDWR | os.O_CREAT)
        os.pwrite(fd, b"x" * 4096, 0)
        m = mmap.mmap(fd, 4096) if "flush" in {how!r} else None
        if m:
            m[:1] = b"y"
        before = open({str(world.log)!r}).read().count("write")
        {how}
        after = open({str(world.log)!r}).read().count("write")
        assert after == before + 1
    """
    command = f"{gatherer} {world.point} -o {world.options}"
    subprocess.run(
        [*RUN, command, "--", sys.executable, "-c", script],
        check=True,
        timeout=60,
    )


def test_what_is_truncated_by_an_open_does_not_come_back(world):
    fd = world.open()
    world.os.pwrite(fd, b"x" * 3 * PAGE, 0)
    other = world.open(flags=os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    assert world.os.fstat(fd).st_size == 0
    world.os.pwrite(fd, b"end", 2)
    assert world.os.stat(f"{world.point}/a").st_size == 5
    world.os.close(other)
    world.os.close(fd)
    assert world.content() == b"\0\0end"


def test_what_execve_closes_is_flushed_first(gatherer, tmp_path):
    """By a program of a run, and by one that has a kernel mount."""
    script = """if True:
        import os, sys
        fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
        os.write(fd, b"here")
        os.execvp("cat", ["cat", sys.argv[2]])
    """

    def asked(world, *through):
        command = [*through, sys.executable, "-c", script, f"{world.point}/a", str(world.log)]
        lines = subprocess.check_output(command, text=True, timeout=60).splitlines()
        return [line for line in lines if line not in ("utimens", "release")]

    wanted = ["init gathered", "write 4 0 gathered", "flush"]
    (tmp_path / "run").mkdir()
    world = World(tmp_path / "run", os)
    mount = f"{gatherer} {world.point} -o {world.options}"
    assert asked(world, *RUN, mount, "--") == wanted
    (tmp_path / "kernel").mkdir()
    with on_linux(gatherer, tmp_path / "kernel") as world:
        assert asked(world) == wanted


# ---- what others see -----------------------------------------------------------------------------


def test_size_time_and_bytes_are_those_of_the_last_write_for_everybody(world):
    fd = world.open()
    world.os.pwrite(fd, b"x" * 10_000, 0)
    world.os.pwrite(fd, b"y" * 10, 20_000)
    kept = world.os.fstat(fd)
    assert kept.st_size == 20_010
    other = world.open(flags=os.O_RDONLY)
    assert world.os.fstat(other).st_size == 20_010
    assert world.os.pread(other, 30_000, 5_000) == b"x" * 5_000 + bytes(10_000) + b"y" * 10
    assert world.os.stat(f"{world.point}/a").st_size == 20_010
    world.os.close(other)
    world.os.close(fd)
    assert world.os.stat(f"{world.point}/a").st_mtime_ns == kept.st_mtime_ns


def test_other_processes_see_it_at_once(server):
    fd = server.open()
    directfuse.pwrite(fd, b"x" * 5000, 0)

    def look():
        other = server.open(flags=os.O_RDWR)
        expect(directfuse.pread(other, 9000, 0), b"x" * 5000)
        directfuse.pwrite(other, b"theirs", 4997)
        os._exit(0)  # closes it, as the kernel would

    assert in_fork(look) == 0
    assert directfuse.pread(fd, 9000, 4990) == b"x" * 7 + b"theirs"
    directfuse.close(fd)
    assert server.content() == b"x" * 4997 + b"theirs"


@pytest.mark.parametrize("place", PLACES)
def test_two_files_of_one_number_are_two_files(place, gatherer, tmp_path):
    """A file system that shows several others, such as passthrough_ll, may have two."""
    with PLACES[place](gatherer, tmp_path, ",number=7") as world:
        one, two = world.open("a"), world.open("b")
        for fd in one, two:
            world.os.pwrite(fd, b"x" * 100, 0)
        world.os.truncate(f"{world.point}/a", 10)
        for fd in two, one:
            world.os.pwrite(fd, b"y", 0)
        world.os.close(world.open("b", os.O_WRONLY | os.O_TRUNC))
        assert [world.os.fstat(fd).st_size for fd in (one, two)] == [10, 0]
        for fd in one, two:
            world.os.close(fd)
    assert world.content("a") == b"y" + b"x" * 9
    assert world.content("b") == b""


def test_names_may_change_meanwhile(world):
    fd = world.open()
    world.os.pwrite(fd, b"data", 0)
    world.os.rename(f"{world.point}/a", f"{world.point}/b")
    world.os.pwrite(fd, b"more", 4)
    world.os.close(fd)
    assert world.content("b") == b"datamore"
    fd = world.open("b")
    world.os.pwrite(fd, b"gone", 0)
    world.os.unlink(f"{world.point}/b")
    assert world.os.pread(fd, 10, 0) == b"gonemore"
    world.os.close(fd)
    until(lambda: not list(world.source.iterdir()))  # the kernel releases it a moment later


# ---- errors that come late -----------------------------------------------------------------------


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
def test_each_description_is_told_of_a_late_error_once_by_fsync(world, number):
    one, two = world.open(), world.open()
    assert world.os.pwrite(one, b"lost", 0) == 4
    world.fail(number)
    for fd in one, two:
        with pytest.raises(OSError) as caught:
            world.os.fsync(fd)
        assert caught.value.errno == number
        world.os.fsync(fd)
    world.failing.unlink()
    later = world.open()
    world.os.fsync(later)
    for fd in one, two, later:
        world.os.close(fd)


def test_a_late_error_is_told_by_close(world):
    fd = world.open()
    world.os.pwrite(fd, b"lost", 0)
    world.fail(errno.ENOSPC)
    with pytest.raises(OSError) as caught:
        world.os.close(fd)
    assert caught.value.errno == errno.ENOSPC


def test_fsync_tells_what_a_close_of_another_descriptor_has_told(world):
    fd = world.open()
    world.os.pwrite(fd, b"lost", 0)
    world.fail(errno.EIO)
    with pytest.raises(OSError, match="Input/output"):
        world.os.close(world.os.dup(fd))
    world.failing.unlink()
    world.os.close(world.os.dup(fd))
    with pytest.raises(OSError, match="Input/output"):
        world.os.fsync(fd)
    world.os.fsync(fd)
    world.os.close(fd)


def test_the_end_of_a_child_takes_no_error_away(gatherer, tmp_path):
    world = World(tmp_path, os)
    script = f"""if True:
        import errno, os
        fd = os.open({world.point + "/a"!r}, os.O_RDWR | os.O_CREAT)
        os.pwrite(fd, b"lost", 0)
        open({str(world.failing)!r}, "w").write(str(errno.EIO))
        if (child := os.fork()) == 0:
            os._exit(0)
        os.waitpid(child, 0)
        os.unlink({str(world.failing)!r})
        try:
            os.fsync(fd)
        except OSError as error:
            os._exit(error.errno)
    """
    command = f"{gatherer} {world.point} -o {world.options}"
    done = subprocess.run([*RUN, command, "--", sys.executable, "-c", script], timeout=60)
    assert done.returncode == errno.EIO


# ---- who ends ------------------------------------------------------------------------------------


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kills", KILLS)
def test_a_client_that_is_killed_loses_nothing_that_was_answered(server, kills):
    """After its n-th write: it says so when that has been answered, and dies at the next."""
    for count in range(1, kills + 1):
        read_end, write_end = os.pipe()

        def write_on(name=f"f{count}", told=write_end):
            fd = server.open(name)
            for number in itertools.count():
                directfuse.pwrite(fd, b"%08d" % number, number * 8)
                os.write(told, b"x")

        pid = begin_fork(write_on)
        os.close(write_end)
        for _ in range(count):
            assert os.read(read_end, 1) == b"x"
        os.kill(pid, signal.SIGKILL)
        assert ended(pid) == -signal.SIGKILL
        with open(read_end, "rb") as rest:
            answered = count + len(rest.read())
        wanted = b"".join(b"%08d" % number for number in range(answered))
        until(lambda wanted=wanted, n=count: server.content(f"f{n}").startswith(wanted))


def test_what_fsync_has_answered_for_outlives_the_server(server):
    fd = server.open()
    directfuse.pwrite(fd, b"kept", 0)
    directfuse.fsync(fd)
    directfuse.pwrite(fd, b"later", 4)
    os.kill(the_server(), signal.SIGKILL)
    with pytest.raises(OSError):
        while True:
            directfuse.pwrite(fd, b"x", 4)
    with contextlib.suppress(OSError):
        directfuse.close(fd)
    assert server.content().startswith(b"kept")


def test_the_end_of_the_last_client_hands_over_what_it_wrote(gatherer, tmp_path):
    world = World(tmp_path, directfuse)

    def write_and_go():
        directfuse.mount([gatherer, world.point, "-o", world.options], placement="server")
        directfuse.pwrite(world.open(), b"x" * 100_000, 0)
        os.kill(os.getpid(), signal.SIGKILL)

    assert in_fork(write_and_go) == -signal.SIGKILL
    until(lambda: (world.source / "a").stat().st_size == 100_000)
    until(lambda: not servers())
    assert world.content() == b"x" * 100_000
