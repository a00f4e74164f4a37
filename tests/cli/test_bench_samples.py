"""What `directfuse bench` and benchmarks/goals make of samples: how long they are, how judged."""

import importlib
import itertools
from pathlib import Path
from types import SimpleNamespace

import pytest

from directfuse._bench import turns
from directfuse._bench.measure import in_turn, measure
from directfuse._bench.worker import Lanes

ROOT = Path(__file__).parents[2]


class Worker:
    """Answers as df-bench does: operations take `ns` each, the first sample `late` more."""

    def __init__(self, ns, late=0.0):
        self.ns = ns
        self.late = late
        self.counts = []

    def sample(self, op, count, lanes):
        self.counts.append(count)
        ns = self.ns + self.late / count
        self.late = 0.0
        return {"ns": ns, "cpu_ns": ns, "switches": 0.0}


def counts_of(**workers):
    routes = [
        SimpleNamespace(name=name, worker=worker, daemons=[], alone="")
        for name, worker in workers.items()
    ]
    measure("op", Lanes("1"), routes, seconds=0, most_rounds=1)
    return {name: worker.counts[-1] for name, worker in workers.items()}


def test_a_sample_takes_a_millisecond():
    assert counts_of(one=Worker(100)) == {"one": 10_000}


@pytest.mark.parametrize("late", [100_000, 400_000, 10_000_000])
def test_cold_caches_at_the_first_look_make_no_shorter_samples(late):
    assert counts_of(warm=Worker(150_000), cold=Worker(150_000, late)) == {"warm": 6, "cold": 6}


def test_routes_of_like_speed_have_as_many_operations():
    counts = counts_of(a=Worker(100_000), b=Worker(300_000), c=Worker(1_100_000), d=Worker(100))
    assert counts == {"a": 10, "b": 10, "c": 1, "d": 10_000}


def test_each_route_stands_first_and_last_and_behind_more_than_one_other():
    rounds = [in_turn("abc", number) for number in range(6)]
    assert all(sorted(order) == ["a", "b", "c"] for order in rounds)
    assert {order[0] for order in rounds} == {order[-1] for order in rounds} == set("abc")
    assert {"".join(pair) for order in rounds for pair in itertools.pairwise(order)} == {
        "ab", "ba", "bc", "cb", "ca", "ac",
    }  # fmt: skip


def test_two_threads_are_judged_beside_two_processes(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks/goals")
    spine = importlib.import_module("spine")
    table = (
        "operation\top alone\tthrough the door\tabove\ttwo threads\ttwo processes\n"
        "pread\t1.0\t10.0\t9.0\t16.0\t15.0\n"
        "pwrite\t1.0\t10.0\t9.0\t18.0\t15.0\n"
        "open+close\t1.0\t10.0\t9.0\tnan\t15.0\n"
    )
    above, *rows, _, unknown = spine.dispatch(table)
    assert (above.what, above.measured, above.met) == ("dispatch above the op: pread", "9 ns", True)
    assert [(row.measured, row.met) for row in rows] == [
        ("1.07× (1.6× / 1.5×)", True),
        ("1.2× (1.8× / 1.5×)", False),
    ]
    assert unknown.measured.startswith("not measured") and not unknown.met


def test_who_is_slow_sits_out_rounds_that_the_others_take(monkeypatch):
    """So that the first round, which meets what was never used before, is one of several for the
    others, however slow a program is on one place (a mount through the kernel)."""
    places = [SimpleNamespace(name=name, seconds=n) for name, n in (("fast", 1), ("slow", 50))]
    clock = SimpleNamespace(now=0)
    monkeypatch.setattr(turns, "time", SimpleNamespace(monotonic=lambda: clock.now))

    def sample(place, _):
        clock.now += place.seconds
        return float(place.seconds)

    done = turns._measure_one(turns.Job("job", sample), places, 9, seconds=60)
    assert {name: len(found) for name, found in done.samples.items()} == {"fast": 9, "slow": 1}
    assert done.ratios == {"slow": [50.0, 50.0, 50.0]}
