"""Pools of workers of every start method read a squashfs image that each attaches for itself."""

import os
import subprocess
import sys
import time

import pytest

import directfuse

EXAMPLE = os.path.join(os.path.dirname(__file__), "..", "..", "examples", "workers.py")


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_the_example(image_of, method):
    done = subprocess.run(
        [sys.executable, EXAMPLE, "--samples", "200", "--method", method],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("200 samples, the same sum: True\n")


POOL = """
import multiprocessing, subprocess, sys
import directfuse

def read(name):
    return sum(map(len, directfuse.read_many([f"/data/{name}"])))

if __name__ == "__main__":
    for method in ("fork", "spawn", "forkserver"):
        context = multiprocessing.get_context(method)
        with context.Pool(2, directfuse.attach, ("@" + sys.argv[1],)) as pool:
            print(method, sum(pool.map(read, ["a", "b"])))
"""


def is_served(name):
    try:
        with directfuse.mount(f"@{name}"):
            return True
    except directfuse.MountError:
        return False


def test_workers_that_join_a_server(tmp_path, image_of, script):
    source = tmp_path / "source"
    source.mkdir()
    (source / "a").write_bytes(bytes(1000))
    (source / "b").write_bytes(bytes(234))
    name = f"workers-{os.getpid()}"
    words = [sys.executable, "-m", "directfuse", "serve", "--name", name]
    server = subprocess.Popen([*words, f"squashfuse {image_of(source)} /data"])
    try:
        while not is_served(name):
            assert server.poll() is None
            time.sleep(0.01)
        assert script(POOL, name).split("\n") == ["fork 1234", "spawn 1234", "forkserver 1234"]
    finally:
        server.terminate()
        server.wait(50)
