"""The fsspec file system "directfuse": what fsspec's own suite does not ask."""

import asyncio
import os
import pickle
import shutil
import threading

import pytest

fsspec = pytest.importorskip(
    "fsspec", reason="fsspec is not installed (pip install directfuse[consumers])"
)

import directfuse  # noqa: E402


@pytest.fixture
def fs():
    return fsspec.filesystem("directfuse")


@pytest.fixture
def tree(memory, fs):
    """/one (3 bytes), /d/two, /d/link -> two, /broken."""
    directfuse.mkdir(f"{memory}/d")
    fs.pipe({f"{memory}/one": b"one", f"{memory}/d/two": b"two"})
    fs.symlink(f"{memory}/d/two", f"{memory}/d/link")
    fs.symlink(f"{memory}/nowhere", f"{memory}/broken")
    return memory


# ---- names -------------------------------------------------------------------------------------


def test_the_protocol_is_known(memory):
    with fsspec.open(f"directfuse://{memory}/x", "wb") as file:
        file.write(b"by url")
    assert fsspec.open(f"directfuse://{memory}/x", "rt").open().read() == "by url"
    with directfuse.open(f"{memory}/x") as file:
        assert file.read() == "by url"


@pytest.mark.parametrize(
    "url", ["directfuse:///a/b", "directfuse://a/b/", "directfuse:/a/b", "/a/b"]
)
def test_urls(fs, url):
    assert fs._strip_protocol(url) == "/a/b"
    assert fs.unstrip_protocol(url) == "directfuse:///a/b"
    assert fs._parent(url) == "/a" and fs._parent("directfuse:///a") == "/"


def test_other_names(fs):
    assert fs._strip_protocol("directfuse://") == "/"
    assert fs._strip_protocol("a") == os.path.join(os.getcwd(), "a")
    assert fs._strip_protocol(["directfuse:///a", "/b"]) == ["/a", "/b"]
    with pytest.raises(TypeError, match="a path is str"):
        fs._strip_protocol(5)


# ---- what is there -----------------------------------------------------------------------------


def test_info(fs, tree):
    info = fs.info(f"{tree}/one")
    st = directfuse.stat(f"{tree}/one")
    assert (info["size"], info["type"], info["islink"], info["ino"]) == (
        3,
        "file",
        False,
        st.st_ino,
    )
    assert info["mtime"] == st.st_mtime
    assert fs.modified(f"{tree}/one").timestamp() == pytest.approx(st.st_mtime, abs=1e-6)
    assert fs.created(f"{tree}/one").timestamp() == pytest.approx(st.st_ctime, abs=1e-6)
    assert fs.info(tree)["type"] == "directory"
    link = fs.info(f"{tree}/d/link")
    assert (link["type"], link["islink"], link["destination"]) == ("file", True, f"{tree}/d/two")
    assert fs.info(f"{tree}/broken")["type"] == "other" and not fs.exists(f"{tree}/broken")
    assert fs.lexists(f"{tree}/broken") and fs.islink(f"{tree}/broken")


def test_listing(fs, tree):
    assert sorted(fs.ls(tree, detail=False)) == [f"{tree}/{n}" for n in ("broken", "d", "one")]
    assert fs.ls(f"{tree}/one", detail=False) == [f"{tree}/one"]
    assert [one["name"] for one in fs.ls(f"{tree}/one")] == [f"{tree}/one"]
    assert fs.glob(f"{tree}/*/t*") == [f"{tree}/d/two"]
    assert fs.find(f"{tree}/d") == [f"{tree}/d/link", f"{tree}/d/two"]
    assert fs.du(f"{tree}/d") == 6
    with pytest.raises(FileNotFoundError) as caught:
        fs.ls(f"{tree}/none")
    assert caught.value.filename == f"{tree}/none"


def test_links_that_lead_up_are_not_walked_round_and_round(fs, memory):
    fs.makedirs(f"{memory}/a/b")
    fs.mkdir(f"{memory}/beside")
    fs.pipe({f"{memory}/a/b/file": b"1", f"{memory}/beside/other": b"2"})
    for link, target in {"b/up": "..", "b/self": ".", "top": memory, "to": "../beside"}.items():
        directfuse.symlink(target, f"{memory}/a/{link}")
    directfuse.symlink(f"{memory}/a", f"{memory}/beside/back")  # round by way of "to"

    found = fs.find(f"{memory}/a")

    links = ["b/self", "b/up", "to/back", "top"]
    assert found == sorted(f"{memory}/a/{name}" for name in ["b/file", "to/other", *links])
    assert fs.isdir(f"{memory}/a/b/up") and fs.info(f"{memory}/a/to")["type"] == "directory"


