"""Opens again what is open, by /proc and /dev: when it was renamed, removed, or never had a name.

Prints what it finds, names below the working directory without it.
"""

import ctypes
import errno
import fcntl
import itertools
import mmap
import os
import shutil
import socket
import struct
import sys
import tempfile

HERE = os.getcwd()
LIBC = ctypes.CDLL(None, use_errno=True)


def show(what, call, *arguments, **named):
    try:
        found = call(*arguments, **named)
    except OSError as error:
        found = errno.errorcode[error.errno]
    if isinstance(found, (str, bytes)):
        found = os.fsdecode(found).replace(HERE, "HERE")
    print(what, found, flush=True)


def names(directory):
    """Without what libfuse makes of files that are removed while they are open."""
    return sorted(name for name in os.listdir(directory) if not name.startswith(".fuse_hidden"))


def opened(path, flags):
    fd = os.open(path, flags)
    how = fcntl.fcntl(fd, fcntl.F_GETFL) & (os.O_ACCMODE | os.O_APPEND | os.O_PATH)
    found = [
        how,
        os.fstat(fd).st_size,
        os.lseek(fd, 0, os.SEEK_CUR) if not flags & os.O_PATH else -1,
    ]
    if how & os.O_ACCMODE != os.O_WRONLY and not flags & os.O_PATH:
        found.append(os.read(fd, 4))
    os.close(fd)
    return found


def ways(fd):
    """Every way to open it again."""
    pid, stranger = os.getpid(), os.getppid()
    threads = [f"{who}/task/{pid}/fd/{fd}" for who in ("self", pid)]
    for place in f"self/fd/{fd}", f"{pid}/fd/{fd}", *threads:
        show("rdonly", opened, f"/proc/{place}", os.O_RDONLY)
    show("rdonly", opened, f"/dev/fd/{fd}", os.O_RDONLY)
    for place in f"proc//self/./fd//{fd}", f"dev/.//fd/{fd}", f"proc/{pid}//task/{pid}/fd/./{fd}":
        show("spelled", opened, f"/{place}", os.O_RDONLY)
        show("name", os.readlink, f"/{place}")
    for behind in "/", "/.", "//./":
        show("as a directory", opened, f"/proc/self/fd/{fd}{behind}", os.O_RDONLY)
    for number in f"0{fd}", fd + (1 << 64):
        show("no descriptor", os.path.exists, f"/proc/self/fd/{number}")
    for number in f"0{pid}", pid + (1 << 64), f"{pid}/task/0{pid}":
        show("no process", os.path.exists, f"/proc/{number}/fd/{fd}")
    for who, what in itertools.product(("self", pid), (f"fd/{fd}", "exe", "cwd/d")):
        show("no thread", os.path.exists, f"/proc/{who}/task/{stranger}/{what}")
    place = f"/proc/self/fd/{fd}"
    for name in (
        "O_WRONLY",
        "O_RDWR",
        "O_APPEND",
        "O_PATH",
        "O_NOFOLLOW",
        "O_DIRECTORY",
        "O_CREAT",
        "O_NOATIME",
    ):
        show(name, opened, place, getattr(os, name))
    show("excl", opened, place, os.O_CREAT | os.O_EXCL)
    show("stat", lambda: os.stat(place).st_size)
    show("link", os.path.islink, place)
    show("same", lambda: os.path.samestat(os.stat(place), os.fstat(fd)))
    show("access", os.access, place, os.R_OK)
    show("mode", lambda: (os.chmod(place, 0o640), oct(os.fstat(fd).st_mode)))
    show("time", lambda: (os.utime(place, (7, 8)), os.fstat(fd).st_mtime))
    show("unlink", os.unlink, place)
    show("name", os.readlink, place)


def changed(fd):
    """A new description: a place of its own, the same bytes."""
    again = os.open(f"/proc/self/fd/{fd}", os.O_RDWR)
    os.pwrite(again, b"AGAIN", 2)
    os.lseek(again, 4, os.SEEK_SET)
    show("bytes", os.pread, fd, 20, 0)
    show("place", os.lseek, fd, 0, os.SEEK_CUR)
    fcntl.flock(fd, fcntl.LOCK_EX)
    show("locked", fcntl.flock, again, fcntl.LOCK_EX | fcntl.LOCK_NB)
    fcntl.flock(fd, fcntl.LOCK_UN)
    show("cut", lambda: (os.truncate(f"/proc/self/fd/{fd}", 9), os.fstat(again).st_size))
    os.close(os.open(f"/proc/self/fd/{fd}", os.O_WRONLY | os.O_TRUNC))
    show("emptied", lambda: os.fstat(again).st_size)
    os.close(again)


def made(name):
    fd = os.open(name, os.O_RDWR | os.O_CREAT, 0o600)
    os.write(fd, b"0123456789")
    return fd


