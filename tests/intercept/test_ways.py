"""Ways that the kernel cannot go to their end: above a mountpoint that is not on disk, by "..", and
through real symlinks, which may have been something else a moment ago."""

import sys

import pytest

#: Looks at each way, from the top and from in between. `top` holds a/deep/point, which is where the
#: mount is: in the plain directory all of it is on disk, in the run nothing of it.
_LOOKS = """
import os, sys
top, links = sys.argv[1], sys.argv[2]
def said(call, *args, **how):
    try:
        return call(*args, **how)
    except OSError as error:
        return error.errno
def kind(way, **how):
    return oct(os.stat(way, **how).st_mode >> 12)
def text(way, **how):
    fd = os.open(way, os.O_RDONLY, **how)
    try:
        return os.read(fd, 9) if os.stat(fd).st_mode & 0o100000 else sorted(os.listdir(fd))
    finally:
        os.close(fd)
def came(way):
    os.chdir(way)
    return os.path.relpath(os.getcwd(), top)
with open(top + "/a/deep/point/f", "w") as file:
    file.write("bytes")
base, base_of_links = os.path.basename(top), os.path.basename(links)
os.symlink(top + "/a", links + "/above")
os.symlink(top + "/a/deep/point", links + "/point")
far = links + "/../" + base_of_links
ways = ["a/deep/point/f", "a/../a/deep/point/f", "a/deep/../deep/point/f",
        "a/deep/point/../point/f",
        "a/deep/point/../../deep", "a/..", "a/deep/..", "a/deep/../..", "a/./deep/../.",
        "a/deep/../none", f"../{base}/a/deep/point/f", f"../{base}/a", "a/none/../deep/point/f",
        "a/deep/point/f/..", "a/../a/../a",
        "/usr/../usr/bin/../../etc/.." + top + "/a/deep/point/f",
        "/.." + top + "/a", links + "/above", links + "/above/", links + "/above/deep",
        links + "/above/deep/point/f", links + "/above/../a/deep/point/f", links + "/above/..",
        links + "/point/..", links + "/point/../point/f", far + "/point/f", links + "/above/none",
        links + "/none/../above/deep", "/usr/../none", "/usr/bin/../lib/../none/x"]
places = [top, top + "/a", top + "/a/deep", top + "/a/deep/point", "/"]
for place in places:
    os.chdir(place)
    at = os.open(place, os.O_RDONLY)
    for number, way in enumerate(ways):
        if way[0] != "/":
            way = os.path.relpath(top, place) + "/" + way
        found = [said(kind, way), said(kind, way, follow_symlinks=False), said(text, way),
                 said(os.access, way, os.R_OK), said(text, way, dir_fd=at)]
        print(number, found, said(came, way))
        os.chdir(place)
"""


@pytest.fixture
def links(tmp_path):
    """Two directories of links, whose names are as long."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    return tmp_path / "one", tmp_path / "two"


def test_ways_above_a_mountpoint_lead_where_they_do_on_disk(plain, mounted, links, tmp_path):
    """Also up from them, from in between, and through links to them."""
    on_disk = tmp_path / "no"
    (on_disk / "a/deep/point").mkdir(parents=True)
    wanted = plain(sys.executable, "-c", _LOOKS, on_disk, links[0])
    assert (wanted.status, wanted.err) == (0, b"")
    on_disk.rename(tmp_path / "yes")
    mounted.deep = str(on_disk / "a/deep/point")
    (tmp_path / "no").mkdir()
    found = mounted(sys.executable, "-c", _LOOKS, on_disk, links[1], deep=True)
    assert found.seen() == wanted.seen()


#: Looks from directories above the mount, which are not on disk in the run, at what is on disk
#: beside them.
_BESIDE = """
import os, sys
top, links = sys.argv[1], sys.argv[2]
def said(call, *args):
    try:
        return call(*args)
    except OSError as error:
        return error.errno
os.symlink(top + "/a", links + "/above")
ways = ["a/..", "a/../beside", "a/deep/../../beside", "a/deep/../../beside/", "a/../link",
        "a/../link/.", "a/../dangling", "a/../none", "a/none/../../beside", "a/../d/..", "a/../d"]
ways = [top + "/" + way for way in ways] + [links + "/above/../beside", links + "/above/../d"]
for place in (top, top + "/a", top + "/a/deep", "/"):
    os.chdir(place)
    for number, way in enumerate([*ways, *map(os.path.relpath, ways[:2])]):
        print(number, said(lambda: open(way).read()), said(lambda: sorted(os.listdir(way))),
              said(os.access, way, os.R_OK), said(os.readlink, way), said(os.lstat, way) == 2,
              said(os.chdir, way), os.path.relpath(os.getcwd(), top))
        os.chdir(place)
