"""A FUSE server that speaks the protocol by hand (linux/fuse.h), so that it can get it wrong.

    fuse_server.py MODE MOUNTPOINT

The file system: a root directory with one file, "file", that reads as CONTENT. MODE says how the
server misbehaves when that file is read, or when it starts.
"""

import array
import ctypes
import os
import signal
import socket
import struct
import sys

LOOKUP, FORGET, GETATTR, OPEN, READ, STATFS, RELEASE = 1, 2, 3, 14, 15, 17, 18
FLUSH, INIT, OPENDIR, RELEASEDIR, INTERRUPT, DESTROY = 25, 26, 27, 29, 36, 38
NOTIFY_INVAL_ENTRY = 3
ENOENT, EINTR, EAGAIN, ENOSYS = 2, 4, 11, 38

IN_HEADER = struct.Struct("<IIQQIIII")
OUT_HEADER = struct.Struct("<IiQ")
ATTR = struct.Struct("<QQQQQQIIIIIIIIII")

CONTENT = b"content\n"


class Control(ctypes.Structure):  # struct control_message of backends/helper/control.h
    _fields_ = [
        ("kind", ctypes.c_uint8),
        ("way", ctypes.c_uint8),
        ("target", ctypes.c_char * 4096),
        ("source", ctypes.c_char * 4096),
        ("type", ctypes.c_char * 64),
        ("options", ctypes.c_char * 4096),
    ]


def ask(kind, **texts):
    """The descriptor that the helper answers with, or None."""
    message = Control(kind=ord(kind), way=ord("p"))
    for name, text in texts.items():
        setattr(message, name, os.fsencode(text))
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        connection.connect(os.environ["DIRECTFUSE_HELPER"])
        connection.send(bytes(message))
        rights = array.array("i")
        _, ancillary, _, _ = connection.recvmsg(4, socket.CMSG_SPACE(4))
        for _, _, data in ancillary:
            rights.frombytes(data)
    return rights[0] if rights else None


def attributes(node):
    kind, size = (0o040755, 0) if node == 1 else (0o100644, len(CONTENT))
    return ATTR.pack(node, size, 0, 0, 0, 0, 0, 0, 0, kind, 1, 0, 0, 0, 4096, 0)


class Server:
    def __init__(self, mode, channel):
        self.mode = mode
        self.channel = channel
        self.to_block = {"block": 1, "block2": 2}.get(mode, 0)
        self.blocked = set()

    def say(self, unique, body=b"", error=0, length=None):
        size = OUT_HEADER.size + len(body) if length is None else length
        self.channel.send(OUT_HEADER.pack(size, error, unique) + body)

    def run(self):
        while message := self.channel.recv(1 << 21):
            _, opcode, unique, node, *_ = IN_HEADER.unpack_from(message)
            body = message[IN_HEADER.size :]
            if opcode == DESTROY:
                return
            if opcode != FORGET:
                self.answer(opcode, unique, node, body)

    def answer(self, opcode, unique, node, body):
        if opcode == INIT:
            minor = 8 if self.mode == "old" else 31
            self.say(
                unique, struct.pack("<IIIIHHIIHHI28x", 7, minor, 0, 1 << 5, 0, 0, 65536, 1, 0, 0, 0)
            )
        elif opcode == LOOKUP:
            self.look_up(unique, body.rstrip(b"\0"))
        elif opcode == GETATTR:
            self.say(unique, struct.pack("<QII", 0, 0, 0) + attributes(node))
        elif opcode in (OPEN, OPENDIR):
            self.say(unique, struct.pack("<QII", 7, 0, 0))
        elif opcode == READ:
            self.read(unique)
        elif opcode == INTERRUPT:
            self.interrupt(unique, *struct.unpack("<Q", body))
        elif opcode in (RELEASE, RELEASEDIR, FLUSH):
            self.say(unique)
        else:
            self.say(unique, error=-ENOSYS)

    def look_up(self, unique, name):
        if self.mode == "short" and name == b"file":
            self.say(unique, b"short")
        elif name == b"file" or (self.mode == "notify" and name == b"late" and self.late()):
            self.say(unique, struct.pack("<QQQQII", 2, 0, 3600, 3600, 0, 0) + attributes(2))
        else:
            self.say(unique, struct.pack("<QQQQII", 0, 0, 3600, 0, 0, 0) + attributes(0))

    def late(self):
        """ "late" is absent when it is first asked for."""
        self.asked = getattr(self, "asked", 0) + 1
        return self.asked > 1

    def interrupt(self, unique, which):
        """The first is answered as by a server that has not seen the request yet, the second ends
        the request with EINTR."""
        assert unique == which | 1
        self.interrupts = getattr(self, "interrupts", 0) + 1
        if self.interrupts == 1:
            self.say(unique, error=-EAGAIN)
        elif which in self.blocked:
            self.blocked.remove(which)
            self.say(which, error=-EINTR)

    def read(self, unique):
        if self.to_block > 0:
            self.to_block -= 1
            self.blocked.add(unique)  # until it is interrupted
            return
        if self.mode == "huge":
            self.say(unique, b"x" * 100_000)
        elif self.mode == "garbage":
            self.channel.send(b"?")
            self.say(unique, CONTENT, length=3)
            self.say(unique + 2, CONTENT)
            self.say(1 << 60, CONTENT)
            self.say(unique, CONTENT)
            self.say(unique, b"a second time")
        elif self.mode == "positive":
            self.say(unique, error=5)
        elif self.mode == "notify":
            self.say(0, struct.pack("<QII", 1, 4, 0) + b"late\0", error=NOTIFY_INVAL_ENTRY)
            self.say(unique, CONTENT)
        elif self.mode == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        else:
            self.say(unique, CONTENT)


def main(mode, mountpoint):
    if mode == "refuse":
        print("the remote host does not answer")
        sys.exit(3)
    channel = socket.socket(fileno=ask("o"))
    ask("m", target=mountpoint, source="by-hand", type="fuse.by-hand", options="rw")
    if mode == "leave":
        sys.exit(4)
    Server(mode, channel).run()


main(*sys.argv[1:])
