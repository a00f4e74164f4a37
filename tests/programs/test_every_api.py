"""Programs written against every version of libfuse's API, loaded into this process unmodified.

One source (sources/every_api.c) is compiled for each FUSE_USE_VERSION and linked to the real
libfuse. What the kernel mount of the very same executable does is what we must do: results, errors,
and the operations that the program saw, in their order.
"""

import errno
import os
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from building import build, fuse

import directfuse
from directfuse._kernel import Program, fuse_mount_at, unmount

SOURCES = Path(__file__).parent / "sources"


def later():
    """What headers of libfuse 3.17 and later know; programs made with them want libfuse3.so.4."""
    query = ["pkg-config", "--atleast-version=3.17", "fuse3"]
    return [317] if shutil.which(query[0]) and subprocess.run(query).returncode == 0 else []


#: FUSE_USE_VERSION, the pkg-config name of its library.
VERSIONS = [(v, "fuse") for v in (11, 21, 22, 25, 26)] + [
    (v, "fuse3") for v in (30, 31, 32, 35, 312, *later())
]

NO_CACHE = "attr_timeout=0,entry_timeout=0"


@pytest.fixture(scope="session")
def compiled(tmp_path_factory):
    """Compiles a source, once for each set of definitions: the path of the executable."""
    directory = tmp_path_factory.mktemp("programs")

    def compile_(source, version, package, *definitions):
        name = "-".join([source, str(version), *definitions]).replace("=", "")
        path = directory / name
        if not path.exists():
            words = [f"-D{word}" for word in (f"FUSE_USE_VERSION={version}", *definitions)]
            build(SOURCES / f"{source}.c", path, "-w", "-D_GNU_SOURCE", *words, *fuse(package))
        return str(path)

    return compile_


@contextmanager
def inline(command, root):
    with directfuse.mount([*command, root], placement="inline") as mount:
        yield directfuse
        calls = mount.stats().calls
    assert calls > 0, "the mount was not used"


class Kernel:
    """os, by the names of directfuse."""

    def __getattr__(self, name):
        return getattr(os, name.removeprefix("os_"))


@contextmanager
def through_kernel(command, root):
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("/dev/fuse cannot be opened")
    if not os.path.exists(root):
        os.makedirs(root)
    try:
        with Program([*command, root]) as program:
            program.wait_mounted(60)
            yield Kernel()
    finally:
        if fuse_mount_at(root):  # one that came too late, and whose program was ended
            unmount(root, lazy=True)


def code(function, *args):
    """What the call returns, or the name of its error."""
    try:
        return function(*args)
    except OSError as error:
        return errno.errorcode[error.errno]


