"""The pytest plugin, and the example that lives on it."""

import os
import shutil
import subprocess
import sys

import pytest

pytest.importorskip("pyfuse3")

from .notes import Notes  # needs pyfuse3

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def test_each_mount_is_of_its_own(directfuse_mount):
    import directfuse

    first, second = directfuse_mount(Notes("x")), directfuse_mount(Notes)
    assert first.mountpoint != second.mountpoint
    assert not os.path.exists(first.mountpoint)
    assert directfuse.listdir(first.mountpoint) == ["x"]
    assert directfuse_mount("memfs /pytest-named").mountpoint == "/pytest-named"
    assert directfuse_mount(Notes(), "/pytest-at").mountpoint == "/pytest-at"
    first.unmount()  # a test may do so itself


def test_everything_is_unmounted_afterwards():
    import directfuse

    assert not directfuse.mounts()


@pytest.fixture
def leaving(directfuse_mount):
    import directfuse

    mount = directfuse_mount(Notes())
    return directfuse.open(f"{mount.mountpoint}/a")


def test_a_file_left_open_does_not_fail_the_test(leaving):
    assert leaving.read() == "content of a"


def test_the_example_passes(tmp_path):
    project = shutil.copytree(os.path.join(ROOT, "examples/notes"), tmp_path / "notes")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", project],
        capture_output=True,
        text=True,
        timeout=50,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "6 passed" in done.stdout
