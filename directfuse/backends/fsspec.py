"""Any file system of fsspec - s3, gcs, http, hdfs, zip, github, memory ... - as one to mount.

    fsspec s3://bucket /s3 -o anon,ttl=60

Operations take whole paths and are named as fusepy and mfusepy name them. Reading goes through
fsspec's own block caches, which also read ahead. Objects are written whole, by close() or fsync():
object stores know nothing smaller. What that means for programs is in docs/fsspec.md.
"""

import errno
import functools
import inspect
import logging
import os
import stat
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

try:
    import fsspec
except ImportError as _error:
    raise ImportError(
        "the backend 'fsspec' mounts file systems of fsspec, which is not installed: "
        "pip install fsspec"
    ) from _error

from directfuse._errors import MountError
from directfuse.backends._remote_file import Draft, Reader, Readers
from directfuse.backends._remote_options import Options, parse
from directfuse.backends._remote_words import (
    entries,
    errno_of,
    fail,
    is_read_only,
    nanoseconds,
    protocols,
    since_1970,
    version,
)

__all__ = ["FsspecOperations"]

logger = logging.getLogger("directfuse.fsspec")
Function = TypeVar("Function", bound=Callable[..., Any])

#: Their path alone does not tell a directory: its parent's listing does.
_LISTED = {"http", "https"}


# ---- operations ----------------------------------------------------------------------------------


def _operation(function: Function) -> Function:
    """Every exception leaves as an OSError with an errno; what nobody expects is logged."""

    @functools.wraps(function)
    def run(self: "FsspecOperations", path: str, *arguments: Any) -> Any:
        try:
            return function(self, path, *arguments)
        except Exception as error:
            code = errno_of(error)
            if code == errno.EIO:
                logger.exception("%s of %s failed", function.__name__, path)
            raise OSError(code, os.strerror(code), path) from error

    return run  # type: ignore[return-value]


# ---- open files ----------------------------------------------------------------------------------


class _Handle:
    """An open file: of a draft while there is one, else of a reader."""

    __slots__ = ("draft", "generation", "path", "reader", "writes")

    def __init__(self, path: str, writes: bool, generation: int) -> None:
        self.path = path
        self.writes = writes
        self.generation = generation
        self.draft: Draft | None = None
        self.reader: Reader | None = None


_living: "weakref.WeakSet[FsspecOperations]" = weakref.WeakSet()


def _after_fork() -> None:
    for one in list(_living):
        one._after_fork()


os.register_at_fork(after_in_child=_after_fork)


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


