"""A directory whose path from the root is longer than a path may be, reached step by step.

Prints what it finds there.
"""

import ctypes
import errno
import os
import shutil
import subprocess
import sys
import threading

LIBC = ctypes.CDLL(None, use_errno=True)
HERE = os.getcwd()
NAME = "n" * 200
LEVELS = 50


def show(what, call, *arguments, **named):
    try:
        found = call(*arguments, **named)
    except OSError as error:
        found = errno.errorcode[error.errno]
    print(str(what).replace(NAME, "N"), str(found).replace(NAME, "N"), flush=True)


def kernel_getcwd():
    """getcwd(3) goes on by itself where the system call has no answer."""
    buffer = ctypes.create_string_buffer(8192)
    if LIBC.syscall(79, buffer, 8192) < 0:
        return errno.errorcode[ctypes.get_errno()]
    return os.fsdecode(buffer.value).replace(HERE, "HERE")


def where():
    return kernel_getcwd(), os.getcwd() == HERE + f"/{NAME}" * (os.getcwd().count(NAME))


def write(name, text):
    with open(name, "w") as file:
        file.write(text)


def read(name, **named):
    with open(os.open(name, os.O_RDONLY, **named)) as file:
        return file.read()


for level in range(LEVELS):
    os.mkdir(NAME)
    os.chdir(NAME)
    if level in (17, 18, 19, 20, 21):
        show(level, where)

show("here", where)
write("f", "deep\n")
show("read", read, "f")
show("stat", lambda: (os.stat("f").st_size, os.stat("./f").st_ino == os.stat("f").st_ino))
show("list", os.listdir)
show("parent", lambda: (os.listdir(".."), os.path.samefile("..", f"../../{NAME}")))
show("absolute", os.stat, os.getcwd() + "/f")
show("rename", os.rename, "f", "g")
show("link", os.link, "g", "h")
show("symlink", os.symlink, "h", "s")
show("readlink", os.readlink, "s")
show("followed", read, "s")
show("chmod", os.chmod, "g", 0o640)
show("utime", os.utime, "g", (1, 2))
show("truncate", os.truncate, "g", 3)
show(
    "attributes",
    lambda: (
        os.setxattr("g", "user.a", b"1"),
        os.getxattr("g", "user.a"),
        os.listxattr("s", follow_symlinks=False),
    ),
)
show("space", lambda: os.statvfs(".").f_namemax)
show("access", os.access, "g", os.R_OK)
show("mkdir", os.mkdir, "d")
show("into", lambda: (write("d/x", "x"), os.rename("d/x", "d/y"), os.listdir("d")))
show("unlink", os.unlink, "d/y")
show("rmdir", os.rmdir, "d")
show("missing", os.stat, "none")
show("no directory", os.chdir, "g")
show("proc", os.readlink, "/proc/self/cwd")
show("by proc", lambda: sorted(os.listdir("/proc/self/cwd")))
show("below proc", read, "/proc/self/cwd/g")

fd = os.open(".", os.O_RDONLY)
show("by descriptor", read, "g", dir_fd=fd)
show("its name", os.readlink, f"/proc/self/fd/{fd}")
os.chdir("..")
show("up", lambda: (os.listdir(), where()))
show(
    "long",
    lambda: read("/".join([".."] * 30) + f"/{NAME}" * 10 + "/../" + "/".join([NAME] * 30) + "/g"),
)
os.fchdir(fd)
show("back", where)
os.chdir(f"../{NAME}/.")
show("again", where)

print("forked", flush=True)
if os.fork() == 0:
    show("child", read, "g")
    os.chdir("..")
    write("of the child", "x")
    os._exit(0)
os.wait()
show(
    "made",
    lambda: (sorted(os.listdir("..")) == sorted([NAME, "of the child"]), sorted(os.listdir())),
)
os.unlink("../of the child")
for command in ["cat", "g"], ["sh", "-c", "echo in a shell >sh; cd ..; ls | wc -l; rm n*/sh"]:
    show(command[0], lambda command=command: subprocess.run(command, capture_output=True).stdout)
thread = threading.Thread(target=show, args=("thread", read, "g"))
thread.start()
thread.join()

up = os.open("..", os.O_RDONLY)
thread = threading.Thread(target=lambda: [os.fchdir(at) for at in (up, fd) * 2000])
thread.start()
while thread.is_alive():  # it leaves the directory that this one looks from
    os.stat(".")
thread.join()

os.mkdir("moved")
os.chdir("moved")
os.rename("../moved", HERE + "/near")  # by now its name is short
show("moved", where)
os.rmdir(HERE + "/near")
show("removed", kernel_getcwd)
show("in it", os.mkdir, "x")
os.fchdir(fd)
show("out of it", where)

os.chdir(HERE)
show("top", where)
show("in one go", os.stat, "/".join([NAME] * 30))
for command in (
    "find . | wc -l",
    "find . -name g -execdir cat {} +",
    "du -a | wc -l",
    "rm -rf n*; ls -A",
):
    show(command, lambda command=command: subprocess.run(command, shell=True, capture_output=True))

half = "/".join([NAME] * 15)
os.makedirs(half)
os.chdir(half)
os.makedirs(half)  # each is short enough, both together are not
write(half + "/f", "both")
show("both", read, half + "/f")
show("renamed", os.rename, half + "/f", half + "/g")
show("linked", os.link, half + "/g", "f")
os.chdir(half)
show("there", where)
os.chdir(HERE)
show("rmtree", shutil.rmtree, NAME)
show("left", os.listdir)
sys.stdout.flush()
