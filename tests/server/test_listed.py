"""What a listing brings along: the attributes of its names, and its end.

What processes see is what they see in a plain directory, which the same cases run in.
"""

import errno
import json
import os
import shutil
import stat
import subprocess
import sys

import pytest

import directfuse

from .forks import in_fork

COUNT = 40


def fill(directory, count=COUNT):
    directfuse.mkdir(directory)
    for n in range(count):
        with directfuse.open(f"{directory}/name-{n}", "w") as file:
            file.write("x" * n)


def listed(directory):
    """An open directory whose names have been told just now."""
    fd = directfuse.os_open(directory, os.O_RDONLY | os.O_DIRECTORY)
    assert len(directfuse.listdir(fd)) == COUNT
    return fd


def sizes(fd):
    return [directfuse.stat(f"name-{n}", dir_fd=fd).st_size for n in range(COUNT)]


def test_what_a_listing_told_is_never_older_than_a_change(place):
    fill(f"{place}/d")
    fd = listed(f"{place}/d")
    assert sizes(fd) == list(range(COUNT))
    assert in_fork(lambda: directfuse.truncate(f"{place}/d/name-3", 1000)) == 0
    assert in_fork(lambda: directfuse.rename(f"{place}/d/name-5", f"{place}/d/name-7")) == 0
    assert in_fork(lambda: directfuse.chmod(f"{place}/d/name-8", 0o600)) == 0
    assert directfuse.stat("name-3", dir_fd=fd).st_size == 1000
    assert directfuse.stat("name-7", dir_fd=fd).st_size == 5
    assert directfuse.stat("name-8", dir_fd=fd).st_mode & 0o777 == 0o600
    with pytest.raises(FileNotFoundError):
        directfuse.stat("name-5", dir_fd=fd)
    directfuse.close(fd)


@pytest.fixture
def image(tmp_path):
    """A mount of a program that says nothing of listings, so that none are kept."""
    for program in ("mksquashfs", "squashfuse_ll"):
        if not shutil.which(program):
            pytest.skip(f"{program} is not installed")
    tree, packed = tmp_path / "tree", tmp_path / "image"
    (tree / "d").mkdir(parents=True)
    for n in range(COUNT):
        (tree / f"d/name-{n}").write_text("x" * n)
    subprocess.run(["mksquashfs", tree, packed, "-quiet", "-no-progress"], check=True)
    words = ["squashfuse_ll", str(packed), str(tmp_path / "mnt"), "-o", "ro"]
    with directfuse.mount(words, placement="server") as mount:
        yield mount


def test_what_was_asked_by_a_directory_is_known_when_it_is_opened_again(image):
    def ask():
        fd = directfuse.os_open(f"{image.mountpoint}/d", os.O_RDONLY | os.O_DIRECTORY)
        assert sizes(fd) == list(range(COUNT))
        directfuse.close(fd)

    ask()
    before = image.stats().trips
    ask()
    assert image.stats().trips - before <= 2  # the open and the close


def test_a_directory_that_moved_is_still_the_one_that_is_open(place):
    fill(f"{place}/d")
    fd = listed(f"{place}/d")
    directfuse.rename(f"{place}/d", f"{place}/e")
    fill(f"{place}/d", 1)
    assert sizes(fd) == list(range(COUNT))
    assert directfuse.stat(f"{place}/d/name-0").st_size == 0
    with pytest.raises(FileNotFoundError):
        directfuse.stat(f"{place}/d/name-1")
    directfuse.close(fd)


def test_links_are_followed_or_not_whatever_was_told(place):
    fill(f"{place}/d")
    directfuse.unlink(f"{place}/d/name-2")
    directfuse.symlink("name-9", f"{place}/d/name-2")
    fd = listed(f"{place}/d")
    assert directfuse.stat("name-2", dir_fd=fd).st_size == 9
    assert directfuse.lstat("name-2", dir_fd=fd).st_size == len("name-9")
    assert directfuse.stat("name-2", dir_fd=fd).st_size == 9
    directfuse.close(fd)


