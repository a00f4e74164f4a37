"""The calls look like those of `os`: signatures, argument errors, results."""

import contextlib
import fcntl
import importlib.metadata
import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest

import directfuse

#: Public names that are functions of os under the same name.
OF_OS = sorted(
    name
    for name in directfuse.__all__
    if inspect.isroutine(getattr(os, name, None)) and name not in ("open", "lockf")  # fcntl.lockf
)


def spelled(function):
    """(name, kind, default) of each parameter; names that no caller can use change with Python."""
    return [
        (
            None if parameter.kind is parameter.POSITIONAL_ONLY else parameter.name,
            parameter.kind,
            parameter.default,
        )
        for parameter in inspect.signature(function).parameters.values()
    ]


def has_signature(name):
    try:
        inspect.signature(getattr(os, name))
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("name", [name for name in OF_OS if has_signature(name)])
def test_signature_is_that_of_os(name):
    assert spelled(getattr(directfuse, name)) == spelled(getattr(os, name))


def test_open_and_os_open_have_their_signatures():
    assert spelled(directfuse.open) == spelled(open)
    assert spelled(directfuse.os_open) == spelled(os.open)


def test_a_mapping_has_a_signature():
    assert str(inspect.signature(directfuse.Mapping)) == "(fd, length, prot=1, flags=1, offset=0)"


def test_the_version_is_that_of_the_installed_package():
    assert directfuse.__version__ == importlib.metadata.version("directfuse")
    with pytest.raises(AttributeError, match="no attribute '__author__'"):
        directfuse.__author__  # noqa: B018


def test_entry_points_are_read_only_when_they_may_be_meant(tmp_path):
    """The module that reads them takes as long as a third of the others together."""
    script = (
        "import sys\n"
        "sys.modules.pop('importlib.metadata', None)\n"  # an editable installation's, say
        "import directfuse\n"
        "from directfuse._paths import plugin\n"
        "for word in ('memfs', str(plugin('memfs'))):\n"
        "    directfuse.mount([word, sys.argv[1]]).unmount()\n"
        "print('importlib.metadata' in sys.modules)\n"
    )
    python = [sys.executable, "-c", script, str(tmp_path / "mnt")]
    assert subprocess.check_output(python, text=True) == "False\n"


@pytest.mark.parametrize("name", directfuse.__all__)
def test_everything_public_is_documented(name):
    assert inspect.getdoc(getattr(directfuse, name))


def raised(function, *args, **options):
    """Type and words of what a call raises, without the name of the function in them."""
    try:
        function(*args, **options)
    except Exception as error:
        return type(error), str(error).replace("os_open", "open")
    return None


WRONG = [
    ("stat", (), {}),
    ("stat", ("/", 1), {}),
    ("stat", ("/",), {"unknown": 1}),
    ("stat", ("/",), {"path": "/"}),
    ("stat", ([],), {}),
    ("stat", (1.5,), {}),
    ("stat", ("a\0b",), {}),
    ("stat", (b"a\0b",), {}),
    ("stat", (1 << 70,), {}),
    ("stat", (0,), {"dir_fd": 0}),
    ("stat", (0,), {"follow_symlinks": False}),
    ("stat", ("x",), {"dir_fd": "y"}),
    ("lstat", (3,), {}),
    ("fstat", ("x",), {}),
    ("fstat", (-1,), {}),
    ("access", ("/",), {}),
    ("access", ("/", "r"), {}),
    ("read", (0,), {}),
    ("read", (0, 1, 2), {}),
    ("read", (1 << 30, "x"), {}),
    ("read", (1 << 30, 1 << 70), {}),
    ("pread", (1 << 30, 1), {}),
    ("write", (1 << 30,), {}),
    ("write", ("x", b""), {}),
    ("lseek", (1 << 30, 0), {}),
    ("close", (), {}),
    ("close", ("x",), {}),
    ("listdir", (1.5,), {}),
    ("listdir", ("/nonexistent",), {}),
    ("scandir", ("a\0b",), {}),
    ("readv", (1 << 30, 5), {}),
    ("preadv", (1 << 30, []), {}),
    ("mkdir", (5,), {}),
    ("mkdir", ("a\0b",), {}),
    ("unlink", (None,), {}),
    ("rename", ("a\0b", "y"), {}),
    ("symlink", (5, "x"), {}),
    ("truncate", ("/nonexistent", 1), {}),
    ("utime", ("/", 1), {}),
    ("utime", ("/", (1, 2)), {"ns": (1, 2)}),
    ("getxattr", ("/nonexistent", "user.x"), {}),
    ("chmod", ("/nonexistent", 0o600), {}),
    ("statvfs", ("/nonexistent",), {}),
]


