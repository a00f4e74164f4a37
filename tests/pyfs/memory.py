"""A path-keyed file system for tests, with the operations that fusepy, mfusepy and refuse share.

It derives from nothing: each test mixes it into the Operations of the library it is about.
"""

import errno
import os
import stat


class Memory:
    use_ns = True

    def __init__(self, *names):
        self.files = {f"/{name}": f"content of {name}".encode() for name in names or ("a",)}
        self.links = {}
        self.attributes = {}
        self.times = {}
        self.events = []

    def init(self, path):
        self.events.append(("init", path))

    def destroy(self, path):
        self.events.append(("destroy", path))

    def getattr(self, path, fh=None):
        if path == "/":
            return {"st_mode": stat.S_IFDIR | 0o755, "st_nlink": 2}
        if path in self.links:
            return {"st_mode": stat.S_IFLNK | 0o777, "st_nlink": 1}
        if path not in self.files:
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))
        times = self.times.get(path, (1, 2))
        return {
            "st_mode": stat.S_IFREG | 0o644,
            "st_nlink": 1,
            "st_size": len(self.files[path]),
            "st_atime": times[0],
            "st_mtime": times[1],
            "st_uid": os.getuid(),
        }

    def readdir(self, path, fh):
        yield "."
        yield "..", None, 0
        for name in sorted([*self.files, *self.links]):
            yield name[1:], {"st_mode": self.getattr(name)["st_mode"]}, 0

    def open(self, path, flags):
        return 5

    def create(self, path, mode, fi=None):
        self.files[path] = b""
        return 6

    def read(self, path, size, offset, fh):
        assert fh in (5, 6)
        return self.files[path][offset : offset + size]

    def write(self, path, data, offset, fh):
        former = self.files[path].ljust(offset, b"\0")
        self.files[path] = former[:offset] + data + former[offset + len(data) :]
        return len(data)

    def truncate(self, path, length, fh=None):
        self.files[path] = self.files[path][:length].ljust(length, b"\0")

    def unlink(self, path):
        del (self.links if path in self.links else self.files)[path]

    def rename(self, old, new):
        self.files[new] = self.files.pop(old)

    def symlink(self, target, source):
        self.links[target] = source

    def readlink(self, path):
        return self.links[path]

    def utimens(self, path, times=None):
        self.times[path] = times or (3, 4)

    def statfs(self, path):
        return {"f_bsize": 512, "f_blocks": 4096, "f_bavail": 2048}

    def setxattr(self, path, name, value, options, position=0):
        self.attributes[name] = bytes(value)

    def getxattr(self, path, name, position=0):
        try:
            return self.attributes[name]
        except KeyError:
            raise OSError(errno.ENODATA, "") from None

    def listxattr(self, path):
        return list(self.attributes)

    def removexattr(self, path, name):
        del self.attributes[name]
