"""Running a program inside: its file systems, the shared block of the run, the loader, its end.

A run consists of the command, whatever it starts, and one mount server. The server ends when the
last of them has ended; what it kept in memory is gone then.
"""

import errno
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress

from directfuse import _kernel, _native, _paths
from directfuse._errors import MountError, files_limit
from directfuse._job_control import stop_with
from directfuse._mount_server import MountServer, OpCount
from directfuse._run_block import RunBlock
from directfuse._shadow import Shadow

__all__ = [
    "Serving",
    "high_fd",
    "mapped_limit",
    "not_ended",
    "not_mounted",
    "patiently",
    "run_command",
    "watching",
]

_FILES_NEEDED = 20  # of a server and its first program, which end in odd ways with less
_HIGH_FD = 1024  # descriptors of ours are below it, in reach of small limits, if there is room
_LOOK = 0.02  # seconds between two looks whether the server has ended
_PATIENT_SECONDS = 5  # of somebody who is told nothing
_FORWARDED = frozenset(
    {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP}
)


def mapped_limit() -> str:
    """Lines of a run's configuration: what one process holds at most of large files that it maps,
    and the memory that all of the job or container may have.

    0: as much as there is. Raises MountError: DIRECTFUSE_MAPPED is no size.
    """
    size, refusal = _native.size_of("DIRECTFUSE_MAPPED")
    if refusal:
        raise MountError(errno.EINVAL, refusal)
    return f"mapped={size}\n{_memory_limit()}"


def _memory_limit() -> str:
    limit = _native.memory_limit()
    if limit is None or b"\n" in limit[1]:  # a line is a line
        return ""
    return f"memory={limit[0]}\ncgroup={os.fsdecode(limit[1])}\n"


class Serving:
    """The file systems of a run and the directory of its programs' placeholders.

    config: what programs are told. inherited: descriptors they need, and at which number.
    """

    def __init__(
        self,
        command_lines: Sequence[Sequence[str]],
        *,
        restart: bool = False,
        call_timeout: float | None = None,
    ) -> None:
        self.config = ""
        self.inherited: dict[int, int] = {}
        self._server: MountServer | None = None
        self._shadow: Shadow | None = None
        self._is_said = False  # that the server has ended
        if not command_lines:
            return
        if files_limit() < _FILES_NEEDED:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        limit = mapped_limit()
        self._shadow = Shadow()
        shadow = self._shadow.hidden
        try:
            with _kernel.orphans_adopted():  # process 1 of a container may wait for none
                self._server = MountServer(
                    command_lines, restart=restart, shadow=shadow, call_timeout=call_timeout
                )
            number = high_fd(())
        except BaseException:
            self.abandon()
            raise
        self.inherited[self._server.socket.fileno()] = number
        self.config = f"server={number}\nshadow={shadow}\n{limit}"

    def report(self) -> dict[str, dict[str, OpCount]]:
        """What each file system did, after the end; nothing while its server still runs."""
        return self._server.report.operations() if self._server is not None else {}

    def watched(self, say: Callable[[str], None]) -> AbstractContextManager[None]:
        """While programs run: says so, at once, when the file systems end before them."""
        if self._server is None:
            return nullcontext()
        return watching(lambda over: self._watch(over, say))

    def _watch(self, over: int, say: Callable[[str], None]) -> None:
        assert self._server is not None
        if self._server.wait_or(over):
            self._is_said = True
            how = self._server.report.last_words()
            say(f"the mount server {how}: files answer EIO from now on")

    def end(self, has_programs: Callable[[], bool], say: Callable[[str], None]) -> None:
        """The command has ended. Waits until all is written, unless other programs still run; says
        so if it is not. Interrupted, it waits no longer for what hangs."""
        if self._server is None:
            return
        self._server.leave()
        try:
            if not self._wait_for_end(has_programs, say):
                return
        except BaseException:
            self.abandon()
            self._say_end(say)
            raise
        self._say_end(say)
        self._remove()

    def _wait_for_end(self, has_programs: Callable[[], bool], say: Callable[[str], None]) -> bool:
        """False: other programs run; the directory is left to the server."""
        assert self._server is not None and self._shadow is not None
        with patiently(say, not_ended(self._server.pid)):
            while not self._server.wait(_LOOK):
                if has_programs():
                    self._server.let_go_of_output()
                    self._shadow.leave()
                    return False
        return True

    def _say_end(self, say: Callable[[str], None]) -> None:
        """Programs may have ended of a server that is killed before it was gone."""
        assert self._server is not None
        if not self._server.wait(0):
            say(f"the mount server (process {self._server.pid}) does not end, and is left as it is")
            return
        if self._is_said:
            return
        report = self._server.report
        if not report.has_unmounted:
            say(f"the mount server {report.last_words()}: {report.cost()}")
            return
        for point in report.ended_before():
            say(f"{point}: its file system ended by itself before the programs: calls gave EIO")

    def abandon(self) -> None:
        """The command was not started, or we are interrupted. A server that is told to end twice
        gives up what hangs."""
        for seconds in (5, 10):
            if self._server is not None:
                self._server.terminate()
                if self._server.wait(seconds):
                    break
        self._remove()

    def _remove(self) -> None:
        if self._shadow is not None:
            self._shadow.remove()


