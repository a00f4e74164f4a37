"""Mounts through the kernel: starting a FUSE program, seeing it mounted, unmounting it.

The kernel's own table, /proc/self/mountinfo, says what is mounted; what a program says or returns
does not. For the command line only: while a program starts, its process adopts orphans
(PR_SET_CHILD_SUBREAPER), so that a program that has put itself into the background is still ours to
watch, to wait for and, when it never mounts, to end.
"""

import ctypes
import errno
import fcntl
import os
import re
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from directfuse._command import positional_words

__all__ = [
    "Mount",
    "MountFailed",
    "Program",
    "fuse_mount_at",
    "is_in_run",
    "mounts",
    "orphans_adopted",
    "unescaped",
    "unmount",
]

_TABLE = "/proc/self/mountinfo"
_PR_SET_PDEATHSIG = 1  # prctl(2)
_PR_INSIDE = 0x64664931  # native/intercept/intercept.h
_PR_SET_CHILD_SUBREAPER = 36
_MNT_DETACH = 2  # umount2(2)
_WORDS_KEPT = 4096  # bytes of a program's last words that a message repeats

_libc = ctypes.CDLL(None, use_errno=True)


class MountFailed(Exception):
    """A FUSE program did not mount; `status` is its exit status, None when it did not end."""

    def __init__(self, message: str, status: int | None) -> None:
        super().__init__(message)
        self.status = status


# ---- the kernel's table --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Mount:
    """One line of mountinfo, proc_pid_mountinfo(5)."""

    id: int
    point: str
    type: str
    source: str

    @property
    def is_fuse(self) -> bool:
        return self.type.split(".")[0] in ("fuse", "fuseblk")


def mounts() -> list[Mount]:
    """All mounts this process sees, in the order they were stacked."""
    with open(_TABLE, encoding="utf-8", errors="surrogateescape", newline="\n") as table:
        return [_parse(line) for line in table]


def _parse(line: str) -> Mount:
    head, _, tail = line.partition(" - ")
    fields, kind = head.split(" "), tail.rstrip("\n").split(" ")
    return Mount(int(fields[0]), unescaped(fields[4]), kind[0], unescaped(kind[1]))


def unescaped(field: str) -> str:
    """Undoes \\040 and its like, proc_pid_mounts(5)."""
    raw = re.sub(
        rb"\\([0-7]{3})",
        lambda match: bytes([int(match[1], 8)]),
        field.encode("utf-8", "surrogateescape"),
    )
    return os.fsdecode(raw)


def mount_point(path: str) -> str:
    """`path` as mountinfo would name it. The last component is never touched: a file system that
    hangs must not hang the command that unmounts it."""
    parent, name = os.path.split(os.path.abspath(path))
    return os.path.join(os.path.realpath(parent), name)


def mount_at(path: str) -> Mount | None:
    """The topmost mount at exactly `path`, or None."""
    point = mount_point(path)
    here = [mount for mount in mounts() if mount.point == point]
    return here[-1] if here else None


def fuse_mount_at(path: str) -> Mount | None:
    """The topmost mount at exactly `path` if it is a FUSE file system."""
    mount = mount_at(path)
    return mount if mount is not None and mount.is_fuse else None


# ---- unmounting ----------------------------------------------------------------------------


def unmount(path: str, *, lazy: bool = False) -> None:
    """Takes the FUSE mount at `path` away: umount2(2) as root, else by fusermount3.

    lazy: detach now, let go when the last file is closed. Raises OSError: EINVAL when no FUSE file
    system is mounted there, EBUSY when it is in use, ENOENT when there is no fusermount3.
    """
    if fuse_mount_at(path) is None:
        raise OSError(errno.EINVAL, "no FUSE file system is mounted there", path)
    point = mount_point(path)
    if os.geteuid() == 0:
        if _libc.umount2(os.fsencode(point), _MNT_DETACH if lazy else 0) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), path)
        return
    _fusermount(point, lazy)


