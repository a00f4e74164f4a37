"""What programs do that have a process to themselves: it works as it would there, and the host is
as it was before. The program is compiled here, against the real libfuse (habits.c)."""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from building import build

import directfuse

from .test_unruly import compiled, text_of


@pytest.fixture(scope="session")
def habits(tmp_path_factory):
    return compiled("habits.c", tmp_path_factory.mktemp("habits") / "habits", "-pie", "-fPIE")


@pytest.fixture
def point(tmp_path):
    return str(tmp_path / "m")


def said_by(program, habit):
    """What it says before it mounts anything, which it then does not."""
    with pytest.raises(directfuse.MountError) as caught:
        directfuse.mount([program, "--before", habit, "--help"], placement="inline")
    return str(caught.value)


def test_children_that_it_has_waited_for_take_no_descriptors(habits, point):
    with directfuse.mount([habits, point]):
        before = len(os.listdir("/proc/self/fd"))
        assert text_of(f"{point}/children") == "100"
        assert len(os.listdir("/proc/self/fd")) < before + 20


def test_children_that_it_has_waited_for_are_no_daemons(habits):
    assert "perhaps to live on in the background" not in said_by(habits, "children")


def test_what_a_child_has_printed_when_it_exits_is_reported(habits):
    said = said_by(habits, "printing child")
    assert "words of a child\nand half a line\nit said: 3" in said


def test_what_a_child_has_printed_when_its_main_returns_is_reported(habits):
    assert "half a line\nit said: 3" in said_by(habits, "returning child")


def test_what_it_has_asked_for_at_its_end_comes_at_its_end(habits):
    """And not at that of the host, when it is no more."""
    said = said_by(habits, "end")
    assert "it said: 0 0\n" in said
    assert "\nsecond 0\nfirst 5\n" in said


@pytest.fixture(scope="session")
def constructed(tmp_path_factory):
    return compiled("sources/constructed.c", tmp_path_factory.mktemp("constructed") / "program")


def host_of_process():
    lines = Path("/proc/self/status").read_text().splitlines()
    ignored = [line for line in lines if line.startswith(("SigIgn", "Umask"))]
    return os.getcwd(), ignored, ctypes.CDLL(None).getenv(b"CONSTRUCTED")


def test_what_a_constructor_does_is_done_to_the_program(constructed, capfd):
    before = host_of_process()
    with pytest.raises(directfuse.MountError, match="returned 7 ") as caught:
        directfuse.mount([constructed, "word"], placement="inline")
    assert "constructed\nmain found /usr 0 1 word\n" in str(caught.value)
    assert host_of_process() == before
    assert capfd.readouterr() == ("", "")


def test_an_end_in_a_constructor_is_reported(constructed, monkeypatch):
    monkeypatch.setenv("CONSTRUCTOR_EXITS", "1")
    with pytest.raises(directfuse.MountError, match="returned 5 "):
        directfuse.mount([constructed], placement="inline")


ENDING_LIBRARY = """
#include <err.h>
#include <stdlib.h>
#include <unistd.h>
static void tell(void) { if (write(1, "heard\\n", 6) < 0) abort(); }
void end_by_exit(void) { atexit(tell); exit(3); }
void end_by_errx(void) { atexit(tell); errx(3, "words"); }
void end_by_quick_exit(void) { at_quick_exit(tell); quick_exit(3); }
"""


def with_library(directory, name="ends"):
    """Its path, and the options that link a program to it."""
    (directory / "ends.c").write_text(ENDING_LIBRARY)
    library = directory / f"lib{name}.so"
    build(directory / "ends.c", library, "-shared", "-fPIC", f"-Wl,-soname,{library.name}")
    linked = ["-Wl,--no-as-needed", f"-L{directory}", f"-l{name}", "-Wl,--as-needed"]
    return os.fspath(library), [*linked, f"-Wl,-rpath,{directory}"]


END = """
import ctypes, directfuse, sys
program, point, library, function = sys.argv[1:]
with directfuse.mount([program, point], placement="inline"):
    pass
ctypes.CDLL(library)[function]()
"""


