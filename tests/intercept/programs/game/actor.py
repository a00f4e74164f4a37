"""An actor of a game: a process that makes the calls it is told, and tells what they answer.

Its descriptors and mappings are kept in slots. What a file system is free to choose is not told.
"""

import array
import os
import resource
import socket
import stat
import struct
from contextlib import suppress

from calls import AT_CWD, PAGE, Room, call, digest, failed, text

CLOSED = 9999  #: a descriptor that nobody has


class Actor:
    def __init__(self, root, slots):
        self.root, self.slots, self.maps = root, slots, {}
        self.room = Room()
        self.pipe = os.pipe2(os.O_NONBLOCK)

    def path(self, path):
        return path.replace("ROOT", self.root).encode()

    def fd(self, slot):
        """The descriptor in a slot; negative: as it is."""
        return slot if slot < 0 else self.slots.get(slot, CLOSED)

    def target(self, target):
        """Of a call by path or by descriptor."""
        return self.path(target) if isinstance(target, str) else self.fd(target)

    def keep(self, slot, fd):
        """Answers of calls that make descriptors: it takes the slot's place."""
        if failed(fd):
            return fd
        old = self.slots.get(slot)
        if old is not None and old != fd:
            os.close(old)
        self.slots[slot] = fd
        return "fd"

    def shown(self, result, size=None, at=None):
        if failed(result):
            return result
        return result, digest(self.room.get(result if size is None else size, at))

    # ---- descriptors

    def do_open(self, slot, dirfd, path, flags, mode):
        return self.keep(slot, call("openat", self.fd(dirfd), self.path(path), flags, mode))

    def do_openat2(self, slot, dirfd, path, flags, mode, resolve):
        how = struct.pack("QQQ", flags, mode, resolve)
        return self.keep(slot, call("openat2", self.fd(dirfd), self.path(path), how, len(how)))

    def do_again(self, slot, pid, fd, flags):
        """What another actor has open, by /proc."""
        return self.keep(slot, call("openat", AT_CWD, b"/proc/%d/fd/%d" % (pid, fd), flags, 0o600))

    def do_name(self, slot):
        name = os.readlink(f"/proc/self/fd/{self.fd(slot)}").replace(self.root, "ROOT")
        return name if name.startswith("ROOT") else "elsewhere"

    def do_fdinfo(self, slot):
        with open(f"/proc/self/fdinfo/{self.fd(slot)}") as file:
            lines = [line.split() for line in file]
        return [line for line in lines if line[0] in ("pos:", "flags:")]

    def do_close(self, slot):
        return call("close", self.slots.pop(slot, CLOSED))

    def do_close_range(self, slot, flags):
        result = call("close_range", self.fd(slot), self.fd(slot), flags)
        if result == 0 and not flags & 4:
            self.slots.pop(slot, None)
        return result

    def do_dup(self, to, slot, how, extra):
        fd = self.fd(slot)
        if how == "dup":
            return self.keep(to, call("dup", fd))
        if how == "fcntl":
            return self.keep(to, call("fcntl", fd, extra, 20))
        onto = self.slots.get(to, 90 + to)
        result = call(how, fd, onto, *([extra] if how == "dup3" else []))
        if failed(result):
            return result
        self.slots[to] = result
        return "fd"

    def do_lock(self, slot, command, kind, whence, start, length):
        at = self.room.put(struct.pack("hhqqi4x", kind, whence, start, length, 0))
        result = call("fcntl", self.fd(slot), command, at)
        if failed(result):
            return result
        *lock, pid = struct.unpack("hhqqi4x", self.room.get(32))
        return lock, pid > 0, pid == os.getpid()

    def do_lseek(self, slot, offset, whence):
        """The offset of a directory is opaque, that of a file is not."""
        mode = os.fstat(self.fd(slot)).st_mode
        return call("lseek", self.fd(slot), *((0, 0) if stat.S_ISDIR(mode) else (offset, whence)))

    def do_poll(self, slot, events):
        at = self.room.put(struct.pack("ihh", self.fd(slot), events, 0))
        return call("poll", at, 1, 0), struct.unpack("ihh", self.room.get(8))[2]

    # ---- bytes

    def do_read(self, slot, size, there, offset):
        at = self.room.buffer(size, there)
        self.room.fill()
        extra = [] if offset is None else [offset]
        result = call("read" if offset is None else "pread", self.fd(slot), at, size, *extra)
        return self.shown(result, at=at) if at > PAGE else result

    def do_write(self, slot, seed, size, there, offset):
        self.room.put(text(seed, self.room.SIZE))
        extra = [] if offset is None else [offset]
        at = self.room.buffer(size, there)
        return call("write" if offset is None else "pwrite", self.fd(slot), at, size, *extra)

    def do_readv(self, name, slot, sizes, there, offset, flags):
        self.room.fill()
        vector = self.room.vector(sizes, there)
        extra = {"readv": [], "preadv": [offset, 0], "preadv2": [offset, 0, flags]}[name]
        return self.shown(call(name, self.fd(slot), vector, len(sizes), *extra), self.room.SIZE)

    def do_writev(self, name, slot, seed, sizes, there, offset, flags):
        self.room.put(text(seed, self.room.SIZE))
        vector = self.room.vector(sizes, there)
        extra = {"writev": [], "pwritev": [offset, 0], "pwritev2": [offset, 0, flags]}[name]
        return call(name, self.fd(slot), vector, len(sizes), *extra)

    def offsets(self, *offsets):
        """Addresses of offsets in memory; 0: there is none."""
        start = self.room.put(struct.pack(f"{len(offsets)}q", *(at or 0 for at in offsets)))
        return [0 if at is None else start + 8 * number for number, at in enumerate(offsets)]

    def offsets_now(self, count):
        return struct.unpack(f"{count}q", self.room.get(8 * count))

    def do_copy(self, one, at, two, to, size, flags):
        ats = self.offsets(at, to)
        ends = self.fd(one), ats[0], self.fd(two), ats[1]
        return call("copy_file_range", *ends, size, flags), self.offsets_now(2)

    def overlapping(self, source, at, to, offset, size):
        """Whether both ranges lie in one file, and in each other.

        Linux passes pages by reference: splice(2) and sendfile(2), NOTES. Where they are written
        to while they are still the source, what comes out is not specified.
        """
        ends = (self.fd(source), at), (self.fd(to), offset)
        with suppress(OSError):  # the call tells it
            files = [os.fstat(fd) for fd, _ in ends]
            if os.path.samestat(*files) and stat.S_ISREG(files[0].st_mode):
                one, two = (os.lseek(fd, 0, 1) if at is None else at for fd, at in ends)
                return abs(one - two) < size
        return False

    def do_sendfile(self, one, two, at, size):
        if self.overlapping(two, at, one, None, size):
            return None
        where = self.offsets(at)[0]
        return call("sendfile", self.fd(one), self.fd(two), where, size), self.offsets_now(1)

    def do_splice(self, one, at, two, to, size):
        """Into the pipe, then out of it; what is left in it goes."""
        if self.overlapping(one, at, two, to, size):
            return None
        ats = self.offsets(at, to)
        first = call("splice", self.fd(one), ats[0], self.pipe[1], 0, size, 2)
        second = call("splice", self.pipe[0], 0, self.fd(two), ats[1], size, 2)
        answer = first, second, self.offsets_now(2)
        return answer, self.shown(call("read", self.pipe[0], self.room.start, 65536))

    # ---- mappings

    def do_mmap(self, slot, number, length, protection, flags, offset):
        """A private one is looked at once: what it shows later is not specified, mmap(2)."""
        self.do_munmap(number)
        at = call("mmap", 0, length, protection, flags, self.fd(slot), offset)
        if failed(at):
            return at
        self.maps[number] = [at, length]
        if flags & 3 != 2:
            return "mapped"
        shown = self.do_load(number, 0, min(length, 5000))
        self.do_munmap(number)
        return shown

    def do_munmap(self, number):
        return call("munmap", *self.maps.pop(number)) if number in self.maps else None

    def part(self, number, at, length):
        """Where it is, and as much as lies in the mapping: behind it is other memory of ours."""
        start, size = self.maps[number]
        return start + at, max(min(length, -(-size // PAGE) * PAGE - at), 0)

    def do_load(self, number, at, length):
        """Memory is looked at by write(2): what is not there is an error, not a signal."""
        if number not in self.maps:
            return None
        result = call("write", self.pipe[1], *self.part(number, at, length))
        return result, self.shown(call("read", self.pipe[0], self.room.start, 65536))

    def do_store(self, number, seed, at, length):
        if number not in self.maps:
            return None
        os.write(self.pipe[1], text(seed, length))
        result = call("read", self.pipe[0], *self.part(number, at, length))
        call("read", self.pipe[0], self.room.start, 65536)
        return result

    def do_on_map(self, name, number, at, length, argument):
        if number not in self.maps:
            return None
        return call(name, *self.part(number, at, length), argument)

    def do_mremap(self, number, length):
        if number not in self.maps:
            return None
        at = call("mremap", *self.maps[number], length, 1, 0)
        if failed(at):
            return at
        self.maps[number] = [at, length]
        return "moved"

    # ---- names

    def do_call(self, name, *args):
        """A call whose arguments are numbers, slots (in a tuple) and paths."""
        words = [
            self.fd(arg[0]) if isinstance(arg, tuple) else self.target(arg)
            if isinstance(arg, str) else arg
            for arg in args
        ]  # fmt: skip
        return call(name, *words)

    def do_stat(self, dirfd, path, flags):
        start = self.room.start
        result = call("newfstatat", self.fd(dirfd), self.path(path), start, flags)
        if failed(result):
            return result
        _, _, links, mode, user, group, _, size = struct.unpack("QQQIII4xQq", self.room.get(56))
        return oct(mode), links, user, group, size if stat.S_ISREG(mode) else None

    def do_statx(self, dirfd, path, flags, mask):
        start = self.room.start
        result = call("statx", self.fd(dirfd), self.path(path), flags, mask, start)
        if failed(result):
            return result
        fields = struct.unpack("IIQIIIH2x", self.room.get(32))
        return hex(fields[0] & 0x7E0 & mask), fields[3:6], oct(fields[6])

    def do_readlink(self, dirfd, path, size):
        self.room.fill()
        result = call("readlinkat", self.fd(dirfd), self.path(path), self.room.start, size)
        if failed(result):
            return result
        data = self.room.get(result + 1)
        return "ROOT" if data.startswith(self.root[:1].encode()) else data

    def do_getcwd(self, size):
        result = call("getcwd", self.room.start, size + len(self.root))
        if failed(result):
            return result
        return self.room.get(result).replace(self.root.encode(), b"ROOT")

    def do_list(self, slot, size):
        names = []
        while True:
            result = call("getdents64", self.fd(slot), self.room.start, size)
            if not result or failed(result):
                return sorted(names), result
            data, at = self.room.get(result), 0
            while at < result:
                _, _, length, kind = struct.unpack_from("QqHB", data, at)
                names.append((data[at + 19 : at + length].split(b"\0")[0][:9], kind))
                at += length

    def do_getxattr(self, name, target, key, size):
        self.room.fill()
        return self.shown(call(name, self.target(target), key, self.room.start, size), 64)

    def do_listxattr(self, name, target, size):
        result = call(name, self.target(target), self.room.start, size)
        if failed(result) or not size:
            return result
        names = self.room.get(result).split(b"\0")
        return sorted(name for name in names if name.startswith(b"user"))

    def do_setxattr(self, name, target, key, seed, size, flags):
        value = self.room.put(text(seed, size))
        return call(name, self.target(target), key, value, size, flags)

    # ---- the process

    def do_identity(self, user, group, groups):
        call("setresuid", -1, 0, -1)
        listed = self.room.put(struct.pack(f"{len(groups)}I", *groups))
        return (
            call("setgroups", len(groups), listed),
            call("setresgid", -1, group, -1),
            call("setresuid", -1, user, -1),
        )

    def do_limit(self, name, value):
        which = getattr(resource, name)
        _, hard = resource.getrlimit(which)
        resource.setrlimit(which, (hard if value is None else value, hard))

    def do_table(self):
        return os.getpid(), self.slots

    def send(self, link, slot):
        fds = array.array("i", [self.fd(slot)])
        link.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
        return "sent"

    def receive(self, link, slot, flags):
        _, got, _, _ = link.recvmsg(1, socket.CMSG_LEN(4), flags | socket.MSG_DONTWAIT)
        return self.keep(slot, struct.unpack("i", got[0][2])[0]) if got else "nothing"
