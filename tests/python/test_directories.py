"""scandir, listdir, walk, fwalk and directfuse.path."""

import errno
import gc
import os
import pickle
import stat
import subprocess
import sys
import threading

import pytest

import directfuse


@pytest.fixture
def tree(root, fill):
    """a/ (f, sub/ (g)), b (a file), link -> a, dangling -> none"""
    directfuse.makedirs(f"{root}/a/sub")
    fill(f"{root}/a/f", b"1")
    fill(f"{root}/a/sub/g", b"22")
    fill(f"{root}/b", b"333")
    directfuse.symlink("a", f"{root}/link")
    directfuse.symlink("none", f"{root}/dangling")
    return root


def entries_of(path):
    with directfuse.scandir(path) as scan:
        return {entry.name: entry for entry in scan}


def test_entries(tree):
    entries = entries_of(tree)
    assert sorted(entries) == ["a", "b", "dangling", "link"]
    a, b, link, dangling = (entries[name] for name in ("a", "b", "link", "dangling"))
    assert (a.is_dir(), a.is_file(), a.is_symlink()) == (True, False, False)
    assert (b.is_dir(), b.is_file(), b.is_symlink()) == (False, True, False)
    assert (link.is_dir(), link.is_symlink()) == (True, True)
    assert (link.is_dir(follow_symlinks=False), link.is_file()) == (False, False)
    assert (dangling.is_dir(), dangling.is_file(), dangling.is_symlink()) == (False, False, True)
    assert b.stat().st_size == 3 and b.stat() is b.stat()
    assert b.inode() == b.stat().st_ino == directfuse.stat(f"{tree}/b").st_ino
    assert stat.S_ISLNK(link.stat(follow_symlinks=False).st_mode)
    assert stat.S_ISDIR(link.stat().st_mode)
    with pytest.raises(FileNotFoundError) as caught:
        dangling.stat()
    assert caught.value.filename == f"{tree}/dangling"
    assert b.path == os.fspath(b) == f"{tree}/b"
    assert repr(b) == "<DirEntry 'b'>" and not b.is_junction()
    assert directfuse.stat(b).st_size == 3


def test_entries_take_their_arguments_as_those_of_os(tree):
    entry = entries_of(tree)["b"]
    for call in (entry.is_dir, entry.is_file, entry.stat):
        with pytest.raises(TypeError):
            call(True)
        with pytest.raises(TypeError):
            call(unknown=True)
    with pytest.raises(AttributeError):
        entry.name = "x"
    with pytest.raises(TypeError, match="pickle"):
        pickle.dumps(entry)
    with pytest.raises(TypeError):
        directfuse.DirEntry()
    assert directfuse.DirEntry[str]


def test_paths_of_entries(tree):
    assert sorted(entry.path for entry in directfuse.scandir(f"{tree}/a/")) == [
        f"{tree}/a/f",
        f"{tree}/a/sub",
    ]
    in_bytes = entries_of(os.fsencode(tree))
    assert in_bytes[b"b"].path == os.fsencode(tree) + b"/b" and in_bytes[b"b"].is_file()


def test_scandir_of_a_descriptor(tree, opened):
    fd = opened(tree, os.O_RDONLY | os.O_DIRECTORY)
    for _ in range(2):  # the descriptor stays open, at its start
        entries = entries_of(fd)
        assert sorted(entries) == ["a", "b", "dangling", "link"]
        assert entries["b"].path == "b" and entries["b"].stat().st_size == 3
        assert entries["link"].is_dir()
        assert sorted(directfuse.listdir(fd)) == sorted(entries)


def test_a_scan_ends_once(tree):
    scan = directfuse.scandir(tree)
    assert len([*scan]) == 4 and [*scan] == []
    scan.close()
    with directfuse.scandir(tree) as scan:
        next(scan)
    with pytest.raises(StopIteration):
        next(scan)
    with pytest.raises(TypeError, match="pickle"):
        pickle.dumps(scan)


def test_a_forgotten_scan_warns_and_is_closed(tree):
    scan = directfuse.scandir(tree)
    next(scan)
    with pytest.warns(ResourceWarning, match="unclosed scandir iterator"):
        del scan
        gc.collect()
    directfuse.unmount(tree)


def test_many_entries(root, fill):
    directfuse.mkdir(f"{root}/many")
    names = {f"a-name-that-is-not-quite-short-{number:05}" for number in range(3000)}
    for name in names:
        directfuse.mknod(f"{root}/many/{name}")
    listed = directfuse.listdir(f"{root}/many")
    assert len(listed) == 3000 and set(listed) == names
    assert {entry.name for entry in directfuse.scandir(f"{root}/many")} == names


