"""The backend "fsspec", called as a mount calls it: operations on whole paths."""

import errno
import json
import os
import signal
import stat
import subprocess
import sys
import threading
import time
import uuid
import zipfile

import pytest

fsspec = pytest.importorskip(
    "fsspec", reason="fsspec is not installed (pip install directfuse[consumers])"
)

from directfuse._errors import MountError  # noqa: E402
from directfuse.backends import _remote_options  # noqa: E402
from directfuse.backends._remote_options import Options  # noqa: E402
from directfuse.backends.fsspec import FsspecOperations  # noqa: E402

from .counting import Counting  # noqa: E402

READ, WRITE, BOTH = os.O_RDONLY, os.O_WRONLY, os.O_RDWR


@pytest.fixture
def store():
    return Counting()


@pytest.fixture
def ops(store):
    return FsspecOperations(store, "bucket", Options(block_size=1 << 16, cache_type="blockcache"))


@pytest.fixture(params=["memory", "counting", "file"])
def any_ops(request, tmp_path):
    """An empty directory of file systems with and without directories of their own."""
    if request.param == "counting":
        fs = Counting()
        fs.objects.clear()
        yield FsspecOperations(fs, "bucket")
        return
    url = f"file://{tmp_path}/there"
    if request.param == "memory":
        url = f"memory://{uuid.uuid4().hex}"
    yield FsspecOperations.from_url(url, Options(create=True))


def put(ops, path, data):
    fh = ops.create(path, 0o644)
    assert ops.write(path, data, 0, fh) == len(data)
    ops.flush(path, fh)
    ops.release(path, fh)


def get(ops, path):
    fh = ops.open(path, READ)
    try:
        return ops.read(path, ops.getattr(path, fh)["st_size"], 0, fh)
    finally:
        ops.release(path, fh)


def refuses(code, call, *arguments):
    with pytest.raises(OSError) as caught:
        call(*arguments)
    assert errno.errorcode.get(caught.value.errno) == errno.errorcode[code]


# ---- any file system ---------------------------------------------------------------------------


def test_files_and_directories(any_ops):
    ops = any_ops
    assert ops.readdir("/") == [".", ".."]
    ops.mkdir("/d", 0o755)
    assert ops.readdir("/") == [".", "..", "d"] and ops.readdir("/d") == [".", ".."]
    put(ops, "/d/x", b"0123456789")
    attributes = ops.getattr("/d/x")
    assert stat.S_ISREG(attributes["st_mode"]) and attributes["st_size"] == 10
    assert abs(attributes["st_mtime"] - time.time_ns()) < 100 * 10**9
    assert stat.S_ISDIR(ops.getattr("/d")["st_mode"])
    assert get(ops, "/d/x") == b"0123456789"
    ops.rename("/d/x", "/d/y")
    assert ops.readdir("/d") == [".", "..", "y"] and get(ops, "/d/y") == b"0123456789"
    refuses(errno.ENOENT, ops.getattr, "/d/x")
    refuses(errno.ENOTEMPTY, ops.rmdir, "/d")
    refuses(errno.EEXIST, ops.mkdir, "/d", 0o755)
    refuses(errno.ENOENT, ops.open, "/none", READ)
    refuses(errno.ENOENT, ops.readdir, "/none")
    refuses(errno.ENOTDIR, ops.readdir, "/d/y")
    refuses(errno.ENOENT, ops.rename, "/none", "/other")
    ops.unlink("/d/y")
    refuses(errno.ENOENT, ops.unlink, "/d/y")
    refuses(errno.EISDIR, ops.unlink, "/d")
    assert ops.readdir("/d") == [".", ".."]
    ops.rmdir("/d")
    assert ops.readdir("/") == [".", ".."]


def test_renaming_over_and_directories(any_ops):
    ops = any_ops
    ops.mkdir("/a", 0o755)
    put(ops, "/a/x", b"a")
    put(ops, "/b", b"b")
    refuses(errno.EISDIR, ops.rename, "/b", "/a")
    refuses(errno.ENOTDIR, ops.rename, "/a", "/b")
    ops.rename("/b", "/a/x")
    assert get(ops, "/a/x") == b"b"
    ops.mkdir("/c", 0o755)
    ops.rename("/a", "/c")  # an empty directory may be replaced
    assert ops.readdir("/") == [".", "..", "c"] and get(ops, "/c/x") == b"b"
    ops.mkdir("/e", 0o755)
    put(ops, "/e/y", b"y")
    refuses(errno.ENOTEMPTY, ops.rename, "/c", "/e")


