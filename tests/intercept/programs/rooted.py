"""What a process sees whose root is a directory below where it stands. argv[1:]: the cases; all."""

import ctypes
import errno
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import threading
import time

AT_FDCWD, OPENAT2 = -100, 437
NO_XDEV, NO_MAGICLINKS, NO_SYMLINKS, BENEATH, IN_ROOT = 1, 2, 4, 8, 16
CLONE_FS = 0x200
NOBODY, OMIT = 65534, (1 << 30) - 2
libc = ctypes.CDLL(None, use_errno=True)
base = os.getcwd()


def told(result):
    """What a call has come to, with what is another one in each place left out."""
    if isinstance(result, str):
        return result.replace(base, "BASE")
    return sorted(result) if isinstance(result, list) else result


def say(label, function, *words, **named):
    try:
        result = told(function(*words, **named))
    except OSError as error:
        result = errno.errorcode[error.errno]
    print(label, result, flush=True)


def read(path, **named):
    fd = os.open(path, os.O_RDONLY, **named)
    try:
        return os.read(fd, 100).decode()
    finally:
        os.close(fd)


def write(path, text, flags=os.O_CREAT | os.O_WRONLY | os.O_TRUNC):
    fd = os.open(path, flags, 0o644)
    os.write(fd, text.encode())
    os.close(fd)


def kernel_cwd():
    """As the call tells it: of what is outside libc says that it is missing."""
    room = ctypes.create_string_buffer(4096)
    if libc.syscall(79, room, 4096) < 0:
        raise OSError(ctypes.get_errno(), "getcwd")
    return room.value.decode()


def restricted(path, resolve, dirfd=AT_FDCWD, flags=os.O_RDONLY):
    how = struct.pack("QQQ", flags, 0, resolve)
    fd = libc.syscall(OPENAT2, dirfd, path.encode(), how, len(how))
    if fd < 0:
        raise OSError(ctypes.get_errno(), "openat2")
    try:
        return os.fstat(fd).st_mode & 0o170000
    finally:
        os.close(fd)


def run(*command, **named):
    done = subprocess.run(
        command, stdin=subprocess.PIPE, capture_output=True, text=True, check=False, **named
    )
    return f"{done.returncode} {done.stdout!r} {done.stderr!r}"


def furnish(*names):
    """Programs, and what they need to run."""
    for name in names:
        program = shutil.which(name)
        listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=True)
        shutil.copy(program, "jail/bin")
        for library in re.findall(r"/\S+", listed.stdout):
            os.makedirs(f"jail{os.path.dirname(library)}", exist_ok=True)
            shutil.copy(library, f"jail{library}")


def build():
    for name in ("jail/bin", "jail/etc", "jail/sub/deep", "jail/tmp", "beside"):
        os.makedirs(name)
    for name in ("jail/etc/name", "beside/name", "name"):
        write(name, f"{name}\n")
    write("jail/bin/script", '#!/bin/sh\necho "$0" "$@"; pwd\n')
    write("jail/bin/lost", "#!/beside/sh\n")
    os.chmod("jail/bin/script", 0o755)
    os.chmod("jail/bin/lost", 0o755)
    links = {
        "jail/absolute": "/etc/name", "jail/up": "../../../etc/name", "jail/directory": "/sub",
        "jail/out": f"{base}/name", "jail/loop": "/loop", "jail/dangling": "/tmp/made",
        "jail/sub/relative": "deep/../../etc/name",
        "jail/sub/deep/chain": "../../directory/relative",
        "jail/dots": "sub/..", "beside/absolute": "/etc/name", "beside/relative": "../name",
        "beside/jailed": "../jail/absolute", "jail/root": "/",
    }  # fmt: skip
    for name, target in links.items():
        os.symlink(target, name)


# ---- what is done in children of their own -----------------------------------------------------


def paths():
    os.chroot("jail")
    os.chdir("/")
    say("cwd", os.getcwd)
    say("list", os.listdir, "/")
    for name in (
        "/etc/name", "etc/name", "../etc/name", "/../../etc/name", "//etc//name", "/etc/./name",
        "absolute", "/absolute", "up", "/up", "directory/relative", "out", "/out", "loop",
        "dots/up",
        "sub/deep/chain", "/directory/deep/chain", "/etc/name/", "/etc/name/..", "nothing/..",
        "/dots/../dots/etc/name", base + "/name", "root/root/etc/name", "/sub/../sub/../../up",
    ):  # fmt: skip
        say(f"read {told(name)}", read, name)
    for name in (
        "/",
        "..",
        "root",
        "root/",
        "directory",
        "directory/",
        "dots/.",
        "/sub/deep/../..",
        "",
    ):
        say(f"list {name}", os.listdir, name)
        say(f"link {name}", lambda name=name: os.lstat(name).st_mode & 0o170000)
        say(f"same {name}", lambda name=name: os.path.samestat(os.stat(name), os.stat("/")))
    os.chdir("directory/deep")
    say("cwd", os.getcwd)
    say("kernel", kernel_cwd)
    say("read", read, "../../etc/name")
    say("read", read, "../../../../../etc/name")
    say("read", read, "chain")
    os.chdir("../../..")
    say("cwd", os.getcwd)
    for beside in range(1016, 1024):  # some of them are the interception's
        say("beside", os.path.samestat, os.stat("/", dir_fd=beside), os.stat("/"))


