"""File systems of fsspec, mounted: every call of the package reaches them."""

import errno
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import threading
import uuid
import zipfile

import pytest

fsspec = pytest.importorskip(
    "fsspec", reason="fsspec is not installed (pip install directfuse[consumers])"
)

import directfuse  # noqa: E402


@pytest.fixture
def name():
    return uuid.uuid4().hex


@pytest.fixture
def memory_fs(name):
    fs = fsspec.filesystem("memory")
    fs.makedirs(f"/{name}")
    yield fs
    fs.rm(f"/{name}", recursive=True)


@pytest.fixture
def shown(name, memory_fs, tmp_path):
    """The root of a mount of memory://NAME."""
    with directfuse.mount(f"fsspec memory://{name} {tmp_path}/m") as mount:
        yield mount.mountpoint
        assert mount.stats().calls > 0


def test_a_command_line(shown, memory_fs, name):
    with directfuse.open(f"{shown}/x", "w") as file:
        file.write("text")
    assert memory_fs.cat(f"/{name}/x") == b"text"
    assert directfuse.stat(f"{shown}/x").st_size == 4
    directfuse.makedirs(f"{shown}/a/b")
    directfuse.rename(f"{shown}/x", f"{shown}/a/b/y")
    assert [*directfuse.walk(shown)] == [
        (shown, ["a"], []),
        (f"{shown}/a", ["b"], []),
        (f"{shown}/a/b", [], ["y"]),
    ]
    with directfuse.open(f"{shown}/a/b/y", "r+") as file:
        file.seek(0, 2)
        file.write(" more")
        file.seek(0)
        assert file.read() == "text more"
    assert directfuse.read_many([f"{shown}/a/b/y", (f"{shown}/a/b/y", 5, 2)]) == [
        b"text more",
        b"mo",
    ]
    directfuse.truncate(f"{shown}/a/b/y", 2)
    assert memory_fs.cat(f"/{name}/a/b/y") == b"te"
    with pytest.raises(OSError) as caught:
        directfuse.rmdir(f"{shown}/a")
    assert caught.value.errno == errno.ENOTEMPTY
    with pytest.raises(FileNotFoundError):
        directfuse.open(f"{shown}/none")


def test_attributes_of_what_replaced_another(shown):
    """The cache of the host had forgotten the replaced file, and learns of it while renaming."""
    for name in ("a", "b", "b/x"):
        directfuse.mkdir(f"{shown}/{name}")
    for name, size in (("a/c", 13), ("a/a", 3)):
        with directfuse.open(f"{shown}/{name}", "wb") as file:
            file.write(bytes(size))
    with pytest.raises(OSError, match="not empty"):
        directfuse.rename(f"{shown}/a", f"{shown}/b")
    directfuse.rename(f"{shown}/a/c", f"{shown}/a/a")
    assert directfuse.stat(f"{shown}/a/a").st_size == 13


def test_the_standard_library_on_it(shown, tmp_path):
    tree = tmp_path / "tree"
    (tree / "d").mkdir(parents=True)
    (tree / "d" / "large").write_bytes(os.urandom(3_000_000))
    with directfuse.patch():
        shutil.copytree(tree, f"{shown}/copy", copy_function=shutil.copyfile)
        shutil.make_archive(str(tmp_path / "archive"), "zip", f"{shown}/copy")
        shutil.rmtree(f"{shown}/copy")
        assert os.listdir(shown) == []
    with zipfile.ZipFile(tmp_path / "archive.zip") as archive:
        assert archive.read("d/large") == (tree / "d" / "large").read_bytes()


def test_an_object(memory_fs, name, tmp_path):
    memory_fs.pipe(f"/{name}/x", b"of an object")
    with directfuse.mount(memory_fs, tmp_path / "m") as mount:
        with directfuse.open(f"{mount.mountpoint}/{name}/x") as file:
            assert file.read() == "of an object"


def test_an_archive_inside_another_mount(shown, tmp_path):
    """fsspec reads a mount, and is one: a zip in a memory:// in this process, twice over."""
    with directfuse.open(f"{shown}/a.zip", "wb") as file, zipfile.ZipFile(file, "w") as archive:
        archive.writestr("d/x", "inner")
    url = f"zip://::directfuse://{shown}/a.zip"
    with directfuse.mount(["fsspec", url, f"{tmp_path}/zip"]) as mount:
        assert mount.read_only and mount.fsname == url[:63]
        with directfuse.open(f"{mount.mountpoint}/d/x") as file:
            assert file.read() == "inner"
        with pytest.raises(OSError) as caught:
            directfuse.open(f"{mount.mountpoint}/y", "w")
        assert caught.value.errno == errno.EROFS


