"""chroot(2) into a mount: what a program sees, as of a plain directory."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conformance.leftovers import public_directory

from .conftest import PROGRAMS, environment
from .test_mounts import assert_like_plain

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="chroot needs root")

CASES = (
    "paths", "changes", "outside", "nested", "errors", "judged", "dropped", "renamed", "programs",
    "shared", "removed", "raced", "sockets", "opens",
)  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_root_in_a_mount(plain, mounted, case):
    """See rooted.py."""
    assert_like_plain(plain, mounted, "-S", PROGRAMS / "rooted.py", case)


def test_a_static_program_starts_itself_below_a_root(mounted, compiled):
    script = 'mkdir jail; cp "$0" jail/again; exec chroot jail /again'
    found = mounted("/bin/sh", "-c", script, compiled("again", "-static"))
    assert (found.status, found.out) == (0, b"1\n2\n3\n4\n\n")  # there is no /proc


def directfuse_run(mounts, *command, options=("--strict",)):
    words = [word for mount in mounts for word in ("-m", mount)]
    return subprocess.run(
        [sys.executable, "-m", "directfuse", "run", *options, *words, "--", *command],
        capture_output=True,
        env=environment(),
        check=False,
        text=True,
        timeout=50,
        stdin=subprocess.DEVNULL,
    )


_NESTED = """
import os, sys
img = sys.argv[1]
for name, text in ("/f", "above"), ("/data/f", "below"), ("/sub/g", "beside"):
    os.makedirs(os.path.dirname(img + name), exist_ok=True)
    with open(img + name, "w") as file: file.write(text)
for name, target in {
    "/link": "/data/f", "/data/back": "/sub/g", "/data/relative": "../sub/g", "/data/root": "/"
}.items():
    os.symlink(target, img + name)
def show(function, *words):
    try: print(*words[:1], function(*words), flush=True)
    except OSError as error: print(*words, error.strerror, flush=True)
def read(path):
    with open(path) as file: return file.read()
for root in img, img + "/data":
    if os.fork() == 0:
        os.chroot(root)
        os.chdir("/")
        for name in (
            "/f", "/data/f", "data/../f", "/link", "/data/back", "data/relative", "/back",
            "/data/root/data/f", "../../f", "/data/../data/../f",
        ):
            show(read, name)
        show(os.chdir, "/data")
        print(os.getcwd())
        for name in "f", "../f", "back", "relative", "../data/f", "../../../data/f":
            show(read, name)
        show(os.rename, "/f", "/data/moved")
        show(os.chdir, "..")
        print(os.getcwd())
        os._exit(0)
    os.wait()
