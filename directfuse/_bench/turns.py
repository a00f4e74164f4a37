"""Jobs on the routes that every program can reach, in turns: what whole programs and fio share."""

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from directfuse._bench.measure import in_turn, ratios
from directfuse._bench.places import Place, open_places
from directfuse._bench.routes import Unavailable
from directfuse._bench.subject import Subject

__all__ = ["Done", "Job", "Task", "measure_jobs"]


@dataclass(frozen=True)
class Job:
    """sample: its figure on a place, which it takes within about so many seconds; Unavailable where
    it fails. needs: programs."""

    name: str
    sample: Callable[[Place, float], float]
    needs: tuple[str, ...] = ()


@dataclass
class Task:
    """For one file system. base: a directory for all that is made. No job begins when it is `end`,
    of time.monotonic(). What is left out is said in `notes`."""

    subject: Subject
    routes: Sequence[str]
    base: str
    notes: list[str]
    end: float
    progress: Callable[[str], None]

    def leave_out(self, what: str, why: str, route: str = "") -> None:
        where = f" on {self.subject.name}{', ' if route else ''}{route}"
        self.notes.append(f"{what}{where}: left out: {why}")


@dataclass
class Done:
    """A job's samples by route, one for each round, and why routes have none."""

    name: str
    samples: dict[str, list[float]] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    ratios: dict[str, list[float]] = field(default_factory=dict)  #: to the first route


def measure_jobs(
    what: str, jobs: Sequence[Job], rounds: int, task: Task, given: str
) -> Iterator[Done]:
    """what: what they are, for the notes. given: the directory of their input."""
    late: list[str] = []
    with ExitStack() as stack:
        places, missing = open_places(task.subject, task.routes, task.base, given, stack)
        task.notes += missing
        for index, job in enumerate(jobs if places else []):
            share = (task.end - time.monotonic()) / (len(jobs) - index)
            absent = [name for name in job.needs if shutil.which(name) is None]
            if absent:
                task.leave_out(job.name, f"{', '.join(absent)} is not installed")
            elif share <= 0:
                late.append(job.name)
            else:
                task.progress(f"{task.subject.name}: {job.name}")
                done = _measure_one(job, places, rounds, share)
                for route, why in done.left_out.items():
                    task.leave_out(job.name, _last_line(why), route)
                yield done
    if late:
        task.leave_out(what, f"the time was up: {'; '.join(late)}")


def _measure_one(job: Job, places: Sequence[Place], rounds: int, seconds: float) -> Done:
    """The places share the seconds. One that has used its own up sits out the rounds that are left
    to the others: the slowest may have one, and one alone would tell of each what it met first.
    A route on which the job fails is left out; the others go on."""
    done = Done(job.name, {place.name: [] for place in places})
    share = seconds / len(places)
    spent = dict.fromkeys(done.samples, 0.0)
    for number in range(rounds):
        for place in in_turn(places, number):
            if place.name not in done.samples or (number > 0 and spent[place.name] > share):
                continue
            begun = time.monotonic()
            try:
                done.samples[place.name].append(job.sample(place, share))
            except Unavailable as error:
                done.left_out[place.name] = str(error)
                del done.samples[place.name]
            spent[place.name] += time.monotonic() - begun
    done.ratios = ratios(done.samples, places[0].name)
    return done


def _last_line(words: str) -> str:
    return (words.strip().splitlines() or [""])[-1]