def test_the_real_file_system_too(fs, tmp_path):
    (tmp_path / "real").write_bytes(b"real")
    assert fs.cat(str(tmp_path / "real")) == b"real"
    assert fs.size(tmp_path / "real") == 4


# ---- contents ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "hints", [{"cache_type": "none"}, {"default_cache": "none"}, {"cache_options": {"x": 1}}]
)
@pytest.mark.parametrize("protocol", ["file", "directfuse"])
def test_words_about_caches_are_taken(protocol, hints, memory, tmp_path):
    """dask's read_parquet says default_cache where it looks at statistics."""
    root = tmp_path if protocol == "file" else memory
    there = fsspec.filesystem(protocol)
    there.pipe(f"{root}/x", b"data")
    with there.open(f"{root}/x", **hints) as file:
        assert file.read() == b"data"


def test_cat_file_and_ranges(fs, memory):
    path = f"{memory}/f"
    fs.pipe(path, b"0123456789")
    ends = [None, 0, 3, 10, 20, -1, -20]
    for start in ends:
        for end in ends:
            assert fs.cat_file(path, start, end) == b"0123456789"[start:end]
            assert fs.cat_ranges([path], start, end) == [b"0123456789"[start:end]]
    found = fs.cat_ranges([path, f"{memory}/none"], [2, 0], [4, 1])
    assert found[0] == b"23" and isinstance(found[1], FileNotFoundError)
    with pytest.raises(FileNotFoundError):
        fs.cat_ranges([f"{memory}/none"], 0, 1, on_error="raise")


def test_ranges_from_the_end_of_a_file_that_is_not_there(fs, memory):
    path, none = f"{memory}/f", f"{memory}/none"
    fs.pipe(path, b"0123456789")
    found = fs.cat_ranges([none, path, none, path], [-2, -2, 0, 3], [None, None, -1, 5])
    assert [type(one) for one in found] == [FileNotFoundError, bytes, FileNotFoundError, bytes]
    assert (found[1], found[3]) == (b"89", b"34")
    with pytest.raises(FileNotFoundError):
        fs.cat_ranges([path, none], [0, -2], [1, None], on_error="raise")


def test_files_are_files(fs, memory):
    with fs.open(f"{memory}/f", "wb") as file:
        assert file.write(b"a\nb\n") == 4 and file.path == f"{memory}/f"
    with fs.open(f"{memory}/f", "rb") as file:
        assert (file.size, file.full_name) == (4, f"directfuse://{memory}/f")
        assert file.readlines() == [b"a\n", b"b\n"] and file.tell() == 4
    with fs.open(f"{memory}/f", "r+b") as file:
        file.seek(2)
        file.write(b"c")
    with fs.open(f"{memory}/f", "a", encoding="latin-1") as file:
        file.write("ä")
    assert fs.cat(f"{memory}/f") == b"a\nc\n\xe4"
    with pytest.raises(FileExistsError):
        fs.open(f"{memory}/f", "xb")
    with pytest.raises(FileExistsError):
        fs.pipe_file(f"{memory}/f", b"", mode="create")


def test_compression(fs, memory):
    with fs.open(f"{memory}/f.gz", "wb", compression="infer") as file:
        file.write(b"x" * 1000)
    assert fs.size(f"{memory}/f.gz") < 100
    with fs.open(f"{memory}/f.gz", "rb", compression="gzip") as file:
        assert file.read() == b"x" * 1000


def test_transactions(fs, memory):
    fs.pipe(f"{memory}/old", b"old")
    with fs.transaction:
        with fs.open(f"{memory}/new", "wb") as file:
            file.write(b"new")
        with fs.open(f"{memory}/old", "ab") as file:
            file.write(b"er")
        assert not fs.exists(f"{memory}/new") and fs.cat(f"{memory}/old") == b"old"
    assert fs.cat(f"{memory}/new") == b"new" and fs.cat(f"{memory}/old") == b"older"
    with pytest.raises(KeyError):
        with fs.transaction:
            fs.pipe(f"{memory}/never", b"")
            raise KeyError
    assert sorted(fs.ls(memory, detail=False)) == [f"{memory}/new", f"{memory}/old"]


