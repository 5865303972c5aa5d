"""The store: where everything is kept, and the one way to change it."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from remit.core.events import Event, SealKey, Unsealed
from remit.ports.looking import Beat, Tallied
from remit.ports.vault import KeyChange
from remit.ports.views import View

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
    """Do nothing: the fault hook outside of tests."""


class Decision(NamedTuple, Generic[T]):
    """What a transaction decided.

    `answer` must be JSON and is kept: the same operation asked for again gets it again. `events` make it so. `aside`
    goes back to whoever asked in this process and is not kept; it is None for an operation that had been done before.
    `beat` and `tally` are written along and are no events. So is `vault`, but only if there are events to tell of it.
    """

    answer: T
    events: Sequence[Unsealed] = ()
    beat: Beat | None = None
    aside: Any = None
    tally: Tallied | None = None
    vault: KeyChange | None = None


class Decided(NamedTuple, Generic[T]):
    """What came of a transaction: the kept answer, and what the decision gave back aside."""

    answer: T
    aside: Any = None


Decide: TypeAlias = Callable[[View], Decision[T]]


class Wants(NamedTuple):
    """What a decision will ask its view for, as far as that is known beforehand: a store that is far away fetches it
    for many decisions at once."""

    standings: tuple[str, ...] = ()
    same_requests: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()
    used_keys: tuple[str, ...] = ()
    leases: tuple[str, ...] = ()
    disputes: tuple[str, ...] = ()  # of these agents


NOTHING: Final = Wants()
Sink: TypeAlias = Callable[[Sequence[Event]], None]


class Store(Protocol):
    """One workspace's part of a database. There is no query that could forget the workspace."""

    @property
    def workspace(self) -> str: ...

    def tx(self, op: str, decide: Decide[T], wants: Wants = NOTHING) -> Awaitable[T]:
        """Read, decide, append events: the only way to change anything. All of it commits, or nothing does.

        The same operation id gives the same answer again and changes nothing a second time. `decide` may be called
        more than once before it commits, so it reads from the view and touches nothing else; what its caller needs
        besides the answer goes back as `aside`, through `transact`.
        """
        ...

    def transact(self, op: str, decide: Decide[T], wants: Wants = NOTHING) -> Awaitable[Decided[T]]:
        """Do the same, and give back what the decision said aside, too."""
        ...

    async def read(self, look: Callable[[View], T]) -> T:
        """Look at what is committed. It is quick, and whatever else there is to do in this process may wait for it."""
        ...

    async def browse(self, look: Callable[[View], T]) -> T:
        """Look at much of what is committed, as of one moment, while everything else goes on: `look` may run on another
        thread, and once more if it is interrupted, so it reads from the view and touches nothing else."""
        ...

    def subscribe(self, sink: Sink) -> Callable[[], None]:
        """Feed committed events to `sink`, in order; gives back the way to stop."""
        ...

    def listen(self, ring: Callable[[], None]) -> Callable[[], None]:
        """Call `ring` on the loop's thread soon after another process has changed something; gives back the way to
        stop. It may ring for nothing."""
        ...


class Dispatcher(Protocol):
    """What wakes a worker where listening to the store does not suffice."""

    async def serve(self, due: Callable[[], Awaitable[None]]) -> None:
        """Call `due` whenever there may be something to claim, until cancelled."""
        ...


class Pulse(Protocol):
    """Writes heartbeats on a connection of its own, from a thread of its own: also while all else here is busy."""

    def write(self, beat: Beat) -> None:
        """Write a heartbeat, and wait until it is written. Opens the connection if need be; one that failed is opened
        anew the next time."""
        ...

    def close(self) -> None:
        """Let go of the connection until the next heartbeat."""
        ...


class Database(Protocol):
    """Where stores live. `lasting` says whether what is in it outlives the process."""

    @property
    def lasting(self) -> bool: ...
    def store(self, workspace: str) -> Store: ...
    def dispatcher(self, workspace: str) -> Dispatcher | None: ...
    def pulse(self, workspace: str) -> Pulse | None:
        """Give what heartbeats are written with; None where nobody else could see them."""
        ...

    def server_time(self) -> int | None:
        """Tell what time it is on the server; None if there is none, and so no other clock than ours."""
        ...

    def workspaces(self) -> list[str]: ...
    @property
    def key(self) -> SealKey | None:
        """What its journals are sealed with, if anything was given."""
        ...

    def faulty(self) -> list[str]:
        """List what is wrong with the database itself: damage, and what is not as remit made it."""
        ...

    def remarks(self) -> list[str]:
        """List what is worth knowing about where it is kept, and breaks nothing."""
        ...

    def advice(self) -> list[str]:
        """List what may hurt it and is no fault of it, such as the version of a library."""
        ...

    def close(self) -> None: ...
