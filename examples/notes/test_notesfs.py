"""Tests of a pyfuse3 file system that never mount it: no root, no /dev/fuse, no second process.

    pytest examples/notes

`directfuse_mount` is a fixture that comes with directfuse. It mounts an object inside the test's
process and unmounts it afterwards; the functions of `directfuse` are those of `os`. Put a
breakpoint() into NotesFs.write and run `pytest -s -k write`: pdb stops there, with the test's call
further up the same stack.
"""

import errno
import os
import traceback

import pytest

import directfuse

pytest.importorskip("pyfuse3")

import pyfuse3
from notesfs import NotesFs


@pytest.fixture
def notes(directfuse_mount):
    """The mountpoint of a fresh file system."""
    return directfuse_mount(NotesFs()).mountpoint


def test_write_and_read(notes):
    with directfuse.open(f"{notes}/shopping", "w") as file:
        file.write("bread\nmilk\n")
    with directfuse.open(f"{notes}/shopping") as file:
        assert file.read() == "bread\nmilk\n"
    assert directfuse.stat(f"{notes}/shopping").st_size == 11


def test_count_is_computed(notes):
    for name, text in {"one": "a b c", "two": "d"}.items():
        with directfuse.open(f"{notes}/{name}", "w") as file:
            file.write(text)
    with directfuse.open(f"{notes}/.count") as file:
        assert file.read() == "4 words in 2 notes\n"


def test_count_cannot_be_changed(notes):
    with pytest.raises(PermissionError):
        directfuse.open(f"{notes}/.count", "w")
    with pytest.raises(PermissionError):
        directfuse.remove(f"{notes}/.count")


def test_an_open_note_outlives_its_name(notes):
    with directfuse.open(f"{notes}/n", "w+") as file:
        file.write("still here")
        file.flush()
        directfuse.remove(f"{notes}/n")
        assert directfuse.listdir(notes) == [".count"]
        file.seek(0)
        assert file.read() == "still here"


def test_a_write_that_fails_reaches_the_writer(directfuse_mount, monkeypatch):
    """The object under the mount is at hand: look into it, replace its methods."""
    filesystem = NotesFs()
    mount = directfuse_mount(filesystem)

    async def full(fh, off, buf):
        raise pyfuse3.FUSEError(errno.ENOSPC)

    monkeypatch.setattr(filesystem, "write", full)
    fd = directfuse.os_open(f"{mount.mountpoint}/n", os.O_CREAT | os.O_WRONLY)
    with pytest.raises(OSError, match="No space left"):
        directfuse.write(fd, b"text")
    directfuse.close(fd)
    assert filesystem.notes[filesystem.names[b"n"]].data == b""


def test_a_debugger_sees_one_stack(directfuse_mount):
    """What breakpoint() would show inside an operation: the test's own frames are further up."""
    seen = []

    class Watched(NotesFs):
        async def read(self, fh, off, size):
            seen.extend(frame.name for frame in traceback.extract_stack())
            return await super().read(fh, off, size)

    mount = directfuse_mount(Watched())
    with directfuse.open(f"{mount.mountpoint}/.count") as file:
        file.read()
    assert seen.index("test_a_debugger_sees_one_stack") < seen.index("read")