def removed():
    fd = made("removed")
    os.unlink("removed")
    ways(fd)
    changed(fd)
    only = made("read only")
    os.close(only)
    only = os.open("read only", os.O_RDONLY)
    path = os.open("read only", os.O_PATH)
    os.unlink("read only")
    ways(only)
    ways(path)


def renamed():
    os.mkdir("d")
    os.mkdir("d/sub")
    fd, replaced, directory, below = (
        made("d/f"),
        made("d/r"),
        os.open("d", os.O_RDONLY),
        os.open("d/sub", os.O_PATH),
    )
    os.rename("d/f", "d/g")
    show("renamed", os.readlink, f"/proc/self/fd/{fd}")
    ways(fd)
    os.rename("d/g", "d/r")
    show("replaced", os.readlink, f"/proc/self/fd/{replaced}")
    show("renamed over", os.readlink, f"/proc/self/fd/{fd}")
    os.rename("d", "e")
    for what in fd, directory, below:
        show("moved", os.readlink, f"/proc/self/fd/{what}")
    made("d")  # another file has the name
    ways(fd)
    show("list", lambda: names(f"/proc/self/fd/{directory}"))
    show("below", lambda: open(f"/proc/self/fd/{directory}/r").read())
    show(
        "cut below", lambda: (os.truncate(f"/proc/self/fd/{directory}/r", 5), os.fstat(fd).st_size)
    )
    show("space below", lambda: os.statvfs(f"/proc/self/fd/{directory}/r").f_namemax)
    for way in directory, below, f"/proc/self/fd/{directory}", f"/dev/fd/{directory}/sub":
        os.chdir(way)
        show("here", os.getcwd)
        show("up", lambda: names(".."))
        os.chdir(HERE)
    os.mkdir("gone")
    gone = os.open("gone", os.O_RDONLY)
    os.rmdir("gone")
    show("gone", os.readlink, f"/proc/self/fd/{gone}")


def uncut():
    """What is no regular file is not cut, nor opened for that."""
    os.mkfifo("uncut-fifo")
    os.symlink("uncut-fifo", "uncut-link")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind("uncut-socket")
    for name in ".", "uncut-fifo", "uncut-socket", "uncut-link":
        fd = os.open(name, os.O_PATH | os.O_NOFOLLOW)
        for size in 0, -1:
            show("cut", os.truncate, f"/proc/self/fd/{fd}", size)
    os.truncate(f"/proc/self/fd/{made('uncut')}", 3)


def mapped():
    """What is mapped ends, for who reads it, where such a name says."""
    fd = made("mapped")
    memory = mmap.mmap(fd, 10)
    for name in f"/proc/self/fd/{fd}", "./" * 2044 + "mapped":
        for size in 3, 0, 5:
            os.truncate(name, size)
            show("cut", lambda: (os.fstat(fd).st_size, os.pread(fd, 20, 0)))
        memory[:5] = b"12345"
        show("stored", os.pread, fd, 20, 0)


def linked():
    """Names that lead through symlinks, and others of the same file."""
    os.mkdir("real")
    os.symlink("real", "way")
    made("real/a")
    os.symlink("a", "real/b")
    fd, path = os.open("way/b", os.O_RDONLY), os.open("way", os.O_RDONLY)
    os.rename("real", "moved")
    show("through", os.readlink, f"/proc/self/fd/{fd}")
    show("directory", os.readlink, f"/proc/self/fd/{path}")
    os.chdir(path)
    show("here", os.getcwd)
    os.chdir(HERE)


def numbered():
    """By the number alone, in the directory of such links."""
    fd, here = made("number"), os.open(".", os.O_RDONLY)
    os.unlink("number")
    made("g")
    at = os.open("/proc/self/fd", os.O_RDONLY)
    again = os.open(str(fd), os.O_RDONLY, dir_fd=at)
    show("number", os.pread, again, 20, 0)
    show("number", lambda: os.stat(str(fd), dir_fd=at).st_size)
    show("number", lambda: os.stat(f"{here}/g", dir_fd=at).st_size)
    show("name", os.readlink, f"{here}", dir_fd=at)
    os.fchdir(at)
    show("here", lambda: os.stat(str(fd)).st_size)
    show("here", opened, f"{here}/g", os.O_RDONLY)
    os.chdir(HERE)
    show("number", lambda: os.stat("1000000", dir_fd=at).st_size)


