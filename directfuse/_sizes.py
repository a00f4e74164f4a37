"""Sizes that users set by the environment."""

import errno
import os
import re

from directfuse._errors import MountError

__all__ = ["CACHE", "MAPPED", "size_of"]

CACHE = "DIRECTFUSE_CACHE"  # read by the server, for which what is no size is none (process.c)
MAPPED = "DIRECTFUSE_MAPPED"

_FORM = re.compile(r"([0-9]+)([KMG]?)(i?B)?")
_SHIFT = {"": 0, "K": 10, "M": 20, "G": 30}


def size_of(variable: str) -> int | None:
    """Bytes; None: it is not set. Raises MountError: it is no size, and must not be taken for a
    small one."""
    text = os.environ.get(variable, "")
    if not text:
        return None
    match = _FORM.fullmatch(text)
    if match is None:
        words = "is no size; a number of bytes is one, with K, M or G behind it or not: 256M"
        raise MountError(errno.EINVAL, words, f"{variable}={text}")
    return int(match[1]) << _SHIFT[match[2]]
