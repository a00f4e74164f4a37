"""Programs that end, replace, signal or block their process: the host lives on, and can mount
again. The program is compiled here, against the real libfuse (unruly.c)."""

import contextlib
import ctypes
import errno
import os
import re
import resource
import signal
import subprocess
import sys
import threading
from pathlib import Path

import needs
import pytest
from building import build, fuse

import directfuse
from directfuse import _paths

from .conftest import open_to_all
from .test_hostile_elf import Image

HERE = Path(__file__).parent


def compiled(source, target, *options):
    return build(HERE / source, target, f"-I{HERE}", *options, *fuse())


@pytest.fixture(scope="session")
def unruly(tmp_path_factory):
    return compiled("unruly.c", tmp_path_factory.mktemp("unruly") / "unruly", "-pie", "-fPIE")


@pytest.fixture
def point(tmp_path):
    return str(tmp_path / "m")


def text_of(path):
    fd = directfuse.os_open(path, os.O_RDONLY)
    try:
        return directfuse.pread(fd, 4096, 0).decode()
    finally:
        directfuse.close(fd)


def running_operation():
    """What fuse_get_context() shows on this thread: NULL, as None, outside of operations."""
    context = ctypes.CDLL(str(_paths.library())).df_highlevel_context
    context.restype = ctypes.c_void_p
    return context()


ENDS = ["exit", "_exit", "quick_exit", "exit_group", "abort", "assert", "raise", "kill"]
ENDS += ["verrx", "error_at_line"]


@pytest.mark.parametrize("deed", ENDS)
def test_an_end_inside_an_op_is_an_error_of_that_call(unruly, point, deed):
    mount = directfuse.mount([unruly, point])
    fd = directfuse.os_open(f"{point}/{deed}", os.O_RDONLY)
    with pytest.raises(OSError) as caught:
        directfuse.pread(fd, 100, 0)
    assert caught.value.errno == errno.EIO
    assert running_operation() is None  # the next one on this thread looks at those around it
    directfuse.close(fd)
    if mount.mounted:
        mount.unmount(lazy=True)
    with directfuse.mount([unruly, point]):
        assert text_of(f"{point}/nothing") == "harmless"


@pytest.mark.parametrize("words", [(), ("--thread",)])
@pytest.mark.parametrize("deed", ["abort", "exit", "nothing"])
def test_destroy_is_not_called_for_who_has_ended_itself(
    unruly, point, tmp_path, monkeypatch, words, deed
):
    """It would wait for what the operation was left with: in C++ often a lock."""
    monkeypatch.setenv("UNRULY_DESTROYED", str(tmp_path / "destroyed"))
    mount = directfuse.mount([unruly, *words, point])
    fd = directfuse.os_open(f"{point}/{deed}", os.O_RDONLY)
    with contextlib.suppress(OSError):
        directfuse.pread(fd, 100, 0)
    directfuse.close(fd)
    mount.unmount()
    assert (tmp_path / "destroyed").exists() == (deed == "nothing")


@pytest.mark.parametrize("deed", ENDS)
def test_an_end_before_the_loop_is_reported(unruly, point, deed):
    with pytest.raises(directfuse.MountError) as caught:
        directfuse.mount([unruly, "--before", deed, point])
    assert caught.value.errno == errno.EIO
    assert "before it mounted" in str(caught.value)
    if deed == "assert":
        assert "a wish" in str(caught.value)
    if deed in ("abort", "assert"):
        assert f"was ended by signal {int(signal.SIGABRT)} before" in str(caught.value)


@pytest.mark.parametrize("deed", ["unmount", "terminate"])
def test_a_program_that_unmounts_itself(unruly, point, deed):
    mount = directfuse.mount([unruly, point])
    assert text_of(f"{point}/{deed}") == "harmless"  # the op itself is answered
    with pytest.raises(FileNotFoundError):
        while True:  # the mount goes at once, or with this very call
            directfuse.stat(point)
    assert not mount.mounted
    mount.unmount(lazy=True)
    with directfuse.mount([unruly, point]):
        assert text_of(f"{point}/nothing") == "harmless"


