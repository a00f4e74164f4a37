"""What a reader of the pages has: files, programs, and a machine of its own to try them on."""

import os
import shutil
import struct
import subprocess
import sys
import tarfile
import zlib

import pytest

from tests.house.tree import ROOT

MY_MODULE = '''#!{python}
"""A file system without files; as a class, as a module, as a program."""

import stat
import sys


class MyFs:
    def __init__(self, argument="", key=""):
        pass

    def getattr(self, path, fh=None):
        return {{"st_mode": stat.S_IFDIR | 0o755, "st_nlink": 2}}

    def readdir(self, path, fh):
        return [".", ".."]


if __name__ == "__main__":
    import mfusepy

    mfusepy.FUSE(MyFs(), sys.argv[1], foreground=True)
'''

#: What pages have people install is there already, and COMMAND is any program.
DONE = ("apt-get", "COMMAND")

#: Where a block has /mnt, /srv and /dev/shm for itself, and what it starts ends with it.
ALONE = """set -e
mount --types tmpfs none /mnt; mkdir /mnt/data /mnt/fast /mnt/fs
mount --types tmpfs none /srv; mkdir /srv/data
mount --types tmpfs none /dev/shm
exec bash -e -o pipefail "$@" """


def png():
    """The picture of one dot, as large as samples are."""

    def chunk(kind, data):
        checked = kind + data
        return struct.pack(">I", len(data)) + checked + struct.pack(">I", zlib.crc32(checked))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0))
    filled = chunk(b"tEXt", b"Comment\0" + b"x" * 3000)
    dots = chunk(b"IDAT", zlib.compress(b"\0\0"))
    return b"\x89PNG\r\n\x1a\n" + header + filled + dots + chunk(b"IEND", b"")


def make_image(directory, image):
    words = ["mksquashfs", directory, image, "-quiet", "-no-progress"]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)


def make_table(path):
    """Where pandas is installed; nobody needs it elsewhere. It is not to be in the process of other
    tests, for it starts threads."""
    text = "import pandas, sys; pandas.DataFrame({'x': [1]}).to_parquet(sys.argv[1])"
    subprocess.run([sys.executable, "-c", text, path], capture_output=True, check=False)


def make_root(directory):
    """/bin/sh and the libraries that it needs."""
    needed = subprocess.run(["ldd", "/bin/sh"], capture_output=True, text=True, check=True).stdout
    for file in ["/bin/sh", *(word for word in needed.split() if word.startswith("/"))]:
        copy = directory / file.lstrip("/")
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, copy)


@pytest.fixture(scope="session")
def belongings(tmp_path_factory):
    """The files that the pages speak of, made once."""
    home = tmp_path_factory.mktemp("reader")
    samples = home / "train"
    for name in ("train/0001.png", "0.png", "1.png"):
        (samples / name).parent.mkdir(parents=True, exist_ok=True)
        (samples / name).write_bytes(png())
    (home / "train.py").write_text("import os, sys\nassert os.listdir(sys.argv[1])\n")
    for name in ("my_module.py", "tmpfs.py"):
        (home / name).write_text(MY_MODULE.format(python=sys.executable))
        (home / name).chmod(0o755)
    with (home / "my_module.py").open("a") as module:
        module.write("\n\nfrom notesfs import NotesFs  # noqa\n")
    shutil.copy(ROOT / "examples/notes/notesfs.py", home)
    shutil.copy(ROOT / "examples/hello.c", home / "fs.c")
    with tarfile.open(home / "data.tar", "w") as archive:
        archive.add(samples, "train")
    (home / "bin").mkdir()
    for name in DONE:
        (home / "bin" / name).write_text("#!/bin/sh\n")
        (home / "bin" / name).chmod(0o755)
    if shutil.which("mksquashfs"):
        make_table(samples / "x.parquet")
        make_image(samples, home / "data.sqfs")
        make_root(home / "root")
        make_image(home / "root", home / "debian.sqfs")
    return home


@pytest.fixture
def reader(belongings, tmp_path):
    """Runs a file in a copy of the belongings, by a program."""
    home = tmp_path / "home"
    shutil.copytree(belongings, home, symlinks=True)
    users = [path for path in os.environ["PATH"].split(":") if not path.endswith("sbin")]
    environment = os.environ | {
        "HOME": str(home),
        "TMPDIR": str(tmp_path),
        "XDG_RUNTIME_DIR": str(tmp_path),
        "PATH": ":".join([f"{home}/bin", os.path.dirname(sys.executable), *users]),
        "RCLONE_CONFIG_REMOTE_TYPE": "local",
    }

    def run(text, *words):
        file = tmp_path / "block.py"
        file.write_text(text)
        return subprocess.run(
            [*map(str, words), file],
            cwd=home,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=50,
            check=False,
        )

    return run
