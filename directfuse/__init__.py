"""FUSE file systems as plugins in your process: no mount, no root, calls at function-call speed.

    import directfuse

    with directfuse.mount("memfs /mem"):
        with directfuse.open("/mem/hello", "w") as file:
            file.write("hello")
        print(directfuse.stat("/mem/hello").st_size)

The calls have the names, arguments, results and exceptions of `os`, and `open` is builtins.open;
they serve paths and descriptors of mounts and of the ordinary file system alike. `os.open` is
called `os_open` here. Descriptors of files in mounts are numbers from 1 << 30 up, valid in this
package alone.

Threads may call at will. After os.fork() a child has its own copy of each file system as it was at
that moment. Unless every mount is known never to wait, calls release the GIL (`mount`, may_wait).
Audit hooks see "directfuse.mount" (command) and "directfuse.unmount" (mountpoint); what is done
inside a mount raises no event, what leads outside raises that of the `os` function.
"""

from io import RawIOBase as _RawIOBase
from typing import TYPE_CHECKING, Any

from directfuse import path
from directfuse._attach import attach
from directfuse._attributes import (
    chmod,
    chown,
    fchmod,
    fchown,
    fstatvfs,
    ftruncate,
    getxattr,
    lchown,
    listxattr,
    removexattr,
    setxattr,
    statvfs,
    statx,
    statx_result,
    truncate,
    utime,
)
from directfuse._errors import DirectfuseError, MountError, NotSupportedError, UnmountError
from directfuse._fast import (
    DirEntry,
    FileIO,
    access,
    close,
    fstat,
    listdir,
    lseek,
    lstat,
    open,  # noqa: A004  # the point of the package
    os_open,
    pread,
    preadv,
    pwrite,
    pwritev,
    read,
    read_many,
    readv,
    scandir,
    stat,
    write,
    writev,
)
from directfuse._files import (
    copy_file_range,
    dup,
    dup2,
    fallocate,
    fcntl,
    fdatasync,
    flock,
    fsync,
    ioctl,
    lockf,
    poll,
    posix_fadvise,
    posix_fallocate,
    readinto,
)
from directfuse._identity import identity_refresh, umask
from directfuse._memory import Mapping, borrow, mmap
from directfuse._mount import Mount, OpStats, Stats, mount, mounts, unmount
from directfuse._names import (
    link,
    mkdir,
    mkfifo,
    mknod,
    readlink,
    remove,
    rename,
    renameat2,
    replace,
    rmdir,
    symlink,
    unlink,
)
from directfuse._tree import fwalk, makedirs, removedirs, renames, walk

__all__ = [
    # mounts
    "Mount",
    "OpStats",
    "Stats",
    "attach",
    "mount",
    "mounts",
    "unmount",
    # errors
    "DirectfuseError",
    "MountError",
    "NotSupportedError",
    "UnmountError",
    # opening
    "FileIO",
    "close",
    "dup",
    "dup2",
    "open",
    "os_open",
    # data
    "Mapping",
    "borrow",
    "copy_file_range",
    "fallocate",
    "fdatasync",
    "fsync",
    "ftruncate",
    "lseek",
    "mmap",
    "posix_fadvise",
    "posix_fallocate",
    "pread",
    "preadv",
    "pwrite",
    "pwritev",
    "read",
    "read_many",
    "readinto",
    "readv",
    "truncate",
    "write",
    "writev",
    # attributes
    "access",
    "chmod",
    "chown",
    "fchmod",
    "fchown",
    "fstat",
    "fstatvfs",
    "getxattr",
    "lchown",
    "listxattr",
    "lstat",
    "removexattr",
    "setxattr",
    "stat",
    "statvfs",
    "statx",
    "statx_result",
    "utime",
    # names
    "link",
    "mkdir",
    "mkfifo",
    "mknod",
    "readlink",
    "remove",
    "rename",
    "renameat2",
    "replace",
    "rmdir",
    "symlink",
    "unlink",
    # directories and trees
    "DirEntry",
    "fwalk",
    "listdir",
    "makedirs",
    "path",
    "removedirs",
    "renames",
    "scandir",
    "walk",
    # locks, readiness, the rest
    "fcntl",
    "flock",
    "ioctl",
    "lockf",
    "poll",
    # identity
    "identity_refresh",
    "umask",
    # the standard library's own names
    "patch",
]

from directfuse._patch import patch  # it reads the list above

for _public in (
    DirectfuseError,
    Mount,
    MountError,
    NotSupportedError,
    OpStats,
    Stats,
    UnmountError,
    patch,
):
    _public.__module__ = __name__  # as users know them, in tracebacks and pickles
del _public

_RawIOBase.register(FileIO)  # what isinstance() says, in each interpreter
del _RawIOBase

__version__: str


if not TYPE_CHECKING:  # a type checker would take every name for one of ours

    def __getattr__(name: str) -> Any:
        """__version__: that of the installed package; reading its metadata takes a while."""
        if name != "__version__":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib.metadata import version

        globals()[name] = version(__name__)
        return globals()[name]
