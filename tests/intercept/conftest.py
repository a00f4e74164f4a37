"""Runs a program plainly and inside, and compares."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from building import build

from directfuse import _paths

PROGRAMS = Path(__file__).parent / "programs"

#: Runs a command inside a run without mounts and writes what was counted: its own process, so that
#: signals and descriptors are those of a command line.
STARTER = """
import json, os, sys
from directfuse import _paths
from directfuse._cli._end import end_by
from directfuse._run import run_command
from directfuse._run_block import RunBlock, call_names
report, flags, learnt, *command = sys.argv[1:]
words = set(flags.split())
file = report + ".run" if "preload" in words else None
options = {name: True for name in words - {"preload"}}
block = RunBlock("", _paths.loader(), file=file, **options)
if learnt:
    learnt, at = bytes.fromhex(learnt), block._learn_at
    size = block._slots_at - at
    block._put(at, (learnt * size)[:size])
if file:
    library = str(_paths.preload_library())
    pid = os.posix_spawnp(
        command[0], command, os.environ | {"LD_PRELOAD": library, "DIRECTFUSE_RUN": file}
    )
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.unlink(file)
else:
    status = run_command(command, block)
names = call_names()
with open(report, "w") as file:
    calls = {names[number]: count for number, count in block.calls().items()}
    found = {"events": block.events(), "calls": calls, "notes": block.notes()}
    json.dump(found | {"owners": block.owners()}, file)
if status < 0:
    end_by(-status)
sys.exit(status)
"""


@dataclass
class Outcome:
    """What a command did."""

    status: int
    out: bytes
    err: bytes
    events: dict = field(default_factory=dict)
    calls: dict = field(default_factory=dict)
    notes: list = field(default_factory=list)
    owners: list = field(default_factory=list)

    def seen(self):
        return self.status, self.out, self.err


@pytest.fixture(autouse=True)
def _loader():
    if not _paths.loader().is_file():
        pytest.skip("directfuse run is built for x86-64 only")


def environment():
    """Python warns of fork() among threads from 3.12 on, with the process's number in the words."""
    return os.environ | {
        "LC_ALL": "C.UTF-8",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONWARNINGS": "ignore::DeprecationWarning",
    }


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    directory = tmp_path_factory.mktemp("programs")

    def call(name, *options):
        target = directory / name
        if not target.exists():
            source = PROGRAMS / f"{name}.c"
            build(source, target, "-pthread", *options)
        return target

    return call


@pytest.fixture
def plain(tmp_path):
    """Runs a command without us."""

    def call(*command, **options):
        directory = tmp_path / "plain"
        directory.mkdir(exist_ok=True)
        done = subprocess.run(
            command,
            cwd=directory,
            capture_output=True,
            env=environment(),
            check=False,
            **({"timeout": 50, "stdin": subprocess.DEVNULL} | options),
        )
        return Outcome(done.returncode, done.stdout, done.stderr)

    return call


@pytest.fixture
def inside(tmp_path):
    """Runs a command inside; flags are those of RunBlock, and preload: by that door; learnt: what
    fills the table of sites."""

    def call(*command, flags="verbose", learnt=b"", **options):
        directory = tmp_path / "inside"
        directory.mkdir(exist_ok=True)
        report = tmp_path / "report.json"
        done = subprocess.run(
            [sys.executable, "-c", STARTER, report, flags, learnt.hex(), *command],
            cwd=directory,
            capture_output=True,
            env=environment(),
            check=False,
            **({"timeout": 50, "stdin": subprocess.DEVNULL} | options),
        )
        return Outcome(done.returncode, done.stdout, done.stderr, **json.loads(report.read_text()))

    return call


#: What a command is started by when it is to stand in a new directory of the mount $0.
_STAND = 'cd "$0" && mkdir plain && cd plain && exec "$@"'


class Mounted:
    """Runs a command by `directfuse run`, in a directory of a memfs that is mounted at `point`."""

    file_system = "memfs"

    def __init__(self, directory):
        self.point = str(directory / "mount")
        self.deep = str(directory / "no" / "such" / "mount")
        self.through = []  # what the run is started by
        self._report = directory / "report.json"

    def __call__(self, *command, deep=False, timeout=50):
        point = self.deep if deep else self.point
        mount = f"{self.file_system} {point} -o allow_other,default_permissions"
        if not deep:
            command = ["/bin/sh", "-c", _STAND, point, *command]
        options = ["-m", mount, f"--stats={self._report}"]
        done = subprocess.run(
            [*self.through, sys.executable, "-m", "directfuse", "run", *options, "--", *command],
            capture_output=True,
            env=environment(),
            check=False,
            timeout=timeout,
            stdin=subprocess.DEVNULL,
        )
        report = json.loads(self._report.read_text()) if self._report.exists() else {"calls": {}}
        calls = {name: [row["calls"], row["passed"]] for name, row in report["calls"].items()}
        events = report.get("events", {})
        return Outcome(done.returncode, done.stdout, done.stderr, events=events, calls=calls)


class ByEnvironment:
    """The same by the door of the environment."""

    def __init__(self, directory):
        self.point = str(directory / "mount")

    def __call__(self, *command, timeout=50):
        env = [sys.executable, "-m", "directfuse", "env"]
        mount = f"memfs {self.point} -o allow_other,default_permissions"
        lines = subprocess.check_output([*env, "-m", mount], text=True, timeout=50)
        names = dict(line.removeprefix("export ").split("=", 1) for line in lines.splitlines())
        try:
            done = subprocess.run(
                ["/bin/sh", "-c", _STAND, self.point, *command],
                capture_output=True,
                env=environment() | names,
                check=False,
                timeout=timeout,
                stdin=subprocess.DEVNULL,
            )
        finally:
            run = environment() | {"DIRECTFUSE_RUN": names["DIRECTFUSE_RUN"]}
            subprocess.run([*env, "--end"], env=run, check=True, capture_output=True, timeout=50)
        return Outcome(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def mounted(tmp_path):
    """A command in a mount that does not exist on disk."""
    return Mounted(tmp_path)


@pytest.fixture
def within(mounted):
    """`mounted`, with a /dev/shm that nobody else sees: a tmpfs with these options."""

    def call(options):
        mount = f'mount -t tmpfs -o {options} tmpfs /dev/shm && exec "$@"'
        through = ["unshare", "-m", "sh", "-c", mount, "sh"]
        if subprocess.run([*through, "true"], capture_output=True, check=False).returncode != 0:
            pytest.skip("a mount namespace needs root")
        mounted.through = through
        return mounted

    return call
