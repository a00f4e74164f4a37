"""Unmodified Python programs, and the ways in which a command line names a Python file system."""

import contextlib
import errno
import importlib
import os
import queue
import shutil
import sys
import tarfile
import textwrap
import threading
import zipfile

import pytest

import directfuse
from directfuse._python import meaning

pytest.importorskip("pyfuse3")

from .programs import (
    FUSEPY,
    FUSEPY_ON_A_THREAD,
    MFUSEPY,
    PYFUSE3,
    PYFUSE3_ASYNCIO,
    PYFUSE3_ON_A_THREAD,
    TESTS,
)  # they need pyfuse3

# ---- pyfuse3 -------------------------------------------------------------------------------------


def test_a_pyfuse3_program(script):
    pytest.importorskip("pyfuse3")
    with directfuse.mount([script(PYFUSE3), "/program", "--names", "x,y"]) as mount:
        assert directfuse.listdir("/program") == ["x", "y"]
        assert directfuse.open("/program/x").read() == "content of x"
        assert mount.log == "a word of the program"
        assert mount.fsname == "notes"
        assert mount.stats().driven["read"] == "inline"
    assert not directfuse.mounts()
    assert sys.argv[0] != script(PYFUSE3), "the caller has its own arguments back"


def test_a_program_finds_in_its_main_module_what_python_puts_there(script):
    """fusepy's examples ask `hasattr(__builtins__, "bytes")`."""
    text = "print(__name__, __file__ == sys.argv[0], hasattr(__builtins__, 'bytes'))"
    with pytest.raises(directfuse.MountError, match="__main__ True True"):
        directfuse.mount([script(text), "/none"])


def test_a_pyfuse3_program_with_asyncio(script):
    pytest.importorskip("pyfuse3")
    with directfuse.mount([script(PYFUSE3_ASYNCIO), "/program-asyncio"]) as mount:
        assert directfuse.open("/program-asyncio/a").read() == "content of a"
        assert mount.stats().driven["read"].startswith("loop: ")


def test_a_pyfuse3_program_gets_the_loop_of_its_thread_as_of_the_main_thread(script):
    """As pyfuse3's hello_asyncio.py does it; and one for trio comes after it."""
    text = PYFUSE3_ASYNCIO.replace(
        "asyncio.run(", "asyncio.get_event_loop().run_until_complete("
    ).replace("        pyfuse3.asyncio.disable()", "        asyncio.get_event_loop().close()")
    try:
        with directfuse.mount([script(text), "/program-loop"]):
            assert directfuse.open("/program-loop/a").read() == "content of a"
        with directfuse.mount([script(PYFUSE3), "/program-trio"]):
            assert directfuse.open("/program-trio/a").read() == "content of a"
    finally:
        sys.modules["pyfuse3.asyncio"].disable()


def test_a_program_whose_operations_suspend_runs_in_its_own_loop(script):
    pytest.importorskip("pyfuse3")
    text = PYFUSE3.replace(
        "    def main():",
        """
    class Notes(Notes):
        async def read(self, fh, off, size):
            await trio.sleep(0)
            return await super().read(fh, off, size)

    def main():""",
        1,
    )
    with directfuse.mount([script(text), "/program-slow"]) as mount:
        assert directfuse.open("/program-slow/a").read() == "content of a"
        assert mount.stats().driven["read"].startswith("loop: ")


def test_a_program_may_end_its_mount(script):
    pytest.importorskip("pyfuse3")
    text = PYFUSE3.replace(
        "    def main():",
        """
    class Notes(Notes):
        async def unlink(self, parent_inode, name, ctx):
            pyfuse3.terminate()

    def main():""",
        1,
    )
    mount = directfuse.mount([script(text), "/program-ends"])
    directfuse.remove("/program-ends/a")
    mount.unmount()
    assert not mount.mounted


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("raise RuntimeError('no data')", "RuntimeError: no data"),
        ("sys.exit('usage: no mountpoint')", "usage: no mountpoint"),
        ("print('I serve nothing')", "I serve nothing"),
        (
            "import argparse; argparse.ArgumentParser().parse_args()",
            "unrecognized arguments: /none",
        ),
        ("this is no Python", "SyntaxError"),
    ],
)
def test_a_program_that_does_not_mount_says_why(script, text, said):
    with pytest.raises(directfuse.MountError) as caught:
        directfuse.mount([script(text), "/none"])
    assert caught.value.errno == errno.EIO
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("leaving", "said"),
    [
        ("if os.fork(): os._exit(0)", "os.fork(): the program has to stay in the foreground"),
        ("os._exit(3)", "main() returned 3 before it mounted anything"),
        ("os.execvp('true', ['true'])", "wanted to become another one (exec)"),
    ],
)
def test_a_program_that_leaves_takes_nobody_along(script, leaving, said):
    path = script(f"import os\n{leaving}\nprint('still there')")
    with pytest.raises(directfuse.MountError) as caught:
        directfuse.mount([path, "/none"])
    assert said in str(caught.value) and "still there" not in str(caught.value)