def _fusermount(point: str, lazy: bool) -> None:
    helper = shutil.which("fusermount3") or shutil.which("fusermount")
    if helper is None:
        raise OSError(errno.ENOENT, "fusermount3 is missing (Debian: apt install fuse3)", point)
    argv = [helper, "-u", *(["-z"] if lazy else []), "--", point]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False)
    if done.returncode == 0:
        return
    words = done.stderr.strip()
    number = errno.EBUSY if "busy" in words.lower() else errno.EPERM
    raise OSError(number, words or f"fusermount3 ended with status {done.returncode}", point)


# ---- a program that mounts -----------------------------------------------------------------


def _may_ask(quiet: bool) -> bool:
    """Whether a program may read a password, say, from our input: not from a terminal on which
    nobody would see its question."""
    return not quiet or not os.isatty(0)


class Program:
    """A FUSE program from its start to its end. As a context manager it leaves nothing behind.

    argv     the command line
    keep     success leaves the program running; else the end of the `with` block unmounts and ends
             it, and it dies with this process
    adopt    it may put itself into the background: its orphans become ours to watch and to end.
             One such program at a time; the others must stay in the foreground.
    quiet    what it prints is kept for messages, instead of passing through
    """

    def __init__(
        self, argv: Sequence[str], *, keep: bool = False, adopt: bool = False, quiet: bool = True
    ) -> None:
        self.argv = list(argv)
        self.mounted: Mount | None = None
        self._keep = keep
        self._adopt = adopt
        self._quiet = quiet
        self._candidates = {mount_point(word) for word in positional_words(argv)}
        # Both: the number of a mount that ends while the program starts is free for the new one.
        self._before = {(mount.id, mount.point) for mount in mounts()}
        self._words = os.memfd_create("words", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        output = self._words if quiet else None
        _adopt_orphans(adopt)
        try:
            self._process = subprocess.Popen(
                self.argv,
                stdin=None if adopt and _may_ask(quiet) else subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,  # Ctrl-C is ours: we unmount, and it ends in order
                preexec_fn=None if keep else _die_with_parent,
            )
        except BaseException:
            os.close(self._words)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._keep and error is None and self.mounted is not None:
            self._let_go()
        else:
            self.end()
        os.close(self._words)
        if self._adopt:
            _adopt_orphans(False)

    @property
    def pid(self) -> int:
        """The process that was started; the one that serves, unless it went into the background."""
        return self._process.pid

    def wait_mounted(self, timeout: float) -> Mount:
        """Returns once the kernel lists the mount; raises MountFailed when the program ends
        without one, TimeoutError after `timeout` seconds."""
        deadline = time.monotonic() + timeout
        with _mountinfo_changes() as sleep:
            while True:
                ended = not self._alive()  # asked first: it may mount, then end this process
                self.mounted = self._find()
                if self.mounted is not None:
                    return self.mounted
                if ended:
                    raise MountFailed(self._failure(), self._process.returncode)
                left = deadline - time.monotonic()
                if left <= 0:
                    raise TimeoutError(f"{self.argv[0]} did not mount within {timeout:g} s")
                sleep(min(left, 0.02))

    def wait_unmounted(self) -> int:
        """Returns the program's exit status once its mount is gone or it has ended."""
        with _mountinfo_changes() as sleep:
            while self._alive() and self._still_mounted():
                sleep(0.2)
        self._wait_ended(10.0)
        return self._process.returncode or 0

    def words(self) -> str:
        """The end of what the program has printed (quiet only)."""
        size = os.fstat(self._words).st_size
        data = os.pread(self._words, _WORDS_KEPT, max(0, size - _WORDS_KEPT))
        return data.decode(errors="replace").strip()

    def end(self) -> None:
        """Unmounts, and ends every process of the program, gently first."""
        self.mounted = self._find()
        if self.mounted is not None:
            try:
                unmount(self.mounted.point)
            except OSError:
                if self._still_mounted():
                    unmount(self.mounted.point, lazy=True)
            if self._wait_ended(5.0):
                return
        for number in (signal.SIGTERM, signal.SIGKILL):
            for pid in _descendants() if self._adopt else [self._process.pid]:
                _signal(pid, number)
            if self._wait_ended(3.0):
                return

    def _let_go(self) -> None:
        # What it prints from now on has no reader: a sealed file refuses to grow, where a closed
        # pipe would kill the writer with SIGPIPE.
        fcntl.fcntl(self._words, fcntl.F_ADD_SEALS, fcntl.F_SEAL_GROW)
        self._process.returncode = 0  # no ResourceWarning for a child that is meant to stay

    def _find(self) -> Mount | None:
        for mount in reversed(mounts()):
            new = (mount.id, mount.point) not in self._before
            if mount.is_fuse and new and mount.point in self._candidates:
                return mount
        return None

    def _still_mounted(self) -> bool:
        return self.mounted in mounts()

    def _alive(self) -> bool:
        """Whether any process of the program lives; reaps those that do not."""
        if not self._adopt:
            return self._process.poll() is None
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self._process.pid:
                self._process.returncode = os.waitstatus_to_exitcode(status)

    def _wait_ended(self, timeout: float) -> bool:
        deadline = time.monotonic() + timeout
        while self._alive():
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.002)
        return True

    def _failure(self) -> str:
        status = self._process.returncode
        name = os.path.basename(self.argv[0])
        if status is not None and status < 0:
            how = f"{name} was killed by signal {-status} ({signal.strsignal(-status)})"
        else:
            how = f"{name} ended with status {status} and mounted nothing"
        if not self._quiet:
            return f"{how}."
        words = self.words()
        return f"{how}. It said:\n{words}" if words else f"{how}, without a word."


