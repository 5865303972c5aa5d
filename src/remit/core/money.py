"""Money: leases (the budgets of tasks), the changes that events make to them, limits and prices."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, Literal, TypeAlias, cast

from remit.core.events import Event, Unsealed
from remit.core.prices import dollars
from remit.core.records import NamedTuple
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
    """A budget: an amount that may be spent. A "carve" is a reservation. `above` are the ids of the leases that it
    draws on. Each part of the granted amount is `available`, `reserved` by holds, `lent` to leases below it, or
    `spent`; `overrun` was spent in addition.

    `users` counts the queued tasks that share the lease and may outlive its owner, and the caps under it. "closing"
    says that its owner has ended; the lease closes when its last user ends. A "frozen" lease pays for nothing."""

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
        """Whether the available, reserved, lent and spent amounts add up to the granted amount, and none is
        negative."""
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
    """The amounts that are added to the figures of one lease."""

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
    """The money blocked for one call. `state` is "held" before the call is sent, "started" after that, "uncertain" if
    no cost was reported. `until` is when an unsent hold expires, in microseconds since 1970; `hour` is when it was
    charged, such as 2026-11-15T02, or "". `billed` is a bill, as JSON, that was higher than the lease and therefore
    charged in part. `person` started the run, if one is named."""

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
    person: str = ""

    @property
    def claimed(self) -> dict[Unit, int]:
        """The bill that was charged only in part, by unit; empty if there is none."""
        return cast("dict[Unit, int]", decode(self.billed)) if self.billed else {}

    @property
    def amounts(self) -> dict[Unit, int]:
        amounts: tuple[tuple[Unit, int], ...] = (("credits", self.credits), ("tokens", self.tokens))
        return {unit: amount for unit, amount in amounts if amount}


class LeaseOpening(NamedTuple):
    """A lease that opens with a task."""

    unit: Unit
    kind: Kind
    amount: int


# -- purses ---------------------------------------------------------------------------------------------------


def first_line(path: Path) -> Line:
    """Return the ids of the leases that a hold changes: the first line of a path, or no lease if the path is empty."""
    return path[0] if path else ()


def shared(path: Path, opening: LeaseOpening | None, lease: str) -> Path:
    """Return the path of a task: its asker's path, or one that starts with a lease of its own."""
    if opening is None:
        return path
    if opening.kind == "cap":
        return ((lease, *first_line(path)), *path[1:])
    return ((lease,), *path)


def purse_data(purse: Purse) -> dict[str, Any]:
    """Return a purse as JSON."""
    return {unit: [[*line] for line in path] for unit, path in purse.items()}


def purse_text(data: Mapping[str, Any]) -> str:
    """Return the result of `purse_data` as text. Cached, because the calls of a task use the same paths again and
    again."""
    return _text(tuple([(unit, tuple([tuple(line) for line in path])) for unit, path in data.items()]))


@lru_cache(maxsize=1024)
def _text(paths: tuple[tuple[str, Path], ...]) -> str:
    return encode(dict(paths))


def purse_restored(data: Mapping[str, Any]) -> Purse:
    """Return the purse that `purse_data` wrote."""
    return {cast("Unit", unit): tuple(tuple(line) for line in path) for unit, path in data.items()}


def owned(purse: Purse, task: str) -> list[tuple[str, Unit]]:
    """Return the leases that a task opened itself, the latest first."""
    own = f"{task}."
    return [
        (lease, unit)
        for unit, path in purse.items()
        for lease in first_line(path)
        if lease == task or lease.startswith(own)
    ]


# -- words --------------------------------------------------------------------------------------------------------


def out_of(unit: Unit, amount: int, most: int) -> str:
    """Return an amount and its maximum as text."""
    return f"{dollars(amount)} of {dollars(most)}" if unit == "credits" else f"{amount:,} of {most:,} tokens"


def lease_name(lease: Lease, run: str) -> str:
    """Return the name of a lease as the agents of this run know it."""
    if lease.kind == "account":
        return "the account"
    if lease.id == run:
        return "this run"
    return "this task" if lease.kind == "carve" else "this part of the run"


def amount_text(unit: Unit, amount: int) -> str:
    """Return an amount with its unit as text."""
    return dollars(amount) if unit == "credits" else f"{amount:,} tokens"


