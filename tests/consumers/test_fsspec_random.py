"""Random calls on mounts of fsspec file systems do what they do on a real directory."""

import errno
import os
import random
import uuid

import pytest

pytest.importorskip("fsspec", reason="fsspec is not installed (pip install directfuse[consumers])")

import directfuse
from directfuse.backends.fsspec import FsspecOperations

from .counting import Counting

NAMES = "abcd"


@pytest.fixture(params=["memory", "counting", "file"])
def shown(request, tmp_path):
    """The root of a mount of an empty directory."""
    if request.param == "counting":
        store = Counting()
        store.objects.clear()
        mounting = directfuse.mount(FsspecOperations(store, "bucket"), tmp_path / "m")
    else:
        name = uuid.uuid4().hex if request.param == "memory" else f"{tmp_path}/source"
        mounting = directfuse.mount(f"fsspec {request.param}://{name} {tmp_path}/m -o create")
    with mounting as mount:
        yield mount.mountpoint


# ---- what is done, in either world -------------------------------------------------------------


def write(path, mode, data):
    with directfuse.open(path, mode) as file:
        file.write(data)


def write_inside(path, offset, data):
    with directfuse.open(path, "r+b") as file:
        file.seek(offset)
        file.write(data)


def read(path):
    with directfuse.open(path, "rb") as file:
        return file.read()


def look(path):
    st = directfuse.stat(path)
    regular = directfuse.path.isfile(path)
    return regular, st.st_size if regular else None


def calls(chance):
    """A call, and its arguments behind the path."""
    size = chance.randint(0, 20)
    return chance.choice(
        [
            (write, chance.choice(["wb", "ab", "xb"]), chance.randbytes(size)),
            (write_inside, chance.randint(0, 30), chance.randbytes(5)),
            (read,),
            (look,),
            (lambda path: sorted(directfuse.listdir(path)),),
            (directfuse.mkdir,),
            (directfuse.rmdir,),
            (directfuse.unlink,),
            (directfuse.truncate, chance.randint(0, 30)),
            (directfuse.rename, "target"),
        ]
    )


def outcome(call, *arguments):
    try:
        return call(*arguments)
    except OSError as error:
        return errno.errorcode[error.errno]


def compare(shown, real, seed, steps):
    chance = random.Random(seed)

    def name():
        return "/".join(chance.choice(NAMES) for _ in range(chance.randint(1, 3)))

    for step in range(steps):
        (call, *rest), first, second = calls(chance), name(), name()
        found = [
            outcome(
                call, f"{root}/{first}", *(f"{root}/{second}" if a == "target" else a for a in rest)
            )
            for root in (shown, real)
        ]
        assert found[0] == found[1], (seed, step, call, first, rest, second)
    tree = [
        [
            (os.path.relpath(directory, root), sorted(below), sorted(files))
            for directory, below, files in sorted(directfuse.walk(root))
        ]
        for root in (shown, real)
    ]
    assert tree[0] == tree[1]


@pytest.mark.parametrize("seed", range(2))
def test_as_on_a_directory(shown, tmp_path, seed):
    (tmp_path / "real").mkdir()
    compare(shown, tmp_path / "real", seed, 600)


@pytest.mark.sweep
@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", range(100, 110))
def test_as_on_a_directory_for_long(shown, tmp_path, seed):
    (tmp_path / "real").mkdir()
    compare(shown, tmp_path / "real", seed, 4000)
