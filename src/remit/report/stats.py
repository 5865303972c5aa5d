"""Figures over any stretch of the journal: who works, how long, how often tasks change hands, what is refused."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from remit.core import kinds, lifecycle
from remit.core.events import Event
from remit.core.kinds import read

_DEADLOCK: Final = "deadlock"
_BEGINS: Final = frozenset(("task.started", "task.claimed"))
_LEFT: Final = frozenset(("task.released", "task.lost"))  # a turn that was cut short; for how long it ran is not told
# what ends a turn, and under what it is counted
_TURN_ENDS: Final = {"task.handed": "handed", "task.retrying": "retries"} | {
    kind: lifecycle.lands(kind) for kind in sorted(lifecycle.ENDS)
}


@dataclass(frozen=True, slots=True)
class Times:
    """Some durations in microseconds."""

    all: tuple[int, ...] = ()

    @property
    def total(self) -> int:
        return sum(self.all)

    @property
    def mean(self) -> int:
        return self.total // len(self.all) if self.all else 0

    def percentile(self, share: int) -> int:
        """Find the least duration that so many in a hundred do not exceed."""
        ranked = sorted(self.all)
        return ranked[-(-len(ranked) * share // 100) - 1] if ranked else 0


_NO_TIMES: Final = Times()


@dataclass(frozen=True, slots=True)
class AgentStats:
    """The turns of one agent that are over, by how they ended. A turn whose beginning is not told has no time.

    `attempts` is how often a task was begun with it, `retries` how many of those were to be tried again, and `queue`
    how long tasks waited until it began them for the first time.
    """

    turns: int = 0
    completed: int = 0
    failed: int = 0
    cancelled: int = 0
    handed: int = 0
    tokens: int = 0
    times: Times = _NO_TIMES
    attempts: int = 0
    retries: int = 0
    dead: int = 0
    queue: Times = _NO_TIMES


@dataclass(frozen=True, slots=True)
class BreakerStats:
    """A breaker as the journal last told of it."""

    state: str
    failures: int
    until: int
    why: str
    at: int


@dataclass(frozen=True, slots=True)
class Stats:
    """`handoffs` is how often each task was handed over; tasks that never were are there with 0."""

    events: int = 0
    runs: Counter[str] = field(default_factory=Counter[str])
    handoffs: dict[str, int] = field(default_factory=dict[str, int])
    latency: Times = _NO_TIMES
    agents: dict[str, AgentStats] = field(default_factory=dict[str, AgentStats])
    refusals: Counter[str] = field(default_factory=Counter[str])
    breakers: dict[str, BreakerStats] = field(default_factory=dict[str, BreakerStats])

    @property
    def attempts(self) -> int:
        return sum(agent.attempts for agent in self.agents.values())

    @property
    def retries(self) -> int:
        return sum(agent.retries for agent in self.agents.values())

    @property
    def dead(self) -> int:
        return sum(agent.dead for agent in self.agents.values())

    @property
    def queue(self) -> Times:
        return Times(tuple(waited for agent in self.agents.values() for waited in agent.queue.all))

    @property
    def deadlocks(self) -> int:
        return self.refusals[_DEADLOCK]

    @property
    def most_handoffs(self) -> int:
        return max(self.handoffs.values(), default=0)

    @property
    def total_handoffs(self) -> int:
        return sum(self.handoffs.values())

    @property
    def mean_handoffs(self) -> float:
        return self.total_handoffs / len(self.handoffs) if self.handoffs else 0.0


def stats(events: Iterable[Event], agent: str = "") -> Stats:
    """Count these events, which are in order; of one agent, what it did itself and what its breaker did."""
    counting = _Counting(agent)
    for event in events:
        counting.add(event)
    return counting.result()


class _AgentCount:
    """The figures of one agent while they are counted."""

    def __init__(self) -> None:
        self.figures: Counter[str] = Counter()
        self.times: list[int] = []
        self.queue: list[int] = []

    def result(self) -> AgentStats:
        return AgentStats(times=Times(tuple(self.times)), queue=Times(tuple(self.queue)), **self.figures)


class _Counting:
    """Counts events; `ours` says of each whether it is one of the agent that was asked for."""

    def __init__(self, agent: str) -> None:
        self._agent = agent
        self._events = 0
        self._agents: defaultdict[str, _AgentCount] = defaultdict(_AgentCount)
        self._handoffs: dict[str, int] = {}
        self._latency: list[int] = []
        self._refusals: Counter[str] = Counter()
        self._breakers: dict[str, BreakerStats] = {}
        self._runs: dict[str, str] = {}
        self._turns: dict[str, int] = {}  # when the present turn of a task began
        self._handed: dict[str, int] = {}  # when a task was handed over to someone not heard of since
        self._asked: dict[str, int] = {}  # when a task was put into a queue that nobody has begun yet

    def result(self) -> Stats:
        return Stats(
            events=self._events,
            runs=Counter(self._runs.values()),
            handoffs=self._handoffs,
            latency=Times(tuple(self._latency)),
            agents={name: count.result() for name, count in self._agents.items()},
            refusals=self._refusals,
            breakers=self._breakers,
        )

    def add(self, event: Event) -> None:
        ours = not self._agent or event.agent == self._agent
        self._events += ours
        if not event.text:  # pruned: that it happened is all that is left
            return
        if event.kind == "breaker.set":
            if ours:
                self._breaker(event)
            return  # it is told along with a handoff or an end, and is no sign of the new holder
        if ours and event.task in self._handed:
            self._latency.append(event.at - self._handed[event.task])
        self._handed.pop(event.task, None)
        if event.kind in lifecycle.MOVES:
            self._moved(event, ours=ours)
        elif event.kind == "hop.refused" and ours:
            self._refusals[read(event, kinds.HopRefused)["rule"]] += 1
        elif event.kind == "tokens.used" and ours:
            self._agents[event.agent].figures["tokens"] += read(event, kinds.TokensUsed)["tokens"]

    def _moved(self, event: Event, *, ours: bool) -> None:
        if event.kind in lifecycle.TRANSITIONS[lifecycle.START]:
            self._asked_for(event, ours=ours)
        if event.kind in _BEGINS:
            self._begun(event, ours=ours)
        elif event.kind in _TURN_ENDS:
            self._turn_over(event, ours=ours)
        elif event.kind in _LEFT:
            self._turns.pop(event.task, None)
        if event.task == event.run and event.run in self._runs:
            self._runs[event.run] = lifecycle.lands(event.kind)

    def _asked_for(self, event: Event, *, ours: bool) -> None:
        if "asked_how" in event.data:  # submitted; it may have been begun at once
            self._asked[event.task] = event.at
        if ours:
            self._handoffs.setdefault(event.task, 0)
            if event.task == event.run:
                self._runs[event.run] = ""

    def _begun(self, event: Event, *, ours: bool) -> None:
        self._turns[event.task] = event.at
        asked = self._asked.pop(event.task, None)
        if ours:
            agent = self._agents[event.agent]
            agent.figures["attempts"] += 1
            if asked is not None:
                agent.queue.append(event.at - asked)

    def _turn_over(self, event: Event, *, ours: bool) -> None:
        began = self._turns.pop(event.task, None)
        handed = event.kind == "task.handed"
        if handed:
            self._turns[event.task] = self._handed[event.task] = event.at
        elif event.kind in lifecycle.ENDS and event.task == event.run and ours:
            self._runs.setdefault(event.run, "")
        if ours:
            self._count(event, began)
            if handed:
                self._handoffs[event.task] = self._handoffs.get(event.task, 0) + 1

    def _count(self, event: Event, began: int | None) -> None:
        agent = self._agents[event.agent]
        agent.figures["turns"] += 1
        agent.figures[_TURN_ENDS[event.kind]] += 1
        if began is not None:
            agent.times.append(event.at - began)

    def _breaker(self, event: Event) -> None:
        data = read(event, kinds.BreakerSet)
        self._breakers[data["name"]] = BreakerStats(
            state=data["state"], failures=data["failures"], until=data["until"], why=data["why"], at=event.at
        )