class Scenario:
    """The same calls on every mount; what they return is kept."""

    def __init__(self, fs, root):
        self.fs, self.root, self.seen = fs, root, {}

    def at(self, name):
        return f"{self.root}/{name}"

    def read(self, name):
        fd = self.fs.os_open(self.at(name), os.O_RDONLY)
        parts = []
        while part := self.fs.pread(fd, 4096, sum(map(len, parts))):
            parts.append(part)
        self.fs.close(fd)
        return b"".join(parts)

    def change_content(self):
        fs, seen = self.fs, self.seen
        fd = fs.os_open(self.at("file"), os.O_RDWR)
        seen["pwrite"] = fs.pwrite(fd, b"CON", 0)
        seen["pread"] = fs.pread(fd, 100, 2)
        fs.fsync(fd)
        fs.ftruncate(fd, 5)
        seen["fstat"] = fs.fstat(fd).st_size
        fs.close(fd)
        fs.truncate(self.at("file"), 4)
        seen["content"] = self.read("file")
        fs.close(fs.os_open(self.at("file"), os.O_WRONLY | os.O_TRUNC))
        seen["truncated"] = fs.stat(self.at("file")).st_size

    def change_attributes(self):
        fs, seen = self.fs, self.seen
        fs.chmod(self.at("file"), 0o640)
        seen["mode"] = oct(fs.stat(self.at("file")).st_mode)
        fs.utime(self.at("file"), ns=(1_000_000_500, 2_000_000_600))
        st = fs.stat(self.at("file"))
        seen["times"] = (st.st_atime_ns, st.st_mtime_ns)
        seen["owner"] = (st.st_uid, st.st_gid)
        seen["ino"] = st.st_ino == 77  # what the program says
        fd = fs.os_open(self.at("file"), os.O_RDWR)
        seen["fchmod"] = code(fs.fchmod, fd, 0o600)
        fs.close(fd)

    def change_names(self):
        fs, seen = self.fs, self.seen
        flags = os.O_CREAT | os.O_EXCL | os.O_RDWR
        fd = fs.os_open(self.at("new"), flags, 0o644)
        fs.pwrite(fd, b"x" * 7000, 0)
        seen["large"] = len(fs.pread(fd, 7000, 0))
        fs.close(fd)
        self.wait(self.all_released)  # or by which name this one is noted is chance
        seen["exists"] = code(fs.os_open, self.at("new"), flags)
        fs.rename(self.at("new"), self.at("other"))
        seen["names"] = sorted(fs.listdir(self.root))
        fd = fs.os_open(self.at("other"), os.O_RDWR)
        fs.unlink(self.at("other"))
        seen["left"] = sorted(name[:12] for name in fs.listdir(self.root))
        seen["unlinked"] = code(fs.pread, fd, 4096, 6998)
        seen["unlinked stat"] = code(lambda: fs.fstat(fd).st_size)
        fs.close(fd)
        self.wait(lambda: len(fs.listdir(self.root)) == 1)
        seen["after"] = sorted(fs.listdir(self.root))

    def wait(self, condition):
        """The kernel sends RELEASE when it pleases, and does not wait for the answer."""
        deadline = time.monotonic() + 10
        while not condition() and time.monotonic() < deadline:
            os.sched_yield()

    def trace(self):
        """What the program noted, in its order, but for RELEASEs, which come at any time."""
        lines = self.read("trace").decode().splitlines()
        late = sorted(line for line in lines if line.startswith("release"))
        return [line for line in lines if not line.startswith(("release", "statfs"))], late

    def all_released(self):
        ordered, late = self.trace()
        return sum(line.startswith("open") for line in ordered) == len(late)

    def run(self):
        fs, seen = self.fs, self.seen
        seen["first"] = (sorted(fs.listdir(self.root)), self.read("file"))
        self.change_content()
        self.change_attributes()
        self.change_names()
        space = fs.statvfs(self.root)
        seen["space"] = (space.f_blocks, space.f_bsize, space.f_namemax)
        seen["missing"] = code(fs.os_open, self.at("missing"), os.O_RDONLY)
        seen["no"] = code(fs.os_open, self.at("trace"), os.O_WRONLY)
        self.wait(self.all_released)
        return seen, *self.trace()


def without_misplaced(seen, ordered, late):
    """libfuse looks for the last operations of a table of 1.x where later ones have them, and calls
    fsync for release; we find them."""
    return seen, [line for line in ordered if not line.startswith("fsync")]


def outcome(route, command, root):
    with route(command, str(root)) as fs:
        return Scenario(fs, str(root)).run()


def without_pieces(seen, ordered, late):
    """Through its page cache the kernel writes page by page, unless -o big_writes is given."""
    return seen, [line for line in ordered if not line.startswith("write /new")], late


def compare(command, tmp_path):
    ours = outcome(inline, command, tmp_path / "inline")
    theirs = outcome(through_kernel, command, tmp_path / "kernel")
    return ours, theirs


@pytest.mark.parametrize("by_hand", [(), ("BY_HAND",)], ids=["main", "by_hand"])
@pytest.mark.parametrize(("version", "package"), VERSIONS)
def test_is_served_as_by_the_kernel(version, package, by_hand, compiled, tmp_path):
    program = compiled("every_api", version, package, *by_hand)
    command = [program] if version <= 22 and by_hand else [program, "-f", "-o", NO_CACHE]
    ours, theirs = compare(command, tmp_path)
    if version <= 21:
        ours, theirs = without_pieces(*ours), without_pieces(*theirs)
    if version == 11:
        assert "release /file 2" in ours[2]
        ours, theirs = without_misplaced(*ours), without_misplaced(*theirs)
    assert ours == theirs


@pytest.mark.parametrize("flag", ["OMIT_OK", "NULLPATH_OK", "NOPATH"])
def test_flags_of_fuse_2_operations(flag, compiled, tmp_path):
    """Without a path for operations on a handle, chmod of an open file gets one all the same. A
    program that only bears to get none does get those that there are."""
    ours, theirs = compare(
        [compiled("every_api", 26, "fuse", flag), "-f", "-o", NO_CACHE], tmp_path
    )
    assert ours == theirs
    assert ("write (null) 3 0" in ours[1]) == (flag == "NOPATH")


