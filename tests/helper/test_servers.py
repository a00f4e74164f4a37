"""Unmodified FUSE servers that no process could load: another language, thread-local storage, a
libfuse of their own inside. Each runs in a process of its own, with no kernel mount."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from building import build, fuse

import directfuse
from directfuse import _paths
from tests.conformance.backends import Unavailable
from tests.conformance.leftovers import public_directory
from tests.conformance.servers import sshd

PACKAGES = {"squashfuse_ll": "squashfuse", "mksquashfs": "squashfs-tools"}


def need(*programs):
    for program in programs:
        if shutil.which(program) is None:
            package = PACKAGES.get(program, program)
            pytest.skip(f"{program} is not installed (apt-get install {package})")


@pytest.fixture(scope="module")
def ssh(tmp_path_factory):
    """An SSH server of our own: (options, "user@host:")."""
    need("sshfs")
    try:
        with sshd(tmp_path_factory.mktemp("ssh")) as words:
            yield words
    except Unavailable as error:
        pytest.skip(str(error))


@pytest.fixture
def source(tmp_path):
    root = tmp_path / "source"
    (root / "sub").mkdir(parents=True)
    (root / "text").write_text("hello\n")
    (root / "sub/large").write_bytes(os.urandom(1_300_000))
    (root / "sub/name with spaces").write_bytes(bytes(range(256)) * 40)
    return root


def live_in(home, monkeypatch):
    """Programs find nothing of ours, and ask nobody."""
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    monkeypatch.setenv("CRYFS_FRONTEND", "noninteractive")
    monkeypatch.setenv("CRYFS_NO_UPDATE_CHECK", "true")


@pytest.fixture
def home(tmp_path, monkeypatch):
    live_in(tmp_path, monkeypatch)
    return tmp_path


def rclone(command, source, home):
    need("rclone")
    (home / "rclone.conf").touch()
    options = ["--config", str(home / "rclone.conf"), "--vfs-cache-mode", "writes"]
    return ["rclone", command, str(source), str(home / "m"), *options]


def gocryptfs(home):
    need("gocryptfs")
    (home / "password").write_text("secret\n")
    (home / "cipher").mkdir()
    password = ["-q", "-passfile", str(home / "password")]
    subprocess.run(["gocryptfs", "-init", *password, str(home / "cipher")], check=True)
    return ["gocryptfs", *password, str(home / "cipher"), str(home / "m")]


def cryfs(home):
    need("cryfs")
    script = home / "mount-cryfs"
    (home / "cipher").mkdir()
    script.write_text(f'#!/bin/sh\necho secret | exec cryfs {home}/cipher "$1"\n')
    script.chmod(0o755)
    return [str(script), str(home / "m")]


WRITABLE = {
    "rclone mount": lambda source, home: rclone("mount", source, home),
    "rclone mount2": lambda source, home: rclone("mount2", source, home),
    "gocryptfs": lambda source, home: gocryptfs(home),
    "cryfs": lambda source, home: cryfs(home),
    "mergerfs": lambda source, home: ["mergerfs", str(source), str(home / "m")],
    "bindfs": lambda source, home: ["bindfs", str(source), str(home / "m")],
}


def mount(name, source, home, placement="auto"):
    need(name.split()[0])
    return directfuse.mount(WRITABLE[name](source, home), placement=placement)


def copy_in(source, point):
    """The tree below `source`, for those that start empty."""
    if directfuse.path.exists(f"{point}/text"):
        return
    directfuse.mkdir(f"{point}/sub")
    for name in ("text", "sub/large", "sub/name with spaces"):
        with directfuse.open(f"{point}/{name}", "wb") as file:
            file.write((source / name).read_bytes())


@pytest.mark.parametrize("name", WRITABLE)
def test_content_can_be_written_and_read(name, source, home):
    placement = "helper" if name == "bindfs" else "auto"
    with mount(name, source, home, placement) as m:
        assert m.placement == "helper"
        assert m.reason
        copy_in(source, m.mountpoint)
        for name in ("text", "sub/large", "sub/name with spaces"):
            with directfuse.open(f"{m.mountpoint}/{name}", "rb") as file:
                assert file.read() == (source / name).read_bytes()
        directfuse.rename(f"{m.mountpoint}/text", f"{m.mountpoint}/other")
        assert sorted(directfuse.listdir(m.mountpoint)) == ["other", "sub"]
        directfuse.unlink(f"{m.mountpoint}/other")
        assert not directfuse.path.exists(f"{m.mountpoint}/other")
        assert m.stats().calls
        with open("/proc/self/mountinfo") as mounts:
            assert m.mountpoint not in mounts.read()


def test_sshfs_writes_through(ssh, source, home):
    """Not loaded, as it would be by "auto", but in a process of its own."""
    options, host = ssh
    (home / "m").mkdir()  # sshfs itself wants to see its mountpoint
    command = ["sshfs", *options, f"{host}{source}", str(home / "m")]
    with directfuse.mount(command, placement="helper") as m:
        assert m.placement == "helper"
        assert sorted(directfuse.listdir(m.mountpoint)) == sorted(os.listdir(source))
        with directfuse.open(f"{m.mountpoint}/sub/large", "rb") as file:
            assert file.read() == (source / "sub/large").read_bytes()
        with directfuse.open(f"{m.mountpoint}/written", "wb") as file:
            file.write(b"over there")
        assert (source / "written").read_bytes() == b"over there"


@pytest.mark.parametrize("program", ["squashfuse", "squashfuse_ll"])
def test_image_is_read_by_eight_threads(program, source, home):
    need(program, "mksquashfs")
    image = home / "image.sqfs"
    subprocess.run(["mksquashfs", source, image, "-quiet", "-no-progress"], check=True)
    wrong = []
    with directfuse.mount([program, str(image), str(home / "m")], placement="helper") as m:

        def check():
            for _ in range(5):
                for name in ("text", "sub/large", "sub/name with spaces"):
                    with directfuse.open(f"{m.mountpoint}/{name}", "rb") as file:
                        if file.read() != (source / name).read_bytes():
                            wrong.append(name)

        threads = [threading.Thread(target=check) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong


def test_archive_is_rewritten_at_unmount(home):
    need("fuse-zip", "unzip")
    archive = home / "new.zip"
    with directfuse.mount(["fuse-zip", str(archive), str(home / "m")], placement="helper") as m:
        with directfuse.open(f"{m.mountpoint}/file", "w") as file:
            file.write("kept")
    listed = subprocess.run(["unzip", "-p", archive, "file"], check=True, capture_output=True)
    assert listed.stdout == b"kept"


def test_a_file_that_the_server_makes_is_not_its_mountpoint(tmp_path):
    """A path to nothing may be a log's, behind the option that names it; it may have blanks."""
    script, log, point = tmp_path / "script", tmp_path / "a log", tmp_path / "an mnt"
    script.write_text(f'#!/bin/sh\necho begun >"$3"; exec {_paths.program("memfs")} "$1"\n')
    script.chmod(0o755)
    with directfuse.mount([script, point, "--log-file", log], placement="helper") as mount:
        assert mount.mountpoint == str(point)
        directfuse.mkdir(point / "made")
    assert log.read_text() == "begun\n"


