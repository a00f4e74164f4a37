"""A server and a client of two builds do not share memory: each names itself, and both are told."""

import array
import errno
import os
import socket
import threading

import pytest

import directfuse
from directfuse import _native, _served

from .named import served

MAGIC = _served.READY.unpack_from(_served.ready_message(0, ""))[0]
HELLO, WELCOME = 0, 2
OTHER = b"0.0.9-0123456789abcdef"


@pytest.fixture
def runtime(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    path = tmp_path / "directfuse"
    path.mkdir(mode=0o700)
    return path


def packed(kind, error=0, build=OTHER):
    return _served.READY.pack(MAGIC, kind, 0, error, 0, build)


def pair():
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def test_a_server_refuses_another_build_and_says_which_it_is(runtime, tmp_path):
    ours, theirs = pair()
    with served(f"memfs {tmp_path}/mnt", "it"), ours, theirs:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as entry:
            entry.connect(os.fspath(runtime / "it.socket"))
            given = array.array("i", [theirs.fileno()])
            rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, given)
            entry.sendmsg([packed(HELLO)], [rights])
            theirs.close()
            said, memory, *_ = ours.recvmsg(_served.READY.size, socket.CMSG_SPACE(4))
            _, kind, _, error, _, build = _served.READY.unpack(said)
            assert (kind, error) == (WELCOME, -errno.EPROTO) and not memory
            assert build.rstrip(b"\0") == _native.build()
        with directfuse.mount("@it"):  # which goes on with its own
            assert directfuse.listdir(f"{tmp_path}/mnt") == []


class Older(threading.Thread):
    """A server of another build, for one client."""

    def __init__(self, path, answer):
        super().__init__()
        self._answer = answer
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._listener.bind(os.fspath(path))
        self._listener.listen()
        self.heard = b""
        self.start()

    def run(self):
        with self._listener, self._listener.accept()[0] as connection:
            self.heard, ancillary, *_ = connection.recvmsg(4096, socket.CMSG_SPACE(4))
            [(_, _, data)] = ancillary
            with socket.socket(fileno=array.array("i", data)[0]) as client:
                client.send(self._answer)


@pytest.mark.parametrize("error", [-errno.EPROTO, 0])
def test_a_client_says_what_both_are(runtime, error):
    """Also where the server would have let it in."""
    server = Older(runtime / "old.socket", packed(WELCOME, error))
    with pytest.raises(directfuse.MountError) as caught:
        directfuse.mount("@old")
    server.join(20)
    assert _served.READY.unpack(server.heard)[-1].rstrip(b"\0") == _native.build()
    assert caught.value.errno == errno.EPROTO
    words = caught.value.strerror
    assert OTHER.decode() in words and _native.build().decode() in words
    assert f"process {os.getpid()}" in words and "end it and start it" in words
