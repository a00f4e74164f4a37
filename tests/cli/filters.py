"""Words before a command that run it under a seccomp(2) filter, as a container does.

As a script: filters.py ROWS COMMAND..., where ROWS are those of linux/filter.h, in JSON.
"""

import ctypes
import errno
import json
import os
import struct
import sys

_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x50000
_NUMBER, _FIRST_ARGUMENT = 0, 16  # in struct seccomp_data
_PRCTL, _SET_DISPATCH = 157, 59


def forbidden(*numbers, code=errno.EPERM):
    """These system calls end in that error."""
    left = range(len(numbers) - 1, -1, -1)
    tests = [(_EQUAL, jump + 1, 0, number) for jump, number in zip(left, numbers, strict=True)]
    ends = [(_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _ERRNO | code)]
    return _words([(_LOAD, 0, 0, _NUMBER), *tests, *ends])


def without_dispatch():
    """There is no Syscall User Dispatch, as before Linux 5.11."""
    return _words(
        [
            (_LOAD, 0, 0, _NUMBER),
            (_EQUAL, 0, 3, _PRCTL),
            (_LOAD, 0, 0, _FIRST_ARGUMENT),
            (_EQUAL, 0, 1, _SET_DISPATCH),
            (_RETURN, 0, 0, _ERRNO | errno.EINVAL),
            (_RETURN, 0, 0, _ALLOW),
        ]
    )


def _words(rows):
    return [sys.executable, __file__, json.dumps(rows)]


def install(rows):
    """For this process, and what it starts."""
    libc = ctypes.CDLL(None)
    text = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *row) for row in rows))
    program = struct.pack("HxxxxxxQ", len(rows), ctypes.addressof(text))
    assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program) == 0


if __name__ == "__main__":
    install(json.loads(sys.argv[1]))
    os.execv(sys.argv[2], sys.argv[2:])
