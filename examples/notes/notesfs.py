"""A pyfuse3 file system: a directory of notes that knows how long each of them is.

    notes/          files that can be made, written, renamed, removed
    notes/.count    how many words there are in all of them, computed when it is read

It is an ordinary pyfuse3 program, and mounts through the kernel as such (it needs /dev/fuse):

    python notesfs.py /mnt/notes

It is developed without: test_notesfs.py mounts it in the test's own process, where breakpoints,
coverage and monkeypatch work as anywhere else. Nothing in this file knows about that.
"""

import errno
import os
import stat
import sys
import time
from dataclasses import dataclass, field

import pyfuse3
import trio

COUNT = b".count"


@dataclass
class Note:
    """One file."""

    data: bytes = b""
    mode: int = stat.S_IFREG | 0o644
    uid: int = field(default_factory=os.getuid)
    gid: int = field(default_factory=os.getgid)
    mtime_ns: int = field(default_factory=time.time_ns)


class NotesFs(pyfuse3.Operations):
    """The file system."""

    def __init__(self) -> None:
        super().__init__()
        self.names: dict[bytes, int] = {}
        self.notes: dict[int, Note] = {}
        self.opened: dict[int, int] = {}  # inode -> count; an open note outlives its name
        self.count_inode = self._add(COUNT, Note(mode=stat.S_IFREG | 0o444))

    # ---- names ----

    def _add(self, name: bytes, note: Note) -> int:
        inode = max(self.notes, default=pyfuse3.ROOT_INODE) + 1
        self.names[name] = inode
        self.notes[inode] = note
        return inode

    def _find(self, name: bytes) -> int:
        try:
            return self.names[name]
        except KeyError:
            raise pyfuse3.FUSEError(errno.ENOENT) from None

    def _content(self, inode: int) -> bytes:
        if inode != self.count_inode:
            return self.notes[inode].data
        words = sum(len(note.data.split()) for note in self.notes.values())
        return b"%d words in %d notes\n" % (words, len(self.names) - 1)

    async def lookup(self, parent_inode, name, ctx=None):
        if name in (b".", b".."):
            return await self.getattr(parent_inode, ctx)
        return await self.getattr(self._find(name), ctx)

    async def unlink(self, parent_inode, name, ctx):
        if name == COUNT:
            raise pyfuse3.FUSEError(errno.EPERM)
        inode = self._find(name)
        del self.names[name]
        if inode not in self.opened:
            del self.notes[inode]

    async def rename(self, parent_old, name_old, parent_new, name_new, flags, ctx):
        if flags or COUNT in (name_old, name_new):
            raise pyfuse3.FUSEError(errno.EINVAL)
        inode = self._find(name_old)
        if name_new in self.names:
            await self.unlink(parent_new, name_new, ctx)
        self.names[name_new] = self.names.pop(name_old)
        assert self.names[name_new] == inode

    # ---- attributes ----

    async def getattr(self, inode, ctx=None):
        entry = pyfuse3.EntryAttributes()
        entry.st_ino = inode
        entry.entry_timeout = entry.attr_timeout = 0
        if inode == pyfuse3.ROOT_INODE:
            entry.st_mode = stat.S_IFDIR | 0o755
            entry.st_uid, entry.st_gid = os.getuid(), os.getgid()
            return entry
        note = self.notes[inode]
        entry.st_mode = note.mode
        entry.st_uid, entry.st_gid = note.uid, note.gid
        entry.st_size = len(self._content(inode))
        entry.st_atime_ns = entry.st_mtime_ns = entry.st_ctime_ns = note.mtime_ns
        return entry

    async def setattr(self, inode, attr, fields, fh, ctx):
        note = self.notes.get(inode, Note())
        if fields.update_size:
            note.data = note.data[: attr.st_size].ljust(attr.st_size, b"\0")
        if fields.update_mode:
            note.mode = attr.st_mode
        if fields.update_uid:
            note.uid = attr.st_uid
        if fields.update_gid:
            note.gid = attr.st_gid
        if fields.update_mtime:
            note.mtime_ns = attr.st_mtime_ns
        return await self.getattr(inode, ctx)

    # ---- the directory ----

    async def opendir(self, inode, ctx):
        return inode

    async def readdir(self, fh, start_id, token):
        # The inode is the position: it stays what it is when other notes come and go.
        for inode, name in sorted((inode, name) for name, inode in self.names.items()):
            if inode > start_id:
                entry = await self.getattr(inode)
                if not pyfuse3.readdir_reply(token, name, entry, inode):
                    break

    # ---- open notes ----

    def _open(self, inode: int) -> pyfuse3.FileInfo:
        self.opened[inode] = self.opened.get(inode, 0) + 1
        return pyfuse3.FileInfo(fh=inode, direct_io=inode == self.count_inode)

    async def open(self, inode, flags, ctx):
        if inode == self.count_inode and flags & os.O_ACCMODE != os.O_RDONLY:
            raise pyfuse3.FUSEError(errno.EPERM)
        return self._open(inode)

    async def create(self, parent_inode, name, mode, flags, ctx):
        note = Note(mode=stat.S_IFREG | mode & ~ctx.umask, uid=ctx.uid, gid=ctx.gid)
        inode = self._add(name, note)
        return self._open(inode), await self.getattr(inode)

    async def read(self, fh, off, size):
        return self._content(fh)[off : off + size]

    async def write(self, fh, off, buf):
        note = self.notes[fh]
        data = note.data.ljust(off, b"\0")
        note.data = data[:off] + buf + data[off + len(buf) :]
        note.mtime_ns = time.time_ns()
        return len(buf)

    async def release(self, fh):
        self.opened[fh] -= 1
        if self.opened[fh] == 0:
            del self.opened[fh]
            if fh not in self.names.values():
                del self.notes[fh]


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} MOUNTPOINT")
    pyfuse3.init(NotesFs(), sys.argv[1], {*pyfuse3.default_options, "fsname=notes"})
    try:
        trio.run(pyfuse3.main)
    finally:
        pyfuse3.close()


if __name__ == "__main__":
    main()