@contextmanager
def _beside(work: Callable[[], None], end: Callable[[], None]) -> Iterator[None]:
    """work() in a thread beside the body, which no signal is for, and returns soon after end().
    Raises OSError: no thread can be made."""
    worker = threading.Thread(target=work)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        _begin(worker)
    except BaseException:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        raise
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)  # which raises what has come meanwhile
        yield
    finally:
        end()
        worker.join()


def _begin(worker: threading.Thread) -> None:
    try:
        worker.start()
    except RuntimeError as error:  # which does not say why
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN), "a thread") from error


@contextmanager
def watching(watch: Callable[[int], None]) -> Iterator[None]:
    """A thread beside the body: watch(fd) returns when fd is readable."""
    over = os.eventfd(0, os.EFD_CLOEXEC)
    try:
        with _beside(lambda: watch(over), lambda: os.eventfd_write(over, 1)):
            yield
    finally:
        os.close(over)


def not_mounted(names: str) -> str:
    """What is said of file systems that take long to mount."""
    return f"{names}: has not mounted yet; waiting, Ctrl-C ends it"


def not_ended(server: int) -> str:
    """What is said of a mount server that has been told to end."""
    return (
        f"waiting for the mount server (process {server}), which still writes, hangs or is "
        "stopped; Ctrl-C gives up what hangs"
    )


@contextmanager
def patiently(say: Callable[[str], None], words: str) -> Iterator[None]:
    """Says the words when the body, which waits for somebody else, takes long: if that is possible.
    It may be the last descriptor, or the last thread, that the body is about to find missing."""
    over = threading.Event()

    def watch() -> None:
        if not over.wait(_PATIENT_SECONDS):
            say(words)

    with ExitStack() as stack:
        with suppress(OSError):
            stack.enter_context(_beside(watch, over.set))
        yield


def run_command(
    command: Sequence[str],
    block: RunBlock,
    *,
    inherited: Mapping[int, int] | None = None,
    environment: Mapping[str, str] | None = None,
) -> int:
    """Starts a command in a run and waits for it. Its status; -n: signal n has ended it.

    inherited: descriptors the programs need, and at which number. SIGINT, SIGTERM, SIGHUP, SIGQUIT
    and SIGTSTP that are sent to this process are sent on to the command, and we stop when it does.
    """
    loader = str(_paths.loader())
    fds = dict(inherited or {})
    number = high_fd(fds.values())
    fds[block.fd] = number
    watched = _FORWARDED | {signal.SIGCHLD}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    try:
        pid = os.posix_spawn(
            loader,
            ["directfuse-exec", str(number), *command],
            os.environ if environment is None else environment,
            file_actions=[(os.POSIX_SPAWN_DUP2, fd, at) for fd, at in fds.items()],
            setsigmask=before,
            setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],  # Python ignores them
        )
        return _wait(pid, watched)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def high_fd(taken: Iterable[int]) -> int:
    """The highest descriptor number that is free, within the limits; where none is below _HIGH_FD,
    within twice that, and so on. Raises OSError: EMFILE."""
    used = set(taken)
    lowest, above, limit = 3, _HIGH_FD, files_limit()
    while lowest < limit:
        for number in range(min(above, limit) - 1, lowest - 1, -1):
            if number not in used and not _is_open(number):
                return number
        lowest, above = above, 2 * above
    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


def _is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def _wait(pid: int, watched: frozenset[signal.Signals]) -> int:
    while True:
        came = signal.sigwaitinfo(watched)
        if came.si_signo in _FORWARDED:
            # What a terminal sends (si_code above 0) reaches the command without us.
            if came.si_code <= 0:
                os.kill(pid, came.si_signo)
            continue
        ended, status = os.waitpid(pid, os.WNOHANG | os.WUNTRACED)
        if ended == pid and os.WIFSTOPPED(status):
            stop_with(pid, os.WSTOPSIG(status))
        elif ended == pid:
            return os.waitstatus_to_exitcode(status)