def test_an_error_in_a_transaction_names_the_file(fs, memory):
    with pytest.raises(FileNotFoundError) as caught, fs.transaction:
        fs.open(f"{memory}/missing/f", "wb")
    said = f"[Errno 2] No such file or directory: '{memory}/missing/f'"
    assert (caught.value.filename, str(caught.value)) == (f"{memory}/missing/f", said)
    fs.mkdir(f"{memory}/d")
    with pytest.raises(IsADirectoryError) as caught, fs.transaction:
        fs.open(f"{memory}/d", "wb").write(b"x")
    assert (caught.value.filename, caught.value.filename2) == (f"{memory}/d", None)


def test_an_error_of_opening_a_file_says_what_that_of_io_does(fs, memory):
    with pytest.raises(FileNotFoundError) as caught:
        fs.open(f"{memory}/missing")
    assert str(caught.value) == f"[Errno 2] No such file or directory: '{memory}/missing'"


@pytest.mark.parametrize(
    "name",
    ["é" * 127, "日" * 85, "n" * 255, os.fsdecode(b"\xff" * 255)],
    ids=["two bytes", "three bytes", "ASCII", "no UTF-8"],
)
def test_a_transaction_writes_files_of_the_longest_names(fs, memory, name):
    with fs.transaction:
        fs.pipe(f"{memory}/{name}", b"written")
    assert fs.ls(memory, detail=False) == [f"{memory}/{name}"]


# ---- names that change -------------------------------------------------------------------------


def test_copy_move_remove(fs, tree, tmp_path):
    fs.cp(f"{tree}/one", f"{tree}/copy")
    fs.mv(f"{tree}/copy", f"{tree}/moved")
    assert fs.cat(f"{tree}/moved") == b"one" and not fs.exists(f"{tree}/copy")
    with directfuse.mount(["memfs", tmp_path / "other"]) as other:
        fs.mv(f"{tree}/moved", f"{other.mountpoint}/there")  # rename says EXDEV
        assert fs.cat(f"{other.mountpoint}/there") == b"one" and not fs.exists(f"{tree}/moved")
    with pytest.raises(IsADirectoryError, match="recursive=True"):
        fs.rm(f"{tree}/d")
    fs.rm([f"{tree}/d", f"{tree}/broken"], recursive=True)
    assert fs.ls(tree, detail=False) == [f"{tree}/one"]


@pytest.mark.parametrize("real", ["source", "target"])
def test_what_moves_between_mounts_stays_what_it_is(fs, memory, tmp_path, real):
    there, here = (tmp_path, memory) if real == "source" else (memory, tmp_path)
    fs.makedirs(f"{there}/t/empty")
    fs.pipe(f"{there}/t/private", b"mine")
    for link, target in (("link", "private"), ("of-directory", "empty"), ("broken", "nowhere")):
        directfuse.symlink(target, f"{there}/t/{link}")
    fs.chmod(f"{there}/t/private", 0o600)
    directfuse.utime(f"{there}/t/private", ns=(10**18 + 1, 10**18 + 2))
    fs.chmod(f"{there}/t", 0o711)

    fs.mv(f"{there}/t", f"{here}/moved")

    st = directfuse.stat(f"{here}/moved/private")
    assert (st.st_mode & 0o7777, st.st_mtime_ns) == (0o600, 10**18 + 2)
    assert fs.info(f"{here}/moved")["mode"] & 0o7777 == 0o711
    links = {name: directfuse.readlink(f"{here}/moved/{name}") for name in ("link", "broken")}
    assert links == {"link": "private", "broken": "nowhere"} and fs.isdir(f"{here}/moved/empty")
    assert fs.islink(f"{here}/moved/of-directory") and not fs.lexists(f"{there}/t")


def test_a_link_moves_between_mounts_without_what_it_leads_to(fs, memory, tmp_path):
    (tmp_path / "link").symlink_to(tmp_path)
    fs.mv(f"{tmp_path}/link", f"{memory}/link")
    assert directfuse.readlink(f"{memory}/link") == str(tmp_path) and fs.isdir(tmp_path)