def test_a_fuse_2_program_that_bears_null_gets_it_of_a_removed_file(compiled, tmp_path):
    program = compiled("every_api", 26, "fuse", "NULLPATH_OK")
    ours, theirs = compare([program, "-f", "-o", f"{NO_CACHE},hard_remove"], tmp_path)
    assert ours[1] == theirs[1]
    assert ours[1][-2:] == ["unlink /other", "read 4096 6998"]
    assert ours[0]["unlinked"] == theirs[0]["unlinked"] == b"xx"


BOTH = [
    "kernel_cache",
    "auto_cache",
    "noauto_cache",
    "ac_attr_timeout=2",
    "negative_timeout=1",
    "umask=027",
    "uid=1234,gid=1235",
    "noforget",
    "remember=5",
    "modules=subdir,subdir=/",
    "default_permissions",
    "allow_other",
    "fsname=x,subtype=y",
]
ONLY_2 = [
    "hard_remove",
    "use_ino",
    "readdir_ino",
    "direct_io",
    "nopath",
    "intr",
    "intr_signal=12",
    "atomic_o_trunc",
    "big_writes",
    "max_write=4096",
    "max_readahead=0",
    "max_background=3",
    "congestion_threshold=2",
    "async_read",
    "sync_read",
    "no_remote_lock",
    "no_remote_flock",
    "no_remote_posix_lock",
    "splice_write",
    "no_splice_write",
    "splice_move",
    "no_splice_move",
    "splice_read",
    "no_splice_read",
    "max_read=4096",
]
ONLY_3 = ["clone_fd", "max_idle_threads=3", "max_threads=1", "auto_unmount"]


@pytest.mark.parametrize(
    ("version", "package", "option"),
    [(26, "fuse", option) for option in BOTH + ONLY_2]
    + [(312, "fuse3", option) for option in BOTH + ONLY_3],
)
def test_option_does_what_it_does_with_the_kernel(version, package, option, compiled, tmp_path):
    command = [compiled("every_api", version, package), "-f", "-o", f"{NO_CACHE},{option}"]
    ours, theirs = compare(command, tmp_path)
    assert ours == theirs


@pytest.mark.parametrize(
    ("version", "package", "option"),
    [(312, "fuse3", option) for option in ONLY_2 if not option.startswith("max_read=")]
    + [(26, "fuse", "no_such_option")],
)
def test_option_of_the_other_version_is_refused(version, package, option, compiled, tmp_path):
    program = compiled("every_api", version, package)
    with pytest.raises(directfuse.MountError, match=option.partition("=")[0]):
        directfuse.mount([program, "-f", "-o", option, str(tmp_path / "m")])


# ---- the low-level API ----


def low_scenario(fs, root):
    seen = {"names": sorted(fs.listdir(root))}
    fd = fs.os_open(f"{root}/file", os.O_RDWR)
    seen["content"] = fs.pread(fd, 100, 0)
    seen["put"] = fs.pwrite(fd, b"more", 6)
    fs.ftruncate(fd, 9)
    fs.close(fd)
    fs.chmod(f"{root}/file", 0o600)
    st, space = fs.stat(f"{root}/file"), fs.statvfs(root)
    seen["stat"] = (st.st_size, oct(st.st_mode), st.st_ino)
    seen["space"] = (space.f_blocks, space.f_bsize, space.f_namemax)
    seen["missing"] = code(fs.stat, f"{root}/missing")
    return seen


@pytest.mark.parametrize("own_loop", [(), ("OWN_LOOP",)], ids=["loop", "own_loop"])
@pytest.mark.parametrize(
    ("version", "package"), [(24, "fuse"), *(pair for pair in VERSIONS if pair[0] >= 25)]
)
def test_low_level_is_served_as_by_the_kernel(version, package, own_loop, compiled, tmp_path):
    program = compiled("every_low_api", version, package, *own_loop)
    command = [program] if version < 26 else [program, "-f"]
    seen = []
    for route in (inline, through_kernel):
        root = str(tmp_path / route.__name__)
        with route(command, root) as fs:
            seen.append(low_scenario(fs, root))
    assert seen[0] == seen[1]
    assert seen[0]["names"] == ["file"]


# ---- what only FUSE 2 has ----


def tree(fs, root):
    """Every path below root; the content of the files."""
    found = {}
    for name in fs.listdir(root):
        path = f"{root}/{name}"
        if fs.path.isdir(path):
            found.update({f"{name}/{below}": data for below, data in tree(fs, path).items()})
        else:
            fd = fs.os_open(path, os.O_RDONLY)
            found[name] = fs.pread(fd, 100, 1)
            fs.close(fd)
    return found