@pytest.mark.parametrize("function", ["end_by_exit", "end_by_errx", "end_by_quick_exit"])
def test_a_library_that_came_with_a_program_ends_the_host_as_ever(tmp_path, point, function):
    library, linked = with_library(tmp_path)
    program = compiled("habits.c", tmp_path / "habits", "-pie", "-fPIE", *linked)
    done = subprocess.run(
        [sys.executable, "-c", END, program, point, library, function],
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (3, "heard\n"), done.stderr


def test_streams_that_it_opens_anew_stay_those_of_its_log(habits, capfd):
    before = os.fstat(0).st_ino
    said = said_by(habits, "streams")
    assert "words after that\nwords by number\nit said: 1 1 16" in said
    assert (os.fstat(0).st_ino, capfd.readouterr()) == (before, ("", ""))


def test_a_child_opens_its_streams_anew(habits, capfd):
    said = said_by(habits, "streams of a child")
    assert "words after that\nwords by number\nit said: 3" in said
    assert "words for nobody" not in said


def test_a_program_may_have_as_many_arguments_as_anybody_can_give(habits, point):
    with directfuse.mount([habits, point, *["-owords"] * 100000], placement="inline"):
        assert text_of(f"{point}/nothing") == "100002"


def test_a_child_finds_in_environ_what_the_program_has_set(habits):
    assert "found mine\nit said: 1" in said_by(habits, "environment of a child")


def test_a_spawned_child_finds_in_environ_what_the_program_has_set(habits):
    assert "no home mine\nit said: 0 1" in said_by(habits, "environment of a spawned child")


def test_no_signal_comes_of_a_timer(habits, point):
    """SIGALRM, which would end the process."""
    before = signal.signal(signal.SIGALRM, lambda *_: pytest.fail("there is a signal"))
    try:
        with directfuse.mount([habits, point], placement="inline"):
            assert text_of(f"{point}/timer") == "0"
    finally:
        signal.signal(signal.SIGALRM, before)


def test_a_program_that_waits_for_signals_does_not_get_those_of_the_host(habits, point):
    """In a process of its own: a thread of the test runner's would take the signal."""
    host = """
import directfuse, os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
os.kill(os.getpid(), signal.SIGUSR1)
with directfuse.mount(sys.argv[1:], placement="inline"):
    fd = directfuse.os_open(f"{sys.argv[2]}/signals", os.O_RDONLY)
    print(directfuse.pread(fd, 4096, 0).decode())
    directfuse.close(fd)
print(signal.sigtimedwait([signal.SIGUSR1], 0).si_signo == signal.SIGUSR1)
"""
    words = [sys.executable, "-c", host, habits, point]
    run = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (0, "-1 1 -1 1\nTrue\n", "")


def test_names_that_are_made_up_are_names_in_its_own_directory(habits, point, tmp_path):
    with contextlib.chdir(tmp_path), directfuse.mount([habits, point]):
        assert text_of(f"{point}/made up names") == "2 1 1 1 1 5 1"
        assert os.listdir(tmp_path) == []


def test_a_directory_that_is_watched_is_its_own(habits, point, tmp_path):
    with contextlib.chdir(tmp_path), directfuse.mount([habits, point], placement="inline"):
        assert text_of(f"{point}/watch") == "1 1 sub"


def test_what_it_makes_has_the_mode_that_its_own_umask_leaves(habits, point, tmp_path):
    with contextlib.chdir(tmp_path), directfuse.mount([habits, point]):
        assert text_of(f"{point}/modes") == "666 600 600 0 622 604 255"
        assert os.listdir(tmp_path) == []


FORK = """if True:
    import directfuse, os, signal, sys, threading, time
    program, point = sys.argv[1:]
    how = ["-s", "-oattr_timeout=0,entry_timeout=0"]
    mount = directfuse.mount([program, *how, point], placement="inline")
    forked = threading.Event()
    def ask():
        while not forked.is_set():
            directfuse.stat(f"{point}/talkative")
    threads = [threading.Thread(target=ask, daemon=True) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(30):
        pid = os.fork()
        if pid == 0:
            signal.alarm(20)
            directfuse.stat(f"{point}/talkative")
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
    forked.set()
    for thread in threads:
        thread.join()
    mount.unmount()
"""


def test_an_operation_has_as_much_stack_as_behind_the_kernel(habits, point):
    with directfuse.mount([habits, point], placement="server"):
        assert text_of(f"{point}/much stack") == str(5 << 20)


@pytest.mark.parametrize("placement", ["inline", "helper"])
@pytest.mark.parametrize("foreground", [[], ["-f"]], ids=["", "-f"])
def test_a_daemon_stands_in_the_root(habits, point, placement, foreground):
    before = os.getcwd()
    with directfuse.mount([habits, *foreground, point], placement=placement):
        assert text_of(f"{point}/directory") == "/ 0"
    assert os.getcwd() == before


def test_a_fork_waits_for_a_call_in_which_it_prints(habits, point):
    """Else the child would have the call's locks, and nobody to give them back."""
    words = [sys.executable, "-c", FORK, habits, point]
    subprocess.run(words, check=True, timeout=60, stderr=subprocess.DEVNULL)


FORK_WHILE_MOUNTING = """if True:
    import directfuse, os, signal, sys, threading
    program, point = sys.argv[1:]
    def mount(where):
        with directfuse.mount([program, point + where], placement="inline"):
            directfuse.stat(point + where)
    def mount_again(where):
        while True:
            mount(where)
    for where in "ab":
        threading.Thread(target=mount_again, args=[where], daemon=True).start()
    for _ in range(50):
        pid = os.fork()
        if pid == 0:
            signal.alarm(20)
            mount("c")
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
    os._exit(0)
"""


def test_a_child_mounts_though_its_parent_was_at_that(habits, point):
    words = [sys.executable, "-c", FORK_WHILE_MOUNTING, habits, point]
    subprocess.run(words, check=True, timeout=60)


@pytest.mark.parametrize(("spelling", "name"), [("$ORIGIN", "one"), ("${ORIGIN}", "two")])
def test_a_program_finds_the_libraries_that_lie_beside_it(tmp_path, point, spelling, name):
    directory = tmp_path / "its" / "lib"
    directory.mkdir(parents=True)
    (tmp_path / "its" / "bin").mkdir()
    library, linked = with_library(directory, f"beside{name}")
    run_path = f"-Wl,-rpath,/nowhere:{spelling}/../lib"
    place = tmp_path / "its" / "bin" / "habits"
    compiled("habits.c", place, "-pie", "-fPIE", *linked[:-1], run_path)
    (tmp_path / "link").symlink_to(place)
    for program in (place, tmp_path / "link"):
        with directfuse.mount([program, point], placement="inline"):
            assert text_of(f"{point}/nothing") == "nothing"
            assert library in Path("/proc/self/maps").read_text()
