"""What holds for every program: two of it, many mounts, an unmount under load, no privilege."""

import errno
import gc
import os
import shutil
import sys
import threading
import time
from pathlib import Path

import pytest

import directfuse

from .catalog import PROGRAMS, commands
from .conftest import NOBODY, open_to_all, read_tree, tree_of
from .test_unmodified import our_descriptors

ONE_OF_EACH = [name for name in PROGRAMS if ":" not in name or name.endswith(":zstd")]


def words(command):
    return [os.fspath(word) for word in command]


@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_two_instances(name, source, request, tmp_path):
    first, one = commands(name, source, request, tmp_path, "one")
    second, two = commands(name, source, request, tmp_path, "two")
    if name == "fuse-zip":  # it writes at its end, so each has an archive of its own
        second[1] = shutil.copy(second[1], tmp_path / "second.zip")
    with directfuse.mount(words(first)), directfuse.mount(words(second)):
        assert read_tree(str(one)) == read_tree(str(two)) == tree_of(source)


@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_an_unmount_while_it_is_read(name, source, request, tmp_path):
    command, point = commands(name, source, request, tmp_path)
    mount = directfuse.mount(words(command))
    begun = threading.Barrier(5)
    wrong = []

    def read():
        begun.wait()
        while True:
            try:
                with directfuse.open(f"{point}/sub/large", "rb") as file:
                    while file.read(70_000):
                        pass
            except FileNotFoundError:
                return  # unmounted
            except OSError as error:
                wrong.append(error)
                return

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    begun.wait()
    mount.unmount(lazy=True)
    for thread in threads:
        thread.join(30)
    assert not wrong and not any(thread.is_alive() for thread in threads)
    with pytest.raises(FileNotFoundError):
        directfuse.stat(f"{point}/text")


def resident_pages():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1])


#: What a mount and unmount may keep, in pages: what these programs themselves never free. The
#: kernel takes it with their process.
KEEPS_PAGES = {"archivemount": 200}  # the tree of its archive


@pytest.mark.sweep
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_a_hundred_mounts(name, source, request, tmp_path):
    command, point = commands(name, source, request, tmp_path)

    def cycle():
        with directfuse.mount(words(command)):
            assert directfuse.stat(f"{point}/text").st_size == 6

    for _ in range(10):
        cycle()
    gc.collect()
    descriptors = our_descriptors()
    pages = resident_pages()
    for _ in range(100):
        cycle()

    def left():
        links = set(our_descriptors()) - set(descriptors)
        return {link for link in links if not link.startswith(str(tmp_path))}

    end = time.monotonic() + 10
    while left() and time.monotonic() < end:  # a thread of sshfs closes its own, a little later
        time.sleep(0.1)
    assert not left()
    assert resident_pages() - pages < 100 * KEEPS_PAGES.get(name, 40)


UNPRIVILEGED = """
import os, sys, directfuse
try:
    os.open("/dev/fuse", os.O_RDWR)
    sys.exit("this process may open /dev/fuse")
except OSError:
    pass
point = sys.argv[1]
with directfuse.mount(sys.argv[2:]) as mount:
    assert directfuse.open(point + "/text").read() == "hello\\n"
    assert len(directfuse.listdir(point + "/sub")) == 302
    assert directfuse.stat(point + "/sub/large").st_size == 1_300_000
    assert mount.placement == "inline"
"""


def give_away_keys(command, base):
    """An ssh client reads keys and writes known hosts of its own user."""
    for word in map(str, command):
        if word.startswith("IdentityFile="):
            directory = Path(word.partition("=")[2]).parent
            open_to_all(directory / "any", base)
            for path in (directory, *directory.iterdir()):
                os.chown(path, NOBODY, NOBODY)


#: In a name space in which /dev/fuse is nobody's to open: an empty file without rights.
HIDE = 'touch nothing && chmod 0 nothing && mount --bind nothing /dev/fuse && exec "$@"'


@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_without_privilege(name, source, request, tmp_path, tmp_path_factory, unprivileged):
    base = tmp_path_factory.getbasetemp()
    command, point = commands(name, source, request, tmp_path)
    open_to_all(source / "text", base)
    open_to_all(tmp_path / "m", base)
    if point.exists():
        os.chown(point, NOBODY, NOBODY)
    for word in command[1:]:
        if os.path.isfile(word):
            os.chown(word, NOBODY, NOBODY)
            open_to_all(type(point)(word), base)
            os.chown(os.path.dirname(word), NOBODY, NOBODY)
    give_away_keys(command, base)
    os.chown(tmp_path, NOBODY, NOBODY)
    python = [sys.executable, "-c", UNPRIVILEGED, point, *command]
    done = unprivileged(python, HIDE, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_a_program_has_one_mount_at_a_mountpoint(source, request, tmp_path):
    command, _ = commands("convmvfs", source, request, tmp_path)
    with directfuse.mount(words(command)):
        with pytest.raises(directfuse.MountError) as caught:
            directfuse.mount(words(command))
        assert caught.value.errno == errno.EBUSY
