"""What one agent did in some stretch of time, in figures that can be added up."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

from remit.core.tally.times import Times, times_from
from remit.core.values import Json


class BreakerStats(NamedTuple):
    """A breaker as the journal last told of it, in event number `seq`."""

    state: str
    failures: int
    until: int
    why: str
    at: int
    seq: int


@dataclass(slots=True)
class Figures:
    """The figures of one agent.

    `counts` has events, tasks that were asked of it, attempts, turns and how they ended, tokens and credits. `runs` are
    those that were begun with it and have ended, by how. `most_passed` is how often one of its tasks had changed hands
    when it handed it on, `most_handed` how often it handed on one task itself.
    """

    counts: Counter[str] = field(default_factory=Counter[str])
    runs: Counter[str] = field(default_factory=Counter[str])
    refusals: Counter[str] = field(default_factory=Counter[str])
    times: Times = field(default_factory=Times)
    queue: Times = field(default_factory=Times)
    latency: Times = field(default_factory=Times)
    most_passed: int = 0
    most_handed: int = 0
    breakers: dict[str, BreakerStats] = field(default_factory=dict[str, BreakerStats])

    def merge(self, other: "Figures") -> None:
        """Add what another has counted. The order does not matter: of a breaker, the later event tells."""
        self.counts.update(other.counts)
        self.runs.update(other.runs)
        self.refusals.update(other.refusals)
        self.times.merge(other.times)
        self.queue.merge(other.queue)
        self.latency.merge(other.latency)
        self.most_passed = max(self.most_passed, other.most_passed)
        self.most_handed = max(self.most_handed, other.most_handed)
        for name, breaker in other.breakers.items():
            self.told(name, breaker)

    def told(self, name: str, breaker: BreakerStats) -> None:
        """Record the state of an agent's breaker, unless a later state is recorded already."""
        known = self.breakers.get(name)
        if known is None or known.seq <= breaker.seq:
            self.breakers[name] = breaker

    def data(self) -> dict[str, Json]:
        """Write it as JSON. What is nothing is left out: most of it is, of most hours."""
        whole: dict[str, Json] = {
            "counts": dict(self.counts),
            "runs": dict(self.runs),
            "refusals": dict(self.refusals),
            "times": self.times.data() if self.times.count else None,
            "queue": self.queue.data() if self.queue.count else None,
            "latency": self.latency.data() if self.latency.count else None,
            "most": [self.most_passed, self.most_handed] if self.most_passed else None,
            "breakers": {name: [*breaker] for name, breaker in self.breakers.items()},
        }
        return {name: value for name, value in whole.items() if value}


def figures_from(data: Json) -> Figures:
    """Restore figures from the JSON object that `Figures.data` made of them."""
    found = cast("dict[str, Any]", data)
    most_passed, most_handed = found.get("most", (0, 0))
    return Figures(
        Counter(found.get("counts", {})),
        Counter(found.get("runs", {})),
        Counter(found.get("refusals", {})),
        times_from(found.get("times")),
        times_from(found.get("queue")),
        times_from(found.get("latency")),
        most_passed,
        most_handed,
        {name: BreakerStats(*told) for name, told in found.get("breakers", {}).items()},
    )