def changes():
    os.chroot("jail")
    os.chdir("/sub")
    say("through", write, "/dangling", "made\n")
    say("made", read, "/tmp/made")
    say("exclusive", os.open, "/dangling", os.O_CREAT | os.O_EXCL)
    say("nofollow", os.open, "/dangling", os.O_NOFOLLOW)
    say("mkdir", os.mkdir, "/new")
    say("mkdir", os.mkdir, "/new/")
    say("mkdir", os.mkdir, "/directory")
    say("mkdir", os.mkdir, "/nowhere/new")
    say("mkdir", os.mkdir, "/")
    say("mkdir", os.mkdir, "/..")
    say("mkdir", os.mkdir, "/new/.")
    say("rmdir", os.rmdir, "/directory")
    say("rmdir", os.rmdir, "/directory/")
    say("rmdir", os.rmdir, "/new/.")
    say("rmdir", os.rmdir, "/new/../new/")
    say("rename", os.rename, "/tmp/made", "/directory/moved")
    say("rename", os.rename, "../directory", "/named")
    say("rename", os.rename, "/named/", "/directory")
    say("rename", os.rename, "/named", "/directory")
    say("rename", os.rename, "/", "/new")
    say("link", os.link, "/directory/moved", "/hard")
    say("link", os.link, "/absolute", "/soft", follow_symlinks=False)
    say("readlink", os.readlink, "/soft")
    say("symlink", os.symlink, "/sub/moved", "/symbolic")
    say("read", read, "/symbolic")
    say("unlink", os.unlink, "/symbolic/")
    say("unlink", os.unlink, "/symbolic")
    say("unlink", os.unlink, "/")
    say("truncate", os.truncate, "/absolute", 4)
    say("read", read, "/etc/name")
    say("chmod", os.chmod, "/soft", 0o600)
    say("mode", lambda: oct(os.stat("/etc/name").st_mode))
    say("lchown", os.lchown, "/soft", 1, 1)
    say("owner", lambda: (os.lstat("/soft").st_uid, os.stat("/soft").st_uid))
    say("utime", os.utime, "/directory/moved", (1, 2))
    say("time", lambda: os.stat("/hard").st_mtime)
    say("access", os.access, "/up", os.R_OK)
    say("statvfs", lambda: os.statvfs("/nothing"))
    say("list", os.listdir, "/")


def outside():
    """Standing outside, with open directories from there."""
    here, beside = os.open(".", os.O_RDONLY), os.open("beside", os.O_RDONLY)
    real = os.open("/", os.O_RDONLY)
    os.chroot("jail")
    say("cwd", os.getcwd)
    say("kernel", kernel_cwd)
    for name in (
        "name", "beside/name", "beside/relative", "beside/absolute", "beside/jailed",
        "jail/absolute", "jail/up", "jail/../name", "jail/../../name", "../nothing",
    ):  # fmt: skip
        say(f"read {name}", read, name)
        say(f"at {name}", read, name, dir_fd=here)
        say(f"above {name}", read, f"../{name}", dir_fd=beside)
    say("real", lambda: "proc" in os.listdir(real))
    say("real", lambda: os.stat("etc", dir_fd=real).st_mode & 0o170000)
    inside = os.open("/", os.O_RDONLY)
    say("inside", lambda: os.path.samestat(os.stat("..", dir_fd=inside), os.stat("/")))
    say("inside", read, "../../etc/name", dir_fd=inside)
    deep = os.open("/sub/deep", os.O_RDONLY)
    say("deep", read, "../../../../etc/name", dir_fd=deep)
    say("deep", read, "/etc/name", dir_fd=deep)
    os.fchdir(inside)
    say("cwd", os.getcwd)
    os.fchdir(beside)
    say("kernel", kernel_cwd)
    say("out", lambda: os.chroot(".."))
    say("list", os.listdir, "/")
    say("read", read, "/jail/up")
    os.chdir("/")
    say("cwd", os.getcwd)
    os.fchdir(real)
    os.chroot(".")
    say("back", lambda: "proc" in os.listdir("/"))
    os.chdir(base)
    say("cwd", os.getcwd)
    say("read", read, base + "/name")


