"""Fixtures of the Python door's tests: fresh mounts, and a script in a process of its own."""

import os
import subprocess
import sys
import textwrap

import pytest

directfuse = pytest.importorskip("directfuse", reason="the package is not built")

BACKENDS = ("memfs", "passthrough")


@pytest.fixture
def mount_of(tmp_path):
    """mount_of(backend): a fresh mount, unmounted at the end of the test.

    Files that the test left open are an error, but for those that a failed test could not close.
    """
    made = []

    def make(backend, name="mnt", **options):
        source = tmp_path / f"{name}-source"
        source.mkdir()
        words = [backend, *([source] if backend == "passthrough" else []), tmp_path / name]
        mounted = directfuse.mount(words, **options)
        made.append(mounted)
        return mounted

    yield make
    for mounted in reversed(made):
        if mounted.mounted:
            mounted.unmount(lazy=False)


@pytest.fixture
def memfs(mount_of):
    """A fresh memfs, as a Mount."""
    return mount_of("memfs")


@pytest.fixture
def mem(memfs):
    """The root of a fresh memfs."""
    return memfs.mountpoint


@pytest.fixture(params=BACKENDS)
def root(request, mount_of):
    """The root of a fresh mount of each backend."""
    return mount_of(request.param).mountpoint


@pytest.fixture
def fill():
    """fill(path, data): a file with these bytes; the path."""

    def make(path, data=b""):
        with directfuse.open(path, "wb") as file:
            file.write(data)
        return path

    return make


@pytest.fixture
def opened():
    """opened(path, flags): a descriptor that is closed at the end of the test."""
    descriptors = []

    def make(path, flags=os.O_RDWR | os.O_CREAT, mode=0o644, **options):
        fd = directfuse.os_open(path, flags, mode, **options)
        descriptors.append(fd)
        return fd

    yield make
    for fd in descriptors:
        try:
            directfuse.close(fd)
        except OSError:  # the test closed it
            pass


@pytest.fixture
def script(tmp_path):
    """script(text): runs Python code in a process of its own; its standard output, stripped.

    The process must end with status 0 and say nothing on standard error.
    """

    def run(text, *options):
        path = tmp_path / "script.py"
        path.write_text(textwrap.dedent(text))
        done = subprocess.run(
            [sys.executable, *options, path],
            capture_output=True,
            text=True,
            timeout=40,
            cwd=tmp_path,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        return done.stdout.strip()

    return run
