"""Where a container or batch system refuses and limits, a run is as a plain directory there."""

import errno
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import needs
import pytest

from directfuse._cli import doctor
from directfuse._errors import limit_remedy

from .conftest import COMMAND, said_clearly
from .filters import forbidden, without_dispatch

pytestmark = needs.run
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: to mount over what is there")

STEPS = """
import os, sys
os.chdir(sys.argv[1])
def tried(call, *arguments):
    try:
        return call(*arguments)
    except OSError as error:
        return error.errno
print(tried(os.mkdir, "d"), tried(os.chdir, "d"))
print(tried(lambda: open("f", "w").write("x")), tried(os.symlink, "f", "l"))
print(*(tried(os.access, *asked) for asked in (("f", os.R_OK), ("f", os.X_OK), ("l", os.R_OK))))
print(tried(os.chmod, "f", 0o4711), oct(os.stat("f").st_mode), tried(os.utime, "f", (1, 2)))
print(tried(os.setxattr, "f", "user.a", b"1"), tried(os.getxattr, "f", "user.a"))
print(tried(os.getxattr, "f", "user.b"), tried(os.listxattr, "f"))
print(tried(os.removexattr, "f", "user.a"), tried(os.removexattr, "f", "user.a"))
print(os.stat("f").st_uid == os.getuid(), sorted(os.listdir(".")))
"""


@pytest.fixture(params=["memfs", "passthrough"])
def mounted(request, tmp_path):
    """The words that run a command with a mount, and the mountpoint."""
    point, below = tmp_path / "m", tmp_path / "below"
    below.mkdir()
    source = f"{below} " if request.param == "passthrough" else ""
    return [*COMMAND, "run", "-m", f"{request.param} {source}{point}", "--"], point


@pytest.mark.parametrize("code", [errno.EPERM, errno.ENOSYS])
@pytest.mark.parametrize(
    "numbers",
    [
        pytest.param((439,), id="faccessat2"),
        pytest.param((452,), id="fchmodat2"),
        pytest.param((463, 464, 465, 466), id="setxattrat and its like"),
        pytest.param((122, 123), id="setfsuid and setfsgid"),
        pytest.param((292,), id="dup3"),
        pytest.param((437, 332, 436, 334, 326), id="openat2, statx and others"),
    ],
)
def test_calls_that_a_filter_refuses(mounted, tmp_path, code, numbers):
    """As that of a container which is older than the kernel."""
    words, point = mounted
    plain = tmp_path / "plain"
    plain.mkdir()
    forbid = forbidden(*numbers, code=code)
    outcomes = [
        subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        for command in (
            [*forbid, sys.executable, "-c", STEPS, plain],
            [*forbid, *words, sys.executable, "-c", STEPS, point],
        )
    ]
    assert outcomes[0].returncode == 0 and outcomes[0].stdout
    assert outcomes[1].stdout == outcomes[0].stdout and outcomes[1].stderr == outcomes[0].stderr


RECEIVES = """
import json, os, socket, sys
sys.path.insert(0, os.path.dirname(sys.argv[2]))
from filters import install
os.chdir(sys.argv[1])
near, far = socket.socketpair()
socket.send_fds(near, [b"x"], [os.open("f", os.O_RDWR | os.O_CREAT)])
install(json.loads(sys.argv[3]))
received = socket.recv_fds(far, 1, 1)[1][0]
print(os.write(received, b"written"))
"""


@pytest.mark.parametrize("code", [errno.EPERM, errno.ENOSYS])
def test_what_is_received_under_a_filter_that_knows_no_fstat(mounted, code):
    """libc calls newfstatat(2) in its place. What is written does not vanish."""
    words, point = mounted
    words += ["sh", "-c", '"$@" && cat "$0/f"', point, sys.executable, "-c", RECEIVES, point]
    words += forbidden(5, code=code)[1:]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "7\nwritten", "")


