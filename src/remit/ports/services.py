"""Services that the engine uses: one clock for the time and for every timer, a source of ids, a calendar for schedules,
model prices, the vault, which encrypts provider keys so that the database alone reveals none, and channels.

A channel delivers questions to people (`tell`), or receives their answers (`listen`), or both. Its exceptions are
logged and recorded, so they must not contain secrets.
"""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from remit.core.prices import Usage
from remit.core.question import Inquiry, Reply
from remit.core.records import NamedTuple
from remit.core.secret import Secret

# -- time and ids --------------------------------------------------------------------------------------------


class Timer(Protocol):
    """A pending call that can be cancelled."""

    def cancel(self) -> None: ...


class Clock(Protocol):
    """The time, and timers. Code that waits for time to pass uses the clock and never the event loop, so that a test's
    clock controls all of it."""

    def now(self) -> int:
        """Return the time in microseconds since 1970."""
        ...

    def ticks(self) -> int:
        """Return a monotonic time in microseconds that counts while this process can run. Time in which the machine
        sleeps or the process is stopped need not count."""
        ...

    def call_later(self, seconds: float, call: Callable[[], None]) -> Timer:
        """Call this function on the running loop after that many seconds."""
        ...


class Ids(Protocol):
    def new(self) -> str:
        """Return a new unique id: sixteen characters of a-z and 2-7."""
        ...

    def chance(self) -> float:
        """Return a random number from 0 up to 1, for jitter."""
        ...


class Calendar(Protocol):
    """The planned times of cron expressions, in microseconds since 1970."""

    def next_after(self, cron: str, zone: str, after: int) -> int | None:
        """Return the first planned time after a moment, or None if there is none. Raise `BadInput` for an invalid
        expression and for an unknown time zone."""
        ...

    def latest(self, cron: str, zone: str, first: int, now: int, most: int) -> list[int]:
        """Return the planned times from `first` to `now`, both included, in order; the latest `most` of them."""
        ...


# -- prices --------------------------------------------------------------------------------------------------


class Prices(Protocol):
    """The price list: the cost of a model's tokens, in millionths of a US dollar, rounded up. None means that the price
    is unknown, never that it is zero."""

    def cost(self, model: str, usage: Usage) -> int | None:
        """Return the cost of this usage, or None if the price is unknown."""
        ...

    def worst(self, model: str, input_tokens: int, max_output: int) -> int | None:
        """Return the highest possible cost of one try of a call, or None if the price is unknown."""
        ...


# -- the vault -----------------------------------------------------------------------------------------------


class Sealed(NamedTuple):
    """An encrypted secret; `key_id` identifies the master key."""

    key_id: str
    text: str


class KeyInfo(NamedTuple):
    """The visible facts about a stored provider key: its name, its master key, and when it was set."""

    name: str
    key_id: str
    set_at: int


class KeyRow(NamedTuple):
    """A stored provider key, encrypted."""

    name: str
    sealed: Sealed
    set_at: int


class KeyChange(NamedTuple):
    """Which keys are stored from now on, and which are deleted.

    Replaced and deleted keys are gone for good, so the change is no event. It is written together with an event that
    says who made it.
    """

    puts: Sequence[KeyRow] = ()
    drops: Sequence[str] = ()


class Vault(Protocol):
    """Encrypts and decrypts secrets. A secret that was encrypted for a workspace and a name opens only there."""

    @property
    def newest(self) -> str:
        """The id of the master key that encrypts new secrets."""
        ...

    def seal(self, workspace: str, name: str, secret: Secret) -> Sealed: ...
    def open(self, workspace: str, name: str, sealed: Sealed) -> Secret:
        """Return the secret that was encrypted for this workspace and name. Raise `StoreError` if it cannot be
        decrypted."""
        ...


# -- channels ------------------------------------------------------------------------------------------------


class Down(Exception):
    """The channel is not available now. remit retries, after `retry_after` seconds if the channel gave a time."""

    def __init__(self, retry_after: float | None = None, why: str = "it cannot be reached") -> None:
        super().__init__(why)
        self.retry_after = retry_after


class Undeliverable(Exception):
    """The channel rejects this question for good; `why` is shown to people."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class Desk(Protocol):
    """Receives answers from a channel."""

    @property
    def workspace(self) -> str: ...

    async def look(self, question: str) -> Inquiry:
        """Return a question, open or decided. Raise `NotFound` if there is none."""
        ...

    async def answer(self, question: str, reply: Reply) -> None:
        """Record an answer: approved, rejected or answered. Raise `Conflict`, with the name of the first person, if the
        answer is not the first or comes too late. Raise `BadInput` if it does not fit the question."""
        ...


class Teller(Protocol):
    """A channel that delivers questions to people."""

    @property
    def name(self) -> str: ...

    async def tell(self, workspace: str, inquiry: Inquiry) -> str:
        """Deliver a question. Return the channel's own id for it.

        A question may be delivered more than once, always with the same `inquiry.id`. Raise `Down` to be retried, and
        `Undeliverable` if a retry is useless.
        """
        ...


class Hearer(Protocol):
    """A channel that receives answers."""

    @property
    def name(self) -> str: ...

    async def listen(self, desk: Desk) -> None:
        """Hand in answers at the desk until cancelled. Raise `Down` to be called again later."""
        ...


Channel: TypeAlias = Teller | Hearer
