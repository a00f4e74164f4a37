"""inotify(7) of files and directories in mounts: as in a plain directory, and behind the kernel."""

import os
import shutil
import subprocess
import sys

import pytest
from building import build, fuse

from directfuse import _kernel, _paths

from .conftest import PROGRAMS, ByEnvironment, environment

WATCHED = PROGRAMS / "watched.py"
MANY = PROGRAMS / "watched_many.py"


def seen(run, *words):
    found = run(sys.executable, "-S", *map(str, words))
    assert (found.status, found.err) == (0, b"")
    return found.out.decode()


@pytest.fixture
def wanted(plain):
    """What Linux tells in a plain directory."""
    return seen(plain, WATCHED)


@pytest.mark.parametrize("file_system", ["memfs", "passthrough"])
def test_linux_and_a_mount_tell_the_same(mounted, tmp_path, wanted, file_system):
    """Each kind of event, of names, open files, masks and processes; see watched.py."""
    if file_system == "passthrough":
        (tmp_path / "source").mkdir()
        mounted.file_system = f"passthrough {tmp_path / 'source'}"
    assert seen(mounted, WATCHED) == wanted


def test_the_same_by_the_door_of_the_environment(tmp_path, wanted):
    assert seen(ByEnvironment(tmp_path), WATCHED) == wanted


@pytest.mark.kernel_fuse
def test_linux_tells_the_same_of_its_own_mount_of_memfs(tmp_path, wanted):
    """So what is expected is what a FUSE file system can do."""
    point = tmp_path / "kernel"
    point.mkdir()
    program = os.fspath(_paths.native_dir() / "bin/memfs")
    with _kernel.Program([program, str(point), "-f"]) as daemon:
        daemon.wait_mounted(30)
        found = subprocess.run(
            [sys.executable, "-S", WATCHED], cwd=point, capture_output=True, text=True, check=True
        )
    assert found.stdout == wanted


def test_who_follows_the_events_knows_what_is_there(plain, mounted):
    """Whatever several processes do at once; see watched_many.py."""
    wanted = seen(plain, MANY, "4", "3", "300")
    assert wanted.count("[] [True, True]") == 3
    assert seen(mounted, MANY, "4", "3", "300") == wanted


_LEAVING = f"""
import sys, threading; sys.argv[1:] = ['none']; exec(open({str(WATCHED)!r}).read())
os.chdir(POINT); os.stat('d/a')
w = Watcher(); w.add('.', MODIFY)
def leave():
    os.unlink('d/b')
    os.close(os.open('go', os.O_RDONLY))
leaver = threading.Thread(target=leave); leaver.start()
os.close(os.open('begun', os.O_RDONLY))
w.add('d', CREATE | DELETE); leaver.join(); w.events()
print(os.listdir('d')); os.mknod('d/b'); print([(mask, name) for _, mask, _, name in w.events()])
"""


def test_a_name_that_goes_while_its_directory_comes_to_be_watched(tmp_path):
    """The listing for the watch had it still: when it is made again, nothing else is told."""
    system = build(PROGRAMS / "leaving.c", tmp_path / "leaving", *fuse("fuse3"), "-pthread")
    (tmp_path / "mount").mkdir()
    through = [sys.executable, "-m", "directfuse", "run", "-m", f"{system} {tmp_path / 'mount'}"]
    program = _LEAVING.replace("POINT", repr(str(tmp_path / "mount")))
    done = subprocess.run(
        [*through, "--", sys.executable, "-S", "-c", program],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=50,
    )
    assert (done.stdout, done.stderr) == ("['a']\n[(256, 'b')]\n", "")


#: Waits until inotifywait watches, and until it has told of the last change.
_INOTIFYWAIT = """
mkdir -p tree/below
: >log; : >err
inotifywait -m -r --format '%e %w%f' -e create,delete,move,close_write,attrib tree >log 2>err &
until grep -q established err; do sleep 0.02; done
echo one >tree/f
mv tree/f tree/below/g
chmod 600 tree/below/g
rm tree/below/g
: >tree/last
until grep -q 'CLOSE_WRITE,CLOSE tree/last' log; do sleep 0.02; done
kill $!
cat log
"""


def test_inotifywait_of_a_tree(plain, mounted):
    if shutil.which("inotifywait") is None:
        pytest.skip("inotifywait is not installed")
    wanted = plain("/bin/sh", "-c", _INOTIFYWAIT)
    assert wanted.out.startswith(b"CREATE tree/f\n")
    assert mounted("/bin/sh", "-c", _INOTIFYWAIT).seen() == wanted.seen()


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user needs root")
def test_only_what_may_be_read_can_be_watched(plain, mounted):
    """By a program that has changed its user after the run began."""
    program = (
        f"import sys; sys.argv[1:] = ['none']; exec(open({str(WATCHED)!r}).read())\n"
        "os.mkdir('open'); os.mkdir('closed', 0o700); put('open/f'); os.chmod('open/f', 0o600)\n"
        "os.chmod('open', 0o777); os.chmod('.', 0o755); os.setgid(65534); os.setuid(65534)\n"
        "w = Watcher()\n"
        "for path in 'open', 'closed', 'open/f', 'closed/f': print(refused(w.add, path))\n"
        "put('open/mine'); w.show()"
    )
    wanted = seen(plain, "-c", program)
    assert wanted.splitlines()[:4] == ["done", "EACCES", "EACCES", "EACCES"]
    assert seen(mounted, "-c", program) == wanted


def test_without_room_for_stand_ins_programs_have_to_look_themselves(within):
    """The answer is ENOSPC, and nothing else fails. /dev/shm has room for so many files."""
    program = (
        f"import sys; sys.argv[1:] = ['none']; exec(open({str(WATCHED)!r}).read())\n"
        "os.mkdir('d')\n"
        "for i in range(400): put(f'd/{i}')\n"
        "w = Watcher(); print(refused(w.add, 'd')); put('d/more'); os.mkdir('e')\n"
        "print(refused(w.add, 'e'))\n"
        "for i in range(400): os.mkdir(f'e/{i}')\n"
        "print(len(os.listdir('e')), len(os.listdir('d')))"
    )
    assert seen(within("nr_inodes=300"), "-c", program) == "ENOSPC\ndone\n400 401\n"