def test_writing_is_as_posix_has_it_inside_the_mount(any_ops):
    ops = any_ops
    fh = ops.create("/x", 0o644)
    ops.write("/x", b"abc", 0, fh)
    ops.write("/x", b"z", 6, fh)  # a hole
    assert ops.getattr("/x")["st_size"] == 7  # not stored, but there
    assert ops.readdir("/") == [".", "..", "x"]
    other = ops.open("/x", READ)
    assert ops.read("/x", 100, 0, other) == b"abc\0\0\0z"
    ops.truncate("/x", 4, fh)
    assert ops.read("/x", 100, 0, other) == b"abc\0"
    ops.release("/x", other)
    ops.flush("/x", fh)
    ops.release("/x", fh)
    assert get(ops, "/x") == b"abc\0"
    fh = ops.open("/x", BOTH)  # begins with what is there
    ops.write("/x", b"B", 1, fh)
    assert ops.read("/x", 9, 0, fh) == b"aBc\0"
    ops.fsync("/x", 0, fh)
    assert ops.fs.cat_file(ops._name("/x")) == b"aBc\0"
    ops.release("/x", fh)
    ops.truncate("/x", 2)
    assert get(ops, "/x") == b"aB"
    ops.truncate("/x", 3)
    assert get(ops, "/x") == b"aB\0"
    fh = ops.open("/x", WRITE | os.O_TRUNC)
    ops.flush("/x", fh)
    ops.release("/x", fh)
    assert ops.getattr("/x")["st_size"] == 0
    assert ops._drafts == {} and ops._handles == {}


def test_open_files_whose_name_changes(any_ops):
    ops = any_ops
    fh = ops.create("/x", 0o644)
    ops.write("/x", b"moved", 0, fh)
    ops.rename("/x", "/y")
    ops.write("/y", b"M", 0, fh)
    ops.release("/y", fh)
    assert get(ops, "/y") == b"Moved" and ops.readdir("/") == [".", "..", "y"]
    fh = ops.open("/y", BOTH)
    ops.write("/y", b"gone", 0, fh)
    ops.unlink("/y")
    assert ops.read("/y", 9, 0, fh) == b"goned"
    ops.release("/y", fh)
    assert ops.readdir("/") == [".", ".."]


class _Late:
    """The lock of a draft, taken by one who comes when something else has happened."""

    def __init__(self, lock, happens):
        self.lock = lock
        self.happens = [happens]

    def __enter__(self):
        while self.happens:
            self.happens.pop()()
        self.lock.acquire()

    def __exit__(self, *error):
        self.lock.release()


@pytest.mark.parametrize(
    "look",
    [
        lambda ops, fh: ops.getattr("/f")["st_size"],
        lambda ops, fh: len(ops.read("/f", 10, 0, fh)),
    ],
)
def test_who_looks_while_a_writer_closes_sees_what_was_stored(any_ops, look):
    put(any_ops, "/f", b"123")
    reader = any_ops.open("/f", READ)
    writer = any_ops.open("/f", WRITE)
    draft = any_ops._drafts["/f"]
    draft.lock = _Late(draft.lock, lambda: any_ops.release("/f", writer))
    assert look(any_ops, reader) == 3
    any_ops.release("/f", reader)


def test_attributes_that_cannot_be_kept(any_ops):
    ops = any_ops
    put(ops, "/x", b"")
    ops.chmod("/x", 0o644)
    refuses(errno.EOPNOTSUPP, ops.chmod, "/x", 0o600)
    ops.chown("/x", -1, os.getgid())
    refuses(errno.EOPNOTSUPP, ops.chown, "/x", 12345, -1)
    ops.utimens("/x")
    ops.utimens("/x", (time.time_ns(), time.time_ns()))
    refuses(errno.EOPNOTSUPP, ops.utimens, "/x", (10**18, 10**18))
    assert ops.access("/x", os.W_OK) == 0
    assert ops.statfs("/")["f_namemax"] == 255


# ---- what a remote one is asked ----------------------------------------------------------------


def test_attributes_are_believed_for_a_while(ops, store):
    for _ in range(5):
        ops.getattr("/d/one")
        with pytest.raises(OSError):
            ops.getattr("/d/none")
    assert store.asked == ["info", "info"]
    ops.readdir("/")
    store.asked.clear()
    ops.getattr("/big")
    ops.getattr("/d")
    refuses(errno.ENOENT, ops.getattr, "/not-listed")
    assert store.asked == []


def test_nothing_is_believed_with_ttl_0(store):
    ops = FsspecOperations(store, "bucket", Options(ttl=0))
    assert get(ops, "/d/one") == b"one"
    store.objects["bucket/d/one"] = b"changed"
    assert get(ops, "/d/one") == b"changed"
    store.objects["bucket/d/two"] = b""
    store.times["bucket/d/two"] = 1
    assert ops.readdir("/d") == [".", "..", "one", "two"]


