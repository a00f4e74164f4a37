"""Programs whose files are in a mount: the same output and the same status as in a plain directory,
nothing at the real path, and every call that concerns the mount done by us."""

import json
import os
import shutil
import subprocess
import sys
from itertools import starmap

import pytest

from .conftest import PROGRAMS, environment
from .mount_scripts import MOUNT_SCRIPTS
from .scripts import SCRIPTS

#: Long ones, and what another one shows too.
_SWEEP = {
    "asyncio", "background", "crash", "descriptors", "directory as a program", "environment",
    "git", "gzip", "here document", "killed", "limited descriptors", "make", "multiprocessing",
    "no environment", "not a program", "not executable", "not found", "pipeline", "script loop",
    "script of a script", "script with an argument", "sed and awk", "session",
    "signals of python", "socket", "sqlite", "status", "tar", "terminated", "text", "threads",
    "timeout", "trap", "true", "python shelve and dbm", "archives", "git branches",
    "multiprocessing with a file", "compile", "position-dependent program", "missing interpreter",
    "python", "subprocess", "sqlite rollback", "compressors", "script",
    "script without a first line", "find and xargs", "waitid without a child",
}  # fmt: skip

_ALL = MOUNT_SCRIPTS | {
    (f"{name} of the program" if name in MOUNT_SCRIPTS else name): script
    for name, script in SCRIPTS.items()
    if name not in ("proc", "perl")  # they show where they run, or how they were started
}

_PARAMS = [pytest.param(name, marks=pytest.mark.sweep) if name in _SWEEP else name for name in _ALL]


#: What a script needs beside coreutils, tar, gzip, gcc, perl, Python and git. Without it, it would
#: fail in the same way in both places, and show nothing.
_NEEDS = {
    "access control lists": ("setfacl",),
    "archives": ("cpio", "busybox"),
    "compressors": ("xz", "zstd"),
    "editors": ("ed",),
    "locks": ("flock",),
    "sqlite": ("sqlite3",),
    "sqlite rollback": ("sqlite3",),
    "sqlite with writers": ("sqlite3",),
}


def assert_like_plain(plain, mounted, *words):
    """A Python program of programs/ ends well in a plain directory, and as there in a mount."""
    command = sys.executable, *map(str, words)
    wanted = plain(*command)
    assert wanted.seen()[::2] == (0, b"")
    assert mounted(*command).seen() == wanted.seen()


@pytest.mark.parametrize("name", _PARAMS)
def test_a_program_does_the_same_in_a_mount(plain, mounted, name):
    for command in _NEEDS.get(name, ()):
        if shutil.which(command) is None:
            pytest.skip(f"{command} is not installed")
    wanted = plain("/bin/sh", "-c", _ALL[name])
    found = mounted("/bin/sh", "-c", _ALL[name])
    assert found.seen() == wanted.seen()
    assert found.calls["chdir"] == [1, 0] or found.calls["chdir"][0] > found.calls["chdir"][1]


def test_nothing_reaches_the_real_path(mounted):
    found = mounted("/bin/sh", "-c", "mkdir d; echo x >d/f; cp d/f g; ls; cat d/f g")
    assert found.out == b"d\ng\nx\nx\n"
    assert not os.path.lexists(mounted.point)
    calls = found.calls
    assert calls["mkdir"][0] > calls["mkdir"][1] == 0
    assert calls["write"][0] > calls["write"][1]


def test_the_time_of_birth(mounted):
    """stat(1) asks for it by statx(2)."""
    script = "echo x >f; stat -c '%W %Z' f; touch -d @77 f; mv f g; stat -c %W g"
    born, changed, later = map(int, mounted("/bin/sh", "-c", script).out.split())
    assert changed - 60 <= born <= changed
    assert later == born


def test_linux_aio_on_files_of_mounts_and_others_in_one_context(plain, mounted, compiled, tmp_path):
    program = compiled("aio")
    wanted = plain(program, tmp_path / "real")
    assert wanted.status == 0
    assert mounted(program, tmp_path / "real").seen() == wanted.seen()


@pytest.mark.parametrize("file_system", ["memfs", "passthrough"])
def test_what_is_open_is_opened_again(plain, mounted, tmp_path, file_system):
    """By /proc and /dev/fd: a new description of the same file, whatever it is called by now."""
    cases = ["removed", "renamed", "uncut", "mapped", "linked", "numbered", "through", "disk"]
    cases += ["others", "executed"]
    if file_system == "passthrough":
        (tmp_path / "source").mkdir()
        mounted.file_system = f"passthrough {tmp_path / 'source'}"
    else:  # libfuse's high-level API has no O_TMPFILE
        cases.insert(0, "nameless")
    assert_like_plain(plain, mounted, PROGRAMS / "reopened.py", *cases)


