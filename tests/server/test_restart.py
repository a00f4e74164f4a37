"""restart="on-failure": a server that dies is started again, and its clients go on."""

import errno
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import directfuse

from .forks import begin_fork, ended, in_fork, meanwhile
from .test_lives import point, servers, until  # noqa: F401
from .test_serve import listens, runtime, serve  # noqa: F401
from .test_trouble import fails, said  # noqa: F401


def parent_of(pid):
    """0: it has ended."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def pair():
    """Process ids (keeper, server). Of one look: at the next one the server may have died."""
    found = []

    def look():
        pids = servers()
        found[:] = [(parent_of(pid), pid) for pid in pids if parent_of(pid) in pids]
        return found

    until(look)
    return found[0]


@pytest.fixture
def tree(tmp_path):
    source = tmp_path / "source"
    (source / "sub").mkdir(parents=True)
    for number in range(20):
        (source / f"sub/{number}").write_bytes(b"%d" % number * 1000)
    (source / "link").symlink_to("sub/3")
    return source


@pytest.fixture
def kept(tree, point):  # noqa: F811
    """A read-only mount of the tree that is started again."""
    words = ["passthrough", "-o", "ro", str(tree), point]
    with directfuse.mount(words, placement="server", restart="on-failure") as mount:
        yield mount
    until(lambda: not servers())


def has_segment(keeper):
    """It has heard of the server, so that it can start the next one."""
    files = Path(f"/proc/{keeper}/fd").iterdir()
    return any(os.readlink(file).startswith("/memfd:directfuse ") for file in files)


def kill_server():
    """Its process id. It is gone when this returns: who looks for the next one would find it dying,
    and it is gone when the next signal is sent to it."""
    _, server = pair()
    os.kill(server, signal.SIGKILL)
    until(lambda: not parent_of(server))
    return server


def test_open_files_positions_and_processes_go_on(kept, point, said):  # noqa: F811
    fd = directfuse.os_open(f"{point}/sub/7", os.O_RDONLY)
    directory = directfuse.os_open(f"{point}/sub", os.O_RDONLY | os.O_DIRECTORY)
    by_link = directfuse.os_open(f"{point}/link", os.O_RDONLY)
    inside = directfuse.os_open("8", os.O_RDONLY, dir_fd=directory)
    assert directfuse.read(fd, 10) == b"7" * 10
    server = kill_server()
    assert directfuse.read(fd, 10) == b"7" * 10  # waits for the next one
    assert directfuse.lseek(fd, 0, os.SEEK_CUR) == 20
    assert directfuse.pread(by_link, 3, 0) == b"333"
    assert directfuse.pread(inside, 3, 0) == b"888"
    assert len(directfuse.listdir(directory)) == 20
    assert in_fork(lambda: directfuse.lseek(fd, 5, os.SEEK_CUR)) == 0
    assert directfuse.lseek(fd, 0, os.SEEK_CUR) == 25
    for number in (fd, directory, by_link, inside):
        directfuse.close(number)
    until(lambda: said())
    assert len(said()) == 1 and "was killed and was started again" in said()[0]
    assert pair()[1] != server


def test_a_child_keeps_what_its_parent_closes(kept, point):  # noqa: F811
    """Which process has which file is known to the next server."""
    fd = directfuse.os_open(f"{point}/sub/1", os.O_RDONLY)
    ready, go = os.pipe()

    def child():
        os.read(ready, 1)
        assert directfuse.pread(fd, 2, 0) == b"11"

    pid = begin_fork(child)
    kill_server()
    directfuse.close(fd)
    os.write(go, b"x")
    assert ended(pid) == 0
    os.close(ready)
    os.close(go)


def test_a_client_that_ends_meanwhile_leaves_nothing(kept, point):  # noqa: F811
    server = pair()[1]

    def child():
        directfuse.os_open(f"{point}/sub/1", os.O_RDONLY)
        os.kill(server, signal.SIGKILL)

    assert in_fork(child) == 0
    assert directfuse.listdir(f"{point}/sub")  # the fixture unmounts: EBUSY if it had left a file


@pytest.mark.timeout(300)
@pytest.mark.parametrize("rounds", [2, pytest.param(40, marks=pytest.mark.sweep)])
def test_killed_at_any_instant_nobody_reads_anything_wrong(tree, tmp_path, rounds):
    """Four deaths for each mount: the fifth and sixth would be too many in a minute."""
    for number in range(rounds):
        where = f"{tmp_path}/mnt{number}"
        words = ["passthrough", "-o", "ro", str(tree), where]
        with directfuse.mount(words, placement="server", restart="on-failure"):
            over = threading.Event()
            wrong = []
            work = (where, over, wrong)
            threads = [threading.Thread(target=read_all, args=work) for _ in range(2)]

            def child(where=where, wrong=wrong):
                read_all(where, None, wrong, 60)
                assert not wrong

            with meanwhile(child):
                for thread in threads:
                    thread.start()
                for death in range(4):
                    time.sleep((number * 13 + death * 7) % 29 / 1000)
                    kill_server()
                over.set()
                for thread in threads:
                    thread.join(60)
            assert not wrong
        until(lambda: not servers())


def read_all(where, over, wrong, rounds=10**9):
    try:
        for _ in range(rounds):
            if over and over.is_set():
                return
            names = sorted(directfuse.listdir(f"{where}/sub"), key=int)
            assert names == [str(number) for number in range(20)]
            for name in names[::7]:
                fd = directfuse.os_open(f"{where}/sub/{name}", os.O_RDONLY)
                size = directfuse.fstat(fd).st_size
                assert size == 1000 * len(name)
                assert directfuse.read(fd, size) == name.encode() * 1000
                directfuse.close(fd)
    except (AssertionError, OSError) as error:
        wrong.append(error)


def test_a_crash_is_asked_for_once_more_and_then_refused(point, moody, said):  # noqa: F811
    words = [moody, "-o", "ro", point]
    with directfuse.mount(words, placement="server", restart="on-failure"):
        one = directfuse.os_open(f"{point}/one", os.O_RDONLY)
        crash = directfuse.os_open(f"{point}/crash", os.O_RDONLY)
        fails(lambda: directfuse.read(crash, 1), errno.EIO)
        assert directfuse.read(one, 10) == b"one"
        directfuse.close(crash)
        directfuse.close(one)
        until(lambda: said())
    assert "crashed in its file system (Segmentation fault) and was started again" in said()[0]


def reads_though_it_ends(where, once):
    """A read in the middle of which the file system ends itself, once."""
    fd = directfuse.os_open(f"{where}/one", os.O_RDONLY)
    once.touch()
    assert directfuse.read(fd, 10) == b"one" and not once.exists()
    directfuse.close(fd)


def test_a_file_system_that_ends_itself_is_started_again(point, moody, tmp_path, said):  # noqa: F811
    once = tmp_path / "once"
    words = [moody, "-o", f"ro,dies=abort,once={once}", point]
    with directfuse.mount(words, placement="server", restart="on-failure"):
        reads_though_it_ends(point, once)
        until(lambda: said())
    assert "crashed in its file system (Aborted) and was started again" in said()[0]


def test_the_program_of_a_helper_is_started_again(point, moody, tmp_path, said):  # noqa: F811
    once, program = tmp_path / "once", tmp_path / "script"  # a script cannot be loaded
    program.write_text(f'#!/bin/sh\nexec {moody} "$@"\n')
    program.chmod(0o755)
    words = [program, "-o", f"ro,once={once}", point]
    with directfuse.mount(words, placement="server", restart="on-failure"):
        reads_though_it_ends(point, once)
        until(lambda: said())
    assert len(said()) == 1 and "was started again" in said()[0]


def test_it_gives_up_and_says_so(tree, point, said):  # noqa: F811
    words = ["passthrough", "-o", "ro", str(tree), point]
    mount = directfuse.mount(words, placement="server", restart="on-failure")
    fd = directfuse.os_open(f"{point}/sub/1", os.O_RDONLY)
    for _ in range(6):
        assert directfuse.pread(fd, 1, 0) == b"1"
        kill_server()
    fails(lambda: directfuse.pread(fd, 1, 0), errno.ENOTCONN)
    fails(lambda: directfuse.close(fd), errno.ENOTCONN)  # it is closed all the same
    mount.unmount()
    until(lambda: not servers())
    until(lambda: "calls end in ENOTCONN" in said()[-1])


def test_without_its_keeper_a_server_is_as_any_other(tree, point):  # noqa: F811
    words = ["passthrough", "-o", "ro", str(tree), point]
    mount = directfuse.mount(words, placement="server", restart="on-failure")
    keeper, server = pair()
    os.kill(keeper, signal.SIGKILL)
    assert directfuse.listdir(f"{point}/sub")
    os.kill(server, signal.SIGKILL)
    fails(lambda: directfuse.listdir(f"{point}/sub"), errno.ENOTCONN)
    mount.unmount()


def test_what_can_be_written_is_refused_with_the_reason(point):  # noqa: F811
    with pytest.raises(directfuse.MountError) as caught:
        directfuse.mount(["memfs", point], placement="server", restart="on-failure")
    assert caught.value.errno == errno.EROFS and "-o ro" in str(caught.value)
    until(lambda: not servers())
    with pytest.raises(TypeError, match="placement='server'"):
        directfuse.mount(["memfs", point], restart="on-failure")
    with pytest.raises(ValueError, match="on-failure"):
        directfuse.mount(["memfs", point], placement="server", restart="always")


def test_a_named_server_is_started_again(serve, runtime, tree, tmp_path):  # noqa: F811
    where = tmp_path / "mnt"
    server = serve(f"passthrough -o ro {tree} {where}", "kept", "--restart", "on-failure")
    until(lambda: listens(runtime / "kept.socket"), 20)
    with directfuse.mount("@kept"):
        fd = directfuse.os_open(f"{where}/sub/2", os.O_RDONLY)
        kill_server()
        assert directfuse.pread(fd, 2, 0) == b"22"
        directfuse.close(fd)
    with directfuse.mount("@kept"):  # who comes later joins the next one
        assert directfuse.listdir(f"{where}/sub")
    server.send_signal(signal.SIGTERM)
    _, words = server.communicate(timeout=20)
    assert "was killed: started again (1 of 5)" in words
    until(lambda: not servers())


MANY = """if True:
    import os
    (opened, tell), (over, go) = os.pipe(), os.pipe()
    for number in range(100):
        if os.fork() == 0:
            os.close(go)
            os.close(opened)
            fd = os.open(f"{where}/sub/3", os.O_RDONLY)
            os.write(tell, b"x")
            os.read(over, 1)
            os.write(tell, os.pread(fd, 1, 0))
            os._exit(0)
    os.close(tell)
    assert sum(len(os.read(opened, 1)) for _ in range(100)) == 100
    os.kill({server}, 9)
    os.close(go)
    assert b"".join(os.read(opened, 1) for _ in range(100)) == 100 * b"3"
