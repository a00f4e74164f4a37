"""Mounting, listing, unmounting: what works, and what is refused in which words."""

import errno
import os
import pickle
import shlex
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import directfuse
from directfuse import _native

from .interrupted import Interrupted, interrupted_at, interrupted_everywhere
from .subinterpreters import in_subinterpreter


def test_a_mount_tells_about_itself(memfs, tmp_path):
    point = os.path.realpath(tmp_path / "mnt")
    assert memfs.mountpoint == point and memfs.mounted and memfs.placement == "inline"
    assert memfs.command == ["memfs", str(tmp_path / "mnt")] and memfs.id > 0
    assert memfs.device == directfuse.stat(point).st_dev and not memfs.read_only
    assert point in repr(memfs) and "memfs" in repr(memfs)
    assert not os.path.exists(point), "nothing is made on disk"


@pytest.mark.parametrize("form", ["string", "words", "paths", "mountpoint"])
def test_forms_of_a_command(form, tmp_path):
    point = tmp_path / "with a space"
    mounted = {
        "string": lambda: directfuse.mount(f"memfs {shlex.quote(str(point))}"),
        "words": lambda: directfuse.mount(["memfs", str(point)]),
        "paths": lambda: directfuse.mount(("memfs", point)),
        "mountpoint": lambda: directfuse.mount("memfs", mountpoint=point),
    }[form]()
    with mounted:
        assert mounted.mountpoint == str(point)
        directfuse.mkdir(point / "d")
    assert not mounted.mounted
    with pytest.raises(FileNotFoundError):
        directfuse.stat(point)


def test_read_only(tmp_path):
    with directfuse.mount(["memfs", tmp_path / "m", "-o", "ro"]) as mounted:
        assert mounted.read_only
        with pytest.raises(OSError, match="Read-only") as caught:
            directfuse.mkdir(tmp_path / "m" / "d")
        assert caught.value.errno == errno.EROFS


def test_mounts_lists_them_all(memfs, mount_of):
    other = mount_of("passthrough", "other")
    found = {mounted.mountpoint: mounted for mounted in directfuse.mounts()}
    assert found[memfs.mountpoint] is memfs and found[other.mountpoint] is other
    other.unmount()
    assert other not in directfuse.mounts()


def test_a_mount_is_found_while_others_come_and_go(memfs, monkeypatch):
    """Another one is there for that moment in which the mounts are listed."""

    class Library:
        listed = 0

        def __getattr__(self, name):
            return getattr(lib, name)

        def df_mounts(self, entries, room):
            self.listed += room > 0
            return lib.df_mounts(entries, room) + (room > 0 and self.listed == 1)

    lib = _native.lib
    monkeypatch.setattr(_native, "lib", Library())
    assert memfs.mounted
    assert _native.lib.listed == 2


# ---- the end of a mount ------------------------------------------------------------------------


def test_unmount_refuses_while_files_are_open(memfs, mem):
    file = directfuse.open(f"{mem}/f", "w")
    with pytest.raises(directfuse.UnmountError, match="files are open") as caught:
        memfs.unmount()
    assert caught.value.errno == errno.EBUSY and caught.value.filename == mem
    assert memfs.mounted
    file.write("still there")
    file.close()
    memfs.unmount()
    with pytest.raises(directfuse.UnmountError, match="not mounted") as caught:
        memfs.unmount()
    assert caught.value.errno == errno.EINVAL


def test_lazy_unmount(memfs, mem):
    file = directfuse.open(f"{mem}/f", "w+")
    memfs.unmount(lazy=True)
    assert not memfs.mounted
    with pytest.raises(FileNotFoundError):
        directfuse.stat(f"{mem}/f")
    file.write("written to a detached file system")
    file.seek(0)
    assert file.read() == "written to a detached file system"
    with directfuse.mount(["memfs", mem]):  # the place is free again
        assert directfuse.listdir(mem) == []
    file.close()


