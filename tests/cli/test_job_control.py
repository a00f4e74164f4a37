"""A run as the job of an interactive shell, at a terminal: as the command alone would be.

While dash starts another program a signal key may be lost to it: so none does when one is pressed.
"""

import os
import pty
import re
import select
import shlex
import signal
import time
from collections.abc import Iterator

import pytest

from .conftest import COMMAND

_SECONDS = 30


class Shell:
    """bash at a terminal of its own."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix  #: of each command
        self._pid, self._terminal = pty.fork()
        if self._pid == 0:
            os.environ.update(PS1="P> ", HISTFILE="", LC_ALL="C", TERM="dumb")
            os.execvp("bash", ["bash", "--norc", "--noprofile", "--noediting", "-i"])
        self._said = ""
        self.expect("P> ")
        self.does("stty -echo noflsh")  # else such a key drops what is printed meanwhile

    def end(self) -> None:
        os.kill(self._pid, signal.SIGKILL)
        os.close(self._terminal)  # whatever is at it gets SIGHUP
        os.waitpid(self._pid, 0)

    def expect(self, pattern: str) -> None:
        """Reads until it has been printed."""
        end = time.monotonic() + _SECONDS
        while not (found := re.search(pattern, self._said)):
            left = end - time.monotonic()
            assert left > 0, f"{pattern!r} was not printed: {self._said!r}"
            if select.select([self._terminal], [], [], left)[0]:
                self._said += os.read(self._terminal, 4096).decode(errors="replace")
        self._said = self._said[found.end() :]

    def press(self, key: str) -> None:
        os.write(self._terminal, bytes([ord(key) & 0x1F]))

    def types(self, line: str) -> None:
        os.write(self._terminal, f"{line}\n".encode())

    def starts(self, script: str) -> None:
        self.types(f"{self.prefix}sh -c {shlex.quote(script)}")

    def does(self, line: str, printed: str = "") -> None:
        """A command of the shell itself, up to the next prompt."""
        self.types(line)
        self.expect(f"{printed}(?s:.*)P> ")


@pytest.fixture(params=["plain", "run"])
def shell(request, tmp_path) -> Iterator[Shell]:
    mount = f"memfs {tmp_path}/nowhere"
    run = shlex.join([*COMMAND, "run", "-m", mount, "--"]) + " "
    made = Shell(run if request.param == "run" else "")
    yield made
    made.end()


def test_the_terminal_stops_and_continues_it(shell):
    shell.starts("echo begun; read line; echo read $line")
    shell.expect("begun")
    shell.press("Z")
    shell.expect("Stopped(?s:.*)P> ")
    shell.does("bg; wait %1; jobs", "Stopped")  # it reads from the terminal, in the background
    shell.types("fg")
    shell.types("words")
    shell.expect("read words(?s:.*)P> ")


@pytest.mark.parametrize("name", ["STOP", "TSTP"])
def test_a_command_that_stops_by_itself_gives_the_prompt_back(shell, name):
    shell.starts(f"echo begun; kill -{name} $$; echo continued; exit 3")
    shell.expect("begun(?s:.*)Stopped(?s:.*)P> ")
    shell.types("fg")
    shell.expect("continued(?s:.*)P> ")
    shell.does("echo status $?", "status 3")


def test_a_shell_inside_that_is_suspended_has_the_terminal_again(shell):
    shell.types(f"PS1='Q> ' {shell.prefix}bash --norc --noprofile --noediting -i")
    shell.expect("Q> ")
    shell.types("suspend")
    shell.expect("Stopped(?s:.*)P> ")
    shell.types("fg")
    shell.types("sh -c 'echo one; exec cat'")
    shell.expect("one")
    shell.press("Z")
    shell.expect("Stopped(?s:.*)Q> ")
    shell.types("exit; exit 5")
    shell.expect("P> ")
    shell.does("echo status $?", "status 5")


def test_a_loop_ends_by_ctrl_c(shell):
    shell.types(
        f"for i in 1 2; do echo turn $i; {shell.prefix}sh -c 'echo begun; exec sleep 60'; done"
    )
    shell.expect("turn 1\r\nbegun")
    shell.press("C")
    shell.expect("P> ")
    shell.does("echo status $?", "^(?!(?s:.*)turn)(?s:.*)status 130")


def test_who_handles_ctrl_c_decides(shell):
    inner = "trap 'echo caught; exit 0' INT; echo begun; while :; do :; done"
    shell.types(f"for i in 1 2; do {shell.prefix}sh -c {shlex.quote(inner)}; done")
    for _ in range(2):
        shell.expect("begun")
        shell.press("C")
        shell.expect("caught")
    shell.expect("P> ")


def test_what_ignores_ctrl_z_goes_on(shell):
    shell.starts("trap '' TSTP; echo begun; read line; echo read $line")
    shell.expect("begun")
    shell.press("Z")
    shell.types("words")
    shell.expect("read words(?s:.*)P> ")
    shell.does("echo status $?", "status 0")


def test_a_job_in_the_background_is_stopped_by_its_number(shell):
    shell.types(f"{shell.prefix}sh -c 'echo begun; while :; do :; done' &")
    shell.expect("begun")
    shell.does("kill -TSTP %1; wait %1; jobs", "Stopped")
    shell.does("kill -CONT %1; kill -TERM %1; wait %1; echo status $?", "status 143")
