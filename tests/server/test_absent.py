"""That a name is absent is known without a trip, until it may be there."""

import json
import subprocess
import sys

import pytest

#: Each step changes names in argv[1]; then every name that was absent is asked about again. Prints
#: what it is told.
STEPS = """
import os, sys
os.chdir(sys.argv[1])
os.makedirs("there/deep")
os.symlink("nowhere", "dangles")
NAMES = ["file", "file/", "file/x", "dir/x", "dir/x/y", "link/deep", "there/new", "there/deep/new",
         "dangles", "nowhere", "there/../file", "there/moved", "there/hard", "moved/deep", "node"]

def opened(name):
    os.close(os.open(name, os.O_RDONLY | os.O_NONBLOCK))
    return "opened"

def tell(function, name):
    try:
        found = function(name)
        return found if isinstance(found, str) else oct(found.st_mode)
    except OSError as error:
        return error.errno

HOW = [opened, os.readlink, os.stat, os.lstat, opened]

def look():
    print([[tell(how, name) for how in HOW] for name in NAMES])

look()
for step in [
    lambda: open("file", "w").close(),
    lambda: os.mkdir("dir"),
    lambda: open("dir/x", "w").close(),
    lambda: os.symlink("there", "link"),
    lambda: open("there/new", "w").close(),
    lambda: open("there/deep/new", "w").close(),
    lambda: open("nowhere", "w").close(),
    lambda: os.rename("file", "there/moved"),
    lambda: os.link("nowhere", "there/hard"),
    lambda: os.rename("there", "moved"),
    lambda: os.mkfifo("node"),
    lambda: os.unlink("dangles"),
    lambda: os.symlink("moved", "dangles"),
    lambda: open("file", "w").close(),
]:
    step()
    look()
    look()
"""

RUN = [sys.executable, "-m", "directfuse", "run"]


@pytest.mark.parametrize("file_system", ["memfs", "passthrough"])
def test_what_is_told_is_what_linux_tells(tmp_path, file_system):
    """By way of names, directories, links and renames that make what was absent."""
    (tmp_path / "plain").mkdir()
    (tmp_path / "source").mkdir()
    source = [str(tmp_path / "source")] if file_system == "passthrough" else []
    mount = " ".join([file_system, *source, str(tmp_path / "mnt")])
    steps = [sys.executable, "-c", STEPS]
    plain = subprocess.run([*steps, tmp_path / "plain"], capture_output=True, check=True)
    mine = subprocess.run(
        [*RUN, "-m", mount, "--", *steps, f"{tmp_path}/mnt"], capture_output=True, timeout=60
    )
    assert mine.stdout.decode().splitlines() == plain.stdout.decode().splitlines()
    assert mine.stderr == b""


#: 100 times: a file is made, and names that are absent are looked for.
SEARCH = """
import os, sys
os.chdir(sys.argv[1])
os.mkdir("include")

def is_there(name):
    try:
        os.close(os.open(name, os.O_RDONLY))
    except FileNotFoundError:
        return False
    return True

look = {"stat": os.path.exists, "readlink": os.path.islink, "open": is_there}[sys.argv[2]]
for number in range(100):
    open(f"{number}.o", "w").close()
    for name in ["include/stdio.h", "include/unistd.h", "include/time.h"]:
        assert not look(name)
"""


@pytest.mark.parametrize("way", ["stat", "readlink", "open"])
def test_files_that_are_made_leave_other_names_absent(tmp_path, way):
    """A build makes one after the other while it looks for headers."""
    stats = tmp_path / "stats.json"
    command = [sys.executable, "-c", SEARCH, f"{tmp_path}/mnt", way]
    run = [*RUN, f"--stats={stats}", "-m", f"memfs {tmp_path}/mnt", "--"]
    subprocess.run([*run, *command], check=True, timeout=60)
    (found,) = json.loads(stats.read_text())["mounts"].values()
    vain = sum(found.get(op, {"errors": 0})["errors"] for op in ("getattr", "readlink", "open"))
    assert vain < 100  # of 300, or twice as many; a thirtieth each time by chance
