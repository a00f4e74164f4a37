"""`directfuse bench`: what it measures, small."""

import errno
import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from directfuse._bench import machine, python_worker
from directfuse._bench.worker import Worker
from directfuse._bench.workload_sets import chosen
from directfuse._paths import bench_helper, plugin, program

#: A row ends when it has 25 rounds, so that a budget is for busy machines and not waited for.
QUICK = ("bench", "--quick")
#: One workload on one file system, without what takes time.
SMALL = (*QUICK, "--backend=memfs", "--only=fstat", "--no-python", "--json")


def results_of(done, status=0):
    assert done.returncode == status, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def tree(tmp_path):
    root = tmp_path / "tree"
    (root / "a/b/c").mkdir(parents=True)
    (root / "a/b/c/deep").write_bytes(b"x" * 100_000)
    (root / "short").write_bytes(b"y" * 5000)
    return root


#: One workload of each kind: on names, on an open file, in a directory, with data either way.
KINDS = [
    "stat, depth 2",
    "fstat",
    "create+unlink",
    "readdir of 1000",
    "pread 4 KiB, random",
    "pwrite 4 KiB, random",
]


#: All of them, and seconds that they may take on a busy machine: 30 on one that is quiet.
ALL = pytest.param(["micro"], 500, marks=pytest.mark.sweep)


@pytest.mark.timeout(570)
@pytest.mark.kernel_fuse
@pytest.mark.parametrize(("patterns", "budget"), [(KINDS, 60), ALL], ids=["kinds", "all"])
def test_every_operation_on_every_route(run, kernel, patterns, budget):
    only = [f"--only={pattern}" for pattern in patterns]
    results = results_of(run(*QUICK, "--json", f"--budget={budget}", *only, timeout=budget + 50))
    always = {"plain directory", "kernel FUSE", "kernel FUSE cached", "inline", "inline, Python"}
    always |= {"server", "helper", "run"}
    ops = chosen(patterns)
    for subject in results["subjects"]:
        routes = set(subject["proof"])
        assert routes >= always, results["notes"]
        for name in set(results["routes"]) - routes:
            assert any(f"{subject['name']}, {name}: left out" in note for note in results["notes"])
        assert set(subject["memory_kib"]) == routes
        assert [row["op"] for row in subject["rows"]] == ops
        for row in subject["rows"]:
            assert set(row["routes"]) | set(row["left_out"]) == routes
            assert {"plain directory", "kernel FUSE", "inline"} <= set(row["routes"]), row
            for found in row["routes"].values():
                assert 0 < found["p10"] <= found["median"]
            for middle, *ends in row["ratios"].values():
                assert ends[0] <= middle <= ends[1]
            assert row["routes"]["kernel FUSE"]["daemon_cpu_ns"] > 0
    assert {subject["name"] for subject in results["subjects"]} == {"memfs", "passthrough"}
    assert {row["op"] for row in results["python"]} >= {"stat", "pread 4 KiB"}


def test_threads_and_processes_at_once(run):
    """What is named twice is measured once."""
    done = run(
        *(
            *QUICK,
            "--backend=memfs",
            "--no-kernel",
            "--backend=memfs",
            "--only=stat*",
            "--no-python",
            "--json",
        ),
        *("--threads=1,2,1", "--processes=2", "--budget=5", "--route=server", "--route=run"),
    )
    rows = results_of(done)["subjects"][0]["rows"]
    assert [(row["op"], row["lanes"]) for row in rows] == [
        (op, lanes) for op in ("stat, depth 2", "stat, depth 4") for lanes in ("1", "2", "2p")
    ]
    assert all(set(row["routes"]) == {"server", "run"} for row in rows)


def test_a_storm_of_metadata(run):
    words = (*QUICK, "--no-kernel", "--backend=memfs", "--only=storm", "--processes=2", "--json")
    results = results_of(run(*words, "--no-python", "--budget=8", "--route=server"))
    rows = results["subjects"][0]["rows"]
    assert {row["lanes"] for row in rows} == {"1", "2p"}
    assert len(rows) == 10, results["notes"]