"""

_NESTED_SEEN = """\
/f above
/data/f below
data/../f above
/link below
/data/back beside
data/relative beside
/back No such file or directory
/data/root/data/f below
../../f above
/data/../data/../f above
/data None
/data
f below
../f above
back beside
relative beside
../data/f below
../../../data/f below
/f /data/moved Invalid cross-device link
.. None
/
/f below
/data/f No such file or directory
data/../f No such file or directory
/link No such file or directory
/data/back No such file or directory
data/relative No such file or directory
/back No such file or directory
/data/root/data/f No such file or directory
../../f below
/data/../data/../f No such file or directory
/data No such file or directory
/
f below
../f below
back No such file or directory
relative No such file or directory
../data/f No such file or directory
../../../data/f No such file or directory
/f /data/moved No such file or directory
.. None
/
"""


def test_other_mounts_below_the_root(tmp_path):
    """At their places; and the root of one of them as the root."""
    point = str(tmp_path / "img")
    mounts = [f"memfs {point}", f"memfs {point}/data"]
    found = directfuse_run(mounts, sys.executable, "-c", _NESTED, point)
    assert (found.returncode, found.stderr, found.stdout) == (0, "", _NESTED_SEEN)


# ---- an image --------------------------------------------------------------------------------

_FURNITURE = "bash", "sh", "ls", "cat", "head", "env", "id", "pwd", "tail", "readlink", "stat"


@pytest.fixture(scope="module")
def image():
    """A small Debian: a squashfs of a shell, what it starts, and their libraries."""
    for tool in ("mksquashfs", "squashfuse", "unshare", "setpriv"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    with public_directory() as directory:
        yield _image_in(directory)


def _image_in(directory):
    """(tree, file)"""
    tree = directory / "tree"
    for name in ("bin", "etc", "proc", "sub/deep"):
        (tree / name).mkdir(parents=True)
    for name in _FURNITURE:
        program = shutil.which(name)
        shutil.copy(program, tree / "bin")
        listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=True)
        for library in re.findall(r"/\S+", listed.stdout):
            (tree / library[1:]).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(library, tree / library[1:])
    (tree / "etc/os-release").write_text("NAME=small\n")
    (tree / "sub/deep/up").symlink_to("../../../../etc/os-release")
    (tree / "release").symlink_to("/etc/os-release")
    (tree / "bin/script").write_text("#!/bin/bash\necho $0 $1 $PWD\n")
    (tree / "bin/script").chmod(0o755)
    file = directory / "image.sqfs"
    subprocess.run(
        ["mksquashfs", tree, file, "-quiet", "-all-root"], check=True, capture_output=True
    )
    return tree, file


_AS_SOMEBODY = (
    "setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--bounding-set=-all",
    "--inh-caps=-all",
)  # fmt: skip

_LOOK = """
ls /; cat /etc/os-release release sub/deep/up; cd /sub/deep; pwd; head -n1 up; ls ../../../..
/bin/script a; env -i /bin/script b; stat -c %n /release; readlink /release; ls /home
for i in 1 2 3; do (cd ..; /bin/pwd) | cat; done; cat < /proc/self/stat; id -u; exit 3
"""


@pytest.mark.parametrize("as_somebody", [False, True])
def test_a_shell_in_an_image(image, as_somebody):
    """As root; and with no right but that of an own user namespace."""
    tree, file = image
    by = []
    if as_somebody:
        by = [*_AS_SOMEBODY, "unshare", "-r"]
        if subprocess.run([*by, "true"], check=False, capture_output=True).returncode:
            pytest.skip("no user namespaces here")
    command = *by, "chroot", "IMG", "/bin/bash", "-c", _LOOK
    wanted = subprocess.run(
        [str(tree) if word == "IMG" else word for word in command],
        capture_output=True, text=True, check=False, env=environment(), timeout=50,
    )  # fmt: skip
    point = f"{file.parent}/img"
    found = directfuse_run(
        [f"squashfuse {file} {point} -o allow_other"],
        *[point if word == "IMG" else word for word in command],
    )
    assert wanted.returncode == 3 and "NAME=small" in wanted.stdout
    assert (found.returncode, found.stdout, found.stderr) == (3, wanted.stdout, wanted.stderr)


def test_without_the_right_there_is_no_new_root(image):
    file = image[1]
    script = "chroot $0 /bin/ls; chroot $0/no /bin/ls; chroot $0/etc/os-release /bin/ls"
    point = f"{file.parent}/img"
    mounts = [f"squashfuse {file} {point} -o allow_other"]
    found = directfuse_run(mounts, *_AS_SOMEBODY, "/bin/sh", "-c", script, point)
    said = [line.rpartition(": ")[2] for line in found.stderr.splitlines()]
    assert said == ["Operation not permitted", "No such file or directory", "Not a directory"]


def test_a_program_that_gains_rights_does_not_leave_its_root(mounted, tmp_path):
    """One that was opened outside: run by the kernel, it would be back in the real tree."""
    program = Path(tmp_path / "gains")
    shutil.copy("/bin/true", program)
    os.chown(program, 1, 1)
    program.chmod(0o4755)
    script = (
        "import os, sys\n"
        "fd = os.open(sys.argv[1], os.O_RDONLY)\n"
        "os.mkdir('jail'); os.chroot('jail')\n"
        "try: os.execve(fd, ['true'], {})\n"
        "except OSError as error: print(error.strerror)\n"
    )
    found = mounted(sys.executable, "-c", script, program)
    assert (found.status, found.out) == (0, b"Operation not permitted\n")
