"""What the engine needs from outside, as protocols: a clock, ids, and a store."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from remit.core.breaker import Breaker
from remit.core.entry import Entry
from remit.core.events import Event, Fact
from remit.core.facts import Message
from remit.core.projection import Tables
from remit.core.scope import Scope

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


class Ids(Protocol):
    def new(self) -> str:
        """An id that no one has had before: sixteen of a-z and 2-7."""
        ...


@dataclass(frozen=True, slots=True)
class Record:
    """A task as the table has it; its text, bounds and result are in the events `began` and `ended`."""

    id: str
    run: str
    parent: str
    session: str
    holder: str
    status: str
    started_at: int
    until: int
    ended_at: int | None
    began: int
    ended: int | None


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

    def status(self, task: str) -> str | None: ...
    def record(self, task: str) -> Record | None: ...
    def running(self, holder: str, now: int) -> int: ...
    def runs(self, limit: int) -> list[RunLine]: ...
    def ids_like(self, start: str, limit: int) -> list[str]: ...
    def breaker(self, name: str) -> Breaker: ...
    def breakers(self) -> list[tuple[str, Breaker, int]]: ...
    def entry(self, namespace: str, key: str) -> Entry | None: ...
    def recent(self, scope: Scope, now: int, limit: int) -> list[Entry]: ...
    def by_key(self, scope: Scope, now: int, limit: int) -> list[Entry]: ...
    def expired(self, now: int, limit: int) -> list[tuple[str, str]]: ...
    def namespaces(self, now: int) -> list[tuple[str, int]]: ...
    def waiting(self, session: str, agent: str, limit: int) -> list[Message]: ...
    def events(self, span: Span) -> list[Event]: ...
    def tables(self) -> Tables: ...


class Decision(NamedTuple, Generic[T]):
    """What a transaction decided: an answer, which must be JSON, and the facts that make it so."""

    answer: T
    facts: Sequence[Fact] = ()


Decide: TypeAlias = Callable[[View], Decision[T]]
Sink: TypeAlias = Callable[[Sequence[Event]], None]


class Store(Protocol):
    """One workspace's part of a database. There is no query that could forget the workspace."""

    @property
    def workspace(self) -> str: ...

    async def tx(self, op: str, decide: Decide[T]) -> T:
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


class Database(Protocol):
    """Where stores live."""

    def store(self, workspace: str) -> Store: ...
    def workspaces(self) -> list[str]: ...
    def faulty(self) -> list[str]:
        """What the database itself finds wrong with its file."""
        ...

    def close(self) -> None: ...
