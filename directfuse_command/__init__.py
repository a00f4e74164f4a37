"""The `directfuse` command, ahead of its imports.

A package of its own: importing anything of `directfuse` imports all of that, which takes long
enough for a Ctrl-C, and there Python would show where it was.
"""

import gc
import signal

__all__ = ["main"]


def main() -> None:
    """Runs the command line and exits. Until it can say that it was interrupted, SIGINT just ends
    the process; ignored, as of a shell's jobs in the background, it stays so."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.disable()  # nothing that is made by imports is garbage: until the command's own are done
    from directfuse._cli import main as command_line

    command_line()