"""


def put_beside(top):
    (top / "d").mkdir(parents=True)
    (top / "beside").write_text("beside")
    (top / "link").symlink_to("beside")
    (top / "dangling").symlink_to("nowhere")


def test_ways_go_up_from_above_a_mountpoint_to_what_is_on_disk(plain, mounted, links, tmp_path):
    on_disk = tmp_path / "no"
    put_beside(on_disk)
    (on_disk / "a/deep/point").mkdir(parents=True)
    wanted = plain(sys.executable, "-c", _BESIDE, on_disk, links[0])
    assert (wanted.status, wanted.err) == (0, b"")
    on_disk.rename(tmp_path / "yes")
    mounted.deep = str(on_disk / "a/deep/point")
    put_beside(on_disk)
    found = mounted(sys.executable, "-c", _BESIDE, on_disk, links[1], deep=True)
    assert found.seen() == wanted.seen()


#: Ways into the mount that go up from what is a directory, and from what is none.
_UP_FROM = """
import os, sys
real, here = sys.argv[1], os.getcwd()
open("f", "w").close()
open(real + "/file", "w").close()
os.makedirs(real + "/d/in")
os.symlink(real + "/file", "to-file")
up = "/.." * 20 + here + "/f"
def said(call, *args):
    try:
        return call(*args) and None
    except OSError as error:
        return error.errno
for way in (real + "/file", real + "/file/.", real + "/none", real + "/d", real + "/d/in/../..",
            real + "/file/../d", real, "to-file", "f", "."):
    print(way.removeprefix(real), said(os.stat, way + up), said(os.mkdir, way + up),
          said(os.readlink, way + up), said(os.rename, way + up, way + up))
"""

#: Calls on entries, of which links on disk lead into the mount: to the entry, and to its directory.
_ENTRIES = """
import itertools, os, sys
links, here = sys.argv[1], os.getcwd()
def said(call, *args):
    try:
        return call(*args) and None
    except OSError as error:
        return error.errno
os.makedirs("d/empty")
os.symlink(here + "/d", links + "/d")
os.symlink(here + "/d/empty", links + "/empty")
os.symlink(here + "/none", links + "/none")
open(links + "/file", "w").close()
open("f", "w").close()
for name in ("/empty/", "/empty/.", "/empty/./", "/none/"):
    for call in (os.rmdir, os.unlink, os.mkdir):
        print(name, call.__name__, said(call, links + name), os.path.isdir("d/empty"))
for call in (os.link, os.rename):
    for ways in (("f", "/d/f"), ("/d/f", "f"), ("/d/f", "/d/g"), ("f", "/d/none/x"), ("f", "/no/x"),
                 ("none", "/d/f"), ("/d/none", "f"), ("f", "/d/empty")):
        old, new = (links + way if way[0] == "/" else way for way in ways)
        held = [sorted(os.listdir(way)) for way in (".", "d", "d/empty")]
        print(call.__name__, ways, said(call, old, new), held)
for old, new in itertools.product(("d/f", "none"), ("/d/", "/none/", "/file/", "/new/")):
    print(new, said(os.link, old, links + new), said(os.link, links + "/file", new[1:]))
"""


def test_the_way_up_is_from_directories(plain, mounted, links):
    wanted = plain(sys.executable, "-S", "-c", _UP_FROM, links[0])
    assert (wanted.status, wanted.err) == (0, b"")
    assert mounted(sys.executable, "-S", "-c", _UP_FROM, links[1]).seen() == wanted.seen()


def test_entries_behind_links_on_disk(plain, mounted, links):
    wanted = plain(sys.executable, "-S", "-c", _ENTRIES, links[0])
    assert (wanted.status, wanted.err) == (0, b"")
    assert mounted(sys.executable, "-S", "-c", _ENTRIES, links[1]).seen() == wanted.seen()


#: What was a directory is a link into the mount, and what was a link is a directory.
_CHANGES = """
import os, sys
links, here = sys.argv[1], os.getcwd()
os.mkdir("d")
open("d/f", "w").close()
def look():
    for way in ("/d/f", "/d/none", "/d/../d/f", "/d"):
        print(way, os.path.exists(links + way), os.path.isdir(links + way))
