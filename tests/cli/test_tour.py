"""`directfuse tour`: the main job, small."""

import errno
import json
import os

import pytest

from directfuse._cli import tour


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


def test_tour_of_files_that_hold_more_than_they_say(run):
    """The pagemap of /proc is of no size, and of many gigabytes; its clear_refs is only written."""
    done = run("tour", "--no-kernel", "--limit", "1", "/proc/self")
    assert done.returncode == 125
    assert "holds more than 1 MiB" in done.stderr and "--limit" in done.stderr


def test_tour_leaves_out_what_cannot_be_read(tree, monkeypatch):
    contents = tour._contents

    def failing(path, most):
        if path.endswith("script"):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), path)
        return contents(path, most)

    monkeypatch.setattr(tour, "_contents", failing)
    found = tour.load(str(tree), 1 << 20)
    assert sorted(found.left_out) == ["fifo", "script"]
    assert "script" not in found.files and "a/b/c/deep" in found.files


def test_tour_waits_for_no_file_that_has_nothing_yet(tmp_path):
    """As trace_pipe of /sys, a regular file; a FIFO with a writer is like it."""
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    writer = os.open(tmp_path / "pipe", os.O_WRONLY)
    try:
        with pytest.raises(BlockingIOError):
            tour._contents(str(tmp_path / "pipe"), 1)
    finally:
        os.close(writer)
        os.close(reader)


def test_tour_of_nothing(run):
    done = run("tour", "missing")
    assert done.returncode == 125
    assert "missing" in done.stderr
