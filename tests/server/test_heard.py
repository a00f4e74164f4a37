"""What a file system says is for who started its server, where it stays in the foreground."""

import subprocess

import pytest
from building import fuse

import directfuse
from directfuse import _paths

from .built import built, compiled


@pytest.fixture(scope="module")
def talker(tmp_path_factory):
    return built("talker", tmp_path_factory)


def words_of(path):
    return ["at the start", *(f"{word} {path}" for word in ("printed", "complained", "logged"))]


@pytest.mark.parametrize("option, heard", [("-f", True), ("-d", True), ("-s", False)])
def test_a_run_shows_it(talker, tmp_path, option, heard):
    point = f"{tmp_path}/mnt"
    run = [*_paths.COMMAND, "run", "-m", f"{talker} {option} {point}", "--"]
    done = subprocess.run(
        [*run, "test", "-e", f"{point}/x"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    said = [line for line in done.stderr.splitlines() if not line.endswith(" /")]
    assert said == (words_of("/x") if heard else [])


@pytest.mark.parametrize("option, heard", [("-f", True), ("-s", False)])
def test_a_run_shows_that_of_a_program_in_a_helper(talker, tmp_path, option, heard):
    point, script = f"{tmp_path}/mnt", tmp_path / "script"
    script.write_text(f'#!/bin/sh\nexec {talker} -f "$@"\n')
    script.chmod(0o755)
    run = [*_paths.COMMAND, "run", "-m", f"{script} {option} {point}", "--"]
    done = subprocess.run(
        [*run, "test", "-e", f"{point}/x"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert ("complained /x" in done.stderr) == ("logged /x" in done.stderr) == heard


@pytest.mark.parametrize("option, heard", [("-f", True), ("-s", False)])
def test_a_run_shows_that_of_a_program_of_libfuse_2(tmp_path_factory, tmp_path, option, heard):
    program, point = compiled("talker_2", tmp_path_factory, *fuse("fuse")), f"{tmp_path}/mnt"
    run = [*_paths.COMMAND, "run", "-m", f"{program} {option} {point}", "--"]
    done = subprocess.run(
        [*run, "test", "-e", f"{point}/x"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (f"/x in {tmp_path}\n" if heard else "")


def test_a_server_of_mount_shows_it(talker, tmp_path, capfd):
    point = f"{tmp_path}/mnt"
    with directfuse.mount([talker, "-f", point], placement="server"):
        assert not directfuse.path.exists(f"{point}/x")
    assert capfd.readouterr().err.splitlines() == words_of("/x")


def test_inline_it_is_kept(talker, tmp_path, capfd):
    """Standard error is the application's."""
    point = f"{tmp_path}/mnt"
    with directfuse.mount([talker, "-f", point]) as mount:
        assert not directfuse.path.exists(f"{point}/x")
    assert mount.log == "at the start" and capfd.readouterr().err == ""