def test_a_directory_does_not_move_into_a_mount_below_it(fs, tmp_path):
    (tmp_path / "d" / "below").mkdir(parents=True)
    with directfuse.mount(["memfs", tmp_path / "d" / "below"]) as below:
        with pytest.raises(OSError, match="Invalid argument"):
            fs.mv(f"{tmp_path}/d", f"{below.mountpoint}/d")
        assert fs.ls(below.mountpoint) == [] and fs.isdir(tmp_path / "d")


def test_what_is_no_file_is_not_copied_to_another_mount(fs, memory, tmp_path):
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(shutil.SpecialFileError):
        fs.mv(f"{tmp_path}/fifo", f"{memory}/fifo")
    assert fs.exists(tmp_path / "fifo") and not fs.exists(f"{memory}/fifo")


def test_directories(fs, memory):
    fs.mkdir(f"{memory}/a/b/c")
    with pytest.raises(FileExistsError):
        fs.mkdir(f"{memory}/a/b/c")
    with pytest.raises(FileNotFoundError):
        fs.mkdir(f"{memory}/x/y", create_parents=False)
    fs.rmdir(f"{memory}/a/b/c")
    with pytest.raises(OSError, match="not empty"):
        fs.rmdir(f"{memory}/a")


# ---- mounts by storage options -----------------------------------------------------------------


def test_a_mount_by_configuration(tmp_path):
    point = tmp_path / "by-options"
    options = {"command": f"memfs {point}"}
    fs = fsspec.filesystem("directfuse", **options)
    try:
        with fsspec.open(f"directfuse://{point}/x", "wb", **options) as file:
            file.write(b"x")
        assert fs.mount.mountpoint == str(point)
        found = []
        thread = threading.Thread(
            target=lambda: found.append(fsspec.filesystem("directfuse", **options))
        )
        thread.start()
        thread.join()
        assert found[0].mount is fs.mount  # instances are kept by thread, the mount is one
        assert pickle.loads(pickle.dumps(fs)).cat(f"{point}/x") == b"x"
        assert fsspec.AbstractFileSystem.from_json(fs.to_json()).cat(f"{point}/x") == b"x"
    finally:
        fs.mount.unmount()
        type(fs).clear_instance_cache()


def test_who_asks_again_for_what_was_unmounted_has_it_mounted(tmp_path):
    """fsspec keeps the instance."""
    options = {"command": ["passthrough", str(tmp_path), "/asked-again"]}
    (tmp_path / "x").write_bytes(b"x")
    first = fsspec.filesystem("directfuse", **options)
    pickled = pickle.dumps(first)
    first.mount.unmount()
    for ask in (
        lambda: fsspec.filesystem("directfuse", **options),
        lambda: fsspec.open("directfuse:///asked-again/x", **options).fs,
        lambda: pickle.loads(pickled),
    ):
        fs = ask()
        assert fs is first and fs.mount.mounted and fs.cat("/asked-again/x") == b"x"
        fs.mount.unmount()
    type(first).clear_instance_cache()


def test_a_mount_that_fails_says_why():
    with pytest.raises(directfuse.MountError, match="neither a built-in file system"):
        fsspec.filesystem("directfuse", command="no-such-file-system /x")
    with pytest.raises(ValueError, match="there is no command"):
        fsspec.filesystem("directfuse", mountpoint="/x")


def test_instances_are_cached(fs):
    assert fsspec.filesystem("directfuse") is fs
    assert fsspec.filesystem("directfuse", auto_mkdir=True) is not fs
    assert pickle.loads(pickle.dumps(fs)) is fs


def test_open_files_are_pickled_by_path(fs, memory):
    fs.pipe(f"{memory}/f", b"0123456789")
    with fs.open(f"{memory}/f") as file:
        file.seek(3)
        with pickle.loads(pickle.dumps(file)) as again:
            assert again.read(2) == b"34"
        assert file.read(2) == b"34"
    with fs.open(f"{memory}/g", "wb") as file, pytest.raises(TypeError, match="close it"):
        pickle.dumps(file)
    opened = fsspec.open(f"directfuse://{memory}/f")
    with pickle.loads(pickle.dumps(opened)) as file:
        assert file.read() == b"0123456789"


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_of_every_kind(image_of, tmp_path, script, method):
    """A worker gets the file system by pickle, and reads; no function prepares it."""
    (tmp_path / "data").mkdir()
    for n in range(20):
        (tmp_path / "data" / str(n)).write_text(str(n))
    image = image_of(tmp_path / "data")
    assert script(
        """
        import multiprocessing, sys
        import fsspec

        def read(work):
            fs, path = work
            return int(fs.cat(path))

        if __name__ == "__main__":
            fs = fsspec.filesystem("directfuse", command=["squashfuse", sys.argv[2], "/data"])
            assert fs.cat("/data/7") == b"7"
            context = multiprocessing.get_context(sys.argv[1])
            with context.Pool(2) as pool:
                print(sum(pool.map(read, [(fs, f"/data/{n}") for n in range(20)])))
        """,
        method,
        image,
    ) == str(sum(range(20)))


