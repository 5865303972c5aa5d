"""Statistics of the journal that can be added up: per hour, per day or any period, in any order.

They are derived: everything can be computed again from the journal.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, cast

from remit.core import lifecycle
from remit.core.events import Event, read
from remit.core.kinds.money import SPENDS, Outlay, charge_in
from remit.core.kinds.tasks import HopRefused
from remit.core.kinds.upkeep import RunsPruned
from remit.core.kinds.workspace import BreakerSet
from remit.core.records import NamedTuple
from remit.core.times import DAY, SECOND
from remit.core.values import Json

_BITS: Final = 5  # bits kept below the highest one: a bucket is 1/32 of its durations wide
_EXACT: Final = 1 << (_BITS + 1)  # durations below this have a bucket each


def bucket_of(duration: int) -> int:
    """Return the histogram bucket of a duration. Whole numbers only, so the result is the same on every machine."""
    if duration < _EXACT:
        return max(0, duration)
    # Keep the highest bits only, as a floating-point number does: buckets get wider with the duration, and the relative
    # error stays the same.
    shift = duration.bit_length() - _BITS - 1
    return (shift << _BITS) + (duration >> shift)


def longest_in(bucket: int) -> int:
    """Return the longest duration that falls into a bucket."""
    if bucket < _EXACT:
        return bucket
    shift = (bucket >> _BITS) - 1
    return ((bucket - (shift << _BITS) + 1) << shift) - 1


@dataclass(slots=True)
class Times:
    """Durations in microseconds, as a histogram.

    Number, sum, shortest and longest are exact; a percentile is at most 1/32 too high.
    """

    count: int = 0
    total: int = 0
    shortest: int = 0
    longest: int = 0
    buckets: dict[int, int] = field(default_factory=dict[int, int])

    @property
    def mean(self) -> int:
        return self.total // self.count if self.count else 0

    def percentile(self, share: int) -> int:
        """Return the least duration that `share` percent do not exceed, as precisely as the buckets allow."""
        rank = -(-self.count * share // 100)
        for bucket in sorted(self.buckets):
            rank -= self.buckets[bucket]
            if rank <= 0:
                return min(max(longest_in(bucket), self.shortest), self.longest)
        return 0

    def add(self, duration: int) -> None:
        """Count one duration. A negative one, after a clock was set back, counts too."""
        bucket = bucket_of(duration)
        self.shortest = min(self.shortest, duration) if self.count else duration
        self.longest = max(self.longest, duration) if self.count else duration
        self.count += 1
        self.total += duration
        self.buckets[bucket] = self.buckets.get(bucket, 0) + 1

    def merge(self, other: "Times") -> None:
        """Add the durations of another histogram."""
        if not other.count:
            return
        self.shortest = min(self.shortest, other.shortest) if self.count else other.shortest
        self.longest = max(self.longest, other.longest) if self.count else other.longest
        self.count += other.count
        self.total += other.total
        for bucket, number in other.buckets.items():
            self.buckets[bucket] = self.buckets.get(bucket, 0) + number

    def data(self) -> list[Json]:
        """Return the histogram as JSON: the exact figures, then each bucket with its number."""
        pairs = [part for pair in sorted(self.buckets.items()) for part in pair]
        return [self.count, self.total, self.shortest, self.longest, *pairs]


def times_from(data: Json) -> Times:
    """Return the histogram that `Times.data` wrote; no data means no durations."""
    if not data:
        return Times()
    count, total, shortest, longest, *pairs = cast("list[int]", data)
    return Times(count, total, shortest, longest, dict(zip(pairs[::2], pairs[1::2], strict=True)))


HOUR_WIDE: Final = 3_600 * SECOND
DAY_WIDE: Final = DAY
# The groups of a series of spending.
SpendSeries: TypeAlias = Literal["day,agent,model", "day,agent", "day,model", "agent,model"]
SpendOver: TypeAlias = Literal[SpendSeries, "day", "agent", "model"]
WIDTHS: Final = (HOUR_WIDE, DAY_WIDE)  # the periods of stored statistics
_EVER: Final = DAY_WIDE * 1_000_000  # later than any time that is accepted, and a whole number of days


class Period(NamedTuple):
    """From `start` up to, not including, `stop`, in parts of `width`."""

    width: int
    start: int
    stop: int


class Window(NamedTuple):
    """From `since` up to, not including, `until`; None means unlimited."""

    since: int | None = None
    until: int | None = None

    @property
    def start(self) -> int:
        return -_EVER if self.since is None else self.since

    @property
    def stop(self) -> int:
        return _EVER if self.until is None else self.until

    def holds(self, at: int) -> bool:
        return self.start <= at < self.stop

    def whole(self) -> list[Period]:
        """Return the whole days in the window, and the whole hours outside those days."""
        first, last = _up(self.start, HOUR_WIDE), start_of(self.stop, HOUR_WIDE)
        first_day, last_day = _up(first, DAY_WIDE), start_of(last, DAY_WIDE)
        if first_day >= last_day:
            periods = [Period(HOUR_WIDE, first, last)]
        else:
            before, after = Period(HOUR_WIDE, first, first_day), Period(HOUR_WIDE, last_day, last)
            periods = [before, Period(DAY_WIDE, first_day, last_day), after]
        return [period for period in periods if period.start < period.stop]

    def hours(self) -> list[Period]:
        """Return the whole hours in the window."""
        period = Period(HOUR_WIDE, _up(self.start, HOUR_WIDE), start_of(self.stop, HOUR_WIDE))
        return [period] if period.start < period.stop else []

    def edges(self) -> list["Window"]:
        """Return the remaining parts of hours: at most one at the beginning and one at the end."""
        first, last = _up(self.start, HOUR_WIDE), start_of(self.stop, HOUR_WIDE)
        parts = [(self.start, min(first, self.stop))]
        if first <= last:
            parts.append((last, self.stop))
        return [Window(since, until) for since, until in parts if since < until]


def start_of(at: int, width: int) -> int:
    """Return the start of the hour or day that contains a moment."""
    return at - at % width


def _up(at: int, width: int) -> int:
    return -start_of(-at, width)


class BreakerStats(NamedTuple):
    """The state of a breaker, as of event number `seq`."""

    state: str
    failures: int
    until: int
    why: str
    at: int
    seq: int


@dataclass(slots=True)
class Figures:
    """The statistics of one agent.

    `counts` has events, requested tasks, attempts, turns by their end, tokens, credits, and the credits that refused
    tasks were to get. `runs` counts the ended runs that started with this agent, by state. `most_passed` is the highest
    number of handoffs that a task had when this agent handed it over; `most_handed` is how often this agent handed over
    one task itself.
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
    models: dict[str, Outlay] = field(default_factory=dict[str, Outlay])

    def merge(self, other: "Figures") -> None:
        """Add the figures of another object, in any order. For a breaker, the later event wins."""
        self.counts.update(other.counts)
        self.runs.update(other.runs)
        self.refusals.update(other.refusals)
        self.times.merge(other.times)
        self.queue.merge(other.queue)
        self.latency.merge(other.latency)
        self.most_passed = max(self.most_passed, other.most_passed)
        self.most_handed = max(self.most_handed, other.most_handed)
        for name, breaker in other.breakers.items():
            self.record_breaker(name, breaker)
        for model, charge in other.models.items():
            self.charge(model, charge)

    def record_breaker(self, name: str, breaker: BreakerStats) -> None:
        """Record the state of an agent's breaker, unless a later state is recorded already."""
        known = self.breakers.get(name)
        if known is None or known.seq <= breaker.seq:
            self.breakers[name] = breaker

    def charge(self, model: str, charge: Outlay) -> None:
        """Add the spending for a model; `model` is "" for spending that belongs to no model."""
        known = self.models.get(model)
        self.models[model] = charge if known is None else known.plus(charge)

    def charges(self) -> dict[str, Outlay]:
        """Return the spending by model. Spending that belongs to no model, or was counted when the statistics had no
        models yet, is under ""."""
        known = self.models.values()
        rest = (self.counts[name] - sum(getattr(one, name) for one in known) for name in ("credits", "tokens"))
        before = Outlay(*rest)
        return {**self.models, "": self.models.get("", Outlay()).plus(before)} if any(before) else dict(self.models)

    def data(self) -> dict[str, Json]:
        """Return the figures as JSON. Zero figures are left out, because most are zero in most hours."""
        whole: dict[str, Json] = {
            "counts": dict(self.counts),
            "runs": dict(self.runs),
            "refusals": dict(self.refusals),
            "times": self.times.data() if self.times.count else None,
            "queue": self.queue.data() if self.queue.count else None,
            "latency": self.latency.data() if self.latency.count else None,
            "most": [self.most_passed, self.most_handed] if self.most_passed else None,
            "breakers": {name: [*breaker] for name, breaker in self.breakers.items()},
            "models": {model: [*charge] for model, charge in self.models.items()},
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
        {model: Outlay(*told) for model, told in found.get("models", {}).items()},
    )


