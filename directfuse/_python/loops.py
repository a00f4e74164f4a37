"""The event loop of a pyfuse3 file system: trio's or asyncio's, in a thread of its own or in the
program's.

The loop holds its file system's turn (native/pyhost/turn.h) except while it waits for events. What
is driven inline therefore runs where the loop itself would have gone from one task to the next.
"""

import asyncio
import errno
import inspect
import logging
import reprlib
import selectors
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Self

from directfuse._pyhost import Job, Turn

__all__ = ["AsyncioLoop", "Loop", "TrioLoop", "foreign_asyncio", "foreign_trio"]

log = logging.getLogger("directfuse")

START_SECONDS = 30.0
END_SECONDS = 5.0


class Loop(ABC):
    """Runs the operations that may suspend."""

    def __init__(self) -> None:
        self.alive = False
        self.flying: set[Job] = set()  # posted and not yet answered

    def post(self, job: Job) -> None:
        """Has the job answered, now or later. Called on any thread. Raises nothing but what a
        signal's handler does."""
        try:
            self.flying.add(job)
            self._post(job)
        except RuntimeError:  # trio.RunFinishedError, "Event loop is closed"
            log.error("%s: the event loop of the file system has ended", job.operation)
            self.drop(job)
        except BaseException:  # the loop may have got it, or not
            if job.withdraw():
                self.flying.discard(job)
            raise
        if not self.alive:  # drop_all() has been, perhaps, before the job was there
            self.drop(job)

    async def run(self, job: Job, timeout: Callable[[Any], Any]) -> None:
        """Inside the loop: the job's own task. timeout: limits what it awaits."""
        try:
            await self._answer(job, timeout)
        finally:
            self.flying.discard(job)

    async def _answer(self, job: Job, timeout: Callable[[Any], Any]) -> None:
        """What an operation raises ends the operation, and never the loop, which others share."""
        try:
            result = job.call()
            if inspect.isawaitable(result):
                result = await timeout(result)
            elif job.operation != "forget":
                raise TypeError(f"it has to be `async def`: it returned {reprlib.repr(result)}")
        except Exception as error:
            job.fail(error)
        except BaseException as error:
            if not self.alive or isinstance(error, KeyboardInterrupt):
                job.refuse(errno.EIO)  # cancelled by the end of the loop, or of the process
            else:
                job.fail(error)
        else:
            job.answer(result)

    def drop(self, job: Job) -> None:
        """Nobody runs it any more. If it was answered, it stays so."""
        self.flying.discard(job)
        job.refuse(errno.EIO)

    def drop_all(self) -> None:
        """What the loop has lost, at its end. It is no longer alive by then."""
        for job in list(self.flying):
            self.drop(job)

    @abstractmethod
    def call(self, function: Callable[[], object]) -> None:
        """Calls a plain function inside the loop, waits, raises what it raised."""

    @abstractmethod
    def stop(self) -> None:
        """Ends the loop; what still runs is cancelled and answered with EIO."""

    @abstractmethod
    def _post(self, job: Job) -> None:
        """Has the loop begin it. Raises RuntimeError: it has ended."""


class _Thread(Loop):
    """A thread that runs a loop; what both kinds have in common."""

    def __init__(self, turn: Turn, name: str, timeout: float | None) -> None:
        super().__init__()
        self.turn = turn
        self.timeout = timeout
        self._wanted = True  # until stop(), which may come before it is alive
        self._started = threading.Event()
        self._failure: BaseException | None = None
        # A daemon: the interpreter's end unmounts, which stops the loop, after it has joined others
        self._thread = threading.Thread(target=self._main, name=name, daemon=True)

    def start(self) -> None:
        """It may fail, or a signal's handler raise something: then stop() it."""
        self._thread.start()
        if not self._started.wait(START_SECONDS):
            raise TimeoutError("the event loop does not start")
        if self._failure:
            raise self._failure

    def _main(self) -> None:
        try:
            self._serve()
        except BaseException as error:
            self._failure = error
            if self._started.is_set():
                log.exception("the event loop of a file system has ended with an error")
        finally:
            self.alive = False
            self._started.set()
            self.drop_all()

    @abstractmethod
    def _serve(self) -> None:
        """Runs the loop until it is asked to stop."""

    @abstractmethod
    def _ask_to_stop(self) -> None:
        """On any thread. Raises RuntimeError: it has ended."""

    @abstractmethod
    def _soon(self, function: Callable[[], None]) -> None:
        """Has the loop call it. Raises RuntimeError: it has ended."""

    def call(self, function: Callable[[], object]) -> None:
        done = threading.Event()
        failure: list[BaseException] = []

        def run() -> None:
            try:
                function()
            except BaseException as error:
                failure.append(error)
            finally:
                done.set()

        self._soon(run)
        while not done.wait(1.0):
            if not self.alive:
                raise RuntimeError("the event loop has ended")
        if failure:
            raise failure[0]

    def stop(self) -> None:
        self._wanted = False
        if self.alive:
            try:
                self._ask_to_stop()
            except RuntimeError:
                pass  # it has ended meanwhile
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(END_SECONDS)
            if self._thread.is_alive():
                log.error("the event loop of a file system does not end; it is left behind")


