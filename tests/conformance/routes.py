"""The routes: each way a call can travel from a case to a file system, one class each.

A route is a context manager. Inside, `base` is the root of its file system, `os` the namespace of
functions that reach it, and `proof()` fails unless the calls really went that way. To add a route:
a subclass of Route, a line in ROUTES, its deviations from Linux in deviations.py.
"""

import contextlib
import errno
import gc
import itertools
import os
import select
import shutil
import subprocess
import tempfile
import time

from . import linux
from .backends import BACKENDS, GATHERED, Unavailable
from .child import die_with_parent, in_child, in_thread, set_thread_identity
from .fs import Fs
from .leftovers import PREFIX, hold
from .mounts import (
    MNT_DETACH,
    MS_BIND,
    MS_RDONLY,
    MS_REMOUNT,
    memory_directory,
    mount,
    mounted,
    umount,
)
from .programs import PROGRAMS, chosen

MOUNT_SECONDS = 30
RELEASE_SECONDS = 20
FIRST_DESCRIPTOR = 1 << 30  # native/include/directfuse.h


class NotUsed(AssertionError):
    """The calls did not travel by the route they were meant to."""


class Route:
    """What all routes share: a private real directory `area` with `source` (for backends that serve
    one) and `outside` (of every file system under test), fresh roots, other users."""

    name = ""
    os = linux

    def __init__(self, backend=None, *, readonly=False):
        self.backend = (
            {**BACKENDS, **PROGRAMS, GATHERED.name: GATHERED}[backend] if backend else None
        )
        self.readonly = readonly
        self._numbers = itertools.count()

    def __enter__(self):
        if self.readonly and self.backend and not self.backend.takes_options:
            raise Unavailable(f"{self.backend.name} cannot be mounted read-only")
        self.area = tempfile.mkdtemp(prefix=PREFIX, dir=memory_directory())
        self._held = hold(self.area)
        os.chmod(self.area, 0o755)
        self.source = self._directory("source")
        self.outside = self._directory("outside")
        self.existing = self._populate()
        try:
            self.base = self._start()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(self, *exc_info):
        self._stop()
        self._remove()

    def _remove(self):
        shutil.rmtree(self.area)
        os.close(self._held)

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
        return in_child(lambda: self._become(uid, gid, groups), func)

    def _become(self, uid, gid, groups):
        os.setgroups(list(groups))
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
        self.refresh()

    def refresh(self):
        """Identity or limits of this process have changed; some routes have to be told."""

    def after_close(self, call):
        """call(), which needs what the close before it has given up."""
        return call()

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
        os.symlink(self.outside, os.path.join(self.source, "way-out"))
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
            mount(self.source, target, MS_BIND)
            mount(None, target, MS_REMOUNT | MS_BIND | MS_RDONLY)
        except PermissionError as error:
            raise Unavailable(f"a read-only directory needs CAP_SYS_ADMIN: {error}") from error
        return target

    def _stop(self):
        if self.readonly:
            umount(self.base)

    def proof(self):
        if os.stat(self.base).st_dev != os.stat(self.source).st_dev:
            raise NotUsed(f"{self.base} is not on its own device")
        if any(kind.startswith("fuse") for kind in mounted(self.base)):
            raise NotUsed(f"{self.base} is a FUSE mount")


