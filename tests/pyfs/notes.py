"""A small pyfuse3 file system for tests: one directory of files, in memory.

`Notes` never suspends; `SlowNotes` does in lookup and read, with trio or asyncio.
"""

import errno
import os
import stat

import pyfuse3


class Notes(pyfuse3.Operations):
    def __init__(self, *names, content="content of {}"):
        super().__init__()
        self.files = {}  # name -> inode
        self.data = {}  # inode -> bytearray
        self.events = []
        for name in names or ("a",):
            self.add(os.fsencode(name), content.format(name).encode())

    def add(self, name, data):
        inode = pyfuse3.ROOT_INODE + 1 + len(self.data)
        self.files[name] = inode
        self.data[inode] = bytearray(data)
        return inode

    def init(self):
        self.events.append("init")

    def entry(self, inode):
        entry = pyfuse3.EntryAttributes()
        entry.st_ino = inode
        if inode == pyfuse3.ROOT_INODE:
            entry.st_mode = stat.S_IFDIR | 0o755
        elif inode in self.data:
            entry.st_mode = stat.S_IFREG | 0o644
            entry.st_size = len(self.data[inode])
        else:
            raise pyfuse3.FUSEError(errno.ENOENT)
        entry.entry_timeout = entry.attr_timeout = 0
        return entry

    async def getattr(self, inode, ctx=None):
        return self.entry(inode)

    async def lookup(self, parent_inode, name, ctx=None):
        if name not in self.files:
            raise pyfuse3.FUSEError(errno.ENOENT)
        return await self.getattr(self.files[name], ctx)

    async def setattr(self, inode, attr, fields, fh, ctx):
        if fields.update_size:
            data = self.data[inode]
            data[attr.st_size :] = bytes(max(0, attr.st_size - len(data)))
        return self.entry(inode)

    async def opendir(self, inode, ctx):
        return inode

    async def readdir(self, fh, start_id, token):
        names = sorted(self.files.items())
        for place, (name, inode) in list(enumerate(names, 1))[start_id:]:
            if not pyfuse3.readdir_reply(token, name, self.entry(inode), place):
                break

    async def open(self, inode, flags, ctx):
        return pyfuse3.FileInfo(fh=inode)

    async def create(self, parent_inode, name, mode, flags, ctx):
        inode = self.add(name, b"")
        return pyfuse3.FileInfo(fh=inode), self.entry(inode)

    async def unlink(self, parent_inode, name, ctx):
        if self.files.pop(name, None) is None:
            raise pyfuse3.FUSEError(errno.ENOENT)

    async def read(self, fh, off, size):
        return self.data[fh][off : off + size]

    async def write(self, fh, off, buf):
        self.data[fh][off : off + len(buf)] = buf
        return len(buf)


class Unmade:
    """No file system at all."""