def test_a_program_may_have_a_pool_of_processes(script, tmp_path):
    text = """
    import math, multiprocessing
    with multiprocessing.get_context("fork").Pool(1) as pool:
        names = str(pool.map(math.factorial, [3, 4]))
    """
    text = textwrap.dedent(text) + textwrap.dedent(MFUSEPY).replace("Fs()", "Fs(names)")
    command = [script(text.format(options="")), tmp_path / "m"]
    with directfuse.mount(command, placement="server") as mount:
        assert directfuse.listdir(mount.mountpoint) == ["[6, 24]"]


@pytest.mark.parametrize(
    ("child", "placement"),
    [
        ("by_name()", "server"),
        ("by_name()", "inline"),
        ("of_fork()", "inline"),
        ("of_thread()", "inline"),
    ],
)
def test_a_child_of_a_program_hears_signals(script, child, placement):
    """Which the program's own thread leaves to its host, and a server takes in one thread."""
    text = """
    import multiprocessing, subprocess, time
    from concurrent.futures import ThreadPoolExecutor
    def by_name():
        return subprocess.Popen(["sleep", "60"])
    def of_fork():
        child = multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,))
        child.start()
        child.wait = lambda seconds: child.join(seconds) or child.exitcode
        return child
    def of_thread():
        with ThreadPoolExecutor() as threads:
            return threads.submit(by_name).result()
    child = CHILD
    child.terminate()
    print("ended by", child.wait(20))
    """.replace("CHILD", child)
    with pytest.raises(directfuse.MountError, match="ended by -15"):
        directfuse.mount([script(text), "/none"], placement=placement)


def test_a_script_that_has_only_a_class_is_shown_how_that_is_mounted(script):
    text = """
    class Files:
        def getattr(self, path, fh=None): return {"st_mode": 0o40755, "st_nlink": 2}
        def readdir(self, path, fh): return [".", ".."]
    """
    path = script(text)
    directory, name = os.path.split(path)
    with pytest.raises(directfuse.MountError) as caught:
        directfuse.mount([path, "-o", "ro", "/none"])
    line = f"{name.removesuffix('.py')}:Files -o ro /none"
    assert f"mount that by: {line}, in {directory})" in str(caught.value)


# ---- fusepy and mfusepy --------------------------------------------------------------------------


@pytest.mark.parametrize("options", ["nothreads=True", "raw_fi=False, ro=True", "use_ino=True"])
def test_an_mfusepy_program(script, options):
    pytest.importorskip("mfusepy")
    path = script(MFUSEPY.replace("{options}", options))
    with directfuse.mount([path, "/program-mfusepy"]) as mount:
        assert directfuse.open("/program-mfusepy/a").read() == "content of a"
        assert mount.read_only == ("ro" in options)
        assert mount.stats().driven["read"] == "inline"


def test_an_mfusepy_program_that_wants_ctypes(script):
    """Its own callbacks are called then, through our libfuse."""
    pytest.importorskip("mfusepy")
    text = MFUSEPY.replace("{options}", "raw_fi=True").replace(
        "        pass",
        """
        def open(self, path, fi):
            fi.fh = 6
            return 0

        def read(self, path, size, offset, fi):
            return super().read(path, size, offset, fi.fh)
    """,
    )
    with directfuse.mount([script(text), "/program-ctypes"]) as mount:
        assert directfuse.open("/program-ctypes/a").read() == "content of a"
        assert not mount.stats().driven


def test_a_fusepy_program(script):
    pytest.importorskip("fuse")
    with directfuse.mount([script(FUSEPY), "/program-fusepy"]):
        assert directfuse.open("/program-fusepy/a").read() == "content of a"


