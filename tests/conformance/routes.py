"""The routes: each way a call can travel from a case to a file system, one class each.

A route is a context manager. Inside, `base` is the root of its file system, `os` the namespace of
functions that reach it, and `proof()` fails unless the calls really went that way. To add a route:
a subclass of Route, a line in ROUTES, its deviations from Linux in deviations.py.
"""

import contextlib
import ctypes
import errno
import itertools
import os
import pickle
import select
import shutil
import signal
import subprocess
import tempfile
import time
import traceback

from . import linux
from .backends import BACKENDS

#: Of every directory the routes make; tests/conftest.py knows our mounts by it.
PREFIX = f"directfuse-test-{os.getpid()}-"

MOUNT_SECONDS = 10
CLOCK_REALTIME_COARSE = 5  # clock_gettime(2); file systems of the kernel stamp with it
PR_SET_PDEATHSIG = 1  # prctl(2)
MS_RDONLY, MS_REMOUNT, MS_BIND, MNT_DETACH = 1, 32, 4096, 2  # mount(2), umount2(2)

_libc = ctypes.CDLL(None, use_errno=True)


class Unavailable(Exception):
    """This machine cannot run the route; the text says why."""


class NotUsed(AssertionError):
    """The calls did not travel by the route they were meant to."""


# ---- the file system as a case sees it ---------------------------------------------------------


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
        """Returns when the clock that stamps files has moved on (some milliseconds)."""
        start = time.clock_gettime_ns(CLOCK_REALTIME_COARSE)
        while time.clock_gettime_ns(CLOCK_REALTIME_COARSE) == start:
            pass

    def close(self):
        for fd in self._descriptors:
            with contextlib.suppress(OSError):
                self.os.close(fd)


# ---- routes ------------------------------------------------------------------------------------


class Route:
    """What all routes share: a private real directory `area`, fresh roots, other users."""

    name = ""
    os = linux

    def __init__(self, backend=None, *, readonly=False):
        self.backend = BACKENDS[backend] if backend else None
        self.readonly = readonly
        self._numbers = itertools.count()

    def __enter__(self):
        self.area = tempfile.mkdtemp(prefix=PREFIX, dir=memory_directory())
        os.chmod(self.area, 0o755)
        self.source = self._directory("source")
        self.existing = self._populate()
        try:
            self.base = self._start()
        except BaseException:
            shutil.rmtree(self.area)
            raise
        return self

    def __exit__(self, *exc_info):
        self._stop()
        shutil.rmtree(self.area)

    @contextlib.contextmanager
    def fresh(self):
        """An Fs with an empty root of its own."""
        root = f"{self.base}/{next(self._numbers)}"
        previous = self.os.umask(0o022)
        self.os.mkdir(root, 0o755)
        fs = Fs(self, root)
        try:
            yield fs
        finally:
            fs.close()
            self.os.umask(previous)

    def as_user(self, uid, gid, func, groups):
        if os.geteuid() != 0:
            raise Unavailable("acting as another user needs root")
        return _in_child(lambda: self._become(uid, gid, groups), func)

    def _become(self, uid, gid, groups):
        os.setgroups(list(groups))
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)

    def _directory(self, name):
        path = os.path.join(self.area, name)
        os.mkdir(path, 0o755)
        os.chmod(path, 0o755)
        return path

    def _populate(self):
        """Name of a file that a read-only file system has from the start; None if it is empty."""
        if not self.readonly or (self.backend and not self.backend.source):
            return None
        with open(os.path.join(self.source, "existing"), "wb") as file:
            file.write(b"content")
        return "existing"

    def _start(self):
        """Makes the file system reachable; path of its root."""
        raise NotImplementedError

    def _stop(self):
        raise NotImplementedError

    def proof(self):
        raise NotImplementedError


