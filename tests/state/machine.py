"""A random sequence of calls, made on an oracle (a real directory) and on a subject (a route):
each call must end alike, by value or by errno, and so must the trees they leave.

Names come from a small pool or are such as once were made, so that most calls meet something:
files, directories, links and open descriptors collide all the time. What a file system is free to
choose (sizes of directories, order of entries, inode numbers, times that nobody set) is not
compared.
"""

import os
import stat

from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    multiple,
    rule,
)

DEPTH = 12  # each step up takes a symlink of its own, and a name for it that is free
RENAME_NOREPLACE, RENAME_EXCHANGE = 1, 2

names = st.sampled_from(["a", "b", "c"])
known = Bundle("known")  # names that were made; some are gone by now
descriptors = Bundle("descriptors")  # (on the oracle, on the subject)
anywhere = st.one_of(
    st.lists(names, min_size=1, max_size=3).map("/".join),
    st.sampled_from(["a/..", "b/.", "a/", "a/../b", "."]),
)
below = st.tuples(known, names).map("/".join)
paths = known | known | below | anywhere
fresh = below | anywhere
targets = st.sampled_from(["a", "b", "b/c", "../a", "..", ".", "missing", "a/", "./c"])
offsets = st.sampled_from([0, 1, 7, 4095, 4096, 5000, 65536, 131073, 300_000])
sizes = st.sampled_from([0, 1, 2, 100, 4096, 4097, 70_000, 131_073])
modes = st.sampled_from([0o600, 0o644, 0o755, 0o1777, 0o2755, 0o4711])
attributes = st.sampled_from(["user.a", "user.b"])
open_flags = st.builds(
    lambda access, extra: access | sum(set(extra)),
    st.sampled_from([os.O_RDWR, os.O_RDWR, os.O_RDONLY, os.O_WRONLY]),
    st.lists(
        st.sampled_from([os.O_CREAT, os.O_APPEND, os.O_TRUNC, os.O_EXCL, os.O_NOFOLLOW]),
        max_size=3,
    ),
)


def pattern(seed, size):
    """`size` bytes that tell where they were written from."""
    return bytes((seed + position * 7) & 0xFF for position in range(min(size, 251))) * (
        size // 251 + 1
    )


def summary(status):
    """What of a stat result the file system is not free to choose (a symlink's size is in its
    target)."""
    size = status.st_size if stat.S_ISREG(status.st_mode) else None
    return status.st_mode, status.st_nlink, size, status.st_uid, status.st_gid


def link_target(fs, path):
    """The target of a symlink, alike on both sides."""
    return fs.os.readlink(path).replace(fs.root, "ROOT")


def tree(fs, path, prefix=""):
    """Every name below path with its attributes and its bytes or target."""
    found = {}
    for name in fs.os.listdir(path):
        child = f"{path}/{name}"
        status = fs.os.lstat(child)
        content = None
        if stat.S_ISREG(status.st_mode):
            content = fs.data(child)
        elif stat.S_ISLNK(status.st_mode):
            content = link_target(fs, child)
        elif stat.S_ISDIR(status.st_mode):
            found.update(tree(fs, child, prefix + name + "/"))
        found[prefix + name] = (summary(status), content)
    return found


def groups(fs, path, found):
    """The names of `found`, below path, that share an inode, as a set of sets."""
    inodes = {}
    for name in found:
        status = fs.os.lstat(f"{path}/{name}")
        inodes.setdefault((status.st_dev, status.st_ino), set()).add(name)
    return {frozenset(names) for names in inodes.values()}