def test_unmount_by_path(mount_of, tmp_path):
    mounted = mount_of("memfs")
    directfuse.unmount(tmp_path / "." / "mnt")
    assert not mounted.mounted
    with pytest.raises(directfuse.UnmountError, match="nothing is mounted there") as caught:
        directfuse.unmount(tmp_path / "mnt")
    assert caught.value.errno == errno.EINVAL and caught.value.filename == str(tmp_path / "mnt")


def test_leaving_the_context_with_an_exception_keeps_the_exception(tmp_path):
    with pytest.raises(RuntimeError, match="the reason"):
        with directfuse.mount(["memfs", tmp_path / "m"]) as mounted:
            file = directfuse.open(tmp_path / "m" / "f", "w")
            raise RuntimeError("the reason")
    assert not mounted.mounted
    file.close()


def test_leaving_the_context_with_open_files_is_an_error(tmp_path):
    with pytest.raises(directfuse.UnmountError):
        with directfuse.mount(["memfs", tmp_path / "m"]) as mounted:
            file = directfuse.open(tmp_path / "m" / "f", "w")
    file.close()
    mounted.unmount()


def test_leaving_the_context_after_unmounting(tmp_path):
    with directfuse.mount(["memfs", tmp_path / "m"]) as mounted:
        mounted.unmount()


@pytest.mark.parametrize("placement", ["inline", "server"])
def test_who_is_interrupted_anywhere_in_mounting_has_no_mount(placement, tmp_path):
    """It could be unmounted only by who thinks of looking for it."""

    def left():
        return len(directfuse.mounts()), len(os.listdir("/proc/self/fd"))

    def nothing_is_left():
        assert left() == before

    before = left()
    interrupted_everywhere(
        lambda: directfuse.mount(["memfs", tmp_path / "m"], placement=placement), nothing_is_left
    ).unmount()


# ---- statistics --------------------------------------------------------------------------------


def test_stats(mount_of, fill):
    mounted = mount_of("memfs", timing=True)
    assert not mounted.stats().ops.get("write")
    fill(f"{mounted.mountpoint}/f", b"12345")
    with pytest.raises(FileNotFoundError):
        directfuse.stat(f"{mounted.mountpoint}/none")
    stats = mounted.stats()
    assert stats.ops["write"].calls == 1 and stats.ops["write"].bytes == 5
    assert stats.ops["getattr"].errors >= 1
    assert stats.calls == sum(op.calls for op in stats.ops.values())
    assert stats.nanoseconds > 0 and stats.errors >= 1 and stats.bytes == 5
    mounted.unmount()
    assert mounted.stats().calls >= stats.calls


def test_stats_of_an_unmount_that_was_interrupted(tmp_path):
    ended = 0
    for step in range(200):
        mount = directfuse.mount(["memfs", tmp_path / "m"])
        directfuse.mkdir(tmp_path / "m/d")
        try:
            interrupted_at(step, mount.unmount)
        except Interrupted:
            ended += not mount.mounted
        else:
            break
        finally:
            if mount.mounted:
                mount.unmount()
        assert mount.stats().ops["mkdir"].calls == 1
    assert step < 199 and ended > 0


def test_no_stats(mount_of):
    mounted = mount_of("memfs", count=False)
    directfuse.stat(mounted.mountpoint)
    with pytest.raises(directfuse.DirectfuseError, match="count=False"):
        mounted.stats()


def test_time_is_measured_on_request_only(mount_of):
    mounted = mount_of("memfs")
    directfuse.stat(mounted.mountpoint)
    assert mounted.stats().nanoseconds == 0


# ---- refusals ----------------------------------------------------------------------------------


def refusal(*args, **options):
    with pytest.raises(directfuse.MountError) as caught:
        directfuse.mount(*args, **options)
    return caught.value


def test_an_unknown_file_system(tmp_path):
    error = refusal(["no-such-fs", tmp_path / "m"])
    assert error.errno == errno.ENOENT and "memfs" in str(error) and "no-such-fs" in str(error)
    error = refusal([tmp_path / "none.so", tmp_path / "m"])
    assert error.errno == errno.ENOENT and "none.so" in str(error)