@pytest.mark.parametrize(("name", "args", "options"), WRONG)
def test_wrong_arguments_raise_what_os_raises(name, args, options):
    assert raised(getattr(directfuse, name), *args, **options) == raised(
        getattr(os, name), *args, **options
    )


@pytest.mark.parametrize(
    ("args", "options"),
    [
        ((), {}),
        (("x", "rw"), {}),
        (("x", "rr"), {}),
        (("x", "rbt"), {}),
        (("x", "rb"), {"encoding": "utf-8"}),
        (("x", "rb"), {"newline": "\n"}),
        (("x", 5), {}),
        (("x",), {"closefd": False}),
        (("x",), {"unknown": 1}),
        (("a\0b",), {}),
        ((1.5,), {}),
        (("nonexistent",), {}),
    ],
)
def test_wrong_arguments_of_open_raise_what_open_raises(args, options, mem, monkeypatch):
    monkeypatch.chdir("/")
    assert raised(directfuse.open, *args, **options) == raised(open, *args, **options)
    if args and isinstance(args[0], str) and args[0] == "x":  # and for a file in a mount
        in_mount = (f"{mem}/x", *args[1:])
        assert raised(directfuse.open, *in_mount, **options) == raised(open, *args, **options)
        assert not directfuse.path.exists(f"{mem}/x")


# ---- results: the same calls on a mount and on a real directory --------------------------------


@pytest.fixture
def both(mem, tmp_path):
    """(functions, root) of a real directory and of a mount."""
    real = tmp_path / "real"
    real.mkdir()
    return [(os, str(real)), (directfuse, mem)]


def outcomes(both, act):
    """What act(functions, root) gives for each, paths made comparable."""
    found = []
    for functions, root in both:
        try:
            value = act(functions, root)
        except OSError as error:
            names = [str(name).replace(root, "R") for name in (error.filename, error.filename2)]
            value = (type(error), error.errno, names)
        found.append(value)
    return found


