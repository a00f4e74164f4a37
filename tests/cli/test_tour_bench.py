"""`directfuse tour` and `directfuse bench`: the main job, small."""

import json
import os

import pytest


@pytest.fixture
def tree(tmp_path):
    """A small tree with what trees have: depth, links, modes, odd names, something special."""
    root = tmp_path / "tree"
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
    done = run("tour", "--no-kernel", "--json", tree)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["files"], report["directories"], report["links"]) == (4, 3, 2)
    assert report["bytes"] == 100_000 + len("odd name") + len("#!/bin/sh\n")
    assert report["left_out"] == ["fifo"]
    assert set(report["ns"]) >= {"inline"}
    assert all(time > 0 for time in report["ns"]["inline"].values())


@pytest.mark.kernel_fuse
def test_tour_compares_with_the_kernel(run, kernel, tree):
    done = run("tour", tree)
    assert done.returncode == 0, done.stderr
    assert "equal." in done.stdout
    header = done.stdout.splitlines()[-6].split("\t")
    assert "kernel FUSE" in header


def test_tour_of_too_much(run, tmp_path):
    with open(tmp_path / "sparse", "wb") as file:
        file.truncate(2 << 20)
    done = run("tour", "--limit", "1", tmp_path)
    assert done.returncode == 125
    assert "--limit" in done.stderr


def test_tour_of_nothing(run):
    done = run("tour", "missing")
    assert done.returncode == 125
    assert "missing" in done.stderr


@pytest.mark.timeout(120)
@pytest.mark.kernel_fuse
def test_bench_times_every_operation_on_every_route(run, kernel):
    done = run("bench", "--quick", "--json", "--budget", "5", timeout=110)
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)
    always = {"plain directory", "kernel FUSE", "kernel FUSE cached", "inline", "helper"}
    for subject in results["subjects"]:
        routes = set(subject["proof"])
        assert routes >= always, results["notes"]
        for name in set(results["routes"]) - routes:
            assert any(f"{subject['name']}, {name}: left out" in note for note in results["notes"])
        assert len(subject["rows"]) == 16
        for row in subject["rows"]:
            assert set(row["routes"]) | set(row["left_out"]) == routes
            assert {"plain directory", "kernel FUSE", "inline"} <= set(row["routes"]), row
            for found in row["routes"].values():
                assert 0 < found["p10"] <= found["median"]
            for middle, *ends in row["ratios"].values():
                assert ends[0] <= middle <= ends[1]
    assert {subject["name"] for subject in results["subjects"]} == {"memfs", "passthrough"}
    assert {row["op"] for row in results["python"]} >= {"stat", "pread 4 KiB"}


def test_bench_of_one_workload_with_two_threads(run):
    done = run(
        "bench",
        "--no-kernel",
        "--backend=memfs",
        "--only=stat*",
        "--threads=1,2",
        "--no-python",
        "--budget=1",
        "--json",
    )
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["subjects"][0]["rows"]
    assert [(row["op"], row["threads"]) for row in rows] == [
        ("stat, depth 2", 1),
        ("stat, depth 2", 2),
        ("stat, depth 4", 1),
        ("stat, depth 4", 2),
    ]


def test_bench_reads_a_file_system_of_the_users(run, tree):
    point = tree.parent / "nowhere"
    done = run("bench", f"passthrough '{tree}' {point}", "--no-kernel", "--budget=1", "--json")
    assert done.returncode == 0, done.stderr
    before = sorted(os.listdir(tree))
    subject = json.loads(done.stdout)["subjects"][0]
    ops = [row["op"] for row in subject["rows"]]
    assert "stat, depth 2" in ops and "create+unlink" not in ops
    assert subject["site"]["deep"].endswith("a/b/c/deep")
    assert sorted(os.listdir(tree)) == before


def test_bench_report_and_comparison(run, tmp_path):
    words = ("bench", "--no-kernel", "--backend=memfs", "--only=fstat", "--no-python", "--budget=1")
    done = run(*words, "--report", tmp_path / "r")
    assert done.returncode == 0, done.stderr
    assert "| fstat |" in (tmp_path / "r/report.md").read_text()
    assert "<td>fstat</td>" in (tmp_path / "r/report.html").read_text()
    old = json.loads((tmp_path / "r/results.json").read_text())
    for middle in old["subjects"][0]["rows"][0]["ratios"].values():
        middle[:] = [1e6, 9e5, 2e6]  # no machine is that much slower than ours
    (tmp_path / "old.json").write_text(json.dumps(old))
    done = run(*words, "--compare", tmp_path / "old.json")
    assert done.returncode == 1
    assert "worse" in done.stdout


@pytest.mark.timeout(120)
def test_bench_of_programs(run):
    done = run(
        "bench",
        "--backend=memfs",
        "--only=fstat",
        "--no-kernel",
        "--no-python",
        "--programs",
        "--budget=4",
        "--json",
        timeout=110,
    )
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)
    assert results["programs"]["memfs"], results["notes"]
    for row in results["programs"]["memfs"]:
        assert all(seconds > 0 for seconds in row["seconds"].values())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--backend", "nonesuch"], "nonesuch"),
        (["--only", "nonesuch"], "nonesuch"),
        (["--threads", "many"], "many"),
        (["nonesuch /m"], "nonesuch"),
    ],
)
def test_bench_of_what_is_not_there(run, arguments, words):
    done = run("bench", *arguments)
    assert done.returncode == 125
    assert words in done.stderr


def test_bench_compared_with_what_are_no_results(run, tree):
    done = run("bench", "--compare", tree / "script")
    assert done.returncode == 125
    assert "not results" in done.stderr