@contextmanager
def _mountinfo_changes() -> Iterator["_Waiter"]:
    fd = os.open(_TABLE, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield _Waiter(fd)
    finally:
        os.close(fd)


class _Waiter:
    """Sleeps until the mount table changes: the kernel signals POLLPRI on mountinfo."""

    def __init__(self, fd: int) -> None:
        self._poll = select.poll()
        self._poll.register(fd, select.POLLPRI)

    def __call__(self, timeout: float) -> None:
        self._poll.poll(timeout * 1000)


def _adopt_orphans(on: bool) -> None:
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, int(on), 0, 0, 0)


@contextmanager
def orphans_adopted() -> Iterator[None]:
    """What puts itself into the background meanwhile is a child of this process from then on."""
    _adopt_orphans(True)
    try:
        yield
    finally:
        _adopt_orphans(False)


def is_in_run(shadow: Path | None = None) -> bool:
    """Whether this process is one of the programs of a `directfuse run` or `directfuse env`.
    shadow: of one whose placeholders are in that directory."""
    of = os.fsencode(shadow) if shadow else None
    return bool(_libc.prctl(_PR_INSIDE, ctypes.c_char_p(of), 0, 0, 0) == 1)


def become(command: Sequence[str]) -> OSError:
    """execvp(3). Unlike os.execvp it has a shell execute what the kernel cannot, a script without
    `#!`. Returns why it failed."""
    words = [os.fsencode(word) for word in command]
    _libc.execvp(words[0], (ctypes.c_char_p * (len(words) + 1))(*words))
    error = ctypes.get_errno()
    return OSError(error, os.strerror(error), command[0])


def _die_with_parent() -> None:
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


def _descendants() -> list[int]:
    """Every process below this one, children first."""
    found: list[int] = []
    queue = [os.getpid()]
    while queue:
        pid = queue.pop()
        try:
            tasks = os.listdir(f"/proc/{pid}/task")
        except OSError:
            continue
        for task in tasks:
            try:
                with open(f"/proc/{pid}/task/{task}/children") as children:
                    below = [int(word) for word in children.read().split()]
            except OSError:
                continue
            found += below
            queue += below
    return found


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass
