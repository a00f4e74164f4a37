"""Ways between mounts and the real file system: symlinks and ".." in both directions."""

import errno
import os
import pathlib

import pytest

import directfuse


@pytest.fixture
def real(tmp_path):
    """A real directory with `file` (bytes b"real") and `sub`."""
    directory = tmp_path / "real"
    (directory / "sub").mkdir(parents=True)
    (directory / "file").write_bytes(b"real")
    return str(directory)


@pytest.fixture
def out(root, real):
    """A symlink in the mount to the real directory."""
    directfuse.symlink(real, f"{root}/out")
    return f"{root}/out"


def test_reading_through_a_link_out(out, real):
    assert directfuse.stat(f"{out}/file") == os.stat(f"{real}/file")
    assert directfuse.lstat(f"{out}/file").st_ino == os.stat(f"{real}/file").st_ino
    assert directfuse.access(f"{out}/file", os.R_OK)
    assert not directfuse.access(f"{out}/none", os.R_OK)
    assert sorted(directfuse.listdir(out)) == ["file", "sub"]
    assert sorted(entry.name for entry in directfuse.scandir(out)) == ["file", "sub"]
    with directfuse.open(f"{out}/file", "rb") as file:
        assert file.read() == b"real"
    fd = directfuse.os_open(f"{out}/file", os.O_RDONLY)
    assert fd < 1 << 30 and directfuse.read(fd, 9) == b"real"
    directfuse.close(fd)
    assert directfuse.stat(os.fsencode(f"{out}/file")).st_size == 4


@pytest.mark.parametrize("kind", [str, os.fsencode, pathlib.Path])
def test_what_a_link_leads_out_to_has_the_path_of_the_caller(kind, out, real, tmp_path):
    """As behind a link of the kernel's."""
    os.symlink(real, tmp_path / "link")

    def seen(our, open_, top):
        with our.scandir(kind(top)) as entries:
            found = sorted(
                (os.fspath(entry), entry.name, entry.is_dir(), entry.stat(), entry.inode())
                for entry in entries
            )
        names = []
        for mode, buffering in (("r", -1), ("rb", -1), ("rb", 0), ("r+b", -1)):
            with open_(kind(f"{top}/file"), mode, buffering) as file:
                names.append(file.name)
        return found, names

    theirs = repr(seen(os, open, f"{tmp_path}/link"))
    assert repr(seen(directfuse, directfuse.open, out)).replace(out, f"{tmp_path}/link") == theirs


def test_a_scan_outside_ends_as_one_of_os(out):
    scan = directfuse.scandir(out)
    assert next(scan).path.startswith(out)
    scan.close()
    assert [*scan] == []
    with pytest.raises(NotADirectoryError) as caught:
        directfuse.scandir(f"{out}/file")
    assert caught.value.filename == f"{out}/file"
    scan = directfuse.scandir(out)
    with pytest.warns(ResourceWarning, match="unclosed scandir iterator"):
        del scan


@pytest.mark.parametrize("kind", [str, os.fsencode])
def test_a_link_into_a_mount_may_lead_to_one_out_of_it(kind, out, root, real, tmp_path):
    """And on: each way is taken as often as the path goes it."""
    plain = tmp_path / "plain"
    plain.mkdir()
    os.symlink(real, plain / "out")

    def seen(our, open_, top, link):
        os.symlink(top, f"{real}/{link}")
        found = []
        for path in (f"{real}/{link}/out/file", f"{top}/out/{link}/out/{link}/out/file"):
            path = kind(path)
            with open_(path, "rb") as file:
                found.append((our.stat(path).st_size, file.read(), our.access(path, os.R_OK)))
            our.chmod(path, 0o640)
            our.truncate(path, 3)
        for act in (our.listdir, our.rmdir, our.readlink, our.statvfs):
            with pytest.raises(OSError) as caught:
                act(kind(f"{real}/{link}/out/none"))
            found.append((caught.value.errno, our.access(kind(f"{real}/{link}/out/none"), 0)))
            assert caught.value.filename == kind(f"{real}/{link}/out/none")
        return found

    theirs = seen(os, open, plain, "to-plain")
    os.truncate(f"{real}/file", 0)
    with open(f"{real}/file", "wb") as file:
        file.write(b"real")
    assert seen(directfuse, directfuse.open, root, "to-mount") == theirs
    os.mkdir(f"{real}/sub/below")
    directfuse.rename(f"{real}/to-mount/out/sub/below", f"{real}/to-mount/out/moved")
    assert os.path.isdir(f"{real}/moved")


class OfBytes:
    """An os.PathLike of bytes."""

    def __init__(self, path):
        self.path = os.fsencode(path)

    def __fspath__(self):
        return self.path


@pytest.mark.parametrize("kind", [str, os.fsencode, pathlib.Path, OfBytes])
def test_names_outside_are_of_the_kind_of_the_path(kind, out, real):
    os.symlink("file", f"{real}/link")

    def seen(our, top):
        names = sorted(our.listdir(kind(top)))
        return (
            names,
            sorted(e.name for e in our.scandir(kind(top))),
            our.readlink(kind(top + "/link")),
        )

    assert seen(directfuse, out) == seen(os, real)