def test_a_name_is_no_file_of_the_working_directory(tmp_path, monkeypatch):
    """As in a shell: who can write there must not choose what is loaded."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "our-fs").write_bytes(b"anything")
    (tmp_path / "true").write_bytes(b"anything")
    assert refusal(["our-fs", "/m"]).errno == errno.ENOENT
    assert "named by its path" in str(refusal(["our-fs", "/m"]))
    assert refusal(["./our-fs", "/m"]).errno == errno.ENOEXEC
    assert os.fspath(tmp_path) not in str(refusal(["true", "/m"], placement="inline"))


def test_an_executable_that_is_no_fuse_program():
    error = refusal(["/bin/true", "/m"], placement="inline")
    assert error.errno == errno.ENOEXEC and "does not link to libfuse" in str(error)
    assert 'placement "helper"' in str(error)
    assert refusal(["true", "/m"], placement="inline").errno == errno.ENOEXEC
    error = refusal(["true", "/m"])  # then a helper tries
    assert error.errno == errno.EIO and "before it mounted anything" in str(error)


def test_what_is_no_fuse_program(tmp_path):
    text = tmp_path / "text.so"
    text.write_text("not ELF")
    assert refusal([text, "/m"]).errno == errno.ENOEXEC
    assert refusal([tmp_path, "/m"]).errno == errno.ENOEXEC
    import _ctypes  # a shared object that holds no program

    error = refusal([_ctypes.__file__, "/m"])
    assert error.errno == errno.ENOEXEC and _ctypes.__file__ in str(error)


def test_a_busy_mountpoint(memfs, mem):
    error = refusal(["memfs", mem])
    assert error.errno == errno.EBUSY and mem in str(error)
    assert memfs.mounted


def test_a_mountpoint_that_is_no_directory(tmp_path):
    (tmp_path / "file").write_text("x")
    error = refusal(["memfs", tmp_path / "file"])
    assert error.errno == errno.ENOTDIR


def test_the_plugins_own_words_are_in_the_message(tmp_path):
    error = refusal(["memfs", "--no-such-option", tmp_path / "m"])
    assert "no-such-option" in error.strerror
    error = refusal("memfs")
    assert error.errno in (errno.EIO, errno.EINVAL) and error.strerror


@pytest.mark.parametrize("command", ["", "   ", [], [""]])
def test_an_empty_command(command):
    error = refusal(command)
    assert error.errno == errno.EINVAL and "memfs /mem" in str(error)


def test_a_command_that_cannot_be_split():
    error = refusal("memfs 'open quote")
    assert error.errno == errno.EINVAL and "quot" in str(error)


def test_an_object_file_is_told_how_to_be_linked(tmp_path):
    data = bytearray(Path(sys.executable).read_bytes())
    data[16:18] = (1).to_bytes(2, "little")  # e_type: ET_REL, elf(5)
    (tmp_path / "fs.o").write_bytes(data)
    error = refusal(f"{tmp_path}/fs.o /m")
    assert error.errno == errno.ENOEXEC
    assert "not been linked" in str(error) and "-shared" in str(error)


def test_commands_of_a_wrong_type():
    for command in (b"memfs /m", os, 5, None, object()):
        with pytest.raises((TypeError, directfuse.NotSupportedError)):
            directfuse.mount(command)
    with pytest.raises(TypeError):
        directfuse.mount(["memfs", 5])
    with pytest.raises(TypeError):
        directfuse.mount(["memfs", b"/m"])
    with pytest.raises(ValueError, match="null byte"):
        directfuse.mount(["memfs", "/m\0"])


def test_an_object_that_cannot_be_placed_says_why(tmp_path):
    class Operations:
        def getattr(self, path, fh=None):
            return {}

        def readdir(self, path, fh):
            return [".", ".."]

    with pytest.raises(NotImplementedError, match="name its class instead"):
        directfuse.mount(Operations(), mountpoint=tmp_path, placement="server")
    with pytest.raises(ValueError, match="placement"):
        directfuse.mount("memfs /m", placement="elsewhere")


def test_errors_are_os_errors_and_can_be_pickled():
    error = refusal("no-such-fs /m")
    assert isinstance(error, OSError) and isinstance(error, directfuse.DirectfuseError)
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), again.args, again.filename) == (type(error), error.args, error.filename)
    assert type(error).__module__ == "directfuse"


@pytest.mark.parametrize(
    "use",
    [
        lambda point: directfuse.mount("memfs", point),
        lambda point: directfuse.attach("memfs", mountpoint=point),
        directfuse.unmount,
    ],
)
def test_a_mountpoint_of_bytes_is_refused_by_name(use):
    with pytest.raises(TypeError, match="a mountpoint is a str"):
        use(b"/m")


def test_a_mount_cannot_be_pickled(memfs):
    with pytest.raises(TypeError, match="mount again"):
        pickle.dumps(memfs)


# ---- hooks, identity, the end of the process ---------------------------------------------------


def test_audit_events(script, tmp_path):
    point = str(tmp_path / "m")
    text = f"""
        import directfuse, sys
        events = []
        sys.addaudithook(lambda name, args: name.startswith("directfuse") and events.append(name))
        with directfuse.mount(["memfs", {point!r}]):
            directfuse.mkdir({point!r} + "/d")
        sys.addaudithook(lambda name, args: 1 / 0 if name == "directfuse.mount" else None)
        try:
            directfuse.mount(["memfs", {point!r}])
        except ZeroDivisionError:
            events.append("refused")
        print(events)
    """
    assert (
        script(text) == "['directfuse.mount', 'directfuse.unmount', 'directfuse.mount', 'refused']"
    )


def test_umask(memfs, mem):
    former = directfuse.umask(0o077)
    try:
        assert os.umask(0o077) == 0o077
        directfuse.mkdir(f"{mem}/d")
        assert directfuse.stat(f"{mem}/d").st_mode & 0o777 == 0o700
        os.umask(0)
        directfuse.identity_refresh()
        directfuse.mkdir(f"{mem}/e")
        assert directfuse.stat(f"{mem}/e").st_mode & 0o777 == 0o777
    finally:
        directfuse.umask(former)


def test_a_process_may_end_with_mounts_alive(script, tmp_path):
    assert (
        script(
            f"""
            import directfuse
            m = directfuse.mount(["memfs", {str(tmp_path / "a")!r}])
            n = directfuse.mount(["memfs", {str(tmp_path / "b")!r}])
            fd = directfuse.os_open({str(tmp_path / "a" / "f")!r}, 66)
            file = directfuse.open({str(tmp_path / "b" / "f")!r}, "w")
            print(directfuse.write(fd, b"left open"))
            """,
            "-Wignore::ResourceWarning",
        )
        == "9"
    )


def test_a_process_may_end_while_threads_call(script, tmp_path):
    text = f"""
        import directfuse, threading
        root = {str(tmp_path / "a")!r}
        directfuse.mount(["memfs", root])
        started = threading.Barrier(4)
        def work():
            started.wait()
            while True:
                try:
                    directfuse.stat(root)
                except OSError:
                    pass
        for _ in range(3):
            threading.Thread(target=work, daemon=True).start()
        started.wait()
        print("done")
    """
    assert script(text) == "done"


def test_what_is_unmounted_at_exit_comes_before_what_it_needs(script, tmp_path):
    """A passthrough of a real directory writes through to it, also when never unmounted."""
    source = tmp_path / "source"
    source.mkdir()
    text = f"""
        import directfuse
        directfuse.mount(["passthrough", {str(source)!r}, {str(tmp_path / "m")!r}])
        file = directfuse.open({str(tmp_path / "m" / "f")!r}, "w")
        file.write("written at exit")
        file.close()
        print(len(directfuse.mounts()))
    """
    assert script(text) == "1"
    assert (source / "f").read_text() == "written at exit"


def test_importing_costs_no_mount_and_no_thread(script):
    text = """
        import directfuse, os
        print(directfuse.mounts(), len(os.listdir("/proc/self/task")))
    """
    assert script(text) == "[] 1"


@pytest.fixture
def in_both(script, tmp_path):
    """Runs code in the main interpreter, then other code in one that shares the GIL with it; `path`
    is a file of a mount. What they print."""

    def run(first, then):
        point = os.fspath(tmp_path / "m")
        begin = f"import directfuse, io, os\npath = {point + '/f'!r}\n"
        mount = (
            f"directfuse.mount(['memfs', {point!r}])\ndirectfuse.open(path, 'w').write('text')\n"
        )
        main = begin + mount + textwrap.dedent(first)
        return script(main + in_subinterpreter(begin + textwrap.dedent(then)))

    return run


def test_what_a_subinterpreter_gets_is_of_its_own_classes(in_both):
    said = in_both(
        "assert directfuse.stat(path).st_size == 4",
        """
        st = directfuse.stat(path)
        print(type(st) is os.stat_result, st.st_size)
        for mode in "rb", "r+b", "wb", "r", "w":
            with directfuse.open(path, mode) as file, open(os.devnull, mode) as real:
                file.closed, file.name  # it is dormant
                print(mode, type(file) is type(real), isinstance(file, io.IOBase))
            if "b" in mode:
                assert isinstance(file.raw, io.RawIOBase)
        with directfuse.open(path, "rb", 0) as file:
            for call in file.fileno, lambda: file.write(b""):
                try:
                    call()
                except io.UnsupportedOperation:
                    print("unsupported")
        """,
    )
    same = [f"{mode} True True" for mode in ("rb", "r+b", "wb", "r", "w")]
    assert said.split("\n") == ["True 4", *same, "unsupported", "unsupported"]


def test_attributes_of_our_classes_are_theirs_in_a_subinterpreter(in_both):
    """It numbers classes by itself, and finds attributes by these numbers: one of so many has the
    number that ours has in the main interpreter."""
    said = in_both(
        """
        kept = [type("C", (), {"tell": 5}) for _ in range(3000)]
        assert all(each.tell == 5 for each in kept)
        with directfuse.open(path, "rb", 0) as file:
            file.tell()
        """,
        """
        kept = []
        with directfuse.open(path, "rb", 0) as file:
            for _ in range(6000):
                kept.append(type("C", (), {"tell": 5}))
                assert (kept[-1].tell, file.tell()) == (5, 0)
        print("all", len(kept))
        """,
    )
    assert said == "all 6000"


@pytest.mark.skipif(
    sys.version_info < (3, 12), reason="subinterpreters by _xxsubinterpreters: 3.12"
)
def test_isolated_subinterpreters_are_refused():
    interpreters = pytest.importorskip("_xxsubinterpreters")
    number = interpreters.create()
    try:
        with pytest.raises(interpreters.RunFailedError, match="does not support"):
            interpreters.run_string(number, "import directfuse")
    finally:
        interpreters.destroy(number)


def test_a_mount_without_a_descriptor_to_make_is_emfile(tmp_path):
    """However many it has got before it wants the next."""
    program = (
        "import directfuse, os, resource, sys\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))\n"
        "for fd in range(3, 64): os.dup2(0, fd)\n"
        "for free in range(3):\n"
        "    try: directfuse.mount(f'memfs {sys.argv[1]}', placement='inline')\n"
        "    except directfuse.MountError as error: print(error.errno)\n"
        "    os.close(63 - free)\n"
        "directfuse.mount(f'memfs {sys.argv[1]}', placement='inline')\n"
    )
    words = [sys.executable, "-c", program, tmp_path / "mnt"]
    said = subprocess.check_output(words, stdin=subprocess.DEVNULL, text=True, timeout=30)
    assert said.split() == [str(errno.EMFILE)] * 3
