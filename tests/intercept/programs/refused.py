"""Which of several errors a call has that concerns two file systems, this one and /dev/shm."""

import contextlib
import ctypes
import itertools
import os
import tempfile

LINKAT, RENAMEAT2, SENDFILE, SPLICE, COPY_FILE_RANGE = 265, 316, 40, 275, 326
NAMES = b"file", b"none", b"none/x", b"file/x", b"d", b"d/.", b"dangling"
FLAGS = {LINKAT: (0, 0x400, 0x1000, 2), RENAMEAT2: (0, 1, 1 << 10)}
libc = ctypes.CDLL(None, use_errno=True)


def call(number, *words):
    ctypes.set_errno(0)
    words = [ctypes.c_long(word) if isinstance(word, int) else word for word in words]
    return libc.syscall(number, *words), ctypes.get_errno()


def look_at_names(here, there):
    """The calls that take two directories and names, of which one is elsewhere."""
    for place in here, there:
        os.mkdir(f"{place}/d")
        os.symlink("none", f"{place}/dangling")
        open(f"{place}/file", "w").close()
    ends = {word: os.open(place, os.O_PATH) for word, place in (("here", here), ("there", there))}
    others = {-1: -1, "null": os.open("/dev/null", 0), "file": os.open(f"{there}/file", 0)}
    for number, old, new in itertools.product(FLAGS, NAMES, NAMES):
        for flag, first in itertools.product(FLAGS[number], ends):
            second = "there" if first == "here" else "here"
            words = ends[first], old, ends[second], new, flag
            print(number, flag, first, old, new, call(number, *words))
        for word, first in itertools.product(others, ends):
            print(
                number, word, first, old, new, call(number, others[word], old, ends[first], new, 0)
            )
            print(
                number, first, word, old, new, call(number, ends[first], old, others[word], new, 0)
            )


def look_at_files(here, there):
    """The calls that take two descriptors, where nothing can be copied."""
    ends = os.pipe()
    fds = {-1: -1, "null": os.open("/dev/null", os.O_RDWR), "reader": ends[0], "writer": ends[1]}
    for word, place in ("here", here), ("there", there):
        with open(f"{place}/data", "w") as file:
            file.write("data")
        fds[f"{word} d"] = os.open(place, os.O_RDONLY)
        for how in os.O_RDONLY, os.O_WRONLY, os.O_WRONLY | os.O_APPEND, os.O_PATH:
            fds[f"{word} {how}"] = os.open(f"{place}/data", how)
    for (first, a), (second, b) in itertools.product(fds.items(), fds.items()):
        both = str(first)[:4], str(second)[:4]
        if "here" not in both:
            continue
        for offsets, flags in itertools.product(((None, None), (8, None), (None, 8)), (0, 1 << 20)):
            words = a, offsets[0], b, offsets[1]
            if both != ("here", "here") or 8 in offsets:  # nothing is copied
                print(first, second, offsets, flags, call(COPY_FILE_RANGE, *words, 9, flags))
            print(first, second, offsets, flags, call(SPLICE, *words, 0, flags))
            print(first, second, offsets, flags, call(SPLICE, *words, -1, flags))
            if second != "writer" and first != "reader":
                print(first, second, offsets, flags, call(SPLICE, *words, 9, flags))
        if second != "null" and not str(second).endswith("0"):
            print(first, second, call(SENDFILE, a, b, None, 9), call(SENDFILE, a, b, 8, 9))


with contextlib.ExitStack() as stack:
    places = [
        stack.enter_context(tempfile.TemporaryDirectory(dir=directory))
        for directory in (".", "/dev/shm")
    ]
    look_at_names(*places)
    look_at_files(*places)