os.mkdir(links + "/d"); look()
os.rmdir(links + "/d"); os.symlink(here + "/d", links + "/d"); look()
os.unlink(links + "/d"); look()
os.symlink("e", links + "/d"); look()
os.symlink(here + "/d", links + "/e"); look()
os.unlink(links + "/e"); os.mkdir(links + "/e"); look()
os.unlink(links + "/d"); os.rename(links + "/e", links + "/d"); look()
"""


def test_what_was_missing_is_found_behind_a_link_made_since(plain, mounted, links):
    wanted = plain(sys.executable, "-c", _CHANGES, links[0])
    assert (wanted.status, wanted.err) == (0, b"")
    assert mounted(sys.executable, "-c", _CHANGES, links[1]).seen() == wanted.seen()


#: Becomes another program, which is killed where it calls openat2(2).
_FILTERED = """
import ctypes, os, struct, sys
code = [(0x20, 0, 0, 0), (0x15, 0, 1, 437), (0x06, 0, 0, 0x80000000), (0x06, 0, 0, 0x7FFF0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in code))
filter = struct.pack("HxxxxxxQ", 4, ctypes.addressof(code))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, filter, 0, 0) == 0
os.execvp(sys.argv[1], sys.argv[1:])
"""


def test_a_filter_from_outside_ends_nobody(plain, mounted, links):
    wanted = plain(sys.executable, "-c", _CHANGES, links[0])
    mounted.through = [sys.executable, "-c", _FILTERED]
    assert mounted(sys.executable, "-c", _CHANGES, links[1]).seen() == wanted.seen()


def test_a_filter_of_a_program_ends_nobody(plain, mounted, links):
    wanted = plain(sys.executable, "-c", _CHANGES, links[0])
    change = [sys.executable, "-c", _CHANGES, links[1]]
    found = mounted(sys.executable, "-c", _FILTERED, *change)
    assert found.seen() == wanted.seen()


#: Opens that follow on ones in vain, which the core makes in another way: what they find, what they
#: refuse, and who may interrupt them, is as ever.
_IN_VAIN = """
import os, signal, sys
links, here = sys.argv[1], os.getcwd()
def vain():
    for number in range(3):
        try:
            os.open(f"{links}/none/{number}", os.O_RDONLY)
        except FileNotFoundError:
            pass
def said(way, flags, *mode):
    vain()
    try:
        fd = os.open(way, flags, *mode)
    except OSError as error:
        return error.errno
    seen = os.readlink(f"/proc/self/fd/{fd}").startswith(links), os.get_inheritable(fd)
    os.close(fd)
    return seen
with open("f", "w") as file, open(links + "/real", "w") as real:
    file.write("in the mount"), real.write("on disk")
os.symlink(here + "/f", links + "/in")
os.symlink("in", links + "/again")
os.symlink("real", links + "/out")
os.symlink("round", links + "/round")
os.symlink("none", links + "/dangling")
os.mkdir(links + "/d")
os.symlink("d", links + "/to-d")
for name in ("real", "in", "again", "out", "round", "dangling", "d", "to-d", "none", "real/x",
             "to-d/none", "d/", "real/", "to-d/../in", ""):
    for flags in (os.O_RDONLY, os.O_RDWR | os.O_APPEND, os.O_PATH, os.O_PATH | os.O_NOFOLLOW,
                  os.O_NOFOLLOW, os.O_DIRECTORY, os.O_PATH | os.O_TRUNC, 1 << 30, os.O_NONBLOCK,
                  os.O_WRONLY | os.O_TMPFILE):
        print(name, flags, said(links + "/" + name, flags, 0o600))
vain()
print(open(links + "/again").read(), open(links + "/real").read())
vain()
print(said(links + "/made", os.O_CREAT | os.O_EXCL, 0o600), said(links + "/real", os.O_TRUNC))
os.mkfifo(links + "/fifo")
def ring(*_):
    raise InterruptedError
signal.signal(signal.SIGALRM, ring)
signal.setitimer(signal.ITIMER_REAL, 0.05)
vain()
try:
    os.open(links + "/fifo", os.O_RDONLY)
except InterruptedError:
    print("interrupted")
"""


def test_opens_that_follow_on_ones_in_vain(plain, mounted, links):
    wanted = plain(sys.executable, "-c", _IN_VAIN, links[0])
    assert (wanted.status, wanted.err) == (0, b"")
    assert mounted(sys.executable, "-c", _IN_VAIN, links[1]).seen() == wanted.seen()
