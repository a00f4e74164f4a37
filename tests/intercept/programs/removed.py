"""What is asked of a working directory that was removed, by the process itself or by another."""

import errno
import os
import subprocess
import sys

OPENS = os.O_RDONLY, os.O_RDONLY | os.O_DIRECTORY, os.O_PATH, os.O_RDWR, os.O_CREAT | os.O_RDWR


def tell(word, call, *words):
    try:
        found = call(*words)
    except OSError as error:
        found = errno.errorcode[error.errno]
    print(word, *words, found, flush=True)


def opened(path, flags):
    fd = os.open(path, flags, 0o600)
    try:
        st = os.fstat(fd)
        return oct(st.st_mode), st.st_nlink, st.st_uid, os.listdir(fd) if flags == 0 else ""
    finally:
        os.close(fd)


def here(path):
    """Of the directory itself."""
    for flags in OPENS:
        tell("open", opened, path, flags)
    tell("mode", lambda path: oct(os.stat(path).st_mode), path)
    tell("chmod", os.chmod, path, 0o711)
    tell("utime", os.utime, path, (1, 1))
    tell("time", lambda path: os.stat(path).st_mtime, path)
    for call in os.listdir, os.readlink, os.listxattr, os.mkdir, os.rmdir, os.unlink:
        tell(call.__name__, call, path)
    tell("access", os.access, path, os.W_OK)
    tell("truncate", os.truncate, path, 0)
    tell("rename", os.rename, path, "x")
    tell("statvfs", lambda path: os.statvfs(path).f_namemax, path)


def below(path):
    """Of what would be in it."""
    for flags in OPENS:
        tell("open", opened, path, flags)
    for call in os.stat, os.mkdir, os.rmdir, os.unlink, os.readlink, os.listdir:
        tell(call.__name__, call, path)
    tell("symlink", os.symlink, "target", path)


def above():
    tell("listdir", lambda path: sorted(os.listdir(path)), "..")
    tell("listdir", lambda path: sorted(os.listdir(path)), "./..//")
    tell("open", lambda path: os.fstat(os.open(path, os.O_RDONLY)).st_nlink > 0, "..")
    tell("mkdir", os.mkdir, "../made")
    tell("symlink", os.symlink, "made", "../link")
    tell("rename", os.rename, "../link", "../moved")
    tell("stat", lambda path: oct(os.stat(path).st_mode), "../moved")
    tell("unlink", os.unlink, "../moved")
    tell("rmdir", os.rmdir, "../made")
    tell("mkdir", os.mkdir, "..")


def all_of_it():
    for path in ".", "./", "./.":
        here(path)
    for path in "x", "./x", "x/y":
        below(path)
    above()
    tell("getcwd", os.getcwd)
    tell("link", lambda: os.readlink("/proc/self/cwd").endswith("/top/d (deleted)"))
    tell("by its link", os.listdir, "/proc/self/cwd/")
    subprocess.run([sys.executable, "-S", __file__, "child"], check=True)
    tell("chdir", os.chdir, ".")
    tell("mode", lambda path: oct(os.stat(path).st_mode), ".")


if sys.argv[1:] == ["child"]:
    here(".")
    above()
    sys.exit()
top = os.getcwd()
for way in range(3):
    os.makedirs("top/d")
    os.chdir("top/d")
    os.chmod(".", 0o750)
    if way == 0:
        os.rmdir("../d")
    else:
        subprocess.run(["rmdir", f"{top}/top/d"], check=True)
    if way == 2:
        os.mkdir(f"{top}/top/d")  # another one of that name
    all_of_it()
    os.rename(f"{top}/top", f"{top}/renamed")
    above()
    tell("chdir", os.chdir, "..")
    tell("here", lambda: os.path.basename(os.getcwd()))
    tell("listdir", os.listdir, ".")
    os.chdir(top)
    subprocess.run(["rm", "-r", "renamed"], check=True)
