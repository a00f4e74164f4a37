"""Random calls of three processes on the same files, which fork, execute themselves and send each
other descriptors: what succeeds, what it answers and what is left is as in a plain directory.

Which of two errors is told is not compared: file systems of Linux differ there, too.
"""

import ast
import re
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import hypothesis
import pytest

from . import games
from .conftest import PROGRAMS, environment

# A run that fails prints the game, made smaller.
SHORT = hypothesis.settings(max_examples=20)
SWEEP = hypothesis.settings(max_examples=200)

_STAGE = [sys.executable, "-S", str(PROGRAMS / "game" / "stage.py")]
_ERROR = re.compile(r"'E[A-Z0-9]{2,}'")


@pytest.fixture
def open_directory():
    """One that other users may go through, whom games are played by, too; pytest's are not."""
    directory = Path(tempfile.mkdtemp(prefix="directfuse-games-"))
    directory.chmod(0o755)
    yield directory
    shutil.rmtree(directory)


class Stage:
    """Where games are played; see programs/game/stage.py."""

    def __init__(self, command, directory):
        pipe = subprocess.PIPE
        options = {"cwd": directory, "env": environment(), "stdin": pipe, "stdout": pipe}
        self._start = partial(subprocess.Popen, command, text=True, **options)
        self._process = self._start()

    def play(self, game):
        """On a new one, if the last game was the end of it."""
        if self._process.poll() is not None:
            self.end()
            self._process = self._start()
        print(game, file=self._process.stdin, flush=True)
        told = self._process.stdout.readline()
        assert told, f"{self._process.args[2]} ended with {self._process.wait(50)}"
        answers, left = ast.literal_eval(_ERROR.sub("'error'", told))
        return [*zip(game, answers, strict=True), left]

    def end(self):
        """Its status."""
        self._process.stdout.close()
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        return self._process.wait(50)


@contextmanager
def stages(directory, options):
    """A plain directory, and one of a mount."""
    plain, point = directory / "plain", directory / "mount"
    plain.mkdir()
    mount = f"memfs {point} -o allow_other,default_permissions{options}"
    run = [sys.executable, "-m", "directfuse", "run", "-m", mount, "--"]
    inside = [*run, "/bin/sh", "-c", 'cd "$0" && exec "$@"', str(point), *_STAGE]
    both = [Stage(_STAGE, plain), Stage(inside, directory)]
    try:
        yield both
    finally:
        statuses = [stage.end() for stage in both]
    assert statuses == [0, 0]


def compare(directory, options, steps, count, settings):
    with stages(directory, options) as (plain, mounted):

        @settings
        @hypothesis.given(games.games(steps, count))
        def alike(game):
            assert mounted.play(game) == plain.play(game)

        alike()


@pytest.mark.timeout(300)  # seconds; one that passes takes ten, one that fails has to shrink
@pytest.mark.parametrize("steps", [games.ALL, games.ONE_FILE], ids=["all", "one_file"])
def test_random_calls_of_processes_end_as_on_linux(open_directory, steps):
    compare(open_directory, "", steps, 60, SHORT)


@pytest.mark.sweep
@pytest.mark.timeout(600)
@pytest.mark.parametrize("steps", [games.ALL, games.ONE_FILE], ids=["all", "one_file"])
@pytest.mark.parametrize("options", ["", ",writeback_cache"])
def test_random_calls_of_processes_end_as_on_linux_for_long(open_directory, options, steps):
    compare(open_directory, options, steps, 150, SWEEP)