_BEGINS: Final = frozenset(("task.started", "task.claimed"))
_LEFT: Final = frozenset(("task.released", "task.lost"))  # a turn that was cut short; its duration is unknown
# events that end a turn, and the counter of each
_TURN_ENDS: Final = {"task.handed": "handed", "task.retrying": "retries"} | {
    kind: lifecycle.lands(kind) for kind in sorted(lifecycle.ENDS)
}


class Root(NamedTuple):
    """A run that has not ended: its state, its start, and its first agent."""

    state: str
    at: int
    agent: str


@dataclass(slots=True)
class UnderWay:
    """The facts about a running task that later events need.

    `turn` is the start of its current turn, `handed` the time of a handoff after which the new holder has not started
    yet, `asked` the time it was queued, if no worker has started it. `passed` counts its handoffs by agent.
    """

    turn: int | None = None
    handed: int | None = None
    asked: int | None = None
    passed: dict[str, int] = field(default_factory=dict[str, int])
    root: Root | None = None

    def data(self) -> list[Json]:
        """Return the fields as a JSON list, except `root`, which is stored separately."""
        return [self.turn, self.handed, self.asked, dict(self.passed)]


def under_way_from(data: Json, root: Root | None) -> UnderWay:
    """Return the facts that `UnderWay.data` wrote."""
    turn, handed, asked, passed = cast("list[Any]", data)
    return UnderWay(turn, handed, asked, passed, root)


