"""The memory that all programs of one `directfuse run` share: configuration, counters, log.

native/intercept/run.h has the same layout.
"""

import mmap
import os
import struct
import subprocess
from pathlib import Path
from typing import NamedTuple

from directfuse import _native, _paths
from directfuse._errors import asked

__all__ = ["EVENTS", "CallCount", "RunBlock", "call_names", "dispatch_is_there", "openat2_is_free"]

_MAGIC = 0x31304E5552464544  # "DEFRUN01"
_HEADER = struct.Struct("<Q32s9Q")
_LOG_USED = _HEADER.size - 8  # offset of the last field of the header
_EVENTS_AT = _HEADER.size
_EVENTS_ROOM = 32
_SLOT_COUNT = 256
_OWNERS = struct.Struct(f"<{_SLOT_COUNT}i")
_OWNERS_AT = _EVENTS_AT + 8 * _EVENTS_ROOM
_LOADER_AT = _OWNERS_AT + _OWNERS.size
_LOADER_ROOM = os.pathconf("/", "PC_PATH_MAX")

_CALLS_MAX = 512
_SLOT = struct.Struct(f"<{2 * _CALLS_MAX}Q")  # made and passed, by call
_LEARN_SIZE = 1 << 15  # at least what learn.h needs
_LOG_SIZE = 1 << 20
_PAGE = mmap.PAGESIZE

#: What is counted beside calls, in the order of enum dfi_event.
EVENTS = (
    "trapped",
    "rewritten",
    "kept",
    "escaped",
    "execs",
    "forks",
    "threads",
    "unknown",
    "trips",
    "hits",
    "learnt",
)

_FLAGS = {"verbose": 1, "strict": 2, "norewrite": 4, "seccomp": 8, "openat2": 16}


class CallCount(NamedTuple):
    """How often a system call was made, and how often it was left to the kernel."""

    calls: int
    passed: int


def _aligned(offset: int) -> int:
    return -(-offset // _PAGE) * _PAGE


class RunBlock:
    """One run: a memfd that its programs inherit, or a file that they open."""

    def __init__(
        self, config: str, loader: Path, *, file: Path | None = None, **flags: bool
    ) -> None:
        text = os.fsencode(config)
        # What each start reads lies together: one fault of its brings it.
        config_at = _LOADER_AT + _LOADER_ROOM
        self._learn_at = _aligned(config_at + len(text) + 1)
        self._slots_at = self._learn_at + _LEARN_SIZE
        self._log_at = self._slots_at + _SLOT_COUNT * _SLOT.size
        size = self._log_at + _LOG_SIZE
        if file is None:
            self.fd = asked(os.memfd_create, "directfuse-run")
        else:
            self.fd = os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            os.fchmod(self.fd, 0o600)  # whatever the umask
        os.ftruncate(self.fd, size)
        self._memory = mmap.mmap(self.fd, size)
        header = _HEADER.pack(
            _MAGIC,
            _native.build(),
            sum(_FLAGS[name] for name, on in flags.items() if on),
            size,
            config_at,
            len(text),
            self._slots_at,
            self._learn_at,
            self._log_at,
            _LOG_SIZE,
            0,
        )
        self._put(0, header)
        self._put(_LOADER_AT, os.fsencode(loader) + b"\0")
        self._put(config_at, text)

    def _put(self, offset: int, data: bytes) -> None:
        self._memory[offset : offset + len(data)] = data

    def close(self) -> None:
        self._memory.close()
        os.close(self.fd)

    def events(self) -> dict[str, int]:
        """How often each of EVENTS happened."""
        counts = struct.unpack_from(f"<{len(EVENTS)}Q", self._memory, _EVENTS_AT)
        return dict(zip(EVENTS, counts, strict=True))

    def calls(self) -> dict[int, CallCount]:
        """By number, those that were made."""
        made, passed = [0] * _CALLS_MAX, [0] * _CALLS_MAX
        for slot in range(_SLOT_COUNT):
            at = self._slots_at + slot * _SLOT.size
            words = _SLOT.unpack_from(self._memory, at)
            if any(words):
                made = [a + b for a, b in zip(made, words[::2], strict=True)]
                passed = [a + b for a, b in zip(passed, words[1::2], strict=True)]
        pairs = enumerate(zip(made, passed, strict=True))
        return {number: CallCount(*pair) for number, pair in pairs if pair[0]}

    def has_programs(self) -> bool:
        """Whether a thread of the run still lives."""
        return any(map(_lives, self.owners()))

    def owners(self) -> list[int]:
        """The threads that have counters; one that was killed has them until another needs them."""
        return [owner for owner in _OWNERS.unpack_from(self._memory, _OWNERS_AT) if owner != 0]

    def notes(self) -> list[str]:
        """The log, line by line."""
        (used,) = struct.unpack_from("<Q", self._memory, _LOG_USED)
        text = self._memory[self._log_at : self._log_at + min(used, _LOG_SIZE)]
        return [line for line in text.decode(errors="replace").split("\n") if line.strip("\0")]


def openat2_is_free() -> bool:
    """Whether Linux has openat2(2), and no seccomp(2) filter of ours ends who calls it."""
    return _loader_can("--openat2")


def dispatch_is_there() -> bool:
    """Whether Linux has Syscall User Dispatch here, and no seccomp(2) filter forbids it."""
    return _loader_can("--dispatch")


def _loader_can(what: str) -> bool:
    """Tried by a process that does nothing else, for a filter may end it."""
    return subprocess.run([_paths.loader(), what], check=False).returncode == 0


def _lives(thread: int) -> bool:
    """Not one that was killed and that nobody waits for, such as process 1 of a container."""
    try:
        stat = Path(f"/proc/{thread}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(b") ")[2][:1] not in (b"Z", b"X")


def call_names() -> dict[int, str]:
    """The names of system calls by number, as the core's table has them."""
    command = [str(_paths.loader()), "--calls"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return {int(number): name for number, name in (line.split() for line in lines)}
