"""Calls that few programs make: as in a plain directory, or refused as the table of calls says."""

import errno
import os
import subprocess
import sys

import pytest
from building import build, fuse

from .conftest import PROGRAMS, environment


def test_an_empty_path_is_the_descriptor_where_a_call_is_refused_too(mounted):
    """With the flag that says so; systemd asks so whether a directory is a mountpoint."""
    script = """if True:
        import ctypes, os
        libc = ctypes.CDLL(None, use_errno=True)
        here, room = os.open(".", os.O_PATH), ctypes.create_string_buffer(b"\\1", 256)
        for number, flags, *words in (
            (303, 0x1000, room, room, 0x1000),  # name_to_handle_at
            (428, 0x1000, 0x1000),  # open_tree
            (442, 0x1000, 0x1000, room, 32),  # mount_setattr
            (433, 8, 8),  # fspick
            (429, 4, -100, b"/", 4),  # move_mount
            (468, 0x1000, room, 24, 0x1000),  # file_getattr
        ):
            for flag in flags, 0:
                words = [flag if word == flags else word for word in words]
                ctypes.set_errno(0)
                libc.syscall(number, here, b"", *words)
                print(number, flag != 0, os.strerror(ctypes.get_errno()))
        libc.syscall(429, -100, b"/", here, b"", 0x40)
        print(os.strerror(ctypes.get_errno()))
    """
    mounting = "EPERM" if os.geteuid() else "EINVAL"
    numbers = {303: "EOPNOTSUPP", 428: "EINVAL", 442: mounting, 433: mounting, 429: mounting}
    wanted = []
    for number, name in (numbers | {468: "EOPNOTSUPP"}).items():
        said = os.strerror(getattr(errno, name))
        wanted += [f"{number} True {said}", f"{number} False {os.strerror(errno.ENOENT)}"]
    found = mounted(sys.executable, "-S", "-c", script)
    assert found.out.decode().splitlines() == [*wanted, os.strerror(errno.EINVAL)]
    assert (found.status, found.err) == (0, b"")


def test_other_arguments_are_judged_before_a_path_that_is_refused(plain, mounted):
    script = """if True:
        import ctypes, os
        libc = ctypes.CDLL(None, use_errno=True)
        room, unknown = ctypes.create_string_buffer(8192), 1 << 20
        group = libc.syscall(300, 0, 0)  # fanotify_init
        open("file", "w").close()
        for path in b"file", b"none", b"file/none":
            for number, *words in (
                (303, -100, path, room, room, unknown),  # name_to_handle_at
                (428, -100, path, unknown),  # open_tree
                (442, -100, path, unknown, room, 32),  # mount_setattr
                (442, -100, path, 0, room, 8),
                (442, -100, path, 0, room, 32),  # nothing to be done
                (433, -100, path, unknown),  # fspick
                (429, -100, path, -100, b"/", unknown),  # move_mount
                (468, -100, path, room, 24, unknown),  # file_getattr
                (468, -100, path, room, 8, 0),
                (469, -100, path, room, 8192, 0),  # file_setattr
                (301, group, 0, 1, -100, path),  # fanotify_mark
                (301, group, 3, 1, -100, path),
                (301, group, 1, 0, -100, path),
                (166, path, unknown),  # umount2
                (167, path, unknown),  # swapon
            ):
                words = [ctypes.c_long(w) if isinstance(w, int) else w for w in words]
                ctypes.set_errno(0)
                print(number, libc.syscall(number, *words), os.strerror(ctypes.get_errno()))
    """
    command = sys.executable, "-S", "-c", script
    wanted = plain(*command)
    assert wanted.seen()[::2] == (0, b"")
    assert mounted(*command).seen() == wanted.seen()


@pytest.mark.parametrize("file_system", ["memfs", "passthrough"])
def test_a_write_that_says_itself_where_it_goes(plain, mounted, tmp_path, file_system):
    """pwritev2(2) with RWF_APPEND and RWF_NOAPPEND; see placed.py."""
    if file_system == "passthrough":
        (tmp_path / "source").mkdir()
        mounted.file_system = f"passthrough {tmp_path / 'source'}"
    command = sys.executable, "-S", str(PROGRAMS / "placed.py")
    wanted = plain(*command)
    assert wanted.seen()[::2] == (0, b"")
    assert mounted(*command).seen() == wanted.seen()