def _placed(path: Sequence[Sequence[str]], unit: Unit, amount: int) -> list[LeaseMove]:
    first, *rest = path[0] if path else ("",)
    if not first:
        return []
    own = LeaseMove(first, unit, available=-amount, reserved=amount)
    return [own, *(LeaseMove(lease, unit, available=-amount, lent=amount) for lease in rest)]


def _resolved(path: Sequence[Sequence[str]], unit: Unit, amount: int, cost: int) -> list[LeaseMove]:
    """Return the moves that end a hold: the cost is spent, the rest is available again."""
    first, *rest = path[0] if path else ("",)
    if not first:
        return []
    back = amount - cost
    own = LeaseMove(first, unit, available=back, reserved=-amount, spent=cost)
    return [own, *(LeaseMove(lease, unit, available=back, lent=-amount, spent=cost) for lease in rest)]


def _charged(unit: Unit, steps: Iterable[Sequence[Any]]) -> list[LeaseMove]:
    """Return the moves of a charge: `steps` has the amount that each lease pays, and the amount it lacks."""
    return [LeaseMove(lease, unit, available=-taken, spent=taken, overrun=lacked) for lease, taken, lacked in steps]


def _hold_placed(data: Mapping[str, Any]) -> list[LeaseMove]:
    lines = data["purse"]
    return [move for unit, x in data["amounts"].items() for move in _placed(lines.get(unit, ()), unit, x)]


def _hold_resolved(data: Mapping[str, Any]) -> list[LeaseMove]:
    lines, costs = data["purse"], data.get("costs", {})
    moves: list[LeaseMove] = []
    for unit, amount in data["amounts"].items():
        moves += _resolved(lines.get(unit, ()), unit, amount, min(amount, costs.get(unit, 0)))
    return [*moves, *_spent(data)]


def _spent(data: Mapping[str, Any]) -> list[LeaseMove]:
    return [move for unit, steps in data.get("steps", {}).items() for move in _charged(unit, steps)]


def _reconciled(data: Mapping[str, Any]) -> list[LeaseMove]:
    back = [
        LeaseMove(lease, unit, available=amount, spent=-amount)
        for unit, (amount, leases) in data.get("back", {}).items()
        for lease in leases
    ]
    return [*back, *_spent(data)]


def _granted(data: Mapping[str, Any]) -> list[LeaseMove]:
    if data.get("first"):
        return []  # this event creates the row
    return [LeaseMove(ACCOUNT, data["unit"], granted=data["amount"], available=data["amount"])]


def _raised(data: Mapping[str, Any]) -> list[LeaseMove]:
    unit = data["unit"]
    adds = [LeaseMove(lease, unit, granted=amount, available=amount) for lease, amount in data["adds"]]
    return [*adds, *(LeaseMove(lease, unit, available=-amount, lent=amount) for lease, amount in data["takes"])]


def _opened(data: Mapping[str, Any]) -> list[LeaseMove]:
    """Return the moves that take a reservation out of the leases above, and count caps and sharing tasks as users of
    the leases they draw on."""
    purse = data.get("purse")
    if not purse:
        return []
    moves: list[LeaseMove] = []
    opens = {unit: (kind, amount) for unit, kind, amount in data.get("opens", ())}
    shares = data.get("asked_how", "delegate") != "delegate"
    for unit, path in purse.items():
        kind, amount = opens.get(unit, ("", 0))
        if kind == "carve":
            moves += [LeaseMove(lease, unit, available=-amount, lent=amount) for lease in first_line(path[1:])]
        elif kind == "cap":
            moves += [LeaseMove(lease, unit, users=1) for lease in path[0][1:2] if lease != ACCOUNT]
        elif shares:
            moves += [LeaseMove(lease, unit, users=1) for lease in first_line(path)[:1] if lease != ACCOUNT]
    return moves


def _handed(data: Mapping[str, Any]) -> list[LeaseMove]:
    """Return the moves of a handoff: one that narrows the money opens a cap."""
    return _opened(data) if "opens" in data else []


