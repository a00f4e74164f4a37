"""The group and the commands that only look: help, backends, doctor, paths."""

import errno
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import directfuse
from directfuse import _kernel, _paths
from directfuse._cli import doctor
from directfuse._cli._elf import Linkage
from directfuse._cli._output import print_table
from directfuse._cli.backends import fuse_api

from .conftest import COMMAND, said_clearly

NAMES = ["run", "env", "mount", "unmount", "serve", "backends", "doctor", "paths", "bench", "tour"]


def test_help_lists_every_command(run):
    done = run("--help")
    assert done.returncode == 0
    listed = [line.split()[0] for line in done.stdout.partition("Commands:")[2].splitlines()[1:]]
    assert listed == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_every_command_has_help_with_examples(run, name):
    done = run(name, "--help")
    assert done.returncode == 0
    assert f"directfuse {name}" in done.stdout.partition("Examples:")[2]


@pytest.mark.parametrize(
    ("word", "meant"), [("umount", "unmount"), ("runn", "run"), ("server", "serve")]
)
def test_a_command_that_is_nearly_one_is_named(run, word, meant):
    done = run(word, "x")
    assert done.returncode == 125
    assert f"No such command '{word}'" in done.stderr and f"'{meant}'?" in done.stderr
    assert "?" not in run("something-else").stderr


def test_version(run):
    done = run("--version")
    assert done.stdout.split()[-1] == "0.1.0"


@pytest.mark.parametrize("words", [["frobnicate"], ["mount"], ["mount", "-x", "y"], ["bench", "z"]])
def test_wrong_use(run, words):
    done = run(*words)
    assert done.returncode == 125
    assert said_clearly(done)


@pytest.mark.parametrize(
    "words",
    [
        ["run", "--config=", "--", "true"],
        ["run", "--stats=", "--", "true"],
        ["env", "--config="],
        ["serve", "memfs /m", "--name=x", "--background", "--log="],
        ["bench", "--report="],
    ],
)
def test_an_empty_name_is_no_directory(run, words):
    """As of a variable that is not set. It was the working directory, and bench wrote there."""
    done = run(*words)
    assert done.returncode == 125 and done.stderr.endswith(": the name is empty\n"), done.stderr


@pytest.mark.parametrize("listener", ["a full disk", "a closed pipe"])
def test_a_failure_has_its_status_though_nobody_hears_why(listener):
    """It was 1, that of a check that failed."""
    command = [*COMMAND, "run", "-m", "nosuch /mnt", "--", "true"]
    if listener == "a full disk":
        where = os.open("/dev/full", os.O_WRONLY)
    else:
        end, where = os.pipe()
        os.close(end)
    try:
        assert subprocess.run(command, stderr=where, timeout=20).returncode == 125
    finally:
        os.close(where)


