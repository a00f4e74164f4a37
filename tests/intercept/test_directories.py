"""Going to directories of mounts: by what questions, and where links lead."""

import json
import os
import subprocess
import sys

import pytest

from .conftest import PROGRAMS, environment
from .test_mounts import assert_like_plain

#: Changes directory as often as it is told, by a name and by a descriptor.
_GO = """
import os, sys
count = int(sys.argv[1])
os.makedirs("a/b", exist_ok=True)
root = os.open("/", os.O_RDONLY)
here, there = os.getcwd(), os.open("a", os.O_RDONLY)
for _ in range(count):
    {go}
    os.fchdir(root)
os.chdir(here)
"""


def trips_of_going(tmp_path, go):
    """To a directory of a file system whose answers may not be kept: each time."""
    counts = []
    (tmp_path / "source").mkdir(exist_ok=True)
    mount = f"passthrough {tmp_path / 'source'} {tmp_path / 'mnt'}"
    for count in ("10", "30"):
        report = tmp_path / "report.json"
        words = [sys.executable, "-m", "directfuse", "run", f"--stats={report}", "-m", mount]
        script = ["-c", _GO.format(go=go), count]
        start = ["sh", "-c", 'cd "$0" && exec "$@"', tmp_path / "mnt", sys.executable]
        subprocess.run([*words, "--", *start, *script], check=True, env=environment(), timeout=60)
        counts.append(json.loads(report.read_text())["events"]["trips"])
    return (counts[1] - counts[0]) / 20


def test_a_name_is_asked_for_once_and_once_whether_it_may_be_entered(tmp_path):
    assert trips_of_going(tmp_path, 'os.chdir(here + "/a")') == 2


def test_a_directory_above_is_asked_whether_it_is_a_link(tmp_path):
    assert trips_of_going(tmp_path, 'os.chdir(here + "/a/b")') == 3


def test_a_descriptor_is_asked_for_its_rights_and_its_name(tmp_path):
    assert trips_of_going(tmp_path, "os.fchdir(there)") == 3


#: Each line is where a way leads, or why it leads nowhere.
_WAYS = """
import os, sys
os.makedirs("real/deep")
open("file", "w").close()
os.symlink("real", "link")
os.symlink("real/deep", "far")
os.symlink(os.getcwd() + "/real", "whole")
os.symlink("gone", "dangling")
os.symlink("round", "round")
os.makedirs("shut/in")
os.symlink(os.getcwd() + "/link", sys.argv[1])
top = os.getcwd()
ways = ["real", "real/", "real/.", "real/deep", "real/deep/..", "link", "link/", "link/.",
        "link/deep", "link/..", "far", "far/", "far/..", "far/../deep", "whole", "whole/deep",
        "whole/", ".", "./", "..", "file", "file/", "link/none", "none", "dangling", "dangling/",
        "round", "", "real//deep//", "./link/./deep", sys.argv[1], sys.argv[1] + "/deep",
        sys.argv[1] + "/", sys.argv[1] + "/.."]
for absolute in (False, True):
    for way in ways:
        try:
            os.chdir(top + "/" + way if absolute and way[:1] != "/" else way)
            inside = os.getcwd().startswith(top)
            print(way, os.path.relpath(os.getcwd(), top), inside and sorted(os.listdir(".")))
        except OSError as error:
            print(way, error.errno)
        os.chdir(top)
for way in ("real", "link", "far", "whole", "link/deep", "real/.", "file", "dangling"):
    for flags in (os.O_RDONLY, os.O_PATH):
        try:
            fd = os.open(way, flags)
            os.fchdir(fd)
            print(way, os.path.relpath(os.getcwd(), top))
        except OSError as error:
            print(way, error.errno)
        os.chdir(top)
fd = os.open("real", os.O_RDONLY)
os.rename("real", "renamed")
os.symlink("renamed", "real")
os.fchdir(fd)
print(os.path.relpath(os.getcwd(), top))
"""


def test_ways_lead_where_they_do_in_a_plain_directory(plain, mounted, tmp_path):
    outside = [tmp_path / name for name in ("one", "two")]
    wanted = plain(sys.executable, "-c", _WAYS, os.fspath(outside[0]))
    assert wanted.status == 0
    found = mounted(sys.executable, "-c", _WAYS, os.fspath(outside[1]))
    for name in outside:
        name.unlink()
    assert found.out.replace(b"/two", b"/one") == wanted.out
    assert found.status == 0


def test_who_stands_in_a_directory_goes_with_it(plain, mounted):
    """Whoever renames or replaces it, and by whatever name; see stands.py."""
    assert_like_plain(plain, mounted, "-S", PROGRAMS / "stands.py")


#: The runs that are listed of which one has a directory for that in which this stands.
_LISTS_RUNS = """
import glob, os
os.makedirs("deep/er")
os.chdir("deep/er")
os.listdir(".")
runs = ["/dev/shm/" + name for name in os.listdir("/dev/shm") if name.startswith("directfuse-run-")]
print([run for run in runs if glob.glob(f"{run}/*/t{os.getcwd()}")])
"""


def test_the_directory_of_the_run_is_in_no_listing(mounted):
    """By it `find /` would come to the mounts once more, on a way that is not one."""
    assert mounted(sys.executable, "-c", _LISTS_RUNS).seen() == (0, b"[]\n", b"")


#: Linux takes it from 6.13 on where it wants a descriptor; the kernel stands in a shadow here.
_AT_WORKING_DIRECTORY = """
import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
os.mkdir("d")
os.chdir("d")
assert libc.fsetxattr(-100, b"user.name", b"x", 1, 0) == -1
print(errno.errorcode[ctypes.get_errno()], os.listxattr("."))
"""


def test_the_working_directory_is_no_descriptor_that_has_attributes(mounted):
    found = mounted(sys.executable, "-c", _AT_WORKING_DIRECTORY)
    assert found.seen() == (0, b"EBADF []\n", b"")


@pytest.mark.parametrize("how", ["rename", "rmdir"])
def test_who_enters_a_directory_goes_with_it_when_it_moves_at_that_moment(
    plain, mounted, compiled, how
):
    for where, rounds in (plain, "50"), (mounted, "300"):
        assert where(compiled("entered"), rounds, how).out == b"wrong 0\n"


#: Looks for a file by its name there all the time.
_STAYS = """
import os
top, missed = os.getcwd(), 0
for i in range(100):
    os.mkdir(f"a{i}")
    os.chdir(f"a{i}")
    os.close(os.open("file", os.O_CREAT))
    child = os.fork()
    if child == 0:
        os.rename(f"{top}/a{i}", f"{top}/b{i}")
        os._exit(0)
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        missed += not os.path.exists("file")
    os.chdir(top)
print("missed", missed)
"""


def test_who_stands_in_a_directory_that_is_renamed_finds_everything_there(plain, mounted):
    assert_like_plain(plain, mounted, "-S", "-c", _STAYS)
