"""The store: all data of a workspace, and the only way to change it."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, Self, TypeAlias, TypeVar

from remit.core.events import Event, SealKey, Unsealed
from remit.core.records import NamedTuple
from remit.core.values import Json
from remit.ports.services import KeyChange
from remit.ports.views import AccessUse, Beat, Tallied, View

if TYPE_CHECKING:
    from remit.ports.contents import Contents
    from remit.ports.models import Listeners, TextChunk

T = TypeVar("T")

# Points at which tests inject crashes. `Store` implementations call their fault hook with these names.
FAULTS: Final = (
    "store.begin",
    "store.decided",
    "store.appended",
    "store.projected",
    "store.before-commit",
    "store.after-commit",
    "store.before-answer",
)

Fault: TypeAlias = Callable[[str], object]

# The fault hook outside of tests. Every write calls it several times, so it is a builtin, which costs next to nothing.
no_fault: Final[Fault] = bool


class DoneBefore(NamedTuple):
    """An operation to record as done without doing it, because it was done under another id: its new id, its answer,
    and the event that is recorded for it."""

    op: str
    answer: Json
    event: Unsealed


class Decision(NamedTuple, Generic[T]):
    """The result of a decision function.

    `answer` must be JSON and is recorded: the same operation returns it again. `events` are the changes. `aside` goes
    to the caller in this process and is not recorded; it is None if the operation had been done before. `beat` and
    `tally` are written in the same transaction without an event. So is a change of provider keys in `besides`, but only
    together with events that report it; `besides` can also be operations to record as done.
    """

    answer: T
    events: Sequence[Unsealed] = ()
    beat: Beat | AccessUse | None = None
    aside: Any = None
    tally: Tallied | None = None
    besides: KeyChange | Sequence[DoneBefore] | None = None


class Decided(NamedTuple, Generic[T]):
    """The result of a transaction: the recorded answer, and the decision's `aside`."""

    answer: T
    aside: Any = None


Decide: TypeAlias = Callable[[View], Decision[T]]


class Wants(NamedTuple):
    """The reads that a decision will make, as far as they are known in advance: a remote store fetches them for many
    decisions in one round trip."""

    standings: tuple[str, ...] = ()
    same_requests: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()
    used_keys: tuple[str, ...] = ()
    leases: tuple[str, ...] = ()
    disputes: tuple[str, ...] = ()  # of these agents


NOTHING: Final = Wants()
Sink: TypeAlias = Callable[[Sequence[Event]], None]


class Store(Protocol):
    """One workspace's part of a database. Every query is bound to that workspace."""

    @property
    def workspace(self) -> str: ...

    def tx(self, op: str, decide: Decide[T], wants: Wants = NOTHING) -> Awaitable[Decided[T]]:
        """Read, decide and append events: the only way to change anything. Everything commits, or nothing does.

        Return the answer, and the decision's `aside`: values that the caller needs and that are not recorded. A
        repeated operation id returns the recorded answer and changes nothing. `decide` may run more than once before it
        commits, so it must read from the view only and have no side effects.
        """
        ...

    async def read(self, look: Callable[[View], T]) -> T:
        """Run `look` on the committed data and return its result. It must be quick: other work in this process may wait
        for it."""
        ...

    async def browse(self, look: Callable[[View], T]) -> T:
        """Run a long `look` on a snapshot of the committed data, while other work continues. `look` may run on another
        thread, and again if it is interrupted, so it must read from the view only and have no side effects."""
        ...

    def subscribe(self, sink: Sink) -> Callable[[], None]:
        """Pass committed events to `sink`, in order. Return a function that stops it."""
        ...

    def listen(self, ring: Callable[[], None]) -> Callable[[], None]:
        """Call `ring` on the loop's thread soon after another process has changed something. It may ring without a
        change. Return a function that stops it."""
        ...


class Dispatcher(Protocol):
    """Wakes a worker, where listening to the store is not enough."""

    async def serve(self, due: Callable[[], Awaitable[None]]) -> None:
        """Call `due` whenever there may be a task to claim, until cancelled."""
        ...


class Pulse(Protocol):
    """Writes heartbeats from its own thread on its own connection, even while the event loop is blocked."""

    def write(self, beat: Beat) -> None:
        """Write a heartbeat and wait until it is committed. Open the connection if needed; after a failure, reopen it
        the next time."""
        ...

    def close(self) -> None:
        """Close the connection until the next heartbeat."""
        ...


class WordsLine(Protocol):
    """Streams the text of one workspace's models between processes. The text is not stored, and some may be lost."""

    def carry(self, ears: "Listeners") -> Callable[[], None]:
        """While another process listens, add a function to `ears` that sends it the streamed text of models in this
        process. Return a function that stops it."""
        ...

    def hear(self, hear: "Callable[[TextChunk], None]") -> Callable[[], None]:
        """Call `hear` with the streamed text of models in other processes, on another thread. Return a function that
        stops it."""
        ...


class WordsCarrier(Protocol):
    """A database that can also stream the text of models between processes. This is optional."""

    def words(self, workspace: str) -> WordsLine | None:
        """Return the stream of a workspace, or None if the text of its models stays in this process."""
        ...


class Database(Protocol):
    """A database of workspaces; each has a `Store`. `lasting` says whether the data outlives the process."""

    @property
    def lasting(self) -> bool: ...
    def store(self, workspace: str) -> Store: ...
    def contents(self, workspace: str) -> "Contents":
        """Return the storage of the contents of a workspace's artifacts."""
        ...

    def dispatcher(self, workspace: str) -> Dispatcher | None: ...
    def pulse(self, workspace: str) -> Pulse | None:
        """Return the writer of heartbeats, or None if no other process can see this database."""
        ...

    def server_time(self) -> int | None:
        """Return the server's time in microseconds since 1970, or None if there is no server, and so no other clock."""
        ...

    def workspaces(self) -> list[str]: ...
    async def opened_by(self, access: str) -> str | None:
        """Return the name of the workspace that has the access key of this id, or None if no workspace or two of them
        have it. This query reads all workspaces, because a key does not name its workspace."""
        ...

    @property
    def key(self) -> SealKey | None:
        """The key that signs its journals, or None."""
        ...

    def faulty(self) -> list[str]:
        """Return the problems of the database itself: damage, and deviations from the schema that remit created."""
        ...

    def remarks(self) -> list[str]:
        """Return harmless facts about the place of the database that an operator should know."""
        ...

    def advice(self) -> list[str]:
        """Return outside risks for the database, such as a library version with a known bug."""
        ...

    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *_: object) -> None: ...
