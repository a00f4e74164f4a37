"""Names of more than NAME_MAX bytes, which Linux leaves to a FUSE file system: a kernel mount of
sources/long_names.c says what is right, here and for programs under `directfuse run`."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import directfuse

from .test_every_api import compiled, through_kernel

__all__ = ["compiled"]

LENGTHS = [255, 256, 300, 1023, 1024, 1025, 4000]


def code(call, *words):
    try:
        return call(*words)
    except OSError as error:
        return errno.errorcode[error.errno]


def lengths(fs, path):
    return sorted(len(name) for name in fs.listdir(path))


def answers(fs, root):
    """Whatever can be done to a name, of names of all lengths; twice, so that caches answer too."""
    seen = [code(fs.stat, f"{root}/{'n' * length}") for length in (*LENGTHS, 4095, 4096)]
    for length in LENGTHS:
        fs.mknod(f"{root}/{'n' * length}")
    directory = f"{root}/{'d' * 600}"
    fs.mkdir(directory)
    fs.mknod(f"{directory}/{'e' * 700}")
    for _ in range(2):
        seen += [lengths(fs, root), lengths(fs, directory)]
        seen += [fs.stat(f"{root}/{'n' * length}").st_size for length in LENGTHS]
        seen += [code(fs.stat, f"{directory}/{name * 700}") is not None for name in "ex"]
    fs.rename(f"{root}/{'n' * 4000}", f"{directory}/{'m' * 2000}")
    fs.rename(f"{directory}/{'e' * 700}", f"{root}/short")
    seen += [lengths(fs, root), lengths(fs, directory)]
    seen.append(code(fs.unlink, f"{directory}/{'m' * 2001}"))
    fs.unlink(f"{directory}/{'m' * 2000}")
    fs.rmdir(directory)
    for length in LENGTHS[:-1]:
        fs.unlink(f"{root}/{'n' * length}")
    return [*seen, lengths(fs, root)]


@pytest.fixture(scope="module", params=["high-level", "low-level"])
def program(compiled, request):
    return compiled("long_names", 31, "fuse3", *(["LOW"] if request.param == "low-level" else []))


@pytest.fixture(scope="module")
def of_the_kernel(program, tmp_path_factory):
    root = str(tmp_path_factory.mktemp("kernel") / "m")
    with through_kernel([program, "-f"], root):
        return answers(os, root)


@pytest.mark.parametrize("placement", ["inline", "server", "helper"])
def test_long_names(program, of_the_kernel, tmp_path, placement):
    root = str(tmp_path / "m")
    with directfuse.mount([program, root], placement=placement) as mount:
        assert answers(directfuse, root) == of_the_kernel
        assert mount.stats().calls > 0


def test_long_names_of_programs(program, of_the_kernel):
    script = (
        f"import json, os, sys; sys.path.insert(0, {str(Path(__file__).parents[1])!r});"
        "from programs.test_long_names import answers; print(json.dumps(answers(os, '/long')))"
    )
    run = ["run", "-m", f"{program} /long", "--", sys.executable, "-c", script]
    ran = subprocess.run([sys.executable, "-m", "directfuse", *run], capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert json.loads(ran.stdout) == of_the_kernel