def closed_moves(data: Mapping[str, Any]) -> list[LeaseMove]:
    """Return the moves of a task's end: it stops using shared leases, and the rest of closing leases is returned."""
    if "leaves" not in data and "closes" not in data:
        return []
    moves = [LeaseMove(lease, unit, users=-1) for lease, unit in data.get("leaves", ())]
    for closed in data.get("closes", ()):
        _, unit, kind, above, granted, spent, _ = closed
        if kind == "carve":
            back = granted - spent
            moves += [LeaseMove(lease, unit, available=back, lent=-granted, spent=spent) for lease in above]
        else:
            moves += [LeaseMove(lease, unit, users=-1) for lease in above[:1] if lease != ACCOUNT]
    return moves


MOVES: Final[dict[str, Callable[[Mapping[str, Any]], list[LeaseMove]]]] = {
    "account.granted": _granted,
    "lease.raised": _raised,
    "hold.placed": _hold_placed,
    "hold.settled": _hold_resolved,
    "hold.released": _hold_resolved,
    "hold.reconciled": _reconciled,
    "credits.spent": _spent,
    "tokens.used": _spent,
    "task.started": _opened,
    "task.submitted": _opened,
    "task.handed": _handed,
    "task.completed": closed_moves,
    "task.failed": closed_moves,
    "task.cancelled": closed_moves,
    "task.died": closed_moves,
}


# An event whose data has none of these keys moves no money. Most events of tasks have none.
MOVING: Final = frozenset(("adds", "amount", "amounts", "back", "closes", "leaves", "purse", "steps", "takes"))


def moves(event: Event | Unsealed) -> list[LeaseMove]:
    """Return the amounts that an event adds to existing leases."""
    found = MOVES.get(event.kind)
    return found(event.data) if found is not None else []


def opened_by(event: Event | Unsealed) -> list[Lease]:
    """Return the leases that open with an event."""
    data = event.data
    if event.kind == "account.granted":
        amount, unit = cast("int", data["amount"]), cast("Unit", data["unit"])
        if not data.get("first"):
            return []
        return [Lease(ACCOUNT, unit, "account", (), amount, amount, 0, 0, 0, 0, 0, "open")]
    opens = cast("list[tuple[Unit, Kind, int]]", data.get("opens", ()))
    return [
        _opening(cast("dict[str, list[list[str]]]", data["purse"])[unit], *one) for one in opens for unit in one[:1]
    ]


def _opening(path: list[list[str]], unit: Unit, kind: Kind, amount: int) -> Lease:
    own, *rest = path[0]
    above = tuple(rest) if kind == "cap" else tuple(path[1]) if len(path) > 1 else ()
    return Lease(own, unit, kind, above, amount, amount, 0, 0, 0, 0, 0, "open")


Find: TypeAlias = Callable[[str, Unit], Lease | None]


class Short(NamedTuple):
    """A lease that lacks the wanted amount. `for_good` says that waiting for other holds would not help."""

    lease: Lease
    wanted: int
    for_good: bool


