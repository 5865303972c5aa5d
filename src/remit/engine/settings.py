"""The settings that the owner of a runtime chooses, as values; one for each section of a team's file."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Final, Literal, cast

from remit.core.bounds import DEFAULT_HANDOFFS, SENDS, SPAWNED, TOP, Bounds, Classify, tier_by_rules
from remit.core.breaker import BreakerPolicy
from remit.core.checks import between, callable_, counted, items, of_type, whole
from remit.core.events import SealKey
from remit.core.limits import Limit
from remit.core.loops import Loops
from remit.core.match import Certainty
from remit.core.patterns import pattern
from remit.core.records import NamedTuple, dataclass
from remit.core.secret import Redaction
from remit.core.times import SECOND, patience, span, span_of_days
from remit.core.toolgroups import Groups, own_groups
from remit.core.values import INT_LIMIT, shown
from remit.engine.system import SystemClock, TimedIds
from remit.errors import BadInput
from remit.ports import Calendar, Channel, Clock, Ids, Prices, Vault

if TYPE_CHECKING:
    from remit.engine.approvals import NeedsApproval
    from remit.engine.finding import Embed
    from remit.engine.plans import Schemas

HANDS: Final = 100
KEEP_EVENTS: Final = 50_000  # of each workspace in memory
INBOX: Final = 32  # messages of one sender that wait for one reader
REVIEWS: Final = 3  # how often the result of one task may be sent back
SILENCE_SECONDS: Final = 15.0
_MANY: Final = 1_000_000
_INBOX_MOST: Final = 10_000
_EITHER: Final = {
    "on_no_answer": ("reject", "approve"),
    "on_failed_handoff": ("fail", "back"),
    "unknown_price": ("refuse", "tokens"),
    "short": ("refuse", "ask"),
}
_CHANNEL: Final = pattern(r"[a-z0-9][a-z0-9._-]{0,31}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules of a workspace that are not bounds.

    `breaker` says when the circuit breaker of a failing agent opens. `classify` chooses the tier of a task without one:
    "rules" judges its words (`tier_by_rules`); a function, plain or async, may ask a model instead. `concurrency` is
    how many queued tasks the workspace runs at once, in all processes together. `handoffs` limits the handoffs of one
    task, `max_parallel_parts` the parts of one parallel handoff, and `spawns` its unfinished spawned tasks. `limits`
    limit spending and started tasks per hour, day, week or month. `unknown_price` says whether a call of a model with
    an unknown price is refused, or only its tokens count. `needs_approval` says which hops a person must approve: a
    function from a `WantedHop` to True, False or a reason; `on_no_answer` says what happens if no one answers within
    `answer_days`. `certainty` is how clear a match must be for a delegation by capability. `groups` are names for sets
    of tools: with `{"db": ["query", "dump"]}` an agent may be given or denied "group:db". With
    `on_failed_handoff="back"` a task goes back to the agent that handed it over if the new one fails, with the reason.
    `loops` says when a model without progress is warned, refused and stopped. `inbox` is how many messages of one
    sender may wait for one reader, and how many one read of the inbox returns. `reviews` is how often people may send
    the result of one task back, with `Card(review=True)`. `artifact_bytes` limits the size of all artifacts of the
    workspace together, and `run_artifact_bytes` the size of those that the agents of one run save. `last_word` is the
    part of a run's money and tokens that only its first task can spend, at most half, such as `Bounds(credits="$0.05")`
    [default: the highest cost of one answer of its first holder's model]. `short` says what happens to a payment that a
    task has too little money for: it is refused, or a person is asked for more, within what the account has.
    """

    breaker: BreakerPolicy = field(default_factory=BreakerPolicy)
    classify: Classify | Literal["rules"] | None = None
    concurrency: int | None = None
    handoffs: int = DEFAULT_HANDOFFS
    max_parallel_parts: int = SENDS
    spawns: int = SPAWNED
    certainty: Certainty = field(default_factory=Certainty)
    groups: Mapping[str, Iterable[str]] = field(default_factory=dict[str, Iterable[str]])
    limits: Sequence[Limit] = ()
    unknown_price: Literal["refuse", "tokens"] = "refuse"
    needs_approval: NeedsApproval | None = None
    on_no_answer: Literal["reject", "approve"] = "reject"
    answer_days: float = 7.0
    on_failed_handoff: Literal["fail", "back"] = "fail"
    loops: Loops = field(default_factory=Loops)
    inbox: int = INBOX
    reviews: int = REVIEWS
    artifact_bytes: int | None = None
    run_artifact_bytes: int = 10 * 2**30
    last_word: Bounds | None = None
    short: Literal["refuse", "ask"] = "refuse"

    def __post_init__(self) -> None:
        breaker = of_type(self.breaker, BreakerPolicy, "breaker takes BreakerPolicy(...)")
        counted(breaker.failures, "failures", least=1)
        span(breaker.cool_off, "cool_off")
        span(breaker.probe, "probe")
        if self.classify is not None and self.classify != "rules":
            callable_(self.classify, "classify is a function from a task to a tier's name")
        whole(self.concurrency, "concurrency", least=1)
        between(self.handoffs, "handoffs", 0, _MANY)
        between(self.max_parallel_parts, "max_parallel_parts", 1, _MANY)
        between(self.spawns, "spawns", 1, _MANY)
        between(self.inbox, "inbox", 1, _INBOX_MOST)
        between(self.reviews, "reviews", 0, _MANY)
        whole(self.artifact_bytes, "artifact_bytes")
        between(self.run_artifact_bytes, "run_artifact_bytes", 0, INT_LIMIT)
        of_type(self.last_word or TOP, Bounds, 'last_word takes Bounds(credits="$0.05", tokens=2_000)')
        of_type(self.certainty, Certainty, "certainty takes Certainty(...)")
        for name, value in self.certainty._asdict().items():
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
                raise BadInput(f"certainty: {name} is a number from 0 to 1, not {shown(value)}")
        if self.groups:
            object.__setattr__(self, "groups", own_groups(self.groups))
        limits = tuple(items(self.limits, "limits is a list of Limit(...)"))
        for limit in limits:
            of_type(limit, Limit, "limits is a list of Limit(...)")
        object.__setattr__(self, "limits", limits)
        if self.needs_approval is not None:
            callable_(self.needs_approval, "needs_approval is a function from a WantedHop to True, False or a reason")
            if iscoroutinefunction(self.needs_approval):
                raise BadInput(
                    "needs_approval is a plain function, not an async one: it is asked while a hop is decided"
                )
        span_of_days(self.answer_days, "answer_days")
        of_type(self.loops, Loops, "loops takes Loops(...)")
        for name, (one, other) in _EITHER.items():
            if (given := getattr(self, name)) not in (one, other):
                raise BadInput(f"{name} is '{one}' or '{other}', not {shown(given)}")

    @property
    def tool_groups(self) -> Groups:
        """The owner's tool groups, each with its members."""
        return cast("Groups", self.groups)

    @property
    def classifier(self) -> Classify | None:
        """The function that chooses the tier of a task without one, or None."""
        return tier_by_rules if isinstance(self.classify, str) else self.classify

    @property
    def answer_within(self) -> int:
        """How long a question is open by default, in microseconds."""
        return span_of_days(self.answer_days, "answer_days")