"""


def test_more_processes_go_on_than_a_process_may_have_descriptors(
    serve,  # noqa: F811
    runtime,  # noqa: F811
    tree,
    tmp_path,
):
    """The limit is the server's alone: of the tests that came before, more may be open here."""
    where = tmp_path / "mnt"
    options = ("--restart", "on-failure")
    through = ("prlimit", "--nofile=64:")
    server = serve(f"passthrough -o ro {tree} {where}", "kept", *options, through=through)
    until(lambda: listens(runtime / "kept.socket"), 20)
    script = MANY.format(where=where, server=pair()[1])
    run = [sys.executable, "-m", "directfuse", "run", "-m", "@kept", "--", sys.executable]
    done = subprocess.run([*run, "-c", script], timeout=60, capture_output=True, text=True)
    server.send_signal(signal.SIGTERM)
    _, words = server.communicate(timeout=20)
    assert (done.returncode, done.stderr) == (0, "")
    assert "was killed: started again (1 of 5)" in words


def test_a_server_that_cannot_be_started_again_is_said(serve, runtime, tree, tmp_path):  # noqa: F811
    command = f"passthrough -o ro {tree} {tmp_path / 'mnt'}"
    server = serve(command, "kept", "--restart", "on-failure")
    until(lambda: listens(runtime / "kept.socket"), 20)
    keeper, _ = pair()
    until(lambda: has_segment(keeper))
    resource.prlimit(keeper, resource.RLIMIT_NOFILE, (3, 3))
    kill_server()
    _, words = server.communicate(timeout=20)
    assert "the mount server cannot be started: Too many open files: calls fail\n" in words


@pytest.mark.parametrize("way", ["option", "configuration"])
def test_programs_of_a_run_go_on(moody, tmp_path, way):
    once, where = tmp_path / "once", tmp_path / "mnt"
    command = f"{moody} -o ro,once={once} {where}"
    if way == "option":
        words = ["--restart", "on-failure", "-m", command]
    else:
        config = tmp_path / "mounts.toml"
        config.write_text(f'restart = "on-failure"\n[[mount]]\ncommand = "{command}"\n')
        words = ["--config", str(config)]
    script = f"exec 5<{where}/one; touch {once}; cat <&5; cat {where}/two; ls {once}"
    run = subprocess.run(
        [sys.executable, "-m", "directfuse", "run", *words, "--", "sh", "-c", script],
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert run.stdout == "onetwo" and "cannot access" in run.stderr
    lines = [line for line in run.stderr.splitlines() if line.startswith("directfuse:")]
    assert len(lines) == 1
    assert "crashed in its file system (Segmentation fault): started again (1 of 5)" in lines[0]
