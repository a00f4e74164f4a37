"""The fsspec file system "directfuse": every mount of this process, and the ordinary files too.

    fsspec.open("directfuse:///data/train/0001.png")
    fs = fsspec.filesystem("directfuse", command="squashfuse data.sqfs /data")

Paths are absolute and mean what they mean to directfuse.open(). With a command the file system is
mounted when the instance is made, unless this process has made that very mount already; a pickled
instance carries the command, so it works in workers of every kind (docs/python.md). Calls answer in
the calling thread; AsyncFileSystemWrapper of fsspec makes coroutines of them.

fsspec is not a dependency: `pip install fsspec` brings it.
"""

import contextlib
import datetime
import errno
import os
import shutil
import stat as _stat
from collections.abc import Iterator
from typing import Any

try:
    from fsspec.spec import AbstractFileSystem
    from fsspec.utils import stringify_path
except ImportError as error:
    raise ImportError(
        "directfuse.filesystem is a file system for fsspec, which is not installed: "
        "pip install fsspec"
    ) from error

from directfuse import _attributes, _fast, _files, _names, _tree
from directfuse import path as _path
from directfuse._attach import attach, check_travels, revive
from directfuse._call import descriptor_of
from directfuse._exactly import read_exactly
from directfuse._mount import Mount
from directfuse._spec_file import open_file

__all__ = ["DirectFuseFileSystem"]

_COPY_SIZE = 1 << 22  # bytes copied at once


class _Kept(type(AbstractFileSystem)):  # type: ignore[misc]
    """fsspec keeps instances, and gives one that is asked for again without making it."""

    def __call__(cls, *args: Any, **options: Any) -> Any:
        instance = super().__call__(*args, **options)
        instance._attach()
        return instance


