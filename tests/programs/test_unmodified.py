"""Unmodified FUSE programs, libfuse 2 and 3, high-level and low-level, loaded into this process.

Nothing here is mounted: each test proves it by asking the kernel's list of mounts, and the mount's
own counters.
"""

import errno
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections import Counter

import pytest

import directfuse
from directfuse import _paths
from tests.conformance.backends import Unavailable
from tests.conformance.servers import s3

from .catalog import PROGRAMS, commands
from .conftest import need, open_to_all, read_tree, tree_of


@pytest.fixture(params=PROGRAMS)
def shown(request, source, tmp_path):
    command, point = commands(request.param, source, request, tmp_path)
    with directfuse.mount([os.fspath(word) for word in command]) as mount:
        yield mount, str(point)
        assert mount.stats().calls > 0
        with open("/proc/self/mountinfo") as mounts:
            assert str(point) not in mounts.read()


def test_content_equals_the_source(shown, source):
    _, point = shown
    assert read_tree(point) == tree_of(source)


def test_names_and_sizes_equal_the_source(shown, source):
    _, point = shown
    for path in source.rglob("*"):
        there = directfuse.stat(os.path.join(point, path.relative_to(source)))
        assert there.st_mode & 0o170000 == path.stat().st_mode & 0o170000
        if path.is_file():
            assert there.st_size == path.stat().st_size


def test_what_is_not_there_is_enoent(shown):
    _, point = shown
    with pytest.raises(FileNotFoundError) as caught:
        directfuse.open(point + "/sub/none")
    assert caught.value.filename == point + "/sub/none"