class Kernel(Route):
    """The backend's executable behind a kernel FUSE mount: what decides between two readings."""

    name = "kernel"

    @contextlib.contextmanager
    def fresh(self):
        """A daemon that an earlier case has ended is started again."""
        if not self._serves():
            self._end_daemon(self.base)
            self._serve(self.base)
        with super().fresh() as fs:
            yield fs

    def _start(self):
        mountpoint = self._directory("mnt")
        self._serve(mountpoint)
        return mountpoint

    def _serve(self, mountpoint):
        words = self.backend.command(mountpoint, self.source, readonly=self.readonly)
        command = self._command(words)
        self._log = tempfile.TemporaryFile()
        self._daemon = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            preexec_fn=die_with_parent,
        )
        try:
            self._wait_until_mounted(mountpoint)
        except BaseException:
            self._end_daemon(mountpoint)
            raise

    def _command(self, words):
        command = self.backend.daemon(words)
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

    def after_close(self, call):
        """Again and again for a time: close(2) does not wait for RELEASE, with which locks go."""
        deadline = time.monotonic() + RELEASE_SECONDS
        while True:
            try:
                return call()
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise
            time.sleep(0.001)

    def _serves(self):
        """Whether the daemon is there; one that ends leaves ENOTCONN behind."""
        try:
            os.statvfs(self.base)
        except OSError as error:
            if error.errno != errno.ENOTCONN:
                raise
            return False
        return True

    def _refused(self):
        said = self._said()
        if "not permitted" in said or "user_allow_other" in said:
            raise Unavailable(f"mounting is not permitted here: {said}")
        raise RuntimeError(f"{self.backend.name} ended with {self._daemon.returncode}: {said}")

    def _said(self):
        self._log.seek(0)
        return self._log.read().decode(errors="replace").strip()

    def _stop(self):
        if not self.backend.takes_options and not self._serves():
            self._end_daemon(self.base)  # an example that the last case has ended
            return
        try:
            umount(self.base)  # EBUSY would be a descriptor that a case left open
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
            umount(mountpoint, MNT_DETACH)
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
        except ModuleNotFoundError as error:
            if error.name != "directfuse":  # installed, and broken: that is a failure
                raise
            raise Unavailable("the package is not installed") from error
        self.os = directfuse
        mountpoint = os.path.join(self.area, "mnt")
        if self.backend.needs_mountpoint:
            self._directory("mnt")
        command = self.backend.command(mountpoint, self.source, readonly=self.readonly)
        self._mount = self._mounted(command)
        return mountpoint

    def _mounted(self, command):
        return self.os.mount(command)

    def _stop(self):
        gc.collect()  # an exception's traceback may hold a file, in a cycle
        self._mount.unmount()  # EBUSY would be a descriptor that a case left open

    def refresh(self):
        self.os.identity_refresh()

    def as_user(self, uid, gid, func, groups):
        """A program may have threads, which a forked child lacks."""
        if self.backend.name in PROGRAMS:
            return self._as_user_in_thread(uid, gid, func, groups)
        return super().as_user(uid, gid, func, groups)

    def _as_user_in_thread(self, uid, gid, func, groups):
        if os.geteuid() != 0:
            raise Unavailable("acting as another user needs root")
        before = self._descriptors()
        try:
            return in_thread(lambda: self._become_in_thread(uid, gid, groups), func)
        finally:
            self.refresh()
            for fd in self._descriptors() - before:  # the end of a child would have closed them
                self.os.close(fd)

    def _descriptors(self):
        """Open descriptors, the first few thousand there may be."""
        found = set()
        for fd in range(FIRST_DESCRIPTOR, FIRST_DESCRIPTOR + 5000):
            with contextlib.suppress(OSError):
                self.os.fstat(fd)
                found.add(fd)
        return found

    def _become_in_thread(self, uid, gid, groups):
        set_thread_identity(uid, gid, groups)
        self.refresh()

    def proof(self):
        if os.path.lexists(self.base) and not self.backend.needs_mountpoint:
            raise NotUsed(f"{self.base} exists for the kernel")
        if mounted(self.base) or (os.path.lexists(self.base) and os.listdir(self.base)):
            raise NotUsed(f"{self.base} is a mount of the kernel, or was written to there")
        if not self._mount.stats().calls:
            raise NotUsed("the mount has counted no calls")


class Helper(Inline):
    """The backend's executable in a process of its own, speaking the FUSE protocol to us: no
    /dev/fuse, no mount."""

    name = "helper"

    def _mounted(self, command):
        executable = self.backend.executable()
        if executable is None:
            raise Unavailable(f"the backend {self.backend.name} is not built")
        return self.os.mount([str(executable), *command[1:]], placement="helper")

    def as_user(self, uid, gid, func, groups):
        """In a thread: a forked child has no connection to the helper."""
        return self._as_user_in_thread(uid, gid, func, groups)

    def proof(self):
        super().proof()
        if self._mount.placement != "helper" or mounted(self.base):
            raise NotUsed("the mount is not served by a helper")


class Server(Inline):
    """The backend in a mount server, reached through the Python package."""

    name = "server"

    def _mounted(self, command):
        return self.os.mount(command, placement="server")

    def proof(self):
        super().proof()
        if not self._mount.stats().trips:
            raise NotUsed("no call has gone to the mount server")


ROUTES = {route.name: route for route in (Plain, Kernel, Inline, Helper, Server)}

#: Every (route, backend) that the suite runs on.
WHERE = chosen() or [
    ("plain", None),
    *((route, backend) for route in ROUTES if route != "plain" for backend in BACKENDS),
    ("server", GATHERED.name),
]


def open_route(name, backend, *, readonly=False):
    """The route as a context manager; entering raises Unavailable where it cannot run."""
    return ROUTES[name](backend, readonly=readonly)


def where_id(where):
    route, backend = where
    return f"{route}-{backend}" if backend else route
