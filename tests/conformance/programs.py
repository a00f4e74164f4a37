"""FUSE programs of the distribution as backends of the suite.

They are held to themselves, not to Linux: the cases that fail through a kernel mount of the program
fail inline, and no others (tests/programs/test_conformance.py). So they run only where asked for:

    DIRECTFUSE_CONFORMANCE=inline:bindfs,kernel:bindfs pytest --runxfail tests/conformance
"""

import atexit
import contextlib
import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from . import servers
from .backends import OPTIONS, Backend

#: "route:program" words, with commas between them: what the suite runs on instead.
CHOICE = "DIRECTFUSE_CONFORMANCE"

#: If it is set, nothing that a program has told is believed for any time.
UNCACHED = "DIRECTFUSE_CONFORMANCE_UNCACHED"


class Program(Backend):
    """words: its command line; {source}, {mnt}, {area} and {options} stand for the route's.
    `prepare` makes what it serves, from the route's area, and may return more such words; `reach`
    returns the words with which it reaches a server that lives as long as this process; either
    raises Unavailable. uncached: the options by which the kernel asks it each time."""

    def __init__(
        self,
        name,
        *words,
        package=None,
        needs_mountpoint=False,
        prepare=None,
        reach=None,
        keeps=True,
        uncached=("entry_timeout=0", "attr_timeout=0"),
    ):
        super().__init__(name, source=True, keeps_names=keeps)
        self.package = package or name
        self.words = words
        self.needs_mountpoint = needs_mountpoint
        self.uncached = uncached
        self._prepare = prepare
        self._reach = reach

    def command(self, mountpoint, source, *, readonly=False):
        extra = self.uncached if UNCACHED in os.environ else ()
        options = ",".join((*OPTIONS, *extra, *(["ro"] if readonly else [])))
        area = os.path.dirname(source)
        places = {"mnt": mountpoint, "source": source, "area": area, "options": options}
        if self._prepare:
            places.update(self._prepare(area) or {})
        server = self._reach() if self._reach else []
        return [self.name, *(word.format(**places) for word in self.words), *server]

    def executable(self):
        return shutil.which(self.name)


def _directories(*names):
    def prepare(area):
        for name in names:
            os.makedirs(os.path.join(area, name), exist_ok=True)

    return prepare


def _image(*make, size):
    def prepare(area):
        path = os.path.join(area, "image")
        if not os.path.exists(path):
            with open(path, "wb") as file:
                file.truncate(size)
            subprocess.run([*make, path], check=True, capture_output=True)

    return prepare


def _archive(format):
    """Of what is in the source: nothing, or the file of a read-only route."""

    def prepare(area):
        path = os.path.join(area, "archive")
        if not os.path.exists(f"{path}.{format}"):
            shutil.make_archive(path, format, os.path.join(area, "source"))

    return prepare


def _for_this_process(server):
    """What the context manager server(directory) yields, until this process ends."""

    @functools.cache
    def start():
        stack = contextlib.ExitStack()
        atexit.register(stack.close)
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="directfuse-test-"))
        return stack.enter_context(server(Path(directory)))

    return start


_sshd = _for_this_process(servers.sshd)
_s3 = _for_this_process(servers.s3)


def _sshd_words():
    options, _ = _sshd()
    return options


def _s3_words():
    options, _ = _s3()
    return options


def _bucket(area):
    """A bucket for the area, with what is in the source: as objects, the way s3fs stores them."""
    _, make_bucket = _s3()
    name = "area-" + hashlib.sha256(area.encode()).hexdigest()[:16]
    with os.scandir(os.path.join(area, "source")) as entries:
        make_bucket(name, [_object(entry) for entry in entries])
    return {"bucket": name}


def _object(entry):
    """(key, content, headers) of a file or symlink."""
    status = entry.stat(follow_symlinks=False)
    content = os.readlink(entry.path).encode() if entry.is_symlink() else _content(entry.path)
    return entry.name, content, {"x-amz-meta-mode": str(status.st_mode)}


def _content(path):
    with open(path, "rb") as file:
        return file.read()


PROGRAMS = {
    program.name: program
    for program in (
        Program("bindfs", "-o", "{options}", "{source}", "{mnt}", needs_mountpoint=True),
        Program("unionfs", "-o", "{options},cow", "{source}=RW", "{mnt}", package="unionfs-fuse"),
        Program(
            "fuse-overlayfs",
            "-o",
            "{options},lowerdir={area}/lower,upperdir={source},workdir={area}/work",
            "{mnt}",
            prepare=_directories("lower", "work"),
            keeps=False,
            uncached=("timeout=0",),
        ),
        Program("disorderfs", "-o", "{options}", "{source}", "{mnt}", needs_mountpoint=True),
        Program(
            "convmvfs",
            "-o",
            "{options},srcdir={source}",
            "{mnt}",
            package="fuse-convmvfs",
        ),
        Program(
            "fuse2fs",
            "-o",
            "{options},fakeroot",
            "{area}/image",
            "{mnt}",
            prepare=_image("mkfs.ext4", "-q", "-F", "-E", "root_owner=0:0", size=64 << 20),
        ),
        Program(
            "fuse-zip", "-o", "{options}", "{area}/archive.zip", "{mnt}", prepare=_archive("zip")
        ),
        Program(
            "archivemount",
            "-o",
            "{options},nobackup",
            "{area}/archive.tar",
            "{mnt}",
            prepare=_archive("tar"),
            needs_mountpoint=True,
        ),
        Program(
            "s3fs",
            "{bucket}",
            "{mnt}",
            "-o",
            "{options}",
            prepare=_bucket,
            reach=_s3_words,
            needs_mountpoint=True,
        ),
        Program(
            "mhddfs",
            "{source},{area}/more",
            "{mnt}",
            "-o",
            "{options}",
            prepare=_directories("more"),
        ),
        Program(
            "mount.posixovl",
            "-S",
            "{source}",
            "{mnt}",
            "--",
            "-o",
            "{options}",
            package="fuse-posixovl",
        ),
        Program(
            "sshfs",
            "-o",
            "{options}",
            "root@127.0.0.1:{source}",
            "{mnt}",
            needs_mountpoint=True,
            reach=_sshd_words,
        ),
    )
}


def chosen():
    """(route, program or backend) of the environment; None: nothing was asked for."""
    words = os.environ.get(CHOICE)
    return words and [tuple(word.split(":", 1)) for word in words.split(",")]
