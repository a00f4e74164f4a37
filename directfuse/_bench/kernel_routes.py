"""The ways that go through the kernel: its own file system, and FUSE in all its kinds."""

import os
import subprocess
from contextlib import ExitStack

from directfuse import _kernel, _paths
from directfuse._bench.routes import Route, Unavailable
from directfuse._bench.subject import Subject

__all__ = ["IoUring", "Kernel", "KernelBacked", "KernelCached", "Plain", "mount_through_kernel"]

MOUNT_SECONDS = 15.0
_URING_SWITCH = "/sys/module/fuse/parameters/enable_uring"
_CAP_SYS_ADMIN = 21


class Plain(Route):
    name = "plain directory"
    words = "the kernel's own file system, on tmpfs unless told otherwise"

    def start(self, subject: Subject, base: str, lanes: int, stack: ExitStack) -> None:
        if subject.finds:
            raise Unavailable("there is no plain copy of this file system's content")
        self._path = self._directory(base, "files")
        self._worker(subject, lanes, f"kernel:{self._path}", stack, real=self._path)

    def proof(self) -> str:
        return f"no FUSE mount at {self._path}"


def _program_of(subject: Subject) -> str:
    """What mounts through the kernel. Raises Unavailable."""
    if subject.program is None:
        raise Unavailable("a shared object cannot be mounted through the kernel")
    return subject.program


def mount_through_kernel(
    subject: Subject,
    point: str,
    source: str,
    options: str,
    stack: ExitStack,
    environment: dict[str, str] | None = None,
) -> _kernel.Program:
    """The subject's own program behind /dev/fuse, until the stack ends. Raises Unavailable."""
    program = _program_of(subject)
    if not os.path.exists("/dev/fuse"):
        raise Unavailable("there is no /dev/fuse here (in a container: --device /dev/fuse)")
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        raise Unavailable("/dev/fuse cannot be opened (root, or the package fuse3)")
    argv = subject.command(point, source, options)
    argv[0] = program
    given = [f"{name}={value}" for name, value in (environment or {}).items()]
    prefix = ["env", *given] if given else []
    try:
        return _mounted([*prefix, *argv, "-f"], stack)
    except _kernel.MountFailed as error:  # -f may be what it does not know, as a program in Python
        try:
            return _mounted([*prefix, *argv], stack)
        except (OSError, _kernel.MountFailed):
            raise Unavailable(str(error)) from error
    except OSError as error:
        raise Unavailable(str(error)) from error


def _mounted(argv: list[str], stack: ExitStack) -> _kernel.Program:
    """Raises MountFailed, and TimeoutError."""
    with ExitStack() as own:
        program = own.enter_context(_kernel.Program(argv))
        program.wait_mounted(MOUNT_SECONDS)
        stack.push(own.pop_all())
        return program


class KernelCached(Route):
    name = "kernel FUSE cached"
    words = "/dev/fuse, caches as the file system wants them"

    def start(self, subject: Subject, base: str, lanes: int, stack: ExitStack) -> None:
        self._check(subject)
        self._point = self._directory(base, "mount")
        source = self._source(subject, base)
        self._program = mount_through_kernel(
            subject, self._point, source, self._options(subject), stack, self._environment(base)
        )
        self._worker(subject, lanes, f"kernel:{self._point}", stack, real=source)
        found = _kernel.fuse_mount_at(self._point)
        if found is None:
            raise Unavailable(f"no FUSE mount at {self._point}")
        self._type = found.type

    def _check(self, subject: Subject) -> None:
        """Raises Unavailable."""

    def _options(self, subject: Subject) -> str:
        return ""

    def _environment(self, base: str) -> dict[str, str]:
        return {}

    def proof(self) -> str:
        return f"{self._type} mounted, served by a process of its own"


class Kernel(KernelCached):
    name = "kernel FUSE"
    words = "/dev/fuse, entry, attribute and (where the file system can) page caches off"

    def _options(self, subject: Subject) -> str:
        return subject.uncached