@pytest.mark.parametrize("last", ["end", "waiting"])
def test_what_a_fifo_is(plain, mounted, last):
    """By each way to come by its descriptor; see fifos.py."""
    assert_like_plain(plain, mounted, "-S", PROGRAMS / "fifos.py", last)


def test_a_name_that_is_as_long_as_that_of_its_placeholder():
    """In /proc of another process. Those of O_PATH have " (deleted)" behind theirs."""
    script = """if True:
        import os
        names = ["/n/" + "n" * size for size in range(1, 120)]
        for name in names: os.mknod(name)
        fds = [os.open(name, os.O_PATH) for name in names]
        parent = os.getpid()
        if not os.fork():
            print([os.readlink(f"/proc/{parent}/fd/{fd}") for fd in fds] == names)
        else:
            os.wait()
    """
    words = [sys.executable, "-m", "directfuse", "run", "-m", "memfs /n", "--", sys.executable]
    assert subprocess.check_output([*words, "-S", "-c", script], timeout=60) == b"True\n"


def test_the_working_directory_by_a_link_on_disk(plain, mounted, tmp_path):
    """What is made, moved, looked at and removed there; see linked.py."""
    assert_like_plain(plain, mounted, "-S", PROGRAMS / "linked.py", tmp_path)


@pytest.mark.parametrize("what", ["memory", "large", "offsets"])
def test_what_can_be_done_in_part_or_not_at_all(plain, mounted, what):
    """As far as there is memory, and which of two errors; see partial.py."""
    assert_like_plain(plain, mounted, PROGRAMS / "partial.py", what)


def test_a_directory_that_is_too_deep_for_a_path(plain, mounted):
    """What lies there is reached from it, by children and threads too; see deep.py."""
    assert_like_plain(plain, mounted, PROGRAMS / "deep.py")


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user needs root")
@pytest.mark.parametrize("file_system", ["memfs", "passthrough"])
def test_below_a_directory_that_may_not_be_searched(plain, mounted, tmp_path, file_system):
    """Nothing above the working directory is looked at; see cut_off.py."""
    if file_system == "passthrough":
        (tmp_path / "source").mkdir()
        mounted.file_system = f"passthrough {tmp_path / 'source'}"
    assert_like_plain(plain, mounted, "-S", PROGRAMS / "cut_off.py")


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user needs root")
def test_a_thread_has_an_identity_of_its_own(plain, mounted):
    """Its threads and children begin with it; see identities.py."""
    assert_like_plain(plain, mounted, "-S", PROGRAMS / "identities.py")


def test_where_a_restricted_open_may_go(plain, mounted):
    """openat2(2) with RESOLVE_ flags; see restricted.py."""
    assert_like_plain(plain, mounted, "-S", PROGRAMS / "restricted.py")


def test_a_restricted_open_goes_into_a_mount_and_out(mounted, tmp_path):
    """What lies above is real; see crossing.py."""
    above = {name: tmp_path / name for name in ("plain", "run")}
    for directory in above.values():
        directory.mkdir()
    command = [sys.executable, "-S", str(PROGRAMS / "crossing.py")]
    wanted = subprocess.run(
        command, cwd=above["plain"], capture_output=True, check=True, timeout=50
    )
    mounted.point = str(above["run"] / "mount")
    script = 'cd "$0" && rmdir mount/plain && exec "$@"'
    found = mounted("/bin/sh", "-c", script, above["run"], *command)
    assert (found.status, found.err) == (0, b"")
    same, _, crossed = found.out.partition(b"NO_XDEV\n")
    assert same == wanted.stdout.partition(b"NO_XDEV\n")[0]
    assert {line.split()[-1] for line in crossed.splitlines()} == {b"18"}  # EXDEV


def test_paths_that_lead_out_of_a_mount_in_calls_that_know_none(plain, mounted, tmp_path):
    """inotify_add_watch, chroot, mount ..., and setns; see outward.py."""
    assert_like_plain(plain, mounted, PROGRAMS / "outward.py", tmp_path / "real")


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user needs root")
def test_who_owns_files_in_a_user_namespace(plain, mounted):
    """Of programs that make one or are started in it, nested ones too; see namespaces.py."""
    assert_like_plain(plain, mounted, PROGRAMS / "namespaces.py")


def test_which_error_comes_first_between_two_file_systems(plain, mounted):
    """Of link, rename and what copies between descriptors; see refused.py."""
    assert_like_plain(plain, mounted, "-S", PROGRAMS / "refused.py")


def test_which_error_comes_first_of_several(plain, mounted):
    """Of flags, descriptors and paths that are all wrong; see judged.py."""
    assert_like_plain(plain, mounted, "-S", PROGRAMS / "judged.py")


