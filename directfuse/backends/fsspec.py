"""Any file system of fsspec - s3, gcs, http, hdfs, zip, github, memory ... - as one to mount.

    fsspec s3://bucket /s3 -o anon,ttl=60

Operations take whole paths and are named as fusepy and mfusepy name them. Reading goes through
fsspec's own block caches, which also read ahead. Objects are written whole, by close() or fsync():
object stores know nothing smaller. What that means for programs is in docs/fsspec.md.
"""

import errno
import inspect
import os
import stat
import time
from collections.abc import Mapping
from typing import Any

try:
    import fsspec
except ImportError as _error:
    raise ImportError(
        "the backend 'fsspec' mounts file systems of fsspec, which is not installed: "
        "pip install fsspec"
    ) from _error

from directfuse._errors import MountError
from directfuse.backends._remote_file import Draft
from directfuse.backends._remote_open import OpenFiles
from directfuse.backends._remote_options import Options, parse
from directfuse.backends._remote_words import errno_of, fail, nanoseconds, operation, since_1970

__all__ = ["FsspecOperations"]


# ---- the file system -----------------------------------------------------------------------------


def _check_archive(url: str, storage: Mapping[str, Any]) -> None:
    """fsspec itself takes an archive that nobody names for the working directory."""
    protocol, separator, path = url.partition("://")
    if not separator or "::" in url or "fo" in storage:
        return
    if "fo" in inspect.signature(fsspec.get_filesystem_class(protocol).__init__).parameters:
        raise ValueError(
            f"{protocol}:// is followed by a path inside of it; what it is read from comes "
            f"behind '::', so {protocol}://::{path}"
        )


