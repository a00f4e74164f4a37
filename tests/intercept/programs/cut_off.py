"""Who stands below a directory that he may not search: Linux looks at nothing above him."""

import ctypes
import os
import stat
import struct
import subprocess

from shown import show

NOBODY = 65534
AT_FDCWD = ctypes.c_long(-100)
LIBC = ctypes.CDLL(None, use_errno=True)


def stand():
    """As nobody in above/here."""
    os.umask(0o22)
    for name in "above", "above/here", "above/here/below":
        os.mkdir(name)
        os.chown(name, NOBODY, NOBODY)
    with open("above/here/script", "w") as script:
        script.write("#!/bin/sh\necho executed $0; cat file; ls -a below\n")
        os.fchmod(script.fileno(), 0o755)
    os.chdir("above/here")
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)


def written(name, text):
    with open(name, "w") as file:
        file.write(text)
    with open(name) as file:
        return file.read(), os.path.samestat(os.fstat(file.fileno()), os.stat(name))


def names():
    return sorted(os.listdir("."))


def make():
    show("write", written, "file", "text\n")
    show("mkdir", os.mkdir, "made")
    show("in it", written, "made/file", "more\n")
    show("link", os.link, "file", "made/link")
    show("symlink", os.symlink, "made/link", "symlink")
    show("by it", written, "symlink", "text\n")
    show("rename", os.rename, "made/file", "below/file")
    show("chmod", os.chmod, "file", 0o640)
    show("times", os.utime, "file", (1, 2))
    show("status", lambda: (oct(os.stat("file").st_mode), os.stat("file").st_mtime))
    show("names", names)
    show("execute", subprocess.check_output, ["./script"])
    show("remove", os.unlink, "made/link")
    show("rmdir", os.rmdir, "made")
    show("missing", os.stat, "missing")
    show("not mine", written, "/file", "")


def look_up():
    show("here", lambda: os.path.samestat(os.stat("."), os.stat(os.open(".", os.O_RDONLY))))
    show("above", lambda: oct(os.stat("..").st_mode))
    show("its names", os.listdir, "..")
    show("its directory", os.stat, "../here")
    show("by name", os.stat, os.getcwd())


def restricted(path, resolve, flags=os.O_RDONLY):
    how = struct.pack("QQQ", flags, 0o600 if flags & os.O_CREAT else 0, resolve)
    fd = LIBC.syscall(437, AT_FDCWD, path, how, len(how))  # openat2
    if fd < 0:
        raise OSError(ctypes.get_errno(), "openat2")
    status = os.fstat(fd)
    os.close(fd)
    return oct(status.st_mode), stat.S_ISREG(status.st_mode) and status.st_size


def restrict():
    """By openat2(2) with RESOLVE_NO_XDEV, _NO_MAGICLINKS, _NO_SYMLINKS, _BENEATH and _IN_ROOT."""
    for resolve in 1, 2, 4, 8, 16:
        for path in b"file", b"below/file", b"symlink", b"below/../file", b"missing", b"..", b".":
            show("restricted", restricted, path, resolve)
        show("up", restricted, b"../here/file", resolve)
        show("made", restricted, b"below/%d" % resolve, resolve, os.O_CREAT | os.O_WRONLY)
        show("a directory", restricted, b"./", resolve, os.O_CREAT | os.O_WRONLY)
        show("itself", restricted, b".", resolve, os.O_PATH)
    show("names", lambda: sorted(os.listdir("below")))


def move():
    fd = os.open("below", os.O_RDONLY)
    show("chdir", os.chdir, "below")
    show("there", names)
    show("write", written, "other", "other\n")
    show("up", os.chdir, "..")
    show("fchdir", os.fchdir, fd)
    show("there", names)
    show("name", lambda: os.path.basename(os.getcwd()))
    show("child", subprocess.check_output, ["/bin/sh", "-c", "cat other; ls .."])


stand()
show("search", os.chmod, "..", 0o0)
make()
restrict()
look_up()
move()