# Returns the figures for a time and an agent.
Into: TypeAlias = Callable[[int, str], Figures]
# Returns the facts about a task from before its first event counted here.
Recall: TypeAlias = Callable[[Event], UnderWay | None]


def from_nowhere(_first: Event) -> None:
    """Return nothing: the events before the first one are unknown."""


class Counting:
    """Computes statistics from events, which must come in order.

    Each figure belongs to the time of the event that reports it: a turn counts with its whole duration when it ends,
    and a run when it ends, for its first agent. `under_way` holds the facts that later events need; None stands for
    tasks that have ended or are unknown.
    """

    def __init__(self, into: Into, recall: Recall = from_nowhere) -> None:
        self._into = into
        self._recall = recall
        self.under_way: dict[str, UnderWay | None] = {}
        self.recalled: set[str] = set()  # those whose facts came from `recall`

    def add(self, event: Event) -> None:
        figures = self._into(event.at, event.agent)
        figures.counts["events"] += 1
        kind = event.kind
        # The event of a breaker can be part of a handoff: it does not show that the new holder has started.
        if kind == "breaker.set":
            _tell_breaker(figures, event)
        elif kind in lifecycle.BEGINNINGS:
            self._asked_for(event, figures)
        elif kind == "runs.pruned":
            self._forget(event)
        else:
            self._went_on(event, figures)

    def open_runs(self) -> list[Root]:
        """Return the runs that have not ended."""
        return [task.root for task in self.under_way.values() if task is not None and task.root is not None]

    def _task_under_way(self, event: Event) -> UnderWay | None:
        if event.task not in self.under_way:
            known = self.under_way[event.task] = self._recall(event)
            if known is not None:
                self.recalled.add(event.task)
        return self.under_way[event.task]

    def _forget(self, event: Event) -> None:
        """Drop the facts about pruned tasks."""
        for run in read(event, RunsPruned)["runs"]:
            for task in run["tasks"]:
                self._task_under_way(event._replace(task=task))
                self.under_way[task] = None

    def _asked_for(self, event: Event, figures: Figures) -> None:
        task = self.under_way[event.task] = UnderWay()
        figures.counts["tasks"] += 1
        if event.task == event.run:
            task.root = Root(lifecycle.lands(event.kind), event.at, event.agent)
        if "asked_how" in event.data:  # queued; it may have started at once
            task.asked = event.at
        if event.kind in _BEGINS:
            _begin(task, event, figures)

    def _went_on(self, event: Event, figures: Figures) -> None:
        task = self._task_under_way(event) if event.task else None
        if task is not None and task.handed is not None:
            figures.latency.add(event.at - task.handed)
            task.handed = None
        if event.kind in lifecycle.MOVES:
            self._moved(event, task or UnderWay(), figures)
        elif event.kind == "hop.refused":
            data = read(event, HopRefused)
            figures.refusals[data["rule"]] += 1
            if "credits" in data:
                figures.counts["refused_credits"] += data["credits"]
        elif event.kind in SPENDS:
            charge = charge_in(event)
            figures.counts["tokens"] += charge.tokens
            figures.counts["credits"] += charge.credits
            figures.charge(cast("str", event.data.get("model", "")), charge)

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
    if task.turn is not None:
        figures.times.add(event.at - task.turn)
        task.turn = None
    if "sent_back" in event.data:  # the same agent continues, so nothing is handed over
        task.turn = event.at
        return
    figures.counts[_TURN_ENDS[event.kind]] += 1
    if event.kind == "task.handed":
        task.turn = task.handed = event.at
        times = task.passed[event.agent] = task.passed.get(event.agent, 0) + 1
        figures.most_handed = max(figures.most_handed, times)
        figures.most_passed = max(figures.most_passed, sum(task.passed.values()))


def _tell_breaker(figures: Figures, event: Event) -> None:
    data = read(event, BreakerSet)
    told = BreakerStats(data["state"], data["failures"], data["until"], data["why"], event.at, event.seq)
    figures.record_breaker(data["name"], told)
