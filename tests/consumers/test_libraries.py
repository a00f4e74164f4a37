"""Libraries read what a memfs and a squashfs image hold, and write to the memfs."""

import io
import subprocess
import sys
import tarfile
import zipfile

import pytest

import directfuse

REASON = "{} is not installed (pip install directfuse[consumers])"


def need(name):
    return pytest.importorskip(name, reason=REASON.format(name.partition(".")[0]))


@pytest.fixture
def source(tmp_path):
    directory = tmp_path / "source"
    directory.mkdir()
    return directory


@pytest.fixture
def table():
    pandas = need("pandas")
    return pandas.DataFrame({"a": range(1000), "b": [f"row {n}" for n in range(1000)]})


# ---- reading -----------------------------------------------------------------------------------


def test_pandas(source, published, table):
    need("fsspec")
    pandas = need("pandas")
    table.to_csv(source / "t.csv", index=False)
    root = published(source)
    assert pandas.read_csv(f"directfuse://{root}/t.csv").equals(table)
    with directfuse.open(f"{root}/t.csv", "rb") as file:
        assert pandas.read_csv(file).equals(table)
    with directfuse.patch():
        assert pandas.read_csv(f"{root}/t.csv").equals(table)


def test_parquet(source, published, table):
    need("fsspec")
    pandas, parquet = need("pandas"), need("pyarrow.parquet")
    table.to_parquet(source / "t.parquet", row_group_size=100)
    root = published(source)
    assert pandas.read_parquet(f"directfuse://{root}/t.parquet").equals(table)
    with directfuse.open(f"{root}/t.parquet", "rb") as file:
        opened = parquet.ParquetFile(file)
        assert opened.num_row_groups == 10
        assert opened.read_row_group(3, columns=["a"]).column("a")[0].as_py() == 300