def test_a_system_call_that_is_missing_is_named():
    """As in gVisor."""
    words = [*forbidden(434, code=errno.ENOSYS), *COMMAND, "run", "-m", "memfs /m", "--", "true"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 125 and said_clearly(done)
    assert "pidfd_open(2): Function not implemented: this kernel does not have it" in done.stderr


@pytest.mark.parametrize("code", [errno.EPERM, errno.ENOSYS])
def test_limits_that_nobody_may_ask_for_are_no_remedy(code):
    words = [*forbidden(302, code=code), *COMMAND, "run", "-m", "memfs /m", "--", "true"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 125 and said_clearly(done)
    assert os.strerror(code) in done.stderr


def test_a_job_without_processes_is_told_which_limit_that_may_be():
    """RLIMIT_NPROC is mostly higher than that of the job, and no more of it would help."""
    assert "pids.max" in limit_remedy(errno.EAGAIN)


@pytest.mark.parametrize("code", [errno.ENOMEM, errno.EAGAIN])
def test_a_limit_of_data_is_named_where_memory_is_missing(code, monkeypatch):
    """EAGAIN is what a thread's stack gives for which there is none."""
    limits = {resource.RLIMIT_DATA: (30_000 << 10, resource.RLIM_INFINITY)}
    none = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    monkeypatch.setattr(resource, "getrlimit", lambda which: limits.get(which, none))
    assert "30000 KiB" in limit_remedy(code) and "`ulimit -d unlimited`" in limit_remedy(code)


def test_no_environment_where_nothing_could_enter_programs():
    """Else none would start from then on, not even `directfuse env --end`."""
    words = [*without_dispatch(), *COMMAND]
    run = [*words, "run", "-m", "memfs /m", "--", "stat", "-c", "%F", "/m"]
    assert subprocess.check_output(run, text=True, timeout=60) == "directory\n"
    env = [*words, "env", "-m", "memfs /m"]
    done = subprocess.run(env, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (125, "") and said_clearly(done)
    assert "Syscall User Dispatch" in done.stderr and "`directfuse run`" in done.stderr


# ---- a limit of memory ---------------------------------------------------------------------------

LIMIT = 96 << 20

MAPS = """
import mmap, os, sys
os.chdir(sys.argv[1])
def shown(name):
    with open(name, "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as memory:
        return sum(memory[::4096])
print(shown("large"), [shown(f"small{i}") for i in range(8)], shown("large"))
"""


def cgroup_directory():
    """Where cgroups with a limit of memory can be made."""
    first, second = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")
    if (first / "memory.limit_in_bytes").exists():
        return first, "memory.limit_in_bytes"
    control = second / "cgroup.subtree_control"
    if control.exists() and "memory" in control.read_text().split():
        return second, "memory.max"
    return pytest.skip("no cgroup controls memory here")


@pytest.fixture
def job():
    """The words that run a command with LIMIT."""
    parent, name = cgroup_directory()
    if not os.access(parent, os.W_OK):
        pytest.skip("needs root: to make a cgroup")
    made = tempfile.mkdtemp(prefix="directfuse-", dir=parent)
    (Path(made) / name).write_text(str(LIMIT))
    yield ["/bin/sh", "-c", 'echo $$ >"$0"/cgroup.procs && exec "$@"', made]
    while (Path(made) / "cgroup.procs").read_text():  # the mount server ends behind the run
        time.sleep(0.01)
    os.rmdir(made)


def test_mapped_files_that_are_larger_than_the_memory_of_a_job(job, tmp_path):
    """It is not killed: chunks are given up, and little is kept of files that were mapped."""
    below = tmp_path / "below"
    below.mkdir()
    with open(below / "large", "wb") as large:
        large.truncate(4 * LIMIT)
    for i in range(8):
        (below / f"small{i}").write_bytes(b"\1" * (14 << 20))
    mounted = [*COMMAND, "run", "-m", f"passthrough {below} {tmp_path}/m", "--"]
    plain, run = (
        subprocess.run([*job, *words], capture_output=True, text=True, timeout=100, check=False)
        for words in (
            [sys.executable, "-c", MAPS, below],
            [*mounted, sys.executable, "-c", MAPS, tmp_path / "m"],
        )
    )
    assert plain.returncode == 0 and plain.stdout
    assert (run.returncode, run.stdout, run.stderr) == (0, plain.stdout, "")


GROWS = """
import mmap, os, sys, time
point, job, limit = sys.argv[1], sys.argv[2], int(sys.argv[3])
def left():
    old = os.path.exists(f"{job}/memory.usage_in_bytes")
    used = int(open(f"{job}/memory.usage_in_bytes" if old else f"{job}/memory.current").read())
    lines = dict(line.split() for line in open(f"{job}/memory.stat"))
    return limit - used + int(lines["active_file"]) + int(lines["inactive_file"])
def leaves(size):
    for _ in range(1000):
        if left() >= size:
            return True
        time.sleep(0.01)
file = open(f"{point}/large", "rb")
memory = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
sum(memory[::4096])
grown = []
for _ in range((left() >> 20) + 4):
    if not leaves(3 << 20):
        sys.exit("nothing is given up")
    grown.append(bytearray(b"x") * (1 << 20))
print(memory[0])
"""


def test_who_grows_is_given_what_mapped_files_hold(job, tmp_path):
    """By who holds it, in the system calls behind the server's look."""
    below = tmp_path / "below"
    below.mkdir()
    with open(below / "large", "wb") as large:
        large.truncate(2 * LIMIT)
    words = [*COMMAND, "run", "-m", f"passthrough {below} {tmp_path}/m", "--"]
    words += [sys.executable, "-c", GROWS, tmp_path / "m", job[-1], str(LIMIT)]
    run = subprocess.run([*job, *words], capture_output=True, text=True, timeout=100, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (0, "0\n", "")


LIMITED = """
import sys
from directfuse import _cli, _run
limit = f"memory={1 << 30}\\ncgroup={sys.argv.pop(1)}\\n"
_run._memory_limit = lambda: limit
_cli.main()
"""

RESIDENT = """
import mmap, re
with open("large", "w+b") as file:
    file.truncate(40 << 20)
    with mmap.mmap(file.fileno(), 0) as memory:
        memory[::4096] = bytes(10 << 10)
        text = open("/proc/self/smaps").read()
print(sum(map(int, re.findall(r"/large\\n(?:.*\\n){3}Rss: +(\\d+) kB", text))) >> 10)
"""


@pytest.mark.parametrize(
    ("files", "resident"),
    [
        pytest.param({"memory.current": 900 << 20, "memory.stat": ""}, 40, id="room"),
        pytest.param({"memory.current": 1 << 30, "memory.stat": "anon 7\n"}, 2, id="none"),
        pytest.param(
            {
                "memory.current": 1 << 30,
                "memory.stat": f"anon 7\ninactive_file {100 << 20}\nactive_file {100 << 20}\n",
            },
            40,
            id="copies of files",
        ),
        pytest.param({"memory.usage_in_bytes": 1 << 30, "memory.stat": "cache 7\n"}, 2, id="old"),
        pytest.param(
            {
                "memory.usage_in_bytes": 1 << 30,
                "memory.stat": f"cache 7\nactive_file 0\ntotal_active_file {200 << 20}\n",
            },
            40,
            id="old, copies of files",
        ),
        pytest.param({}, 40, id="not to be read"),
    ],
)
def test_what_a_process_holds_is_what_its_cgroup_leaves(tmp_path, files, resident):
    for name, text in files.items():
        (tmp_path / name).write_text(f"{text}\n")
    words = ["run", "-m", f"memfs {tmp_path}/m", "--", "sh", "-c", 'cd "$0" && exec "$@"']
    words += [tmp_path / "m", sys.executable, "-c", RESIDENT]
    script = [sys.executable, "-c", LIMITED, tmp_path]
    run = subprocess.run([*script, *words], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (0, "")
    assert resident <= int(run.stdout) <= resident + 2


FOUND = """
import ctypes, os, sys
from directfuse import _native
libc = ctypes.CDLL(None, use_errno=True)
assert libc.unshare(0x20000) == 0  # CLONE_NEWNS
assert libc.mount(b"none", b"/", None, 0x44000, None) == 0  # private, all that is mounted
for name in (b"cgroup", b"mountinfo"):
    at = b"/proc/%d/%s" % (os.getpid(), name)
    assert libc.mount(name, at, None, 0x1000, None) == 0  # MS_BIND
print(_native.memory_limit())
"""


@needs_root
@pytest.mark.parametrize(
    ("own", "job", "found"),
    [
        pytest.param("0::/kube/pod/job", "max", ("1000000000", "/pod"), id="above"),
        pytest.param("0::/kube/pod/job", "5000000", ("5000000", "/pod/job"), id="its own"),
        pytest.param("0::/elsewhere", "5000000", None, id="not to be seen"),
        pytest.param("0::/kubernetes", "5000000", None, id="of another name"),
    ],
)
def test_the_smallest_limit_is_found(tmp_path, own, job, found):
    (tmp_path / "pod/job").mkdir(parents=True)
    (tmp_path / "pod/memory.max").write_text("1000000000\n")
    (tmp_path / "pod/job/memory.max").write_text(f"{job}\n")
    (tmp_path / "cgroup").write_text(f"{own}\n")
    mounts = f"30 20 0:27 /kube {tmp_path} rw,nosuid shared:9 - cgroup2 cgroup2 rw\n"
    (tmp_path / "mountinfo").write_text(mounts)
    words = [sys.executable, "-c", FOUND]
    run = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    wanted = None if found is None else (int(found[0]), os.fsencode(f"{tmp_path}{found[1]}"))
    assert (run.stdout, run.stderr) == (f"{wanted}\n", "")


@needs_root
def test_a_temporary_directory_whose_name_is_not_utf_8(tmp_path, monkeypatch):
    """It is the run's where nothing can be written to /dev/shm."""
    temporary = os.fsencode(tmp_path) + b"/\xff"
    os.mkdir(temporary)
    monkeypatch.setenv("TMPDIR", os.fsdecode(temporary))
    script = 'mount -t tmpfs -o ro none /dev/shm && exec "$@"'
    words = [*COMMAND, "run", "-m", "memfs /m", "--", "sh", "-c", "cd /m && echo x >f && cat f"]
    unshared = ["unshare", "-m", "sh", "-c", script, "sh", *words]
    run = subprocess.run(unshared, capture_output=True, text=True, timeout=60, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (0, "x\n", "")
    assert os.listdir(temporary) == []


#: Lets what it executes write below a directory (argv[1]) and to /dev/null, and read everything.
LANDLOCK = """
import ctypes, os, struct, sys
ALL, READ, MAKE_RULES, ADD_RULE, RESTRICT, NO_NEW_PRIVS = 0x1FFF, 0b1101, 444, 445, 446, 38
libc = ctypes.CDLL(None)
def call(number, *words):
    return libc.syscall(*(ctypes.c_long(word) if isinstance(word, int) else word
                          for word in (number, *words)))
rules = call(MAKE_RULES, ctypes.byref(ctypes.c_uint64(ALL)), 8, 0)
if rules < 0:
    sys.exit(77)
for path, allowed in (("/", READ), (sys.argv[1], ALL), ("/dev/null", 0b110)):
    rule = ctypes.create_string_buffer(struct.pack("=Qi", allowed, os.open(path, os.O_PATH)))
    assert call(ADD_RULE, rules, 1, rule, 0) == 0
libc.prctl(NO_NEW_PRIVS, 1, 0, 0, 0)
assert call(RESTRICT, rules, 0) == 0
os.execvp(sys.argv[2], sys.argv[2:])
"""


def test_a_run_is_elsewhere_where_landlock_forbids_dev_shm(tmp_path, monkeypatch):
    """Which access(2) does not know."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    script = "cd /m && echo x >f && cat f && read go"
    words = [*COMMAND, "run", "-m", "memfs /m", "--", "sh", "-c", script]
    locked = [sys.executable, "-c", LANDLOCK, tmp_path, *words]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(locked, text=True, **pipes) as run:
        assert run.stdout is not None
        said = run.stdout.readline()  # the run is there
        there = os.listdir(tmp_path)
        _, error = run.communicate("\n", timeout=60)
    if run.returncode == 77:
        pytest.skip("the kernel has no Landlock")
    assert (said, run.returncode, error) == ("x\n", 0, "")
    assert [name.rpartition("-")[0] for name in there] == ["directfuse-run"]
    assert os.listdir(tmp_path) == []


# ---- a root that is read-only --------------------------------------------------------------------


@needs_root
def test_a_server_that_cannot_have_its_socket_names_it(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    words = [*COMMAND, "serve", "memfs /m", "--name", "x", "--background"]
    script = (
        'mkdir -m 700 "$0"/directfuse && mount --bind "$0" "$0" && mount -o remount,ro,bind "$0"'
    )
    unshared = ["unshare", "-m", "sh", "-c", f'{script} && exec "$@"', tmp_path, *words]
    done = subprocess.run(unshared, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 125
    assert done.stderr == f"Error: {tmp_path}/directfuse/x.socket: Read-only file system\n"


def test_doctor_works_where_there_is_no_temporary_directory(monkeypatch):
    def none():
        raise FileNotFoundError

    monkeypatch.setattr("tempfile.gettempdir", none)
    with doctor._scratch() as scratch:
        assert scratch.startswith("/dev/shm/")


_ORPHANS = """
import os, subprocess, sys
from directfuse._kernel import orphans_adopted

with orphans_adopted():
    subprocess.run(sys.argv[1:], check=True)
os.waitpid(-1, 0)
"""


@pytest.mark.parametrize("options", [(), ("--restart", "on-failure")])
def test_nobody_is_left_for_process_1_to_wait_for(tmp_path, options):
    """In a container without an init that is the user's own program, which waits for none."""
    words = ("run", *options, "-m", f"memfs -o ro {tmp_path}/m", "--", "true")
    done = subprocess.run(
        [sys.executable, "-c", _ORPHANS, *COMMAND, *words], capture_output=True, text=True
    )
    assert done.stderr.endswith("ChildProcessError: [Errno 10] No child processes\n")
