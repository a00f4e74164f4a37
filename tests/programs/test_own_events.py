"""Programs that wait for requests and for events of their own in one loop."""

import contextlib
import errno
import os
import threading

import pytest

import directfuse
from tests.building import build, fuse

from .test_every_api import SOURCES, compiled, inline, through_kernel

__all__ = ["compiled"]  # a fixture


@contextlib.contextmanager
def in_a_server(command, root):
    with directfuse.mount([*command, root], placement="server"):
        yield directfuse


@pytest.fixture(params=[("MODERN=1", "fuse3"), ("MODERN=0", "fuse")], ids=["libfuse3", "libfuse2"])
def program(request, compiled):
    definition, package = request.param
    return [compiled("own_events", 0, package, "OWN", definition), "-f"]


def content(fs, path):
    fd = fs.os_open(path, os.O_RDONLY)
    try:
        return fs.pread(fd, 100, 0)
    finally:
        fs.close(fd)


@pytest.mark.parametrize("route", [inline, in_a_server, through_kernel])
def test_events_of_the_programs_own_are_handled_while_it_is_mounted(route, program, tmp_path):
    root = str(tmp_path / "m")
    with route(program, root) as fs:
        for _ in range(3):
            assert content(fs, f"{root}/late") == b"late"


@pytest.mark.parametrize("route", [inline, in_a_server, through_kernel])
def test_operations_and_other_events_take_turns(route, program, tmp_path):
    root = str(tmp_path / "m")
    seen = set()
    with route(program, root) as fs:
        ended = threading.Event()

        def look():
            while not ended.is_set():
                seen.add(content(fs, f"{root}/thread"))

        threads = [threading.Thread(target=look) for _ in range(3)]
        for thread in threads:
            thread.start()
        for _ in range(50):
            assert content(fs, f"{root}/late") == b"late"
        ended.set()
        for thread in threads:
            thread.join()
    assert seen == {b"loop"}


@pytest.mark.parametrize("hold", [False, True], ids=["idle", "held"])
def test_such_a_program_ends_its_mount_by_an_event(hold, program, tmp_path):
    root = str(tmp_path / "m")
    mount = directfuse.mount([*program, root], placement="inline")
    fd = directfuse.os_open(f"{root}/thread", os.O_RDONLY) if hold else None
    directfuse.stat(f"{root}/bye")
    while directfuse.path.exists(f"{root}/thread"):
        pass
    if fd is not None:  # what is open is served on until it is closed
        assert directfuse.pread(fd, 4, 0) == b"loop"
        directfuse.close(fd)
    mount.unmount()


@pytest.mark.parametrize("route", [inline, through_kernel])
def test_what_it_has_not_answered_when_it_leaves_its_loop_is_not_connected(
    route, program, tmp_path
):
    root = str(tmp_path / "m")
    seen = []
    with route(program, root) as fs:
        fd = fs.os_open(f"{root}/never", os.O_RDONLY)

        def read():
            with pytest.raises(OSError) as refusal:
                fs.pread(fd, 4, 0)
            seen.append(refusal.value.errno)
            with contextlib.suppress(OSError):
                fs.close(fd)

        thread = threading.Thread(target=read)
        thread.start()
        fs.stat(f"{root}/bye")
        thread.join()
    assert seen[0] in (errno.ENOTCONN, errno.ECONNABORTED)


@pytest.mark.parametrize("library", ["libQt5Core.so.5", "libQt6Core.so.6"])
def test_one_with_objects_that_belong_to_its_thread_is_in_a_process_of_its_own(library, tmp_path):
    """The stand-in for Qt is empty: what a program is linked to tells."""
    empty = tmp_path / "empty.c"
    empty.touch()
    build(empty, tmp_path / library, "-shared", f"-Wl,-soname,{library}")
    source, target = SOURCES / "own_events.c", tmp_path / "program"
    linked = ["-Wl,--no-as-needed", tmp_path / library, f"-Wl,-rpath,{tmp_path}"]
    program = build(source, target, "-DMODERN=1", *fuse(), *linked)
    command = [program, "-f", str(tmp_path / "m")]
    with pytest.raises(directfuse.MountError, match=library):
        directfuse.mount(command, placement="inline")
    with directfuse.mount(command) as mount:
        assert mount.placement == "helper"
        assert content(directfuse, tmp_path / "m/late") == b"late"


def test_such_a_program_is_mounted_again_and_again(program, tmp_path):
    root = str(tmp_path / "m")
    for _ in range(20):
        with directfuse.mount([*program, root], placement="inline"):
            assert content(directfuse, f"{root}/late") == b"late"