CANCELLED = """
    import threading, trio, pyfuse3
    from pyfs.notes import Notes

    async def serve():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(pyfuse3.main)
            await trio.to_thread.run_sync(threading.cancel.wait)
            nursery.cancel_scope.cancel()

    pyfuse3.init(Notes(), sys.argv[1])
    trio.run(serve)
    threading.cancelled.set()
    pyfuse3.close()
    threading.order.put("session closed")
"""


def test_a_session_whose_main_was_cancelled_lives_as_long_as_its_files(script, monkeypatch):
    cancelled, order = threading.Event(), queue.Queue()
    monkeypatch.setattr(threading, "cancel", threading.Event(), raising=False)
    monkeypatch.setattr(threading, "cancelled", cancelled, raising=False)
    monkeypatch.setattr(threading, "order", order, raising=False)
    with directfuse.mount([script(CANCELLED), "/program-cancelled"]):
        file = directfuse.open("/program-cancelled/a", "rb", buffering=0)
        threading.cancel.set()
        assert cancelled.wait(10)
        assert file.read() == b"content of a"
        order.put("file closed")
        file.close()
    assert [order.get(timeout=10), order.get(timeout=10)] == ["file closed", "session closed"]


# ---- threads of a program ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "then"),
    [("", ""), ("", "sys.exit(0)"), ("", "thread.join()"), (", daemon=True", "thread.join()")],
)
def test_a_program_that_mounts_on_a_thread_of_its_own(script, how, then):
    pytest.importorskip("fuse")
    text = FUSEPY_ON_A_THREAD.replace("{how}", how).replace("{then}", then)
    with directfuse.mount([script(text), "/program-thread"], placement="inline"):
        assert directfuse.open("/program-thread/a").read() == "content of a"


@pytest.mark.parametrize("how", ["", ", daemon=True"])
@pytest.mark.parametrize(
    "words",
    [
        {"first": "begin()", "last": "pyfuse3.close()", "before": "", "then": "thread.join()"},
        {"first": "", "last": "pyfuse3.close()", "before": "begin()", "then": "thread.join()"},
        {"first": "", "last": "", "before": "begin()", "then": "thread.join(); pyfuse3.close()"},
    ],
    ids=["all", "closes", "serves"],
)
def test_a_pyfuse3_program_that_serves_on_a_thread_of_its_own(script, words, how):
    text = PYFUSE3_ON_A_THREAD.format(how=how, **words)
    for placement in "inline", "server":
        with directfuse.mount([script(text), "/program-thread"], placement=placement):
            assert directfuse.open("/program-thread/a").read() == "content of a"
    assert not directfuse.mounts()


def test_a_pyfuse3_program_whose_main_returns_before_its_thread(script):
    words = {"first": "begin()", "last": "pyfuse3.close()", "before": "", "then": "", "how": ""}
    with directfuse.mount([script(PYFUSE3_ON_A_THREAD.format(**words)), "/program-left"]):
        assert directfuse.open("/program-left/a").read() == "content of a"


NOTIFIES = """
    import contextlib, threading, trio, pyfuse3
    from pyfs.notes import Notes

    def notify():
        threading.late.wait()
        with contextlib.suppress(OSError):
            pyfuse3.invalidate_inode(pyfuse3.ROOT_INODE)
        pyfuse3.terminate()
        threading.notified.set()

    pyfuse3.init(Notes(), sys.argv[1])
    threading.Thread(target=notify, daemon=True).start()
    trio.run(pyfuse3.main)
    pyfuse3.close()
"""


@pytest.fixture
def notify(monkeypatch):
    """Has the thread of NOTIFIES go on, to its end."""
    late, notified = threading.Event(), threading.Event()
    monkeypatch.setattr(threading, "late", late, raising=False)
    monkeypatch.setattr(threading, "notified", notified, raising=False)
    return lambda: late.set() or notified.wait(10)


def test_a_thread_of_a_program_means_its_file_system_beside_others(script, notify):
    with directfuse.mount([script(PYFUSE3), "/program-other"]) as other:
        mount = directfuse.mount([script(NOTIFIES), "/program-notifies"])
        assert notify()
        mount.unmount()
        assert other.mounted


