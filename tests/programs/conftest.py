"""Real FUSE programs of the distribution, unmodified, in this process."""

import os
import shutil
import subprocess
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