def nested():
    os.chroot("jail")
    os.chroot("sub") if os.path.isdir("sub") else os.chroot("/sub")
    os.chdir("/deep")
    say("cwd", os.getcwd)
    say("read", read, "../../etc/name")
    say("list", os.listdir, "/")
    say("list", os.listdir, "../..")
    os.chroot(".")
    say("list", os.listdir, "/")
    say("cwd", os.getcwd)


def errors():
    for name in ("nothing", "name", "jail/loop", "jail/etc/name/x", "x" * 300, "", "name/"):
        say(f"chroot {name[:20]}", os.chroot, name)
    say("fault", libc.chroot, ctypes.c_void_p(8))
    say("fault", lambda: errno.errorcode[ctypes.get_errno()])
    os.mkdir("closed", 0o700)
    os.mkdir("closed/jail")
    os.setresuid(NOBODY, NOBODY, NOBODY)
    say("search", os.chroot, "closed/jail")
    say("enter", os.chroot, "closed")
    say("right", os.chroot, "jail")
    say("right", os.chroot, "/")
    say("missing", os.chroot, "nothing")
    say("list", os.listdir, ".")


def judged():
    """Flags and other words before paths, and of two paths the first before the second."""
    room, omit = ctypes.create_string_buffer(256), (ctypes.c_long * 4)(0, OMIT, 0, OMIT)
    os.chroot("jail")
    os.chdir("/")
    for path in b"nothing/name", b"/loop/name", b"etc/name/name", b"sub":
        for number, *words in (
            (262, room, 1 << 20),  # newfstatat
            (332, 0, 1 << 31, room),  # statx
            (439, 9, 0),  # faccessat2
            (280, omit, 0),  # utimensat
            (280, None, 1 << 20),
            (263, 1 << 20),  # unlinkat
            (265, AT_FDCWD, b"new", 1 << 20),  # linkat
            (316, AT_FDCWD, b"new", 3),  # renameat2
        ):
            ctypes.set_errno(0)
            print(number, path, libc.syscall(number, AT_FDCWD, path, *words), ctypes.get_errno())
        for old in "nothing", "etc/name":
            say("link", os.link, old, path)
            say("rename", os.rename, old, path)


def dropped():
    """What is above the root need not be searchable."""
    os.makedirs("private/jail/sub/more")
    write("private/jail/sub/name", "private\n")
    os.symlink("/sub/name", "private/jail/link")
    os.chmod("private", 0o700)
    os.chroot("private/jail")
    os.chdir("/")
    os.setresuid(NOBODY, NOBODY, NOBODY)
    say("read", read, "/link")
    say("read", read, "link")
    say("list", os.listdir, "/sub/..")
    say("cwd", os.getcwd)
    say("chdir", os.chdir, "/sub/more")
    say("cwd", os.getcwd)
    say("read", read, "../name")
    say("read", read, "../../link")
    say("chdir", os.chdir, "..")
    say("cwd", os.getcwd)


def renamed():
    """The root goes by another name, or is removed."""
    os.makedirs("a/jail/sub")
    write("a/jail/name", "renamed\n")
    gone, done = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        os.chroot("a/jail")
        os.chdir("/sub")
        os.write(gone[1], b".")
        os.read(done[0], 1)
        say("cwd", os.getcwd)
        say("read", read, "/name")
        say("read", read, "../name")
        say("read", read, "../../../name")
        os.chdir("..")
        say("cwd", os.getcwd)
        os.unlink("name")
        os.rmdir("/sub")
        os.write(gone[1], b".")
        os.read(done[0], 1)
        say("list", os.listdir, "/")
        say("make", os.mkdir, "/new")
        say("missing", os.stat, "/nothing")
        os._exit(0)
    os.read(gone[0], 1)
    os.rename("a", "b")
    os.mkdir("a")
    os.write(done[1], b".")
    os.read(gone[0], 1)
    os.rmdir("b/jail")
    os.write(done[1], b".")
    os.waitpid(pid, 0)