@pytest.mark.parametrize("deed", ["unmount", "terminate"])
def test_an_unmount_does_not_wait_for_files_of_a_mount_that_ended_itself(unruly, point, deed):
    mount = directfuse.mount([unruly, point])
    fd = directfuse.os_open(f"{point}/{deed}", os.O_RDONLY)
    assert directfuse.pread(fd, 100, 0) == b"harmless"
    with pytest.raises(FileNotFoundError):
        while True:
            directfuse.stat(point)
    with pytest.raises(directfuse.UnmountError) as caught:
        mount.unmount()
    assert caught.value.errno == errno.EBUSY
    assert directfuse.pread(fd, 100, 0) == b"harmless"
    directfuse.close(fd)
    mount.unmount()


@pytest.mark.parametrize("deed", ["exit", "_exit", "unmount", "terminate"])
def test_the_interpreter_ends_with_a_file_of_a_program_that_has_ended(unruly, point, deed):
    done = subprocess.run(
        [sys.executable, "-c", LEFT_OPEN, unruly, point, deed],
        capture_output=True,
        text=True,
        timeout=30,
    )
    ended = f"{point}: its file system has ended itself in the middle of a call (exit, status 7)"
    told = f"{ended}: calls fail\n" if deed.endswith("exit") else ""
    assert (done.returncode, done.stdout, done.stderr) == (0, "ends\n", told)


LEFT_OPEN = """
import directfuse, os, sys, time
program, point, deed = sys.argv[1:]
mount = directfuse.mount([program, point])
fd = directfuse.os_open(f"{point}/{deed}", os.O_RDONLY)
try:
    directfuse.pread(fd, 100, 0)
except OSError:
    assert "exit" in deed
while mount.mounted and deed != "_exit":
    time.sleep(0.001)
print("ends")
"""


@pytest.mark.parametrize(
    ("deed", "said"),
    [("exec", str(errno.EPERM)), ("handler", "1"), ("child", "3"), ("system", "4")],
)
def test_processes_and_signals(unruly, point, deed, said):
    with directfuse.mount([unruly, point]):
        assert text_of(f"{point}/{deed}") == said


@pytest.mark.parametrize(
    ("deed", "said"),
    [("spawn", f"0 1 {int(signal.SIGTERM)}"), ("shells", f"5 {int(signal.SIGTERM)} {os.getcwd()}")],
)
def test_children_of_main_begin_with_no_signal_blocked(unruly, point, deed, said):
    with directfuse.mount([unruly, "--before", deed, point]):
        assert text_of(f"{point}/nothing") == said


def test_a_child_begins_with_the_umask_and_directory_of_the_program(unruly, point):
    before = os.umask(0o27)
    try:
        with directfuse.mount([unruly, point]):
            assert text_of(f"{point}/spawn elsewhere") == "0000\n/etc\n"
        assert os.umask(0o27) == 0o27
    finally:
        os.umask(before)


@pytest.mark.parametrize("what", ["socket", "pipe"])
def test_no_signal_comes_of_words_for_nobody(unruly, point, what):
    before = signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        with directfuse.mount([unruly, point]):
            said = f"-1 {errno.EPIPE} -1 -1 {errno.EPIPE}"
            assert text_of(f"{point}/print to no {what}") == said
        assert signal.SIGPIPE not in signal.sigpending()
        assert signal.SIGPIPE not in signal.pthread_sigmask(signal.SIG_BLOCK, [])
    finally:
        signal.signal(signal.SIGPIPE, before)


def test_ids_root_and_standard_output_of_the_host_stay(unruly, point):
    def process():
        return os.getresuid(), os.getresgid(), os.fstat(sys.__stdout__.fileno()).st_ino

    before = process()
    with directfuse.mount([unruly, point]):
        assert text_of(f"{point}/process") == "-1 -1 -1 1"
    assert process() == before


