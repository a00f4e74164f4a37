"""A mount server that is an interpreter: Python file systems run in it as inline as they do in any
process, and others reach them through shared memory.

    python -m directfuse._python.server [--control FD] [--listen FD] [--stay] [--report FD]
                                        [--words N]... [--given FD] -- COMMAND [ARG...]

Not for people: directfuse/_served.py starts it. The options are those of directfuse-server
(native/server/main.c); --given is a file with a pickled Given. File systems that are not Python are
mounted as well, so that one server holds all of a run.
"""

import argparse
import errno
import os
import signal
import socket
import sys
from collections.abc import Iterator, Sequence

from directfuse import _mount, _native, _served
from directfuse._errors import DirectfuseError, MountError
from directfuse._python import programs

__all__ = ["main"]

# taken by the server's thread, in no other
_OWN_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def _parse(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="directfuse-server")
    for name in ("control", "listen", "report", "given"):
        parser.add_argument(f"--{name}", type=int, default=-1)
    parser.add_argument("--stay", action="store_true")
    parser.add_argument("--words", type=int, action="append", default=[])
    parser.add_argument("command", nargs="*")
    return parser.parse_args(words)


def _take_signals() -> None:
    """Children of a file system hear them as if we were its program alone."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _OWN_SIGNALS)
    programs.taken_signals = {*_OWN_SIGNALS} - before
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


def _keep_to_ourselves(options: argparse.Namespace) -> None:
    """What we were given to inherit is not for the programs that file systems start."""
    for fd in (options.control, options.listen, options.report):
        if fd >= 0:
            os.set_inheritable(fd, False)


def _detach() -> None:
    """Who started this waits for the process it made: that one ends here, and the server belongs to
    nobody whose wait() it could disturb."""
    if os.fork() != 0:
        os._exit(0)


def _command_lines(options: argparse.Namespace) -> Iterator[list[str]]:
    begin = 0
    for count in options.words or [len(options.command)]:
        yield options.command[begin : begin + count]
        begin += count


def _mount_all(options: argparse.Namespace) -> None:
    """All or none: what is mounted already goes with the process."""
    if refusal := _native.configure_server():
        raise MountError(errno.EINVAL, refusal)
    if options.given >= 0:
        with open(options.given, "rb") as file:
            given = _served.Given.load(file)
        if given.is_object:
            _mount.mount(given.revive(), given.mountpoint, options=given.options)
            return
    for words in _command_lines(options):
        mount = _mount.mount(words)
        if options.control < 0 and mount.log:  # of `directfuse serve`: nobody else is told
            print(mount.log, file=sys.stderr)


def _refuse(control: int, error: BaseException) -> int:
    """Tells who waits; an exit status: where no message is read, the error (main.c)."""
    code = error.errno if isinstance(error, DirectfuseError) and error.errno else errno.EIO
    text = error.strerror if isinstance(error, MountError) else f"{type(error).__name__}: {error}"
    if control < 0:
        print(f"directfuse-server: {text}", file=sys.stderr)
        return code
    with socket.socket(fileno=control) as told:
        told.send(_served.ready_message(code, str(text)))
    return 1


def main(words: Sequence[str]) -> int:
    """An exit status."""
    options = _parse(words)
    _take_signals()
    _keep_to_ourselves(options)
    if options.control >= 0:
        _detach()
    try:
        with _native.abandonable(options.control):
            _mount_all(options)
    except BaseException as error:
        return _refuse(options.control, error)
    code = _native.serve(
        control=options.control, listener=options.listen, stay=options.stay, report=options.report
    )
    return _refuse(options.control, MountError(code, os.strerror(code))) if code else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