def test_a_worker_that_would_find_nothing_says_so(tmp_path, script):
    """memfs has its files in one process: fork copies them, spawn cannot."""
    assert (
        script(
            """
        import multiprocessing, pickle, sys
        import fsspec

        def read(fs):
            return fs.cat("/mem/x").decode()

        if __name__ == "__main__":
            fs = fsspec.filesystem("directfuse", command="memfs /mem")
            fs.pipe("/mem/x", b"copied")
            with multiprocessing.get_context("fork").Pool(1) as pool:
                print(pool.apply(read, [fs]))
            sys.stdout.flush()
            with open("pickled", "wb") as file:
                pickle.dump(fs, file)
        """
        )
        == "copied"
    )
    said = script(
        """
        import pickle
        try:
            pickle.load(open("pickled", "rb"))
        except pickle.UnpicklingError as error:
            print(error)
        """
    )
    assert "memfs keeps its files in the process that mounted it" in said


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_starting_such_a_worker_is_refused(tmp_path, script, method):
    said = script(
        """
        import multiprocessing, sys
        import fsspec

        if __name__ == "__main__":
            fs = fsspec.filesystem("directfuse", command="memfs /mem")
            context = multiprocessing.get_context(sys.argv[1])
            try:
                context.Process(target=print, args=(fs,)).start()
            except TypeError as error:
                print(error)
        """,
        method,
    )
    assert "one made by spawn or forkserver would find it empty" in said


def test_what_cannot_be_mounted_cannot_be_unpickled(image_of, tmp_path):
    (tmp_path / "data").mkdir()
    image = image_of(tmp_path / "data")
    command = ["squashfuse", str(image), str(tmp_path / "gone")]
    fs = fsspec.filesystem("directfuse", command=command)
    data = pickle.dumps(fs)
    fs.mount.unmount()
    type(fs).clear_instance_cache()
    assert pickle.loads(data).mount.mounted  # mounted anew
    directfuse.unmount(tmp_path / "gone")
    type(fs).clear_instance_cache()
    image.unlink()
    with pytest.raises(pickle.UnpicklingError, match="squashfuse"):
        pickle.loads(data)


# ---- layers over it ----------------------------------------------------------------------------


def test_filecache(memory, fs, tmp_path):
    fs.pipe(f"{memory}/f", b"cached")
    options = {"cache_storage": str(tmp_path / "cache")}
    url = f"filecache::directfuse://{memory}/f"
    with fsspec.open(url, filecache=options) as file:
        assert file.read() == b"cached"
    fs.pipe(f"{memory}/f", b"changed")
    with fsspec.open(url, filecache=options) as file:
        assert file.read() == b"cached"
    assert os.path.exists(fsspec.open_local(url, filecache=options))


def test_simplecache(memory, fs, tmp_path):
    fs.pipe(f"{memory}/f", bytes(range(256)) * 100)
    options = {"cache_storage": str(tmp_path / "cache")}
    with fsspec.open(f"simplecache::directfuse://{memory}/f", simplecache=options) as file:
        file.seek(1000)
        assert file.read(3) == bytes([232, 233, 234])


def test_archives_inside_it(memory, fs):
    import zipfile

    with fs.open(f"{memory}/a.zip", "wb") as file, zipfile.ZipFile(file, "w") as archive:
        archive.writestr("inner/x", b"zipped")
    with fsspec.open(f"zip://inner/x::directfuse://{memory}/a.zip") as file:
        assert file.read() == b"zipped"


def test_mapper(memory, fs):
    mapper = fsspec.get_mapper(f"directfuse://{memory}/map", create=True)
    mapper["a/b"] = b"1"
    assert dict(mapper) == {"a/b": b"1"} and fs.cat(f"{memory}/map/a/b") == b"1"