@pytest.mark.skipif(os.getuid() != 0, reason="becomes another user: needs root")
def test_who_may_not_search_learns_nothing_from_another_ones_listing(tmp_path):
    words = ["memfs", str(tmp_path / "mnt"), "-o", "allow_other"]
    with directfuse.mount(words, placement="server") as mount:
        fill(f"{mount.mountpoint}/d")
        directfuse.chmod(f"{mount.mountpoint}/d", 0o755)
        fd = listed(f"{mount.mountpoint}/d")

        def another_user():
            os.setgroups([])
            os.setresgid(1234, 1234, 1234)
            os.setresuid(1234, 1234, 1234)
            directfuse.identity_refresh()
            assert len(directfuse.listdir(fd)) == COUNT
            return sizes(fd)

        def shut_out():
            with pytest.raises(PermissionError):
                another_user()

        assert in_fork(another_user) == 0
        directfuse.chmod(f"{mount.mountpoint}/d", 0o744)  # others may list it, but not search it
        assert len(directfuse.listdir(fd)) == COUNT
        assert sizes(fd) == list(range(COUNT))
        assert in_fork(shut_out) == 0
        directfuse.close(fd)


def test_names_that_were_listed_need_no_trip_of_their_own(memfs):
    fill(f"{memfs.mountpoint}/d")
    fd = listed(f"{memfs.mountpoint}/d")
    before = memfs.stats()
    assert sizes(fd) == list(range(COUNT))
    after = memfs.stats()
    assert after.trips == before.trips
    assert after.hits - before.hits == COUNT
    directfuse.close(fd)


@pytest.mark.parametrize("slash", ["", "/"])
def test_paths_of_what_was_listed_by_its_path_need_no_trip(memfs, slash):
    """os.scandir and what asks for the paths of its entries."""
    directory = f"{memfs.mountpoint}/d"
    fill(directory)
    names = directfuse.listdir(directory + slash)
    before = memfs.stats().trips
    for name in names:
        path = f"{directory}/{name}"
        assert directfuse.lstat(path) == directfuse.stat(path)
        assert directfuse.access(path, os.R_OK)
    assert memfs.stats().trips == before


def test_paths_lead_where_they_do_after_the_directory_was_moved(place):
    """While it was open: what is asked for by its old path are other files."""
    fill(f"{place}/d")
    fd = directfuse.os_open(f"{place}/d", os.O_RDONLY | os.O_DIRECTORY)
    directfuse.rename(f"{place}/d", f"{place}/moved")
    directfuse.mkdir(f"{place}/d")
    with directfuse.open(f"{place}/d/name-1", "w") as other:
        other.write("another file")
    assert len(directfuse.listdir(fd)) == COUNT
    assert directfuse.stat(f"{place}/d/name-1").st_size == len("another file")
    assert directfuse.stat(f"{place}/moved/name-1").st_size == 1
    directfuse.close(fd)


def test_the_end_of_a_listing_comes_with_its_names(memfs):
    fill(f"{memfs.mountpoint}/d")
    fd = directfuse.os_open(f"{memfs.mountpoint}/d", os.O_RDONLY | os.O_DIRECTORY)
    before = memfs.stats().trips
    assert len(directfuse.listdir(fd)) == COUNT
    assert memfs.stats().trips - before == 1
    directfuse.close(fd)