def test_a_thread_that_terminates_a_program_that_has_ended_ends_nothing_else(script, notify):
    directfuse.mount([script(NOTIFIES), "/program-terminated"]).unmount()
    with directfuse.mount([script(PYFUSE3), "/program-other"]) as other:
        assert notify()
        assert other.mounted


def test_a_thread_that_closes_after_the_program_has_ended_ends_no_other_mount(script, monkeypatch):
    """The next program may lie where this one lay."""
    pytest.importorskip("fuse")
    late, closed = threading.Event(), threading.Event()
    monkeypatch.setattr(threading, "late", late, raising=False)
    monkeypatch.setattr(threading, "closed", closed, raising=False)
    last = "threading.late.wait(); pyfuse3.close(); threading.closed.set()"
    words = {"first": "begin()", "last": last, "before": "", "then": "", "how": ""}
    directfuse.mount([script(PYFUSE3_ON_A_THREAD.format(**words)), "/program-late"]).unmount()
    with contextlib.ExitStack() as mounts:
        for name in "abc":
            mounts.enter_context(directfuse.mount([script(FUSEPY), f"/program-{name}"]))
        late.set()
        assert closed.wait(10)
        for name in "abc":
            assert directfuse.open(f"/program-{name}/a").read() == "content of a"


def test_a_mount_on_a_daemon_thread_ends_with_the_program(script):
    pytest.importorskip("fuse")
    text = FUSEPY_ON_A_THREAD.replace("{how}", ", daemon=True").replace("{then}", "over.wait()")
    text = text.replace(
        "        pass",
        """
        def unlink(self, path):
            over.set()

    over = threading.Event()
    """,
    )
    mount = directfuse.mount([script(text), "/program-daemon"])
    directfuse.remove("/program-daemon/a")
    mount.unmount()
    assert not mount.mounted


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_thread_of_a_program_that_leaves_takes_nobody_along(script):
    pytest.importorskip("fuse")
    leaving = """
    import os
    leaving = threading.Thread(target=os._exit, args=(3,))
    leaving.start()
    leaving.join()
    thread.start()"""
    text = FUSEPY_ON_A_THREAD.replace("{how}", "").replace("{then}", "")
    text = text.replace("    thread.start()", leaving)
    with directfuse.mount([script(text), "/program-leaving"]):
        assert directfuse.open("/program-leaving/a").read() == "content of a"


# ---- names ---------------------------------------------------------------------------------------


@pytest.fixture
def importable(monkeypatch):
    monkeypatch.syspath_prepend(TESTS)


@pytest.mark.usefixtures("importable")
def test_module_and_class():
    pytest.importorskip("pyfuse3")
    with directfuse.mount("pyfs.notes:Notes x y --content=about:{} /named -o ro") as mount:
        assert directfuse.listdir("/named") == ["x", "y"]
        assert directfuse.open("/named/x").read() == "about:x"
        assert mount.read_only
        assert mount.fsname == "Notes"


@pytest.mark.usefixtures("importable")
@pytest.mark.parametrize("line", ["here_only:Fs", "python3 -m here_only"])
def test_the_working_directory_counts(tmp_path, monkeypatch, line):
    """As for `python -m`: also to a command, on whose path it is not."""
    (tmp_path / "here_only.py").write_text(
        textwrap.dedent(PYFUSE3) + "from pyfs.memory import Memory as Fs\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(filter(None, sys.path)))
    monkeypatch.delitem(sys.modules, "here_only", raising=False)
    with directfuse.mount(f"{line} /named-here"):
        assert directfuse.listdir("/named-here") == ["a"]


def test_a_module_that_is_not_found_leaves_the_path_as_it_was(monkeypatch):
    """Of an interactive Python it begins with the working directory, which comes first then."""
    path = ["", *filter(None, sys.path)]
    monkeypatch.setattr(sys, "path", list(path))
    with pytest.raises(directfuse.MountError):
        directfuse.mount("no_such_module:Fs /m")
    assert sys.path == path


NO_SIGNATURE = """
    class Fs(dict):
        def getattr(self, path, fh=None):
            return {"st_mode": 0o40755, "st_nlink": 2}
        def readdir(self, path, fh):
            return ["x"]
"""


def test_a_class_whose_arguments_nobody_knows(tmp_path, monkeypatch):
    """As of many that are compiled."""
    (tmp_path / "unknown.py").write_text(textwrap.dedent(NO_SIGNATURE))
    monkeypatch.syspath_prepend(tmp_path)
    with directfuse.mount("unknown:Fs /named-unknown"):
        assert directfuse.listdir("/named-unknown") == ["x"]


@pytest.mark.usefixtures("importable")
@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("no_such_module:Fs /m", "cannot import no_such_module"),
        ("pyfs.memory:Fs /m", "pyfs.memory has no Fs"),
        ("pyfs.memory:Memory", "names no mountpoint"),
        ("pyfs.memory:Memory --surprise=1 /m", "surprise"),
        ("pyfs.memory:os /m", "no file system"),
        ("os:getcwd /m", "no file system"),
        ("os: /m", "is named as module:Class"),
        (":Fs /m", "is named as module:Class"),
        ("..os:Fs /m", "is named as module:Class"),
        ("os:path:Fs /m", "is named as module:Class"),
    ],
)
def test_names_that_mean_no_file_system(command, said):
    with pytest.raises(directfuse.MountError, match=said):
        directfuse.mount(command)


