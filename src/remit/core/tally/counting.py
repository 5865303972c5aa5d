"""Counting events, one after the other, into the figures they belong to."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias, cast

from remit.core import kinds, lifecycle
from remit.core.events import Event
from remit.core.kinds import read
from remit.core.tally.figures import BreakerStats, Figures
from remit.core.values import Json

_BEGINS: Final = frozenset(("task.started", "task.claimed"))
_LEFT: Final = frozenset(("task.released", "task.lost"))  # a turn that was cut short; for how long it ran is not told
# what ends a turn, and under what it is counted
_TURN_ENDS: Final = {"task.handed": "handed", "task.retrying": "retries"} | {
    kind: lifecycle.lands(kind) for kind in sorted(lifecycle.ENDS)
}


class Root(NamedTuple):
    """A run that has not ended: its state, when it began, and with whom."""

    state: str
    at: int
    agent: str


@dataclass(slots=True)
class UnderWay:
    """What has to be remembered of a task until it ends.

    `turn` is when its present turn began, `handed` when it was handed to someone not heard of since, `asked` when it
    was put into a queue that nobody has begun it from. `passed` is how often each agent handed it on.
    """

    turn: int | None = None
    handed: int | None = None
    asked: int | None = None
    passed: dict[str, int] = field(default_factory=dict[str, int])
    root: Root | None = None

    def data(self) -> list[Json]:
        """Write it as JSON; what is known of a run is kept apart, to be looked up."""
        return [self.turn, self.handed, self.asked, dict(self.passed)]


def under_way_from(data: Json, root: Root | None) -> UnderWay:
    """Read what `UnderWay.data` wrote."""
    turn, handed, asked, passed = cast("list[Any]", data)
    return UnderWay(turn, handed, asked, passed, root)


# Where what happened at that time belongs, of that agent.
Into: TypeAlias = Callable[[int, str], Figures]
# What is known of a task from before the first event that was counted here; the event is the first of it.
Recall: TypeAlias = Callable[[Event], UnderWay | None]


def from_nowhere(_first: Event) -> None:
    """Recall nothing: what happened before is not known."""


class Counting:
    """Counts events, which come in order.

    Each figure belongs to the moment of the event that tells it: a turn counts with all its time when it ends, a run
    when it ends, for the agent it was begun with. `under_way` is what is to be remembered for later events; None are
    tasks that have ended, or of which nothing is known.
    """

    def __init__(self, into: Into, recall: Recall = from_nowhere) -> None:
        self._into = into
        self._recall = recall
        self.under_way: dict[str, UnderWay | None] = {}
        self.recalled: set[str] = set()  # of those, what was known before

    def add(self, event: Event) -> None:
        figures = self._into(event.at, event.agent)
        figures.counts["events"] += 1
        kind = event.kind
        if kind == "breaker.set":  # told along with a handoff or an end, and no sign of the new holder
            _tell_breaker(figures, event)
        elif kind in lifecycle.BEGINNINGS:
            self._asked_for(event, figures)
        elif kind == "runs.pruned":
            self._forget(event)
        else:
            self._went_on(event, figures)

    def open_runs(self) -> list[Root]:
        """List the runs that have not ended."""
        return [task.root for task in self.under_way.values() if task is not None and task.root is not None]

    def _known(self, event: Event) -> UnderWay | None:
        if event.task not in self.under_way:
            known = self.under_way[event.task] = self._recall(event)
            if known is not None:
                self.recalled.add(event.task)
        return self.under_way[event.task]

    def _forget(self, event: Event) -> None:
        """Remember nothing of what was pruned. It had been counted to its end, unless that failed."""
        for run in read(event, kinds.RunsPruned)["runs"]:
            for task in run["tasks"]:
                self._known(event._replace(task=task))
                self.under_way[task] = None

    def _asked_for(self, event: Event, figures: Figures) -> None:
        task = self.under_way[event.task] = UnderWay()
        figures.counts["tasks"] += 1
        if event.task == event.run:
            task.root = Root(lifecycle.lands(event.kind), event.at, event.agent)
        if "asked_how" in event.data:  # submitted; it may have been begun at once
            task.asked = event.at
        if event.kind in _BEGINS:
            _begin(task, event, figures)

    def _went_on(self, event: Event, figures: Figures) -> None:
        task = self._known(event) if event.task else None
        if task is not None and task.handed is not None:
            figures.latency.add(event.at - task.handed)
            task.handed = None
        if event.kind in lifecycle.MOVES:
            self._moved(event, task or UnderWay(), figures)
        elif event.kind == "hop.refused":
            figures.refusals[read(event, kinds.HopRefused)["rule"]] += 1
        elif event.kind in kinds.SPENDS:
            spent = kinds.spent_in(event)
            figures.counts["tokens"] += spent.tokens
            figures.counts["credits"] += spent.credits

    def _moved(self, event: Event, task: UnderWay, figures: Figures) -> None:
        self.under_way[event.task] = task
        if event.kind in _BEGINS:
            _begin(task, event, figures)
        elif event.kind in _TURN_ENDS:
            _end_turn(task, event, figures)
        elif event.kind in _LEFT:
            task.turn = None
        if event.kind in lifecycle.ENDS:
            self.under_way[event.task] = None
            if event.task == event.run:
                who = event.agent if task.root is None else task.root.agent
                self._into(event.at, who).runs[lifecycle.lands(event.kind)] += 1
        elif task.root is not None:
            task.root = task.root._replace(state=lifecycle.lands(event.kind))


def _begin(task: UnderWay, event: Event, figures: Figures) -> None:
    task.turn = event.at
    figures.counts["attempts"] += 1
    if task.asked is not None:
        figures.queue.add(event.at - task.asked)
        task.asked = None


def _end_turn(task: UnderWay, event: Event, figures: Figures) -> None:
    figures.counts["turns"] += 1
    figures.counts[_TURN_ENDS[event.kind]] += 1
    if task.turn is not None:
        figures.times.add(event.at - task.turn)
        task.turn = None
    if event.kind == "task.handed":
        task.turn = task.handed = event.at
        times = task.passed[event.agent] = task.passed.get(event.agent, 0) + 1
        figures.most_handed = max(figures.most_handed, times)
        figures.most_passed = max(figures.most_passed, sum(task.passed.values()))


def _tell_breaker(figures: Figures, event: Event) -> None:
    data = read(event, kinds.BreakerSet)
    told = BreakerStats(data["state"], data["failures"], data["until"], data["why"], event.at, event.seq)
    figures.told(data["name"], told)