def through():
    """Links in a mount to links of /proc, and a directory of these."""
    fd, here = made("kept"), os.open(".", os.O_RDONLY)
    os.unlink("kept")
    for target in f"/proc/self/fd/{fd}", f"/dev/fd/{fd}", f"/proc/self/task/{os.getpid()}/fd/{fd}":
        os.symlink(target, "link")
        show("link", opened, "link", os.O_RDWR)
        show("size", lambda: os.stat("link").st_size)
        show("mode", lambda: (os.chmod("link", 0o640), oct(os.fstat(fd).st_mode)))
        show("not followed", opened, "link", os.O_NOFOLLOW)
        show("new", os.mkdir, "link")
        os.unlink("link")
    os.mkdir("there")
    made("there/f")
    os.symlink(f"/proc/self/fd/{here}/there", "link")
    os.symlink(f"/proc/self/fd/{here}/round", "round")
    for name in "link/f", "link/none", "link", "round", "round/f":
        show(name, opened, name, os.O_RDONLY)
    show("moved", os.rename, "link/f", "link/g")
    show("list", os.listdir, "there")


def alike(call, link, fd, *arguments):
    """What is said of both."""

    def said(what):
        try:
            return call(what, *arguments)
        except OSError as error:
            return error.errno

    return said(link) == said(fd)


def called(link, fd):
    """Every call but open by a link that leads to that file."""
    kept = ctypes.create_string_buffer(256)
    show("size", lambda: os.stat(link).st_size)
    show("same", lambda: os.path.samestat(os.stat(link), os.fstat(fd)))
    show("statx", LIBC.syscall, 332, -100, link.encode(), 0, 0x7FF, kept)
    show("its size", int.from_bytes, kept[40:48], "little")
    show("itself", os.path.islink, link)
    show("access", lambda: [os.access(link, how) for how in (os.R_OK, os.W_OK, os.X_OK)])
    show("mode", lambda: (os.chmod(link, 0o640), oct(os.fstat(fd).st_mode)))
    owner = 7 if os.getuid() == 0 else -1
    show("owner", lambda: (os.chown(link, owner, -1), os.fstat(fd).st_uid))
    show("time", lambda: (os.utime(link, (7, 8)), os.fstat(fd).st_mtime))
    show("space", alike, lambda what: os.statvfs(what).f_fsid, link, fd)
    show("attribute", alike, os.setxattr, link, fd, "user.a", b"b")
    show("attributes", alike, os.listxattr, link, fd)
    show("cut", lambda: (os.truncate(link, 9), os.fstat(fd).st_size, os.truncate(link, 10)))
    show("as a directory", os.chdir, link)
    for resolve in 1, 2, 4, 8, 16, 32:
        how = struct.pack("QQQ", 0, 0, resolve)
        show("restricted", restricted, link, how)


def restricted(path, how):
    return LIBC.syscall(437, -100, path.encode(), how, 24), ctypes.get_errno()


def below(link):
    """Calls on what lies in the directory that it leads to."""
    show("size", lambda: os.stat(f"{link}/below").st_size)
    show("itself", lambda: os.lstat(f"{link}/below").st_size)
    show("new", os.mkdir, f"{link}/d")
    show("moved", os.rename, f"{link}/d", f"{link}/e")
    show("linked", os.link, f"{link}/below", f"{link}/e/again")
    show("pointed", os.symlink, "below", f"{link}/pointer")
    show("pointer", os.readlink, f"{link}/pointer")
    show("list", names, link)
    show("list", names, f"{link}/e")
    for name in "e/again", "pointer":
        show("gone", os.unlink, f"{link}/{name}")
    show("gone", os.rmdir, f"{link}/e")
    for place in link, f"{link}/":
        show("here", lambda place=place: (os.chdir(place), names("."), os.chdir(HERE)))
        show("same", lambda place=place: os.path.samestat(os.stat(place), os.stat(".")))


def disk():
    """Links on disk to links of /proc, and other ways there that a path does not show."""
    fd, here, proc = made("kept"), os.open(".", os.O_RDONLY), os.open("/proc", os.O_RDONLY)
    os.unlink("kept")
    made("below")
    os.dup2(fd, 0)
    aside = tempfile.mkdtemp(dir="/tmp")
    link, places = f"{aside}/link", (f"/proc/self/fd/{fd}", f"/dev/fd/{fd}", "/dev/stdin")
    for target in *places, f"/proc/{os.getpid()}/task/{os.getpid()}/fd/{fd}":
        os.symlink(target, link)
        for name in "O_RDWR", "O_APPEND", "O_CREAT", "O_PATH", "O_NOFOLLOW", "O_DIRECTORY":
            show(f"on disk {name}", opened, link, getattr(os, name))
        show("on disk excl", opened, link, os.O_CREAT | os.O_EXCL)
        called(link, fd)
        os.unlink(link)
    os.symlink(f"/proc/self/fd/{here}", link)
    below(link)
    for name in "below", "../" + os.path.basename(HERE) + "/below", "none", "below/none":
        show("through", opened, f"{link}/{name}", os.O_RDONLY)
    show("made", lambda: os.close(os.open(f"{link}/new", os.O_CREAT | os.O_WRONLY, 0o640)))
    show("made", lambda: oct(os.stat("new").st_mode))
    show("round", opened, f"/dev/../proc/self/fd/{fd}", os.O_RDONLY)
    show("slashes", opened, f"//proc/self/fd/{fd}", os.O_RDONLY)
    show("size", lambda: os.stat(f"/./proc/self/fd/{fd}").st_size)
    show("from /proc", lambda: os.pread(os.open(f"self/fd/{fd}", os.O_RDONLY, dir_fd=proc), 20, 0))
    show("from /proc", lambda: os.stat(f"thread-self/fd/{fd}", dir_fd=proc).st_size)
    show("emptied", lambda: os.close(os.open("/dev/../dev/stdin", os.O_TRUNC | os.O_RDWR)))
    show("emptied", lambda: os.fstat(fd).st_size)
    shutil.rmtree(aside)
    for name in "below", "new":
        os.unlink(name)


