"""What inotify(7) tells of files and directories: each case in a directory of its own."""

import ctypes
import errno
import os
import select
import struct
import sys

ACCESS, MODIFY, ATTRIB, CLOSE_WRITE, CLOSE_NOWRITE, OPEN = 1, 2, 4, 8, 16, 32
MOVED_FROM, MOVED_TO, CREATE, DELETE, DELETE_SELF, MOVE_SELF = 64, 128, 256, 512, 1024, 2048
UNMOUNT, OVERFLOW, IGNORED, ISDIR = 0x2000, 0x4000, 0x8000, 0x40000000
ONLYDIR, DONT_FOLLOW, EXCL_UNLINK = 0x01000000, 0x02000000, 0x04000000
MASK_CREATE, MASK_ADD, ONESHOT = 0x10000000, 0x20000000, 0x80000000
ALL = 0xFFF
NAMES = {
    value: name
    for name, value in globals().items()
    if name.isupper() and isinstance(value, int) and name not in ("ALL", "OVERFLOW")
}
NONBLOCK = os.O_NONBLOCK
libc = ctypes.CDLL(None, use_errno=True)


def called(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


class Watcher:
    """One inotify descriptor, whose watches have names."""

    def __init__(self, say=print):
        self.fd = called(libc.inotify_init1(NONBLOCK | os.O_CLOEXEC))
        self.names, self.cookies, self.say = {}, {}, say

    def add(self, path, mask=ALL):
        word = ctypes.c_uint32(mask)
        wd = called(libc.inotify_add_watch(self.fd, os.fsencode(path), word))
        self.names.setdefault(wd, path)
        return wd

    def remove(self, wd):
        called(libc.inotify_rm_watch(self.fd, wd))

    def events(self):
        found = []
        while True:
            try:
                data = os.read(self.fd, 65536)
            except BlockingIOError:
                return found
            while data:
                wd, mask, cookie, size = struct.unpack_from("iIII", data)
                name = data[16 : 16 + size].rstrip(b"\0").decode()
                data = data[16 + size :]
                number = self.cookies.setdefault(cookie, len(self.cookies) + 1) if cookie else 0
                found.append((wd, mask, number, name))

    def show(self, what=""):
        """What has come since, each watch for itself: Linux has no order between watches that all
        versions keep. Events that are as the last one may be one: inotify(7)."""
        lines = {}
        for wd, mask, cookie, name in self.events():
            words = "|".join(NAMES[1 << bit] for bit in range(32) if mask >> bit & 1)
            line = f"{words} {name!r}" + (f" #{cookie}" if cookie else "")
            told = lines.setdefault(self.names[wd], [])
            if told[-1:] != [line]:
                told.append(line)
        for watch in sorted(lines):
            self.say(f"  {what} {watch}: {', '.join(lines[watch])}")


def refused(function, *arguments):
    try:
        function(*arguments)
        return "done"
    except OSError as error:
        return errno.errorcode[error.errno]


def put(path, data=b"x", flags=os.O_WRONLY | os.O_CREAT):
    fd = os.open(path, flags, 0o644)
    os.write(fd, data)
    os.close(fd)


def case_files_in_a_directory(w):
    put("old")
    w.add(".")
    put("new")
    w.show("made")
    put("old", b"yy", os.O_WRONLY | os.O_APPEND)
    w.show("appended")
    fd = os.open("old", os.O_RDONLY)
    os.pread(fd, 10, 0)
    os.pread(fd, 10, 0)
    os.close(fd)
    w.show("read")
    fd = os.open("old", os.O_RDONLY)
    os.pread(fd, 10, 100)
    os.close(fd)
    w.show("read behind its end")
    put("old", b"z", os.O_WRONLY | os.O_TRUNC)
    w.show("emptied")
    put("new", b"z", os.O_WRONLY | os.O_CREAT)
    w.show("there already")
    print(refused(os.open, "new", os.O_CREAT | os.O_EXCL), refused(os.open, "none", 0))
    w.show("refused")


def case_attributes(w):
    put("f")
    os.mkdir("d")
    for path in ".", "f", "d":
        w.add(path)
    os.chmod("f", 0o600)
    os.chmod("d", 0o700)
    os.chmod(".", 0o755)
    w.show("chmod")
    os.chown("f", os.getuid(), -1)
    w.show("chown")
    os.truncate("f", 10)
    w.show("truncate")
    os.utime("f", (1, 1))
    w.show("utime")
    fd = os.open("f", os.O_RDWR)
    os.fchmod(fd, 0o640)
    os.ftruncate(fd, 3)
    os.posix_fallocate(fd, 0, 4096)
    os.utime(fd, (2, 2))
    os.close(fd)
    w.show("by descriptor")
    omit = struct.pack("4q", 5, 5, 0, (1 << 30) - 2)
    libc.utimensat(-100, b"f", omit, 0)
    omit = struct.pack("4q", 0, (1 << 30) - 2, 5, 5)
    libc.utimensat(-100, b"f", omit, 0)
    w.show("one time")
    try:
        os.setxattr("f", "user.a", b"1")
        os.removexattr("f", "user.a")
        w.show("attribute")
    except OSError:
        print("  attribute .: ATTRIB 'f'\n  attribute f: ATTRIB ''")


def case_names(w):
    put("a")
    put("b")
    os.mkdir("d")
    for path in ".", "a", "b":
        w.add(path)
    os.link("a", "c")
    w.show("linked")
    os.unlink("c")
    w.show("unlinked")
    os.symlink("a", "s")
    os.mkfifo("p")
    os.mkdir("e")
    w.show("made")
    os.rename("a", "z")
    w.show("renamed")
    os.rename("z", "b")
    w.show("over another")
    os.rename("e", "d")
    w.show("directory over another")
    os.rmdir("d")
    os.unlink("s")
    os.unlink("b")
    w.show("removed")
    os.mkdir("x" * 255)
    os.rmdir("x" * 255)
    w.show("long")
    put("l")
    os.link("l", "m")
    w.events()
    os.rename("l", "m")
    w.show("two names of one")


def case_between_directories(w):
    for path in "one", "two", "dark":
        os.mkdir(path)
    for path in "one/f", "one/g", "dark/h":
        put(path)
    os.mkdir("one/d")
    w.add("one")
    w.add("two")
    w.add("one/f")
    os.rename("one/f", "two/f")
    w.show("between")
    put("two/f")
    w.show("written there")
    os.rename("two/f", "dark/f")
    w.show("out")
    put("dark/f")
    w.show("in the dark")
    os.rename("dark/f", "one/f")
    os.rename("dark/h", "two/h")
    w.show("in")
    put("two/h")
    w.show("written again")
    os.rename("one/d", "two/d")
    w.show("directory")
    os.rename("dark", "two/dark")
    w.show("directory in")
    os.rename("two/h", "one/f")
    w.show("over one that is watched")


def exchange(a, b):
    return libc.renameat2(-100, a.encode(), -100, b.encode(), 2)


def case_exchanged(w):
    for path in "one", "two", "dark":
        os.mkdir(path)
    put("one/f")
    os.mkdir("two/d")
    put("dark/h")
    w.add("one")
    w.add("two")
    w.add("one/f")
    w.add("two/d")
    if exchange("one/f", "two/d") < 0:
        return
    w.show("exchanged")
    exchange("one/d" if os.path.isdir("one/d") else "one/f", "dark/h")
    w.show("with one in the dark")
    put("one/f")
    w.show("written")


def case_directories(w):
    os.mkdir("d")
    os.mkdir("d/sub")
    put("d/f")
    w.add(".")
    w.add("d")
    print(sorted(os.listdir("d")))
    w.show("listed")
    os.rename("d", "e")
    w.show("renamed")
    put("e/f")
    os.mkdir("e/more")
    w.show("below")
    print(refused(os.rmdir, "e"))
    w.show("not empty")
    for name in "sub", "more":
        os.rmdir(f"e/{name}")
    os.unlink("e/f")
    w.show("emptied")
    os.rmdir("e")
    w.show("removed")


def case_replaced(w):
    for name in "f", "g":
        put(name)
        os.mkdir(name * 2)
    for name in ".", "f", "g", "ff", "gg":
        w.add(name)
    os.rename("f", "g")
    w.show("file")
    os.rename("ff", "gg")
    w.show("directory")


def case_removed_while_open(w):
    put("f")
    w.add(".")
    w.add("f")
    fd = os.open("f", os.O_RDWR)
    w.show("open")
    os.unlink("f")
    w.show("removed")
    os.write(fd, b"more")
    w.show("written")
    os.close(fd)
    w.show("closed")


def case_opened_before(w):
    put("f")
    put("g")
    reader = os.open("f", os.O_RDONLY)
    writer = os.open("f", os.O_WRONLY)
    other = os.open("g", os.O_WRONLY)
    w.add("f", ALL & ~ACCESS)
    w.add(".", ALL & ~ACCESS)
    os.write(writer, b"more")
    os.write(other, b"more")
    w.show("written")
    os.rename("g", "h")
    os.write(other, b"more")
    w.show("under another name")
    os.close(writer)
    os.close(reader)
    os.close(other)
    w.show("closed")


def case_moved_while_open(w):
    os.mkdir("lit")
    os.mkdir("dark")
    put("dark/f")
    fd = os.open("dark/f", os.O_RDWR)
    w.add("lit")
    os.write(fd, b"1")
    w.show("in the dark")
    os.rename("dark/f", "lit/f")
    os.write(fd, b"2")
    w.show("in")
    os.rename("lit/f", "dark/f")
    os.write(fd, b"3")
    w.show("out")
    put("lit/f")
    os.write(fd, b"3")
    w.show("another in its place")
    os.rename("dark/f", "lit/g")
    os.write(fd, b"4")
    os.close(fd)
    w.show("in again")


def case_masks(w):
    put("f")
    a = w.add("f", MODIFY)
    print(w.add("f", MASK_ADD | ATTRIB) == a, refused(w.add, "f", MASK_CREATE | OPEN))
    put("f")
    os.chmod("f", 0o600)
    w.show("added")
    print(w.add("f", CLOSE_WRITE) == a)
    put("f")
    os.chmod("f", 0o644)
    w.show("replaced")
    w.remove(a)
    put("f")
    w.show("ended")
    print(refused(w.remove, a), w.add("f", ONESHOT | ALL) > a)
    put("f")
    w.show("once")
    print(refused(w.add, "f", ONLYDIR | ALL), refused(w.add, "none"), refused(w.add, "f/x"))
    print(refused(w.add, "f", 0), refused(w.add, "f", MASK_ADD | MASK_CREATE | OPEN))
    os.symlink("f", "s")
    os.symlink("none", "t")
    print(refused(w.add, "t"))
    link, target = w.add("s", DONT_FOLLOW | ALL), w.add("s")
    print(link != target, target == w.add("f"))
    w.names[target] = "f"
    put("s")
    w.show("by a link")
    os.chmod("s", 0o600)
    w.show("chmod by a link")
    os.unlink("s")
    w.show("link removed")
    put("g")
    print(w.add("g", ONESHOT) > target)
    os.chmod("g", 0o600)
    w.show("no event")
    os.unlink("g")
    w.show("no event, removed")
    print(w.add("t", DONT_FOLLOW) > target)
    os.unlink("t")
    w.show("no event of a link, removed")
    fd, w.fd = w.fd, os.open("f", os.O_RDONLY)
    print(refused(w.add, "f"), refused(w.add, "none"))
    os.close(w.fd)
    print(refused(w.add, "f"))
    w.fd = fd


def case_masks_that_grow(w):
    """And files that are open meanwhile."""
    put("g")
    other = os.open("g", os.O_RDWR)
    w.add(".", CREATE)
    fd = os.open("f", os.O_CREAT | os.O_RDWR)
    os.write(fd, b"1")
    w.show("names")
    w.add(".", MASK_ADD | MODIFY | CLOSE_WRITE)
    os.write(fd, b"2")
    os.write(other, b"2")
    w.show("contents")
    w.add("f", DELETE_SELF)
    os.unlink("f")
    w.show("removed")
    os.close(fd)
    os.close(other)
    w.show("closed")


def case_unlinked_children(w):
    w.add(".", ALL | EXCL_UNLINK)
    fd = os.open("f", os.O_CREAT | os.O_RDWR)
    os.unlink("f")
    os.write(fd, b"1")
    os.close(fd)
    w.show()


def case_another_process(w):
    """Makes the changes; and has a watch of its own, and the descriptor of ours."""
    w.add(".")
    if os.fork() == 0:
        mine = Watcher()
        mine.add(".", CREATE | CLOSE_WRITE)
        put("f")
        mine.show("child's")
        sys.stdout.flush()
        os._exit(0)
    os.wait()
    w.show("parent's")
    if os.fork() == 0:
        os.execvp("sh", ["sh", "-c", ": >g; mv g h; rm h; mkdir d"])
    os.wait()
    w.show("shell's")


def case_readiness(w):
    poll = select.epoll()
    poll.register(w.fd, select.EPOLLIN)
    w.add(".")
    print(poll.poll(0))
    put("f")
    print(len(poll.poll(0)), len(select.select([w.fd], [], [], 0)[0]))
    w.show()
    print(poll.poll(0))


def case_duplicates(w):
    put("f")
    w.add("f", CLOSE_WRITE | CLOSE_NOWRITE)
    fd = os.open("f", os.O_WRONLY)
    copy = os.dup(fd)
    os.close(fd)
    w.show("first")
    if os.fork() == 0:
        os.close(copy)
        os._exit(0)
    os.wait()
    w.show("child's")
    os.close(copy)
    w.show("last")


def case_copies(w):
    put("f", b"data")
    w.add(".", ALL & ~ACCESS)
    source, target = os.open("f", os.O_RDONLY), os.open("g", os.O_CREAT | os.O_WRONLY)
    os.copy_file_range(source, target, 4)
    w.show("range")
    os.sendfile(target, source, 0, 4)
    w.show("sent")
    os.writev(target, [b"a", b"b"])
    os.pwrite(target, b"c", 9)
    w.show("vectors")
    os.close(target)
    os.close(source)
    w.show("closed")


def case_links_and_descriptors(w):
    """What a path leads to by "..", a link of the system, or a link in the middle."""
    os.mkdir("d")
    os.symlink("d", "l")
    put("d/f")
    w.add("d", ALL & ~ACCESS)
    w.add("d/f", ALL & ~ACCESS)
    put("l/f")
    put("d/../d/f")
    w.show("roundabout")
    fd = os.open("d/f", os.O_RDONLY)
    again = os.open(f"/proc/self/fd/{fd}", os.O_WRONLY)
    os.write(again, b"x")
    os.close(again)
    os.close(fd)
    w.show("again")
    directory = os.open("d", os.O_RDONLY | os.O_DIRECTORY)
    w.events()
    os.unlink("f", dir_fd=directory)
    os.mkdir("e", dir_fd=directory)
    w.show("relative")
    os.symlink("d/g", "dangling")
    put("dangling")
    w.show("made by a link")
    os.chdir("d/e")
    os.mkdir("../n")
    os.chdir("../..")
    w.show("above")


os.umask(0o022)
for name, case in [pair for pair in globals().items() if pair[0].startswith("case_")]:
    if sys.argv[1:] and name.removeprefix("case_") not in sys.argv[1:]:
        continue
    print(name)
    os.mkdir(name)
    os.chdir(name)
    case(Watcher())
    os.chdir("..")