@dataclass(frozen=True, slots=True)
class Pace:
    """How often a process polls and how long it waits, in seconds.

    `poll_interval` is the time between two polls of the queue when nothing wakes it. `retry_store` are the pauses
    before a failed store is retried, one after the other. `spawn_timeout` is how long to wait for a spawned task to end
    before one too many is refused, `busy_timeout` for a busy agent, and `money_timeout` for money that other calls
    hold. `prune_interval` is the time between two checks for old runs. `grace` is how long a cancelled agent has to
    stop before it is abandoned. `store_timeout` is how long a write is retried while the store is busy, unreachable or
    full (0: no retry).
    """

    poll_interval: float = 1.0
    retry_store: Sequence[float] = (0.1, 0.5, 2.0)
    spawn_timeout: float = 30.0
    busy_timeout: float = 30.0
    money_timeout: float = 30.0
    prune_interval: float = 3_600.0
    grace: float = 5.0
    store_timeout: float = 600.0

    def __post_init__(self) -> None:
        for name in ("poll_interval", "spawn_timeout", "prune_interval", "grace"):
            span(getattr(self, name), name)
        for name in ("busy_timeout", "money_timeout", "store_timeout"):
            patience(getattr(self, name), name)
        pauses = items(self.retry_store, "retry_store is a list of seconds")
        object.__setattr__(self, "retry_store", tuple(span(pause, "retry_store") / SECOND for pause in pauses))