def test_the_environment_of_the_host_stays(unruly, point):
    libc = ctypes.CDLL(None)
    libc.getenv.restype = ctypes.c_char_p
    before = libc.getenv(b"PATH")
    with directfuse.mount([unruly, point]):
        assert text_of(f"{point}/environment") == "mine /nowhere"
        assert libc.getenv(b"UNRULY_WORD") is None
    assert libc.getenv(b"PATH") == before


def test_limits_names_and_priorities_of_the_host_stay(unruly, point):
    libc = ctypes.CDLL(None)

    def process():
        name = Path("/proc/thread-self/comm").read_text()
        limit = resource.getrlimit(resource.RLIMIT_CORE)
        privileges = libc.prctl(39, 0, 0, 0, 0)  # PR_GET_NO_NEW_PRIVS
        return name, limit, libc.prctl(3), privileges, os.getpriority(os.PRIO_PROCESS, 0)

    before = process()
    with directfuse.mount([unruly, point], placement="inline"):
        assert text_of(f"{point}/what the host is") == "0 0 0 -1 0"
    assert process() == before


@pytest.mark.parametrize(("deed", "said"), [("child", "3"), ("any child", "0 1 3 -1 1")])
def test_children_of_the_host_are_not_reaped(unruly, point, deed, said):
    child = subprocess.Popen([sys.executable, "-c", "raise SystemExit(5)"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    with directfuse.mount([unruly, point]):
        assert text_of(f"{point}/{deed}") == said
    assert child.wait() == 5


@pytest.mark.parametrize(
    ("deed", "words"),
    [
        ("child", "words before exec\nwords of a child"),
        ("spawn", "words of a child"),
        ("print", "words by dprintf\nwords by writev\nwords by letters"),
    ],
)
def test_what_it_and_a_child_print_is_reported(unruly, capfd, deed, words):
    with pytest.raises(directfuse.MountError) as caught:
        directfuse.mount([unruly, "--before", deed, "--help"])
    assert words in str(caught.value)
    assert capfd.readouterr() == ("", "")


def test_what_is_meant_for_the_systems_log_is_reported(unruly, point):
    with pytest.raises(directfuse.MountError) as caught:
        directfuse.mount([unruly, "--before", "syslog", "--help"])
    assert "words for the system's log" in str(caught.value)


def test_a_library_linked_to_libfuse_gets_ours(unruly, point, tmp_path, monkeypatch):
    path = compiled("linked.c", tmp_path / "liblinked.so", "-shared", "-fPIC")
    monkeypatch.setenv("UNRULY_LIBRARY", str(path))
    before = libfuse_mappings()  # pyfuse3, in other tests of this process, has it
    needed = subprocess.run(["readelf", "-d", path], capture_output=True, text=True, check=True)
    wanted = re.search(r"libfuse3\.so\.([34])", needed.stdout)[1]
    with directfuse.mount([unruly, point]):
        assert f"libdf{wanted}.so.{wanted}" in text_of(f"{point}/library")
    assert libfuse_mappings() == before


@pytest.mark.parametrize("linked", [True, False], ids=["linked to libfuse", "not linked to it"])
def test_a_library_that_is_cut_short_is_not_loaded(unruly, point, tmp_path, monkeypatch, linked):
    path = tmp_path / "library.so"
    options = fuse() if linked else []
    build(HERE / "linked.c", path, "-shared", "-fPIC", *fuse(linked=False), *options)
    data = path.read_bytes()
    end = max(offset + size for _, offset, size in Image(data).loads)
    monkeypatch.setenv("UNRULY_LIBRARY", str(path))
    path.write_bytes(data[: end - 1])
    with directfuse.mount([unruly, point]):
        assert "truncated or damaged" in text_of(f"{point}/library")


def libfuse_mappings():
    with open("/proc/self/maps") as maps:
        return [line for line in maps if "libfuse" in line]


def test_a_library_that_brings_libfuse_with_it_is_not_loaded(unruly, point, tmp_path, monkeypatch):
    compiled("linked.c", tmp_path / "liblinked.so", "-shared", "-fPIC")
    (tmp_path / "above.c").write_text(
        "extern void *where_fuse_is(void);\nvoid *p(void) { return where_fuse_is(); }"
    )
    path = tmp_path / "libabove.so"
    command = ["gcc", "-shared", "-fPIC", tmp_path / "above.c", "-o", path, f"-L{tmp_path}"]
    subprocess.run([*command, "-llinked", f"-Wl,-rpath,{tmp_path}"], check=True)
    monkeypatch.setenv("UNRULY_LIBRARY", str(path))
    with directfuse.mount([unruly, point]):
        assert "real libfuse" in text_of(f"{point}/library")


def test_a_program_that_puts_itself_into_the_background(unruly, point):
    with pytest.raises(directfuse.MountError) as caught:
        directfuse.mount([unruly, "--before", "daemon", point])
    assert "-f" in str(caught.value)


@pytest.mark.parametrize("placement", ["inline", "server"])
def test_a_program_that_never_reaches_its_loop(unruly, point, placement):
    with pytest.raises(directfuse.MountError, match="within 1 seconds") as caught:
        directfuse.mount([unruly, "--before", "hang", point], placement=placement, timeout=1)
    assert caught.value.errno == errno.ETIMEDOUT
    with directfuse.mount([unruly, point], placement=placement):
        assert text_of(f"{point}/nothing") == "harmless"


def test_a_thread_that_never_ends(unruly, point):
    for _ in range(3):
        with directfuse.mount([unruly, point]):
            text_of(f"{point}/thread")
    assert threading.active_count() >= 1


# ---- what cannot be loaded ----


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["-no-pie", "-fno-pie"], "position-independent"),
        (["-pie", "-fPIE", "-DTLS"], "thread-local"),
    ],
)
def test_programs_that_cannot_be_loaded(tmp_path, point, options, reason):
    source = (HERE / "unruly.c").read_text()
    if "-DTLS" in options:
        source += "_Thread_local int here = 1; int *tls(void);\nint *tls(void) { return &here; }\n"
    (tmp_path / "it.c").write_text(source)
    path = compiled(tmp_path / "it.c", tmp_path / "it", *options)
    with pytest.raises(directfuse.MountError) as caught:
        directfuse.mount([path, point], placement="inline")
    assert caught.value.errno == errno.ENOEXEC
    assert reason in str(caught.value)


