"""The directories of the routes: each says whose it is, and the next session removes what one that
was killed has left."""

import fcntl
import glob
import os
import re
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

from .mounts import MNT_DETACH, memory_directory, mounts_below, umount

_WHOSE = "directfuse-test-"

#: Of every directory the routes make; tests/conftest.py knows our mounts by it.
PREFIX = f"{_WHOSE}{os.getpid()}-"


@contextmanager
def public_directory():
    """One that every user can reach, which pytest's are not."""
    with tempfile.TemporaryDirectory(prefix=PREFIX, dir="/tmp") as directory:
        os.chmod(directory, 0o755)
        yield Path(directory)


def hold(directory):
    """A descriptor that keeps others from taking the directory for a leftover."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(fd, fcntl.LOCK_SH)
    return fd


def is_held(directory):
    """Whether somebody keeps it so, or as `directfuse` does its own."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def remove_leftovers():
    """Those of this user; what lies in memory is lost to everybody as long as it is there."""
    for parent in {memory_directory(), tempfile.gettempdir()}:
        for directory in glob.glob(f"{glob.escape(parent)}/{_WHOSE}*"):
            if _is_left(directory):
                for point in sorted(mounts_below(directory), reverse=True):
                    _unmount(point)
                shutil.rmtree(directory, ignore_errors=True)  # another session may do the same


def _unmount(point):
    try:
        umount(point, MNT_DETACH)
    except (OSError, subprocess.CalledProcessError):
        if point in mounts_below(os.path.dirname(point)):
            raise  # else its own server, which ends as well, was quicker


def _is_left(directory):
    """Its process is gone: nor does one hold it that has another number here."""
    pid = re.fullmatch(_WHOSE + r"(\d+)-\w+", os.path.basename(directory))
    try:
        if not pid or os.path.exists(f"/proc/{pid[1]}"):
            return False
        if os.lstat(directory).st_uid != os.geteuid():
            return False
        return not is_held(directory)
    except OSError:
        return False