def test_a_backend_with_mount_options_of_its_own(run):
    """Which reach it: memfs refuses what it does not know."""
    words = (*QUICK, "--no-kernel", "--only=pwrite 4 KiB, random", "--no-python", "--json")
    given = ("--backend=memfs:writeback_cache", "--backend=memfs:nonsense")
    results = results_of(run(*words, *given, "--budget=3", "--route=server"), status=125)
    gathered, refused = results["subjects"]
    assert [subject["name"] for subject in (gathered, refused)] == [
        "memfs:writeback_cache",
        "memfs:nonsense",
    ]
    assert gathered["rows"] and not refused["rows"]
    assert any("nonsense" in note for note in results["notes"])


def test_helper_serves_one_process(run):
    """Which is said in words, not by the errno of its calls."""
    words = ("--no-kernel", "--backend=memfs", "--only=stat, depth 2", "--budget=8", "--json")
    done = run(*QUICK, "--no-python", *words, "--processes=2", "--route=helper", "--route=server")
    assert done.returncode == 0, done.stderr
    (note,) = [note for note in json.loads(done.stdout)["notes"] if "helper: left out" in note]
    assert "no connection to its parent's helper" in note


@pytest.mark.parametrize("route", ["server", "run", "helper", "inline, Python"])
def test_a_route_by_name(run, route):
    subject = results_of(run(*SMALL, f"--route={route}", "--budget=2"))["subjects"][0]
    assert list(subject["proof"]) == [route] == list(subject["rows"][0]["routes"])
    memory = subject["memory_kib"][route]
    assert memory["caller"]["pss"] > 0
    if route != "inline, Python":  # the file system is another process's
        assert memory["daemon"]["peak"] > 0
    assert subject["own"] == route


@pytest.mark.kernel_fuse
def test_kernel_passthrough_hands_files_to_the_kernel(run, kernel):
    """Read by the kernel itself, a page costs about what it costs in the plain directory."""
    words = (*QUICK, "--backend=passthrough", "--only=pread 4 KiB, random", "--no-python")
    done = run(*words, "--route=kernel FUSE passthrough", "--json", "--budget=2")
    results = results_of(done)
    release = tuple(int(part) for part in os.uname().release.split(".")[:2])
    if release < (6, 9) or os.geteuid() != 0:
        assert any("kernel FUSE passthrough: left out" in note for note in results["notes"])
        return
    (row,) = results["subjects"][0]["rows"]
    found = row["routes"]["kernel FUSE passthrough"]
    assert "the kernel was given" in results["subjects"][0]["proof"]["kernel FUSE passthrough"]
    assert found["daemon_cpu_ns"] < found["cpu_ns"] / 10


@pytest.mark.kernel_fuse
def test_io_uring_is_used_or_named(run, kernel):
    done = run(*SMALL, "--route=kernel FUSE io_uring", "--budget=2")
    is_used = bool(json.loads(done.stdout)["subjects"][0]["rows"])
    results = results_of(done, status=0 if is_used else 125)
    if is_used:
        assert "rings" in results["subjects"][0]["proof"]["kernel FUSE io_uring"]
    else:
        assert any("io_uring: left out: " in note for note in results["notes"])


@pytest.mark.kernel_fuse
def test_a_shared_object_is_no_kernel_mount(run, tree, kernel):
    command = f"{plugin('passthrough')} {tree} {tree.parent}/nowhere"
    notes = results_of(run(*QUICK, command, "--no-python", "--budget=4", "--json"))["notes"]
    left_out = [note for note in notes if "kernel FUSE" in note]
    assert any("a shared object cannot be mounted" in note for note in left_out)
    assert not any("Errno" in note for note in left_out)


def test_a_file_system_of_the_users(run, tree):
    point = tree.parent / "nowhere"
    done = run(*QUICK, f"passthrough '{tree}' {point}", "--no-kernel", "--budget=4", "--json")
    before = sorted(os.listdir(tree))
    results = results_of(done)
    subject = results["subjects"][0]
    ops = [row["op"] for row in subject["rows"]]
    assert "stat, depth 2" in ops and "create+unlink" not in ops
    assert {"inline", "inline, Python", "server"} <= set(subject["rows"][0]["routes"])
    assert subject["site"]["deep"].endswith("a/b/c/deep")
    assert not [op for op in ops if op.startswith("pread 1 MiB") or "100 KiB" in op]
    said = f"bytes of the largest: {subject['site']['data_size']:,}; entries of the fullest dir"
    (note,) = [note for note in results["notes"] if said in note]
    assert "what reads more is left out" in note and subject["site"]["crowd_size"] > 0
    assert sorted(os.listdir(tree)) == before