ACTS = {
    "mkdir twice": lambda o, r: [o.mkdir(f"{r}/d"), o.mkdir(f"{r}/d")],
    "rmdir nothing": lambda o, r: o.rmdir(f"{r}/none"),
    "rename nothing": lambda o, r: o.rename(f"{r}/none", f"{r}/other"),
    "link nothing": lambda o, r: o.link(f"{r}/none", f"{r}/other"),
    "readlink of a directory": lambda o, r: o.readlink(r),
    "symlink and readlink": lambda o, r: [o.symlink("t", f"{r}/l"), o.readlink(f"{r}/l")],
    "readlink of bytes": lambda o, r: [
        o.symlink(b"t", f"{r}/l".encode()),
        o.readlink(f"{r}/l".encode()),
    ],
    "symlink over a name": lambda o, r: [o.symlink("t", f"{r}/l"), o.symlink("t", f"{r}/l")],
    "listdir": lambda o, r: [o.mkdir(f"{r}/d"), o.listdir(r), o.listdir(r.encode())],
    "listdir of nothing": lambda o, r: o.listdir(f"{r}/none"),
    "scandir of nothing": lambda o, r: o.scandir(f"{r}/none"),
    "stat of nothing": lambda o, r: o.stat(f"{r}/none"),
    "stat of nothing by Path": lambda o, r: o.stat(Path(r) / "none"),
    "stat of nothing by bytes": lambda o, r: isinstance(o.stat(f"{r}/none".encode()), tuple),
    "access": lambda o, r: [o.access(r, os.R_OK), o.access(f"{r}/none", os.F_OK)],
    "truncate of a directory": lambda o, r: o.truncate(r, 0),
    "utime": lambda o, r: [o.utime(r, ns=(1, 2)), o.stat(r).st_mtime_ns, o.stat(r).st_atime],
    "utime of floats": lambda o, r: [o.utime(r, (1.25, -1.5)), o.stat(r).st_mtime_ns],
    "chmod": lambda o, r: [o.chmod(r, 0o705), oct(o.stat(r).st_mode)],
    "xattr": lambda o, r: [
        o.setxattr(r, "user.a", b"value"),
        o.getxattr(r, b"user.a"),
        o.listxattr(r),
        o.removexattr(r, "user.a"),
        o.listxattr(r),
    ],
    "long xattr": lambda o, r: [o.setxattr(r, "user.a", bytes(1000)), len(o.getxattr(r, "user.a"))],
    "no xattr": lambda o, r: o.getxattr(r, "user.none"),
    "makedirs": lambda o, r: [
        o.makedirs(f"{r}/a/b/c"),
        o.makedirs(f"{r}/a/b/c", exist_ok=True),
        o.makedirs(f"{r}/a/b/c"),
    ],
    "removedirs": lambda o, r: [
        o.makedirs(f"{r}/a/b"),
        o.mkdir(f"{r}/k"),
        o.removedirs(f"{r}/a/b"),
    ],
    "renames": lambda o, r: [
        o.makedirs(f"{r}/a/b"),
        o.mkdir(f"{r}/keep"),
        o.renames(f"{r}/a/b", f"{r}/x/y"),
        sorted(o.listdir(r)),
    ],
    "a file as a directory": lambda o, r: [o.mknod(f"{r}/f"), o.stat(f"{r}/f/x")],
    "mkfifo": lambda o, r: [o.mkfifo(f"{r}/p"), oct(o.stat(f"{r}/p").st_mode)],
    "flags that are no bool": lambda o, r: [
        o.symlink(r, f"{r}/l"),
        oct(o.stat(f"{r}/l", follow_symlinks=0).st_mode),
        oct(o.stat(f"{r}/l", follow_symlinks="yes").st_mode),
        o.access(f"{r}/l", os.F_OK, effective_ids=1, follow_symlinks=None),
    ],
}


@pytest.mark.parametrize("name", ACTS)
def test_a_call_ends_as_on_a_real_directory(name, both):
    real, ours = outcomes(both, ACTS[name])
    assert ours == real


def test_closefd_may_be_a_number(mem, opened):
    directfuse.open(f"{mem}/f", "w", closefd=1).close()
    fd = opened(f"{mem}/f", os.O_RDONLY)
    directfuse.open(fd, "rb", closefd=0).close()
    assert directfuse.read(fd, 1) == b""


@pytest.mark.parametrize("name", ["encoding", "errors", "newline"])
@pytest.mark.parametrize("text", ["utf\0-8", "\udc80"])
def test_what_is_no_string_of_c_truncates_nothing(mem, name, text):
    directfuse.open(f"{mem}/f", "w").write("kept")
    with pytest.raises(ValueError, match=r"embedded null|surrogates not allowed"):
        directfuse.open(f"{mem}/f", "w", **{name: text})
    assert directfuse.open(f"{mem}/f").read() == "kept"


class Number:
    """What numpy's integers are to os: no int, but as good as one."""

    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value


