"""What a command raises for the user's eyes: one message, one exit status, no traceback."""

from contextlib import suppress

import click

__all__ = ["CANNOT_EXECUTE", "NOT_FOUND", "OWN_FAILURE", "Failure", "tell"]

OWN_FAILURE = 125  # as env(1) and timeout(1)
CANNOT_EXECUTE = 126
NOT_FOUND = 127


class Failure(click.ClickException):
    """Ends the command with `message` on standard error and `status`."""

    def __init__(self, message: str, status: int = OWN_FAILURE) -> None:
        super().__init__(message)
        self.status = status


def tell(words: str) -> None:
    """A line on standard error. Where nobody listens the status is told all the same."""
    with suppress(OSError):
        click.echo(words, err=True)
