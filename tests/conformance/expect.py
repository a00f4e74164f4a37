"""What a case expects: failures by errno and filename, struct flock, kinds of files."""

import contextlib
import errno
import os
import stat
import struct

import pytest

#: "do not look at the filename"
ANY = object()


@contextlib.contextmanager
def fails(code, filename=ANY, filename2=ANY):
    """The block raises OSError with this errno and, if given, these filenames.

    `code` may be a tuple where POSIX or Linux leaves the choice open.
    """
    codes = code if isinstance(code, tuple) else (code,)
    with pytest.raises(OSError) as caught:
        yield caught
    error = caught.value
    names = [errno.errorcode[number] for number in codes]
    assert error.errno in codes, f"{errno.errorcode.get(error.errno)} instead of {names}: {error}"
    assert error.strerror == os.strerror(error.errno)
    if filename is not ANY:
        assert error.filename == filename
    if filename2 is not ANY:
        assert error.filename2 == filename2


def kind(status):
    """The type of the file: one of stat.S_IF*."""
    return stat.S_IFMT(status.st_mode)


def mode(status):
    """The permission bits with suid, sgid and sticky."""
    return stat.S_IMODE(status.st_mode)


_FLOCK = struct.Struct("=hhxxxxqqixxxx")  # struct flock of 64-bit Linux


def flock_struct(type_, start=0, length=0, whence=os.SEEK_SET, pid=0):
    """struct flock for fcntl(2), as bytes."""
    return _FLOCK.pack(type_, whence, start, length, pid)


def flock_fields(data):
    """(type, whence, start, length, pid) of a struct flock."""
    return _FLOCK.unpack(data)
