"""Unix sockets by their names. The arguments: what of them, and a directory on disk."""

import ctypes
import os
import socket
import sys

libc = ctypes.CDLL(None, use_errno=True)


def make(kind=socket.SOCK_STREAM, path=None):
    made = socket.socket(socket.AF_UNIX, kind)
    if path:
        made.bind(path)
    return made


def names(_):
    """Who has connected; and a name as long as it can be."""
    server, client = make(path="server"), make(path="client")
    server.listen()
    client.connect("server")
    connection, name = server.accept()
    print(name, connection.getsockname(), connection.getpeername())
    client = make()
    client.connect("server")
    before = len(os.listdir("/proc/self/fd"))
    print(libc.accept(server.fileno(), 8, ctypes.byref(ctypes.c_int(9))), ctypes.get_errno())
    print(client.recv(9), len(os.listdir("/proc/self/fd")) - before)
    for size in 107, 108:
        longest = make()
        libc.bind(longest.fileno(), b"\1\0" + b"n" * size, size + 2)
        for room in 20, 110, 111, 128:
            length = ctypes.c_int(room)
            to = ctypes.create_string_buffer(b"\xaa" * 256, 256)
            libc.getsockname(longest.fileno(), to, ctypes.byref(length))
            print(size, room, length.value, to.raw[:130])


{"names": names}[sys.argv[1]](sys.argv[2])
