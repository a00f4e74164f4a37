"""Fixtures for libraries that read data: the roots they read from, and scripts of their own."""

import functools
import http.server
import os
import shutil
import subprocess
import sys
import textwrap
import threading

import pytest

directfuse = pytest.importorskip("directfuse", reason="the package is not built")


@pytest.fixture
def memory(tmp_path):
    """The root of a fresh memfs."""
    with directfuse.mount(["memfs", tmp_path / "memory"]) as mounted:
        yield mounted.mountpoint


@pytest.fixture
def image_of(tmp_path):
    """image_of(directory): a squashfs image of it, the path of the file."""
    tool = shutil.which("mksquashfs")
    if tool is None:
        pytest.skip("mksquashfs is missing (Debian: apt install squashfs-tools)")
    if shutil.which("squashfuse") is None:
        pytest.skip("squashfuse is missing (Debian: apt install squashfuse)")

    def make(directory):
        image = tmp_path / "data.sqfs"
        words = [tool, directory, image, "-noappend", "-no-progress", "-quiet", "-processors", "1"]
        subprocess.run(words, check=True, timeout=30, stdout=subprocess.DEVNULL)
        return image

    return make


@pytest.fixture(params=["memfs", "squashfuse"])
def published(request, tmp_path, image_of):
    """published(directory): the root of a mount that holds what the directory does."""
    made = []

    def make(directory):
        point = tmp_path / "published"
        if request.param == "memfs":
            mounted = directfuse.mount(["memfs", point])
            copy_tree(directory, mounted.mountpoint)
        else:
            mounted = directfuse.mount(["squashfuse", image_of(directory), point])
        made.append(mounted)
        return mounted.mountpoint

    yield make
    for mounted in made:
        assert {"read", "read_batch", "borrow"} & set(mounted.stats().ops)
        mounted.unmount(lazy=True)  # pyarrow's threads let go of files when they like


def copy_tree(source, target):
    """A plain directory into a mount."""
    for directory, below, files in os.walk(source):
        there = os.path.normpath(os.path.join(target, os.path.relpath(directory, source)))
        for name in below:
            directfuse.mkdir(os.path.join(there, name))
        for name in files:
            with open(os.path.join(directory, name), "rb") as file:
                data = file.read()
            with directfuse.open(os.path.join(there, name), "wb") as file:
                file.write(data)


@pytest.fixture
def script(tmp_path):
    """script(text, *arguments): runs Python code in a process of its own; its standard output."""

    def run(text, *arguments, environment=None):
        path = tmp_path / "script.py"
        path.write_text(textwrap.dedent(text))
        done = subprocess.run(
            [sys.executable, path, *arguments],
            capture_output=True,
            text=True,
            timeout=50,
            cwd=tmp_path,
            env={**os.environ, **(environment or {})},
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return run


@pytest.fixture
def server(tmp_path):
    """An HTTP server of a directory; its URL."""
    (tmp_path / "site" / "d").mkdir(parents=True)
    (tmp_path / "site" / "d" / "x").write_bytes(b"over http")

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    handler = functools.partial(Quiet, directory=tmp_path / "site")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()
        thread.join()


@pytest.fixture
def s3():
    """An S3 server in this process with an empty bucket "bucket"; its URL."""
    moto = pytest.importorskip(
        "moto.server", reason="moto is not installed (pip install moto[server])"
    )
    s3fs = pytest.importorskip("s3fs", reason="s3fs is not installed (pip install s3fs)")
    running = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    url = f"http://{host}:{port}"
    fs = s3fs.S3FileSystem(endpoint_url=url, key="key", secret="secret", skip_instance_cache=True)
    fs.mkdir("bucket")
    yield url
    running.stop()
