"""C programs that share variables with their libraries, by COPY relocations (decision 028)."""

import errno
import shutil
import subprocess
from pathlib import Path

import pytest
from building import build, fuse

import directfuse

from .test_hostile_elf import Image

SOURCE = Path(__file__).parent / "sources" / "shared_variables.c"
OWFS = "/usr/libexec/owfs/owfs"


def linked(directory, *, soname=True):
    """The program, linked to two libraries in `directory`."""
    base, above, program = (directory / n for n in ("libbase.so.1", "libabove.so.1", "program"))
    name = [f"-Wl,-soname,{base}"] if soname else []
    build(SOURCE, base, "-shared", "-fPIC", "-DLIBRARY", *name)
    build(SOURCE, above, "-shared", "-fPIC", "-DABOVE", f"-Wl,-soname,{above}", base)
    build(SOURCE, program, "-D_GNU_SOURCE", "-fPIE", "-pie", above, base, *fuse())
    relocations = subprocess.run(["readelf", "-rW", program], capture_output=True, text=True)
    assert "COPY" in relocations.stdout, "the compiler has found another way"
    return str(program)


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return linked(tmp_path_factory.mktemp("shared"))


def say(mountpoint):
    with directfuse.open(f"{mountpoint}/number", "rb", buffering=0) as file:
        return file.read().decode()


def set_number(mountpoint, number):
    with directfuse.open(f"{mountpoint}/number", "r+b", buffering=0) as file:
        file.write(str(number).encode())


def test_both_see_one_variable(program):
    with directfuse.mount([program, "-f", "/shared"], placement="inline"):
        assert say("/shared") == "7 7 7 library 1 7"
        set_number("/shared", 42)
        assert say("/shared") == "7 42 42 library 1 42"


def test_a_library_that_is_cut_short_is_refused(tmp_path):
    program, library = linked(tmp_path), tmp_path / "libbase.so.1"
    data = library.read_bytes()
    end = max(offset + size for _, offset, size in Image(data).loads)
    library.write_bytes(data[: end - 1])
    with pytest.raises(directfuse.MountError, match="shares variables") as caught:
        directfuse.mount([program, "-f", "/shared"], placement="inline")
    assert caught.value.errno == errno.ENOEXEC


def test_each_mount_has_its_own(program):
    mounts = [
        directfuse.mount([program, "-f", f"/shared{i}"], placement="inline") for i in range(5)
    ]
    for i in range(5):
        set_number(f"/shared{i}", 100 + i)
    for i in range(5):
        assert say(f"/shared{i}") == f"7 {100 + i} {100 + i} library 1 {100 + i}"
    for mount in mounts:
        mount.unmount()


def maps():
    return len(Path("/proc/self/maps").read_text().splitlines())


def test_nothing_stays_behind(program):
    def cycles(count):
        for _ in range(count):
            with directfuse.mount([program, "-f", "/shared"], placement="inline"):
                assert say("/shared") == "7 7 7 library 1 7"

    cycles(5)
    before = maps()
    cycles(30)
    assert maps() <= before + 10


def test_what_cannot_be_copied_is_refused_and_goes_to_a_helper(tmp_path):
    program = linked(tmp_path, soname=False)  # its library has no name that could be changed
    with pytest.raises(directfuse.MountError, match="shares variables") as caught:
        directfuse.mount([program, "-f", "/shared"], placement="inline")
    assert caught.value.errno == errno.ENOEXEC
    with directfuse.mount([program, "-f", "/shared"]) as mount:
        assert mount.placement == "helper"
        assert say("/shared") == "7 7 7 library 1 7"


@pytest.mark.skipif(shutil.which(OWFS) is None, reason="apt-get install owfs-fuse")
def test_owfs(tmp_path):
    """Two adapters, each with its own devices."""
    points = [tmp_path / "one", tmp_path / "two"]
    mounts = []
    for point, device in zip(points, ("DS18S20", "DS2408"), strict=True):
        point.mkdir()
        mounts.append(directfuse.mount([OWFS, f"--fake={device}", "-m", point], placement="inline"))
    for point, device in zip(points, (b"DS18S20", b"DS2408"), strict=True):
        [name] = [name for name in directfuse.listdir(point) if name[2] == "."]
        assert directfuse.open(f"{point}/{name}/type", "rb").read() == device
    for mount in mounts:
        mount.unmount()