@pytest.mark.parametrize("command", ["fs.py:Fs /m", "./fs.py:Fs /m", "{}/fs.py:Fs /m"])
def test_a_class_of_a_file_is_shown_by_its_module(command, tmp_path, monkeypatch):
    (tmp_path / "fs.py").write_text("class Fs: ...\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(directfuse.MountError, match="which is imported: fs:Fs"):
        directfuse.mount(command.format(tmp_path))


def test_an_installed_package_brings_a_file_system(tmp_path, monkeypatch):
    """Entry points of the group come before scripts on PATH, and after what is built in."""
    (tmp_path / "brought.py").write_text("from pyfs.memory import Memory as Fs\n")
    metadata = tmp_path / "brought-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: brought\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text(
        f"[{meaning.GROUP}]\nbrought-fs = brought:Fs\nmemfs = brought:Fs\n"
    )
    monkeypatch.syspath_prepend(TESTS)
    monkeypatch.syspath_prepend(tmp_path)
    assert "brought-fs" in meaning.names()
    with directfuse.mount("brought-fs one two /brought"):
        assert directfuse.listdir("/brought") == ["one", "two"]
    with directfuse.mount("memfs /built-in") as mount:
        assert mount.subtype == "memfs"


@pytest.mark.usefixtures("importable")
def test_python_runs_a_module(tmp_path, monkeypatch):
    pytest.importorskip("pyfuse3")
    (tmp_path / "a_program.py").write_text(textwrap.dedent(PYFUSE3))
    monkeypatch.syspath_prepend(tmp_path)
    with directfuse.mount("python3 -m a_program /as-module --names m"):
        assert directfuse.listdir("/as-module") == ["m"]


def test_a_script_on_path(script, monkeypatch):
    pytest.importorskip("pyfuse3")
    path = script(PYFUSE3, name="notes-fs", shebang=sys.executable)
    monkeypatch.setenv("PATH", os.path.dirname(path), prepend=os.pathsep)
    with directfuse.mount("notes-fs /on-path"):
        assert directfuse.listdir("/on-path") == ["a"]


def test_a_script_of_another_python_gets_a_process_of_that_python(script, tmp_path):
    other = tmp_path / "other"
    (other / "bin").mkdir(parents=True)
    (other / "pyvenv.cfg").write_text("")
    (other / "bin/python3").symlink_to(sys.executable)
    ours = f"    sys.path += {sys.path!r}\n    assert sys.prefix == {os.fspath(other)!r}\n"
    path = script(ours + PYFUSE3, name="theirs", shebang=other / "bin/python3")
    with directfuse.mount([path, "/other"]) as mount:
        assert mount.placement == "helper"
        assert directfuse.listdir("/other") == ["a"]
    with pytest.raises(directfuse.NotSupportedError, match="belongs to another Python"):
        directfuse.mount([path, "/other"], placement="inline")


def test_python_in_a_helper_process(script):
    path = script(PYFUSE3, shebang=sys.executable)
    with directfuse.mount([path, "/elsewhere"], placement="helper") as mount:
        assert mount.placement == "helper"
        assert directfuse.listdir("/elsewhere") == ["a"]


# ---- a libfuse of its own ------------------------------------------------------------------------