@pytest.mark.parametrize("how", [["here"], ["nothing"], ["here", "nothing"]], ids=" ".join)
def test_a_program_that_restricts_itself_uses_its_mounts(plain, mounted, how):
    """By landlock(7), to the working directory or to what is open; see landlocked.py."""
    command = sys.executable, "-S", str(PROGRAMS / "landlocked.py"), *how
    wanted = plain(*command)
    if wanted.status == 77:
        pytest.skip("the kernel has no Landlock of Linux 6.2")
    assert wanted.seen()[::2] == (0, b"")
    assert mounted(*command).seen() == wanted.seen()


_MAPS = """if True:
    import errno, mmap, os, sys
    fd = os.open(sys.argv[1], os.O_RDWR)
    for flags in mmap.MAP_SHARED, mmap.MAP_PRIVATE, 3:  # MAP_SHARED_VALIDATE
        for prot in mmap.PROT_READ, mmap.PROT_READ | mmap.PROT_WRITE:
            try:
                memory = mmap.mmap(fd, 8192, flags=flags, prot=prot)
            except OSError as error:
                print(errno.errorcode[error.errno], end=" ")
                continue
            if flags != mmap.MAP_PRIVATE and prot & mmap.PROT_WRITE:
                memory[:3] = b"abc"
                memory.flush()
            print(os.pread(fd, 3, 0) == memory[:3], end=" ")
"""


@pytest.mark.parametrize(
    ("options", "shared"),
    [("", "ENODEV ENODEV"), ("-o shared", "True True")],
    ids=["without", "with the capability"],
)
def test_a_file_of_which_nothing_is_kept_is_shared_where_that_is_wanted(tmp_path, options, shared):
    """direct_io, and FUSE_CAP_DIRECT_IO_ALLOW_MMAP: fuse_file_mmap() of the kernel."""
    server = build(PROGRAMS / "direct.c", tmp_path / "direct", *fuse("fuse3"))
    (point := tmp_path / "mount").mkdir()
    run = [sys.executable, "-m", "directfuse", "run", "-m", f"{server} {point} {options}", "--"]
    done = subprocess.run(
        [*run, sys.executable, "-S", "-c", _MAPS, point / "file"],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=60,
    )
    assert (done.stdout.strip(), done.stderr) == (f"{shared} True True {shared}", "")


def test_no_advice_takes_what_a_private_mapping_shows(mounted):
    """Not to the process by its descriptor, nor by guards; of other memory the kernel says."""
    script = """if True:
        import ctypes, mmap, os
        libc = ctypes.CDLL(None, use_errno=True)
        with open("f", "w+b") as file:
            file.write(b"file" * 4096)
            file.flush()
            private = mmap.mmap(file.fileno(), 16384, flags=mmap.MAP_PRIVATE)
        private[4096:4100] = b"mine"
        start = ctypes.addressof(ctypes.c_char.from_buffer(private))
        ranges = (ctypes.c_ulong * 4)(start, 4096, start + 4096, 4096)
        for advice in 4, 24, 102:  # MADV_DONTNEED, MADV_DONTNEED_LOCKED, MADV_GUARD_INSTALL
            ctypes.set_errno(0)
            libc.syscall(440, os.pidfd_open(os.getpid()), ranges, 2, advice, 0)
            print(os.strerror(ctypes.get_errno()), private[:4], private[4096:4100])
        libc.madvise(ctypes.c_void_p(start), 8192, 102)
        print(os.strerror(ctypes.get_errno()), private[:4], private[4096:4100])
        print(libc.syscall(440, os.pidfd_open(os.getpid()), ranges, 2, 20, 0))  # MADV_COLD
    """
    said = f"{os.strerror(errno.EINVAL)} b'file' b'mine'\n"
    found = mounted(sys.executable, "-S", "-c", script)
    assert (found.out.decode(), found.err) == (said * 4 + "8192\n", b"")


def test_the_number_of_a_call_is_an_int(plain, mounted, compiled):
    command = "/bin/sh", "-c", '"$0" file && ls', compiled("wide")
    wanted = plain(*command)
    if b"0" in wanted.out:
        pytest.skip("to kernels before 5.12 it is a long")
    assert wanted.seen() == (0, b"1\n" * 12 + b"file\n", b"")
    assert mounted(*command).seen() == wanted.seen()


def test_a_shadow_stack_is_refused_as_on_a_processor_without(inside):
    """A child would leave the core with one that does not fit."""
    call = "import ctypes, os; ctypes.CDLL(None, use_errno=True).syscall(158, 0x5001, 1); "
    found = inside(sys.executable, "-c", call + "print(os.strerror(ctypes.get_errno()))")
    assert found.out.decode() == os.strerror(errno.EOPNOTSUPP) + "\n"