class DirectFuseFileSystem(AbstractFileSystem, metaclass=_Kept):
    """Files of directfuse's mounts under the names and semantics of fsspec.

    command: mounted by the instance when it is not None, as directfuse.mount() does it.
    mountpoint, placement, may_wait: of that mount.
    auto_mkdir: writing a file makes the directories above it.
    """

    protocol = ("directfuse",)
    root_marker = "/"

    def __init__(
        self,
        command: str | list[str] | None = None,
        mountpoint: str | None = None,
        placement: str = "auto",
        may_wait: bool | None = None,
        auto_mkdir: bool = False,
        **options: Any,
    ) -> None:
        if self._cached:
            return
        if command is None and mountpoint is not None:
            raise ValueError("mountpoint is a part of a command line, and there is no command")
        super().__init__(**options)
        self.auto_mkdir = auto_mkdir
        self.mount: Mount | None = None
        self._command = command
        self._of_mount = {"mountpoint": mountpoint, "placement": placement, "may_wait": may_wait}

    def _attach(self) -> None:
        """Whoever asks for the instance has its file system mounted, though it was unmounted since
        the last time."""
        if self._command is not None and not (self.mount and self.mount.mounted):
            self.mount = attach(self._command, **self._of_mount)

    def __reduce__(self) -> Any:
        command = _given(self.storage_args, self.storage_options).get("command")
        if command is not None:
            check_travels(command)
        return _revive, (type(self), self.storage_args, self.storage_options)

    @property
    def fsid(self) -> str:
        """Mounts are the process's own: what is equal elsewhere is another file."""
        return f"directfuse-{os.getpid()}"

    # ---- paths -----------------------------------------------------------------------------------

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        """directfuse:///a, directfuse://a and directfuse:/a are /a; a bare a is relative to the
        working directory, as everywhere."""
        if type(path) is not str:
            if isinstance(path, list | tuple | set):
                return [cls._strip_protocol(one) for one in path]
            path = stringify_path(path)
            if not isinstance(path, str):
                raise TypeError(f"a path is str or os.PathLike[str], not {type(path).__name__}")
        if path.startswith("directfuse:"):
            path = "/" + path[11:].lstrip("/")
        elif not path.startswith("/"):
            path = os.path.join(os.getcwd(), "" if path == "." else path.removeprefix("./"))
        return path.rstrip("/") or "/"

    @classmethod
    def _parent(cls, path: Any) -> str:
        stripped: str = cls._strip_protocol(path)
        return stripped.rpartition("/")[0] or "/"

    def unstrip_protocol(self, name: Any) -> str:
        return f"directfuse://{self._strip_protocol(name)}"

    # ---- what is there ---------------------------------------------------------------------------

    def info(self, path: Any, **options: Any) -> dict[str, Any]:
        """name, size (bytes), type, mode, uid, gid, mtime, created (st_ctime), ino, nlink, islink;
        of what a symlink leads to, and then destination too."""
        name = self._strip_protocol(path)
        return _info(name, _fast.lstat(name))

    def ls(self, path: Any, detail: bool = True, **options: Any) -> list[Any]:
        """Names, or info() of each, of a directory's entries; of a file, itself. A link to a
        directory above it is of type "other", as all links to directories are for fsspec's "file".
        """
        name = self._strip_protocol(path)
        try:
            scan = _fast.scandir(name)
        except NotADirectoryError:
            return [self.info(name)] if detail else [name]
        prefix = name if name == "/" else name + "/"
        found: list[Any] = []
        with scan:
            for entry in scan:
                try:
                    one = prefix + entry.name
                    found.append(_listed(one, entry.stat(follow_symlinks=False)) if detail else one)
                except FileNotFoundError:
                    pass  # removed since it was listed
        return found

    def exists(self, path: Any, **options: Any) -> bool:
        return _path.exists(self._strip_protocol(path))

    def lexists(self, path: Any, **options: Any) -> bool:
        return _path.lexists(self._strip_protocol(path))

    def isfile(self, path: Any) -> bool:
        return _path.isfile(self._strip_protocol(path))

    def isdir(self, path: Any) -> bool:
        return _path.isdir(self._strip_protocol(path))

    def islink(self, path: Any) -> bool:
        return _path.islink(self._strip_protocol(path))

    def size(self, path: Any) -> int:
        return _fast.stat(self._strip_protocol(path)).st_size

    def created(self, path: Any) -> datetime.datetime:
        return _utc(_fast.stat(self._strip_protocol(path)).st_ctime)

    def modified(self, path: Any) -> datetime.datetime:
        return _utc(_fast.stat(self._strip_protocol(path)).st_mtime)

    # ---- contents --------------------------------------------------------------------------------

    def _open(
        self,
        path: Any,
        mode: str = "rb",
        block_size: int | None = None,
        autocommit: bool = True,
        cache_options: Any = None,
        cache_type: Any = None,
        default_cache: Any = None,
        size: int | None = None,
        **options: Any,
    ) -> Any:
        """A buffered file of io. Of fsspec's own caches none is used: memory is near already.

        default_cache is dask's word for cache_type.
        """
        if options:
            raise TypeError(f"directfuse knows no option {', '.join(sorted(options))} of open()")
        if self.auto_mkdir and "r" not in mode:
            self.makedirs(self._parent(path), exist_ok=True)
        return open_file(self, path, mode, block_size, autocommit)

    def cat_file(
        self, path: Any, start: int | None = None, end: int | None = None, **options: Any
    ) -> bytes:
        """Bytes of a file from start to end; negative ones count from the end of the file."""
        with _fast.open(self._strip_protocol(path), "rb", buffering=0) as file:
            if start is None and end is None:
                return file.readall()
            size = file.seek(0, os.SEEK_END)
            begin, stop, _ = slice(start, end).indices(size)
            file.seek(begin)
            return read_exactly(file, max(0, stop - begin))

    def cat_ranges(
        self,
        paths: Any,
        starts: Any,
        ends: Any,
        max_gap: int | None = None,
        on_error: str = "return",
        **options: Any,
    ) -> list[Any]:
        """Many ranges by one read_many(): see there."""
        if not isinstance(paths, list):
            raise TypeError("paths is a list")
        begins = starts if isinstance(starts, list) else [starts] * len(paths)
        stops = ends if isinstance(ends, list) else [ends] * len(paths)
        if not len(paths) == len(begins) == len(stops):
            raise ValueError("paths, starts and ends have different lengths")
        return self._read_many(paths, begins, stops, on_error)

    def _read_many(
        self, paths: list[Any], starts: list[Any], ends: list[Any], on_error: str
    ) -> list[Any]:
        requests: list[Any] = []
        failures: dict[int, OSError] = {}  # of those whose place in the file cannot be told
        for place, (path, start, end) in enumerate(zip(paths, starts, ends, strict=True)):
            try:
                requests.append((self._strip_protocol(path), *self._extent(path, start, end)))
            except OSError as error:
                if on_error == "raise":
                    raise
                failures[place] = error
        found: list[Any] = _fast.read_many(
            requests, errors="raise" if on_error == "raise" else "return"
        )
        for place, failure in failures.items():
            found.insert(place, failure)
        return found

    def _extent(self, path: Any, start: int | None, end: int | None) -> tuple[int, int | None]:
        """Offset and length; None: to the end of the file, from which negative numbers count."""
        begin, stop = start or 0, end
        if begin < 0 or (stop is not None and stop < 0):
            begin, stop, _ = slice(start, end).indices(self.size(path))
        return begin, None if stop is None else max(0, stop - begin)

    def pipe_file(self, path: Any, value: Any, mode: str = "overwrite", **options: Any) -> None:
        """Makes a file of these bytes; mode "create" raises FileExistsError when there is one."""
        with self.open(path, "xb" if mode == "create" else "wb", **options) as file:
            file.write(value)

    def touch(self, path: Any, truncate: bool = True, **options: Any) -> None:
        name = self._strip_protocol(path)
        if self.auto_mkdir:
            self.makedirs(self._parent(name), exist_ok=True)
        _fast.open(name, "wb" if truncate else "ab").close()
        _attributes.utime(name)

    def cp_file(self, path1: Any, path2: Any, **options: Any) -> None:
        source, target = self._strip_protocol(path1), self._strip_protocol(path2)
        if self.auto_mkdir:
            self.makedirs(self._parent(target), exist_ok=True)
        if _path.isdir(source):
            self.makedirs(target, exist_ok=True)
            return
        with _fast.open(source, "rb", buffering=0) as read:
            if _path.exists(target) and _path.samefile(source, target):
                raise shutil.SameFileError(f"{source!r} and {target!r} are the same file")
            with _fast.open(target, "wb", buffering=0) as write:
                _copy(read, write)

    # ---- names -----------------------------------------------------------------------------------

    def mkdir(self, path: Any, create_parents: bool = True, **options: Any) -> None:
        name = self._strip_protocol(path)
        if create_parents:
            _tree.makedirs(self._parent(name), exist_ok=True)
        _names.mkdir(name)

    def makedirs(self, path: Any, exist_ok: bool = False) -> None:
        _tree.makedirs(self._strip_protocol(path), exist_ok=exist_ok)

    def rmdir(self, path: Any) -> None:
        _names.rmdir(self._strip_protocol(path))

    def rm_file(self, path: Any) -> None:
        _names.unlink(self._strip_protocol(path))

    _rm = rm_file

    def rm(self, path: Any, recursive: bool = False, maxdepth: int | None = None) -> None:
        """Files, and with recursive directories with all below them."""
        if maxdepth is not None:
            super().rm(path, recursive=recursive, maxdepth=maxdepth)
            return
        for one in path if isinstance(path, list | tuple) else [path]:
            name = self._strip_protocol(one)
            if not _stat.S_ISDIR(_fast.lstat(name).st_mode):
                _names.unlink(name)
            elif recursive:
                _remove_tree(name)
            else:
                raise IsADirectoryError(f"{name!r} is a directory: recursive=True removes it")

    def mv(
        self,
        path1: Any,
        path2: Any,
        recursive: bool = False,
        maxdepth: int | None = None,
        **options: Any,
    ) -> None:
        """rename(2) where it serves; between mounts a copy with modes, times and links as they are,
        then the removal of the source."""
        source, target = self._strip_protocol(path1), self._strip_protocol(path2)
        if self.auto_mkdir:
            self.makedirs(self._parent(target), exist_ok=True)
        if _path.isdir(target) and not _path.samefile(source, target):
            target = f"{target}/{source.rpartition('/')[2]}"
        try:
            _names.rename(source, target)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            _carry(source, target)
            self.rm(source, recursive=True)

    def chmod(self, path: Any, mode: int) -> None:
        _attributes.chmod(self._strip_protocol(path), mode)

    def link(self, src: Any, dst: Any, **options: Any) -> None:
        _names.link(self._strip_protocol(src), self._strip_protocol(dst))

    def symlink(self, src: Any, dst: Any, **options: Any) -> None:
        """Makes dst a symlink to src."""
        _names.symlink(self._strip_protocol(src), self._strip_protocol(dst))

    def _isfilestore(self) -> bool:
        return True