def test_the_end_comes_along_where_nothing_may_be_kept(tmp_path):
    """And is believed once: who begins again sees what has come since."""
    (tmp_path / "source").mkdir()
    words = ["passthrough", str(tmp_path / "source"), str(tmp_path / "mnt")]
    with directfuse.mount(words, placement="server") as mount:
        fill(f"{mount.mountpoint}/d")
        fd = directfuse.os_open(f"{mount.mountpoint}/d", os.O_RDONLY | os.O_DIRECTORY)
        for more in range(3):
            for names in (directfuse.listdir, lambda fd: list(directfuse.scandir(fd))):
                before = mount.stats()
                assert len(names(fd)) == COUNT + more
                after = mount.stats()
                assert (after.trips - before.trips, after.hits - before.hits) == (1, 1)
            (tmp_path / "source" / "d" / f"new-{more}").touch()
        directfuse.close(fd)


# ---- paths of directories -----------------------------------------------------------------------


def test_a_slash_or_dot_behind_what_is_known_needs_no_trip(memfs):
    path = f"{memfs.mountpoint}/d"
    directfuse.makedirs(path)
    wanted = directfuse.stat(path)
    before = memfs.stats().trips
    for end in ("/", "/.", "/./"):
        assert directfuse.stat(path + end) == wanted
        assert directfuse.lstat(path + end) == wanted
    assert memfs.stats().trips == before


def test_a_slash_behind_a_name_asks_for_a_directory_whatever_is_known(place):
    directfuse.mkdir(f"{place}/d")
    directfuse.symlink("d", f"{place}/link")
    with directfuse.open(f"{place}/f", "w"):
        pass
    directory = directfuse.stat(f"{place}/d")
    for _ in range(2):
        assert directfuse.lstat(f"{place}/link/") == directory
        assert directfuse.stat(f"{place}/link/.") == directory
        assert stat.S_ISLNK(directfuse.lstat(f"{place}/link").st_mode)
        assert directfuse.stat(f"{place}/link") == directory
        assert stat.S_ISREG(directfuse.stat(f"{place}/f").st_mode)
        for end in ("/", "/."):
            with pytest.raises(NotADirectoryError):
                directfuse.stat(f"{place}/f{end}")
            with pytest.raises(FileNotFoundError):
                directfuse.stat(f"{place}/none{end}")


@pytest.mark.skipif(os.getuid() != 0, reason="becomes another user: needs root")
def test_a_dot_behind_what_is_known_asks_for_the_right_to_search(tmp_path):
    words = ["memfs", str(tmp_path / "mnt"), "-o", "allow_other,default_permissions"]
    with directfuse.mount(words, placement="server") as mount:
        path = f"{mount.mountpoint}/d"
        directfuse.mkdir(path)
        directfuse.chmod(path, 0o744)  # others may list it, but not search it
        assert directfuse.stat(f"{path}/.") == directfuse.stat(path)

        def another_user():
            os.setgroups([])
            os.setresgid(1234, 1234, 1234)
            os.setresuid(1234, 1234, 1234)
            directfuse.identity_refresh()
            assert directfuse.stat(f"{path}/") == directfuse.stat(path)
            with pytest.raises(PermissionError):
                directfuse.stat(f"{path}/.")

        assert in_fork(another_user) == 0


# ---- access -------------------------------------------------------------------------------------


def test_access_of_what_is_known_needs_no_trip(memfs):
    path = f"{memfs.mountpoint}/f"
    with directfuse.open(path, "w"):
        pass
    answers = [directfuse.access(name, os.R_OK) for name in (path, path + "-none")]
    assert answers == [True, False]
    before = memfs.stats().trips
    for _ in range(5):
        assert directfuse.access(path, os.R_OK | os.W_OK)
        assert not directfuse.access(path + "-none", os.F_OK)
    assert memfs.stats().trips == before


# ---- readlink -----------------------------------------------------------------------------------


def test_what_is_known_to_be_no_link_needs_no_trip(memfs):
    """realpath() asks for each name of a path."""
    path = f"{memfs.mountpoint}/d/e"
    directfuse.makedirs(path)
    names = [memfs.mountpoint, f"{memfs.mountpoint}/d", path, f"{path}/none"]
    wanted = [errno.EINVAL] * 3 + [errno.ENOENT]
    assert [_errno_of_readlink(name) for name in names] == wanted
    before = memfs.stats().trips
    for _ in range(5):
        assert [_errno_of_readlink(name) for name in names[:3]] == wanted[:3]
    assert memfs.stats().trips == before


