"""Servers of our own on loopback, for programs that need one: each a context manager."""

import collections
import contextlib
import getpass
import importlib.util
import os
import shutil
import socket
import subprocess
import sys
import threading
import urllib.request

from .backends import Unavailable
from .child import die_with_parent


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def _read_on(stream):
    """What a server says of each request must not fill the pipe, where it would wait for a
    reader."""
    threading.Thread(target=collections.deque, args=(stream, 0), daemon=True).start()


@contextlib.contextmanager
def sshd(directory):
    """An SSH server with keys of its own in `directory`; yields the words with which sshfs reaches
    it: options, and "user@host:"."""
    for program in ("sshd", "ssh-keygen"):
        if shutil.which(program) is None:
            raise Unavailable(f"{program} is not installed (apt-get install openssh-server)")
    for name in ("host", "user"):
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", directory / name]
        subprocess.run(command, check=True)
    port = free_port()
    (directory / "config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {directory}/host\n"
        f"AuthorizedKeysFile {directory}/user.pub\nPidFile none\nStrictModes no\nUsePAM no\n"
        "Subsystem sftp internal-sftp\n"
    )
    if os.geteuid() == 0:
        os.makedirs("/run/sshd", mode=0o755, exist_ok=True)  # where sshd locks itself in
    command = [shutil.which("sshd"), "-D", "-e", "-f", directory / "config"]
    server = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=die_with_parent,
    )
    try:
        if not any("listening" in line for line in server.stderr):
            raise Unavailable("sshd does not start here")
        _read_on(server.stderr)
        options = ["-p", str(port), "-o", f"IdentityFile={directory}/user"]
        options += ["-o", "StrictHostKeyChecking=no", "-o", f"UserKnownHostsFile={directory}/known"]
        yield [*options, "-F", "none"], f"{getpass.getuser()}@127.0.0.1:"
    finally:
        server.kill()
        server.wait()


@contextlib.contextmanager
def s3(directory):
    """An S3 server (moto); yields the words with which s3fs reaches it, and a function that makes a
    bucket of a name, with objects: (key, content, headers)."""
    if importlib.util.find_spec("moto") is None:
        raise Unavailable("moto is not installed (pip install 'moto[server]')")
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    server = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=die_with_parent,
    )
    keys = directory / "keys"
    keys.write_text("test:test")
    keys.chmod(0o600)
    try:
        if not any("Running on" in line for line in server.stderr):
            raise Unavailable("moto's server does not start here")
        _read_on(server.stderr)

        def put(path, content=None, headers=None):
            request = urllib.request.Request(
                f"{url}/{path}", data=content, headers=headers or {}, method="PUT"
            )
            urllib.request.urlopen(request, timeout=30).close()

        def make_bucket(name, objects=()):
            put(name)
            for key, content, headers in objects:
                put(f"{name}/{key}", content, headers)

        yield ["-o", f"url={url},use_path_request_style,passwd_file={keys},sigv2"], make_bucket
    finally:
        server.kill()
        server.wait()
