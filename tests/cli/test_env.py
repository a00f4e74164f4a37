"""`directfuse env`: mounts by the environment."""

import os
import shlex
import signal
import subprocess
from pathlib import Path

import needs
import pytest
from click.testing import CliRunner

from directfuse import _paths
from directfuse._cli.env import env

from .conftest import COMMAND, processes_with, said_clearly, shell, wait_until

pytestmark = needs.run


def exported(told):
    """The variables of the lines that are for eval."""
    return dict(shlex.split(line)[1].split("=", 1) for line in told.splitlines())


def test_programs_see_the_mount(memory):
    point, (_, line) = memory
    command = shlex.join(COMMAND)
    script = (
        f"eval \"$({command} env -m '{line}')\"; sh -c 'echo y >{point}/f'; cat {point}/f; "
        f'd=${{DIRECTFUSE_RUN%/run}}; ls -d $d; eval "$({command} env --end)"; '
        "echo $LD_PRELOAD$DIRECTFUSE_RUN; ls -d $d* || echo gone; ls -d " + str(point)
    )
    done = subprocess.run(
        ["/bin/sh", "-c", script], capture_output=True, text=True, check=False, timeout=50
    )
    first, directory, *rest = done.stdout.splitlines()
    assert first == "y"
    assert directory.startswith("/")
    assert rest == ["", "gone"]
    assert done.returncode != 0  # the last ls: the mountpoint is gone


def test_the_library_may_lie_below_a_blank(memory, monkeypatch, tmp_path):
    point, (_, line) = memory
    library = tmp_path / "a b:c" / "preload.so"
    library.parent.mkdir()
    library.symlink_to(_paths.preload_library())
    monkeypatch.setattr(_paths, "preload_library", lambda: library)
    told = CliRunner().invoke(env, ["-m", line]).stdout
    named = exported(told)
    words = shell(f"echo y >{point}/f; cat {point}/f")[1:]
    done = subprocess.run(words, env=os.environ | named, capture_output=True, text=True, timeout=50)
    assert (done.stdout, done.stderr) == ("y\n", "")
    ended = CliRunner().invoke(env, ["--end"], env=named)
    assert ended.stdout == "unset DIRECTFUSE_RUN\nunset LD_PRELOAD\n"
    assert not Path(named["DIRECTFUSE_RUN"]).parent.exists()


def test_an_environment_that_nobody_was_told_of_is_ended(tmp_path):
    """Else its server stays for ever: `--end` needs what was to be printed."""
    image = tmp_path / "served"
    image.mkdir()
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*COMMAND, "env", "-m", f"passthrough {image} {tmp_path}/mnt"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=50,
        )
    assert done.returncode == 125 and said_clearly(done)
    wait_until(lambda: not processes_with(image))


def test_an_environment_that_is_interrupted_is_ended(monkeypatch, tmp_path):
    """Between the mount and the words that tell of it."""
    directories = []

    def interrupted(directory):
        directories.append(directory)
        raise KeyboardInterrupt

    monkeypatch.setattr("directfuse._cli.env._preload", interrupted)
    (image := tmp_path / "served").mkdir()
    done = CliRunner().invoke(env, ["-m", f"passthrough {image} {tmp_path}/mnt"])
    assert done.exit_code == 1 and directories and not directories[0].exists()
    wait_until(lambda: not processes_with(image))


def test_an_environment_is_not_begun_where_nobody_is_told_of_it(tmp_path):
    """It said nothing, with status 0, and its server stayed."""
    image = tmp_path / "served"
    image.mkdir()
    words = shlex.join([*COMMAND, "env", "-m", f"passthrough {image} {tmp_path}/mnt"])
    done = subprocess.run(
        ["/bin/sh", "-c", f"{words} >&-"],
        stderr=subprocess.PIPE,
        text=True,
        timeout=50,
        check=False,
    )
    assert done.returncode == 125 and "standard output is closed" in done.stderr
    assert not processes_with(image)


def test_the_end_of_an_environment_takes_nothing_to_mount(run, memory):
    done = run("env", *memory[1], "--end")
    assert (done.returncode, done.stdout) == (125, "") and "--end stands alone" in done.stderr


def test_an_environment_that_was_ended_is_left(run, tmp_path):
    """By another shell."""
    named = {"DIRECTFUSE_RUN": f"{tmp_path}/gone/run", "LD_PRELOAD": ""}
    done = run("env", "--end", env=os.environ | named)
    assert done.stdout == "unset DIRECTFUSE_RUN\nunset LD_PRELOAD\n"
    assert done.returncode == 0 and "ended already" in done.stderr


@pytest.mark.parametrize("name", ["home", "directfuse-home"])
def test_what_is_no_environment_is_not_removed_as_one(run, tmp_path, name):
    """The variable was set by hand, to a path of somebody's own."""
    home = tmp_path / name
    home.mkdir()
    (home / "run").write_text("kept")
    done = run("env", "--end", env=os.environ | {"DIRECTFUSE_RUN": f"{home}/run"})
    assert (done.returncode, done.stdout) == (125, "")
    assert f"DIRECTFUSE_RUN={home}/run: is nothing that `directfuse env` has made" in done.stderr
    assert (home / "run").read_text() == "kept"


def test_an_environment_whose_server_was_killed_can_be_ended(run, memory):
    """No program starts in it any more: `--end` works without LD_PRELOAD, as is said."""
    point, mount = memory
    named = exported(run("env", *mount).stdout)
    os.kill(int(processes_with(point)[0]), signal.SIGKILL)
    wait_until(lambda: not processes_with(point))
    refused = run("env", "--end", env=os.environ | named)
    assert (refused.returncode, refused.stdout) == (125, "")
    assert "the mount server of its run has ended" in refused.stderr
    assert 'to end it: unset LD_PRELOAD; eval "$(directfuse env --end)"\n' in refused.stderr
    ended = run("env", "--end", env=os.environ | named | {"LD_PRELOAD": ""})
    assert (ended.returncode, ended.stdout) == (0, "unset DIRECTFUSE_RUN\nunset LD_PRELOAD\n")
    assert not Path(named["DIRECTFUSE_RUN"]).parent.exists()


def test_an_environment_has_ended_when_all_is_written(run, slow):
    """What followed it, `unzip` for example, found the file as it was before."""
    mount, written = slow
    named = exported(run("env", *mount).stdout)
    assert run("env", "--end", env=os.environ | named).returncode == 0
    assert written.exists()