def _errno_of_readlink(path):
    with pytest.raises(OSError) as caught:
        directfuse.readlink(path)
    return caught.value.errno


def test_readlink_answers_what_another_process_has_changed(place):
    path = f"{place}/f"
    for target in "one", "two":
        with directfuse.open(path, "w"):
            pass
        assert [_errno_of_readlink(path) for _ in range(3)] == [errno.EINVAL] * 3
        assert in_fork(lambda: directfuse.unlink(path)) == 0
        assert [_errno_of_readlink(path) for _ in range(3)] == [errno.ENOENT] * 3
        assert in_fork(lambda target=target: directfuse.symlink(target, path)) == 0
        assert directfuse.readlink(path) == target
        assert in_fork(lambda: directfuse.unlink(path)) == 0


def test_access_answers_what_another_process_has_changed(place):
    path = f"{place}/f"
    with directfuse.open(path, "w"):
        pass
    for mode in (0o644, 0o755, 0o600, 0o711):
        assert in_fork(lambda mode=mode: directfuse.chmod(path, mode)) == 0
        assert directfuse.access(path, os.F_OK)
        assert directfuse.access(path, os.X_OK) == bool(mode & 0o111)
    assert in_fork(lambda: directfuse.unlink(path)) == 0
    assert not directfuse.access(path, os.F_OK)
    with directfuse.open(path, "w"):
        pass
    assert directfuse.access(path, os.F_OK)


@pytest.mark.skipif(os.getuid() != 0, reason="becomes another user: needs root")
def test_access_is_for_who_asks(tmp_path):
    words = ["memfs", str(tmp_path / "mnt"), "-o", "allow_other"]
    with directfuse.mount(words, placement="server") as mount:
        path = f"{mount.mountpoint}/f"
        with directfuse.open(path, "w"):
            pass
        directfuse.chmod(mount.mountpoint, 0o755)
        directfuse.chmod(path, 0o640)
        assert directfuse.access(path, os.R_OK | os.W_OK)

        def another_user(group, may):
            os.setgroups([])
            os.setresgid(group, group, group)
            os.setresuid(1234, 1234, 1234)
            directfuse.identity_refresh()
            assert directfuse.access(path, os.F_OK)
            assert directfuse.access(path, os.R_OK) == may
            assert not directfuse.access(path, os.W_OK)

        assert in_fork(lambda: another_user(1234, False)) == 0
        assert in_fork(lambda: another_user(directfuse.stat(path).st_gid, True)) == 0


# ---- programs in a run --------------------------------------------------------------------------

LISTS = """
import os, sys
for entry in os.scandir("{point}"):
    if "{asks}":
        os.lstat(entry.path); os.stat(entry.path); os.access(entry.path, os.R_OK)
"""


def trips_of(tmp_path, asks):
    """Of a program that lists a directory of a mount, and perhaps asks for each of its names."""
    point, report = tmp_path / "mnt", tmp_path / "stats.json"
    command = f'seq -f {point}/name-%g {COUNT} | xargs touch; exec {sys.executable} -c "$0"'
    script = LISTS.format(point=point, asks="asks" if asks else "")
    words = [sys.executable, "-m", "directfuse", "run", f"--stats={report}"]
    words += ["-m", f"memfs {point}", "--", "sh", "-c", command, script]
    subprocess.run(words, check=True, timeout=60)
    return json.loads(report.read_text())["events"]["trips"]


def test_programs_that_ask_for_what_they_have_listed_need_no_trips(tmp_path):
    assert trips_of(tmp_path, asks=True) - trips_of(tmp_path, asks=False) < 3