def filtered():
    """The same in a program with a filter, which might end it for openat2(2)."""
    if os.fork() == 0:
        allow = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0x7FFF0000))
        LIBC.prctl(38, 1, 0, 0, 0)
        show("filter", LIBC.prctl, 22, 2, struct.pack("HxxxxxxQ", 1, ctypes.addressof(allow)))
        disk()
        os._exit(0)
    os.wait()


def told(link, size):
    """What is told of the link's text where there is little room."""
    room = ctypes.create_string_buffer(size)
    size = ctypes.CDLL(None).readlink(link.encode(), room, size)
    return room.raw[:size].decode()


def behind(link):
    """What is left in the memory behind the link's text."""
    room = ctypes.create_string_buffer(b"#" * 4096)
    size = ctypes.CDLL(None).readlink(link.encode(), room, 4096)
    return set(room.raw[size:4096])


def others():
    """Those of a program that has them open; this one has not."""
    fd, moved = made("theirs"), made("moves")
    os.unlink("theirs")
    os.rename("moves", "moved there")
    parent = os.getpid()
    if os.fork() == 0:
        os.close(fd)
        os.close(moved)
        for what in fd, moved:
            place = f"/proc/{parent}/fd/{what}"
            show("theirs", opened, place, os.O_RDONLY)
            show("written", opened, place, os.O_RDWR | os.O_APPEND)
            show("size", lambda place=place: os.stat(place).st_size)
            show("link", os.path.islink, place)
            show("name", os.readlink, place)
            for size in 2, len(HERE) + 2:
                show("its beginning", os.readlink(place).startswith, told(place, size))
        for name in f"fd/{fd}", "cwd":
            show("behind", behind, f"/proc/{parent}/{name}")
        again = os.open(f"/proc/{parent}/fd/{fd}", os.O_RDWR)
        os.pwrite(again, b"child", 0)
        os._exit(0)
    os.wait()
    show("bytes", os.pread, fd, 20, 0)


def nameless():
    fd = os.open(".", os.O_TMPFILE | os.O_RDWR, 0o600)
    os.write(fd, b"0123456789")
    name = os.readlink(f"/proc/self/fd/{fd}")
    show("nameless", lambda: (name.startswith(HERE + "/#"), name.endswith(" (deleted)")))
    changed(fd)
    os.pwrite(fd, b"0123456789", 0)
    for flags in os.O_RDONLY, os.O_WRONLY, os.O_RDWR | os.O_EXCL, os.O_PATH:
        show("again", opened, f"/proc/self/fd/{fd}", flags)
    again = os.open(f"/dev/fd/{fd}", os.O_RDONLY)
    os.close(fd)
    show("kept", os.pread, again, 20, 0)
    libc = ctypes.CDLL(None)
    print(
        libc.linkat(-100, b"/proc/self/fd/%d" % again, -100, b"named", 0x400), sorted(os.listdir())
    )
    show("in it", lambda: os.path.samestat(os.stat("named"), os.fstat(again)))
    here = os.open(".", os.O_PATH)
    other = os.open(f"/proc/self/fd/{here}", os.O_TMPFILE | os.O_RDWR)
    show("there", lambda: os.write(other, b"x"))


def executed():
    os.system("cp /bin/echo program; chmod 755 program")
    fd = os.open("program", os.O_RDONLY)
    os.unlink("program")
    aside = tempfile.mkdtemp(dir="/tmp")
    link = f"{aside}/link"
    os.symlink(f"/proc/self/fd/{fd}", link)
    for name, words in (f"/proc/{os.getpid()}/fd/{fd}", "of another"), (link, "by a link on disk"):
        if os.fork() == 0:
            show("executed", os.execv, name, ["program", words])
            os._exit(1)
        os.wait()
    shutil.rmtree(aside)
    os.set_inheritable(fd, True)
    os.execv(f"/proc/self/fd/{fd}", ["program", "removed"])


for name in sys.argv[1:]:
    globals()[name]()
