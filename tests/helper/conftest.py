"""FUSE servers in a process of their own: real ones, and one that says what a test wants."""

import contextlib
import os
import re
import subprocess
import sys
import time

import pytest

import directfuse

SERVER = os.path.join(os.path.dirname(__file__), "fuse_server.py")


@contextlib.contextmanager
def kernel_mount(point, mode):
    """fuse_server.py on the kernel's FUSE, which must speak 7.45."""
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("/dev/fuse cannot be opened")
    if tuple(map(int, re.findall(r"\d+", os.uname().release)[:2])) < (6, 18):
        pytest.skip("FUSE 7.45 came with Linux 6.18")
    point.mkdir()
    environment = os.environ | {"FUSE_SERVER_DEVICE": "1"}
    server = subprocess.Popen([sys.executable, SERVER, mode, str(point)], env=environment)
    try:
        for _ in range(200):
            if os.path.ismount(point):
                break
            time.sleep(0.05)
        yield
    finally:
        subprocess.run(["umount", str(point)], check=False)
        server.kill()
        server.wait()


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
