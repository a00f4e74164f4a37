"""What other users see of a run: that there is one, and no way to its files."""

import os
import subprocess
import sys
from pathlib import Path

import needs
import pytest

from directfuse._shadow import Shadow, discard_shadow, shadow_directory

from .conftest import COMMAND

pytestmark = needs.run

_NOBODY = 65534

#: A program that maps a file nobody else may read, and listens at a socket.
_OWNER = """
import mmap, os, socket, sys
os.umask(0o077)
with open("private", "wb") as file:
    file.write(b"secret" * 1000)
file = open("private", "r+b")
memory = mmap.mmap(file.fileno(), 0)
assert memory[:6] == b"secret"
listener = socket.socket(socket.AF_UNIX)
listener.bind("listens")
listener.listen()
caller = socket.socket(socket.AF_UNIX)
caller.connect("listens")
print(listener.getsockname(), caller.getpeername(), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def owner(tmp_path):
    """A run with that program, and the path by which its server knows its placeholders."""
    point = tmp_path / "m"
    script = f"cd {point} && exec python3 -S -c '{_OWNER}'"
    run = subprocess.Popen(
        [*COMMAND, "run", "-m", f"memfs {point}", "--", "/bin/sh", "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert run.stdout.readline() == b"listens listens\n"
    yield _shadow_of(point)
    run.communicate(timeout=20)
    assert run.returncode == 0


def _shadow_of(point):
    from .test_run_killed import server_of

    return server_of(point)[0]


@pytest.mark.parametrize(
    "script",
    [
        "directfuse run -m 'memfs {0}' -- ls -d {0}",
        'eval "$(directfuse env -m \'memfs {0}\')"; ls -d {0}; eval "$(directfuse env --end)"',
        "directfuse serve 'memfs {0}' --name=umask --background; "
        "directfuse run -m @umask -- ls -d {0}; directfuse unmount @umask",
        "python -c 'import directfuse; "
        'directfuse.mount("memfs {0}", placement="helper").unmount(); print("{0}")\'',
    ],
    ids=["run", "env", "serve", "helper"],
)
def test_a_umask_that_takes_its_owners_rights(script, tmp_path, monkeypatch):
    """Of one who has no capability to do without them."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    no_rights = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"]
    words = [
        *(no_rights if os.geteuid() == 0 else []),
        "sh",
        "-c",
        "umask 777; " + script.format(tmp_path / "m"),
    ]
    done = subprocess.run(words, capture_output=True, text=True, timeout=50, check=False)
    assert (done.returncode, done.stdout) == (0, f"{tmp_path}/m\n"), done.stderr


def test_a_run_in_a_pid_namespace_whose_proc_is_another_ones(tmp_path):
    """As in a container without a /proc of its own: numbers there are not getpid()'s."""
    unshare = ["unshare", "--pid", "--fork", *([] if os.geteuid() == 0 else ["--map-root-user"])]
    if subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("no PID namespaces here")
    words = [*COMMAND, "run", "-m", f"memfs {tmp_path}/m", "--"]
    script = f"echo hi >{tmp_path}/m/f; cat {tmp_path}/m/f; cat <{tmp_path}/m/f | wc -c"
    done = subprocess.run(
        [*unshare, *words, "/bin/sh", "-c", script],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "hi\n3\n", "")


def _as_nobody(*words):
    return subprocess.run(
        words, user=_NOBODY, group=_NOBODY, extra_groups=[], capture_output=True, text=True
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user needs root")
def test_other_users_cannot_list_the_way_to_the_placeholders(owner):
    data = next(owner.glob("d/*"))
    assert b"secret" in data.read_bytes()
    assert owner.parent.name in _as_nobody("ls", owner.parent.parent).stdout
    listed = _as_nobody("ls", owner.parent)
    assert (listed.stdout, "Permission denied" in listed.stderr) == ("", True)


def test_sockets_do_not_tell_where_the_placeholders_are(owner):
    assert any((owner / "s").iterdir())
    assert os.fspath(owner) not in os.fsdecode(Path("/proc/net/unix").read_bytes())


def test_names_are_not_to_be_guessed_and_go_together():
    made = {shadow_directory() for _ in range(3)}
    run = Shadow()
    made_of_run = run.hidden
    assert len({path.name for path in (*made, made_of_run)}) == 4
    assert all(len(path.name) == 16 for path in (*made, made_of_run))
    run.remove()
    for path in made:
        discard_shadow(path)
    assert not any(path.parent.exists() for path in (*made, made_of_run))


@pytest.mark.parametrize("make", [Shadow, shadow_directory])
def test_what_its_owner_was_killed_at_removing_goes_with_the_next(make, monkeypatch):
    """Which looks once at what is there."""
    left = shadow_directory()
    ended = left.parent.rename(f"{left.parent}.ended")
    scan, looked = os.scandir, []
    monkeypatch.setattr(os, "scandir", lambda path: looked.append(path) or scan(path))
    made = make()
    discard_shadow(made.hidden if isinstance(made, Shadow) else made)
    assert not ended.exists()
    assert looked.count(os.fspath(ended.parent)) == 1


def test_what_an_earlier_build_has_left_goes_alone(tmp_path):
    """It had no directory around it."""
    old, other = tmp_path / "directfuse-old", tmp_path / "other"
    for path in (old, other):
        path.mkdir()
    discard_shadow(old)
    assert sorted(tmp_path.iterdir()) == [other]
