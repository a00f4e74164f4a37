"""What a process is given and Python changes: put right before a command runs, for its children."""

import io
import os
import signal
import sys
from pathlib import Path
from types import FrameType

__all__ = [
    "fill_standard",
    "heed_sigterm",
    "let_names_out",
    "output_is_closed",
    "restore_locale",
    "unwind_by_signals",
    "wait_for_children",
]


_closed: set[int] = set()  # standard descriptors, when the process was started


def fill_standard() -> None:
    """Standard descriptors that are closed lead to /dev/null, in this process alone.

    Else the next descriptors would have these numbers, and starting a child would close them; and
    Python has no stream for them, only None.
    """
    for fd, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)  # the lowest number that is free
            _closed.add(fd)
        if getattr(sys, name) is None:
            setattr(sys, name, open(fd, mode, closefd=False))


def output_is_closed() -> bool:
    """Whether nobody is told what this process prints."""
    return 1 in _closed


def let_names_out() -> None:
    """Names of files may be no text: they are printed as the bytes that they are, also where the
    locale has Python refuse them."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="surrogateescape")


def restore_locale() -> None:
    """Takes LC_CTYPE away again, where Python has set it (PEP 538)."""
    try:
        given = Path("/proc/self/environ").read_bytes().split(b"\0")
    except OSError:  # /proc is not mounted: what needs it says so
        return
    if not any(word.startswith(b"LC_CTYPE=") for word in given):
        os.environ.pop("LC_CTYPE", None)


def wait_for_children() -> None:
    """Who started us may ignore SIGCHLD, and then the ends of our children would not come to us
    (wait(2)). They do not ignore it either then: as under timeout(1)."""
    if signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)


def unwind_by_signals() -> None:
    """SIGTERM and SIGHUP end by exception, so that every mount and process of ours is cleaned up on
    the way, and so does SIGINT, which directfuse_command has given back. Who ignores them (nohup)
    goes on to, and so do its children."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _unwind)


def heed_sigterm() -> None:
    """Also if who started us ignores it, or has it blocked."""
    signal.signal(signal.SIGTERM, _unwind)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})


def _unwind(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(-number)
