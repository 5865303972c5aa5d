"""The ledger: who may spend how much, what is held for calls under way, and what was spent.

Money is in leases. The account is the lease that the owner grants; a `carve` is set aside out of others, a `cap` only
says how much at most goes through it. Tokens are counted in the same way, as a unit of their own. At every moment
`available + reserved + lent + spent = granted` holds for each lease, and none of them is negative.

A task spends along a path. Its first line is the leases that each charge moves, from the task's own up to the first
that has money of its own; the lines behind it are where that money came from. `moves` says what an event does to the
leases: the tables are written by it, and so is the `Book` in which one decision looks ahead.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple, TypeAlias, cast

from remit.core.credits import dollars
from remit.core.values import decode, encode

Unit = Literal["credits", "tokens"]
Kind = Literal["account", "carve", "cap"]
LeaseState = Literal["open", "closing", "frozen"]
Line: TypeAlias = tuple[str, ...]
Path: TypeAlias = tuple[Line, ...]
Purse: TypeAlias = Mapping[Unit, Path]
Amounts: TypeAlias = Mapping[Unit, int]

UNITS: Final[tuple[Unit, ...]] = ("credits", "tokens")
ACCOUNT: Final = "account"
NO_PURSE: Final[Purse] = {}


class Lease(NamedTuple):
    """A share that may be spent. `users` are tasks from the queue that share it and may outlive its owner, and caps
    under it. `closing` says that its owner has ended; it goes when nobody uses it any more."""

    id: str
    unit: Unit
    kind: Kind
    above: Line
    granted: int
    available: int
    reserved: int
    lent: int
    spent: int
    overrun: int
    users: int
    state: LeaseState

    @property
    def is_idle(self) -> bool:
        return not (self.users or self.lent or self.reserved)

    @property
    def is_balanced(self) -> bool:
        """Whether what is available, reserved, lent and spent comes to what was granted, and nothing is negative."""
        parts = self[5:9]
        return sum(parts) == self.granted and min(parts) >= 0 and self.overrun >= 0 and self.users >= 0

    def moved(self, move: "LeaseMove") -> "Lease":
        id_, unit, kind, above, granted, available, reserved, lent, spent, overrun, users, state = self
        return Lease(
            id_,
            unit,
            kind,
            above,
            granted + move.granted,
            available + move.available,
            reserved + move.reserved,
            lent + move.lent,
            spent + move.spent,
            overrun + move.overrun,
            users + move.users,
            state,
        )


class LeaseMove(NamedTuple):
    """What is added to the figures of one lease."""

    lease: str
    unit: Unit
    granted: int = 0
    available: int = 0
    reserved: int = 0
    lent: int = 0
    spent: int = 0
    overrun: int = 0
    users: int = 0


class Hold(NamedTuple):
    """What is held for one call: `held` before it leaves, `started` from then on, `uncertain` if nobody said what it
    cost. `until` is when it expires if it has not started; `hour` is when it was charged. `billed` is a bill, as JSON,
    of which not all was charged: it was more than the lease had."""

    id: str
    task: str
    run: str
    session: str
    agent: str
    fence: int
    state: str
    credits: int
    tokens: int
    purse: str
    until: int
    hour: str
    why: str
    model: str
    own_key: str
    billed: str = ""

    @property
    def claimed(self) -> dict[Unit, int]:
        """The bill that was not believed, by unit; nothing if there is none."""
        return cast("dict[Unit, int]", decode(self.billed)) if self.billed else {}

    @property
    def amounts(self) -> dict[Unit, int]:
        amounts: tuple[tuple[Unit, int], ...] = (("credits", self.credits), ("tokens", self.tokens))
        return {unit: amount for unit, amount in amounts if amount}


class LeaseOpening(NamedTuple):
    """A lease that begins with a task."""

    unit: Unit
    kind: Kind
    amount: int


# -- purses ---------------------------------------------------------------------------------------------------


def first_line(path: Path) -> Line:
    """Give the leases that a charge moves."""
    return path[0] if path else ()


def shared(path: Path, opening: LeaseOpening | None, lease: str) -> Path:
    """Give the path of a task: that of its asker, or one that begins with a lease of its own."""
    if opening is None:
        return path
    if opening.kind == "cap":
        return ((lease, *first_line(path)), *path[1:])
    return ((lease,), *path)


def purse_data(purse: Purse) -> dict[str, Any]:
    """Write a purse as JSON."""
    return {unit: [[*line] for line in path] for unit, path in purse.items()}


def purse_text(data: Mapping[str, Any]) -> str:
    """Write what `purse_data` gave as text; the calls of a task are paid along the same paths again and again."""
    return _text(tuple([(unit, tuple([tuple(line) for line in path])) for unit, path in data.items()]))


@lru_cache(maxsize=1024)
def _text(paths: tuple[tuple[str, Path], ...]) -> str:
    return encode(dict(paths))


def purse_restored(data: Mapping[str, Any]) -> Purse:
    """Read a purse as `purse_data` wrote it."""
    return {cast("Unit", unit): tuple(tuple(line) for line in path) for unit, path in data.items()}


def owned(purse: Purse, task: str) -> list[tuple[str, Unit]]:
    """List the leases that a task opened itself, the latest first."""
    own = f"{task}."
    return [
        (lease, unit)
        for unit, path in purse.items()
        for lease in first_line(path)
        if lease == task or lease.startswith(own)
    ]


# -- words --------------------------------------------------------------------------------------------------------


def out_of(unit: Unit, amount: int, most: int) -> str:
    """Write how much of something there is."""
    return f"{dollars(amount)} of {dollars(most)}" if unit == "credits" else f"{amount:,} of {most:,} tokens"


def called(lease: Lease, run: str) -> str:
    """Name a lease as whoever spends it in this run knows it."""
    if lease.kind == "account":
        return "the account"
    if lease.id == run:
        return "this run"
    return "this task" if lease.kind == "carve" else "this part of the run"


def spelled(unit: Unit, amount: int) -> str:
    """Write an amount with its unit."""
    return dollars(amount) if unit == "credits" else f"{amount:,} tokens"