def test_a_program_that_is_no_file_system(point):
    with pytest.raises(directfuse.MountError) as caught:
        directfuse.mount(["/bin/ls", point], placement="inline")
    assert caught.value.errno == errno.ENOEXEC


def test_a_library_that_is_no_file_system(point):
    path = next(Path("/usr/lib").rglob("libz.so.1"), None)
    if path is None:
        pytest.skip("no libz.so.1 here")
    with pytest.raises(directfuse.MountError) as caught:
        directfuse.mount([path, point])
    assert caught.value.errno == errno.ENOEXEC and "libdf3" in str(caught.value)


def descriptors_of(path):
    """This process's descriptors of that file."""
    with os.scandir("/proc/self/fd") as entries:
        return {int(entry.name) for entry in entries if os.path.realpath(entry.path) == path}


def test_files_that_a_program_leaves_open_are_closed_at_its_end(unruly, point):
    before = descriptors_of("/etc/passwd"), descriptors_of("/etc")
    with directfuse.mount([unruly, "--before", "leave open", point]):
        assert text_of(f"{point}/nothing") == "harmless"
        assert len(descriptors_of("/etc/passwd") - before[0]) == 1
        assert len(descriptors_of("/etc") - before[1]) == 1
    assert (descriptors_of("/etc/passwd"), descriptors_of("/etc")) == before


def test_the_directory_of_a_program_keeps_its_number(unruly, point):
    """Another of its threads may be using a path that has it."""
    before = descriptors_of("/")
    with directfuse.mount([unruly, point]):
        (number,) = descriptors_of("/") - before
        text_of(f"{point}/chdir")
        assert os.readlink(f"/proc/self/fd/{number}") == "/etc"


SHELLS = """
import directfuse, sys
with directfuse.mount([sys.argv[1], "--before", "shells", sys.argv[2]], placement="inline"):
    fd = directfuse.os_open(sys.argv[2] + "/nothing", 0)
    print(directfuse.pread(fd, 4096, 0).decode())
    directfuse.close(fd)
"""