@pytest.mark.parametrize(
    ("modules", "expected"),
    [
        ("loud", "SUB/FILE"),
        ("loud,quiet", "sub/file"),
        ("loud:subdir,subdir=/SUB", "FILE"),
        ("subdir:loud,subdir=/sub", "FILE"),
        ("subdir,subdir=/sub", "file"),
        ("loud:loud", "SUB/FILE"),
    ],
)
def test_modules_of_the_program_and_ours_stand_on_each_other(modules, expected, compiled, tmp_path):
    command = [compiled("layers_2", 26, "fuse"), "-f", "-o", f"modules={modules}"]
    seen = []
    for route in (inline, through_kernel):
        root = str(tmp_path / route.__name__)
        with route(command, root) as fs:
            top = f"{root}/{fs.listdir(root)[0]}"
            calls = code(fs.getxattr, root, "user.calls")
            seen.append((tree(fs, root), code(fs.chmod, top, 0o700), calls))
    assert seen[0] == seen[1]
    assert seen[0][0] == {expected: b"ello\n"}


def test_modules_that_are_not_there(compiled, tmp_path):
    command = [compiled("layers_2", 26, "fuse"), "-f", "-o", "modules=loud:quux"]
    with pytest.raises(directfuse.MountError, match="quux"):
        directfuse.mount([*command, str(tmp_path)])


@pytest.mark.parametrize("argument", ["pump", "cuse"])
def test_without_a_mount_the_program_says_the_same(argument, compiled):
    program = compiled("own_channel_2", 26, "fuse")
    if argument == "cuse" and os.path.exists("/dev/cuse"):
        pytest.skip("here libfuse can make the character device")
    alone = subprocess.run([program, argument], capture_output=True, text=True, check=False)
    with pytest.raises(directfuse.MountError) as caught:
        directfuse.mount([program, argument])
    said = str(caught.value)
    assert f"main() returned {alone.returncode} before" in said
    if argument == "cuse":
        assert "cuse: a character device needs the kernel" in said
    for line in alone.stdout.splitlines():
        assert line in said


# ---- the command line of FUSE 2 programs ----


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-h"], "hard_remove"),
        (["-V"], "FUSE library version: 2.9"),
        ([], "missing mountpoint"),
        (["/a", "/b"], "invalid argument `/b'"),
        ([""], "bad mount point"),
        (["/a", "-o", "clone_fd"], "clone_fd"),  # FUSE 3's, which is the program's own here
    ],
)
def test_command_lines_that_mount_nothing(words, said, compiled):
    with pytest.raises(directfuse.MountError) as caught:
        directfuse.mount([compiled("every_api", 26, "fuse"), *words])
    assert said in str(caught.value)


# ---- beside others ----


BESIDE = """
import sys, directfuse

class Tiny:
    def getattr(self, path, fh=None):
        return {"st_mode": 0o40755}

    def readdir(self, path, fh=None):
        return [".", ".."]

with directfuse.mount(Tiny(), "/tiny") as tiny:
    with directfuse.mount([sys.argv[1], "/beside"], placement="inline") as beside:
        print(tiny.placement, beside.placement)
"""


@pytest.mark.parametrize(("version", "package"), [(26, "fuse"), (312, "fuse3")])
def test_beside_a_python_file_system(compiled, version, package):
    """Which has brought our libfuse3 along. In a process of its own, for what is loaded stays."""
    words = [sys.executable, "-c", BESIDE, compiled("every_api", version, package)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "inline inline\n", done.stderr


# ---- what we lack ----


@pytest.mark.parametrize("soname", ["libfuse.so.2", "libfuse3.so.3", "libfuse3.so.4"])
def test_an_entry_point_that_we_lack_is_named(soname, tmp_path):
    """The real library is not asked for it, though it has it."""
    (tmp_path / "library.c").write_text("int fuse_of_tomorrow(void) { return 0; }")
    (tmp_path / "program.c").write_text(
        "int fuse_of_tomorrow(void); int main(void) { return fuse_of_tomorrow(); }"
    )
    library, program = tmp_path / soname, tmp_path / "program"
    shared = ["cc", "-shared", "-fPIC", f"-Wl,-soname,{soname}", "-o", library]
    subprocess.run([*shared, tmp_path / "library.c"], check=True)
    subprocess.run(["cc", tmp_path / "program.c", library, "-o", program], check=True)
    with pytest.raises(directfuse.MountError, match="fuse_of_tomorrow"):
        directfuse.mount([str(program), "/tomorrow"], placement="inline")
