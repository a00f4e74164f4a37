"""`directfuse tour`: the main job, small."""

import json
import os

import pytest


@pytest.fixture
def tree(tmp_path):
    """A small tree with what trees have: depth, links, modes, odd names, something special."""
    root = tmp_path / os.fsdecode(b"tree \xff")
    (root / "a/b/c").mkdir(parents=True)
    (root / "a/b/c/deep").write_bytes(b"x" * 100_000)
    (root / "empty").touch()
    (root / "ümläut \n").write_text("odd name")
    os.symlink("a/b", root / "link")
    os.symlink("/nowhere", root / "dangling")
    (root / "script").write_text("#!/bin/sh\n")
    (root / "script").chmod(0o751)
    os.mkfifo(root / "fifo")
    return root


def test_tour_brings_everything_back(run, tree):
    strict = os.environ | {"PYTHONIOENCODING": "utf-8:strict"}  # as in most languages' locales
    done = run("tour", "--no-kernel", "--json", tree, env=strict, errors="surrogateescape")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["source"] == str(tree)
    assert (report["files"], report["directories"], report["links"]) == (4, 3, 2)
    assert report["bytes"] == 100_000 + len("odd name") + len("#!/bin/sh\n")
    assert report["left_out"] == ["fifo"]
    assert set(report["ns"]) >= {"inline"}
    assert all(time > 0 for time in report["ns"]["inline"].values())


@pytest.mark.kernel_fuse
def test_tour_compares_with_the_kernel(run, kernel, tree):
    done = run("tour", tree, errors="surrogateescape")
    assert done.returncode == 0, done.stderr
    assert "equal." in done.stdout
    header = done.stdout.splitlines()[-6].split("\t")
    assert "kernel FUSE" in header


def test_tour_of_too_much(run, tmp_path):
    with open(tmp_path / "sparse", "wb") as file:
        file.truncate(1 << 40)  # it is not read first
    done = run("tour", "--limit", "1", tmp_path)
    assert done.returncode == 125
    assert "--limit" in done.stderr


def test_tour_of_nothing(run):
    done = run("tour", "missing")
    assert done.returncode == 125
    assert "missing" in done.stderr