@pytest.fixture
def linked(script, tmp_path):
    """A program of llfuse, which is linked to libfuse; for this test a name of pyfuse3."""
    (tmp_path / "llfuse.py").write_text("from pyfuse3 import *\n")
    return script(PYFUSE3.replace(" pyfuse3\n", " llfuse as pyfuse3\n"))


def test_a_program_of_llfuse_gets_a_process_of_its_own(linked):
    """Here llfuse would mount through the kernel, and python-fuse end the application."""
    with directfuse.mount([sys.executable, linked, "/linked"]) as mount:
        assert mount.placement == "helper"
        assert "llfuse is linked to the system's libfuse" in mount.reason
        assert directfuse.listdir("/linked") == ["a"]
    with pytest.raises(directfuse.MountError, match="mount it with placement='helper'") as caught:
        directfuse.mount([sys.executable, linked, "/linked"], placement="inline")
    assert caught.value.errno == errno.ENOEXEC


def test_a_program_of_llfuse_in_a_mount_server(linked):
    with directfuse.mount([sys.executable, linked, "/linked"], placement="server"):
        assert directfuse.listdir("/linked") == ["a"]


def test_llfuse_of_the_application_is_refused_to_a_program(linked, tmp_path, monkeypatch):
    """It was imported before, so no import of the program's own comes to us."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "llfuse", raising=False)
    assert importlib.import_module("llfuse").RequestContext
    with pytest.raises(directfuse.MountError, match="llfuse is linked to"):
        directfuse.mount([sys.executable, linked, "/linked"], placement="inline")


def test_a_program_that_can_do_without_llfuse_is_inline(script):
    text = PYFUSE3.replace(
        "import argparse",
        """
    try:
        import llfuse
    except ImportError as error:
        assert error.name == "llfuse"
    import argparse""",
    )
    with directfuse.mount([script(text), "/without"]) as mount:
        assert mount.placement == "inline"


def test_a_copy_of_fusepy_under_another_name(script, tmp_path):
    """It loads libfuse by ctypes, by the name of the system's."""
    fuse = pytest.importorskip("fuse")
    shutil.copy(fuse.__file__, tmp_path / "vendored.py")
    path = script(FUSEPY.replace("import fuse\n", "import vendored as fuse\n"))
    with directfuse.mount([sys.executable, path, "/copied"]) as mount:
        assert mount.placement == "inline"
        assert not os.path.ismount("/copied")
        assert directfuse.listdir("/copied") == ["a"]


# ---- ratarmount ----------------------------------------------------------------------------------


@pytest.fixture
def archives(tmp_path):
    """tar, zip, and a tar that holds the first."""
    tree = tmp_path / "tree"
    (tree / "sub").mkdir(parents=True)
    (tree / "f").write_text("content of f")
    (tree / "sub/g").write_text("content of g" * 10_000)
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        archive.add(tree, ".")
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(tree / "f", "f")
        archive.write(tree / "sub/g", "sub/g")
    with tarfile.open(tmp_path / "nested.tar", "w") as archive:
        archive.add(tmp_path / "a.tar", "a.tar")
    return tmp_path


@pytest.mark.parametrize(
    ("name", "options", "base"),
    [
        ("a.tar", [], ""),
        ("a.zip", [], ""),
        ("nested.tar", ["--recursive"], "/a.tar"),
    ],
)
def test_ratarmount(archives, name, options, base):
    """Its console script, unmodified: found by its shebang, run in this process."""
    beside = os.path.join(os.path.dirname(sys.executable), "ratarmount")
    program = beside if os.path.exists(beside) else shutil.which("ratarmount")
    if program is None:
        pytest.skip("ratarmount is not installed (PyPI: ratarmount)")
    point = os.fspath(archives / "point")
    archive = os.fspath(archives / name)
    with directfuse.mount([program, "-f", *options, archive, point]) as mount:
        assert sorted(directfuse.listdir(point + base)) == ["f", "sub"]
        assert directfuse.open(f"{point}{base}/f").read() == "content of f"
        assert directfuse.open(f"{point}{base}/sub/g").read() == "content of g" * 10_000
        with pytest.raises(FileNotFoundError):
            directfuse.stat(f"{point}/none")
        assert mount.stats().ops["read"].calls > 0
        assert os.listdir(point) == [], "nothing is mounted for the kernel"
