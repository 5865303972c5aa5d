"""Figures over any stretch of the journal: who works, how long, how often tasks change hands, what is refused."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, cast

from remit.core import lifecycle
from remit.core.events import Event
from remit.core.values import Json

_DEADLOCK: Final = "deadlock"
_BEGINS: Final = frozenset(("task.started", "task.claimed"))
_LEFT: Final = frozenset(("task.released", "task.lost"))  # a turn that was cut short; for how long it ran is not told
# what ends a turn, and under what it is counted
_TURN_ENDS: Final = {"task.handed": "handed", "task.retrying": "retries"} | {
    kind: lifecycle.lands(kind) for kind in sorted(lifecycle.ENDS)
}


@dataclass(slots=True)
class Times:
    """Some durations in microseconds."""

    all: list[int] = field(default_factory=list[int])

    @property
    def total(self) -> int:
        return sum(self.all)

    @property
    def mean(self) -> int:
        return self.total // len(self.all) if self.all else 0

    def percentile(self, share: int) -> int:
        """The least that so many in a hundred do not exceed."""
        ranked = sorted(self.all)
        return ranked[-(-len(ranked) * share // 100) - 1] if ranked else 0


@dataclass(slots=True)
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
    times: Times = field(default_factory=Times)
    attempts: int = 0
    retries: int = 0
    dead: int = 0
    queue: Times = field(default_factory=Times)


@dataclass(slots=True)
class BreakerState:
    """A breaker as the journal last told of it."""

    state: str
    failures: int
    until: int
    why: str
    at: int


@dataclass(slots=True)
class Stats:
    """`handoffs` is how often each task was handed over; tasks that never were are there with 0."""

    events: int = 0
    runs: Counter[str] = field(default_factory=Counter[str])
    handoffs: dict[str, int] = field(default_factory=dict[str, int])
    latency: Times = field(default_factory=Times)
    agents: dict[str, AgentStats] = field(default_factory=dict[str, AgentStats])
    refusals: Counter[str] = field(default_factory=Counter[str])
    breakers: dict[str, BreakerState] = field(default_factory=dict[str, BreakerState])

    @property
    def attempts(self) -> int:
        return sum(one.attempts for one in self.agents.values())

    @property
    def retries(self) -> int:
        return sum(one.retries for one in self.agents.values())

    @property
    def dead(self) -> int:
        return sum(one.dead for one in self.agents.values())

    @property
    def queue(self) -> Times:
        return Times([waited for one in self.agents.values() for waited in one.queue.all])

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
    """The figures of these events, in order; of one agent, what it did itself and what its breaker did."""
    counting = _Counting(agent)
    for event in events:
        counting.add(event)
    return counting.done()


class _Counting:
    def __init__(self, agent: str) -> None:
        self._agent = agent
        self._found = Stats()
        self._turns: dict[str, int] = {}  # when the present turn of a task began
        self._handed: dict[str, int] = {}  # when a task was handed over to someone not heard of since
        self._asked: dict[str, int] = {}  # when a task was put into a queue that nobody has begun yet
        self._runs: dict[str, str] = {}

    def add(self, event: Event) -> None:
        told = not self._agent or event.agent == self._agent
        self._found.events += told
        if not event.text:  # pruned: that it happened is all that is left
            return
        if event.kind == "breaker.set":
            if told:
                self._breaker(event)
            return  # it is told along with a handoff or an end, and is no sign of the new holder
        if told and event.task in self._handed:
            self._found.latency.all.append(event.at - self._handed[event.task])
        self._handed.pop(event.task, None)
        if event.kind in lifecycle.MOVES:
            self._moved(event, told=told)
        elif event.kind == "hop.refused" and told:
            self._found.refusals[cast("str", event.data["rule"])] += 1

    def _moved(self, event: Event, *, told: bool) -> None:
        if event.kind in lifecycle.TRANSITIONS[lifecycle.START]:
            self._asked_for(event, told=told)
        if event.kind in _BEGINS:
            self._begun(event, told=told)
        elif event.kind in _TURN_ENDS:
            self._turn_over(event, told=told)
        elif event.kind in _LEFT:
            self._turns.pop(event.task, None)
        if event.task == event.run and event.run in self._runs:
            self._runs[event.run] = lifecycle.lands(event.kind)

    def done(self) -> Stats:
        self._found.runs.update(self._runs.values())
        return self._found

    def _asked_for(self, event: Event, *, told: bool) -> None:
        if "asked_how" in event.data:  # submitted; it may have been begun at once
            self._asked[event.task] = event.at
        if told:
            self._found.handoffs.setdefault(event.task, 0)
            if event.task == event.run:
                self._runs[event.run] = ""

    def _begun(self, event: Event, *, told: bool) -> None:
        self._turns[event.task] = event.at
        asked = self._asked.pop(event.task, None)
        if told:
            who = self._who(event)
            who.attempts += 1
            if asked is not None:
                who.queue.all.append(event.at - asked)

    def _turn_over(self, event: Event, *, told: bool) -> None:
        began = self._turns.pop(event.task, None)
        handed = event.kind == "task.handed"
        if handed:
            self._turns[event.task] = self._handed[event.task] = event.at
        elif event.kind in lifecycle.ENDS and event.task == event.run and told:
            self._runs.setdefault(event.run, "")
        if told:
            self._count(event, began)
            if handed:
                self._found.handoffs[event.task] = self._found.handoffs.get(event.task, 0) + 1

    def _count(self, event: Event, began: int | None) -> None:
        who, word = self._who(event), _TURN_ENDS[event.kind]
        who.turns += 1
        setattr(who, word, cast("int", getattr(who, word)) + 1)
        who.tokens += cast("int", event.data.get("tokens", 0))
        if began is not None:
            who.times.all.append(event.at - began)

    def _who(self, event: Event) -> AgentStats:
        return self._found.agents.setdefault(event.agent, AgentStats())

    def _breaker(self, event: Event) -> None:
        data = event.data
        self._found.breakers[cast("str", data["name"])] = BreakerState(
            state=cast("str", data["state"]),
            failures=cast("int", data["failures"]),
            until=cast("int", data["until"]),
            why=cast("str", data["why"]),
            at=event.at,
        )


def stats_data(found: Stats) -> dict[str, Json]:
    """The figures for programs; times are whole microseconds."""
    return {
        "events": found.events,
        "runs": dict(sorted(found.runs.items())),
        "tasks": len(found.handoffs),
        "handoffs": {
            "total": found.total_handoffs,
            "mean": round(found.mean_handoffs, 3),
            "max": found.most_handoffs,
            "latency_mean": found.latency.mean,
            "latency_p95": found.latency.percentile(95),
        },
        "queue": {
            "attempts": found.attempts,
            "retries": found.retries,
            "dead": found.dead,
            "mean": found.queue.mean,
            "p95": found.queue.percentile(95),
        },
        "deadlocks": found.deadlocks,
        "refusals": dict(sorted(found.refusals.items())),
        "agents": {name: _agent_data(one) for name, one in sorted(found.agents.items())},
        "breakers": {
            name: {"state": one.state, "failures": one.failures, "until": one.until, "why": one.why, "at": one.at}
            for name, one in sorted(found.breakers.items())
        },
    }


def _agent_data(one: AgentStats) -> dict[str, Json]:
    return {
        "turns": one.turns,
        "completed": one.completed,
        "failed": one.failed,
        "cancelled": one.cancelled,
        "handed": one.handed,
        "tokens": one.tokens,
        "time_total": one.times.total,
        "time_mean": one.times.mean,
        "attempts": one.attempts,
        "retries": one.retries,
        "dead": one.dead,
        "queue_mean": one.queue.mean,
        "queue_p95": one.queue.percentile(95),
    }