class FsspecOperations(OpenFiles):
    """The directory `root` of an fsspec file system, as operations on whole paths.

    Calls may come from any thread. After fork the child has connections of its own.
    """

    use_ns = True  # times are nanoseconds

    def __init__(self, fs: Any, root: str = "", options: Options | None = None) -> None:
        super().__init__(fs, root, options or Options())
        self._owner = (
            os.getuid() if self.options.uid is None else self.options.uid,
            os.getgid() if self.options.gid is None else self.options.gid,
        )
        self._born = time.time_ns()

    @classmethod
    def from_url(cls, url: str, options: Options | None = None) -> "FsspecOperations":
        """The directory that a URL of fsspec names. Raises OSError or ValueError, saying why."""
        options = options or Options()
        storage = {"skip_instance_cache": True} | options.storage
        _check_archive(url, storage)
        fs, root = fsspec.core.url_to_fs(url, **storage)
        made = cls(fs, root, options)
        made.check()
        return made

    @classmethod
    def from_command_line(cls, words: list[str]) -> tuple["FsspecOperations", str, list[str]]:
        """(operations, mountpoint, options of FUSE) of `fsspec URL MOUNTPOINT -o ...`."""
        url, mountpoint, options, fuse = parse(words)
        try:
            made = cls.from_url(url, options)
        except (ImportError, TypeError, ValueError) as error:
            raise MountError(errno.EINVAL, f"{type(error).__name__}: {error}", url) from error
        except Exception as error:
            code = errno_of(error)
            why = error.strerror if isinstance(error, OSError) else None
            raise MountError(code, why or str(error) or os.strerror(code), url) from error
        if made.read_only and "ro" not in fuse:
            fuse.append("ro")
        if not any(option.startswith("fsname=") for option in fuse):
            fuse.append("fsname=" + url.replace("\\", "\\\\").replace(",", "\\,"))
        return made, mountpoint, fuse

    # ---- attributes ------------------------------------------------------------------------------

    def _attributes(self, info: dict[str, Any]) -> dict[str, int]:
        directory = info["type"] == "directory"
        kind, bits = (stat.S_IFDIR, 0o777) if directory else (stat.S_IFREG, 0o666)
        size = 0 if directory else int(info["size"] or 0)
        when = nanoseconds(info) or self._born
        allowed = 0o555 if self.read_only else 0o777
        return {
            "st_mode": kind | (bits & ~self.options.umask & allowed),
            "st_nlink": 2 if directory else 1,
            "st_uid": self._owner[0],
            "st_gid": self._owner[1],
            "st_size": size,
            "st_blocks": (size + 511) // 512,
            "st_blksize": self.options.block_size,
            "st_mtime": when,
            "st_atime": when,
            "st_ctime": when,
        }

    @operation
    def getattr(self, path: str, fh: int | None = None) -> dict[str, int]:
        draft = self._draft_of(path, fh)
        return (draft and self._of_draft(draft)) or self._attributes(self._info(path))

    def _of_draft(self, draft: Draft) -> dict[str, int] | None:
        """None: it was stored and closed meanwhile."""
        with draft.lock:
            if draft.closed:
                return None
            info = {"type": "file", "size": draft.size}
            times = dict.fromkeys(("st_mtime", "st_atime", "st_ctime"), draft.modified)
        return self._attributes(info) | times

    @operation
    def access(self, path: str, mode: int) -> int:
        self.getattr(path)
        if mode & os.W_OK and self.read_only:
            raise fail(errno.EROFS)
        return 0

    @operation
    def chmod(self, path: str, mode: int, fh: int | None = None) -> int:
        """There is no place for a mode, so only the one that it has can be set."""
        if stat.S_IMODE(self.getattr(path)["st_mode"]) != stat.S_IMODE(mode):
            raise fail(errno.EROFS if self.read_only else errno.EOPNOTSUPP)
        return 0

    @operation
    def chown(self, path: str, uid: int, gid: int, fh: int | None = None) -> int:
        keep = (-1, 0xFFFFFFFF)
        if (uid not in (*keep, self._owner[0])) or (gid not in (*keep, self._owner[1])):
            raise fail(errno.EROFS if self.read_only else errno.EOPNOTSUPP)
        return 0

    @operation
    def utimens(self, path: str, times: Any = None, fh: int | None = None) -> int:
        """Objects have the time of their storing. "Now" is let pass: touch(1) has just stored."""
        self.getattr(path)
        if self.read_only:
            raise fail(errno.EROFS)
        if times is not None and abs(since_1970(times[1]) - time.time_ns()) > 60 * 10**9:
            raise fail(errno.EOPNOTSUPP)
        return 0

    @operation
    def statfs(self, path: str) -> dict[str, int]:
        return {"f_bsize": self.options.block_size, "f_frsize": 4096, "f_namemax": 255}

    # ---- directories -----------------------------------------------------------------------------

    @operation
    def readdir(self, path: str, fh: int | None = None) -> list[Any]:
        if self._info(path)["type"] != "directory":
            raise fail(errno.ENOTDIR)
        names = set(self._list(path))
        prefix = path.rstrip("/") + "/"
        with self._lock:
            pending = [*self._drafts, *self._made]
        names.update(p.removeprefix(prefix) for p in pending if os.path.dirname(p) == path)
        return [".", "..", *sorted(names - {""})]

    @operation
    def mkdir(self, path: str, mode: int) -> int:
        self._check_writable()
        if self._exists(path):
            raise fail(errno.EEXIST)
        name = self._name(path)
        self.fs.mkdir(name, create_parents=False)
        self._forget(path)
        if not self.fs.isdir(name):  # an object store has none without an object in it
            with self._lock:
                self._made.add(path)
        return 0

    @operation
    def rmdir(self, path: str) -> int:
        self._check_writable()
        if len(self.readdir(path)) > 2:
            raise fail(errno.ENOTEMPTY)
        with self._lock:
            made = path in self._made
            self._made.discard(path)
        if not made:
            self.fs.rmdir(self._name(path))
        self._forget(path)
        self._keep_parents(path)
        return 0

    # ---- names that change -----------------------------------------------------------------------

    def _exists(self, path: str) -> bool:
        try:
            self.getattr(path)
        except FileNotFoundError:
            return False
        return True

    @operation
    def unlink(self, path: str) -> int:
        self._check_writable()
        with self._lock:
            draft = self._drafts.pop(path, None)
        if draft is not None:
            with draft.lock:
                draft.dropped = True
        name = self._name(path)
        if draft is None and self._info(path)["type"] == "directory":
            raise fail(errno.EISDIR)
        if draft is None or self.fs.exists(name):
            self.fs.rm_file(name)
        self._forget(path)
        self._keep_parents(path)
        return 0

    @operation
    def rename(self, old: str, new: str) -> int:
        self._check_writable()
        directory = stat.S_ISDIR(self.getattr(old)["st_mode"])
        if self._exists(new):
            there = stat.S_ISDIR(self.getattr(new)["st_mode"])
            if directory != there:
                raise fail(errno.EISDIR if there else errno.ENOTDIR)
            if there:
                self.rmdir(new)
                with self._lock:
                    self._made.discard(new)
        self._store_below(old)
        self._move(old, new, directory)
        self._forget(old, new)
        self._keep_parents(old)
        return 0

    def _move(self, old: str, new: str, directory: bool) -> None:
        source, target = self._name(old), self._target(new)
        if self.fs.exists(source):
            self.fs.mv(source, target, recursive=directory)
        with self._lock:
            self._drafts = {_moved(p, old, new): d for p, d in self._drafts.items()}
            self._made = {_moved(p, old, new) for p in self._made}
            for path, draft in self._drafts.items():
                draft.name = path
            for handle in self._handles.values():
                handle.path = _moved(handle.path, old, new)

    # ---- life ------------------------------------------------------------------------------------

    def init(self, path: str) -> None:
        """Nothing: the file system was asked when it was made."""


def _moved(path: str, old: str, new: str) -> str:
    if path == old or path.startswith(old + "/"):
        return new + path[len(old) :]
    return path
