"""FUSE servers in a process of their own: real ones, and one that says what a test wants."""

import os
import sys

import pytest

import directfuse

SERVER = os.path.join(os.path.dirname(__file__), "fuse_server.py")


@pytest.fixture
def serve(tmp_path):
    """Mounts fuse_server.py in one of its modes; unmounts at the end."""
    mounts = []

    def start(mode):
        command = [sys.executable, SERVER, mode, os.fspath(tmp_path / "nowhere")]
        mounts.append(directfuse.mount(command, placement="helper"))
        return mounts[-1]

    yield start
    for mount in mounts:
        if mount.mounted:
            mount.unmount()