def test_the_link_itself_is_ours(out, root, real):
    assert directfuse.readlink(out) == real
    assert directfuse.lstat(out).st_dev == directfuse.stat(root).st_dev
    assert directfuse.path.islink(out)
    directfuse.unlink(out)
    assert os.path.exists(real)


def test_changing_through_a_link_out(out, real):
    directfuse.mkdir(f"{out}/made")
    directfuse.symlink("made", f"{out}/link")
    assert directfuse.readlink(f"{out}/link") == "made"
    directfuse.rename(f"{out}/file", f"{out}/renamed")
    directfuse.link(f"{out}/renamed", f"{out}/second")
    directfuse.chmod(f"{out}/second", 0o640)
    directfuse.truncate(f"{out}/second", 2)
    directfuse.utime(f"{out}/second", ns=(1, 2))
    directfuse.unlink(f"{out}/second")
    directfuse.rmdir(f"{out}/sub")
    directfuse.makedirs(f"{out}/a/b")
    assert sorted(os.listdir(real)) == ["a", "link", "made", "renamed"]
    found = os.stat(f"{real}/renamed")
    assert (found.st_size, found.st_mode & 0o777, found.st_mtime_ns) == (2, 0o640, 2)


def test_errors_outside(out):
    with pytest.raises(FileNotFoundError):
        directfuse.stat(f"{out}/none")
    with pytest.raises(FileExistsError):
        directfuse.mkdir(f"{out}/sub")
    with pytest.raises(OSError, match="Invalid cross-device link"):
        directfuse.rename(f"{out}/file", f"{os.path.dirname(out)}/inside")


def test_dotdot_above_the_root(root, real):
    name = os.path.basename(real)
    assert directfuse.stat(f"{root}/../{name}/file") == os.stat(f"{real}/file")
    assert name in directfuse.listdir(f"{root}/..")


def test_a_real_link_into_a_mount(root, tmp_path, fill):
    fill(f"{root}/inside", b"inside")
    link = tmp_path / "link"
    link.symlink_to(root)
    assert directfuse.stat(link / "inside").st_size == 6
    assert directfuse.access(link / "inside", os.F_OK)
    assert not directfuse.access(link / "none", os.F_OK)
    assert directfuse.listdir(link) == ["inside"]
    assert [entry.name for entry in directfuse.scandir(link)] == ["inside"]
    with directfuse.open(link / "inside") as file:
        assert file.read() == "inside"
    directfuse.mkdir(link / "made")
    directfuse.rename(link / "inside", link / "moved")
    assert sorted(directfuse.listdir(root)) == ["made", "moved"]
    with pytest.raises(FileNotFoundError):
        directfuse.stat(link / "none")
    with pytest.raises(FileNotFoundError):
        directfuse.stat(tmp_path / "none")


def test_entries_that_lead_out(out, root, real):
    [entry] = [entry for entry in directfuse.scandir(root) if entry.name == "out"]
    assert entry.is_symlink() and entry.is_dir()
    assert entry.stat().st_ino == os.stat(real).st_ino
    assert [*directfuse.walk(root, followlinks=True)][1][0] == out


def test_from_one_mount_to_another(mount_of, fill):
    one, other = mount_of("memfs", "one").mountpoint, mount_of("passthrough", "other").mountpoint
    fill(f"{other}/f", b"other")
    directfuse.symlink(other, f"{one}/link")
    assert directfuse.stat(f"{one}/link/f").st_dev == directfuse.stat(other).st_dev
    with pytest.raises(OSError, match="cross-device"):
        directfuse.rename(f"{one}/link/f", f"{one}/f")


def test_a_mount_inside_a_mount(mount_of, fill):
    outer = mount_of("memfs", "outer").mountpoint
    directfuse.mkdir(f"{outer}/below")
    with directfuse.mount(["memfs", f"{outer}/below"]):
        fill(f"{outer}/below/f", b"inner")
        assert directfuse.listdir(f"{outer}/below") == ["f"]
    assert directfuse.listdir(f"{outer}/below") == []


def test_a_link_that_has_taken_the_place_of_a_file_is_not_followed(tmp_path):
    """passthrough is asked for the name that was a file's a moment ago."""
    source, other, point = tmp_path / "source", tmp_path / "other", tmp_path / "mnt"
    source.mkdir()
    (source / "file").write_bytes(b"mine")
    other.write_bytes(b"another's")
    words = ["passthrough", source, point, "-o", "entry_timeout=60,attr_timeout=60"]
    with directfuse.mount(words):
        assert directfuse.stat(f"{point}/file").st_size == 4
        (source / "file").unlink()
        (source / "file").symlink_to(other)
        with pytest.raises(OSError, match=os.strerror(errno.ELOOP)):
            directfuse.truncate(f"{point}/file", 0)
    assert other.read_bytes() == b"another's"
