"""Rounds: all subjects of a job one after the other, again and again, so that what the machine does hits all alike.

Each subject is a process of its own, which is told when it is its turn: what one library imports or leaves behind
does not weigh on the others. Ratios are taken within a round.
"""

import json
import statistics
import subprocess
import sys
from collections.abc import Generator, Iterable
from contextlib import ExitStack, contextmanager
from pathlib import Path
from select import select
from tempfile import TemporaryDirectory
from typing import NamedTuple

from jobs import Aim, Job
from measure import Cost, Effort, Load

_PATIENCE = 300.0  # seconds for one cost, setting up included


class Figure(NamedTuple):
    """The median of some rounds, and how far they lie apart."""

    median: float
    least: float
    most: float


class Found(NamedTuple):
    """What a job gave: for each subject its costs, one a round; or text that says why there are none."""

    job: Job
    costs: dict[str, list[Cost] | str]

    def figure(self, subject: str) -> Figure | str:
        costs = self.costs.get(subject, "")
        return costs if isinstance(costs, str) else _figure(cost.value for cost in costs)

    def ratio(self, aim: Aim, *, cpu: bool = False) -> Figure | None:
        """The subject's cost over that of the best it is set against, in each round; None where one is missing."""
        ours = self._values(aim.of, cpu=cpu)
        theirs = [found for name in aim.against if (found := self._values(name, cpu=cpu))]
        if not ours or not theirs:
            return None
        best = [max(costs) if self.job.more else min(costs) for costs in zip(*theirs, strict=True)]
        return _figure(one / other for one, other in zip(ours, best, strict=True))

    def reached(self, aim: Aim) -> bool | None:
        """Whether an aim is reached; None if that was not measured."""
        found = self.ratio(aim) if aim.against else self.figure(aim.of)
        if not isinstance(found, Figure):
            return None
        return found.median >= aim.limit if self.job.more else found.median <= aim.limit

    def _values(self, subject: str, *, cpu: bool) -> list[float]:
        costs = self.costs.get(subject, "")
        if isinstance(costs, str):
            return []
        if not cpu:
            return [cost.value for cost in costs]
        found = [cost.cpu for cost in costs if cost.cpu]
        return found if len(found) == len(costs) else []


def _figure(values: Iterable[float]) -> Figure:
    found = sorted(values)
    return Figure(statistics.median(found), found[0], found[-1])


class Child:
    """A subject in a process of its own."""

    def __init__(self, job: Job, name: str, load: Load) -> None:
        script = Path(__file__).with_name("child.py")
        command = [sys.executable, str(script), job.name, name, str(load.share), str(load.folder)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def cost(self) -> Cost | str:
        """Have it measured once more."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write("go\n")
            self._process.stdin.flush()
        except OSError:
            return "it failed: the process is gone"
        if not select([self._process.stdout], [], [], _PATIENCE)[0]:
            return f"not done in {_PATIENCE:g} s"
        if not (line := self._process.stdout.readline()):
            return "it failed: the process is gone"
        answer = json.loads(line)
        return answer["skipped"] if "skipped" in answer else Cost(**answer)

    def close(self) -> None:
        """Let it end; one that does not is killed."""
        try:
            self._process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()


@contextmanager
def children(job: Job, names: Iterable[str], load: Load) -> Generator[dict[str, Child]]:
    with ExitStack() as stack:
        made: dict[str, Child] = {}
        for name in names:
            made[name] = Child(job, name, load)
            stack.callback(made[name].close)
        yield made


def measured(job: Job, effort: Effort, only: frozenset[str] = frozenset()) -> Found:
    """Measure a job in all its subjects, or only in some."""
    costs: dict[str, list[Cost] | str] = {name: [] for name in job.subjects if not only or name in only}
    with TemporaryDirectory(prefix="remit-bench-") as folder, ExitStack() as stack:
        load = Load(effort.share, Path(folder))
        kept = {} if job.fresh else stack.enter_context(children(job, costs, load))
        for _ in range(effort.rounds):
            for name, so_far in costs.items():
                if isinstance(so_far, str):
                    continue
                given = kept[name].cost() if kept else _once(job, name, load)
                if isinstance(given, str):
                    costs[name] = given
                else:
                    so_far.append(given)
    return Found(job, costs)


def _once(job: Job, name: str, load: Load) -> Cost | str:
    """A cost of a process that is new."""
    with children(job, [name], load) as made:
        return made[name].cost()
