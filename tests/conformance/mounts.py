"""What of the machine the routes use: its mounts, and where its memory is a directory."""

import ctypes
import errno
import os
import subprocess
import tempfile

MS_RDONLY, MS_REMOUNT, MS_BIND, MNT_DETACH = 1, 32, 4096, 2  # mount(2), umount2(2)

_libc = ctypes.CDLL(None, use_errno=True)


def memory_directory():
    """A writable directory on tmpfs, or the ordinary temporary directory; or the one that whoever
    runs the suite names: a mount, when the suite runs below `directfuse run`."""
    if named := os.environ.get("DIRECTFUSE_TEST_DIRECTORY"):
        return named
    for directory in ("/dev/shm", tempfile.gettempdir()):
        if os.access(directory, os.W_OK) and file_system_of(directory) == "tmpfs":
            return directory
    return tempfile.gettempdir()


def _mount_table():
    """(mountpoint, type) of every mount, oldest first."""
    with open("/proc/self/mountinfo") as table:
        for line in table:
            left, right = line.split(" - ", 1)
            mountpoint = left.split()[4].encode().decode("unicode_escape")
            yield mountpoint, right.split()[0]


def mounted(path):
    """The types of what is mounted exactly at path."""
    return [kind for mountpoint, kind in _mount_table() if mountpoint == path]


def mounts_below(directory):
    """Mountpoints in a directory, at any depth."""
    return [point for point, _ in _mount_table() if point.startswith(f"{directory}/")]


def file_system_of(path):
    path = os.path.realpath(path)
    holders = [
        (len(point), number, kind)
        for number, (point, kind) in enumerate(_mount_table())
        if path == point or path.startswith(point.rstrip("/") + "/")
    ]
    return max(holders)[2]


def _check(result, path):
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), path)


def mount(source, target, flags):
    source = None if source is None else os.fsencode(source)
    _check(_libc.mount(source, os.fsencode(target), None, ctypes.c_ulong(flags), None), target)


def umount(path, flags=0):
    if os.geteuid() == 0:
        _check(_libc.umount2(os.fsencode(path), flags), path)
    else:
        lazy = ["-z"] if flags & MNT_DETACH else []
        subprocess.run(["fusermount3", "-u", *lazy, path], check=True)


def user_xattrs(directory):
    """Whether the file system of this real directory keeps user.* attributes (tmpfs: Linux 6.6)."""
    try:
        os.getxattr(directory, "user.probe")
    except OSError as error:
        return error.errno == errno.ENODATA
    return True
