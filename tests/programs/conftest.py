"""Real FUSE programs of the distribution, unmodified, in this process."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import directfuse
from tests.conformance.backends import Unavailable
from tests.conformance.servers import sshd


@pytest.fixture(scope="session")
def source(tmp_path_factory):
    """A tree with what archives and images can hold."""
    root = tmp_path_factory.mktemp("source")
    (root / "sub/deep").mkdir(parents=True)
    (root / "empty").write_bytes(b"")
    (root / "text").write_text("hello\n")
    (root / "sub/large").write_bytes(os.urandom(1_300_000))
    (root / "sub/deep/name with spaces").write_bytes(bytes(range(256)) * 40)
    for number in range(300):
        (root / f"sub/file-{number:03}").write_text(str(number))
    return root


def need(*programs):
    """Skips, naming the Debian package, when a program is missing."""
    packages = {
        "fuse-zip": "fuse-zip",
        "zip": "zip",
        "mksquashfs": "squashfs-tools",
        "squashfuse_ll": "squashfuse",
        "unionfs": "unionfs-fuse",
        "mkfs.ext4": "e2fsprogs",
        "convmvfs": "fuse-convmvfs",
        "mount.posixovl": "fuse-posixovl",
        "sshd": "openssh-server",
        "ssh-keygen": "openssh-client",
        "ssh": "openssh-client",
    }
    for program in programs:
        if shutil.which(program) is None:
            package = packages.get(program, program)
            pytest.skip(f"{program} is not installed (apt-get install {package})")


@pytest.fixture(scope="session")
def image(source, tmp_path_factory):
    """Makes squashfs images by compressor, once each."""
    directory = tmp_path_factory.mktemp("images")

    def make(compressor):
        path = directory / f"{compressor}.sqfs"
        if not path.exists():
            command = ["mksquashfs", source, path, "-comp", compressor, "-quiet", "-no-progress"]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return path

    return make


@pytest.fixture
def archive(source, tmp_path):
    path = tmp_path / "tree.zip"
    subprocess.run(["zip", "-qr", path, "."], cwd=source, check=True)
    return path


@pytest.fixture(scope="session")
def iso(source, tmp_path_factory):
    path = tmp_path_factory.mktemp("iso") / "tree.iso"
    subprocess.run(["genisoimage", "-quiet", "-R", "-o", path, source], check=True)
    return path


@pytest.fixture(scope="session")
def ssh(tmp_path_factory):
    """An SSH server of our own: (options, "user@host:") for sshfs."""
    need("sshfs", "ssh", "ssh-keygen", "sshd")
    try:
        with sshd(tmp_path_factory.mktemp("ssh")) as words:
            yield words
    except Unavailable as error:
        pytest.skip(str(error))


def read_tree(root):
    """Relative path -> content, of every file below root, through whatever serves it."""
    found = {}
    for directory, _, files in directfuse.walk(root):
        for name in files:
            path = os.path.join(directory, name)
            with directfuse.open(path, "rb") as file:
                found[os.path.relpath(path, root)] = file.read()
    return found


def tree_of(root):
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in Path(root).rglob("*")
        if path.is_file()
    }


# ---- commands as a user without any right, who must be able to reach the files of the tests ----

NOBODY = 65534

DROP = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
DROP += ["--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"]

# pytest keeps pytest-of-USER to its user, and each session that starts sees to that again, while
# others run: so a name space of its own has an open directory there, with that of this session.
# The descriptor still names it when the path does not; -c: mount is not to make a path of it.
OPENED = """
exec 3<"$1" && mount -t tmpfs -o mode=755 tmpfs "$0" && mkdir -p "$1" &&
mount -c --bind /proc/self/fd/3 "$1" && exec 3<&- && shift && exec "$@"
"""


@pytest.fixture(scope="session")
def unprivileged(tmp_path_factory):
    """A function: runs a command so, after `prepare`, a script that is still root's in a name
    space of mounts of its own."""
    need("setpriv", "unshare", "mount")
    if os.geteuid() != 0:
        pytest.skip("only root can become somebody else")
    if subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode != 0:
        pytest.skip("name spaces of mounts are not permitted here")
    if subprocess.run([*DROP, sys.executable, "-c", "import directfuse"]).returncode != 0:
        pytest.skip("this Python is not readable for other users")
    base = tmp_path_factory.getbasetemp()
    inside = ["unshare", "-m"]
    for private in base.parents:
        if private.name.startswith("pytest-of-"):
            inside += ["sh", "-c", OPENED, private, base]

    def run(command, prepare='exec "$@"', **options):
        words = [*inside, "sh", "-c", prepare, "sh", *DROP, *command]
        return subprocess.run(words, capture_output=True, text=True, **options)

    return run


def open_to_all(path, base):
    """The directories that hold it, up to that of this session."""
    for directory in path.parents:
        if not directory.is_relative_to(base):
            return
        if directory.exists() and directory.stat().st_mode & 0o005 != 0o005:
            directory.chmod(0o755)