# ---- trio ----------------------------------------------------------------------------------------


class _TurnInstrument:
    """Gives the turn away while trio waits for events (trio.abc.Instrument, by its methods)."""

    def __init__(self, turn: Turn) -> None:
        self.turn = turn

    def before_run(self) -> None:
        self.turn.take()

    def after_run(self) -> None:
        self.turn.give()

    def before_io_wait(self, timeout: float) -> None:
        self.turn.give()

    def after_io_wait(self, timeout: float) -> None:
        self.turn.take()


def _trio_timeout(seconds: float | None) -> Callable[[Any], Any]:
    import trio

    async def limited(result: Any) -> Any:
        if seconds is None:
            return await result
        try:
            with trio.fail_after(seconds):
                return await result
        except trio.TooSlowError:
            raise TimeoutError(errno.ETIMEDOUT, f"no answer within {seconds} s") from None

    return limited


class TrioLoop(_Thread):
    """trio in a thread of its own."""

    def _serve(self) -> None:
        import trio

        self._timeout = _trio_timeout(self.timeout)
        instrument: Any = _TurnInstrument(self.turn)
        trio.run(self._tasks, instruments=[instrument])

    async def _tasks(self) -> None:
        import trio

        self._token = trio.lowlevel.current_trio_token()
        async with trio.open_nursery() as self._nursery:
            self.alive = True
            self._started.set()
            if self._wanted:
                await trio.sleep_forever()

    def _begin(self, job: Job) -> None:
        try:
            self._nursery.start_soon(self.run, job, self._timeout)
        except RuntimeError:  # the nursery has been closed
            log.error("%s: the event loop of the file system is ending", job.operation)
            self.drop(job)

    def _post(self, job: Job) -> None:
        self._token.run_sync_soon(self._begin, job)

    def _soon(self, function: Callable[[], None]) -> None:
        self._token.run_sync_soon(function)

    def _ask_to_stop(self) -> None:
        self._token.run_sync_soon(self._end)

    def _end(self) -> None:
        self.alive = False
        self._nursery.cancel_scope.cancel()


class foreign_trio(Loop):  # noqa: N801  # used as a function is
    """The trio loop that is running now, which a program made: async with foreign_trio(...) as
    loop."""

    def __init__(self, turn: Turn, timeout: float | None) -> None:
        import trio

        super().__init__()
        self.alive = True
        self._instrument: Any = _TurnInstrument(turn)
        self._timeout = _trio_timeout(timeout)
        self._token = trio.lowlevel.current_trio_token()
        self._manager: Any = trio.open_nursery()

    async def __aenter__(self) -> Self:
        import trio

        self._nursery = await self._manager.__aenter__()
        self._instrument.before_run()
        trio.lowlevel.add_instrument(self._instrument)
        return self

    async def __aexit__(self, *error: object) -> bool | None:
        import trio

        self.alive = False
        self._nursery.cancel_scope.cancel()
        try:
            ended: bool | None = await self._manager.__aexit__(*error)
            return ended
        finally:
            self.drop_all()
            trio.lowlevel.remove_instrument(self._instrument)
            self._instrument.after_run()

    def _post(self, job: Job) -> None:
        self._token.run_sync_soon(self._begin, job)

    def _begin(self, job: Job) -> None:
        if self.alive:
            self._nursery.start_soon(self.run, job, self._timeout)
        else:
            self.drop(job)

    def call(self, function: Callable[[], object]) -> None:
        function()  # only ever from inside the loop

    def stop(self) -> None:
        self.alive = False


# ---- asyncio -------------------------------------------------------------------------------------