class Plain(Route):
    """A real directory, on tmpfs where there is one: what Linux itself does."""

    name = "plain"

    def _start(self):
        if not self.readonly:
            return self.source
        if os.geteuid() != 0:
            raise Unavailable("a read-only directory needs root (bind mount)")
        target = self._directory("readonly")
        try:
            _mount(self.source, target, MS_BIND)
            _mount(None, target, MS_REMOUNT | MS_BIND | MS_RDONLY)
        except PermissionError as error:
            raise Unavailable(f"a read-only directory needs CAP_SYS_ADMIN: {error}") from error
        return target

    def _stop(self):
        if self.readonly:
            _umount(self.base)

    def proof(self):
        if os.stat(self.base).st_dev != os.stat(self.source).st_dev:
            raise NotUsed(f"{self.base} is not on its own device")
        if any(kind.startswith("fuse") for kind in mounted(self.base)):
            raise NotUsed(f"{self.base} is a FUSE mount")


class Kernel(Route):
    """The backend's executable behind a kernel FUSE mount: what decides between two readings."""

    name = "kernel"

    def _start(self):
        command = self._command()
        mountpoint = self._directory("mnt")
        words = self.backend.command(mountpoint, self.source, readonly=self.readonly)
        self._log = tempfile.TemporaryFile()
        self._daemon = subprocess.Popen(
            [command, *words[1:], "-f"],
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            preexec_fn=_die_with_parent,
        )
        try:
            self._wait_until_mounted(mountpoint)
        except BaseException:
            self._end_daemon(mountpoint)
            raise
        return mountpoint

    def _command(self):
        command = self.backend.executable()
        if command is None:
            raise Unavailable(f"the backend {self.backend.name} is not built")
        if not os.access("/dev/fuse", os.R_OK | os.W_OK):
            raise Unavailable("/dev/fuse cannot be opened")
        if os.geteuid() != 0 and shutil.which("fusermount3") is None:
            raise Unavailable("neither root nor fusermount3 (package fuse3)")
        return command

    def _wait_until_mounted(self, mountpoint):
        """The kernel tells when the mount table changes (proc_pid_mountinfo(5)), or the daemon
        ends."""
        deadline = time.monotonic() + MOUNT_SECONDS
        process = os.pidfd_open(self._daemon.pid)
        try:
            with open("/proc/self/mountinfo") as table:
                events = select.poll()
                events.register(table, select.POLLPRI)
                events.register(process, select.POLLIN)
                while not mounted(mountpoint):
                    if self._daemon.poll() is not None:
                        self._refused()
                    if time.monotonic() > deadline:
                        raise TimeoutError(f"{mountpoint} was not mounted: {self._said()}")
                    events.poll(1000)
        finally:
            os.close(process)

    def _refused(self):
        said = self._said()
        if "not permitted" in said or "user_allow_other" in said:
            raise Unavailable(f"mounting is not permitted here: {said}")
        raise RuntimeError(f"{self.backend.name} ended with {self._daemon.returncode}: {said}")

    def _said(self):
        self._log.seek(0)
        return self._log.read().decode(errors="replace").strip()

    def _stop(self):
        try:
            _umount(self.base)  # EBUSY would be a descriptor that a case left open
            status = self._daemon.wait(MOUNT_SECONDS)
        except BaseException:
            self._end_daemon(self.base)
            raise
        if status != 0:
            raise RuntimeError(f"{self.backend.name} ended with {status}: {self._said()}")
        self._log.close()

    def _end_daemon(self, mountpoint):
        self._daemon.kill()
        self._daemon.wait()
        if mounted(mountpoint):
            _umount(mountpoint, MNT_DETACH)
        self._log.close()

    def proof(self):
        if not any(kind.startswith("fuse") for kind in mounted(self.base)):
            raise NotUsed(f"{self.base} is no FUSE mount")


