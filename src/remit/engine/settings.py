"""What the owner of a runtime decides about it, as values; one for each section of a team's file."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from remit.core.bounds import DEFAULT_HANDOFFS
from remit.core.breaker import BreakerPolicy
from remit.core.checks import between, callable_, counted, items, of_type, whole
from remit.core.events import SealKey
from remit.core.guards import SENDS
from remit.core.text import shown
from remit.core.times import DAY, SECOND, span
from remit.engine.system import SystemClock, TimedIds
from remit.errors import BadInput
from remit.ports import Clock, Ids

HANDS: Final = 100
SILENCE_SECONDS: Final = 15.0
_MANY: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules of a workspace that are not bounds.

    `breaker` says how soon failing agents are left alone; `classify` chooses the tier of a task that is not given one;
    `concurrency` is how many submitted tasks the workspace works on at a time, in all processes together; `handoffs` is
    how often one task may change hands, `sends` into how many parts it may go out at once.
    """

    breaker: BreakerPolicy = field(default_factory=BreakerPolicy)
    classify: Callable[[str], str] | None = None
    concurrency: int | None = None
    handoffs: int = DEFAULT_HANDOFFS
    sends: int = SENDS

    def __post_init__(self) -> None:
        breaker = of_type(self.breaker, BreakerPolicy, "breaker takes BreakerPolicy(...)")
        counted(breaker.failures, "failures", least=1)
        span(breaker.cool_off, "cool_off")
        span(breaker.probe, "probe")
        if self.classify is not None:
            callable_(self.classify, "classify is a function from a task to a tier's name")
        whole(self.concurrency, "concurrency", least=1)
        between(self.handoffs, "handoffs", 0, _MANY)
        between(self.sends, "sends", 1, _MANY)


@dataclass(frozen=True, slots=True)
class Pace:
    """How often a process looks and how long it waits, in seconds.

    `look` between two looks at the queue when nothing wakes it, `retry_store` before a store that failed is tried
    again, each time the next; `spawn_wait` for a spawned task to end before the sixth is refused; `busy_wait` for an
    agent that is busy before it is refused; `prune` between two looks at what is old; `grace` for an agent that was
    cancelled to stop, before it is left behind; `insist` for a store that is busy, away or full to keep what has
    happened, before it is given up (0: that is never waited for).
    """

    look: float = 1.0
    retry_store: tuple[float, ...] = (0.1, 0.5, 2.0)
    spawn_wait: float = 30.0
    busy_wait: float = 30.0
    prune: float = 3_600.0
    grace: float = 5.0
    insist: float = 600.0

    def __post_init__(self) -> None:
        for name in ("look", "spawn_wait", "prune", "grace"):
            span(getattr(self, name), name)
        if self.insist != 0:
            span(self.insist, "insist")
        pauses = items(self.retry_store, "retry_store is a list of seconds")
        object.__setattr__(self, "retry_store", tuple(span(pause, "retry_store") / SECOND for pause in pauses))


@dataclass(frozen=True, slots=True)
class Serving:
    """What a process does for the queue.

    `hands` is how many submitted tasks it runs at a time (0: none). After `silence` seconds without a heartbeat, other
    processes take over its tasks. What has ended is kept for ever, unless `keep_days` says how long. Only in memory,
    where it would fill it in the end, the newest `keep_events` are kept, with the runs and messages that they are of,
    and whatever belongs to a run in which something is open (None: all).
    """

    hands: int = HANDS
    silence: float = SILENCE_SECONDS
    keep_days: float | None = None
    keep_events: int | None = 50_000
    pace: Pace = field(default_factory=Pace)

    def __post_init__(self) -> None:
        counted(self.hands, "hands")
        span(self.silence, "silence")
        if self.keep_days is not None:
            span(self.keep_days, "keep_days")
        whole(self.keep_events, "keep_events", least=1)
        of_type(self.pace, Pace, "pace takes Pace(...)")

    @property
    def keep(self) -> int | None:
        """How long what has ended is kept, in microseconds."""
        return None if self.keep_days is None else span(self.keep_days, "keep_days") * (DAY // SECOND)


@dataclass(frozen=True, slots=True)
class System:
    """Where time and chance come from, and the secret that seals the journal.

    `journal_key` makes each event's hash one that only who has the key can make: text of at least 16 characters, the
    same in every process that writes. Unless it is given, REMIT_JOURNAL_KEY of the environment is taken.

    Before the machine's own clock is used to write, it is compared with the server's or with the newest event, and
    refused if it is wrong by more than ten minutes; `check_clock=False`, or REMIT_CHECK_CLOCK=no in the environment,
    takes it as it is.
    """

    clock: Clock = field(default_factory=SystemClock)
    ids: Ids = field(default_factory=TimedIds)
    journal_key: str = field(default="", repr=False)
    check_clock: bool = True

    def __post_init__(self) -> None:
        of_type(self.check_clock, bool, "check_clock is True or False")
        _has(self.clock, ("now", "ticks", "call_later"), "clock takes a clock")
        _has(self.ids, ("new", "chance"), "ids takes what makes ids")
        if self.journal_key:
            SealKey(self.journal_key)  # refused where it is said


def _has(given: object, names: tuple[str, ...], what: str) -> None:
    if not all(callable(getattr(given, name, None)) for name in names):
        raise BadInput(f"{what} with {', '.join(names)}, not {shown(given)}")
