"""Servers with a name: `directfuse serve`."""

import contextlib
import os
import signal
import subprocess
import sys

from .shared import Shared
from .test_lives import until

SECONDS = 20


@contextlib.contextmanager
def served(words, name, *options):
    """The server of that name, in $XDG_RUNTIME_DIR, with a directory for runs."""
    command = [sys.executable, "-m", "directfuse", "serve", *options, words, "--name", name]
    link = os.path.join(os.environ["XDG_RUNTIME_DIR"], "directfuse", f"{name}.shadow")
    server = subprocess.Popen(command)
    try:
        until(lambda: os.path.islink(link) or server.poll() is not None, SECONDS)
        assert server.poll() is None
        yield server
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(SECONDS)


class Named(Shared):
    """The route to a server with a name, for this process and those that it starts."""

    name_of_it = "@all"

    def _mounted(self, command):
        self._end = contextlib.ExitStack()
        before = os.environ.get("XDG_RUNTIME_DIR")
        self._end.callback(self._restore, before)
        os.environ["XDG_RUNTIME_DIR"] = self._directory("runtime")
        words = " ".join(command if isinstance(command, list) else [command])
        self._end.enter_context(served(words, self.name_of_it[1:]))
        return self.os.mount(self.name_of_it)

    def _restore(self, before):
        del os.environ["XDG_RUNTIME_DIR"]
        if before is not None:
            os.environ["XDG_RUNTIME_DIR"] = before

    def _stop(self):
        with self._end:
            super()._stop()