class Book:
    """The leases after the events that a decision has made so far, so that later steps of the decision see the earlier
    ones."""

    __slots__ = ("_find", "_gone", "_known", "_noted")

    def __init__(self, find: Find) -> None:
        self._find = find
        self._known: dict[tuple[str, Unit], Lease] = {}
        self._gone: set[tuple[str, Unit]] = set()
        self._noted: list[Unsealed] = []

    def lease(self, id_: str, unit: Unit) -> Lease | None:
        key = (id_, unit)
        if key in self._gone:
            return None
        known = self._known.get(key)
        if known is None:
            known = self._find(id_, unit)
            if known is not None:
                self._known[key] = known
        return known

    def note(self, event: Unsealed) -> None:
        """Apply an event. An event that was applied before changes nothing."""
        if event.kind not in MOVES or any(one is event for one in self._noted):
            return
        self._noted.append(event)
        for opened in opened_by(event):
            self._known[opened.id, opened.unit] = opened
        self.move(moves(event))

    def moved_by(self, event: Unsealed) -> None:
        """Mark an event as applied, without applying it."""
        self._noted.append(event)

    def move(self, moves_: Iterable[LeaseMove]) -> None:
        for move in moves_:
            lease = self.lease(move.lease, move.unit)
            if lease is not None:
                self._known[move.lease, move.unit] = lease.moved(move)

    def shorts(self, path: Path, unit: Unit, wanted: int, own: int = 0) -> list[Short]:
        """Return the leases in the first line of a path that are frozen or have less than `wanted`. `own` is the amount
        in holds of the caller: they stay while it waits, so waiting does not make that amount available."""
        found: list[Short] = []
        for id_ in first_line(path):
            lease = self.lease(id_, unit)
            if lease is None or (lease.available >= wanted and lease.state != "frozen"):
                continue
            never = lease.state == "frozen" or wanted > lease.granted - lease.spent - own
            found.append(Short(lease, wanted, never))
        return found

    def half_used(self, run: str, path: Path, unit: Unit, wanted: int) -> Lease | None:
        """Return the lease of a run if it is on the path and a payment of `wanted` would leave less than half of it
        available, otherwise None. The caller then checks that the payment leaves the run's last share."""
        lease = self.lease(run, unit) if run in first_line(path) else None
        return lease if lease is not None and lease.available - wanted < lease.granted // 2 else None

    def charge(self, path: Path, unit: Unit, amount: int) -> list[list[Any]]:
        """Return how a bill without a hold is paid, as steps: the id of a lease, the amount that it pays, and the
        amount that it lacks, which is its overrun. The first line pays first, and the line above pays what its last
        lease lacks."""
        steps: list[list[Any]] = []
        rest = amount
        for line in path:
            # The leases of a line are caps on the same money, and the last one has the money: each records the same
            # charge.
            lacked = rest
            for id_ in line:
                lease = self.lease(id_, unit)
                if lease is None:
                    continue
                taken = min(lease.available, rest)
                lacked = rest - taken
                steps.append([id_, taken, lacked])
            rest = lacked
            if not rest:
                break
        return steps

    def close(self, id_: str, unit: Unit) -> list[list[Any]]:
        """Close a lease whose owner has ended, and the closing leases above that only waited for it. A lease in use
        stays open. Return a row for each closed lease, in order."""
        closed: list[list[Any]] = []
        waiting = [id_]
        while waiting:
            lease = self.lease(waiting.pop(), unit)
            if lease is None or not lease.is_idle or lease.kind == "account":
                continue
            if lease.id != id_ and lease.state != "closing":
                continue
            row = [lease.id, unit, lease.kind, [*lease.above], lease.granted, lease.spent, lease.overrun]
            closed.append(row)
            self._gone.add((lease.id, unit))
            self.move(closed_moves({"closes": [row]}))
            waiting += reversed(lease.above)
        return closed

    def owner_ended(self, id_: str, unit: Unit) -> None:
        """Mark a lease as closing: its owner has ended, and it closes with its last user."""
        lease = self.lease(id_, unit)
        if lease is not None:
            self._known[id_, unit] = lease._replace(state="closing")

    def leave(self, id_: str, unit: Unit) -> list[list[Any]]:
        """Remove one user from a lease. Return a row for each lease that closes with its last user, as `close` does."""
        self.move((LeaseMove(id_, unit, users=-1),))
        lease = self.lease(id_, unit)
        return self.close(id_, unit) if lease is not None and lease.state == "closing" else []


def figures(short: Short, run: str) -> str:
    """Return what a lease lacks, for a refusal: the wanted amount, and where its money went."""
    lease, unit = short.lease, short.lease.unit
    what = lease_name(lease, run)
    if lease.state == "frozen":
        over = amount_text(unit, lease.overrun)
        return f"{what} is frozen, because {over} more was spent than it had; the owner unfreezes it"
    aside = lease.reserved + lease.lent
    have = f"{amount_text(unit, lease.available)} left of {amount_text(unit, lease.granted)}"
    became = f"{amount_text(unit, lease.spent)} spent, {amount_text(unit, aside)} set aside"
    return f"{amount_text(unit, short.wanted)} wanted, {what} has {have} ({became})"


LEAST_OUTPUT: Final = 256  # tokens; with fewer, hardly any answer is complete


def fitting(cost: Callable[[int], int], left: int, most: int, least: int = LEAST_OUTPUT) -> int:
    """Return the number of output tokens that the money covers: `most`, or fewer, but at least as many as an answer
    needs. `cost` must not fall when the output grows."""
    least = min(least, most)
    if cost(most) <= left:
        return most
    if cost(least) > left:
        return least  # the payment is then refused, with the missing amount
    fits, too_many = least, most
    while too_many - fits > 1:
        middle = (fits + too_many) // 2
        if cost(middle) <= left:
            fits = middle
        else:
            too_many = middle
    return fits
