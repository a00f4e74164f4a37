"""What the kernel does for a pyfuse3 file system that enables its write-back cache.

Such a file system leaves sizes and times to the kernel: a write behind the end of a file is
preceded by zeros, and writes, truncations and changes of names arrive as new times in setattr().
There is no such cache here; its duties are done with each call.
"""

import inspect
import time
from typing import Any

from directfuse import _pyhost

__all__ = ["DEPENDS", "WriteBack"]

#: What each of the operations that are added to calls.
DEPENDS = {
    "open": ("open",),
    "create": ("create",),
    "release": ("release",),
    "write": ("write", "getattr", "setattr"),
    "setattr": ("setattr",),
    "rename": ("rename", "lookup", "forget", "setattr"),
    "unlink": ("unlink", "lookup", "forget", "setattr"),
    "link": ("link", "setattr"),
}

_SIZE, _MTIME, _CTIME = 1 << 3, 1 << 5, 1 << 10  # FUSE_SET_ATTR_* (fuse_lowlevel.h)


class WriteBack:
    """The operations of a file system, with those duties added to some of them."""

    def __init__(self, ops: Any) -> None:
        import pyfuse3

        self.ops = ops
        self._pyfuse3: Any = pyfuse3
        self._opened: dict[int, list[tuple[int, Any]]] = {}  # by handle: inode, context
        for name in DEPENDS:
            if hasattr(ops, name):
                setattr(self, name, getattr(self, f"_{name}"))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.ops, name)

    # ---- size and times ----

    def _change(self, what: int, *, size: int = 0, now: int = 0) -> tuple[Any, Any]:
        """The arguments of setattr()."""
        attr, fields = self._pyfuse3.EntryAttributes(), self._pyfuse3.SetattrFields()
        attr.st_size = size
        attr.st_mtime_ns = attr.st_ctime_ns = now
        _pyhost.mark(fields, what)
        return attr, fields

    async def _touch(self, inode: int, what: int, handle: int | None, ctx: Any) -> int:
        now = time.time_ns()
        try:
            await self.ops.setattr(inode, *self._change(what, now=now), handle, ctx)
        except self._pyfuse3.FUSEError:
            pass  # as when the kernel writes its inodes back: nobody is told
        return now

    async def _find(self, parent: int, name: bytes, ctx: Any) -> Any:
        """The entry, without a reference."""
        entry = await self.ops.lookup(parent, name, ctx)
        forgotten = self.ops.forget([(entry.st_ino, 1)])
        if inspect.isawaitable(forgotten):
            await forgotten
        return entry

    def _remember(self, handle: int, inode: int, ctx: Any) -> None:
        """One handle may stand for many open files: the number of the inode is one, often."""
        self._opened.setdefault(handle, []).append((inode, ctx))

    # ---- the operations ----

    async def _open(self, inode: int, flags: int, ctx: Any) -> Any:
        info = await self.ops.open(inode, flags, ctx)
        self._remember(info.fh, inode, ctx)
        return info

    async def _create(self, parent: int, name: bytes, mode: int, flags: int, ctx: Any) -> Any:
        info, entry = await self.ops.create(parent, name, mode, flags, ctx)
        self._remember(info.fh, entry.st_ino, ctx)
        return info, entry

    async def _release(self, handle: int) -> Any:
        self._opened[handle].pop()
        if not self._opened[handle]:
            del self._opened[handle]
        return await self.ops.release(handle)

    async def _write(self, handle: int, offset: int, data: bytes) -> Any:
        inode, ctx = self._opened[handle][-1]
        if offset > (await self.ops.getattr(inode, ctx)).st_size:
            await self.ops.setattr(inode, *self._change(_SIZE, size=offset), handle, ctx)
        written = await self.ops.write(handle, offset, data)
        await self._touch(inode, _MTIME | _CTIME, handle, ctx)
        return written

    async def _setattr(
        self, inode: int, attr: Any, fields: Any, handle: int | None, ctx: Any
    ) -> Any:
        if fields.update_size:
            now = time.time_ns()
            if not fields.update_mtime:
                attr.st_mtime_ns = now
            attr.st_ctime_ns = now
            _pyhost.mark(fields, _MTIME | _CTIME)
        return await self.ops.setattr(inode, attr, fields, handle, ctx)

    async def _rename(
        self, parent: int, name: bytes, to: int, to_name: bytes, flags: int, ctx: Any
    ) -> None:
        await self.ops.rename(parent, name, to, to_name, flags, ctx)
        entry = await self._find(to, to_name, ctx)
        await self._touch(entry.st_ino, _CTIME, None, ctx)

    async def _unlink(self, parent: int, name: bytes, ctx: Any) -> None:
        entry = await self._find(parent, name, ctx)
        await self.ops.unlink(parent, name, ctx)
        if entry.st_nlink > 1:
            await self._touch(entry.st_ino, _CTIME, None, ctx)

    async def _link(self, inode: int, parent: int, name: bytes, ctx: Any) -> Any:
        entry = await self.ops.link(inode, parent, name, ctx)
        entry.st_ctime_ns = await self._touch(inode, _CTIME, None, ctx)
        return entry
