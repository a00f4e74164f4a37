"""Open files of an fsspec file system: read through readers, written as drafts, stored whole."""

import errno
import logging
import os
import threading
import time
from typing import Any

from directfuse.backends._remote_file import Draft, Reader, Readers
from directfuse.backends._remote_options import Options
from directfuse.backends._remote_tree import RemoteTree
from directfuse.backends._remote_words import fail, operation, version

__all__ = ["OpenFiles"]

logger = logging.getLogger("directfuse.fsspec")


class _Handle:
    """An open file: of a draft while there is one, else of a reader."""

    __slots__ = ("draft", "generation", "path", "reader", "writes")

    def __init__(self, path: str, writes: bool, generation: int) -> None:
        self.path = path
        self.writes = writes
        self.generation = generation
        self.draft: Draft | None = None
        self.reader: Reader | None = None


class OpenFiles(RemoteTree):
    """Files of the tree that are open, by number."""

    def __init__(self, fs: Any, root: str, options: Options) -> None:
        self._handles: dict[int, _Handle] = {}
        self._last = 0
        self._drafts: dict[str, Draft] = {}
        super().__init__(fs, root, options)

    def _reset(self) -> None:
        super()._reset()
        self._readers = Readers()

    def _after_fork(self) -> None:
        super()._after_fork()
        for draft in self._drafts.values():
            draft.lock = threading.RLock()

    def _forget(self, *paths: str) -> list[str]:
        names = super()._forget(*paths)
        for name in names:
            self._readers.forget(name)
        return names

    def _draft_of(self, path: str, fh: int | None) -> Draft | None:
        with self._lock:
            handle = self._handles.get(fh) if fh else None
            return handle.draft if handle and handle.draft else self._drafts.get(path)

    def _add(self, handle: _Handle) -> int:
        with self._lock:
            self._last += 1
            self._handles[self._last] = handle
            return self._last

    @operation
    def open(self, path: str, flags: int) -> int:
        writes = flags & os.O_ACCMODE != os.O_RDONLY or bool(flags & os.O_TRUNC)
        handle = _Handle(path, writes, self._generation)
        if writes:
            self._check_writable()
            handle.draft = self._take_draft(path, load=not flags & os.O_TRUNC)
            if flags & os.O_TRUNC:
                with handle.draft.lock:
                    handle.draft.truncate(0)
        elif (draft := self._share_draft(path)) is not None:
            handle.draft = draft
        else:
            handle.reader = self._take_reader(path)
        return self._add(handle)

    @operation
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

    def _share_draft(self, path: str) -> Draft | None:
        """With one user more, if there is one."""
        with self._lock:
            draft = self._drafts.get(path)
            if draft is not None:
                draft.users += 1
            return draft

    def _take_draft(self, path: str, load: bool) -> Draft:
        if (shared := self._share_draft(path)) is not None:
            return shared
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

    @operation
    def read(self, path: str, size: int, offset: int, fh: int) -> bytes:
        handle = self._handle(fh)
        draft = handle.draft or self._drafts.get(handle.path)
        if draft is not None:
            with draft.lock:
                if not draft.closed:  # by who has written it, and has stored it before
                    return draft.read(size, offset)
        if handle.reader is None or handle.generation != self._generation:
            handle.reader = self._take_reader(handle.path)
            handle.generation = self._generation
        return handle.reader.read(size, offset)

    @operation
    def write(self, path: str, data: bytes, offset: int, fh: int) -> int:
        draft = self._handle(fh).draft
        if draft is None:
            raise fail(errno.EBADF)
        with draft.lock:
            draft.modified = time.time_ns()
            return draft.write(data, offset)

    @operation
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

    @operation
    def flush(self, path: str, fh: int) -> int:
        handle = self._handle(fh)
        if handle.draft is not None and handle.writes:
            self._store(handle.draft)
        return 0

    @operation
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

    def _store_below(self, path: str) -> None:
        """What is still a draft is stored, so that there is something to move."""
        with self._lock:
            drafts = [d for p, d in self._drafts.items() if p == path or p.startswith(path + "/")]
        for draft in drafts:
            self._store(draft)

    @operation
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

    def destroy(self, path: str) -> None:
        """Stores what was never closed."""
        for draft in list(self._drafts.values()):
            try:
                self._store(draft)
            except Exception:
                logger.exception("%s could not be stored; its changes are lost", draft.name)
        self._readers.clear()
        self._fs = None  # with it go the files that an archive is read from