def test_sendfile_of_what_is_no_plain_file(plain, mounted):
    """What can be read is not always sent: /dev/null, most files of /proc; see sends.py."""
    assert_like_plain(plain, mounted, "-S", PROGRAMS / "sends.py")


def test_leases_that_nobody_has(plain, mounted):
    """They are asked for and given back; see leases.py."""
    assert_like_plain(plain, mounted, "-S", PROGRAMS / "leases.py")


def test_what_random_calls_have_found(plain, mounted):
    """See odd.py."""
    assert_like_plain(plain, mounted, PROGRAMS / "odd.py")


def test_a_directory_that_changes_while_it_is_listed(plain, mounted):
    """Who renames, replaces or copies each name that he is told comes to an end; see listed.py."""
    assert_like_plain(plain, mounted, "-S", PROGRAMS / "listed.py")


@pytest.mark.parametrize("size", [400_000, 20_000_000])
def test_zeros_and_what_finds_no_room_are_the_same_when_mapped(mounted, size):
    """With FALLOC_FL_ZERO_RANGE, which a tmpfs has not; see zeroed.py."""
    mounted.file_system = "memfs -o size=2M"
    command = [sys.executable, "-S", str(PROGRAMS / "zeroed.py"), str(size)]
    wanted = mounted(*command, "0")
    assert (wanted.status, wanted.err) == (0, b"")
    assert b"write 28\n" in wanted.out  # ENOSPC
    assert mounted(*command, "1").seen() == wanted.seen()


#: Goes into directories that are gone, and to one that is too deep; what was open is closed then.
#: What a child had is closed when the server has seen its end, a moment after wait(2).
_LEFT_DIRECTORIES = """
import os, time
def free():
    return os.statvfs(here).f_ffree
def left(wanted):
    end = time.monotonic() + 20
    while before - free() != wanted and time.monotonic() < end:
        time.sleep(0.01)
    return before - free()
here, name = os.getcwd(), "n" * 250
before = free()
for way in range(3):
    for level in range(20):
        os.mkdir(name)
        os.chdir(name)
    fd = os.open(".", os.O_RDONLY)
    for level in range(20):
        os.chdir("..")
        os.rmdir(name)
    os.fchdir(fd)
    os.close(fd)
    if os.fork() == 0:
        os.execvp("true", ["true"])
    print(os.wait()[1], left(20))
    os.chdir(here)
print(left(0))
"""


def test_directories_that_nobody_stands_in_any_more_are_closed(mounted):
    found = mounted(sys.executable, "-c", _LEFT_DIRECTORIES)
    assert found.seen() == (0, b"0 20\n0 20\n0 20\n0\n", b"")


def test_what_is_closed_is_closed_at_once(plain, mounted, compiled):
    """Numbers, errors, /proc/self/fd, locks, as children and threads see them; see closing.c."""
    program = compiled("closing")
    wanted = plain(program)
    assert wanted.status == 0
    assert mounted(program).seen() == wanted.seen()


def test_what_lingers_is_left_by_calls_on_files_on_disk_only(plain, mounted, compiled):
    """It is what untar gains; anything else that lasts or looks ends it; see lingers.c."""
    program = compiled("lingers")
    wanted, found = (where(program).seen() for where in (plain, mounted))
    assert wanted[0] == found[0] == 0
    assert wanted[1].count(b": gone") == 8
    expected = b"""\
no call: there
pread of a file that is stored: there
lseek, read and pwrite: there
"""
    assert found[1] == expected + wanted[1][wanted[1].index(b"of one without") :]


@pytest.mark.parametrize("size", ["1", "40"])
def test_mapped_memory_is_what_it_is_elsewhere(plain, mounted, compiled, size):
    """Its end, what others store, what a process that is killed has stored; see mapping.c."""
    program = compiled("mapping")
    wanted = plain(program, size)
    assert wanted.status == 0
    assert mounted(program, size).seen() == wanted.seen()


def test_the_working_directory_by_an_empty_path(plain, mounted):
    """AT_FDCWD and AT_EMPTY_PATH; see here.py."""
    assert_like_plain(plain, mounted, "-S", PROGRAMS / "here.py")


def test_a_working_directory_that_was_removed(plain, mounted):
    """Itself, what would be in it, and what is above it; see removed.py."""
    assert_like_plain(plain, mounted, "-S", PROGRAMS / "removed.py")


def test_advice_on_private_mappings(plain, mounted):
    """madvise(2); see advised.py."""
    assert_like_plain(plain, mounted, "-S", PROGRAMS / "advised.py")


def test_links_into_a_mount_and_out_of_it_again(plain, mounted, tmp_path):
    """What lies on disk behind both; see returning.py."""
    (tmp_path / "disk").mkdir()
    assert_like_plain(plain, mounted, "-S", PROGRAMS / "returning.py", tmp_path / "disk")


