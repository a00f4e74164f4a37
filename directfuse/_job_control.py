"""Job control: the shell that waits for us waits for a command that it does not know.

So we stop when the command has, by Ctrl-Z or by itself as a shell does by `suspend`, and no sooner:
until then it would read what is typed at the shell's prompt. We go on together.
"""

import os
import signal
from contextlib import suppress

__all__ = ["stop_with"]


_OF_TERMINALS = frozenset({signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU})


def stop_with(pid: int, number: int) -> None:
    """The command has stopped by this signal; so do we. When we are continued, the command is, in
    the foreground if it was there.

    But not if there is no terminal, or by SIGSTOP in the background: who stops it then may be
    anybody, and will continue it without a word to us.
    """
    terminal = _terminal()
    if terminal is None:
        return
    try:
        with suppress(OSError):  # the command was killed, or the terminal has gone
            own, group = os.getpgrp(), os.getpgid(pid)
            front = os.tcgetpgrp(terminal)
            if number in _OF_TERMINALS or front in (own, group):
                os.kill(os.getpid(), signal.SIGSTOP)
                _continue(group, terminal, front == group)
    finally:
        os.close(terminal)


def _continue(group: int, terminal: int, at_front: bool) -> None:
    with suppress(OSError):  # the terminal has gone
        if at_front and os.tcgetpgrp(terminal) == os.getpgrp():
            os.tcsetpgrp(terminal, group)
    os.killpg(group, signal.SIGCONT)


def _terminal() -> int | None:
    try:
        return os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return None