def test_few_paths_are_kept(store, monkeypatch):
    """But the last listing is whole, and with what goes goes what the file system has kept."""
    for n in range(9):
        store.objects[f"bucket/e/{n}"] = b""
        store.times[f"bucket/e/{n}"] = 1
    forgotten = []
    ops = FsspecOperations(store, "bucket", Options(max_paths=4))
    for n in range(9):
        ops.getattr(f"/e/{n}")
    store.asked.clear()
    ops.getattr("/e/5")
    assert store.asked == []
    ops.getattr("/e/4")
    assert store.asked == ["info"]
    ops.readdir("/e")
    store.asked.clear()
    for n in range(9):
        ops.getattr(f"/e/{n}")
    assert store.asked == []
    monkeypatch.setattr(store, "invalidate_cache", forgotten.append)
    ops.readdir("/d")
    assert "bucket/e" in forgotten
    store.asked.clear()
    ops.getattr("/e/0")
    assert store.asked == ["info"]


def test_blocks_are_kept_between_opens(ops, store):
    data = store.objects["bucket/big"]
    fh = ops.open("/big", READ)
    for offset in range(0, len(data), 5000):
        assert ops.read("/big", 5000, offset, fh) == data[offset : offset + 5000]
    assert store.asked.count("get") <= len(data) // (1 << 16) + 1
    ops.release("/big", fh)
    store.asked.clear()
    assert get(ops, "/big")[:10] == data[:10]
    store.asked.clear()
    fh = ops.open("/big", READ)
    assert ops.read("/big", 100, len(data) - 50, fh) == data[-50:]
    ops.release("/big", fh)
    assert "get" not in store.asked


def test_a_changed_file_is_fetched_again(ops, store):
    assert get(ops, "/d/one") == b"one"
    store._put("bucket/d/one", b"two")
    ops._forget("/d/one")
    assert get(ops, "/d/one") == b"two"


@pytest.mark.parametrize("cache", ["background", "readahead", "bytes", "none", "mmap", "all"])
def test_caches_of_fsspec(store, cache):
    ops = FsspecOperations(store, "bucket", Options(block_size=1 << 16, cache_type=cache))
    data = store.objects["bucket/big"]
    fh = ops.open("/big", READ)
    for offset in (0, 70_000, 5, len(data) - 10, len(data) + 10):
        assert ops.read("/big", 100, offset, fh) == data[offset : offset + 100]
    ops.release("/big", fh)
    ops.destroy("/")


def test_few_readers_are_kept(ops, store):
    for n in range(40):
        store.objects[f"bucket/{n}"] = b"x"
        store.times[f"bucket/{n}"] = 1
    handles = [ops.open(f"/{n}", READ) for n in range(40)]
    for n, fh in enumerate(handles):
        assert ops.read(f"/{n}", 9, 0, fh) == b"x"
        ops.release(f"/{n}", fh)
    assert len(ops._readers._named) == 16


def test_threads(ops, store):
    data = store.objects["bucket/big"]
    wrong = []

    def work(seed):
        fh = ops.open("/big", READ)
        for n in range(50):
            offset = (seed * 7919 + n * 104729) % (len(data) - 1000)
            if ops.read("/big", 1000, offset, fh) != data[offset : offset + 1000]:
                wrong.append(offset)
        ops.release("/big", fh)
        put(ops, f"/d/{seed}", b"x" * seed)

    threads = [threading.Thread(target=work, args=[n]) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == [] and len(ops.readdir("/d")) == 3 + 8


# ---- errors ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (FileNotFoundError("without an errno"), errno.ENOENT),
        (PermissionError("no"), errno.EACCES),
        (TimeoutError(), errno.ETIMEDOUT),
        (NotImplementedError(), errno.EOPNOTSUPP),
        (OSError(errno.EBUSY, "busy"), errno.EBUSY),
        (RuntimeError("anything"), errno.EIO),
        (KeyError("anything"), errno.EIO),
    ],
)
def test_errors_have_an_errno(ops, store, error, code, caplog):
    store.fail = error
    refuses(code, ops.getattr, "/big")
    assert bool(caplog.records) == (code == errno.EIO)


def test_what_cannot_be_stored_fails_at_close(ops, store):
    fh = ops.create("/d/x", 0o644)
    ops.write("/d/x", b"kept", 0, fh)
    store.fail = PermissionError("read only")
    refuses(errno.EACCES, ops.flush, "/d/x", fh)
    store.fail = None
    ops.flush("/d/x", fh)  # nothing was lost
    ops.release("/d/x", fh)
    assert store.objects["bucket/d/x"] == b"kept"


def test_bad_handles(ops):
    refuses(errno.EBADF, ops.read, "/big", 1, 0, 999)
    fh = ops.open("/big", READ)
    refuses(errno.EBADF, ops.write, "/big", b"x", 0, fh)
    ops.release("/big", fh)
    refuses(errno.EISDIR, ops.open, "/d", READ)
    refuses(errno.EISDIR, ops.open, "/d", WRITE)