def test_http(server, tmp_path):
    """A server in this very process: calls that wait release the GIL."""
    pytest.importorskip("aiohttp", reason="aiohttp is not installed")
    with directfuse.mount(f"fsspec {server} {tmp_path}/m -o block_size=64K") as mount:
        root = mount.mountpoint
        assert directfuse.listdir(f"{root}/d") == ["x"] and mount.read_only
        with directfuse.open(f"{root}/d/x") as file:
            assert file.read() == "over http"
        assert directfuse.stat(f"{root}/d/x").st_size == 9
        with pytest.raises(FileNotFoundError):
            directfuse.stat(f"{root}/d/none")


def test_s3(s3, tmp_path):
    options = f"endpoint_url={s3},key=key,secret=secret,block_size=64K"
    with directfuse.mount(f"fsspec s3://bucket {tmp_path}/m -o {options}") as mount:
        root, data = mount.mountpoint, os.urandom(300_000)
        assert directfuse.listdir(root) == []
        directfuse.makedirs(f"{root}/a/b")
        assert directfuse.listdir(f"{root}/a/b") == []  # S3 has no directories, a mount has
        with directfuse.open(f"{root}/a/b/x", "wb") as file:
            file.write(data)
        with directfuse.open(f"{root}/a/b/x", "rb") as file:
            file.seek(150_000)
            assert file.read(1000) == data[150_000:151_000]
            file.seek(0)
            assert file.read() == data
        directfuse.rename(f"{root}/a/b/x", f"{root}/y")
        assert sorted(directfuse.listdir(root)) == ["a", "y"]
        directfuse.rename(f"{root}/a", f"{root}/c")
        with directfuse.open(f"{root}/y", "ab") as file:
            file.write(b"end")
        assert directfuse.stat(f"{root}/y").st_size == 300_003
        directfuse.unlink(f"{root}/y")
        directfuse.removedirs(f"{root}/c/b")
        assert directfuse.listdir(root) == []


def test_threads(shown):
    wrong = []

    def work(number):
        data = bytes([number]) * 10_000
        for turn in range(5):
            path = f"{shown}/{number}-{turn}"
            with directfuse.open(path, "wb") as file:
                file.write(data)
            with directfuse.open(path, "rb") as file:
                if file.read() != data:
                    wrong.append(path)

    threads = [threading.Thread(target=work, args=[n]) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == [] and len(directfuse.listdir(shown)) == 30


def test_a_forked_child(shown):
    with directfuse.open(f"{shown}/x", "w") as file:
        file.write("before")
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        try:
            with directfuse.open(f"{shown}/x") as file:
                os._exit(0 if file.read() == "before" else 1)
        finally:
            os._exit(255)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        ("fsspec", errno.EINVAL, "usage: fsspec URL MOUNTPOINT"),
        ("fsspec memory://x", errno.EINVAL, "usage: fsspec URL MOUNTPOINT"),
        ("fsspec nosuch://x /m", errno.EINVAL, "Protocol not known: nosuch"),
        ("fsspec file:///no/such /m", errno.ENOENT, "-o create makes it"),
        ("fsspec file:///etc/passwd /m", errno.ENOTDIR, "chain it"),
        ("fsspec memory:// /m -o ttl=soon", errno.EINVAL, "ttl=soon makes no sense"),
    ],
)
def test_bad_command_lines(command, code, words):
    with pytest.raises(directfuse.MountError, match=words) as caught:
        directfuse.mount(command).unmount()
    assert caught.value.errno == code


@pytest.fixture
def pandas():
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    return pytest.importorskip("pandas", reason="pandas is not installed")


def test_consumers_on_it(pandas, shown):
    table = pandas.DataFrame({"a": range(100)})
    table.to_parquet(f"directfuse://{shown}/t.parquet")
    assert pandas.read_parquet(f"directfuse://{shown}/t.parquet").equals(table)


def test_other_programs(tmp_path):
    """The interpreter runs in a helper, the program is the system's own."""
    if not importlib.util.find_spec("mfusepy"):  # imported, it would load libfuse3 into the tests
        pytest.skip("mfusepy is not installed (pip install mfusepy)")
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "x").write_text("by another program")
    command = f"fsspec file://{tmp_path}/source /shown"
    done = subprocess.run(
        [sys.executable, "-m", "directfuse", "run", "-m", command, "--", "cat", "/shown/x"],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "by another program"), done.stderr


def test_the_message_without_fsspec(script):
    said = script(
        """
        import sys
        sys.modules["fsspec"] = None
        import directfuse
        try:
            directfuse.mount("fsspec memory:// /m")
        except OSError as error:
            print(error.errno, error)
        """
    )
    assert said.startswith(f"{errno.ENOENT} ") and "pip install fsspec" in said
