"""Statistics over any range of the journal: agents, durations, handoffs, refusals."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from remit.core.events import Event
from remit.core.tally import BreakerStats, Counting, Figures, Times

__all__ = ["AgentStats", "BreakerStats", "Stats", "StatsPoint", "Times", "stats", "sum_of_agents"]

_DEADLOCK: Final = "deadlock"
# An agent with one of these counts is listed.
_WORK: Final = ("attempts", "turns", "tokens", "credits")


@dataclass(frozen=True, slots=True)
class AgentStats:
    """The finished turns of one agent, by their end. A turn whose start is not in the events has no duration.

    `attempts` is how often the agent started a task, `retries` how many of these attempts were retried, and `queue` how
    long tasks waited for their first start.
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
    credits: int = 0


@dataclass(frozen=True, slots=True)
class Stats:
    """Statistics of the events of a period. `tasks` were requested in it. `runs` ended in it, by their end; open runs
    count at their start, by their present state. So each run counts once over disjoint periods. `most_handoffs` is the
    highest number of handoffs of a single task. `refused_credits` is the money that refused tasks were to get."""

    events: int = 0
    runs: Counter[str] = field(default_factory=Counter[str])
    tasks: int = 0
    total_handoffs: int = 0
    most_handoffs: int = 0
    latency: Times = field(default_factory=Times)
    agents: dict[str, AgentStats] = field(default_factory=dict[str, AgentStats])
    refusals: Counter[str] = field(default_factory=Counter[str])
    breakers: dict[str, BreakerStats] = field(default_factory=dict[str, BreakerStats])
    refused_credits: int = 0

    @property
    def attempts(self) -> int:
        return sum(agent.attempts for agent in self.agents.values())

    @property
    def retries(self) -> int:
        return sum(agent.retries for agent in self.agents.values())

    @property
    def tokens(self) -> int:
        return sum(agent.tokens for agent in self.agents.values())

    @property
    def credits(self) -> int:
        return sum(agent.credits for agent in self.agents.values())

    @property
    def dead(self) -> int:
        return sum(agent.dead for agent in self.agents.values())

    @property
    def queue(self) -> Times:
        whole = Times()
        for agent in self.agents.values():
            whole.merge(agent.queue)
        return whole

    @property
    def deadlocks(self) -> int:
        return self.refusals[_DEADLOCK]

    @property
    def mean_handoffs(self) -> float:
        return self.total_handoffs / self.tasks if self.tasks else 0.0


class StatsPoint(NamedTuple):
    """The statistics of the hour or day that began at `start`, in microseconds since 1970. A run counts when it ends;
    `runs` has no open ones."""

    start: int
    stats: Stats


def stats(events: Iterable[Event], agent: str = "") -> Stats:
    """Return the statistics of these events, which must be in order; for one agent, its own work and its breaker."""
    figures: defaultdict[str, Figures] = defaultdict(Figures)
    counting = Counting(lambda _at, who: figures[who])
    for event in events:
        counting.add(event)
    return sum_of_agents(figures, Counter(run.state for run in counting.open_runs() if agent in ("", run.agent)), agent)


def sum_of_agents(figures: Mapping[str, Figures], open_runs: Mapping[str, int], agent: str = "") -> Stats:
    """Return the sum of all agents' figures, or those of one; `open_runs` counts unfinished runs by state."""
    chosen = {who: some for who, some in sorted(figures.items()) if agent in ("", who)}
    whole = Figures()
    for some in chosen.values():
        whole.merge(some)
    return Stats(
        events=whole.counts["events"],
        runs=Counter(open_runs) + whole.runs,
        tasks=whole.counts["tasks"],
        total_handoffs=whole.counts["handed"],
        most_handoffs=whole.most_handed if agent else whole.most_passed,
        latency=whole.latency,
        agents={who: _agent(some) for who, some in chosen.items() if any(some.counts[name] for name in _WORK)},
        refusals=whole.refusals,
        breakers=whole.breakers,
        refused_credits=whole.counts["refused_credits"],
    )


def _agent(figures: Figures) -> AgentStats:
    counts = figures.counts
    return AgentStats(
        turns=counts["turns"],
        completed=counts["completed"],
        failed=counts["failed"],
        cancelled=counts["cancelled"],
        handed=counts["handed"],
        tokens=counts["tokens"],
        times=figures.times,
        attempts=counts["attempts"],
        retries=counts["retries"],
        dead=counts["dead"],
        queue=figures.queue,
        credits=counts["credits"],
    )