@pytest.mark.parametrize("words", [["paths"], ["run", "--help"]])
def test_output_that_a_full_disk_refuses_is_said_once(words):
    """Python keeps what it could not write: its end was 120, with an exception that it ignored."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"}
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*COMMAND, *words], stdout=full, stderr=subprocess.PIPE, env=environment, timeout=20
        )
    assert (done.returncode, done.stderr.count(b"\n")) == (125, 1), done.stderr


def test_backends_in_a_pipe_is_tabs(run):
    done = run("backends", "--no-path")
    assert done.returncode == 0
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert rows[0] == ["Name", "API", "Inline", "Helper", "Kernel", "From"]
    assert ["memfs", "libfuse 3, low-level", "yes", "yes", "yes", "directfuse"] in rows
    assert ["passthrough", "libfuse 3, high-level", "yes", "yes", "yes", "directfuse"] in rows


def test_a_row_in_a_pipe_is_one_line(capsys):
    """Whatever the words of a program are that doctor shows in it."""
    print_table(["For", "Detail"], [["kernel mount", "It said:\nfuse:\tno device"]])
    assert capsys.readouterr().out == "For\tDetail\nkernel mount\tIt said: fuse: no device\n"


@pytest.mark.parametrize(
    "name, library, api",
    [
        ("fuse_main_real", "libfuse3.so.3", "libfuse 3, high-level"),
        ("fuse_main_real_compat25", "libfuse.so.2", "libfuse 2, high-level"),
        ("fuse_setup_compat22", "libfuse.so.2", "libfuse 2, high-level"),
        ("_fuse_new_31", "libfuse3.so.4", "libfuse 3, high-level"),
        ("fuse_lowlevel_new_compat25", "libfuse.so.2", "libfuse 2, low-level"),
        ("fuse_session_new_versioned", "libfuse3.so.4", "libfuse 3, low-level"),
        ("fuse_opt_parse", "libfuse3.so.3", ""),
        ("cuse_lowlevel_main", "libfuse3.so.3", ""),
        ("fuse_main_real", "libc.so.6", ""),
    ],
)
def test_programs_of_every_version_are_known(name, library, api):
    linkage = Linkage(
        needed=frozenset([library]),
        strings=frozenset([name.encode()]),
        movable=True,
        tls=False,
        program=True,
    )
    assert fuse_api(linkage) == api


def test_backends_as_json_names_files_that_exist(run):
    for row in json.loads(run("backends", "--json").stdout):
        assert row["name"]
        assert row["api"]
        assert row["helper"] in ("yes", "no")
        assert row["inline"] == "yes" or row["inline"].startswith("no: ")
        for key in ("plugin", "program"):
            assert not row[key] or os.access(row[key], os.R_OK)


def test_a_reader_that_goes_away_is_no_error():
    process = subprocess.Popen(
        [*COMMAND, "backends"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    process.stdout.close()
    _, words = process.communicate(timeout=50)
    assert words == b""
    assert process.returncode == -signal.SIGPIPE


@pytest.mark.parametrize("command", ["backends", "paths", "--help", "serve --help"])
def test_without_standard_output_there_is_no_traceback(command):
    """As cron and daemons may start it."""
    words = shlex.join([*COMMAND, *command.split()])
    done = subprocess.run(
        ["/bin/sh", "-c", f"{words} <&- >&-"], stderr=subprocess.PIPE, timeout=50, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("module", ["_cffi_backend", "click"])
def test_interrupted_while_it_is_imported_it_just_ends(tmp_path, module):
    """One module of the package, one of the command line: as by Ctrl-C at that moment."""
    text = "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nsignal.pause()\n"
    (tmp_path / f"{module}.py").write_text(text)
    command = Path(sys.executable).with_name("directfuse")
    done = subprocess.run(
        [command, "--version"],
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        timeout=50,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, b"", b"")


def test_interrupted_later_it_says_so(tmp_path):
    words = [Path(sys.executable).with_name("directfuse"), "run", "--help"]
    text = "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nsignal.pause()\n"
    (tmp_path / "json.py").write_text(text)
    done = subprocess.run(
        words, env=os.environ | {"PYTHONPATH": str(tmp_path)}, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, b"", b"Interrupted.\n")


def test_doctor_finds_mounts_working(run, tmp_path):
    """Whatever the directory is called that it mounts in."""
    base = tmp_path / os.fsdecode(b"it's \xff")
    base.mkdir()
    done = run("doctor", "--json", env=os.environ | {"TMPDIR": str(base)})
    assert done.returncode == 0, done.stdout
    findings = json.loads(done.stdout)
    wanted = {("inline", name) for name in _paths.backend_names()} | {("helper process", "memfs")}
    if _paths.loader().is_file():
        wanted.add(("directfuse run", "memfs"))
    assert wanted <= {(one["purpose"], one["name"]) for one in findings if one["state"] == "ok"}
    assert all(finding["remedy"] for finding in findings if finding["state"] != "ok")


def test_doctor_asks_to_reinstall_only_what_is_damaged(run):
    """The error of a helper without a temporary directory names its remedy itself."""
    done = run("doctor", "--json", env=os.environ | {"TMPDIR": "/nonexistent"})
    helper = next(f for f in json.loads(done.stdout) if f["purpose"] == "helper process")
    assert helper["state"] == "failed" and "TMPDIR" in helper["detail"]
    assert "einstall" not in helper["remedy"]
    damaged = OSError(errno.ENOEXEC, "is truncated or damaged")
    assert "reinstall" in doctor._whole(damaged)


def test_doctor_without_a_scratch_directory_says_what_helps(monkeypatch):
    """As where all is read-only, and there is no /dev/shm."""
    monkeypatch.setattr(doctor.tempfile, "gettempdir", lambda: "/nonexistent")
    found = [one for one in doctor._inline() if one.name == "memfs"]
    if _paths.loader().is_file():
        found += doctor._programs()
    assert all(one.detail.startswith("/nonexistent: No such file") for one in found)
    assert all("TMPDIR" in one.detail and not one.remedy for one in found)


def test_doctor_says_what_run_needs_where_no_call_can_be_trapped(monkeypatch):
    """As where a container's filter forbids both ways."""

    def refused():
        raise OSError("status 125: x: cannot be interposed: neither Syscall User Dispatch nor ...")

    monkeypatch.setattr(doctor, "_run_on_mount", refused)
    assert next(one.remedy for one in doctor._programs()).endswith("seccomp filters")