def programs():
    furnish("sh", "cat", "ls", "pwd", "env")
    os.symlink("/bin/sh", "jail/bin/linked")
    os.chroot("jail")
    os.chdir("/sub")
    say("cat", run, "/bin/cat", "/absolute", "deep/chain")
    say("shell", run, "/bin/sh", "-c", "pwd; cd ../..; pwd; ls; cat < /up; (cd /directory; pwd -P)")
    say("linked", run, "/bin/linked", "-c", "echo $0")
    say("search", run, "pwd", env={"PATH": "/bin"})
    say("script", run, "/bin/script", "a", "b")
    say("script", run, "../bin/script")
    say("lost", lambda: run("/bin/lost"))
    say("real", lambda: run("/usr/bin/env"))
    say("relative", run, "deep/../../bin/pwd")
    say("spawned", lambda: os.waitpid(os.posix_spawn("/bin/pwd", ["pwd"], {}), 0)[1])
    sys.stdout.flush()
    if os.fork() == 0:
        os.execv("/bin/sh", ["sh", "-c", "echo $0; exec /bin/sh -c 'exec pwd'"])
    os.wait()
    os.chroot("/sub")
    say("gone", lambda: run("/bin/pwd"))


def shared():
    """By threads and children, not by their parents; as the working directory is."""
    pid = os.fork()
    if pid == 0:
        os.chroot("jail")
        os._exit(0)
    os.waitpid(pid, 0)
    say("parent", read, "name")
    say("parent", lambda: os.path.isdir("/proc"))
    thread = threading.Thread(target=os.chroot, args=("jail",))
    thread.start()
    thread.join()
    say("thread", os.listdir, "/")
    seen = []
    threads = [threading.Thread(target=lambda: seen.append(read("/up"))) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    say("threads", lambda: seen)
    os.chdir("/")
    pid = os.fork()
    if pid == 0:
        say("child", os.listdir, "..")
        os.chroot("sub")
        say("child", os.listdir, "/")
        os._exit(0)
    os.waitpid(pid, 0)
    say("parent", os.listdir, "/")


def removed():
    """The working directory, below the root."""
    os.mkdir("jail/sub/deep/deeper")
    os.chroot("jail")
    os.chdir("/sub/deep/deeper")
    os.rmdir("/sub/deep/deeper")
    say("cwd", os.getcwd)
    say("list", os.listdir, ".")
    say("missing", os.stat, "x")
    for name in ("..", "./..", "../..", "../../..", "../../../../etc", "../../../up/.."):
        say(f"list {name}", os.listdir, name)
    say("read", read, "../../../../up")
    say("chdir", os.chdir, "../..")
    say("cwd", os.getcwd)


def raced():
    """Other threads look while one goes from root to root."""
    os.chroot("jail")
    seen = set()

    def look():
        while len(seen) < 1 or not done.is_set():
            seen.add(read("/up"))

    done = threading.Event()
    threads = [threading.Thread(target=look) for _ in range(3)]
    for one in threads:
        one.start()
    for _ in range(20):
        os.chroot("/")
        time.sleep(0.01)
    done.set()
    for one in threads:
        one.join()
    say("seen", sorted, seen)


def sockets():
    os.chroot("jail")
    os.chdir("/sub")
    one, two = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
    say("bind", one.bind, "/directory/socket")
    one.listen()
    say("name", one.getsockname)
    for name in ("/sub/socket", "socket", "../../sub/socket", "/nothing", "/absolute"):
        say(f"connect {name}", two.connect, name)
        two.close()
        two = socket.socket(socket.AF_UNIX)
    say("again", two.bind, "socket")
    say("again", two.bind, "/absolute")
    say("list", os.listdir, ".")


def opens():
    os.chroot("jail")
    os.chdir("/sub")
    sub = os.open("/sub", os.O_RDONLY)
    for resolve in (0, NO_XDEV, NO_MAGICLINKS, NO_SYMLINKS, BENEATH, IN_ROOT):
        for name in ("/etc/name", "/absolute", "../up", "deep", "deep/chain", "../..", "/deep",
                     "../../../etc/name", "/loop", "/nothing"):  # fmt: skip
            say(f"{resolve} {name}", restricted, name, resolve)
            say(f"{resolve} {name} at", restricted, name, resolve, sub)
    say("nofollow", restricted, "/absolute", 0, flags=os.O_NOFOLLOW)


CASES = (
    paths, changes, outside, nested, errors, judged, dropped, renamed, programs, shared, removed,
    raced, sockets, opens,
)  # fmt: skip

os.umask(0o022)
for case in CASES:
    if len(sys.argv) > 1 and case.__name__ not in sys.argv[1:]:
        continue
    place = case.__name__
    print(f"--- {place}", flush=True)
    os.mkdir(place)
    os.chmod(place, 0o755)
    os.chdir(place)
    base = os.getcwd()
    build()
    child = os.fork()
    if child == 0:
        case()
        sys.stdout.flush()
        os._exit(0)
    print("status", os.waitpid(child, 0)[1])
    os.chdir("..")
