"""A FUSE server that speaks the protocol by hand (linux/fuse.h), so that it can get it wrong.

    fuse_server.py MODE MOUNTPOINT

The file system: a root directory with one file, "file", that reads as CONTENT. MODE says how the
server misbehaves when that file is read, or when it starts; or "record": it speaks 7.45, and "file"
reads as what it was sent, in JSON; or "plain": the same without STATX and TMPFILE; or "rust": the
same in 7.8, as that language's libraries. A request that
is interrupted is noted in the file that FUSE_SERVER_NOTE names. With FUSE_SERVER_DEVICE set the
kernel is on the other side.

In mode "ahead" the file is what the JSON in the file of FUSE_SERVER_NOTE says at that moment
(class Told), and each READ of it is added to that file's neighbour ".reads". In mode "late" a
RELEASE is answered when STATFS comes, and what comes before that and should not is noted: nothing
can be unlinked then. In mode "stay" it goes on when its channel has ended, and its process id is in
the file of FUSE_SERVER_NOTE. A look at "inval" ends belief in the name "file". In mode "poll" the
open file that was polled first, or second, is ready, and told of, from a look at "wake 0", or
"wake 1", on. In mode "probe" the channel is opened, closed and opened again; in mode "fork" all is
done by a child, whose parent ends at once. In mode "stray" a read of the file unmounts something
else first, in mode "unmount" what the server has mounted.
"""

import array
import contextlib
import ctypes
import fcntl
import json
import os
import signal
import socket
import struct
import sys
import time

LOOKUP, FORGET, GETATTR, SETATTR, OPEN, READ, STATFS, RELEASE = 1, 2, 3, 4, 14, 15, 17, 18
FLUSH, INIT, OPENDIR, RELEASEDIR, GETLK, INTERRUPT, DESTROY = 25, 26, 27, 29, 31, 36, 38
SYMLINK, MKNOD, MKDIR, UNLINK, WRITE, SETXATTR, CREATE = 6, 8, 9, 10, 16, 21, 35
POLL = 40
BATCH_FORGET, COPY_FILE_RANGE, TMPFILE, STATX, COPY_FILE_RANGE_64 = 42, 47, 51, 52, 53
NOTIFY_INVAL_INODE, NOTIFY_INVAL_ENTRY, NOTIFY_RESEND, NOTIFY_INC_EPOCH = 2, 3, 7, 8
NOTIFY_POLL, NOTIFY_PRUNE = 1, 9
ENOENT, EINTR, EAGAIN, EBUSY, ENOSYS = 2, 4, 11, 16, 38
ASYNC_READ, POSIX_LOCKS, AUTO_INVAL_DATA = 1 << 0, 1 << 1, 1 << 12
BIG_WRITES, MAX_PAGES, SETXATTR_EXT, INIT_EXT = 1 << 5, 1 << 22, 1 << 29, 1 << 30
SECURITY_CTX, CREATE_SUPP_GROUP, HAS_RESEND = 1 << 0, 1 << 2, 1 << 7  # of flags2
EXPIRE_ONLY = 1
RESENT = 1 << 63
SPLICE = 275  # splice(2) of x86-64
GROUP = 4242  # of the root directory

IN_HEADER = struct.Struct("<IIQQIIIHH")
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
    kind, size = {1: (0o040775, 0), 3: (0o040755, 0), 4: (0o120777, 6)}.get(
        node, (0o100644, 1 << 16)
    )
    packed = ATTR.pack(node, size, 0, 0, 0, 0, 0, 0, 0, kind, 1, 0, GROUP, 0, 4096, 0)
    return packed[:80] if sys.argv[1] == "rust" else packed  # blksize came with 7.9


class Told:
    """The file of mode "ahead", all bytes of which are `letter`."""

    def __init__(self):
        with open(os.environ["FUSE_SERVER_NOTE"]) as file:
            told = json.load(file)
        self.letter, self.size, self.mtime = told["letter"], told["size"], told["mtime"]
        self.valid, self.flags = told["valid"], told["flags"]  # attributes', in s; FOPEN_*

    def attributes(self):
        return ATTR.pack(
            2, self.size, 0, 0, self.mtime, 0, 0, 0, 0, 0o100644, 1, 0, GROUP, 0, 4096, 0
        )

    def read(self, offset, size):
        with open(os.environ["FUSE_SERVER_NOTE"] + ".reads", "a") as file:
            file.write(f"{offset} {size}\n")
        return self.letter.encode() * max(0, min(size, self.size - offset))


