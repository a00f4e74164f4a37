"""Programs of a run that write into the memory of the mount server what no client of ours does:
programs under another user id have it, too."""

import errno
import subprocess
import sys
from pathlib import Path

import needs
import pytest

from .built import compiled

pytestmark = needs.run

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def scribbler(tmp_path_factory):
    headers = [f"-I{ROOT}/native", f"-I{ROOT}/native/include"]
    return compiled("scribbler", tmp_path_factory, "-D_GNU_SOURCE", *headers)


@pytest.mark.parametrize("backend", ["memfs", "passthrough"])
def test_what_the_kernel_would_not_ask_is_refused(backend, scribbler, tmp_path):
    point, source = tmp_path / "mnt", tmp_path / "source"
    source.mkdir()
    words = [backend, *([str(source)] if backend == "passthrough" else []), str(point)]
    run = [sys.executable, "-m", "directfuse", "run", "-m", " ".join(words), "--"]
    done = subprocess.run([*run, scribbler, point], capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines() == [
        f"mknod {-errno.EINVAL}",
        f"link {-errno.EPROTO}",
        f"readdir {-errno.ENOTDIR}",
        f"read {-errno.EBADF}",
        "serves 1",
    ]