_BOUND = ["names", "mode", "disk", "outside", "sends", "descriptors", "deep"]


@pytest.mark.parametrize("what", _BOUND)
def test_sockets_by_their_names(plain, mounted, tmp_path, what):
    """Who may connect, by which paths, and what is told of it; see bound.py."""
    words = PROGRAMS / "bound.py", what
    assert_like_plain(plain, mounted, "-S", *words, tmp_path / "link")


#: mremap(2) of a private mapping, and what it shows afterwards.
_GROWN = """
import ctypes, mmap, os
PAGE, READ_WRITE, PRIVATE, MAYMOVE, DONTUNMAP, UNKNOWN = mmap.PAGESIZE, 3, 2, 1, 4, 8
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = libc.mremap.restype = ctypes.c_void_p
FAILED = ctypes.c_void_p(-1).value
with open("f", "wb") as file:
    file.write(b"a" * PAGE + b"b" * PAGE)
fd = os.open("f", os.O_RDONLY)
at = libc.mmap(None, ctypes.c_size_t(PAGE), READ_WRITE, PRIVATE, fd, ctypes.c_long(0))
def remap(start, old, size, flags):
    ctypes.set_errno(0)
    sizes = ctypes.c_size_t(old), ctypes.c_size_t(size)
    return libc.mremap(ctypes.c_void_p(start), *sizes, flags) == FAILED and ctypes.get_errno()
print(remap(at, PAGE, 2 * PAGE, MAYMOVE), remap(at, PAGE, PAGE, MAYMOVE | DONTUNMAP))
print(remap(at, PAGE, 2 * PAGE, UNKNOWN), remap(at + 1, PAGE, 2 * PAGE, MAYMOVE))
print(ctypes.string_at(at, 1), remap(at, PAGE, PAGE, MAYMOVE))
"""


def test_a_copy_of_a_file_does_not_grow(mounted):
    """It has no more bytes of the file: there would be zeros in their place."""
    found = mounted(sys.executable, "-S", "-c", _GROWN)
    assert found.seen() == (0, b"12 22\n22 22\nb'a' False\n", b"")


def test_words_that_are_counted(plain, mounted):
    """See counted.py."""
    assert_like_plain(plain, mounted, "-S", PROGRAMS / "counted.py")


#: splice(2) and sendfile(2) to a file that may not grow any more.
_LIMITED = """
import os, resource, signal
signals = []
signal.signal(signal.SIGXFSZ, lambda number, frame: signals.append(number))
resource.setrlimit(resource.RLIMIT_FSIZE, (10000, resource.RLIM_INFINITY))
def said(call, *args, **how):
    try:
        return call(*args, **how)
    except OSError as error:
        return error.strerror
out, reader, writer = os.open("f", os.O_RDWR | os.O_CREAT), *os.pipe()
os.write(writer, bytes(range(200)) * 20)
print(os.splice(reader, out, 4000, offset_dst=9000), os.stat(out).st_size, len(signals))
print(said(os.splice, reader, out, 4000, offset_dst=10000))
os.lseek(out, 0, os.SEEK_END)
print(said(os.splice, reader, out, 4000), os.read(reader, 9999) == bytes(range(200)) * 15)
os.close(writer)
print(said(os.splice, reader, out, 10), os.stat(out).st_size)
signals.clear()
source = os.memfd_create("source")
os.write(source, bytes(5000))
os.lseek(out, 9000, os.SEEK_SET)
print(said(os.sendfile, out, source, 0, 5000), len(signals))
print(said(os.sendfile, out, source, 0, 5000), len(signals))
"""


def test_what_a_file_may_not_take_stays_in_the_pipe(plain, mounted):
    """Under RLIMIT_FSIZE, with SIGXFSZ."""
    assert_like_plain(plain, mounted, "-S", "-c", _LIMITED)


def test_way_in_and_out(mounted, tmp_path):
    """Relative paths, "..", real symlinks into the mount and links of the mount to real files."""
    (tmp_path / "real").write_text("real\n")
    (tmp_path / "in").symlink_to(mounted.point)
    script = (
        f"cd {tmp_path}; echo mount >mount/f; cat mount/f in/f; cd mount; cat ../real; "
        "ln -s ../real out; cat out; cd ..; cat mount/out; ls mount; cd -P in; pwd; cd ..; "
        "ls -d mount; mkdir in/d; cat mount/../real in/../real; rm mount/out in/f; ls -A in"
    )
    found = mounted("/bin/sh", "-c", script)
    point = os.fsencode(mounted.point)
    assert found.err == b""
    assert found.out == (
        b"mount\nmount\nreal\nreal\nreal\nf\nout\nplain\n"
        + point
        + b"\nmount\nreal\nreal\nd\nplain\n"
    )