class Device:
    """The kernel's end of a real mount, as a socket would be."""

    def __init__(self, mountpoint):
        self.fd = os.open("/dev/fuse", os.O_RDWR)
        options = f"fd={self.fd},rootmode=40000,user_id=0,group_id=0,allow_other"
        libc = ctypes.CDLL(None, use_errno=True)
        words = [b"by-hand", os.fsencode(mountpoint), b"fuse.by-hand"]
        if libc.mount(*words, 6, options.encode()) < 0:  # MS_NOSUID | MS_NODEV
            raise OSError(ctypes.get_errno(), "mount")

    def fileno(self):
        return self.fd

    def recv(self, size):
        while True:
            try:
                return os.read(self.fd, size)
            except FileNotFoundError:  # interrupted before it was read
                pass
            except OSError:  # unmounted
                return b""

    def send(self, data):
        os.write(self.fd, data)


STATX_BASIC_STATS, STATX_BTIME = 0x7FF, 0x800
BIRTH = 1_234_567_890, 123_456_789  # of every node


def statx_out(node):
    """struct fuse_statx_out, valid for an hour; in mode "birth" of nothing but that."""
    known = bytes(88) if sys.argv[1] == "birth" else attributes(node)
    mask = STATX_BTIME if sys.argv[1] == "birth" else STATX_BASIC_STATS | STATX_BTIME
    _, size, _, *_, mode, nlink, _, gid, _, blksize, _ = ATTR.unpack(known)
    times = struct.pack("<16xqI20x16x", *BIRTH)  # of access, birth, change, modification
    return (
        struct.pack("<QII16x", 3600, 0, 0)
        + struct.pack("<IIQII", mask, blksize, 0, nlink, 0)
        + struct.pack("<IHxx", gid, mode)
        + struct.pack("<QQQQ", node, size, 0, 0) + times + bytes(128)
    )  # fmt: skip


def entry(node):
    return struct.pack("<QQQQII", node, 0, 3600, 3600, 0, 0) + attributes(node)


#: Modes that speak 7.45.
NEW = ("record", "birth", "lose", "epoch", "expire", "block", "block2", "prune")
RECORDS = ("record", "plain", "prune", "poll", "rust")  # "file" reads as what the server was sent
LOCKS = {"odd_lock": (0, 3, 1 << 16), "long_lock": (0, 1 << 63, 1)}  # first, last byte, type
LATE = ("notify", "epoch", "expire")
SIZES = {"short": 5, "long": 136}  # bytes that a LOOKUP is answered with: it should be 128
ERRORS = {"positive": 5, "least": -(1 << 31), "restarts": -512}  # that are none
TOO_MUCH = {"huge": 100_000, "larger": 3 << 19, "largest": 3 << 20}  # bytes that a READ is answered


