"""How many operations the samples of `directfuse bench` have."""

from types import SimpleNamespace

import pytest

from directfuse._bench.measure import measure
from directfuse._bench.worker import Lanes


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
        SimpleNamespace(name=name, worker=worker, daemons=[]) for name, worker in workers.items()
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