class IoUring(KernelCached):
    """Needs a kernel that has it switched on, and a program whose libfuse speaks it."""

    name = "kernel FUSE io_uring"
    words = "FUSE over io_uring (Linux 6.14, libfuse 3.18), caches off"

    def _check(self, subject: Subject) -> None:
        try:
            with open(_URING_SWITCH) as switch:
                on = switch.read().strip() == "Y"
        except OSError as error:
            raise Unavailable("this kernel has no FUSE over io_uring (Linux 6.14)") from error
        program = _program_of(subject)
        why = []
        if not _libfuse_has_uring(program):
            name = os.path.basename(program)
            why.append(f"{name} is linked to a libfuse that does not speak it (libfuse 3.18 does)")
        if not on:
            why.append(f"the kernel has it switched off (as root: echo 1 > {_URING_SWITCH})")
        if why:
            raise Unavailable("; ".join(why))

    def _options(self, subject: Subject) -> str:
        return ",".join(option for option in (subject.uncached, "io_uring") if option)

    def proof(self) -> str:
        """libfuse has a thread for each CPU's ring."""
        if self._rings == 0:
            raise Unavailable("the program has no thread that serves a ring")
        return f"{self._type} mounted, {self._rings} rings"

    def start(self, subject: Subject, base: str, lanes: int, stack: ExitStack) -> None:
        super().start(subject, base, lanes, stack)
        self._rings = _ring_threads(self._program.pid)


def _libfuse_has_uring(program: str) -> bool:
    """Whether the libfuse that the program is linked to knows the option."""
    return any(b"io_uring_q_depth" in text for text in _libraries(program))


def _libraries(program: str) -> list[bytes]:
    """The libfuse that the dynamic linker would give to this program."""
    done = subprocess.run(
        [program],
        env={**os.environ, "LD_TRACE_LOADED_OBJECTS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    found = []
    for line in done.stdout.splitlines():
        words = line.split()
        if words and words[0].startswith("libfuse") and len(words) > 2:
            with open(words[2], "rb") as file:
                found.append(file.read())
    return found


def _ring_threads(pid: int) -> int:
    count = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/comm") as comm:
            count += comm.read().startswith("fuse-ring")
    return count


class KernelBacked(KernelCached):
    """The built-in passthrough with FUSE_PASSTHROUGH: see benchmarks/native/backed.c."""

    name = "kernel FUSE passthrough"
    words = "/dev/fuse, the kernel reads and writes the real file itself (Linux 6.9), caches off"

    def _check(self, subject: Subject) -> None:
        if not subject.handles_are_files:
            raise Unavailable("it serves no files of another file system (passthrough does)")
        release = tuple(int(part) for part in os.uname().release.split(".")[:2])
        if release < (6, 9):
            raise Unavailable(f"Linux 6.9 has it, this is {os.uname().release}")
        if not _may_administer():
            raise Unavailable("the kernel lets only root (CAP_SYS_ADMIN) register files for it")

    def _options(self, subject: Subject) -> str:
        return subject.uncached

    def _environment(self, base: str) -> dict[str, str]:
        self._count = f"{base}/backed-files"
        library = _paths.native_dir() / "libexec/df-backed.so"
        return {"LD_PRELOAD": os.fspath(library), "DF_BACKED": self._count}

    def proof(self) -> str:
        try:
            with open(self._count) as file:
                opened = int(file.read())
        except (OSError, ValueError):
            opened = 0
        if opened == 0:
            raise Unavailable("the kernel took no file (CONFIG_FUSE_PASSTHROUGH)")
        return f"{self._type} mounted, the kernel was given {opened} files"


def _may_administer() -> bool:
    with open("/proc/self/status") as status:
        masks = [line.split()[1] for line in status if line.startswith("CapEff:")]
    return bool(masks) and bool(int(masks[0], 16) >> _CAP_SYS_ADMIN & 1)