def test_doctor_names_the_package_that_is_missing(run):
    done = run("doctor", "--json", env=os.environ | {"PATH": "/nonexistent"})
    findings = {finding["name"]: finding for finding in json.loads(done.stdout)}
    assert findings["pkg-config"]["state"] == "missing"
    assert "apt install pkg-config" in findings["pkg-config"]["remedy"]


def test_doctor_takes_no_other_device_for_the_kernels(monkeypatch):
    """As containers have it whose /dev/fuse is a copy of /dev/null."""
    for name, state in (("/dev/null", "failed"), ("/dev/zero", "failed"), ("/none", "missing")):
        monkeypatch.setattr(doctor, "_DEVICE", name)
        found = doctor._device()
        assert (found.name, found.state) == (name, state) and found.remedy


def test_doctor_finds_the_kernels_device(kernel):
    assert doctor._device().state == "ok"


@pytest.mark.parametrize("name", ["gcc", "pkg-config", "fusermount3"])
def test_doctor_tries_the_programs_that_it_finds(run, tmp_path, name):
    script = tmp_path / name
    script.write_text("#!/bin/sh\necho broken: no libmpc >&2; exit 1\n")
    script.chmod(0o755)
    done = run("doctor", "--json", env=os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"})
    findings = {finding["name"]: finding for finding in json.loads(done.stdout)}
    assert findings[name]["state"] == "failed" and "apt install" in findings[name]["remedy"]
    assert findings[name]["detail"].endswith("broken: no libmpc")
    assert findings["fuse3"]["state"] != "ok" or name == "fusermount3"


def test_doctor_imports_modules_rather_than_find_them(run, tmp_path):
    (tmp_path / "hypothesis.py").write_text("import no_such_module_at_all\n")
    done = run("doctor", "--json", env=os.environ | {"PYTHONPATH": str(tmp_path)})
    findings = {finding["name"]: finding for finding in json.loads(done.stdout)}
    assert findings["hypothesis"]["state"] == "failed"
    assert "no_such_module_at_all" in findings["hypothesis"]["detail"]


def test_doctor_tells_rights_that_are_missing_from_packages(monkeypatch):
    """With the device and the program there, no package would help."""

    def refused():
        raise _kernel.MountFailed("fusermount3: mount failed: Operation not permitted", 1)

    ok = doctor.Finding("kernel mount", "x", "ok", "")
    monkeypatch.setattr(doctor, "_mount_through_kernel", refused)
    monkeypatch.setattr(doctor, "_device", lambda: ok)
    monkeypatch.setattr(doctor, "_helper", lambda: ok)
    *_, mount = doctor._kernel_mounts()
    assert mount.state == "failed" and "apt" not in mount.remedy and "SYS_ADMIN" in mount.remedy
    missing = doctor.Finding("kernel mount", "/dev/fuse", "missing", "", "modprobe fuse")
    monkeypatch.setattr(doctor, "_device", lambda: missing)
    *_, mount = doctor._kernel_mounts()
    assert mount.remedy == "It needs /dev/fuse: see above"


def test_paths_exist(run):
    for place in json.loads(run("paths", "--json").stdout).values():
        assert os.path.exists(place)
    assert run("paths", "include").stdout.strip() == str(_paths.include_dir())
    only = json.loads(run("paths", "--json", "include").stdout)
    assert only == {"include": str(_paths.include_dir())}


@pytest.mark.parametrize("line", ["@data", "json:Class /mnt/x", "fsspec memory:// /mnt/x"])
def test_what_the_kernel_cannot_mount_says_what_can(run, line):
    done = run("mount", line)
    assert done.returncode == 125
    assert said_clearly(done) and "directfuse run" in done.stderr


def test_a_server_is_not_served_again(run):
    done = run("serve", "@data", "--name=other")
    assert done.returncode == 125
    assert said_clearly(done) and "name of a mount server" in done.stderr


def test_a_built_in_file_system_is_named_as_its_users_call_it(run):
    done = run("run", "-m", "memfs --nonsense /m", "--", "true")
    assert done.returncode == 125
    assert done.stderr.startswith("Error: memfs --nonsense /m: ")


def test_where_proc_is_not_mounted_that_is_said(run, tmp_path):
    """As in a chroot that somebody forgot to furnish."""
    if os.geteuid() != 0:
        pytest.skip("needs root: a mount namespace")

    def call(*words):
        script = f"mount -t tmpfs none /proc && exec {shlex.join([*COMMAND, *words])}"
        unshare = ["unshare", "-m", "sh", "-c", script]
        return subprocess.run(unshare, capture_output=True, text=True, check=False)

    done = call("run", "-m", "memfs /m", "--", "true")
    assert done.returncode == 125
    assert said_clearly(done) and "/proc is not mounted" in done.stderr
    told = call("doctor")
    assert told.returncode == 1
    assert "mount -t proc proc /proc" in told.stdout and "Reinstall" not in told.stdout


@pytest.mark.parametrize("command", [["serve", "--name=x"], ["mount"], ["bench"]])
def test_a_command_line_without_quotes_is_shown_with_them(run, command):
    done = run(*command, "memfs", "/m")
    assert done.returncode == 125 and said_clearly(done)
    assert done.stderr.endswith("is one word here: 'memfs /m'\n")


@pytest.mark.parametrize("command", [["serve", "--name=x"], ["mount"], ["bench"]])
def test_a_word_behind_the_command_line_is_named(run, command):
    """It was taken into one, with quotes around quotes."""
    done = run(*command, "memfs /m", "/more")
    assert done.returncode == 125 and said_clearly(done)
    assert "Error: /more: not expected behind" in done.stderr


@pytest.mark.parametrize(
    ("place", "remedy"), [("clone", "pip install -e ."), ("app.zip", "pip install --target")]
)
def test_python_that_finds_no_compiled_parts_says_what_is_wrong(tmp_path, place, remedy):
    """In a clone the package that lies there is found before the one that is installed; in a
    zipapp nothing compiled is found."""
    clone = tmp_path / "clone"
    shutil.copytree(Path(directfuse.__file__).parent, clone / "directfuse", ignore=_COMPILED)
    shutil.make_archive(str(tmp_path / "app"), "zip", clone)
    done = subprocess.run(
        [sys.executable, "-S", "-c", "import directfuse"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path / place)},
        capture_output=True,
        text=True,
        check=False,
    )
    said = done.stderr.splitlines()[-1]
    assert said.startswith(f"ImportError: {tmp_path}/{place}/directfuse is ")
    assert said.endswith(remedy) and "ModuleNotFoundError" not in done.stderr


_COMPILED = shutil.ignore_patterns("*.so", "_native", "__pycache__")
