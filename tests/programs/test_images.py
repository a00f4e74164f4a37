"""What is said of a file that is not the image that its program wants."""

import os
import shlex
import subprocess
import sys
import zipfile

import pytest

import directfuse

from .conftest import need


@pytest.fixture(autouse=True)
def _needs():
    need("squashfuse", "mksquashfs")


@pytest.fixture
def files(image, tmp_path, monkeypatch):
    """A directory with files that are no whole squashfs image; it is the working directory."""
    monkeypatch.chdir(tmp_path)
    whole = image("gzip").read_bytes()
    (tmp_path / "whole.sqfs").write_bytes(whole)
    (tmp_path / "cut.sqfs").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "empty.sqfs").touch()
    (tmp_path / "directory").mkdir()
    (tmp_path / "zeros").write_bytes(bytes(10000))
    os.mkfifo(tmp_path / "fifo")
    with zipfile.ZipFile(tmp_path / "tree.zip", "w") as archive:
        archive.writestr("f", "text")
    return tmp_path


WRONG = {
    "squashfuse none.sqfs": "there is no none.sqfs in {here}",
    "squashfuse {here}/none.sqfs": "there is no {here}/none.sqfs)",
    "squashfuse empty.sqfs": "empty.sqfs is empty",
    "squashfuse directory": "directory is a directory; `mksquashfs directory IMAGE` makes",
    "squashfuse_ll tree.zip": "tree.zip is a zip archive; mount it by: fuse-zip tree.zip",
    "squashfuse zeros/below": "zeros/below: Not a directory",
    "./whole.sqfs": "./whole.sqfs is a squashfs image; mount it by: squashfuse ./whole.sqfs",
}


def refused(words, **options):
    with pytest.raises(directfuse.MountError) as caught:
        directfuse.mount(words, "/data", **options)
    return str(caught.value)


@pytest.mark.parametrize("placement", ["inline", "server"])
@pytest.mark.parametrize("words", WRONG)
def test_the_file_and_the_remedy_are_named(files, words, placement):
    wanted = WRONG[words].format(here=files)
    assert wanted in refused(words.format(here=files), placement=placement)


def test_an_image_that_was_not_copied_wholly_is_told(files):
    size = (files / "cut.sqfs").stat().st_size
    said = refused("squashfuse cut.sqfs")
    assert "cut.sqfs is cut off: " in said
    assert f"{size} are there" in said


@pytest.mark.parametrize("name", ["zeros", "whole.sqfs"])
def test_nothing_is_said_of_a_file_that_may_be_right(files, name):
    """Its program says what is wrong: of the image, or of its options."""
    assert "\n(" not in refused(["squashfuse", "-o", "no_such_option", name])


def test_a_file_that_would_be_waited_for_is_not_read(files):
    """Its program would wait for it, so it is not asked."""
    from directfuse import _images

    assert _images.remedy(["squashfuse", "fifo", "/data"]) == ""


def command(*words):
    words = [sys.executable, "-m", "directfuse", *words]
    return subprocess.run(words, capture_output=True, text=True, timeout=50, check=False)


def run(*options):
    return command("run", *options, "--", "true")


def test_a_run_names_the_command_line_and_the_file(files):
    done = run("-m", "squashfuse none.sqfs /data")
    assert done.returncode == 125
    assert "squashfuse none.sqfs /data: " in done.stderr
    assert f"(there is no none.sqfs in {files})" in done.stderr


def test_a_run_of_two_tells_which_file_is_wrong(files):
    done = run("-m", "squashfuse whole.sqfs /a", "-m", "squashfuse empty.sqfs /b")
    assert done.returncode == 125
    assert done.stderr.endswith("(empty.sqfs is empty)\n")


def test_a_run_of_an_image_in_place_of_a_program(files):
    done = run("-m", "./whole.sqfs /data")
    assert done.returncode == 125
    assert "mount it by: squashfuse ./whole.sqfs MOUNTPOINT" in done.stderr


@pytest.mark.parametrize("how", [(), ("--background",)])
def test_a_server_that_cannot_begin_names_the_file(files, how, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(files))
    done = command("serve", "squashfuse none.sqfs /data", "--name", "images", *how)
    assert done.returncode == 1
    assert done.stderr.endswith(f"(there is no none.sqfs in {files})\n")


def test_a_kernel_mount_names_the_file(files):
    done = command("mount", "squashfuse none.sqfs directory")
    assert done.returncode not in (0, 125), "it is squashfuse's own"
    assert done.stderr.endswith(f"(there is no none.sqfs in {files})\n")


def test_a_file_system_on_what_is_mounted_beside_it(files):
    """It finds what is on disk: an empty directory, or nothing."""
    done = run("-m", "memfs mount", "-m", f"squashfuse {files}/mount/whole.sqfs /data")
    assert done.returncode == 125
    assert f"\n({files}/mount/whole.sqfs: a file system does not see " in done.stderr
    for options in ("-o lowerdir=/other:/image,upperdir=up", "/image=RO:/other=RW"):
        assert "to build one on /image, use" in beside(["squashfuse", "f", "/image"], options)


@pytest.mark.parametrize("words", ["host:/image", "/images", "-o upperdir=up,size=/2", "/image/up"])
def test_nothing_is_said_of_a_source_that_is_not_beside_it(words):
    """Such as that of another machine, and the file system's own mountpoint."""
    point = words if words == "/image/up" else "/data"
    assert beside(["memfs", "/image"], words, point) == ""


def beside(other, words, point="/data"):
    from directfuse import _images

    return "".join(_images.remedies([other, ["program", *words.split(), point]]))


@pytest.mark.parametrize("upper", ["memfs", "directory"])
def test_an_overlay_is_served_inside_of_a_run_of_the_image(files, upper, monkeypatch):
    need("fuse-overlayfs")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(files))
    up = "/up" if upper == "memfs" else f"{files}/directory"
    overlay = f"fuse-overlayfs -o lowerdir=/image,upperdir={up}/up,workdir={up}/work /tree"
    serve = f"mkdir {up}/up {up}/work && {sys.executable} -m directfuse serve --name tree "
    serve += f"--background {shlex.quote(overlay)} 2>&1 >/dev/null"
    mounts = ("-m", "squashfuse whole.sqfs /image", "-m", "memfs /up")
    assert command("run", *mounts, "--", "sh", "-c", serve).returncode == 0
    try:
        tree = command("run", "-m", "@tree", "--", "sh", "-c", _CHANGED)
    finally:
        assert command("unmount", "@tree").returncode == 0
    assert (tree.returncode, tree.stdout, tree.stderr) == (0, "new\n", "")
    assert os.listdir(files / "directory") == ([] if upper == "memfs" else ["up", "work"])


#: Of a file of the image.
_CHANGED = 'f=$(find /tree -type f | head -1) && echo new >"$f" && cat "$f"'