class Server:
    def __init__(self, mode, channel):
        self.mode = mode
        self.channel = channel
        self.to_block = {"block": 1, "block2": 2}.get(mode, 0)
        self.blocked = set()
        self.seen = {}
        self.ahead = mode == "ahead"
        self.held = []  # RELEASEs
        self.early = False  # a FORGET came before one was answered
        self.polled = []  # numbers of open files, as POLL has them
        self.ready = set()  # of these

    def say(self, unique, body=b"", error=0, length=None):
        size = OUT_HEADER.size + len(body) if length is None else length
        self.channel.send(OUT_HEADER.pack(size, error, unique) + body)

    def say_too_much(self, unique, body):
        """As libfuse does, which goes on when it may not."""
        header = OUT_HEADER.pack(OUT_HEADER.size + len(body), 0, unique)
        with contextlib.suppress(OSError):
            os.writev(self.channel.fileno(), [header, body])

    def say_by_splice(self, unique, body):
        """As go-fuse does, which is static: past the C library."""
        reply = OUT_HEADER.pack(OUT_HEADER.size + len(body), 0, unique) + body
        from_pipe, to_pipe = os.pipe()
        fcntl.fcntl(to_pipe, fcntl.F_SETPIPE_SZ, 1 << 20)
        os.write(to_pipe, reply)
        channel = self.channel.fileno()
        sent = ctypes.CDLL(None).syscall(SPLICE, from_pipe, None, channel, None, len(reply), 0)
        os.close(from_pipe)
        os.close(to_pipe)
        if sent < 0:
            self.channel.send(reply)

    def run(self):
        while message := self.channel.recv(1 << 21):
            _, opcode, unique, node, _, _, _, extension, _ = IN_HEADER.unpack_from(message)
            body = message[IN_HEADER.size :]
            if opcode == DESTROY:
                return
            self.seen.setdefault(opcode, []).append([extension, body.hex()])
            if opcode in (FORGET, BATCH_FORGET):
                self.early |= bool(self.held)
            else:
                self.answer(opcode, unique, node, body)

    def answer(self, opcode, unique, node, body):
        if self.ahead and self.answer_ahead(opcode, unique, node, body):
            return
        if opcode == INIT:
            self.greet(unique)
        elif opcode == LOOKUP:
            self.look_up(unique, body.rstrip(b"\0"))
        elif opcode == GETATTR:
            self.say(unique, struct.pack("<QII", 0, 0, 0) + attributes(node))
        elif opcode == STATX and self.mode in ("record", "birth"):
            self.say(unique, statx_out(node))
        elif opcode in (OPEN, OPENDIR):
            self.say(unique, struct.pack("<QII", 7, self.mode in RECORDS, 0))  # FOPEN_DIRECT_IO
        elif opcode == READ:
            self.read(unique)
        elif opcode == WRITE:
            self.say(unique, struct.pack("<II", struct.unpack_from("<QQI", body)[2], 0))
        elif opcode in (MKDIR, SYMLINK, MKNOD):
            self.say(unique, entry({MKDIR: 3, SYMLINK: 4, MKNOD: 5}[opcode]))
        elif opcode == CREATE or (opcode == TMPFILE and self.mode == "record"):
            self.say(unique, entry(6 + (opcode == TMPFILE)) + struct.pack("<QII", 8, 0, 0))
        elif opcode == COPY_FILE_RANGE_64 and self.mode == "record":
            self.say(unique, body[40:48])  # all of it
        elif opcode == COPY_FILE_RANGE:
            self.say(unique, struct.pack("<II", struct.unpack_from("<Q", body, 40)[0], 0))
        elif opcode == POLL and self.mode == "poll":
            (number,) = struct.unpack_from("<Q", body, 8)
            if number and number not in self.polled:
                self.polled.append(number)
            self.say(unique, struct.pack("<II", number in self.ready, 0))
        elif opcode == GETLK and self.mode in LOCKS:
            self.say(unique, struct.pack("<QQII", *LOCKS[self.mode], 1))
        elif opcode == INTERRUPT:
            self.interrupt(unique, *struct.unpack("<Q", body))
        elif opcode == RELEASE and self.mode == "late":
            self.held.append(unique)
        elif opcode == STATFS and self.mode == "late":
            while self.held:
                self.say(self.held.pop())
            self.say(unique, bytes(80))
        elif opcode == UNLINK:
            self.say(unique, error=-EBUSY if self.held or self.early else 0)
        elif opcode in (RELEASE, RELEASEDIR, FLUSH, SETXATTR):
            self.say(unique)
        else:
            self.say(unique, error=-ENOSYS)

    def greet(self, unique):
        minor, flags, flags2 = {"old": 7, "rust": 8}.get(self.mode, 31), BIG_WRITES, 0
        if self.mode in NEW:
            minor, flags = 45, BIG_WRITES | INIT_EXT | MAX_PAGES | SETXATTR_EXT
            flags2 = SECURITY_CTX | CREATE_SUPP_GROUP | HAS_RESEND
        readahead = 1 << 17 if self.ahead else 0
        if self.ahead:
            flags |= ASYNC_READ | AUTO_INVAL_DATA
        if self.mode in LOCKS:
            flags |= POSIX_LOCKS
        sizes = struct.pack("<HHIIHHI28x", 0, 0, 65536, 1, 256, 0, flags2)
        if self.mode == "garbage":
            self.channel.send(b"")
            self.channel.send(b"?")
            self.say(0, b"nothing that is known", error=99)
            self.say(unique + 2, struct.pack("<II", 7, 1))
        self.say(unique, struct.pack("<IIII", 7, minor, readahead, flags) + sizes)

    def answer_ahead(self, opcode, unique, node, body):
        """False: as in the other modes."""
        told = Told()
        if opcode == LOOKUP and body == b"inval\0":
            self.say(0, struct.pack("<Qqq", 2, 0, 0), error=NOTIFY_INVAL_INODE)
            return False
        if opcode == LOOKUP and body == b"file\0":
            self.say(unique, struct.pack("<QQQQII", 2, 0, 0, told.valid, 0, 0) + told.attributes())
        elif opcode in (GETATTR, SETATTR) and node == 2:
            self.say(unique, struct.pack("<QII", told.valid, 0, 0) + told.attributes())
        elif opcode == OPEN:
            self.say(unique, struct.pack("<QII", 7, told.flags, 0))
        elif opcode == READ:
            self.say(unique, told.read(*struct.unpack_from("<QI", body, 8)))
        else:
            return False
        return True

    def look_up(self, unique, name):
        if self.mode == "late" and name == b"inval":
            self.say(0, struct.pack("<QII", 1, 4, 0) + b"file\0", error=NOTIFY_INVAL_ENTRY)
        if self.mode == "prune" and name.startswith(b"prune"):
            which = (3, 4, 5) if name == b"prune what was made" else (99, 1, 2)
            ids = struct.pack("<IIQ3Q", 3, 0, 0, *which)
            self.say(0, ids[:-4], error=NOTIFY_PRUNE)  # too short: says nothing
            self.say(0, ids, error=NOTIFY_PRUNE)
        if self.mode == "poll" and name.startswith(b"wake"):
            number = self.polled[int(name.split()[1])]
            self.ready.add(number)
            self.say(0, struct.pack("<Q", number), error=NOTIFY_POLL)
        if self.mode in SIZES and name == b"file":
            self.say(unique, (entry(2) + bytes(8))[: SIZES[self.mode]])
        elif name == b"file" or (self.mode in LATE and name == b"late" and self.late()):
            self.say(unique, entry(2))
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
            if "FUSE_SERVER_NOTE" in os.environ:
                with open(os.environ["FUSE_SERVER_NOTE"], "w") as note:
                    note.write("interrupted")
            self.say(which, error=-EINTR)

    def read(self, unique):
        if self.to_block > 0:
            self.to_block -= 1
            self.blocked.add(unique)  # until it is interrupted
            return
        if self.mode in ("stray", "unmount"):
            ask("u", target="/" if self.mode == "stray" else sys.argv[2])
        if self.mode == "lose" and not unique & RESENT:
            self.say(0, error=NOTIFY_RESEND)
        elif self.mode in RECORDS:
            self.say(unique, json.dumps(self.seen).encode())
        elif self.mode == "splice":
            self.say_by_splice(unique, CONTENT * 8192)
        elif self.mode in TOO_MUCH:
            self.say_too_much(unique, b"x" * TOO_MUCH[self.mode])
        elif self.mode == "garbage":
            self.channel.send(b"?")
            self.channel.send(b"")
            self.say(unique, CONTENT, length=3)
            self.say(unique + 2, CONTENT)
            self.say(1 << 60, CONTENT)
            self.say(unique, CONTENT)
            self.say(unique, b"a second time")
        elif self.mode in ERRORS:
            self.say(unique, error=ERRORS[self.mode])
        elif self.mode == "notify":
            self.say(0, struct.pack("<QII", 1, 4, 0) + b"late\0", error=NOTIFY_INVAL_ENTRY)
            self.say(unique, CONTENT)
        elif self.mode == "expire":
            body = struct.pack("<QII", 1, 4, EXPIRE_ONLY) + b"late\0"
            self.say(0, body, error=NOTIFY_INVAL_ENTRY)
            self.say(unique, CONTENT)
        elif self.mode == "epoch":
            self.say(0, error=NOTIFY_INC_EPOCH)
            self.say(unique, CONTENT)
        elif self.mode == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        else:
            self.say(unique, CONTENT)


def end_the_parent():
    """Goes on in a child, when the parent has ended."""
    parent = os.getpid()
    if os.fork():
        sys.exit(0)
    while os.getppid() == parent:
        time.sleep(0.01)


def main(mode, mountpoint, source=None):
    if mode == "refuse":
        print("the remote host does not answer")
        sys.exit(3)
    if "FUSE_SERVER_DEVICE" in os.environ:
        Server(mode, Device(mountpoint)).run()
        return
    if mode == "fork":
        end_the_parent()
    if source:
        open(os.path.join(source, "kept"), "w").close()
    if mode == "probe":
        os.close(ask("o"))
    channel = socket.socket(fileno=ask("o"))
    ask("m", target=mountpoint, source="by-hand", type="fuse.by-hand", options="rw")
    if mode == "leave":
        sys.exit(4)
    if mode == "stay":
        with open(os.environ["FUSE_SERVER_NOTE"], "w") as note:
            note.write(str(os.getpid()))
    Server(mode, channel).run()
    if mode == "tidy":
        ask("u", target=mountpoint)
    if mode == "stay":
        signal.pause()


main(*sys.argv[1:])