class FsspecOperations:
    """The directory `root` of an fsspec file system, as operations on whole paths.

    Calls may come from any thread. After fork the child has connections of its own.
    """

    use_ns = True  # times are nanoseconds

    def __init__(self, fs: Any, root: str = "", options: Options | None = None) -> None:
        self._fs = fs
        self._fs_generation = 0
        self.root = root.rstrip("/")
        self.options = options or Options()
        self.read_only = self.options.read_only or is_read_only(fs)
        self._owner = (
            os.getuid() if self.options.uid is None else self.options.uid,
            os.getgid() if self.options.gid is None else self.options.gid,
        )
        self._born = time.time_ns()
        self._generation = 0
        self._handles: dict[int, _Handle] = {}
        self._last = 0
        self._drafts: dict[str, Draft] = {}
        self._made: set[str] = set()  # empty directories that an object store cannot have
        self._reset()
        _living.add(self)

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

    def check(self) -> None:
        """Asks the file system whether its root is a directory, so that a wrong one is told now."""
        if self.options.create and not self.fs.exists(self.root):
            self.fs.makedirs(self.root, exist_ok=True)
            self._made.add("/")
        if self.fs.isfile(self.root) and not self.fs.isdir(self.root):
            raise NotADirectoryError(
                errno.ENOTDIR,
                "a file, not a directory; to look into an archive chain it, as in "
                f"zip://::{self.fs.unstrip_protocol(self.root)}",
                self.root,
            )
        try:
            self._list("/")
        except FileNotFoundError:
            raise FileNotFoundError(
                errno.ENOENT, "no such directory there; -o create makes it", self.root
            ) from None

    def _reset(self) -> None:
        self._lock = threading.RLock()  # protects the tables; not held while the network is asked
        self._readers = Readers()
        self._infos: dict[str, tuple[float, dict[str, Any] | None]] = {}
        self._listings: dict[str, tuple[float, dict[str, dict[str, Any]]]] = {}

    def _after_fork(self) -> None:
        """Threads, connections and locks of the parent are no use here."""
        self._generation += 1
        self._reset()
        for draft in self._drafts.values():
            draft.lock = threading.RLock()

    @property
    def fs(self) -> Any:
        """The file system; in a forked child one of its own, made when it is first needed."""
        if self._fs_generation != self._generation:
            with self._lock:
                if self._fs_generation != self._generation:
                    former = self._fs
                    self._fs = type(former)(*former.storage_args, **former.storage_options)
                    self._fs_generation = self._generation
        return self._fs

    # ---- names -----------------------------------------------------------------------------------

    def _name(self, path: str) -> str:
        """What fsspec calls it. Listings know better than joining where names end in a slash."""
        if path == "/":
            return self.root or str(self.fs.root_marker)
        with self._lock:
            known = self._infos.get(path)
        if known and known[1] is not None:
            return str(known[1]["name"])
        return self._target(path)

    def _forget(self, *paths: str) -> None:
        """They have changed; with them those above, which an object store has or has not."""
        for path in paths:
            name, above = self._name(path), _above(path)
            with self._lock:
                below = [p for p in (*self._infos, *self._listings) if p.startswith(path + "/")]
                for one in (path, *above, *below):
                    self._infos.pop(one, None)
                    self._listings.pop(one, None)
            self._readers.forget(name)
            for one in above:
                self.fs.invalidate_cache(self._target(one) if one != "/" else self._name(one))
            self.fs.invalidate_cache(name)

    # ---- attributes ------------------------------------------------------------------------------

    def _info(self, path: str) -> dict[str, Any]:
        """fsspec's info(), believed for ttl seconds. FileNotFoundError too."""
        if path == "/":
            return {"name": self.root, "type": "directory", "size": 0}
        now = time.monotonic()
        with self._lock:
            until, info = self._infos.get(path, (0.0, None))
            listing = self._listings.get(os.path.dirname(path))
        if until <= now:
            listed = listing is not None and listing[0] > now
            if listed and listing is not None and path.rpartition("/")[2] not in listing[1]:
                info = self._made_info(path)  # its directory was listed a moment ago
            else:
                info = self._ask(path)
            with self._lock:
                self._infos[path] = (now + self.options.ttl, info)
        if info is None:
            raise fail(errno.ENOENT)
        if info.get("size") is None and info["type"] == "file":
            info = self._measure(path, info)
        return info

    def _ask(self, path: str) -> dict[str, Any] | None:
        if protocols(self.fs) & _LISTED:
            listing = self._list(os.path.dirname(path))
            return listing.get(path.rpartition("/")[2])
        name = self._name(path)
        try:
            self.fs.invalidate_cache(self._name(os.path.dirname(path)))
            found: dict[str, Any] = dict(self.fs.info(name))
        except FileNotFoundError:
            return self._made_info(path)
        return found

    def _made_info(self, path: str) -> dict[str, Any] | None:
        """Of a directory that only we know."""
        if path not in self._made:
            return None
        return {"name": self._target(path), "type": "directory", "size": 0}

    def _measure(self, path: str, info: dict[str, Any]) -> dict[str, Any]:
        """A listing does not tell sizes everywhere (http)."""
        told = self.fs.info(info["name"])
        size = told.get("size")
        if size is None:  # nor does the server: only reading it does
            size = len(self.fs.cat_file(info["name"]))
        whole = {**told, **info, "size": size}
        with self._lock:
            self._infos[path] = (time.monotonic() + self.options.ttl, whole)
        return whole

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

    @_operation
    def getattr(self, path: str, fh: int | None = None) -> dict[str, int]:
        draft = self._draft_of(path, fh)
        if draft is None:
            return self._attributes(self._info(path))
        with draft.lock:
            info = {"type": "file", "size": draft.size}
            times = dict.fromkeys(("st_mtime", "st_atime", "st_ctime"), draft.modified)
        return self._attributes(info) | times

    @_operation
    def access(self, path: str, mode: int) -> int:
        self.getattr(path)
        if mode & os.W_OK and self.read_only:
            raise fail(errno.EROFS)
        return 0

    @_operation
    def chmod(self, path: str, mode: int, fh: int | None = None) -> int:
        """There is no place for a mode, so only the one that it has can be set."""
        if stat.S_IMODE(self.getattr(path)["st_mode"]) != stat.S_IMODE(mode):
            raise fail(errno.EROFS if self.read_only else errno.EOPNOTSUPP)
        return 0

    @_operation
    def chown(self, path: str, uid: int, gid: int, fh: int | None = None) -> int:
        keep = (-1, 0xFFFFFFFF)
        if (uid not in (*keep, self._owner[0])) or (gid not in (*keep, self._owner[1])):
            raise fail(errno.EROFS if self.read_only else errno.EOPNOTSUPP)
        return 0

    @_operation
    def utimens(self, path: str, times: Any = None, fh: int | None = None) -> int:
        """Objects have the time of their storing. "Now" is let pass: touch(1) has just stored."""
        self.getattr(path)
        if self.read_only:
            raise fail(errno.EROFS)
        if times is not None and abs(since_1970(times[1]) - time.time_ns()) > 60 * 10**9:
            raise fail(errno.EOPNOTSUPP)
        return 0

    @_operation
    def statfs(self, path: str) -> dict[str, int]:
        return {"f_bsize": self.options.block_size, "f_frsize": 4096, "f_namemax": 255}

    # ---- directories -----------------------------------------------------------------------------

    def _list(self, path: str) -> dict[str, dict[str, Any]]:
        """Entries by name, believed for ttl seconds."""
        now = time.monotonic()
        with self._lock:
            until, listing = self._listings.get(path, (0.0, {}))
        if until > now:
            return listing
        name = self._name(path)
        self.fs.invalidate_cache(name)
        try:
            found = self.fs.ls(name, detail=True)
        except FileNotFoundError:
            if path not in self._made:
                raise
            found = []
        listing = entries(name, found)
        until = time.monotonic() + self.options.ttl
        with self._lock:
            self._listings[path] = (until, listing)
            prefix = path.rstrip("/") + "/"
            self._infos.update({prefix + one: (until, info) for one, info in listing.items()})
        return listing

    @_operation
    def readdir(self, path: str, fh: int | None = None) -> list[Any]:
        if self._info(path)["type"] != "directory":
            raise fail(errno.ENOTDIR)
        names = set(self._list(path))
        prefix = path.rstrip("/") + "/"
        with self._lock:
            pending = [*self._drafts, *self._made]
        names.update(p.removeprefix(prefix) for p in pending if os.path.dirname(p) == path)
        return [".", "..", *sorted(names - {""})]

    @_operation
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

    @_operation
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

    def _check_writable(self) -> None:
        if self.read_only:
            raise fail(errno.EROFS)

    def _exists(self, path: str) -> bool:
        try:
            self.getattr(path)
        except FileNotFoundError:
            return False
        return True

    def _keep_parents(self, path: str) -> None:
        """A directory of an object store ends with the last object below it; here it stays, and
        those above it."""
        for parent in _above(path)[:-1]:
            if parent in self._made or self.fs.isdir(self._name(parent)):
                return
            with self._lock:
                self._made.add(parent)
                self._infos.pop(parent, None)

    @_operation
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

    @_operation
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

    def _store_below(self, path: str) -> None:
        """What is still a draft is stored, so that there is something to move."""
        with self._lock:
            drafts = [d for p, d in self._drafts.items() if p == path or p.startswith(path + "/")]
        for draft in drafts:
            self._store(draft)

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

    # ---- open files ------------------------------------------------------------------------------

    def _draft_of(self, path: str, fh: int | None) -> Draft | None:
        with self._lock:
            handle = self._handles.get(fh) if fh else None
            return handle.draft if handle and handle.draft else self._drafts.get(path)

    def _add(self, handle: _Handle) -> int:
        with self._lock:
            self._last += 1
            self._handles[self._last] = handle
            return self._last

    @_operation
    def open(self, path: str, flags: int) -> int:
        writes = flags & os.O_ACCMODE != os.O_RDONLY or bool(flags & os.O_TRUNC)
        handle = _Handle(path, writes, self._generation)
        if writes:
            self._check_writable()
            handle.draft = self._take_draft(path, load=not flags & os.O_TRUNC)
            if flags & os.O_TRUNC:
                with handle.draft.lock:
                    handle.draft.truncate(0)
        elif (draft := self._draft_of(path, None)) is not None:
            with self._lock:
                draft.users += 1
            handle.draft = draft
        else:
            handle.reader = self._take_reader(path)
        return self._add(handle)

    @_operation
    def create(self, path: str, mode: int, fi: Any = None) -> int:
        self._check_writable()
        handle = _Handle(path, True, self._generation)
        handle.draft = self._take_draft(path, load=False)
        with handle.draft.lock:
            handle.draft.truncate(0)
            handle.draft.modified = time.time_ns()
        return self._add(handle)

    def _take_reader(self, path: str) -> Reader:
        info = self._info(path)
        if info["type"] == "directory":
            raise fail(errno.EISDIR)
        name = info["name"]
        return self._readers.take(name, version(info), lambda: self._open_remote(name))

    def _open_remote(self, name: str) -> Any:
        file = self.fs.open(
            name,
            "rb",
            block_size=self.options.block_size,
            cache_type=self.options.cache_type,
            cache_options=self._cache_options(),
        )
        if file.seekable():
            return file
        with file:  # a server that sends only whole files
            draft = Draft(name)
            draft.load(file)
        return draft._data

    def _cache_options(self) -> dict[str, Any]:
        if self.options.cache_type in ("background", "blockcache"):
            return {"maxblocks": self.options.cache_blocks}
        return {}

    def _take_draft(self, path: str, load: bool) -> Draft:
        with self._lock:
            draft = self._drafts.get(path)
            if draft is not None:
                draft.users += 1
                return draft
        draft = Draft(path)
        draft.users = 1
        draft.modified = time.time_ns()
        if load:
            if self._info(path)["type"] == "directory":
                raise fail(errno.EISDIR)
            with self.fs.open(self._name(path), "rb") as file:
                draft.load(file)
        with self._lock:
            there = self._drafts.setdefault(path, draft)
            if there is not draft:  # another thread was faster
                there.users += 1
        return there

    def _handle(self, fh: int) -> _Handle:
        with self._lock:
            handle = self._handles.get(fh)
        if handle is None:
            raise fail(errno.EBADF)
        return handle

    @_operation
    def read(self, path: str, size: int, offset: int, fh: int) -> bytes:
        handle = self._handle(fh)
        draft = handle.draft or self._drafts.get(handle.path)
        if draft is not None:
            with draft.lock:
                return draft.read(size, offset)
        if handle.reader is None or handle.generation != self._generation:
            handle.reader = self._take_reader(handle.path)
            handle.generation = self._generation
        return handle.reader.read(size, offset)

    @_operation
    def write(self, path: str, data: bytes, offset: int, fh: int) -> int:
        draft = self._handle(fh).draft
        if draft is None:
            raise fail(errno.EBADF)
        with draft.lock:
            draft.modified = time.time_ns()
            return draft.write(data, offset)

    @_operation
    def truncate(self, path: str, length: int, fh: int | None = None) -> int:
        self._check_writable()
        draft = self._handle(fh).draft if fh else None
        if draft is None:
            return self._truncate_closed(path, length)
        with draft.lock:
            draft.truncate(length)
            draft.modified = time.time_ns()
        return 0

    def _truncate_closed(self, path: str, length: int) -> int:
        draft = self._take_draft(path, load=True)
        try:
            with draft.lock:
                draft.truncate(length)
            if draft.users == 1:
                self._store(draft)
        finally:
            self._drop_draft(draft)
        return 0

    @_operation
    def flush(self, path: str, fh: int) -> int:
        handle = self._handle(fh)
        if handle.draft is not None and handle.writes:
            self._store(handle.draft)
        return 0

    @_operation
    def fsync(self, path: str, datasync: int, fh: int) -> int:
        return self.flush(path, fh)

    def _store(self, draft: Draft) -> None:
        """The whole object, if there is something new in it."""
        with draft.lock:
            if not draft.dirty or draft.dropped:
                return
            with self.fs.open(self._target(draft.name), "wb") as file:
                draft.store(file)
            draft.dirty = False
        with self._lock:
            self._made.discard(os.path.dirname(draft.name))
        self._forget(draft.name)

    def _target(self, path: str) -> str:
        """The name of what may not be there yet."""
        if self.root or self.fs.root_marker == "/":
            return f"{self.root}{path}"
        return path.removeprefix("/")

    @_operation
    def release(self, path: str, fh: int) -> int:
        with self._lock:
            handle = self._handles.pop(fh, None)
        if handle is None:
            return 0
        if handle.reader is not None and handle.generation == self._generation:
            self._readers.give(handle.reader)
        if handle.draft is not None:
            try:
                self._store(handle.draft)
            except Exception:
                logger.exception("%s could not be stored; its changes are lost", path)
                raise
            finally:
                self._drop_draft(handle.draft)
        return 0

    def _drop_draft(self, draft: Draft) -> None:
        with self._lock:
            draft.users -= 1
            if draft.users > 0:
                return
            if self._drafts.get(draft.name) is draft:
                del self._drafts[draft.name]
        draft.close()

    # ---- life ------------------------------------------------------------------------------------

    def init(self, path: str) -> None:
        """Nothing: the file system was asked when it was made."""

    def destroy(self, path: str) -> None:
        """Stores what was never closed."""
        for draft in list(self._drafts.values()):
            try:
                self._store(draft)
            except Exception:
                logger.exception("%s could not be stored; its changes are lost", draft.name)
        self._readers.clear()
        self._fs = None  # with it go the files that an archive is read from


def _moved(path: str, old: str, new: str) -> str:
    if path == old or path.startswith(old + "/"):
        return new + path[len(old) :]
    return path


def _above(path: str) -> list[str]:
    """The directories above, the nearest first, "/" last."""
    found = []
    while path != "/":
        path = os.path.dirname(path)
        found.append(path)
    return found
