"""Owners of files as programs in user namespaces see them, and who owns what they make.."""

import ctypes
import os
import struct
import subprocess
import sys

NEWUSER, NOBODY = 0x10000000, 65534
libc = ctypes.CDLL(None, use_errno=True)


def seen(*names):
    return [(name, os.stat(name).st_uid, os.stat(name).st_gid) for name in names]


def attempt(function, *words):
    try:
        return function(*words)
    except OSError as error:
        return error.strerror


def write(name, text):
    with open(f"/proc/self/{name}", "w") as file:
        file.write(text)


def enter(users, groups, also=lambda: None):
    """Calls also() while only the ids of users are known."""
    assert libc.unshare(NEWUSER) == 0
    write("setgroups", "deny")
    write("uid_map", users)
    also()
    write("gid_map", groups)


LIST = "system.posix_acl_access"


def make_list(user, group):
    """An access control list that names these two; see acl(5)."""
    entries = (1, 6, -1), (2, 4, user), (4, 4, -1), (8, 4, group), (16, 6, -1), (32, 0, -1)
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *entry) for entry in entries)


def named(file):
    words = struct.iter_unpack("<HHi", os.getxattr(file, LIST)[4:])
    return [(tag, number) for tag, _, number in words]


def name_others(file):
    """Users and groups in lists are called by the ids of the namespace."""
    print(attempt(named, "listed"), attempt(named, file))
    for user, group in (0, 0), (5, 6), (3, 0), (0, 3), (-1, 0):
        print(
            user,
            group,
            attempt(os.setxattr, file, LIST, make_list(user, group)),
            attempt(named, file),
        )
    with open(file) as opened:
        print(attempt(os.setxattr, opened.fileno(), LIST, make_list(5, 0)), named(opened.fileno()))


def by_shell(script):
    sys.stdout.flush()
    subprocess.run(["/bin/sh", "-c", script], check=False, stderr=subprocess.STDOUT)


def open_what_is_shut(place):
    """Of one's own, which root of a namespace may do whatever the mode says."""
    os.mkdir(f"shut-{place}", 0o500)
    os.close(os.open(f"shut-{place}/file", os.O_CREAT, 0))
    os.chmod(f"shut-{place}", 0)
    os.rename(f"shut-{place}/file", f"shut-{place}/renamed")
    with open(f"shut-{place}/renamed", "r+") as file:
        file.write("text")
    able = [os.access(f"shut-{place}/renamed", how) for how in (os.R_OK, os.W_OK, os.X_OK)]
    return able, os.listdir(f"shut-{place}"), seen(f"shut-{place}/renamed")


def work(place):
    """What can be done to files, and by a program that is started."""
    with open(f"by-{place}", "w") as file:
        file.write("text")
        print(place, os.fstat(file.fileno()).st_uid, os.fstat(file.fileno()).st_gid)
        print(attempt(os.fchown, file.fileno(), 77, -1), attempt(os.fchown, file.fileno(), -1, -1))
    path = os.open(f"by-{place}", os.O_PATH)
    print(attempt(os.fchown, path, 77, -1))
    os.close(path)
    print(os.geteuid(), seen(".", "roots", "nobodys", f"by-{place}"))
    print(attempt(os.chown, "nobodys", 0, 0), attempt(os.chown, "nobodys", 9, -1))
    print(attempt(os.chown, "missing", 9, -1), attempt(os.chown, "nobodys/file", 9, 9))
    print(attempt(os.access, "private", os.R_OK), attempt(os.listdir, "closed"))
    print(attempt(os.chmod, "nobodys", 0o640), attempt(os.chmod, "roots", 0o600))
    if os.geteuid() == 0:
        print(attempt(open_what_is_shut, place))
    by_shell(f"touch shell-{place}; stat -c '%n %u:%g' . roots nobodys shell-{place}; cat private")


def mapped():
    enter("0 65534 1", "0 65534 1", lambda: print("users only", seen("nobodys", "roots")))
    work("mapped")
    name_others("by-mapped")
    enter("5 0 1", "6 0 1")
    work("nested")
    name_others("by-nested")


def unmapped():
    assert libc.unshare(NEWUSER) == 0
    work("unmapped")


def by_command():
    by_shell(
        "unshare -U --map-root-user sh -c 'touch command; stat -c %u:%g command nobodys roots'"
    )


def in_child(act, user=NOBODY):
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
        libc.prctl(4, 1)  # PR_SET_DUMPABLE: else /proc/self is root's
        act()
        sys.stdout.flush()
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0


def ranges():
    """Maps of several ids, which somebody outside writes: others have numbers there, too."""
    (asked, ask), (told, tell) = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        assert libc.unshare(NEWUSER) == 0
        os.write(ask, b"x")
        os.read(told, 1)
        print(seen("roots", "nobodys", "others"))
        by_shell("stat -c '%n %u:%g' roots nobodys others")
        os._exit(0)
    os.read(asked, 1)
    for name in "uid_map", "gid_map":
        with open(f"/proc/{pid}/{name}", "w") as file:
            file.write("0 0 10\n20 10 5\n100 65534 1")
    os.write(tell, b"x")
    assert os.waitpid(pid, 0)[1] == 0


for name in "roots", "nobodys", "private", "others", "listed":
    open(name, "w").close()
os.mkdir("closed", 0o700)
os.chmod("private", 0o600)
os.chmod(".", 0o777)
os.chown("nobodys", NOBODY, NOBODY)
os.chown("others", 12, 7)
os.setxattr("listed", LIST, make_list(NOBODY, 12))
in_child(mapped)
in_child(unmapped)
in_child(by_command)
ranges()
print(seen(*sorted(os.listdir("."))))
print([named(name) for name in ("listed", "by-mapped", "by-nested")])