# ---- pickling ------------------------------------------------------------------------------------


def _revive(cls: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """An instance by its configuration: that of this process, which mounts when it has to."""
    given = _given(args, options)
    if given.get("command") is not None:
        revive(given["command"], **{key: given[key] for key in _OF_MOUNT if key in given})
    return cls(*args, **options)


def _given(args: tuple[Any, ...], options: dict[str, Any]) -> dict[str, Any]:
    return dict(zip(_PARAMETERS, args, strict=False)) | options


_PARAMETERS = ("command", "mountpoint", "placement", "may_wait", "auto_mkdir")
_OF_MOUNT = ("mountpoint", "placement", "may_wait")


# ---- steps of the above --------------------------------------------------------------------------


def _info(name: str, st: os.stat_result) -> dict[str, Any]:
    link = _stat.S_ISLNK(st.st_mode)
    destination = None
    if link:
        destination = _names.readlink(name)
        try:
            st = _fast.stat(name)
        except OSError:
            pass  # it leads nowhere: the link itself is described
    kind = st.st_mode & 0o170000
    info = {
        "name": name,
        "size": st.st_size,
        "type": _TYPES.get(kind, "other"),
        "created": st.st_ctime,
        "islink": link,
        "mode": st.st_mode,
        "uid": st.st_uid,
        "gid": st.st_gid,
        "mtime": st.st_mtime,
        "ino": st.st_ino,
        "nlink": st.st_nlink,
    }
    if link:
        info["destination"] = destination
    return info


def _listed(name: str, st: os.stat_result) -> dict[str, Any]:
    """Who follows the directories of a listing comes to an end."""
    info = _info(name, st)
    if info["islink"] and info["type"] == "directory" and _leads_up(name):
        info["type"] = "other"
    return info


def _leads_up(name: str) -> bool:
    return any(_path.samefile(name, above) for above in _directories_above(name))


def _directories_above(name: str) -> Iterator[str]:
    while name != "/":
        name = name.rpartition("/")[0] or "/"
        yield name


_TYPES = {_stat.S_IFREG: "file", _stat.S_IFDIR: "directory"}


def _utc(seconds: float) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(seconds, tz=datetime.UTC)


def _copy(source: Any, target: Any) -> None:
    """All bytes, inside the file system where it can."""
    try:
        while _files.copy_file_range(descriptor_of(source), descriptor_of(target), _COPY_SIZE):
            pass
    except OSError as error:
        if error.errno not in _COPY_BY_HAND:
            raise
    while data := source.read(_COPY_SIZE):
        view = memoryview(data)
        while view:
            view = view[target.write(view) :]


_COPY_BY_HAND = {errno.EXDEV, errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS, errno.EBADF}


def _carry(source: str, target: str) -> None:
    """Makes target what source is, with all below it, as rename(2) would leave it."""
    st = _fast.lstat(source)
    if _stat.S_ISLNK(st.st_mode):
        _names.symlink(_names.readlink(source), target)
        return
    if _stat.S_ISDIR(st.st_mode):
        _carry_directory(source, target)
    elif _stat.S_ISREG(st.st_mode):
        with _fast.open(source, "rb", buffering=0) as read:
            with _fast.open(target, "wb", buffering=0) as write:
                _copy(read, write)
    else:
        raise shutil.SpecialFileError(f"{source!r} cannot be copied: it is no file or directory")
    _keep(st, target)


def _carry_directory(source: str, target: str) -> None:
    if f"{_path.realpath(target)}/".startswith(f"{_path.realpath(source)}/"):
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), source, None, target)
    _names.mkdir(target)
    for name in _fast.listdir(source):
        _carry(f"{source}/{name}", f"{target}/{name}")


def _keep(st: os.stat_result, target: str) -> None:
    with _where_it_can():
        _attributes.chmod(target, _stat.S_IMODE(st.st_mode))
    with _where_it_can():
        _attributes.utime(target, ns=(st.st_atime_ns, st.st_mtime_ns))


@contextlib.contextmanager
def _where_it_can() -> Iterator[None]:
    """A file system that keeps no modes or times does not stop mv(1), nor us."""
    try:
        yield
    except OSError as error:
        if error.errno not in {errno.EOPNOTSUPP, errno.ENOSYS, errno.EPERM}:
            raise


def _remove_tree(top: str) -> None:
    def stop(error: OSError) -> None:
        raise error

    for directory, below, files in _tree.walk(top, topdown=False, onerror=stop):
        for name in files:
            _names.unlink(f"{directory}/{name}")
        for name in below:
            inner = f"{directory}/{name}"
            (_names.unlink if _path.islink(inner) else _names.rmdir)(inner)
    _names.rmdir(top)