BLANK = """
import directfuse, sys
with directfuse.mount(["memfs", sys.argv[1]], placement="helper") as mount:
    directfuse.mkdir(f"{mount.mountpoint}/made")
    print(directfuse.listdir(mount.mountpoint), directfuse.__file__)
"""


@pytest.mark.parametrize("threads", ["-s", "-o clone_fd"])
def test_the_end_of_the_mount_is_no_error_to_the_server(threads, tmp_path):
    """As behind the kernel: its loop ends with 0, and it has nothing to complain of."""
    script, end, words = tmp_path / "script", tmp_path / "end", tmp_path / "words"
    program = f'{_paths.program("memfs")} "$@" -f {threads} 2>{words}'
    script.write_text(f"#!/bin/sh\n{program}\necho $? >{end}\n")
    script.chmod(0o755)
    with directfuse.mount([script, tmp_path / "m"], placement="helper") as mount:
        directfuse.open(tmp_path / "m/closed", "w").close()
        assert mount.placement == "helper"
    assert (end.read_text(), words.read_text()) == ("0\n", "")


def test_an_installation_below_a_blank(tmp_path):
    """Of which LD_PRELOAD cannot have the name."""
    package = tmp_path / "a b:c/directfuse"
    package.mkdir(parents=True)
    for directory in map(Path, directfuse.__path__):
        for path in directory.iterdir():
            (package / path.name).symlink_to(path)
    cffi = Path(importlib.util.find_spec("_cffi_backend").origin).parent
    code = f"import sys; sys.path[:0] = [{str(package.parent)!r}, {str(cffi)!r}]" + BLANK
    done = subprocess.run(
        [sys.executable, "-S", "-P", "-c", code, tmp_path / "m"],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert done.stdout == f"['made'] {package}/__init__.py\n", done.stderr


@pytest.mark.parametrize("base", ["/no/such", "/proc"])
def test_where_no_directory_can_be_made_that_is_said(monkeypatch, base):
    monkeypatch.setenv("TMPDIR", base)
    with pytest.raises(directfuse.MountError) as caught:
        directfuse.mount("memfs /nowhere", placement="helper")
    said = caught.value.strerror
    assert said.startswith(f"helper: no directory can be made in {base}: No such file")
    assert "TMPDIR" in said and "cannot start" not in said


def test_two_servers_at_a_time(source, home):
    need("mergerfs")
    commands = [["mergerfs", str(source), str(home / name)] for name in ("a", "b")]
    with directfuse.mount(commands[0]) as a, directfuse.mount(commands[1]) as b:
        assert directfuse.listdir(a.mountpoint) == directfuse.listdir(b.mountpoint)


@pytest.fixture
def public():
    with public_directory() as directory:
        yield directory


RIGHTLESS = """
import json, sys
import directfuse
with directfuse.mount(json.loads(sys.argv[1]), placement=sys.argv[2]) as mount:
    path = f"{mount.mountpoint}/text"
    if not directfuse.path.exists(path):
        directfuse.open(path, "w").write("hello")
    print(mount.placement, directfuse.open(path).read())
"""

#: Without /dev/fuse, and then as nobody, without any capability.
DROP = """
[ ! -e /dev/fuse ] || mount --bind /dev/null /dev/fuse || exit 77
exec setpriv --reuid 65534 --regid 65534 --clear-groups --no-new-privs --bounding-set=-all "$@"
"""


def squashfuse(source, home):
    need("squashfuse", "mksquashfs")
    image = home / "image.sqfs"
    subprocess.run(["mksquashfs", source, image, "-quiet", "-no-progress"], check=True)
    return ["squashfuse", str(image), str(home / "m")]


#: cryfs works for ten seconds at a key of each new file system: once without the sweeps, above.
RIGHTLESSLY = [
    pytest.param(name, marks=pytest.mark.sweep) if name == "cryfs" else name
    for name in (*WRITABLE, "squashfuse")
]


@pytest.mark.parametrize("placement", ["helper", "server"])
@pytest.mark.parametrize("name", RIGHTLESSLY)
def test_no_right_is_needed(name, placement, public, monkeypatch):
    if os.geteuid() != 0:
        pytest.skip("becoming somebody without any right needs root")
    need("setpriv", "unshare", name.split()[0])
    if subprocess.run(
        ["setpriv", "--reuid", "65534", sys.executable, "-c", "import directfuse"],
        cwd="/",
        capture_output=True,
    ).returncode:
        pytest.skip("the package cannot be read by nobody")
    (public / "source").mkdir()
    (public / "source/text").write_text("hello")
    (public / "m").mkdir()  # bindfs, which can be loaded, wants to see it
    command = {**WRITABLE, "squashfuse": squashfuse}[name](public / "source", public)
    for directory, _, files in os.walk(public):
        for path in (directory, *(os.path.join(directory, file) for file in files)):
            os.chown(path, 65534, 65534)
    live_in(public, monkeypatch)
    words = ["unshare", "-m", "sh", "-c", DROP, "sh", sys.executable, "-c", RIGHTLESS]
    done = subprocess.run(
        [*words, json.dumps(command), placement], capture_output=True, text=True, cwd="/"
    )
    if done.returncode == 77:
        pytest.skip("nothing can be mounted over /dev/fuse here")
    assert done.stdout == f"{placement} hello\n", done.stderr


def test_programs_see_what_no_process_could_load(source, home):
    """Under `directfuse run`: the mount server has the helper's other half."""
    need("mergerfs")
    words = [sys.executable, "-m", "directfuse", "run", "-m", f"mergerfs {source} {home}/m", "--"]
    done = subprocess.run([*words, "cat", f"{home}/m/text"], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("hello\n", "")
    assert not os.path.exists(f"{home}/m")


SHOWS_ITS_MOUNTPOINT = """
#define FUSE_USE_VERSION 31
#include <errno.h>
#include <fuse.h>
#include <sys/stat.h>

static struct stat root;

static int get_attributes(const char *path, struct stat *st, struct fuse_file_info *fi)
{
    (void)fi;
    *st = root;
    return path[1] ? -ENOENT : 0;
}

int main(int argc, char *argv[])
{
    static const struct fuse_operations operations = {.getattr = get_attributes};
    return stat(argv[argc - 1], &root) ? 1 : fuse_main(argc, argv, &operations, NULL);
}
"""


@pytest.mark.parametrize("mode", [0o711, 0o1777])
def test_a_server_finds_the_mode_of_its_mountpoint(mode, tmp_path):
    """As archivemount 1b does, whose root has it."""
    (tmp_path / "server.c").write_text(SHOWS_ITS_MOUNTPOINT)
    program = build(tmp_path / "server.c", tmp_path / "server", *fuse())
    point = tmp_path / "m"
    point.mkdir()
    point.chmod(mode)
    with directfuse.mount([program, str(point)], placement="helper"):
        assert oct(directfuse.stat(point).st_mode) == oct(0o40000 | mode)