# ---- archives, http ----------------------------------------------------------------------------


def test_a_zip(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("d/x", b"zipped" * 1000)
    ops = FsspecOperations.from_url(f"zip://::file://{tmp_path}/a.zip")
    assert ops.readdir("/d") == [".", "..", "x"] and get(ops, "/d/x") == b"zipped" * 1000
    assert ops.getattr("/d/x")["st_mode"] == stat.S_IFREG | 0o444
    for call, *arguments in [
        (ops.create, "/y", 0o644),
        (ops.open, "/d/x", WRITE),
        (ops.mkdir, "/e", 0o755),
        (ops.unlink, "/d/x"),
        (ops.rename, "/d", "/e"),
        (ops.truncate, "/d/x", 0),
        (ops.access, "/d/x", os.W_OK),
        (ops.utimens, "/d/x"),
    ]:
        refuses(errno.EROFS, call, *arguments)


def test_http(server):
    pytest.importorskip("aiohttp", reason="aiohttp is not installed")
    ops = FsspecOperations.from_url(server)
    assert ops.readdir("/") == [".", "..", "d"] and ops.readdir("/d") == [".", "..", "x"]
    assert ops.getattr("/d/x")["st_size"] == 9 and get(ops, "/d/x") == b"over http"
    refuses(errno.ENOENT, ops.getattr, "/none")
    refuses(errno.EROFS, ops.create, "/y", 0o644)


def test_a_forked_child_connects_anew(server):
    pytest.importorskip("aiohttp", reason="aiohttp is not installed")
    ops = FsspecOperations.from_url(server)
    fh = ops.open("/d/x", READ)
    assert ops.read("/d/x", 4, 0, fh) == b"over"
    child = os.fork()
    if child == 0:
        signal.alarm(10)  # a hang ends, and fails
        try:
            good = ops.read("/d/x", 9, 5, fh) == b"http" and get(ops, "/d/x") == b"over http"
            os._exit(0 if good else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    ops.release("/d/x", fh)


# ---- the command line --------------------------------------------------------------------------


def test_the_command_line():
    words = ["s3://b", "/s3", "-o", "anon,ttl=60,endpoint_url=http://h:1/a\\,b,allow_other"]
    words += ["-oclient_kwargs.region_name=eu,client_kwargs.verify=false,ro,block_size=1M"]
    url, point, options, fuse = _remote_options.parse(words)
    assert (url, point, fuse) == ("s3://b", "/s3", ["allow_other", "ro"])
    assert (options.ttl, options.block_size, options.read_only) == (60, 1 << 20, True)
    assert options.storage == {
        "anon": True,
        "endpoint_url": "http://h:1/a,b",
        "client_kwargs": {"region_name": "eu", "verify": False},
    }


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["memory://"],
        ["memory://", "/m", "more"],
        ["memory://", "/m", "-x"],
        ["memory://", "/m", "-o", "ttl=soon"],
        ["memory://", "/m", "-o", "ttl=-1"],
        ["memory://", "/m", "-o", "block_size=0"],
        ["memory://", "/m", "-o", "max_paths=0"],
        ["memory://", "/m", "-o", "cache_type=none-such"],
        ["memory://", "/m", "-o", "a=1,a.b=2"],
    ],
)
def test_bad_command_lines(words):
    with pytest.raises(MountError, match="usage: fsspec URL") as caught:
        _remote_options.parse(words)
    assert caught.value.errno == errno.EINVAL


def test_bad_urls(tmp_path):
    with pytest.raises(ValueError, match="Protocol not known"):
        FsspecOperations.from_url("no-such-protocol://x")
    with pytest.raises(FileNotFoundError, match="-o create makes it"):
        FsspecOperations.from_url(f"file://{tmp_path}/none")
    with pytest.raises(ValueError, match=r"behind '::', so zip://::/a\.zip"):
        FsspecOperations.from_url("zip:///a.zip")
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match="chain it"):
        FsspecOperations.from_url(f"file://{tmp_path}/file")
    FsspecOperations.from_url(f"file://{tmp_path}/none", Options(create=True))
    assert (tmp_path / "none").is_dir()


def test_json_in_options():
    _, _, options, _ = _remote_options.parse(["x://", "/m", "-o", 'a=[1\\,2],b=null,c="t",d=1.5'])
    assert options.storage == {"a": [1, 2], "b": None, "c": "t", "d": 1.5}
    assert json.dumps(options.storage)


def test_the_message_without_fsspec():
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; sys.modules['fsspec'] = None; import directfuse.backends.fsspec",
        ],
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert "pip install fsspec" in done.stderr
