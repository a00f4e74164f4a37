"""The route to a server that several processes share."""

import contextlib
import os

from conformance.routes import Server

from .test_lives import _unmounts, the_server, until
from .workers import calls


class Shared(Server):
    """The route to a server, which ends at an unmount without EBUSY: nothing is open any more."""

    def calls(self):
        return calls(self._mount)

    def opened(self):
        """What the server, of a file system on a real directory, has open there."""
        server = f"/proc/{the_server()}/fd"
        return [fd for fd in os.listdir(server) if self._is_below(f"{server}/{fd}")]

    def _is_below(self, link):
        with contextlib.suppress(FileNotFoundError):
            return os.readlink(link).startswith(self.source + "/")

    def _stop(self):
        """The server sees the end of the last process a moment later."""
        until(lambda: _unmounts(self.base))