def test_pyarrow_dataset(source, published, table):
    fsspec, dataset, arrow = need("fsspec"), need("pyarrow.dataset"), need("pyarrow")
    dataset.write_dataset(
        arrow.Table.from_pandas(table.assign(half=table.a // 500)),
        source / "set",
        format="parquet",
        partitioning=["half"],
    )
    root = published(source)
    found = dataset.dataset(
        f"{root}/set", filesystem=fsspec.filesystem("directfuse"), partitioning=["half"]
    )
    assert len(found.files) == 2 and found.count_rows() == 1000
    rows = found.to_table(filter=dataset.field("half") == 1, columns=["a"])
    assert sorted(rows.column("a").to_pylist()) == list(range(500, 1000))


def test_h5py(source, published):
    h5py, numpy = need("h5py"), need("numpy")
    with h5py.File(source / "x.h5", "w") as file:
        file.create_dataset("grid", data=numpy.arange(10000).reshape(100, 100), chunks=(10, 10))
    root = published(source)
    with directfuse.open(f"{root}/x.h5", "rb") as opened, h5py.File(opened, "r") as file:
        assert file["grid"][50, 20:23].tolist() == [5020, 5021, 5022]


def test_zarr(source, published):
    need("fsspec")
    zarr, numpy = need("zarr"), need("numpy")
    array = zarr.create_array(
        store=str(source / "x.zarr"), shape=(100, 100), chunks=(10, 100), dtype="int32"
    )
    array[:] = numpy.arange(10000).reshape(100, 100)
    root = published(source)
    store = zarr.storage.FsspecStore.from_url(f"directfuse://{root}/x.zarr", read_only=True)
    assert zarr.open_array(store=store, mode="r")[99, 98:].tolist() == [9998, 9999]


def test_numpy(source, published):
    numpy = need("numpy")
    numpy.save(source / "x.npy", numpy.arange(1000))
    numpy.savez(source / "x.npz", a=numpy.ones(3))
    numpy.savetxt(source / "x.txt", [1, 2])
    root = published(source)
    with directfuse.open(f"{root}/x.npy", "rb") as file:
        assert numpy.load(file).sum() == 499500
    with directfuse.open(f"{root}/x.npz", "rb") as file, numpy.load(file) as arrays:
        assert arrays["a"].tolist() == [1, 1, 1]
    with directfuse.patch():
        assert numpy.load(f"{root}/x.npy").sum() == 499500
        assert numpy.loadtxt(f"{root}/x.txt").tolist() == [1, 2]
        assert numpy.genfromtxt(f"{root}/x.txt").tolist() == [1, 2]
    view = directfuse.borrow(fd := directfuse.os_open(f"{root}/x.npy", 0))
    assert numpy.frombuffer(view, dtype="int64", offset=128).sum() == 499500
    del view
    directfuse.close(fd)


def test_numpy_memmap_needs_a_real_descriptor(source, published, tmp_path):
    numpy = need("numpy")
    numpy.save(source / "x.npy", numpy.arange(1000))
    root = published(source)
    for call in (
        lambda: numpy.load(f"{root}/x.npy", mmap_mode="r"),
        lambda: numpy.memmap(f"{root}/x.npy", dtype="int64", mode="r"),
    ):
        with directfuse.patch(), pytest.raises(io.UnsupportedOperation, match="fileno"):
            call()
    real = directfuse.open(source / "x.npy", "rb")  # through the same name: a real file has one
    assert numpy.memmap(real, dtype="int64", mode="r", offset=128).sum() == 499500
    real.close()
    assert numpy.load(io.BytesIO(directfuse.read_many([f"{root}/x.npy"])[0]))[1] == 1


INTERPOSED = """
import numpy, sqlite3, sys
top = sys.argv[1]
written = numpy.memmap(f"{top}/x", "int64", "w+", shape=(1000,))
written[:] = range(1000)
written.flush()
numpy.save(f"{top}/y.npy", written)
print(numpy.memmap(f"{top}/x", "int64", "r").sum(), numpy.load(f"{top}/y.npy", mmap_mode="r")[999])
base = sqlite3.connect(f"{top}/base")
base.execute("create table t(a)")
base.execute("insert into t values (7)")
base.commit()
print(*sqlite3.connect(f"{top}/base").execute("select a from t"))
"""


def test_numpy_memmap_and_sqlite3_under_interposition():
    """Descriptors are real there: what maps memory and locks ranges works."""
    need("numpy")
    words = [sys.executable, "-m", "directfuse", "run", "-m", "memfs /interposed", "--"]
    done = subprocess.run(
        [*words, sys.executable, "-c", INTERPOSED, "/interposed"],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert (done.stdout, done.returncode) == ("499500 999\n(7,)\n", 0), done.stderr


def test_pil(source, published):
    image = need("PIL.Image")
    picture = image.new("RGB", (32, 32), "red")
    picture.putpixel((3, 4), (0, 255, 0))
    picture.save(source / "x.png")
    root = published(source)
    with directfuse.open(f"{root}/x.png", "rb") as file, image.open(file) as found:
        assert found.getpixel((3, 4)) == (0, 255, 0)
    with directfuse.patch(), image.open(f"{root}/x.png") as found:
        assert found.size == (32, 32)


def test_archives(source, published):
    with zipfile.ZipFile(source / "x.zip", "w") as archive:
        archive.writestr("inner", b"zip")
    with tarfile.open(source / "x.tar", "w") as archive:
        archive.add(source / "x.zip", "x.zip")
    root = published(source)
    with directfuse.open(f"{root}/x.zip", "rb") as file, zipfile.ZipFile(file) as archive:
        assert archive.read("inner") == b"zip"
    with directfuse.open(f"{root}/x.tar", "rb") as file, tarfile.open(fileobj=file) as archive:
        assert archive.getnames() == ["x.zip"]


# ---- writing -----------------------------------------------------------------------------------


def test_pandas_writes(memory, table):
    need("fsspec")
    pandas = need("pandas")
    need("pyarrow")
    table.to_parquet(f"directfuse://{memory}/t.parquet")
    assert pandas.read_parquet(f"directfuse://{memory}/t.parquet").equals(table)
    table.to_csv(f"directfuse://{memory}/t.csv.gz", index=False)
    assert pandas.read_csv(f"directfuse://{memory}/t.csv.gz").equals(table)


def test_pyarrow_writes(memory, table):
    fsspec, dataset, arrow = need("fsspec"), need("pyarrow.dataset"), need("pyarrow")
    fs = fsspec.filesystem("directfuse")
    dataset.write_dataset(
        arrow.Table.from_pandas(table), f"{memory}/set", format="parquet", filesystem=fs
    )
    assert dataset.dataset(f"{memory}/set", filesystem=fs).count_rows() == 1000


def test_h5py_writes(memory):
    h5py, numpy = need("h5py"), need("numpy")
    with directfuse.open(f"{memory}/x.h5", "w+b") as opened, h5py.File(opened, "w") as file:
        file["grid"] = numpy.arange(100)
        file["grid"][3] = -1
    with directfuse.open(f"{memory}/x.h5", "rb") as opened, h5py.File(opened, "r") as file:
        assert file["grid"][2:5].tolist() == [2, -1, 4]


def test_zarr_writes(memory):
    need("fsspec")
    zarr = need("zarr")
    store = zarr.storage.FsspecStore.from_url(
        f"directfuse://{memory}/x.zarr", storage_options={"auto_mkdir": True}
    )
    array = zarr.create_array(store=store, shape=(10,), chunks=(5,), dtype="int32")
    array[3] = 7
    assert zarr.open_array(store=store, mode="r")[2:5].tolist() == [0, 7, 0]


def test_numpy_writes(memory):
    numpy = need("numpy")
    with directfuse.open(f"{memory}/x.npy", "wb") as file:
        numpy.save(file, numpy.arange(5))
    with directfuse.patch():
        numpy.savez(f"{memory}/x.npz", a=numpy.zeros(2))
        assert numpy.load(f"{memory}/x.npy").tolist() == [0, 1, 2, 3, 4]
        assert numpy.load(f"{memory}/x.npz")["a"].tolist() == [0, 0]


def test_pil_writes(memory):
    image = need("PIL.Image")
    with directfuse.open(f"{memory}/x.jpg", "wb") as file:
        image.new("L", (8, 8), 200).save(file, "JPEG")
    with directfuse.patch():
        image.open(f"{memory}/x.jpg").rotate(90).save(f"{memory}/y.png")
        assert image.open(f"{memory}/y.png").getpixel((0, 0)) == 200
