"""splice(2) and sendfile(2) between files of a mount and what is the kernel's."""

from .test_mounts import assert_like_plain

#: The file has more than there is room for in the pipe, and nobody else reads there.
_TO_A_PIPE = """
import fcntl, os
file = os.open("f", os.O_RDWR | os.O_CREAT)
os.write(file, bytes(range(250)) * 1000)
reader, writer = os.pipe()
expected, moved = os.pread(file, 250000, 0), 0
for _ in range(2):
    moved += os.splice(file, writer, 40000, offset_src=moved)
print(40000 < moved < 80000, os.read(reader, 99999) == expected[:moved])
reader, writer = os.pipe()
fcntl.fcntl(writer, 1031, 4096)  # F_SETPIPE_SZ
print(os.splice(file, writer, 99999, offset_src=8192))
print(os.read(reader, 9999) == expected[8192:12288])
"""


def test_a_splice_moves_what_a_pipe_has_room_for(plain, mounted):
    assert_like_plain(plain, mounted, "-S", "-c", _TO_A_PIPE)


#: Nobody reads there; nothing is left to be moved, and there is no room for it either.
_TO_A_PIPE_WITHOUT_A_READER = """
import fcntl, os, signal
met = []
signal.signal(signal.SIGPIPE, lambda number, frame: met.append(number))
def said(*args, **options):
    try:
        return os.splice(*args, **options)
    except OSError as error:
        return error.strerror
file = os.open("f", os.O_RDWR | os.O_CREAT)
os.write(file, b"words")
reader, writer = os.pipe()
os.close(reader)
for start in 0, 5, 70000:
    print(said(file, writer, 5, offset_src=start), len(met))
reader, writer = os.pipe2(os.O_NONBLOCK)
print(said(file, writer, 5, offset_src=5))
os.write(writer, bytes(1 << 20))
print(said(file, writer, 5, offset_src=5), said(file, writer, 5, offset_src=0))
written = os.open("f", os.O_WRONLY)
print(said(written, writer, 5, offset_src=5))
"""


def test_a_splice_asks_for_readers_before_it_looks_for_bytes(plain, mounted):
    assert_like_plain(plain, mounted, "-S", "-c", _TO_A_PIPE_WITHOUT_A_READER)


#: As the shell's >> opens a FIFO; and files, which are not spliced to so.
_TO_WHAT_APPENDS = """
import os
def said(*args, **options):
    try:
        return os.splice(*args, **options)
    except OSError as error:
        return error.strerror
os.mkfifo("fifo")
file = os.open("f", os.O_RDWR | os.O_CREAT)
os.write(file, b"words")
fifo = os.open("fifo", os.O_RDWR | os.O_APPEND | os.O_NONBLOCK)
print(said(file, fifo, 5, offset_src=0) == 5 and os.read(fifo, 9))
os.write(fifo, b"more")
appended = os.open("f", os.O_RDWR | os.O_APPEND)
print(said(fifo, appended, 4), said(fifo, file, 4), os.pread(file, 99, 0))
"""


def test_a_splice_to_a_pipe_that_is_open_to_append(plain, mounted):
    assert_like_plain(plain, mounted, "-S", "-c", _TO_WHAT_APPENDS)


#: More than a file can have from there on; and as much as there can be at all.
_BEYOND = """
import os, sys
def said(*args):
    try:
        return os.sendfile(*args)
    except OSError as error:
        return error.strerror
file, other = (os.open(name, os.O_RDWR | os.O_CREAT) for name in "fg")
os.write(file, b"words")
closed = os.open("g", os.O_RDONLY)
print(said(other, file, 1, sys.maxsize), said(other, file, 0, sys.maxsize))
print(said(closed, file, 1, sys.maxsize), said(closed, file, 0, sys.maxsize))
print(said(other, closed, sys.maxsize, 1), os.pread(other, 99, 0))
"""


def test_nothing_is_sent_from_beyond_what_files_have(plain, mounted):
    assert_like_plain(plain, mounted, "-S", "-c", _BEYOND)