def test_a_mountpoint_in_a_directory_that_a_link_leads_to(mounted, tmp_path):
    (tmp_path / "link").symlink_to(tmp_path)
    script = f"cd {tmp_path}/link; test -d mount && cd mount && pwd -P; stat -c %F ../link/mount"
    found = mounted("/bin/sh", "-c", script)
    assert found.out == os.fsencode(mounted.point) + b"\ndirectory\n"
    assert found.err == b""


def test_names_that_are_missing_below_real_links(mounted, tmp_path):
    """Some real links lead into the mount, some nowhere; some names below them are there."""
    (tmp_path / "in").symlink_to(mounted.point)
    (tmp_path / "nowhere").symlink_to(tmp_path / "none")
    (tmp_path / "real").mkdir()
    (tmp_path / "real/in").symlink_to("../in")
    (tmp_path / "real/here").symlink_to(tmp_path)
    (tmp_path / "file").write_text("")
    script = (
        f"cd {tmp_path}; mkdir -p in/a/b/c; echo found >in/a/b/c/f; "
        "for d in in real/in $PWD/in $PWD/real/in real/../in real/here/mount; "
        "do cat $d/a/b/c/f; done; "
        "for p in in/a/x/y/z in/x/y real/x/y/z real/in/x/y nowhere/x/y real/x/../in/a file/x/y; do "
        "for n in $p $PWD/$p; do cat $n 2>&1 | sed 's/.*: //'; "
        "stat -L $n 2>&1 | sed 's/.*: //'; done; done; "
        "rm real/in; mkdir real/in; cat $PWD/real/in/a/b/c/f 2>&1 | sed 's/.*: //'; "
        "mkdir -p real/a/b; cat $PWD/real/a/b/f 2>/dev/null; rm -r real/a; "
        "ln -s ../in/a real/a; cat $PWD/real/a/b/c/f"
    )
    found = mounted("/bin/sh", "-c", script)
    missing, not_directory = b"No such file or directory\n", b"Not a directory\n"
    assert found.err == b""
    assert found.out == b"found\n" * 6 + missing * 24 + not_directory * 4 + missing + b"found\n"


#: Ends the server of the mount it stands in, then goes on.
_KILLER = """
import os, select, signal, subprocess, sys
point = sys.argv[1].encode()
open("f", "w").write("x")
fd = os.open("f", os.O_RDONLY)
for name in filter(str.isdigit, os.listdir("/proc")):
    try:
        words = open(f"/proc/{name}/cmdline", "rb").read().split(b"\\0")
    except OSError:
        continue
    if words[0].endswith(b"/directfuse-server") and point in words:
        end = select.poll()
        end.register(os.pidfd_open(int(name)), select.POLLIN)
        os.kill(int(name), signal.SIGKILL)
        end.poll(10000)
for call in (lambda: os.read(fd, 1), lambda: os.stat("f"), lambda: open("g", "w")):
    try:
        call()
    except OSError as error:
        print(error.strerror)
os.chdir("/")
print(subprocess.run(["echo", "goes on"], capture_output=True, check=True).stdout)
"""


def test_a_server_that_is_killed_is_an_io_error(mounted):
    found = mounted(sys.executable, "-c", _KILLER, mounted.point)
    assert found.status == 0
    assert found.out == b"Input/output error\n" * 3 + b"b'goes on\\n'\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user needs root")
def test_another_user_and_its_children(mounted):
    script = (
        "chmod 777 .; echo root >f; chmod 600 f; setpriv --reuid 4321 --clear-groups "
        "sh -c 'cat f 2>/dev/null; echo $?; echo own >g; (cat g | cat); stat -c %u g; "
        "mkdir d; cd d; ls -A ..'"
    )
    found = mounted("/bin/sh", "-c", script)
    assert found.seen() == (0, b"1\nown\n4321\nd\nf\ng\n", b"")


#: What is stored in memory is in the file behind passthrough when the call has returned.
_STORED = """
import ctypes, glob, mmap, os, struct, sys
libc = ctypes.CDLL(None)
setup, submit, FSYNC = 206, 209, 2  # system calls of x86-64, and IOCB_CMD_FSYNC
context = ctypes.c_ulong()
libc.syscall(setup, 1, ctypes.byref(context))
def aio_fsync(fd):
    iocb = ctypes.create_string_buffer(struct.pack("16xHxxI40x", FSYNC, fd), 64)
    libc.syscall(submit, context, 1, ctypes.byref(ctypes.pointer(iocb)))
fd = os.open("f", os.O_CREAT | os.O_RDWR)
os.ftruncate(fd, 4096)
shown, other = mmap.mmap(fd, 4096), os.open("f", os.O_RDONLY)
syncs = [os.fsync, os.fdatasync, lambda fd: libc.sync_file_range(fd, 0, 0, 7), libc.syncfs]
for count, sync in enumerate([*syncs, lambda _: os.sync(), aio_fsync], 1):
    shown[100:101] = bytes([count])
    sync(other)
    behind, = glob.glob(f"{sys.argv[1]}/**/f", recursive=True)
    print(open(behind, "rb").read()[100], flush=True)
"""


