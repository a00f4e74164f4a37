"""openat2(2) on ways into and out of the directory `mount`, which lies in the working directory."""

import ctypes
import os
import stat
import struct

NO_XDEV, NO_MAGICLINKS, NO_SYMLINKS, BENEATH, IN_ROOT = 1, 2, 4, 8, 16
WAYS = """
    mount/f mount/d/f mount/../r mount/d/../../r /mount/f /mount/../r mount mount/.. mount/up
    mount/out mount/back mount/round mount/rooted in/f far/f rooted in/../f f ../r ../f ../../r up
    out back round ../mount/f ../mount/d/f /f /d/f /../r /up mount/../r/ mount/../r/x
    mount/../mount/../r"""
ABSOLUTE = "/r /mount/f /in/f /mount/none /mount/../none"
CROSSING = """above mount/f, above mount, above mount/../r, above in/f, above far/f, here mount/d/f,
    mount ../r, mount up, mount out, mount round, d ../../r"""
libc = ctypes.CDLL(None, use_errno=True)


def opened(dirfd, path, flags=os.O_RDONLY, resolve=0):
    how = struct.pack("QQQ", flags, 0o600 if flags & os.O_CREAT else 0, resolve)
    fd = libc.syscall(437, dirfd, os.fsencode(path), how, len(how))
    if fd < 0:
        return ctypes.get_errno()
    return os.read(fd, 99) if flags == os.O_RDONLY and stat.S_ISREG(os.fstat(fd).st_mode) else True


above = os.getcwd()
for name, text in {
    "r": "real",
    "mount/f": "inside",
    "mount/d/f": "deeper",
    "mount/r": "other",
}.items():
    os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
    with open(name, "w") as file:
        file.write(text)
for name, target in {
    "mount/up": "../r",
    "mount/out": f"{above}/r",
    "mount/back": "../mount/d/f",
    "mount/round": f"{above}/mount/f",
    "mount/rooted": "/d/f",
    "in": "mount/d",
    "far": f"{above}/mount/d",
    "rooted": "/mount/f",
}.items():
    os.symlink(target, name)
starts = {
    "above": os.open(".", os.O_PATH),
    "mount": os.open("mount", os.O_PATH),
    "d": os.open("mount/d", os.O_RDONLY),
}
for place, fd in [*starts.items(), ("here", -100)]:
    for way in [*WAYS.split(), *(above + way for way in ABSOLUTE.split())]:
        for restriction in NO_MAGICLINKS, NO_SYMLINKS, BENEATH, IN_ROOT, BENEATH | NO_SYMLINKS:
            how = os.O_PATH if way.endswith(("mount", "..")) else os.O_RDONLY
            print(place, way.removeprefix(above), restriction, opened(fd, way, how, restriction))
    for restriction in BENEATH, IN_ROOT, NO_SYMLINKS:
        way = {"above": "mount/new", "mount": "new", "d": "new", "here": "mount/../made"}[place]
        print(place, way, restriction, opened(fd, way, os.O_CREAT | os.O_RDWR, restriction))
        print(sorted(os.listdir(".")), sorted(os.listdir("mount")), sorted(os.listdir("mount/d")))
# What crosses, last: on one file system nothing does.
print("NO_XDEV")
for way in CROSSING.split(","):
    place, path = way.split()
    fd = {**starts, "here": -100}[place]
    print(place, path, opened(fd, path, resolve=NO_XDEV))
