"""What the engine needs from outside, as protocols: a clock, ids, and a store."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from remit.core.breaker import Breaker
from remit.core.entry import Entry
from remit.core.events import Event, Fact
from remit.core.facts import Message
from remit.core.projection import Tables
from remit.core.scope import Scope
from remit.core.values import Json

T = TypeVar("T")

# The places where a crash is worth trying. `Store` implementations call their fault hook with these names.
FAULTS: Final = (
    "store.begin",
    "store.decided",
    "store.appended",
    "store.projected",
    "store.before-commit",
    "store.after-commit",
    "store.before-answer",
)

Fault: TypeAlias = Callable[[str], None]


def no_fault(_name: str) -> None:
    """What a fault hook does outside of tests."""


class Clock(Protocol):
    def now(self) -> int:
        """Microseconds since 1970."""
        ...

    def ticks(self) -> int:
        """Microseconds since some moment, which nobody can set back."""
        ...


class Ids(Protocol):
    def new(self) -> str:
        """An id that no one has had before: sixteen of a-z and 2-7."""
        ...

    def chance(self) -> float:
        """A number from 0 up to 1, to spread out what would otherwise happen all at once."""
        ...


@dataclass(frozen=True, slots=True)
class Record:
    """A task as the table has it; its text, bounds and result are in the events `began` and `ended`.

    `way` is how it was asked for: delegate, submit or spawn. `lead` is what the engine itself does in its holder's
    place. `worker` has it, under `fence`; `attempt` counts how often it was claimed, `tries` how often it failed and
    was put back. `twin` is what another asking for the same would have too.
    """

    id: str
    run: str
    parent: str
    session: str
    holder: str
    status: str
    way: str
    lead: str
    worker: str
    fence: int
    attempt: int
    tries: int
    asked_at: int
    ready_at: int
    claimed_at: int | None
    until: int
    ended_at: int | None
    began: int
    ended: int | None
    twin: str


class Standing(NamedTuple):
    """What a write in the name of a task is checked against."""

    status: str
    fence: int


class Beat(NamedTuple):
    """A process saying that it is there. `home` is where it runs, `count` grows with each beat; 0 says that it left.
    `hands` is how many tasks from the queue it carries out at a time; a process that only runs something has none.

    It is not history, so it is the one thing that is written and is not an event.
    """

    worker: str
    home: str
    count: int  # pyright: ignore[reportIncompatibleMethodOverride] - nobody counts in a beat
    hands: int = 0


@dataclass(frozen=True, slots=True)
class Which:
    """Which tasks to list: all conditions hold together, newest first. `state` may be `open`, for all that have not
    ended."""

    session: str | None = None
    agent: str | None = None
    state: str | None = None
    parent: str | None = None
    run: str | None = None
    limit: int = 100


@dataclass(frozen=True, slots=True)
class RunLine:
    """One run as a list shows it."""

    record: Record
    task: str
    tasks: int
    refused: int


@dataclass(frozen=True, slots=True)
class Span:
    """Which events to read: all conditions hold together, in order of `seq`."""

    run: str | None = None
    session: str | None = None
    agent: str | None = None
    since: int | None = None
    until: int | None = None
    after: int = 0
    limit: int = 1_000_000


class View(Protocol):
    """Reads within one workspace. Expired entries are returned too: whether one is alive is a rule, not a query."""

    def standing(self, task: str) -> Standing | None: ...
    def record(self, task: str) -> Record | None: ...
    def event(self, seq: int) -> Event | None: ...
    def done(self, op: str) -> tuple[Json] | None:
        """What an operation answered, if it has happened."""
        ...

    def running(self, holder: str, now: int) -> int:
        """How many tasks this agent works on; one that waits for another task is not worked on."""
        ...

    def working(self) -> int:
        """How many tasks from the queue are being worked on in the workspace."""
        ...

    def resuming(self, holder: str) -> int:
        """How many tasks of an agent, or of any (`*`), have waited for another and want to go on."""
        ...

    def queues(self) -> list[str]:
        """The agents that have something pending."""
        ...

    def due(self, holder: str, worker: str, now: int, limit: int) -> list[Record]:
        """What this worker could claim for that agent, oldest first."""
        ...

    def next_due(self, now: int) -> int | None:
        """When something will be due that is not yet."""
        ...

    def below(self, task: str) -> list[Record]:
        """The task and everything under it that has not ended, from the top down."""
        ...

    def spawned(self, parent: str) -> int:
        """How many of those it spawned have not ended."""
        ...

    def twins(self, twin: str, since: int) -> list[Record]: ...
    def late(self, now: int, limit: int) -> list[Record]:
        """What is still pending although its time is up."""
        ...

    def held(self, worker: str) -> list[Record]:
        """What a worker has and has not ended."""
        ...

    def cancelling(self, worker: str) -> list[str]:
        """What someone wants this worker to stop."""
        ...

    def tasks(self, which: Which) -> list[tuple[Record, str]]:
        """Tasks with their text."""
        ...

    def orphans(self, limit: int) -> list[Message]:
        """Announcements whose asker ended before it could read them."""
        ...

    def old(self, before: int, limit: int) -> list[str]:
        """Runs that ended before then."""
        ...

    def of_run(self, run: str) -> list[tuple[str, str, int | None]]:
        """Every task of a run: its id, its state and when it ended."""
        ...

    def workers(self) -> list[Beat]: ...
    def runs(self, limit: int) -> list[RunLine]: ...
    def ids_like(self, start: str, limit: int) -> list[str]: ...
    def breaker(self, name: str) -> Breaker: ...
    def breakers(self) -> list[tuple[str, Breaker, int]]: ...
    def entry(self, namespace: str, key: str) -> Entry | None: ...
    def recent(self, scope: Scope, now: int, limit: int) -> list[Entry]: ...
    def by_key(self, scope: Scope, now: int, limit: int) -> list[Entry]: ...
    def expired(self, now: int, limit: int) -> list[tuple[str, str]]: ...
    def namespaces(self, now: int) -> list[tuple[str, int]]: ...
    def waiting(self, session: str, agent: str, task: str, limit: int) -> list[Message]:
        """Messages for this agent, and announcements for this task."""
        ...

    def events(self, span: Span) -> list[Event]: ...
    def tables(self) -> Tables: ...


class Decision(NamedTuple, Generic[T]):
    """What a transaction decided: an answer, which must be JSON, and the facts that make it so."""

    answer: T
    facts: Sequence[Fact] = ()
    beat: Beat | None = None


Decide: TypeAlias = Callable[[View], Decision[T]]


class Wants(NamedTuple):
    """What a decision will ask its view for, as far as that is known beforehand: a store that is far away fetches it
    for many decisions at once."""

    standings: tuple[str, ...] = ()
    twins: tuple[str, ...] = ()


NOTHING: Final = Wants()
Sink: TypeAlias = Callable[[Sequence[Event]], None]


class Store(Protocol):
    """One workspace's part of a database. There is no query that could forget the workspace."""

    @property
    def workspace(self) -> str: ...

    async def tx(self, op: str, decide: Decide[T], wants: Wants = NOTHING) -> T:
        """The only way to change anything: read, decide, append facts; all of it commits, or nothing does.

        The same operation id gives the same answer again and changes nothing a second time. `decide` may be called
        more than once before it commits, so it reads from the view and touches nothing else.
        """
        ...

    async def read(self, look: Callable[[View], T]) -> T:
        """Sees what is committed."""
        ...

    def subscribe(self, sink: Sink) -> Callable[[], None]:
        """Feeds committed events to `sink`, in order; gives back the way to stop."""
        ...

    def listen(self, ring: Callable[[], None]) -> Callable[[], None]:
        """Calls `ring` on the loop's thread soon after another process has changed something; gives back the way to
        stop. It may ring for nothing."""
        ...


class Dispatcher(Protocol):
    """What wakes a worker where listening to the store does not suffice."""

    async def serve(self, due: Callable[[], Awaitable[None]]) -> None:
        """Calls `due` whenever there may be something to claim, until it is cancelled."""
        ...


class Database(Protocol):
    """Where stores live. `lasting` says whether what is in it outlives the process."""

    @property
    def lasting(self) -> bool: ...
    def store(self, workspace: str) -> Store: ...
    def dispatcher(self, workspace: str) -> Dispatcher | None: ...
    def workspaces(self) -> list[str]: ...
    def faulty(self) -> list[str]:
        """What the database itself finds wrong with its file."""
        ...

    def close(self) -> None: ...