def test_a_program_stands_where_it_may_not_search(unruly, tmp_path_factory, tmp_path, unprivileged):
    """As after `sudo -u somebody` in a home directory; its children stand there, too."""
    open_to_all(Path(unruly), tmp_path_factory.getbasetemp())
    here = tmp_path / "closed"
    here.mkdir(0o700)
    done = unprivileged([sys.executable, "-c", SHELLS, unruly, "/m"], cwd=here)
    assert done.stdout == f"5 {int(signal.SIGTERM)} {here}\n", done.stderr


@pytest.mark.parametrize(
    ("deed", "said"),
    [
        ("removed directory", str(errno.ENOENT)),
        ("odd directory", "0"),
        ("named directory", "/etc /etc"),
    ],
)
def test_the_name_of_a_directory_is_told_while_it_has_one(unruly, point, deed, said):
    with directfuse.mount([unruly, point]):
        assert text_of(f"{point}/{deed}") == said


def test_a_file_of_the_hosts_under_a_number_that_a_program_gave_up_stays(unruly, point):
    """It is the same file, opened in the same way."""
    with directfuse.mount([unruly, "--before", "close", point]):
        hosts = [os.open("/etc/passwd", os.O_RDONLY) for _ in range(8)]
    try:
        assert all(os.pread(fd, 1, 0) for fd in hosts)
    finally:
        for fd in hosts:
            os.close(fd)


CLOSES_ALL = """
import directfuse, os, sys

def descriptors():
    open_now = (fd for fd in range(1024) if os.path.lexists(f"/proc/self/fd/{fd}"))
    return {fd: (os.fstat(fd).st_dev, os.fstat(fd).st_ino) for fd in open_now}

held = open("/etc/hostname"), os.pipe(), open("/etc/passwd"), os.open("/", os.O_PATH)
before = descriptors()
with directfuse.mount([sys.argv[1], "--before", "close all", sys.argv[2]], placement="inline"):
    now = descriptors()
    print(all(now.get(fd) == before[fd] for fd in before))
    fd = directfuse.os_open(sys.argv[2] + "/nothing", 0)
    print(directfuse.pread(fd, 4096, 0).decode())
    directfuse.close(fd)
    later = [os.open("/etc/passwd", os.O_RDONLY) for _ in range(8)]
print(all(os.pread(fd, 1, 0) for fd in later))
"""


def test_descriptors_of_the_host_stay(unruly, point):
    """The program closes all there are, as daemons do; its own it has closed."""
    words = [sys.executable, "-c", CLOSES_ALL, unruly, point]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("True\n1 1 -1\nTrue\n", "")


@needs.run
@pytest.mark.parametrize("deed", ["unmount", "exit"])
def test_a_run_says_what_an_end_by_itself_has_cost(unruly, point, deed):
    script = f'cat {point}/{deed}; while [ -e "$0" ]; do :; done'
    words = ["run", "-m", f"{unruly} -o attr_timeout=0 {point}", "--", "/bin/sh", "-c", script]
    done = subprocess.run(
        [sys.executable, "-m", "directfuse", *words, point],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    ended = "its file system ended by itself before the programs" in done.stderr
    perhaps = "perhaps not all was written" in done.stderr
    assert (ended, perhaps) == (deed == "unmount", deed == "exit"), done.stderr


def test_a_run_does_not_begin_without_one_of_its_file_systems(unruly, point, tmp_path):
    """What programs would write there came to what the mount covers."""
    environ = {f"UNRULY_{what}": str(tmp_path / what) for what in ("TOLD", "DESTROYED")}
    mounts = [f"-m{unruly} --before 'end when told' {point}"]
    mounts += [f"-m{unruly} --before outlive {point}2"]
    run = subprocess.run(
        [sys.executable, "-m", "directfuse", "run", *mounts, "--", "true"],
        env=os.environ | environ,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "has ended before" in run.stderr
    assert run.returncode == 125