NUMBERS = {
    "mkdir": lambda o, r: [o.mkdir(f"{r}/d", Number(0o705)), oct(o.stat(f"{r}/d").st_mode)],
    "mknod": lambda o, r: [o.mknod(f"{r}/f", Number(0o604)), oct(o.stat(f"{r}/f").st_mode)],
    "makedirs": lambda o, r: [o.makedirs(f"{r}/d", Number(0o705)), oct(o.stat(f"{r}/d").st_mode)],
    "chmod": lambda o, r: [o.chmod(r, Number(0o705)), oct(o.stat(r).st_mode)],
    "chown": lambda o, r: o.chown(r, Number(os.getuid()), Number(-1)),
    "lchown": lambda o, r: o.lchown(r, Number(-1), Number(os.getgid())),
    "truncate": lambda o, r: [
        o.mknod(f"{r}/f"),
        o.truncate(f"{r}/f", Number(7)),
        o.stat(f"{r}/f").st_size,
    ],
    "utime": lambda o, r: [o.utime(r, (Number(1), Number(2))), o.stat(r).st_mtime],
    "setxattr": lambda o, r: o.setxattr(r, "user.a", b"x", Number(os.XATTR_REPLACE)),
    "dir_fd": lambda o, r: o.unlink(f"{r}/none", dir_fd=Number(0)),
    "a mode out of range": lambda o, r: o.chmod(r, 1 << 31),
    "a large negative mode": lambda o, r: o.mkdir(f"{r}/d", -1 << 40),
    "an id out of range": lambda o, r: o.chown(r, 1 << 32, -1),
    "a negative id": lambda o, r: o.chown(r, -1, -2),
    "a fraction for a mode": lambda o, r: o.chmod(r, 1.0),
    "a fraction for an id": lambda o, r: o.chown(r, 0, 1.0),
    "a text for a size": lambda o, r: o.truncate(r, "1"),
    "a text for a dir_fd": lambda o, r: o.mkdir("d", dir_fd=r),
    "a dir_fd out of range": lambda o, r: o.rmdir("d", dir_fd=1 << 31),
    "a failing number": lambda o, r: o.chmod(r, Number("none")),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_are_those_that_os_takes(name, both):
    """Also which error it is that names what is none."""

    def act(functions, root):
        try:
            return NUMBERS[name](functions, root)
        except (TypeError, OverflowError) as error:
            return type(error)

    real, ours = outcomes(both, act)
    assert ours == real


def test_numbers_of_calls_on_descriptors(mem, opened):
    fd = opened(f"{mem}/f", os.O_RDWR | os.O_CREAT)
    directfuse.ftruncate(fd, Number(5))
    directfuse.posix_fallocate(fd, Number(0), Number(9))
    directfuse.posix_fadvise(fd, Number(0), Number(0), Number(os.POSIX_FADV_NORMAL))
    directfuse.fchmod(fd, Number(0o640))
    directfuse.fchown(fd, Number(-1), Number(-1))
    directfuse.flock(fd, Number(fcntl.LOCK_EX))
    directfuse.fcntl(fd, fcntl.F_SETFL, Number(os.O_APPEND))
    assert directfuse.fcntl(fd, fcntl.F_GETFL) & os.O_APPEND
    assert directfuse.fstat(fd).st_size == 9


def test_descriptors_may_be_numbers_of_another_type(mem, opened):
    fd = opened(f"{mem}/f", os.O_RDWR | os.O_CREAT)
    other, top = opened(f"{mem}/g", os.O_RDWR | os.O_CREAT), opened(mem, os.O_RDONLY)
    number = Number(fd)
    assert directfuse.write(number, b"abc") == 3
    directfuse.ftruncate(number, 2)
    directfuse.posix_fallocate(number, 0, 4)
    directfuse.posix_fadvise(number, 0, 0, os.POSIX_FADV_NORMAL)
    directfuse.fchmod(number, 0o640)
    directfuse.fchown(number, -1, -1)
    assert directfuse.fstatvfs(number).f_namemax == directfuse.fstatvfs(fd).f_namemax
    assert directfuse.copy_file_range(number, Number(other), 4, 0) == 4
    assert directfuse.dup2(number, Number(other)) == other
    directfuse.close(directfuse.dup(number))
    assert directfuse.fstat(number) == directfuse.stat("f", dir_fd=Number(top))
    assert directfuse.open(number, "rb", closefd=False).read() == b"\0"
    assert directfuse.read_many([number, (number, 1, 1)]) == [b"ab\0\0", b"b"]


DESCRIPTORS = {
    "dup2 of none": lambda o, fd: o.dup2(-1, fd),
    "dup2 to none": lambda o, fd: o.dup2(fd, -1),
    "dup2 to itself": lambda o, fd: o.dup2(fd, fd) == fd,
    "dup2 to itself, not inheritable": lambda o, fd: o.dup2(fd, fd, False),
    "copy to none": lambda o, fd: o.copy_file_range(fd, -1, 1),
    "copy from none": lambda o, fd: o.copy_file_range(-1, fd, 1),
    "copy of too much": lambda o, fd: o.copy_file_range(fd, fd, 1 << 63),
    "copy from a closed one": lambda o, fd: o.copy_file_range((1 << 30) - 1, fd, 1),
    "chmod with a dir_fd": lambda o, fd: [o.chmod(fd, 0o640, dir_fd=-1), oct(o.stat(fd).st_mode)],
    "chmod with no number for a dir_fd": lambda o, fd: o.chmod(fd, 0o640, dir_fd="x"),
}


@contextlib.contextmanager
def opened(functions, root):
    """The descriptor of a file, by os.open of those functions."""
    fd = getattr(functions, "os_open", functions.open)(f"{root}/f", os.O_RDWR | os.O_CREAT)
    try:
        yield fd
    finally:
        functions.close(fd)


@pytest.mark.parametrize("name", DESCRIPTORS)
def test_a_call_on_a_descriptor_ends_as_on_a_real_file(name, both):
    def act(functions, root):
        with opened(functions, root) as fd:
            try:
                return DESCRIPTORS[name](functions, fd)
            except TypeError as error:
                return str(error)
            except OverflowError as error:
                return type(error)

    real, ours = outcomes(both, act)
    assert ours == real


class Pair(tuple):
    """A tuple, but not of that very type, which os.utime wants."""


WRONG_IN_A_MOUNT = {
    "utime of times of another type": lambda o, r: o.utime(r, Pair((1, 2))),
    "utime of no number": lambda o, r: o.utime(r, (float("nan"), 0)),
    "utime of texts": lambda o, r: o.utime(r, ("1", "2")),
    "utime of None": lambda o, r: o.utime(r, (None, None)),
    "utime of no nanoseconds": lambda o, r: o.utime(r, ns=None),
    "utime of times and no nanoseconds": lambda o, r: o.utime(r, (1, 2), ns=None),
    "symlink by a number": lambda o, r: o.symlink("x", 5),
}


@pytest.mark.parametrize("name", WRONG_IN_A_MOUNT)
def test_what_is_wrong_with_arguments_is_said_as_os_says_it(name, both):
    real, ours = (raised(WRONG_IN_A_MOUNT[name], functions, root) for functions, root in both)
    assert ours == real
    assert real is not None


@pytest.mark.parametrize("mask", ["x", None, 1.5, 1 << 40, -1 << 40])
def test_a_umask_is_a_number_that_os_takes(mask):
    before = directfuse.umask(0o22)
    try:
        with pytest.raises((TypeError, OverflowError)) as real:
            os.umask(mask)
        with pytest.raises(real.type):
            directfuse.umask(mask)
        assert directfuse.umask(Number(0o27)) == 0o22
        assert os.umask(0o22) == 0o27
    finally:
        directfuse.umask(before)


FIGETBSZ, FIONBIO, FIONREAD, FIOQSIZE = 0x2, 0x5421, 0x541B, 0x5460  # <linux/fs.h>, <asm/ioctls.h>
OF_LOCKS = ("F_GETLK", "F_SETLK", "F_SETLKW", "F_OFD_GETLK", "F_OFD_SETLK", "F_OFD_SETLKW")

OF_FCNTL = {
    **{
        f"{name} at {address}": lambda m, fd, c=name, a=address: m.fcntl(fd, getattr(fcntl, c), a)
        for name in OF_LOCKS
        for address in (0, 5, 1 << 40)
    },
    **{
        f"ioctl {request:#x} at 5": lambda m, fd, r=request: m.ioctl(fd, r, 5)
        for request in (FIGETBSZ, FIONBIO, FIONREAD, FIOQSIZE)
    },
    "fcntl of a list": lambda m, fd: m.fcntl(fd, fcntl.F_GETFL, [1]),
    "fcntl of a large number": lambda m, fd: m.fcntl(fd, fcntl.F_SETFD, (1 << 70) + 1),
    "fcntl of a number of another type": lambda m, fd: m.fcntl(fd, Number(fcntl.F_GETFD)),
    "ioctl of a large number": lambda m, fd: m.ioctl(fd, FIONREAD, 1 << 40),
    "ioctl of no bytes": lambda m, fd: m.ioctl(fd, FIGETBSZ, bytearray()),
    "ioctl of every second byte": lambda m, fd: m.ioctl(
        fd, FIGETBSZ, memoryview(bytearray(9))[::2]
    ),
    "ioctl of a list": lambda m, fd: m.ioctl(fd, FIONREAD, [1]),
    "lockf of a number of another type": lambda m, fd: m.lockf(fd, Number(fcntl.LOCK_EX)),
}


#: What the module raises, from Python 3.14 on, of a kernel that wrote more than its buffer holds.
#: Ours has room for it.
SMALL_BUFFER = SystemError


@pytest.mark.parametrize("name", OF_FCNTL)
def test_arguments_of_fcntl_are_those_of_the_module(name, both):
    """Above all where they are addresses: no kernel is there to say EFAULT."""

    def act(functions, root):
        with opened(functions, root) as fd:
            try:
                return OF_FCNTL[name](fcntl if functions is os else functions, fd)
            except (TypeError, OverflowError, BufferError, SystemError) as error:
                return type(error)

    real, ours = outcomes(both, act)
    assert real in (ours, SMALL_BUFFER)


def test_ioctl_writes_no_further_than_its_buffer(both):
    def act(functions, root):
        memory = bytearray(b"\xff" * 16)
        module = fcntl if functions is os else functions
        with opened(functions, root) as fd:
            try:
                result = module.ioctl(fd, FIGETBSZ, memoryview(memory)[:1])
                copied = module.ioctl(fd, FIGETBSZ, memoryview(memory)[:1], False)
            except SystemError as error:
                return type(error)
        return result, copied, memory

    real, ours = outcomes(both, act)
    assert real in (ours, SMALL_BUFFER)
    assert ours[2][1:] == b"\xff" * 15


BY_NUMBER = {
    "stat": lambda o, fd: o.stat(fd).st_size,
    "stat and a dir_fd": lambda o, fd: o.stat(fd, dir_fd=fd),
    "chmod": lambda o, fd: o.chmod(fd, 0o640),
    "chown": lambda o, fd: o.chown(fd, -1, -1),
    "utime": lambda o, fd: [o.utime(fd, (1, 2)), o.stat(fd).st_mtime],
    "truncate": lambda o, fd: [o.truncate(fd, 7), o.stat(fd).st_size],
    "statvfs": lambda o, fd: o.statvfs(fd).f_namemax,
    "xattr": lambda o, fd: [
        o.setxattr(fd, "user.a", b"x"),
        o.getxattr(fd, "user.a"),
        o.listxattr(fd),
        o.removexattr(fd, "user.a"),
    ],
    "listdir of a file": lambda o, fd: o.listdir(fd),
    "scandir of a file": lambda o, fd: o.scandir(fd),
}


@pytest.mark.parametrize("name", BY_NUMBER)
def test_descriptors_in_the_place_of_paths_may_be_such_numbers(name, both):
    def act(functions, root):
        with opened(functions, root) as fd:
            try:
                return BY_NUMBER[name](functions, Number(fd))
            except (TypeError, ValueError) as error:
                return type(error)
            except OSError as error:
                error.filename = type(error.filename)
                raise

    real, ours = outcomes(both, act)
    assert ours == real


def test_a_directory_may_be_such_a_number(mem, opened, fill):
    fill(f"{mem}/f")
    top = Number(opened(mem, os.O_RDONLY))
    assert directfuse.listdir(top) == ["f"]
    assert [entry.name for entry in directfuse.scandir(top)] == ["f"]
    assert directfuse.statx(top).stx_ino == directfuse.stat(mem).st_ino


def test_a_failing_number_is_asked_once_and_not_swallowed(mem, opened):
    fd = opened(f"{mem}/f", os.O_RDWR | os.O_CREAT)
    asked = []

    class Failing:
        def __index__(self):
            asked.append(self)
            raise RuntimeError(len(asked))

    calls = [
        lambda n: directfuse.read(fd, n),
        lambda n: directfuse.pread(n, 1, 0),
        lambda n: directfuse.preadv(fd, [bytearray(1)], n),
        lambda n: directfuse.os_open(f"{mem}/f", n),
        lambda n: directfuse.open(f"{mem}/f", "rb", n),
        lambda n: directfuse.open(f"{mem}/f", opener=lambda *_: n),
        lambda n: directfuse.open(f"{mem}/f").read(n),
        lambda n: directfuse.stat("f", dir_fd=n),
        lambda n: directfuse.fstat(n),
        lambda n: directfuse.dup(n),
        lambda n: directfuse.open(n),
        lambda n: directfuse.access(mem, n),
        lambda n: directfuse.read_many([(fd, n, 1)]),
        lambda n: directfuse.read_many([n]),
    ]
    for count, call in enumerate(calls, 1):
        with pytest.raises(RuntimeError, match=f"^{count}$"):
            call(Failing())


def test_chmod_that_follows_no_symlinks(both):
    def outcome(functions, path, **where):
        try:
            return functions.chmod(path, 0o640, follow_symlinks=False, **where)
        except (NotImplementedError, ValueError) as error:
            return type(error), str(error)

    def act(functions, root):
        functions.mknod(f"{root}/f")
        functions.symlink("f", f"{root}/l")
        opens = getattr(functions, "os_open", os.open)
        top, fd = opens(root, os.O_RDONLY), opens(f"{root}/f", os.O_RDONLY)
        found = [
            outcome(functions, f"{root}/f"),
            outcome(functions, fd),
            outcome(functions, f"{root}/l"),
            outcome(functions, "l", dir_fd=top),
            oct(functions.stat(fd).st_mode),
        ]
        functions.close(fd)
        functions.close(top)
        return found

    real, ours = outcomes(both, act)
    assert ours == real


@pytest.mark.parametrize("name", ["fsync", "fdatasync"])
def test_what_has_no_descriptor_is_named_as_by_os(name):
    assert raised(getattr(directfuse, name), "x") == raised(getattr(os, name), "x")


def test_stat_result_has_every_field(mem, fill):
    path = fill(f"{mem}/f", b"12345")
    os_result, ours = os.stat("/"), directfuse.stat(path)
    assert type(ours) is os.stat_result
    for name in (name for name in dir(os_result) if name.startswith("st_")):
        assert type(getattr(ours, name)) is type(getattr(os_result, name)), name
    assert (ours.st_size, ours[6]) == (5, 5)
    assert ours.st_mtime_ns // 10**9 == ours[8] == int(ours.st_mtime)


@pytest.mark.parametrize("ns", [0, 1, -1, 10**18, -(10**18), (1 << 34) * 10**9 - 1, 2**62])
def test_times_keep_their_nanoseconds(mem, ns):
    directfuse.utime(mem, ns=(ns, ns + 5))
    result = directfuse.stat(mem)
    assert (result.st_atime_ns, result.st_mtime_ns) == (ns, ns + 5)
    assert (result[7], result[8]) == (ns // 10**9, (ns + 5) // 10**9)


def test_errors_keep_the_name_as_it_was_given(mem):
    for name in (f"{mem}/none", f"{mem}/none".encode()):
        with pytest.raises(FileNotFoundError) as caught:
            directfuse.stat(name)
        assert caught.value.filename == name
    with pytest.raises(FileNotFoundError) as caught:
        directfuse.rename(f"{mem}/a", f"{mem}/b")
    assert (caught.value.filename, caught.value.filename2) == (f"{mem}/a", f"{mem}/b")


def test_paths_may_be_objects(mem):
    class Named:
        def __fspath__(self):
            return f"{mem}/named"

    directfuse.mkdir(Named())
    assert directfuse.stat(Named()).st_ino == directfuse.stat(Path(mem, "named")).st_ino
    assert directfuse.listdir(Path(mem)) == ["named"]


def test_a_failing_fspath_is_not_swallowed():
    class Broken:
        def __fspath__(self):
            raise RuntimeError("broken")

    for call in (directfuse.stat, directfuse.listdir, directfuse.mkdir, directfuse.open):
        with pytest.raises(RuntimeError, match="broken"):
            call(Broken())


def test_names_that_are_no_text_come_back(mem):
    name = os.fsdecode(b"\xff-\xe4-name")
    with directfuse.open(f"{mem}/{name}", "w") as file:
        file.write("x")
    assert directfuse.listdir(mem) == [name]
    assert directfuse.listdir(os.fsencode(mem)) == [os.fsencode(name)]
    assert [entry.path for entry in directfuse.scandir(mem)] == [f"{mem}/{name}"]
    assert directfuse.stat(f"{mem}/{name}").st_size == 1
    directfuse.unlink(f"{mem}/{name}")


def test_names_in_any_script(mem, fill):
    for name in ("ö", "日本", "🐍", "a b"):
        fill(f"{mem}/{name}", name.encode())
    assert sorted(directfuse.listdir(mem)) == sorted(("ö", "日本", "🐍", "a b"))
    with directfuse.open(f"{mem}/日本", encoding="utf-8") as file:
        assert file.read() == "日本"


def test_real_paths_are_served_by_os(tmp_path, memfs):
    path = tmp_path / "real.txt"
    path.write_text("real")
    assert directfuse.stat(path) == os.stat(path)
    with directfuse.open(path) as file:
        assert type(file.buffer.raw).__module__ == "_io" and file.read() == "real"
    fd = directfuse.os_open(path, os.O_RDONLY)
    assert fd < 1 << 30 and directfuse.pread(fd, 2, 1) == b"ea"
    directfuse.close(fd)
    with directfuse.scandir(tmp_path) as entries:
        assert type(next(entries)) is os.DirEntry
    assert memfs.stats().ops.get("read") is None


def test_dir_fd(mem, fill, opened):
    directfuse.mkdir(f"{mem}/d")
    fill(f"{mem}/d/f", b"1")
    dir_fd = opened(f"{mem}/d", os.O_RDONLY | os.O_DIRECTORY)
    assert directfuse.stat("f", dir_fd=dir_fd).st_size == 1
    assert directfuse.access("f", os.F_OK, dir_fd=dir_fd)
    assert directfuse.read(opened("f", os.O_RDONLY, dir_fd=dir_fd), 9) == b"1"
    directfuse.mkdir("sub", dir_fd=dir_fd)
    directfuse.symlink("f", "l", dir_fd=dir_fd)
    assert directfuse.readlink("l", dir_fd=dir_fd) == "f"
    directfuse.rename("f", "g", src_dir_fd=dir_fd, dst_dir_fd=dir_fd)
    directfuse.unlink("l", dir_fd=dir_fd)
    directfuse.rmdir("sub", dir_fd=dir_fd)
    assert directfuse.listdir(dir_fd) == ["g"]
    assert directfuse.stat("/", dir_fd=dir_fd) == os.stat("/")  # an absolute path ignores it


def test_relative_paths(mem, fill, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    fill("mnt/relative", b"12")
    assert directfuse.stat("mnt/relative").st_size == 2
    assert directfuse.stat("./mnt/../mnt/relative").st_size == 2
    assert directfuse.listdir("mnt") == ["relative"]
