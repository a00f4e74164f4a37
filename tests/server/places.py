"""Directories for cases that expect of mount servers what Linux does: a plain one, and theirs."""

import contextlib

import directfuse

PLACES = ["plain", "memfs", "passthrough"]
BELIEVED = "passthrough that is believed"


@contextlib.contextmanager
def open_place(name, tmp_path):
    """The path of an empty directory, of a mount server unless it is plain."""
    source = tmp_path / "source"
    source.mkdir()
    if name == "plain":
        yield str(source)
        return
    point = str(tmp_path / "mnt")
    words = ["memfs", point] if name == "memfs" else ["passthrough", str(source), point]
    if name == BELIEVED:
        words += ["-o", "attr_timeout=100,entry_timeout=100,kernel_cache"]
    with directfuse.mount(words, placement="server") as mount:
        yield point
        assert mount.stats().trips > 0