def test_coroutines(memory, fs):
    wrapper = pytest.importorskip("fsspec.implementations.asyn_wrapper")

    async def use():
        wrapped = wrapper.AsyncFileSystemWrapper(fs, asynchronous=True)
        await wrapped._pipe_file(f"{memory}/f", b"async")
        return await asyncio.gather(*(wrapped._cat_file(f"{memory}/f") for _ in range(20)))

    assert asyncio.run(use()) == [b"async"] * 20


def test_the_size_of_a_block_is_any_whole_number(fs, memory):
    """As numpy has them; 0 asks fsspec's http to stream."""

    class Ten:
        def __index__(self):
            return 10

    with fs.open(f"{memory}/f", "wb", block_size=Ten()) as file:
        file.write(b"some words")
    with fs.open(f"{memory}/f", block_size=0) as file:
        assert file.read(4) + file.read() == b"some words"


# ---- bad input ---------------------------------------------------------------------------------


def test_bad_arguments(fs, memory):
    fs.pipe(f"{memory}/f", b"x")
    with pytest.raises(ValueError, match="invalid mode"):
        fs.open(f"{memory}/f", "qb")
    with pytest.raises(ValueError, match="block_size"):
        fs.open(f"{memory}/f", block_size=-1)
    with pytest.raises(TypeError, match="no option cache_tipe"):
        fs.open(f"{memory}/f", cache_tipe="x")
    with pytest.raises(IsADirectoryError):
        fs.open(memory)
    with pytest.raises(TypeError, match="paths is a list"):
        fs.cat_ranges(f"{memory}/f", 0, 1)
    with pytest.raises(ValueError, match="different lengths"):
        fs.cat_ranges([f"{memory}/f"], [0, 1], 1)


def test_the_message_without_fsspec(script):
    said = script(
        """
        import sys
        sys.modules["fsspec"] = None
        sys.modules["upath"] = None
        for name in ("directfuse.filesystem", "directfuse.upath"):
            try:
                __import__(name)
            except ImportError as error:
                print(error)
        """
    )
    assert "pip install fsspec" in said and "pip install universal_pathlib" in said


def test_it_costs_little(memory, fs):
    """At most 10 µs a call over the os-like call; measured 2."""
    import timeit

    fs.pipe(f"{memory}/f", b"x")
    path = f"{memory}/f"
    pairs = [
        (lambda: fs.info(path), lambda: directfuse.stat(path)),
        (lambda: fs.open(path).close(), lambda: directfuse.open(path, "rb").close()),
        (lambda: fs.cat_file(path), lambda: directfuse.read_many([path])),
        (lambda: fs.exists(path), lambda: directfuse.path.exists(path)),
    ]
    for ours, like_os in pairs:
        costs = [min(timeit.repeat(call, number=200, repeat=20)) / 200 for call in (ours, like_os)]
        assert costs[0] - costs[1] < 10e-6


# ---- universal_pathlib -------------------------------------------------------------------------


def test_upath(memory, tmp_path):
    upath = pytest.importorskip("upath", reason="universal_pathlib is not installed")
    top = upath.UPath(f"directfuse://{memory}")
    assert type(top).__name__ == "DirectFusePath"
    (top / "d").mkdir()
    (top / "d" / "x.txt").write_text("text")
    assert (top / "d" / "x.txt").read_bytes() == b"text"
    assert [str(one) for one in top.rglob("*.txt")] == [f"directfuse://{memory}/d/x.txt"]
    assert (top / "d").is_dir() and (top / "d" / "x.txt").stat().st_size == 4
    assert (top / "d" / "x.txt").parent == top / "d" and (top / "d" / "x.txt").suffix == ".txt"
    (top / "d" / "x.txt").rename(top / "d" / "y.txt")
    assert [one.name for one in (top / "d").iterdir()] == ["y.txt"]
    assert pickle.loads(pickle.dumps(top / "d")) == top / "d"
    (top / "d" / "y.txt").unlink()
    (top / "d").rmdir()
    assert list(top.iterdir()) == []
    other = upath.UPath("/data", protocol="directfuse", command=f"memfs {tmp_path}/upath")
    assert other.fs.mount.mounted
    other.fs.mount.unmount()
    type(other.fs).clear_instance_cache()
