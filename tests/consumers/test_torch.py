"""torch's DataLoader over an image, with workers of every kind and no worker_init_fn.

torch from PyPI weighs gigabytes; Debian's python3-torch will do, and is found where apt puts it.
"""

import glob
import importlib.util
import os
import subprocess
import sys

import pytest

pytest.importorskip("fsspec", reason="fsspec is not installed (pip install directfuse[consumers])")

EXAMPLE = os.path.join(os.path.dirname(__file__), "..", "..", "examples", "torch_loop.py")
DEBIAN = "/usr/lib/python3/dist-packages"


@pytest.fixture
def environment(tmp_path):
    """In which a new interpreter finds torch."""
    if importlib.util.find_spec("torch"):
        return {}
    version = f"{sys.version_info.major}{sys.version_info.minor}"
    if not glob.glob(f"{DEBIAN}/torch/_C.cpython-{version}-*.so"):
        pytest.skip("torch is not installed (pip install torch, or Debian's python3-torch)")
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(f"import sys; sys.path.append({DEBIAN!r})\n")
    return {"PYTHONPATH": str(site)}


@pytest.fixture
def example(environment):
    """example(*options): what it prints."""

    def run(*options):
        done = subprocess.run(
            [sys.executable, EXAMPLE, *options],
            capture_output=True,
            text=True,
            timeout=50,
            env=os.environ | environment,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers(image_of, example, method):
    said = example("--method", method, "--samples", "500", "--epochs", "1")
    assert "trained on 500 samples of one image" in said


def test_without_workers(image_of, example):
    said = example("--workers", "0", "--samples", "200", "--epochs", "1")
    assert "trained on 200 samples of one image" in said


def test_memfs_in_forked_workers(script, environment):
    """They have its files as they were when the workers were made."""
    assert script(
        """
        import directfuse
        import torch.utils.data

        class Files(torch.utils.data.Dataset):
            def __len__(self):
                return 20
            def __getitem__(self, index):
                return int(directfuse.read_many([f"/mem/{index}"])[0])

        with directfuse.mount("memfs /mem"):
            for n in range(20):
                with directfuse.open(f"/mem/{n}", "w") as file:
                    file.write(str(n))
            loader = torch.utils.data.DataLoader(
                Files(), batch_size=5, num_workers=2, multiprocessing_context="fork"
            )
            print(sum(int(batch.sum()) for batch in loader))
        """,
        environment=environment,
    ).endswith("190")


def test_the_example_says_what_is_missing(script):
    said = script(
        """
        import runpy, sys
        sys.modules["torch"] = None
        try:
            runpy.run_path(sys.argv[1], run_name="__main__")
        except SystemExit as end:
            print(end)
        """,
        EXAMPLE,
    )
    assert "needs what is missing here: torch (pip install torch" in said