class Inline(Route):
    """The backend in this process, reached through the Python package."""

    name = "inline"

    def _start(self):
        try:
            import directfuse
        except ImportError as error:
            raise Unavailable(f"the package is not installed: {error}") from error
        self.os = directfuse
        mountpoint = os.path.join(self.area, "mnt")
        command = self.backend.command(mountpoint, self.source, readonly=self.readonly)
        self._mount = directfuse.mount(command)
        return mountpoint

    def _stop(self):
        self._mount.unmount()  # EBUSY would be a descriptor that a case left open

    def _become(self, uid, gid, groups):
        super()._become(uid, gid, groups)
        self.os.identity_refresh()

    def proof(self):
        if os.path.lexists(self.base):
            raise NotUsed(f"{self.base} exists for the kernel")
        if not self._mount.stats().calls:
            raise NotUsed("the mount has counted no calls")


ROUTES = {route.name: route for route in (Plain, Kernel, Inline)}

#: Every (route, backend) that the suite runs on.
WHERE = [("plain", None)] + [
    (route, backend) for route in ROUTES if route != "plain" for backend in BACKENDS
]


def open_route(name, backend, *, readonly=False):
    """The route as a context manager; entering raises Unavailable where it cannot run."""
    return ROUTES[name](backend, readonly=readonly)


def where_id(where):
    route, backend = where
    return f"{route}-{backend}" if backend else route


# ---- the machine -------------------------------------------------------------------------------


def memory_directory():
    """A writable directory on tmpfs, or the ordinary temporary directory."""
    for directory in ("/dev/shm", tempfile.gettempdir()):
        if os.access(directory, os.W_OK) and _file_system_of(directory) == "tmpfs":
            return directory
    return tempfile.gettempdir()


def _mount_table():
    """(mountpoint, type) of every mount, oldest first."""
    with open("/proc/self/mountinfo") as table:
        for line in table:
            left, right = line.split(" - ", 1)
            mountpoint = left.split()[4].encode().decode("unicode_escape")
            yield mountpoint, right.split()[0]


def mounted(path):
    """The types of what is mounted exactly at path."""
    return [kind for mountpoint, kind in _mount_table() if mountpoint == path]


def _file_system_of(path):
    path = os.path.realpath(path)
    holders = [
        (len(point), number, kind)
        for number, (point, kind) in enumerate(_mount_table())
        if path == point or path.startswith(point.rstrip("/") + "/")
    ]
    return max(holders)[2]


def _check(result, path):
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), path)


def _mount(source, target, flags):
    source = None if source is None else os.fsencode(source)
    _check(_libc.mount(source, os.fsencode(target), None, ctypes.c_ulong(flags), None), target)


def _umount(path, flags=0):
    if os.geteuid() == 0:
        _check(_libc.umount2(os.fsencode(path), flags), path)
    else:
        lazy = ["-z"] if flags & MNT_DETACH else []
        subprocess.run(["fusermount3", "-u", *lazy, path], check=True)


def _die_with_parent(sig=signal.SIGTERM):
    _libc.prctl(PR_SET_PDEATHSIG, int(sig), 0, 0, 0)


# ---- another user ------------------------------------------------------------------------------


def _in_child(before, func):
    """func() in a forked child after before(); its value, or its exception raised here."""
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        _child(before, func, write_end)
    os.close(write_end)
    try:
        with open(read_end, "rb") as pipe:
            answer = pipe.read()
    except BaseException:  # the time-out of the case
        os.kill(pid, signal.SIGKILL)
        raise
    finally:
        _, status = os.waitpid(pid, 0)
    if not answer:
        raise AssertionError(f"the child ended without an answer, wait status {status}")
    failed, value = pickle.loads(answer)
    if failed:
        raise value
    return value


def _child(before, func, write_end):
    """Never returns."""
    try:
        try:
            before()
            _die_with_parent(signal.SIGKILL)
            answer = (False, func())
        except OSError as error:
            answer = (True, error)
        except BaseException:
            answer = (True, AssertionError(traceback.format_exc()))
        with open(write_end, "wb") as pipe:
            pipe.write(pickle.dumps(answer))
    finally:
        os._exit(0)


def user_xattrs(directory):
    """Whether the file system of this real directory keeps user.* attributes (tmpfs: Linux 6.6)."""
    try:
        os.getxattr(directory, "user.probe")
    except OSError as error:
        return error.errno == errno.ENODATA
    return True