def test_threads_cannot_share_a_scan_but_do_not_crash(root):
    for number in range(2000):
        directfuse.mknod(f"{root}/{number}")
    scan = directfuse.scandir(root)
    found, refused = [], []

    def take():
        while True:
            try:
                found.append(next(scan).name)
            except StopIteration:
                return
            except ValueError as error:
                refused.append(error)

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found, key=int) == [str(number) for number in range(2000)]
    assert all("another thread" in str(error) for error in refused)


def test_not_a_directory(tree):
    for call in (directfuse.listdir, directfuse.scandir):
        with pytest.raises(NotADirectoryError) as caught:
            call(f"{tree}/b")
        assert caught.value.filename == f"{tree}/b"


# ---- trees -------------------------------------------------------------------------------------


@pytest.fixture
def twin(tree, tmp_path):
    """The same tree in a real directory."""
    real = tmp_path / "twin"
    (real / "a/sub").mkdir(parents=True)
    (real / "a/f").write_bytes(b"1")
    (real / "a/sub/g").write_bytes(b"22")
    (real / "b").write_bytes(b"333")
    (real / "link").symlink_to("a")
    (real / "dangling").symlink_to("none")
    return str(real)


def walked(walk, top, **options):
    return [
        (step[0].replace(top, "TOP"), sorted(step[1]), sorted(step[2]))
        for step in walk(top, **options)
    ]


@pytest.mark.parametrize("topdown", [True, False])
@pytest.mark.parametrize("followlinks", [True, False])
def test_walk(tree, twin, topdown, followlinks):
    options = {"topdown": topdown, "followlinks": followlinks}
    assert sorted(walked(directfuse.walk, tree, **options)) == sorted(
        walked(os.walk, twin, **options)
    )
    options = {"topdown": topdown, "follow_symlinks": followlinks}
    assert sorted(walked(directfuse.fwalk, tree, **options)) == sorted(
        walked(os.fwalk, twin, **options)
    )


def test_walk_order_and_pruning(tree):
    assert [step[0] for step in directfuse.walk(f"{tree}/a")] == [f"{tree}/a", f"{tree}/a/sub"]
    assert [step[0] for step in directfuse.walk(f"{tree}/a", topdown=False)] == [
        f"{tree}/a/sub",
        f"{tree}/a",
    ]
    for top, dirs, _ in directfuse.walk(tree):
        dirs[:] = []
        assert top == tree
    assert [type(step[0]) for step in directfuse.walk(os.fsencode(tree))] == [bytes] * 3


def test_walk_tells_of_errors(tree):
    errors = []
    assert [*directfuse.walk(f"{tree}/none", onerror=errors.append)] == []
    assert [*directfuse.walk(f"{tree}/none")] == []
    assert [error.filename for error in errors] == [f"{tree}/none"]


@pytest.mark.parametrize("follow", [True, False])
@pytest.mark.parametrize("name", ["none", "b/x", "b", "dangling"])
def test_fwalk_raises_what_is_wrong_with_its_top(tree, twin, name, follow):
    def steps(functions, top):
        errors = []
        walk = functions.fwalk(f"{top}/{name}", onerror=errors.append, follow_symlinks=follow)
        try:
            return [*walk], errors
        except OSError as error:
            return error.errno, errors

    assert steps(directfuse, tree) == steps(os, twin)


def test_fwalk_tells_of_errors_below(tree, twin):
    """Of what has gone since it was listed, and of a link to it."""

    def told(functions, top):
        errors = []
        walk = functions.fwalk(top, onerror=errors.append)
        assert next(walk)[0] == top
        functions.rename(f"{top}/a", f"{top}/moved")
        assert [*walk] == []
        return {error.filename for error in errors}

    assert told(directfuse, tree) == told(os, twin) == {"a", "link"}


def test_fwalk_descriptors(tree):
    for top, _, files, fd in directfuse.fwalk(tree):
        for name in files:
            if name != "dangling":
                assert directfuse.stat(name, dir_fd=fd) == directfuse.stat(f"{top}/{name}")
    with pytest.raises(OSError, match="Bad file descriptor"):
        directfuse.fstat(fd)


# ---- directfuse.path ---------------------------------------------------------------------------

QUESTIONS = ["exists", "lexists", "isfile", "isdir", "islink", "getsize", "ismount", "realpath"]


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize(
    "name",
    ["a", "a/", "b", "link", "link/f", "dangling", "none", "a/../b", "b/x", "a\0b", "link/.."],
)
def test_path_answers_as_os_path(tree, twin, question, name):
    def answer(module, root):
        try:
            value = getattr(module, question)(f"{root}/{name}")
        except (OSError, ValueError) as error:
            return type(error)
        return value.replace(root, "TOP") if isinstance(value, str) else value

    if question == "ismount" and name == "link/..":
        pytest.skip("the root of the mount is one, the real directory is none")
    if question == "getsize" and name in ("a", "a/", "link", "link/.."):
        pytest.skip("the size of a directory is the file system's own")
    assert answer(directfuse.path, tree) == answer(os.path, twin)


