"""Python file systems that serve other processes: an interpreter is their mount server."""

import errno
import os
import select
import signal
import subprocess
import sys
import textwrap
from contextlib import suppress

import pytest

import directfuse

pytest.importorskip("pyfuse3")
trio = pytest.importorskip("trio")

from server.forks import expect, in_fork  # noqa: E402

from .memory import Memory  # noqa: E402
from .notes import Notes  # noqa: E402  # needs pyfuse3
from .programs import FUSEPY, MFUSEPY, PYFUSE3, PYFUSE3_ASYNCIO, TESTS  # noqa: E402


@pytest.fixture(autouse=True)
def _importable(monkeypatch):
    """Found here by name, and by the programs that we start."""
    monkeypatch.syspath_prepend(TESTS)
    monkeypatch.setenv("PYTHONPATH", TESTS)


def server_of(point):
    """The process that serves a mountpoint: its command line names it."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
        except OSError:  # it has ended
            continue
        if b"directfuse._python.server" in words and os.fsencode(point) in words:
            return int(pid)
    raise LookupError("no server")


# ---- command lines -------------------------------------------------------------------------------


def test_module_and_class_are_shared_with_forked_children(tmp_path):
    point = str(tmp_path / "m")
    command = f"pyfs.notes:Notes x --content=about:{{}} {point}"
    with directfuse.mount(command, placement="server") as mount:
        assert (mount.placement, mount.fsname) == ("server", "Notes")
        assert directfuse.attach(command) is mount

        def write():
            with directfuse.open(f"{point}/y", "x") as file:
                file.write("from the child")

        assert in_fork(write) == 0
        assert directfuse.open(f"{point}/y").read() == "from the child"
        assert directfuse.open(f"{point}/x").read() == "about:x"
        assert mount.stats().trips > 0


@pytest.mark.parametrize(
    "text", [PYFUSE3, PYFUSE3_ASYNCIO, MFUSEPY.replace("{options}", "ro=True"), FUSEPY]
)
def test_unmodified_programs(script, tmp_path, text):
    point = str(tmp_path / "m")
    with directfuse.mount([script(text), point], placement="server") as mount:
        assert mount.read_only == ("ro=True" in text)
        assert in_fork(lambda: expect(directfuse.open(f"{point}/a").read(), "content of a")) == 0


def test_python_runs_a_module(tmp_path, monkeypatch):
    (tmp_path / "a_program.py").write_text(textwrap.dedent(PYFUSE3))
    monkeypatch.syspath_prepend(tmp_path)  # here alone: the server is told
    command = [sys.executable, "-m", "a_program", tmp_path / "m", "--names", "m"]
    with directfuse.mount(command, placement="server") as mount:
        assert directfuse.listdir(mount.mountpoint) == ["m"]


def test_a_file_system_of_fsspec(tmp_path):
    pytest.importorskip("fsspec")
    (tmp_path / "source").mkdir()
    (tmp_path / "source/a").write_text("text")
    with directfuse.mount(f"fsspec file://{tmp_path}/source {tmp_path}/m", placement="server"):
        assert in_fork(lambda: expect(directfuse.open(f"{tmp_path}/m/a").read(), "text")) == 0


@pytest.mark.parametrize(
    ("command", "said", "code"),
    [
        ("no_such_module:Fs", "cannot import no_such_module", errno.ENOENT),
        ("pyfs.memory:Memory --surprise=1", "surprise", errno.EINVAL),
        ("os:getcwd", "no file system", errno.EINVAL),
    ],
)
def test_a_refusal_has_its_words(tmp_path, command, said, code):
    with pytest.raises(directfuse.MountError, match=said) as caught:
        directfuse.mount([*command.split(), tmp_path / "m"], placement="server")
    assert caught.value.errno == code
    assert not directfuse.mounts()


def test_a_program_that_takes_too_long(script, tmp_path):
    """It is ended, for nobody waits any more."""
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    text = PYFUSE3.replace("def main():", f"open({os.fspath(gate)!r}).close()\n\n    def main():")
    point = tmp_path / "m"
    with pytest.raises(directfuse.MountError) as caught:
        directfuse.mount([script(text), point], placement="server", timeout=1)
    assert caught.value.errno == errno.ETIMEDOUT
    with suppress(LookupError, ProcessLookupError):  # it has ended
        wait_for_end(os.pidfd_open(server_of(point)))


def wait_for_end(process):
    """The server is no child of ours: it is watched by a descriptor."""
    waiting = select.poll()
    waiting.register(process, select.POLLIN)
    assert waiting.poll(20_000), "the server goes on"
    os.close(process)


def test_a_server_that_is_killed(tmp_path):
    point = str(tmp_path / "m")
    mount = directfuse.mount(["pyfs.notes:Notes", point], placement="server")
    process = os.pidfd_open(server_of(point))
    signal.pidfd_send_signal(process, signal.SIGKILL)
    wait_for_end(process)
    with pytest.raises(OSError) as caught:
        directfuse.listdir(point)
    assert caught.value.errno == errno.ENOTCONN
    mount.unmount()


def test_a_call_that_takes_too_long(tmp_path):
    command = ["pyfs.test_server:Sleeping", tmp_path / "m"]
    with directfuse.mount(command, placement="server", call_timeout=20) as mount:
        fd = directfuse.os_open(f"{mount.mountpoint}/a", os.O_RDONLY)
        directfuse._native.set_call_timeout(mount.id, 300)
        with pytest.raises(TimeoutError):
            directfuse.read(fd, 10)
        directfuse._native.set_call_timeout(mount.id, 20_000)
        assert directfuse.listdir(mount.mountpoint) == ["a"], "others go on"
        directfuse.close(fd)


class Sleeping(Notes):
    """read() takes a second, in the loop."""

    async def read(self, fh, off, size):
        await trio.sleep(1)
        return b""


# ---- objects -------------------------------------------------------------------------------------


class Counted(Memory):
    """Writes what happens to it into a file, for its processes do not meet otherwise."""

    def __init__(self, log):
        super().__init__("a")
        self.log = log

    def destroy(self, path):
        with open(self.log, "a") as file:
            file.write(f"destroyed in another process: {os.getpid() != self.maker}\n")


def test_an_object_is_copied_and_shared(tmp_path):
    notes = Notes("x")
    with directfuse.mount(notes, tmp_path / "m", placement="server", options=["ro"]) as mount:
        assert (mount.placement, mount.read_only, mount.fsname) == ("server", True, "Notes")
        notes.files.clear()  # what becomes of ours is nothing to the copy
        assert in_fork(lambda: expect(directfuse.listdir(mount.mountpoint), ["x"])) == 0


def test_an_object_of_fusepys_kind_ends_in_its_server(tmp_path):
    counted = Counted(tmp_path / "log")
    counted.maker = os.getpid()
    with directfuse.mount(counted, tmp_path / "m", placement="server") as mount:
        assert directfuse.open(f"{mount.mountpoint}/a").read() == "content of a"
    assert (tmp_path / "log").read_text() == "destroyed in another process: True\n"


def test_a_class_is_made_in_its_server(tmp_path):
    with directfuse.mount(Notes, tmp_path / "m", placement="server") as mount:
        assert directfuse.listdir(mount.mountpoint) == ["a"]


def test_a_class_is_found_in_the_directory_of_an_interactive_session(tmp_path):
    """Whose sys.path names it by no more than ""."""
    (tmp_path / "mine.py").write_text("from pyfs.notes import Notes\n\n\nclass Mine(Notes): ...\n")
    text = "import directfuse, mine; m = directfuse.mount(mine.Mine, '/m', placement='server'); "
    text += "print(directfuse.listdir('/m'))"
    words = [sys.executable, "-c", text]
    done = subprocess.run(
        words, cwd=tmp_path, capture_output=True, text=True, timeout=50, check=False
    )
    assert (done.stdout, done.stderr) == ("['a']\n", "")


def test_an_object_that_cannot_be_copied_is_refused_with_the_remedy(tmp_path):
    notes = Notes()
    with open(os.devnull) as notes.file:
        with pytest.raises(directfuse.NotSupportedError, match=r"mount\('module:Notes") as caught:
            directfuse.mount(notes, tmp_path / "m", placement="server")
    assert caught.value.errno == errno.ENOTSUP


def test_an_object_is_no_program_for_a_helper(tmp_path):
    with pytest.raises(directfuse.NotSupportedError, match="helper"):
        directfuse.mount(Notes(), tmp_path / "m", placement="helper")


def test_a_memory_file_system_of_fsspec_would_be_empty(tmp_path):
    fsspec = pytest.importorskip("fsspec")
    with pytest.raises(directfuse.NotSupportedError, match="would find it empty"):
        directfuse.mount(fsspec.filesystem("memory"), tmp_path / "m", placement="server")


OF_MAIN = """
    import directfuse
    from pyfs.notes import Notes

    class Mine(Notes):
        pass

    {guard}
        with directfuse.mount(Mine("mine"), sys.argv[1], placement="server"):
            print(directfuse.listdir(sys.argv[1]))