class _TurnSelector(selectors.BaseSelector):
    """A selector that gives the turn away while it waits."""

    def __init__(self, inner: selectors.BaseSelector, turn: Turn) -> None:
        self.inner = inner
        self.turn = turn
        self.register = inner.register  # type: ignore[method-assign]
        self.unregister = inner.unregister  # type: ignore[method-assign]
        self.modify = inner.modify  # type: ignore[method-assign]
        self.close = inner.close  # type: ignore[method-assign]

    def register(self, *arguments: Any) -> Any:
        raise NotImplementedError  # replaced above

    def unregister(self, *arguments: Any) -> Any:
        raise NotImplementedError  # replaced above

    def get_map(self) -> Any:
        return self.inner.get_map()

    def get_key(self, fileobj: Any) -> Any:
        return self.inner.get_key(fileobj)

    def select(self, timeout: float | None = None) -> Any:
        self.turn.give()
        try:
            return self.inner.select(timeout)
        finally:
            self.turn.take()


def _asyncio_timeout(seconds: float | None) -> Callable[[Any], Any]:
    async def limited(result: Any) -> Any:
        if seconds is None:
            return await result
        try:
            return await asyncio.wait_for(result, seconds)
        except TimeoutError:
            raise TimeoutError(errno.ETIMEDOUT, f"no answer within {seconds} s") from None

    return limited


class _Tasks:
    """Operations as tasks of an asyncio loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, timeout: float | None, owner: Loop) -> None:
        self.loop = loop
        self.owner = owner
        self.timeout = _asyncio_timeout(timeout)
        self.running: set[asyncio.Task[None]] = set()

    def post(self, job: Job) -> None:
        self.loop.call_soon_threadsafe(self._begin, job)

    def _begin(self, job: Job) -> None:
        if not self.owner.alive:  # nobody would wait for its task
            self.owner.drop(job)
            return
        task = self.loop.create_task(self.owner.run(job, self.timeout))
        self.running.add(task)
        task.add_done_callback(self.running.discard)
        task.add_done_callback(lambda _: self.owner.drop(job))  # cancelled before its first step

    def cancel(self) -> list[asyncio.Task[None]]:
        """For the end: what comes after is refused, as the owner is not alive any more."""
        running = list(self.running)
        for task in running:
            task.cancel()
        return running


class AsyncioLoop(_Thread):
    """asyncio in a thread of its own."""

    def _serve(self) -> None:
        selector = _TurnSelector(selectors.DefaultSelector(), self.turn)
        self._loop = asyncio.SelectorEventLoop(selector)
        self._tasks = _Tasks(self._loop, self.timeout, self)
        asyncio.set_event_loop(self._loop)
        self.turn.take()
        try:
            self._loop.call_soon(self._begin)
            self._loop.run_forever()
            self.alive = False
            if running := self._tasks.cancel():
                self._loop.run_until_complete(asyncio.wait(running))
        finally:
            self._loop.close()
            self.turn.give()

    def _begin(self) -> None:
        self.alive = True
        self._started.set()
        if not self._wanted:
            self._loop.stop()

    def _post(self, job: Job) -> None:
        self._tasks.post(job)

    def _soon(self, function: Callable[[], None]) -> None:
        self._loop.call_soon_threadsafe(function)

    def _ask_to_stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)


class foreign_asyncio(Loop):  # noqa: N801  # used as a function is
    """The asyncio loop that is running now, which a program made."""

    def __init__(self, turn: Turn, timeout: float | None) -> None:
        super().__init__()
        self.turn = turn
        self.alive = True
        self._loop: Any = asyncio.get_running_loop()
        self._tasks = _Tasks(self._loop, timeout, self)

    async def __aenter__(self) -> Self:
        selector = getattr(self._loop, "_selector", None)
        if selector is None:
            raise RuntimeError(
                f"{type(self._loop).__name__} is no loop of asyncio's own: it has no selector, "
                "around which calls from other threads could be ordered"
            )
        self._loop._selector = _TurnSelector(selector, self.turn)
        self.turn.take()
        return self

    async def __aexit__(self, *error: object) -> None:
        self.alive = False
        try:
            if running := self._tasks.cancel():
                await asyncio.wait(running)
        finally:  # the program may be cancelled meanwhile
            self.drop_all()
            self._loop._selector = self._loop._selector.inner
            self.turn.give()

    def _post(self, job: Job) -> None:
        self._tasks.post(job)

    def call(self, function: Callable[[], object]) -> None:
        function()

    def stop(self) -> None:
        self.alive = False