def test_python_reads_the_same_files_as_c(tree):
    for name in ("a/1", "a/b/2", "a/3", "z/4", "z/5/6"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_bytes(b"z" * 100_000)
    mount = ["--mount", str(plugin("passthrough")), "passthrough", str(tree), "/nowhere", "--"]
    workers = [str(bench_helper())], [sys.executable, "-I", "-m", "directfuse._bench.python_worker"]
    sites = []
    for worker in workers:
        with Worker([*worker, "--find", *mount, "inline:/nowhere"]) as asked:
            sites.append({key: asked.site[key] for key in asked.site.keys() - {"pid"}})
    assert sites[0] == sites[1]
    assert {"shallow", "deep", "data", "crowd", "data_size"} <= sites[0].keys()


def test_threads_of_python_are_measured_together():
    """Their calls, not their starts; one that failed was measured as if it had not."""
    both = threading.Barrier(2)
    seen = python_worker.sample([lambda count: both.wait(10)] * 2, 1000)
    assert seen.keys() == {"ns", "cpu_ns", "switches"}

    def fails(count):
        raise OSError(errno.EIO, "loop")

    with pytest.raises(OSError, match="loop"):
        python_worker.sample([fails, lambda count: None], 1)


@pytest.mark.skipif(shutil.which("bindfs") is None, reason="needs bindfs")
def test_a_program_that_wants_its_mountpoint_to_be_there(run, tree):
    point = tree.parent / "mnt"
    point.mkdir()
    routes = [f"--route={name}" for name in ("inline", "inline, Python", "server", "run")]
    done = run(*QUICK, f"bindfs -r {tree} {point}", *routes, "--budget=4", "--only=stat*", "--json")
    results = results_of(done)
    assert set(results["subjects"][0]["proof"]) == {"inline", "inline, Python", "server", "run"}


@pytest.mark.kernel_fuse
def test_a_program_that_takes_no_options(run, kernel, tree):
    """It is mounted without the -f that keeps others in the foreground; one of no libfuse's that is
    loaded has no inline route, and the answer is the helper's."""
    script = tree.parent / "script"
    script.write_text(f'#!/bin/sh\n[ $# = 1 ] && exec {program("passthrough")} {tree} "$1" -f\n')
    script.chmod(0o755)
    routes = [f"--route={name}" for name in ("kernel FUSE cached", "inline, Python", "helper")]
    done = run(*QUICK, f"{script} {tree.parent}/m", *routes, "--only=fstat", "--budget=4", "--json")
    results = results_of(done)
    assert set(results["subjects"][0]["proof"]) == {"kernel FUSE cached", "helper"}
    assert any("inline, Python: left out: it needs a process" in n for n in results["notes"])
    assert results["subjects"][0]["own"] == "helper"


@pytest.mark.kernel_fuse
def test_what_the_user_would_gain(run, kernel, tree):
    point = tree.parent / "nowhere"
    words = ("--route=inline", "--route=kernel FUSE cached", "--only=stat*", "--budget=2")
    done = run(*QUICK, f"passthrough '{tree}' {point}", *words)
    assert done.returncode == 0, done.stderr
    (answer,) = (line for line in done.stdout.splitlines() if "geometric mean" in line)
    gained = float(answer.partition("inline: ")[2].partition("×")[0].replace(",", ""))
    assert gained > 1  # no trip to another process


def test_report_and_comparison(run, tmp_path):
    words = (*QUICK, "--route=inline", "--route=plain directory", "--backend=memfs")
    words += ("--only=fstat", "--no-python", "--budget=1")
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


def test_pictures_of_all_parts(tmp_path):
    from directfuse._bench.plots import draw

    found = {"p10": 1e3, "median": 1e3}
    row = {"op": "pread 4 KiB, random", "lanes": "1", "left_out": {}}
    row |= {"routes": {"inline": found, "run": found}, "ratios": {"run": [2.0, 1.5, 2.5]}}
    program = {"program": "untar", "routes": {"run": found}, "ratios": {"run": [0.5, 0.4, 0.6]}}
    parts = {"op": "pread", "core": 5.0, "host": 9.0, "inline": 14.0, "python": None}
    results = {
        "subjects": [{"name": "memfs", "own": "inline", "rows": [row]}],
        "figures": [{"name": "passthrough on ext4", "own": "inline", "rows": [row]}],
        "programs": {"memfs": [program]},
        "breakdown": [parts | {"kernel": 9000.0}],
    }
    names = draw(results, tmp_path)
    assert names == [
        "memfs-ratios.png",
        "passthrough-on-ext4-throughput.png",
        "memfs-programs.png",
        "breakdown.png",
    ]
    for name in names:
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")
        assert "<svg" in (tmp_path / name.replace(".png", ".svg")).read_text()


OF_PROGRAMS = (*SMALL, "--no-kernel", "--route=run", "--route=plain directory")


@pytest.mark.sweep
@pytest.mark.timeout(120)
def test_programs(run):
    results = results_of(run(*OF_PROGRAMS, "--programs", "--budget=8", timeout=110))
    rows = results["programs"]["memfs"]
    assert rows, results["notes"]
    assert all(set(row["routes"]) == {"plain directory", "run"} for row in rows)


@pytest.mark.sweep
@pytest.mark.timeout(120)
def test_fio(run):
    results = results_of(run(*OF_PROGRAMS, "--fio", "--budget=3", timeout=110))
    if shutil.which("fio"):
        assert results["fio"]["memfs"][0]["mb_s"]["run"] > 0, results["notes"]
    else:
        left_out = "fio jobs: left out: fio is not installed (Debian: apt install fio)"
        assert left_out in results["notes"]


@pytest.mark.sweep
@pytest.mark.timeout(120)
def test_figures_of_the_paper_in_memory_and_on_disk(run):
    done = run(*SMALL, "--figures", "--no-kernel", "--budget=7", timeout=110)
    results = results_of(done)
    names = [figure["name"] for figure in results["figures"]]
    assert len(names) == 2 or any("figures on a disk: left out" in n for n in results["notes"])
    assert len(results["figures"][0]["rows"]) == 20
    assert results["figures"][0]["rows"][0]["routes"].keys() == {"plain directory", "inline"}
    for figure in results["figures"][1:]:
        assert figure["rows"], results["notes"]


@pytest.mark.sweep
def test_breakdown_of_a_call(run):
    done = run(*SMALL, "--breakdown", "--no-kernel", "--budget=8")
    results = results_of(done)
    rows = {row["op"]: row for row in results["breakdown"]}
    assert "pread 4 KiB, random" in rows, results["notes"]
    for row in rows.values():
        assert 0 < row["core"] < row["inline"] < row["server"]


ROOT = Path(__file__).parents[2]


def test_how_far_processors_are_from_each_other():
    one = [shutil.which("taskset"), "-c", str(min(os.sched_getaffinity(0)))]
    assert [_distance(words) for words in ([], one)] == [len(os.sched_getaffinity(0)) > 1, False]


def _distance(words):
    """Whether there is one: of how many ns, a busy machine decides."""
    done = subprocess.run(
        [*words, bench_helper(), "--distance"], capture_output=True, text=True, check=True
    )
    return int(done.stdout) > 0


def test_the_readme_shows_the_results():
    command = [sys.executable, ROOT / "benchmarks/readme.py", "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (ROOT / "benchmarks/results/readme.png").exists()


@pytest.mark.sweep
@pytest.mark.timeout(300)
def test_goals_are_judged():
    command = [sys.executable, ROOT / "benchmarks/goals", "--budget=4", "spine", "servers"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    assert "goals met" in done.stdout


@pytest.mark.sweep
@pytest.mark.timeout(300)
def test_all_results_are_made_by_one_command(tmp_path):
    command = [sys.executable, ROOT / "benchmarks/results.py", "--budget=60"]
    done = subprocess.run(
        [*command, f"--directory={tmp_path}"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    results = json.loads((tmp_path / "results.json").read_text())
    assert {subject["name"] for subject in results["subjects"]} == {"memfs", "passthrough"}
    assert "## " in (tmp_path / "report.md").read_text()


@pytest.mark.parametrize(("idle", "warned"), [(90, False), (10, True)])
def test_busy_is_what_runs_now_not_what_ran_before(monkeypatch, idle, warned):
    looks = iter([[0] * 8, [100 - idle, 0, 0, idle, 0, 0, 0, 0]])
    monkeypatch.setattr(machine, "_cpu_times", lambda: next(looks))
    monkeypatch.setattr(machine, "_WATCH_SECONDS", 0)
    monkeypatch.setattr(machine.os, "getloadavg", lambda: (9.0, 9.0, 9.0))
    assert (machine.busy_words() is not None) == warned