class Machine(RuleBasedStateMachine):
    """`oracle` and `subject` are routes; each run takes a fresh directory of both."""

    oracle = subject = None
    has_xattrs = True
    keeps_names = False  # of open files that lose theirs: libfuse's .fuse_hidden

    def __init__(self):
        """a/b/, a/c (with a second name, b) and c -> a."""
        super().__init__()
        self._contexts = [self.oracle.fresh(), self.subject.fresh()]
        self.worlds = [context.__enter__() for context in self._contexts]
        self._tops = [fs.root for fs in self.worlds]
        self.seed = 0
        self.open_pairs = set()
        for fs in self.worlds:
            for _ in range(DEPTH):
                fs.root = fs.mkdir("d")
            fs.mkdir("a")
            fs.mkdir("a/b")
            fs.os.link(fs.make("a/c", pattern(0, 10_000)), fs.path("b"))
            fs.symlink("a", "c")

    @initialize(target=known)
    def begin_with_names(self):
        return multiple("a", "a/b", "a/c", "b", "c")

    @initialize(target=descriptors)
    def begin_with_descriptors(self):
        file = self.pair(lambda fs: fs.os.os_open(fs.path("b"), os.O_RDWR))
        directory = self.pair(lambda fs: fs.os.os_open(fs.path("a"), os.O_DIRECTORY))
        return multiple(file, directory)

    def teardown(self):
        try:
            self.close_all()
            one, two = (tree(fs, top) for fs, top in zip(self.worlds, self._tops, strict=True))
            assert two == one
            inodes = [
                groups(*world) for world in zip(self.worlds, self._tops, (one, two), strict=True)
            ]
            assert inodes[1] == inodes[0]
        finally:
            for context in self._contexts:
                context.__exit__(None, None, None)

    # ---- how a call is made -------------------------------------------------------------------

    def both(self, call, *descriptor):
        """call(fs, fd...) on oracle and subject; the result on which they agree."""
        if not self.open_pairs.issuperset(descriptor):
            return "skipped", None
        outcomes = []
        for number, fs in enumerate(self.worlds):
            try:
                outcomes.append(("returns", call(fs, *(pair[number] for pair in descriptor))))
            except OSError as error:
                outcomes.append(("fails", error.errno))
        assert outcomes[1] == outcomes[0], f"{outcomes[1]} instead of {outcomes[0]}"
        return outcomes[0]

    def name(self, path, call):
        """As both(); gives the name to the bundle when the call succeeded."""
        return path if self.both(call)[0] == "returns" else multiple()

    def pair(self, call, *descriptor):
        """The two descriptors that call() makes, as one value of the bundle; or nothing."""
        made = []

        def remember(fs, *fds):
            made.append(fs.adopt(call(fs, *fds)))

        self.both(remember, *descriptor)
        if not made:
            return multiple()
        self.open_pairs.add(tuple(made))
        return tuple(made)

    def close_pair(self, fd):
        self.both(lambda fs, fd: fs.os.close(fd), fd)
        self.open_pairs.discard(fd)

    def close_all(self):
        for fd in sorted(self.open_pairs):
            self.close_pair(fd)

    def before_names_go(self):
        """Where open files keep a name, none is open when names go; cases say what it means."""
        if self.keeps_names:
            self.close_all()

    def bytes(self, size):
        self.seed += 1
        return pattern(self.seed, size)[:size]

    # ---- descriptors --------------------------------------------------------------------------

    @rule(target=descriptors, path=paths, flags=open_flags, mode=modes)
    def open(self, path, flags, mode):
        return self.pair(lambda fs: fs.os.os_open(fs.path(path), flags, mode))

    @rule(target=descriptors, path=paths)
    def open_to_append(self, path):
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        return self.pair(lambda fs: fs.os.os_open(fs.path(path), flags, 0o644))

    @rule(target=descriptors, path=known)
    def open_what_was_made(self, path):
        """Also after a rename or an unlink: the descriptor must go along."""
        return self.pair(lambda fs: fs.os.os_open(fs.path(path), os.O_RDWR))

    @rule(target=descriptors, path=known)
    def open_directory(self, path):
        return self.pair(lambda fs: fs.os.os_open(fs.path(path), os.O_RDONLY | os.O_DIRECTORY))

    @rule(target=descriptors, fd=descriptors)
    def dup(self, fd):
        return self.pair(lambda fs, fd: fs.os.dup(fd), fd)

    @rule(fd=consumes(descriptors))
    def close(self, fd):
        self.close_pair(fd)

    @rule(fd=descriptors, size=sizes)
    def read(self, fd, size):
        self.both(lambda fs, fd: fs.os.read(fd, size), fd)

    @rule(fd=descriptors, size=sizes, offset=offsets)
    def pread(self, fd, size, offset):
        self.both(lambda fs, fd: fs.os.pread(fd, size, offset), fd)

    @rule(fd=descriptors, size=sizes)
    def write(self, fd, size):
        data = self.bytes(size)
        self.both(lambda fs, fd: fs.os.write(fd, data), fd)

    @rule(fd=descriptors, size=sizes, offset=offsets)
    def pwrite(self, fd, size, offset):
        data = self.bytes(size)
        self.both(lambda fs, fd: fs.os.pwrite(fd, data, offset), fd)

    @rule(fd=descriptors, first=sizes, second=sizes)
    def writev(self, fd, first, second):
        buffers = [self.bytes(first), self.bytes(second)]
        self.both(lambda fs, fd: fs.os.writev(fd, buffers), fd)

    @rule(
        fd=descriptors,
        offset=st.one_of(offsets, st.just(-5)),
        whence=st.sampled_from([os.SEEK_SET, os.SEEK_CUR, os.SEEK_END]),
    )
    def lseek(self, fd, offset, whence):
        """The offset of a directory is opaque, that of a file is not."""
        if fd in self.open_pairs and not self._is_directory(fd):
            self.both(lambda fs, fd: fs.os.lseek(fd, offset, whence), fd)

    @rule(fd=descriptors, size=offsets)
    def ftruncate(self, fd, size):
        self.both(lambda fs, fd: fs.os.ftruncate(fd, size), fd)

    @rule(fd=descriptors, offset=offsets, length=offsets, mode=st.sampled_from([0, 1, 3]))
    def fallocate(self, fd, offset, length, mode):
        self.both(lambda fs, fd: fs.os.fallocate(fd, mode, offset, length), fd)

    @rule(one=descriptors, two=descriptors, size=sizes, at=offsets, to=offsets)
    def copy(self, one, two, size, at, to):
        """A kernel mount checks for overlap with the size that it saw last, and each name of a
        file has one of its own there (libfuse's high-level API): fstat renews it.
        """
        self.fstat(one)
        self.both(lambda fs, one, two: fs.os.copy_file_range(one, two, size, at, to), one, two)

    @rule(fd=descriptors)
    def fstat(self, fd):
        self.both(lambda fs, fd: summary(fs.os.fstat(fd)), fd)

    @rule(fd=descriptors, mode=modes)
    def fchmod(self, fd, mode):
        self.both(lambda fs, fd: fs.os.fchmod(fd, mode), fd)

    @rule(fd=descriptors, name=names)
    def make_in_descriptor(self, fd, name):
        self.both(lambda fs, fd: fs.os.mkdir(name, dir_fd=fd), fd)

    @rule(fd=descriptors, path=paths)
    def stat_from_descriptor(self, fd, path):
        self.both(lambda fs, fd: summary(fs.os.stat(path, dir_fd=fd)), fd)

    @rule(fd=descriptors)
    def list_descriptor(self, fd):
        self.both(lambda fs, fd: sorted(fs.os.listdir(fd)), fd)

    def _is_directory(self, fd):
        oracle = self.worlds[0]
        return stat.S_ISDIR(oracle.os.fstat(fd[0]).st_mode)

    # ---- names --------------------------------------------------------------------------------

    @rule(target=known, path=paths, size=sizes)
    def put(self, path, size):
        """A whole file, as most programs write one."""
        data = self.bytes(size)

        def write(fs):
            with fs.os.open(fs.path(path), "wb") as file:
                return file.write(data)

        return self.name(path, write)

    @rule(path=paths)
    def get(self, path):
        self.both(lambda fs: fs.data(fs.path(path)))

    @rule(target=known, path=fresh, mode=modes)
    def mkdir(self, path, mode):
        return self.name(path, lambda fs: fs.os.mkdir(fs.path(path), mode))

    @rule(path=paths)
    def rmdir(self, path):
        self.before_names_go()
        self.both(lambda fs: fs.os.rmdir(fs.path(path)))

    @rule(path=paths)
    def unlink(self, path):
        self.before_names_go()
        self.both(lambda fs: fs.os.unlink(fs.path(path)))

    @rule(target=known, source=paths, to=paths)
    def rename(self, source, to):
        self.before_names_go()
        return self.name(to, lambda fs: fs.os.rename(fs.path(source), fs.path(to)))

    @rule(source=paths, to=paths, flags=st.sampled_from([RENAME_NOREPLACE, RENAME_EXCHANGE]))
    def renameat2(self, source, to, flags):
        self.before_names_go()
        self.both(lambda fs: fs.os.renameat2(fs.path(source), fs.path(to), flags))

    @rule(target=known, source=paths, to=fresh)
    def link(self, source, to):
        return self.name(
            to, lambda fs: fs.os.link(fs.path(source), fs.path(to), follow_symlinks=False)
        )

    @rule(target=known, to=targets, path=fresh)
    def symlink(self, to, path):
        return self.name(path, lambda fs: fs.os.symlink(to, fs.path(path)))

    @rule(target=known, path=fresh)
    def symlink_to_the_root(self, path):
        return self.name(path, lambda fs: fs.os.symlink(fs.root, fs.path(path)))

    @rule(target=known, path=fresh)
    def make_socket(self, path):
        """Not a FIFO: to open one is to wait."""
        return self.name(path, lambda fs: fs.os.mknod(fs.path(path), stat.S_IFSOCK | 0o600))

    # ---- attributes ---------------------------------------------------------------------------

    @rule(path=paths)
    def stat(self, path):
        self.both(lambda fs: summary(fs.os.stat(fs.path(path))))

    @rule(path=paths)
    def lstat(self, path):
        self.both(lambda fs: summary(fs.os.lstat(fs.path(path))))

    @rule(path=paths)
    def readlink(self, path):
        self.both(lambda fs: link_target(fs, fs.path(path)))

    @rule(path=paths)
    def listdir(self, path):
        self.both(lambda fs: fs.names(fs.path(path)))

    @rule(path=paths, mode=modes)
    def chmod(self, path, mode):
        self.both(lambda fs: fs.os.chmod(fs.path(path), mode))

    @rule(path=paths, size=offsets)
    def truncate(self, path, size):
        self.both(lambda fs: fs.os.truncate(fs.path(path), size))

    @rule(path=paths, stamp=st.integers(0, 1 << 61), follow=st.booleans())
    def utime(self, path, stamp, follow):
        def set_and_get(fs):
            """Not the atime: to walk through a symlink may be to read it."""
            fs.os.utime(fs.path(path), ns=(stamp // 3, stamp), follow_symlinks=follow)
            return fs.os.stat(fs.path(path), follow_symlinks=follow).st_mtime_ns

        self.both(set_and_get)

    @rule(path=paths, mask=st.sampled_from([os.F_OK, os.R_OK, os.W_OK, os.X_OK]))
    def access(self, path, mask):
        self.both(lambda fs: fs.os.access(fs.path(path), mask))

    @rule(
        path=paths,
        name=attributes,
        size=st.sampled_from([0, 1, 200, 5000]),
        flags=st.sampled_from([0, 0, os.XATTR_CREATE, os.XATTR_REPLACE]),
    )
    def setxattr(self, path, name, size, flags):
        value = self.bytes(size)
        if self.has_xattrs:
            self.both(lambda fs: fs.os.setxattr(fs.path(path), name, value, flags))

    @rule(path=paths, name=attributes)
    def getxattr(self, path, name):
        if self.has_xattrs:
            self.both(lambda fs: fs.os.getxattr(fs.path(path), name))
            self.both(lambda fs: sorted(fs.os.listxattr(fs.path(path))))

    @rule(path=paths, name=attributes)
    def removexattr(self, path, name):
        if self.has_xattrs:
            self.both(lambda fs: fs.os.removexattr(fs.path(path), name))