def test_what_is_stored_in_memory_is_written_by_fsync(mounted, tmp_path):
    (tmp_path / "source").mkdir()
    mounted.file_system = f"passthrough {tmp_path / 'source'}"
    found = mounted(sys.executable, "-c", _STORED, str(tmp_path / "source"))
    assert found.seen() == (0, b"1\n2\n3\n4\n5\n6\n", b"")


_RANGES = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
fd = os.open("f", os.O_CREAT | os.O_WRONLY)
os.write(fd, b"data")
print([libc.sync_file_range(fd, 0, 0, flags) for flags in (0, 1, 2, 4, 7)])
print(libc.syncfs(fd), os.fdatasync(fd))
"""


def test_no_file_system_hears_of_ranges_to_write(tmp_path):
    """On Linux they go no further than the page cache, and cost no fsync below."""
    report = tmp_path / "report.json"
    mount = f"memfs {tmp_path / 'mnt'}"
    words = [sys.executable, "-m", "directfuse", "run", f"--stats={report}", "-m", mount, "--"]
    script = ["sh", "-c", 'cd "$0" && exec "$@"', tmp_path / "mnt", sys.executable, "-c", _RANGES]
    done = subprocess.run(
        [*words, *script], capture_output=True, text=True, env=environment(), timeout=50, check=True
    )
    assert done.stdout == "[0, 0, 0, 0, 0]\n0 None\n"
    (counted,) = json.loads(report.read_text())["mounts"].values()
    assert counted["fsync"]["calls"] == 1


def test_directories_above_a_mountpoint_that_do_not_exist(mounted):
    script = (
        'cd "$1"; pwd; ls; cd mount; echo x >f; cd ..; cat mount/f; test -d "$1"; echo $?; '
        'rmdir "$1" 2>/dev/null; echo $?'
    )
    found = mounted("/bin/sh", "-c", script, "sh", os.path.dirname(mounted.deep), deep=True)
    above = os.fsencode(os.path.dirname(mounted.deep))
    assert found.out == above + b"\nmount\nx\n0\n1\n"
    assert not os.path.lexists(os.path.dirname(mounted.deep))


#: Lists $1, by its name and from within, and twice by one descriptor.
_LIST = """
cd "$1" && ls && echo * && find . | sort && ls -d ./no/* && find "$1" -type d | wc -l
tar cf - . | tar tf - | sort; python3 -c 'import os
fd = os.open(".", os.O_RDONLY)
print([sorted(os.listdir(fd)) for _ in range(3)], sorted(os.listdir("no")))'
"""


def test_mountpoints_are_in_the_listing_of_a_real_directory(plain, mounted, tmp_path):
    """At its end, and once, whether a mountpoint is on disk or not."""
    real, virtual = tmp_path / "real", tmp_path / "virtual"
    for directory in real, virtual:
        directory.mkdir()
        (directory / "file").touch()
    mounted.deep = str(virtual / "no" / "such")
    (real / "no" / "such").mkdir(parents=True)
    wanted = plain("/bin/sh", "-c", _LIST, "sh", str(real))
    found = mounted("/bin/sh", "-c", _LIST, "sh", str(virtual), deep=True)
    assert found.seen() == wanted.seen()
    assert os.listdir(virtual) == ["file"]
    (virtual / "no" / "such").mkdir(parents=True)
    found = mounted("/bin/sh", "-c", _LIST, "sh", str(virtual), deep=True)
    assert found.seen() == wanted.seen()


#: What /proc says of descriptors: the process itself, and a child that asks for its parent's.
_DESCRIPTORS = """
import fcntl, os
fd = os.open("f", os.O_CREAT | os.O_RDWR | os.O_APPEND, 0o600)
os.write(fd, b"x" * 5000), os.lseek(fd, 1234, os.SEEK_SET)
os.set_inheritable(fd, True)
places = [f"/proc/{who}/fdinfo" for who in ("self", "thread-self", os.getpid())]
others = [os.open(".", flags) for flags in (os.O_RDONLY, os.O_PATH)]
others.append(os.open("g", os.O_CREAT | os.O_WRONLY))
for name in [f"{place}/{fd}" for place in places] + [f"/proc/self/fdinfo/{fd}" for fd in others]:
    print([line for line in open(name) if line.startswith(("pos", "flags"))], flush=True)
names = f"{places[2]}/{fd} /proc/self/fdinfo/{fd}"
os.system(f"head -c 3 <&{fd}; grep -E 'pos|flags' {names} | cut -d: -f2-")
inside = os.open("/proc/self/fdinfo", os.O_RDONLY)
above = os.open("/proc/self", os.O_RDONLY)
os.symlink("/proc/self/fdinfo", "link")
ways = [(inside, ""), (inside, "./"), (above, "fdinfo/"), (None, "link/")]
for directory, way in [*ways, (None, "//proc/self/fdinfo/")]:
    lines = os.read(os.open(f"{way}{fd}", os.O_RDONLY, dir_fd=directory), 4096).decode()
    print(way, lines == open(f"/proc/self/fdinfo/{fd}").read(), flush=True)
directory = os.open("/proc/self/fd", os.O_RDONLY)
print(os.path.basename(os.readlink(str(fd), dir_fd=directory)))
fcntl.flock(fd, fcntl.LOCK_SH), fcntl.lockf(os.dup(fd), fcntl.LOCK_EX)
st, lines = os.fstat(fd), open(f"/proc/self/fdinfo/{fd}").readlines()
of = f"{os.major(st.st_dev):02x}:{os.minor(st.st_dev):02x}:{st.st_ino}"
print(f"ino:\\t{st.st_ino}\\n" in lines, [of in line for line in lines if line[:4] == "lock"])
fcntl.lockf(fd, fcntl.LOCK_UN)
for start in range(200):
    fcntl.lockf(fd, fcntl.LOCK_EX, 1, 2 * start)
lines = [line for line in open(f"/proc/self/fdinfo/{fd}") if line[:4] == "lock"]
print(len(lines), all(of in line for line in lines))
"""


def test_what_proc_says_of_descriptors(plain, mounted):
    found = mounted(sys.executable, "-c", _DESCRIPTORS)
    assert found.seen() == plain(sys.executable, "-c", _DESCRIPTORS).seen()


#: What the kernel's lists of mounts say of the one at $1, of which the name is escaped there.
_LISTS = """
import ctypes, os, struct, subprocess, sys
point = sys.argv[1]
name, dev = point.replace(" ", "\\\\040"), os.stat(point).st_dev
for who in "self", "thread-self", os.getppid(), f"{os.getpid()}/task/{os.getpid()}":
    lines = [line.split() for line in open(f"/proc/{who}/mountinfo")]
    (ours,) = [words for words in lines if words[4] == name]
    assert ours[2] == f"{os.major(dev)}:{os.minor(dev)}" and ours[1] in [line[0] for line in lines]
    print(lines.index(ours) - len(lines), ours[3], ours[5:])
mount = ours[0]
for path in "/proc/mounts", "/etc/mtab", "/proc/self/mounts":
    (ours,) = [words for words in map(str.split, open(path)) if words[1] == name]
    print(ours[0], ours[2:])
os.chdir(point)
os.mkdir("d")
print(os.getcwd() == point, os.get_inheritable(os.open("/proc/mounts", os.O_RDONLY)))
fd, stx = os.open("d/f", os.O_CREAT | os.O_WRONLY), ctypes.create_string_buffer(256)
for at, path in (fd, b""), (-100, b"d"):  # AT_EMPTY_PATH, STATX_MNT_ID
    ctypes.CDLL(None).statx(at, path, 0x1000, 0x1000, stx)
    mask, found = struct.unpack_from("=I140xQ", stx)
    print(mask & 0x1000 != 0, str(found) == mount)
print(f"mnt_id:\\t{mount}\\n" in open(f"/proc/self/fdinfo/{fd}"))
for command in "df --output=target d", "findmnt -nT d -o TARGET", "stat -c %m d":
    found = subprocess.run(command, shell=True, capture_output=True, text=True)
    print(found.stdout.splitlines()[-1:] == [point], found.stderr)
"""


def test_mounts_are_in_the_lists_of_mounts(tmp_path):
    """So df, findmnt and others find what a path lies on."""
    point = str(tmp_path / "a mount")
    inner = [sys.executable, "-c", _LISTS, point]
    command = [sys.executable, "-m", "directfuse", "run", "-m", f"memfs '{point}'"]
    found = subprocess.run([*command, "--", *inner], capture_output=True, text=True, timeout=50)
    options = "rw,nosuid,nodev,relatime"
    assert found.stderr == ""
    assert found.stdout.splitlines() == [
        *[f"-1 / ['{options}', '-', 'fuse.memfs', 'memfs', 'rw']"] * 4,
        *[f"memfs ['fuse.memfs', '{options}', '0', '0']"] * 3,
        "True False",
        *["True True"] * 2,
        "True",
        *["True "] * 3,
    ]


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ("", "memfs fuse.memfs"),
        ("-o subtype=kind", "memfs fuse.kind"),
        ("-o fsname=what", "what fuse"),
        ("-o 'fsname=a b,subtype=kind'", "a\\040b fuse.kind"),
    ],
)
def test_what_is_mounted_is_named_as_by_the_kernel(tmp_path, options, shown):
    """Of each the kernel mount of the same program has these words (libfuse 3.14)."""
    command = [sys.executable, "-m", "directfuse", "run", "-m", f"memfs {options} {tmp_path}/m"]
    lines = subprocess.check_output([*command, "--", "cat", "/proc/mounts"], text=True, timeout=50)
    (ours,) = [line.split() for line in lines.splitlines() if f" {tmp_path}/m " in line]
    assert f"{ours[0]} {ours[2]}" == shown


def keeps_its_errors(path, names, limit):
    """Whether a program that is entered and may have so few descriptors has its standard error: to
    write to, or to be told why it is not started."""
    words = "env", *starmap("{}={}".format, names.items()), "readlink", "/proc/self/fd/2"
    with path.open("w") as errors:
        done = subprocess.run(
            ["prlimit", f"--nofile={limit}", *words],
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=errors,
            timeout=50,
        )
    return done.stdout.decode() == f"{path}\n" or "cannot be joined" in path.read_text()


def test_the_door_of_the_environment(tmp_path):
    """Programs of one environment share a mount, whoever starts them."""
    point = tmp_path / "mount"
    command = [sys.executable, "-m", "directfuse", "env"]
    words = subprocess.check_output([*command, "-m", f"memfs {point}"], text=True, timeout=50)
    names = dict(line.removeprefix("export ").split("=", 1) for line in words.splitlines())
    inside = environment() | names
    try:
        script = f"mkdir {point}/d; cd {point}/d; echo shared >f; (cat f | cat)"
        for words, wanted in (
            (script, "shared\n"),
            (f"cat {point}/d/f; ls {point}", "shared\nd\n"),
        ):
            found = subprocess.check_output(
                ["/bin/sh", "-c", words], env=inside, text=True, timeout=50
            )
            assert found == wanted
        for limit in range(4, 12):
            assert keeps_its_errors(tmp_path / "errors", names, limit)
    finally:
        run = environment() | {"DIRECTFUSE_RUN": names["DIRECTFUSE_RUN"]}
        subprocess.run([*command, "--end"], env=run, check=True, capture_output=True, timeout=50)
    assert not os.path.lexists(point)


def test_core_files_go_without_the_memory_of_the_run(mounted):
    """532 MB they were, and every page of the segment was made for them."""
    done = mounted(sys.executable, str(PROGRAMS / "dumped.py"))
    assert done.seen() == (0, b"0\n", b"")


_DEVICES = (
    "mknod -m 666 null c 1 3 && mknod -m 666 zero c 1 5 && mknod -m 222 full c 1 7 || exit; "
    "echo x >null && cat null && head -c 4 zero | od -An -tx1; (echo y >full) 2>&1; "
    "stat -L -c %t:%T /dev/fd/3 3>null; echo z >>null; stat -c %s null; "
    "su -s /bin/sh nobody -c 'cat full' 2>&1; ls; rm null zero full"
)


def test_devices_of_every_root_open(plain, mounted):
    """An image has them in its /dev."""
    wanted = plain("/bin/sh", "-c", _DEVICES)
    if b"00 00 00 00" not in wanted.out:
        pytest.skip("device nodes cannot be made or opened here")
    assert mounted("/bin/sh", "-c", _DEVICES).seen() == wanted.seen()


#: It asks for what the machine's device has already: nothing comes of it if it is granted.
_CHANGES = """
import errno, os
os.mknod("null", 0o20666, os.makedev(1, 3))
fd, real = os.open("null", os.O_RDWR), os.stat("/dev/null")
mode, times = real.st_mode & 0o7777, (real.st_atime_ns, real.st_mtime_ns)
for change in (
    lambda: os.fchmod(fd, mode),
    lambda: os.fchown(os.dup(fd), real.st_uid, real.st_gid),
    lambda: os.utime(fd, ns=times),
):
    try:
        change()
        print("changed")
    except OSError as error:
        print(errno.errorcode[error.errno])
os.chmod("null", 0o600)
os.fchmod(os.open("/dev/null", os.O_RDWR), mode)
print(oct(os.stat("null").st_mode), os.stat("/dev/null").st_mode == real.st_mode)
"""


def test_an_open_device_of_a_mount_is_not_the_machines_to_change(mounted):
    if os.geteuid() != 0:
        pytest.skip("device nodes cannot be made here: needs root")
    found = mounted(sys.executable, "-c", _CHANGES)
    assert (found.out, found.err) == (b"EPERM\n" * 3 + b"0o20600 True\n", b"")


def test_descriptors_of_the_core_are_none_of_the_programs(mounted):
    found = mounted(sys.executable, "-S", PROGRAMS / "hidden.py")
    assert found.seen() == (0, b"True []\n", b"")
