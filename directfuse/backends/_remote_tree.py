"""What is there, as a file system of fsspec tells it: names, attributes, listings, for a while."""

import errno
import os
import threading
import time
import weakref
from typing import Any

from directfuse.backends._remote_options import Options
from directfuse.backends._remote_recent import Recent
from directfuse.backends._remote_words import entries, fail, is_read_only, protocols

__all__ = ["RemoteTree"]

#: Their path alone does not tell a directory: its parent's listing does.
_LISTED = {"http", "https"}

_living: "weakref.WeakSet[RemoteTree]" = weakref.WeakSet()


def _after_fork() -> None:
    for one in list(_living):
        one._after_fork()


os.register_at_fork(after_in_child=_after_fork)


class RemoteTree:
    """The directory `root` of an fsspec file system; paths are absolute, below it."""

    def __init__(self, fs: Any, root: str, options: Options) -> None:
        self._fs = fs
        self._fs_generation = 0
        self.root = root.rstrip("/")
        self.options = options
        self.read_only = options.read_only or is_read_only(fs)
        self._generation = 0
        self._made: set[str] = set()  # empty directories that an object store cannot have
        self._reset()
        _living.add(self)

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
        self._infos: Recent[dict[str, Any] | None] = Recent(self.options.max_paths)
        self._listings: Recent[dict[str, dict[str, Any]]] = Recent(self.options.max_paths)

    def _after_fork(self) -> None:
        """Threads, connections and locks of the parent are no use here."""
        self._generation += 1
        self._reset()

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

    def _check_writable(self) -> None:
        if self.read_only:
            raise fail(errno.EROFS)

    # ---- names -----------------------------------------------------------------------------------

    def _name(self, path: str) -> str:
        """What fsspec calls it. Listings know better than joining where names end in a slash."""
        if path == "/":
            return self.root or str(self.fs.root_marker)
        _, known = self._known(path)
        return str(known["name"]) if known is not None else self._target(path)

    def _forget(self, *paths: str) -> list[str]:
        """They have changed; with them those above, which an object store has or has not. Returns
        what fsspec calls them."""
        names = []
        for path in paths:
            name, parents = self._name(path), above(path)
            with self._lock:
                below = [p for p in (*self._infos, *self._listings) if p.startswith(path + "/")]
                for one in (path, *parents, *below):
                    self._infos.pop(one)
                    self._listings.pop(one)
            for one in parents:
                self.fs.invalidate_cache(self._target(one) if one != "/" else self._name(one))
            self.fs.invalidate_cache(name)
            names.append(name)
        return names

    def _target(self, path: str) -> str:
        """The name of what may not be there yet."""
        if self.root or self.fs.root_marker == "/":
            return f"{self.root}{path}"
        return path.removeprefix("/")

    # ---- attributes and listings -----------------------------------------------------------------

    def _info(self, path: str) -> dict[str, Any]:
        """fsspec's info(), believed for ttl seconds. FileNotFoundError too."""
        if path == "/":
            return {"name": self.root, "type": "directory", "size": 0}
        now = time.monotonic()
        until, info = self._known(path)
        if until <= now:
            info = self._ask(path)
            with self._lock:
                self._infos.put(path, now + self.options.ttl, info)
        elif info is None:
            info = self._made_info(path)
        if info is None:
            raise fail(errno.ENOENT)
        if info.get("size") is None and info["type"] == "file":
            info = self._measure(path, info)
        return info

    def _known(self, path: str) -> tuple[float, dict[str, Any] | None]:
        """What was told of it or of its directory, whichever holds longer, and until when."""
        directory, _, name = path.rpartition("/")
        with self._lock:
            told = self._infos.get(path)
            until, listing = self._listings.get(directory or "/")
        if listing is None or until <= told[0]:
            return told
        return until, listing.get(name)

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
            self._infos.put(path, time.monotonic() + self.options.ttl, whole)
        return whole

    def _list(self, path: str) -> dict[str, dict[str, Any]]:
        """Entries by name, believed for ttl seconds."""
        now = time.monotonic()
        with self._lock:
            until, known = self._listings.get(path)
        if known is not None and until > now:
            return known
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
            gone = self._listings.put(path, until, listing, 1 + len(listing))
            prefix = path.rstrip("/") + "/"
            for one, info in listing.items():
                self._infos.put(prefix + one, until, info)
        for one in gone:
            self.fs.invalidate_cache(self._name(one))  # which has kept it, too
        return listing

    def _keep_parents(self, path: str) -> None:
        """A directory of an object store ends with the last object below it; here it stays, and
        those above it."""
        for parent in above(path)[:-1]:
            if parent in self._made or self.fs.isdir(self._name(parent)):
                return
            with self._lock:
                self._made.add(parent)
                self._infos.pop(parent)


def above(path: str) -> list[str]:
    """The directories above, the nearest first, "/" last."""
    found = []
    while path != "/":
        path = os.path.dirname(path)
        found.append(path)
    return found