"""


def run_script(path, *words):
    return subprocess.run(
        [sys.executable, path, *words], capture_output=True, text=True, timeout=50, check=False
    )


def test_an_object_of_the_scripts_own_class(script, tmp_path):
    text = OF_MAIN.replace("{guard}", 'if __name__ == "__main__":')
    done = run_script(script(text), tmp_path / "m")
    assert (done.stdout, done.stderr) == ("['mine']\n", "")


def test_a_script_that_mounts_when_it_is_imported_is_told(script, tmp_path):
    done = run_script(script(OF_MAIN.replace("{guard}", "if True:")), tmp_path / "m")
    assert done.returncode == 1
    assert "bootstrapping phase" in done.stderr


# ---- programs that know nothing of it ------------------------------------------------------------


def run_inside(*words, lines):
    options = [word for line in lines for word in ("-m", line)]
    return subprocess.run(
        [sys.executable, "-m", "directfuse", "run", *options, "--", *words],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )


def test_every_program_sees_it():
    done = run_inside("ls", "-lR", "/elsewhere", lines=["pyfs.notes:Notes x y /elsewhere"])
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.split()[-1] for line in done.stdout.splitlines()[2:]] == ["x", "y"]


def test_an_unmodified_program_beside_others(script):
    """One server has all file systems of a run."""
    lines = [f"{script(PYFUSE3)} /elsewhere", "memfs /mem", "pyfs.memory:Memory /third"]
    done = run_inside("sh", "-c", "cat /elsewhere/a /third/a >/mem/f; cat /mem/f", lines=lines)
    assert (done.stdout, done.stderr) == ("content of acontent of a", "")


def test_a_run_says_why_there_is_no_file_system():
    done = run_inside("true", lines=["pyfs.notes:Nothing /elsewhere"])
    assert done.returncode == 125
    assert "pyfs.notes has no Nothing" in done.stderr


def test_what_nobody_may_execute_is_not_executed():
    """As by the kernel: that of a file without any such bit is not the file system's to allow."""
    script = "/third/a; echo $?; test -x /third/a && echo may"
    done = run_inside("sh", "-c", script, lines=["pyfs.memory:Memory /third"])
    assert done.stdout == "126\nmay\n"
    assert "Permission denied" in done.stderr