@pytest.mark.parametrize("wrong", [-1, "b", None, 1.5])
def test_sameopenfile_takes_descriptors_alone(tree, opened, wrong):
    fd = opened(f"{tree}/b", os.O_RDONLY)
    assert directfuse.path.sameopenfile(fd, opened(f"{tree}/b", os.O_RDONLY))
    with pytest.raises((OSError, TypeError)) as real:
        os.path.sameopenfile(0, wrong)
    with pytest.raises(real.type) as ours:
        directfuse.path.sameopenfile(fd, wrong)
    assert str(ours.value) == str(real.value)


LINKS = {
    "circle": {"a": "b", "b": "c", "c": "a"},
    "circle below itself": {"a": "b/y", "b": "a"},
    "chain": {"n0": "end"} | {f"n{i}": f"n{i - 1}" for i in range(1, 50)},
    "twice": {"d": ".", "e": "d/d/d", "f": "e/../{0}/e/d"},
    "out of nothing": {"a": "none/../b", "b": "end/../c", "c": "/none"},
}


@pytest.mark.parametrize("name", LINKS)
def test_realpath_follows_links_as_os_path_does(name, mem, tmp_path):
    """However many, and what leads back to itself stays under the name that was asked for."""
    real = tmp_path / "real"
    real.mkdir()
    tops = [(os, os.path, str(real)), (directfuse, directfuse.path, mem)]
    for functions, _, top in tops:
        for link, target in LINKS[name].items():
            functions.symlink(target.format(os.path.basename(top)), f"{top}/{link}")
    for link in [*LINKS[name], *(f"{link}/../{link}/x" for link in LINKS[name])]:
        found = []
        for _, path, top in tops:
            found.append(path.realpath(f"{top}/{link}").replace(top, "TOP"))
            try:
                found[-1] += path.realpath(f"{top}/{link}", strict=True).replace(top, "TOP")
            except OSError as error:
                found[-1] += errno.errorcode[error.errno]
        assert found[0] == found[1], link


def test_path_of_mounts(tree, opened):
    assert directfuse.path.ismount(tree) and not directfuse.path.ismount(f"{tree}/a")
    assert directfuse.path.ismount("/") and directfuse.path.ismount(os.fsencode(tree))
    assert directfuse.path.samefile(f"{tree}/link/f", f"{tree}/a/f")
    assert not directfuse.path.samefile(tree, "/")
    one, two = opened(f"{tree}/b", os.O_RDONLY), opened(f"{tree}/b", os.O_RDONLY)
    assert directfuse.path.sameopenfile(one, two) and directfuse.path.exists(one)
    assert directfuse.path.getmtime(f"{tree}/b") == directfuse.stat(f"{tree}/b").st_mtime
    assert directfuse.path.realpath(f"{tree}/link/../b") == f"{tree}/b"
    directfuse.symlink("loop", f"{tree}/loop")
    directfuse.path.realpath(f"{tree}/loop")
    with pytest.raises(OSError, match="Too many levels"):
        directfuse.path.realpath(f"{tree}/loop", strict=True)


def test_path_has_all_of_os_path():
    import posixpath

    assert set(posixpath.__all__) == set(directfuse.path.__all__)
    assert all(hasattr(directfuse.path, name) for name in posixpath.__all__)


def test_path_has_what_later_pythons_have():
    later = ("isdevdrive", "isjunction", "splitroot")  # stand-ins where this Python has none
    script = (
        "import os.path, sys\n"
        f"for name in {later}:\n"
        "    vars(os.path).setdefault(name, name.upper())\n"
        "from directfuse import path\n"
        f"assert all(getattr(path, name) is getattr(os.path, name) for name in {later})\n"
        f"assert set({later}) <= set(path.__all__)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_realpath_may_allow_what_is_missing(mem, monkeypatch):
    """As later Pythons have it: of what else is wrong it is as strict as with True."""
    allow = object()
    monkeypatch.setattr(os.path, "ALLOW_MISSING", allow, raising=False)
    directfuse.symlink("none/x", f"{mem}/dangling")
    directfuse.symlink("loop", f"{mem}/loop")
    directfuse.mknod(f"{mem}/file")
    assert directfuse.path.realpath(f"{mem}/dangling/y", strict=allow) == f"{mem}/none/x/y"
    with pytest.raises(OSError, match="Too many levels"):
        directfuse.path.realpath(f"{mem}/loop", strict=allow)
    with pytest.raises(NotADirectoryError):
        directfuse.path.realpath(f"{mem}/file/x", strict=allow)