@dataclass(frozen=True, slots=True)
class Serving:
    """What a process does for the queue.

    `concurrency` is how many queued tasks it runs at once (0: none). After `heartbeat_timeout` seconds without a
    heartbeat, other processes take over its tasks. Ended runs are kept forever, unless `keep_days` limits that. Only in
    memory, the newest `keep_events` events are kept, with their runs and messages, and everything that belongs to a run
    with something open (None: all). `channels` deliver questions to people and receive answers, such as `Webhook(...)`
    of `remit.adapters.webhook`; they are used while the process serves or runs a task itself.
    """

    concurrency: int = HANDS
    heartbeat_timeout: float = SILENCE_SECONDS
    keep_days: float | None = None
    keep_events: int | None = KEEP_EVENTS
    pace: Pace = field(default_factory=Pace)
    channels: tuple[Channel, ...] = ()

    if TYPE_CHECKING:  # what callers may pass; stored in one normal form

        def __init__(
            self,
            concurrency: int = HANDS,
            heartbeat_timeout: float = SILENCE_SECONDS,
            keep_days: float | None = None,
            keep_events: int | None = KEEP_EVENTS,
            pace: Pace = ...,
            channels: Iterable[Channel] = (),
        ) -> None: ...

    def __post_init__(self) -> None:
        counted(self.concurrency, "concurrency")
        span(self.heartbeat_timeout, "heartbeat_timeout")
        if self.keep_days is not None:
            span_of_days(self.keep_days, "keep_days")
        whole(self.keep_events, "keep_events", least=1)
        of_type(self.pace, Pace, "pace takes Pace(...)")
        object.__setattr__(self, "channels", _channels(self.channels))

    @property
    def keep(self) -> int | None:
        """How long ended runs are kept, in microseconds; None for forever."""
        return None if self.keep_days is None else span_of_days(self.keep_days, "keep_days")


@dataclass(frozen=True, slots=True)
class System:
    """The sources of time and ids, the key that signs the journal, and the vault that encrypts provider keys.

    With `journal_key`, only processes that have the key can create valid event hashes: text of at least 16 characters,
    the same in every process that writes [default: REMIT_JOURNAL_KEY in the environment]. `prices` is the price list of
    models: `KnownPrices()` of `remit.adapters.prices`. By default that list is loaded when money is first limited, if
    the package is installed.

    Before the first write, the machine's clock is compared with the server's or with the newest event, and the write is
    refused if they differ by more than ten minutes; `check_clock=False`, or REMIT_CHECK_CLOCK=no in the environment,
    skips this check.

    `vault` encrypts a workspace's own provider keys. By default it is created from the master keys in REMIT_MASTER_KEY,
    or in the file that REMIT_MASTER_KEY_FILE names, when keys are first used.

    `embed` turns a list of texts into a list of vectors, as a plain or an async function: agents are then found by
    meaning as well as by words. If it raises, the task that searches fails.

    `in_file` says that the team is a file: errors then name settings as the file does.
    """

    clock: Clock = field(default_factory=SystemClock)
    ids: Ids = field(default_factory=TimedIds)
    journal_key: str = field(default="", repr=False)
    prices: Prices | None = None
    check_clock: bool = True
    vault: Vault | None = field(default=None, repr=False)
    embed: Embed | None = None
    in_file: bool = False

    def __post_init__(self) -> None:
        of_type(self.check_clock, bool, "check_clock is True or False")
        _has(self.clock, ("now", "ticks", "call_later"), "clock takes a clock")
        _has(self.ids, ("new", "chance"), "ids takes what makes ids")
        if self.journal_key:
            SealKey(self.journal_key)  # checked here, not at the first use
        if self.vault is not None and not all(callable(getattr(self.vault, name, None)) for name in ("seal", "open")):
            kind = type(self.vault).__name__  # do not show the value: it may be a master key
            raise BadInput(f"vault takes a vault with seal, open and newest, not a value of type {kind}")
        if self.embed is not None:
            callable_(self.embed, "embed is a function from a list of texts to a list of vectors")


def _channels(given: object) -> tuple[Channel, ...]:
    """Return the channels, checked; each is known by its unique name, in the journal too."""
    what = "channels is a list of channels, such as Webhook(...)"
    channels = items(given, what)
    names: set[str] = set()
    for channel in channels:
        name = getattr(channel, "name", None)
        if not any(callable(getattr(channel, verb, None)) for verb in ("tell", "listen")):
            raise BadInput(f"{what}, each with `tell` or `listen`, not a value of type {type(channel).__name__}")
        if not isinstance(name, str) or not _CHANNEL.fullmatch(name):
            raise BadInput(f"a channel's name is up to 32 of a-z, 0-9, dot, dash and underscore, not {shown(name)}")
        if name in names:
            raise BadInput(f"two channels are named '{name}'; give one of them a name of its own, with name=...")
        names.add(name)
    return tuple(cast("list[Channel]", channels))


def _has(given: object, names: tuple[str, ...], what: str) -> None:
    if not all(callable(getattr(given, name, None)) for name in names):
        raise BadInput(f"{what} with {', '.join(names)}, not {shown(given)}")


class EngineSettings(NamedTuple):
    """The owner's settings of an engine."""

    policy: Policy
    serving: Serving
    system: System
    schemas: Callable[[], Schemas]
    redaction: Redaction
    vault: Callable[[], Vault]
    prices: Callable[[], Prices | None]
    calendar: Callable[[], Calendar]
    deps: object = None  # for agents, as `turn.deps`
