"""The file system as a case sees it."""

import contextlib
import os
import time

CLOCK_REALTIME_COARSE = 5  # clock_gettime(2); file systems of the kernel stamp with it


class Fs:
    """What a case gets: `root`, an empty directory, `os` to reach it, and short forms."""

    def __init__(self, route, root):
        self.root = root
        self.os = route.os
        self._route = route
        self._descriptors = []

    def proof(self):
        """Raises NotUsed unless the route was used."""
        self._route.proof()

    def as_user(self, uid, gid, func, groups=()):
        """func() as another user, in a forked child; its value or its OSError.

        What the child changes in the tree need not reach the parent: judge it inside func.
        """
        return self._route.as_user(uid, gid, func, groups)

    def refresh(self):
        """To be called when identity or limits of this process have changed."""
        self._route.refresh()

    def after_close(self, call):
        """call(), which needs what the close before it has given up: at once, but a moment later
        where Linux itself does not wait for a file system to hear of the close."""
        return self._route.after_close(call)

    def path(self, *names):
        return "/".join((self.root, *names))

    def open(self, path, flags=os.O_RDONLY, mode=0o666, **dir_fd):
        """A descriptor that is closed at the end of the case."""
        return self.adopt(self.os.os_open(path, flags, mode, **dir_fd))

    def adopt(self, fd):
        """Close this descriptor at the end of the case, unless the case did."""
        self._descriptors.append(fd)
        return fd

    def make(self, name, data=b"", mode=0o644):
        """A file below the root; its path."""
        path = self.path(name)
        fd = self.os.os_open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        try:
            self.os.fchmod(fd, mode)
            if data:
                assert self.os.write(fd, data) == len(data)
        finally:
            self.os.close(fd)
        return path

    def mkdir(self, name, mode=0o755):
        """A directory below the root; its path."""
        path = self.path(name)
        self.os.mkdir(path, mode)
        self.os.chmod(path, mode)
        return path

    def symlink(self, target, name):
        """A symlink below the root; its path."""
        path = self.path(name)
        self.os.symlink(target, path)
        return path

    def data(self, path):
        """All bytes of a file."""
        fd = self.os.os_open(path, os.O_RDONLY)
        try:
            return b"".join(iter(lambda: self.os.read(fd, 1 << 20), b""))
        finally:
            self.os.close(fd)

    def names(self, path=None):
        return sorted(self.os.listdir(self.root if path is None else path))

    def tick(self):
        """Returns when the clock that stamps files has moved on (some milliseconds).

        Twice, because this process sees the first move in the vDSO a moment before file systems
        do: a long moment, when the host takes the CPU away in between.
        """
        for _ in range(2):
            start = time.clock_gettime_ns(CLOCK_REALTIME_COARSE)
            while time.clock_gettime_ns(CLOCK_REALTIME_COARSE) == start:
                pass

    def close(self):
        for fd in self._descriptors:
            with contextlib.suppress(OSError):
                self.os.close(fd)