def test_eight_threads_read(shown, source):
    _, point = shown
    expected = (source / "sub/large").read_bytes()
    wrong = []

    def read():
        with directfuse.open(point + "/sub/large", "rb") as file:
            if file.read() != expected:
                wrong.append(threading.get_ident())

    threads = [threading.Thread(target=read) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_two_instances_of_one_program(image, source, tmp_path):
    need("squashfuse", "mksquashfs")
    one, two = str(tmp_path / "one"), str(tmp_path / "two")
    with (
        directfuse.mount(["squashfuse", str(image("gzip")), one]),
        directfuse.mount(["squashfuse", str(image("zstd")), two]),
    ):
        assert read_tree(one) == read_tree(two) == tree_of(source)


def test_an_archive_is_rewritten_at_unmount(archive, tmp_path):
    need("fuse-zip", "zip", "unzip")
    point = str(tmp_path / "m")
    with directfuse.mount(["fuse-zip", str(archive), point]):
        with directfuse.open(point + "/added", "w") as file:
            file.write("new content")
        directfuse.rename(point + "/text", point + "/sub/moved")
        directfuse.unlink(point + "/empty")
    listing = subprocess.run(
        ["unzip", "-Z1", archive], check=True, capture_output=True, text=True
    ).stdout.split("\n")
    assert "added" in listing and "sub/moved" in listing
    assert "text" not in listing and "empty" not in listing
    content = subprocess.run(["unzip", "-p", archive, "added"], check=True, capture_output=True)
    assert content.stdout == b"new content"


def test_bindfs_writes_through(tmp_path):
    need("bindfs")
    below, point = tmp_path / "below", tmp_path / "m"
    below.mkdir()
    point.mkdir()
    with directfuse.mount(["bindfs", str(below), str(point)]):
        directfuse.makedirs(f"{point}/a/b")
        with directfuse.open(f"{point}/a/b/file", "w") as file:
            file.write("through")
        directfuse.rename(f"{point}/a/b/file", f"{point}/a/moved")
        directfuse.chmod(f"{point}/a/moved", 0o640)
    assert (below / "a/moved").read_text() == "through"
    assert (below / "a/moved").stat().st_mode & 0o777 == 0o640
    assert list(point.iterdir()) == []


def test_an_ext4_image_is_written(tmp_path):
    need("fuse2fs", "mkfs.ext4")
    image, point = tmp_path / "image", str(tmp_path / "m")
    with open(image, "wb") as file:
        file.truncate(16 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True)
    command = ["fuse2fs", str(image), point, "-o", "fakeroot"]
    content = os.urandom(300_000)
    with directfuse.mount(command):
        directfuse.mkdir(point + "/sub")
        with directfuse.open(point + "/sub/file", "wb") as file:
            file.write(content)
    with directfuse.mount(command):
        assert directfuse.open(point + "/sub/file", "rb").read() == content
    subprocess.run(["e2fsck", "-fn", image], check=True, capture_output=True)


def test_a_forked_child(shown):
    """It has its own copy. What a program's own threads, or a process of its own, would do nobody
    does: it is told so."""
    mount, point = shown
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        try:
            with directfuse.open(f"{point}/text") as file:
                os._exit(0 if file.read() == "hello\n" else 1)
        except OSError as error:
            os._exit(error.errno)
        finally:
            os._exit(255)
    alone = mount.command[0] not in ("sshfs", "unionfs") and mount.placement == "inline"
    wanted = 0 if alone else errno.ENOTCONN
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == wanted
    with directfuse.open(f"{point}/text") as file:
        assert file.read() == "hello\n"


def ssh_clients(of):
    """Processes of ssh that name the key file directory `of`."""
    found = []
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
        except (FileNotFoundError, ProcessLookupError):
            continue
        if words[0].endswith(b"ssh") and any(of.encode() in word for word in words):
            found.append(int(pid))
    return found


def test_sshfs_writes_through_and_leaves_nothing(ssh, tmp_path):
    options, host = ssh
    keys = next(word.partition("=")[2] for word in options if word.startswith("IdentityFile"))
    below, point = tmp_path / "below", tmp_path / "m"
    below.mkdir()
    point.mkdir()
    before = our_descriptors()
    with directfuse.mount(["sshfs", *options, f"{host}{below}", str(point)]):
        with directfuse.open(f"{point}/file", "w") as file:
            file.write("through")
        directfuse.rename(f"{point}/file", f"{point}/moved")
        clients = [os.pidfd_open(pid) for pid in ssh_clients(keys)]
        assert len(clients) == 1
    assert (below / "moved").read_text() == "through"
    for client in clients:  # it sees its connection end, and ends
        assert select.select([client], [], [], 20)[0]
        os.close(client)
    # Those of an earlier test's file system go when the last of its threads has ended.
    assert not Counter(our_descriptors()) - Counter(before)


def test_s3fs_keeps_what_it_was_given(tmp_path):
    need("s3fs")
    point = tmp_path / "m"
    point.mkdir()
    content = os.urandom(300_000)
    try:
        with s3(tmp_path) as (options, make_bucket):
            make_bucket("bucket")
            command = ["s3fs", "bucket", str(point), *options]
            with directfuse.mount(command):
                directfuse.mkdir(f"{point}/sub")
                with directfuse.open(f"{point}/sub/file", "wb") as file:
                    file.write(content)
                directfuse.rename(f"{point}/sub/file", f"{point}/moved")
            with directfuse.mount(command):
                assert directfuse.listdir(str(point)) == ["moved", "sub"]
                with directfuse.open(f"{point}/moved", "rb") as file:
                    assert file.read() == content
    except Unavailable as error:
        pytest.skip(str(error))


def our_descriptors():
    """Where this process's descriptors lead."""
    links = []
    for number in os.listdir("/proc/self/fd"):
        try:
            links.append(os.readlink(f"/proc/self/fd/{number}"))
        except FileNotFoundError:
            pass  # the one that listed them
    return sorted(links)


def test_many_mounts_and_unmounts_keep_nothing(image, tmp_path):
    need("squashfuse", "mksquashfs")
    point = str(tmp_path / "m")

    def cycle():
        with directfuse.mount(["squashfuse", str(image("gzip")), point]):
            assert directfuse.stat(point + "/text").st_size == 6

    cycle()
    descriptors = our_descriptors()
    threads = len(os.listdir("/proc/self/task"))
    for _ in range(100):
        cycle()
    assert our_descriptors() == descriptors
    assert len(os.listdir("/proc/self/task")) == threads


def test_command_lines_that_fail_keep_nothing(image, tmp_path):
    """The image is open by the time that the mountpoint is found missing, or no directory."""
    need("squashfuse", "mksquashfs")
    file = tmp_path / "file"
    file.touch()
    descriptors = our_descriptors()
    for _ in range(3):
        for words in ([], [file], [tmp_path / "m", "-o", "no_such_option"]):
            refusal("squashfuse", image("gzip"), *words)
    assert our_descriptors() == descriptors


# ---- what fails says why, and harms nobody ----


def refusal(*command):
    with pytest.raises(directfuse.MountError) as caught:
        directfuse.mount([str(word) for word in command])
    return caught.value


def test_the_programs_own_words_are_reported(tmp_path, capfd):
    need("squashfuse")
    error = refusal("squashfuse", tmp_path / "none.sqfs", tmp_path / "m")
    assert "Can't open squashfs image" in str(error) and "returned" in str(error)
    (tmp_path / "text").write_text("no image" * 100)
    assert "squashfs image" in str(refusal("squashfuse", tmp_path / "text", tmp_path / "m"))
    assert capfd.readouterr() == ("", "")


def test_help_is_reported(tmp_path):
    need("bindfs")
    assert "--mirror" in str(refusal("bindfs", "--help"))


def test_what_a_cxx_program_prints_is_reported(capfd):
    need("disorderfs")
    assert "--shuffle-dirents" in str(refusal("disorderfs", "--help"))
    assert capfd.readouterr() == ("", "")


def test_a_refused_ssh_connection_is_reported(tmp_path):
    need("sshfs", "ssh")
    (tmp_path / "m").mkdir()
    with socket.socket() as closed:  # bound, not listening: nobody else takes the port
        closed.bind(("127.0.0.1", 0))
        port = str(closed.getsockname()[1])
        error = refusal("sshfs", "-p", port, "127.0.0.1:/", tmp_path / "m")
    # sshfs reads of it, or writes to an ssh that has ended already
    assert re.search("reset by peer|Broken pipe", str(error)) and "returned 1" in str(error)


def test_a_program_that_moves_its_arguments(tmp_path):
    need("fusefat")
    assert "experimental" in str(refusal("fusefat", tmp_path / "none", tmp_path / "m"))


def test_a_program_that_exits_leaves_the_process(tmp_path):
    need("bindfs")
    error = refusal("bindfs", tmp_path / "none", tmp_path)
    assert error.errno == errno.EIO and str(tmp_path / "none") in str(error)


def test_the_host_can_mount_again_after_a_failure(image, tmp_path):
    need("squashfuse", "mksquashfs")
    refusal("squashfuse", tmp_path / "none.sqfs", tmp_path / "m")
    with directfuse.mount(["squashfuse", str(image("gzip")), str(tmp_path / "m")]):
        assert "text" in directfuse.listdir(tmp_path / "m")


def test_a_truncated_program_is_refused(tmp_path):
    need("squashfuse")
    whole = open(shutil.which("squashfuse"), "rb").read()
    for size in (10, 70, 500, 5000, len(whole) // 2):
        path = tmp_path / f"cut-{size}"
        path.write_bytes(whole[:size])
        assert refusal(path, tmp_path / "m").errno == errno.ENOEXEC


def test_a_script_is_refused(tmp_path):
    path = tmp_path / "fs"
    path.write_text("#!/bin/sh\n")
    assert "script" in str(refusal(path, tmp_path / "m"))


# ---- without any privilege ----

UNPRIVILEGED = """
import sys, directfuse
with directfuse.mount(["squashfuse", sys.argv[1], "/no/such/place"]):
    assert directfuse.open("/no/such/place/text").read() == "hello\\n"
    print(len(directfuse.listdir("/no/such/place/sub")))
"""


def test_a_user_without_any_capability(image, tmp_path_factory, unprivileged):
    need("squashfuse", "mksquashfs")
    path = image("zstd")
    path.chmod(0o644)
    open_to_all(path, tmp_path_factory.getbasetemp())
    done = unprivileged([sys.executable, "-c", UNPRIVILEGED, path])
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == 302


# ---- what is still mounted when the process ends ----

LEAVES_MOUNTED = {
    "python": """
import sys, directfuse
directfuse.mount(sys.argv[2:])
with directfuse.open(sys.argv[-1] + "/added", "w") as file:
    file.write("new content")
""",
    "c": """
import ctypes, os, sys
library = ctypes.CDLL(sys.argv[1], use_errno=True)
words = [os.fsencode(word) for word in sys.argv[2:]]
argv = (ctypes.c_char_p * (len(words) + 1))(*words, None)
text = ctypes.create_string_buffer(4096)
assert library.df_mount(b"/usr/bin/" + words[0], len(words), argv, 0, text, 4096) > 0, text.value
fd = library.df_open(words[-1] + b"/added", os.O_WRONLY | os.O_CREAT, 0o644)
assert library.df_write(fd, b"new content", 11) == 11
assert library.df_close(fd) == 0
""",
}


@pytest.mark.parametrize("door", LEAVES_MOUNTED)
@pytest.mark.parametrize("program", ["fuse-zip", "archivemount"])
def test_a_process_that_just_ends_loses_nothing(program, door, request, source, tmp_path):
    need(program)
    if not os.path.exists(f"/usr/bin/{program}"):
        pytest.skip("not in /usr/bin")
    point = tmp_path / "m"
    point.mkdir()
    if program == "fuse-zip":
        need("zip", "unzip")
        archive = request.getfixturevalue("archive")
        show = ["unzip", "-p", archive, "added"]
    else:
        archive = tmp_path / "tree.tar"  # archivemount writes tar, whatever it has read
        subprocess.run(["tar", "-cf", archive, "-C", source, "."], check=True)
        show = ["tar", "-xOf", archive, "--wildcards", "*added"]
    done = subprocess.run(
        [sys.executable, "-c", LEAVES_MOUNTED[door], _paths.library(), program, archive, point],
        capture_output=True,
        text=True,
        timeout=60,
    )
    if door == "c" and "thread-local storage of an executable" in done.stderr:
        pytest.skip(f"this {program} cannot be loaded, and df_mount() starts no helper by itself")
    assert done.returncode == 0, done.stderr
    assert subprocess.run(show, check=True, capture_output=True).stdout == b"new content"
