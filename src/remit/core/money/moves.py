"""What each event does to the figures of leases. The tables are written by it, and so is the book in which one decision
looks ahead: nothing else moves money."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, cast

from remit.core.events import Event, Unsealed
from remit.core.money.leases import ACCOUNT, Kind, Lease, LeaseMove, Unit, first_line


def _placed(path: Sequence[Sequence[str]], unit: Unit, amount: int) -> list[LeaseMove]:
    first, *rest = path[0] if path else ("",)
    if not first:
        return []
    own = LeaseMove(first, unit, available=-amount, reserved=amount)
    return [own, *(LeaseMove(lease, unit, available=-amount, lent=amount) for lease in rest)]


def _resolved(path: Sequence[Sequence[str]], unit: Unit, amount: int, cost: int) -> list[LeaseMove]:
    """Take the hold back: what was spent of it is spent, the rest is available again."""
    first, *rest = path[0] if path else ("",)
    if not first:
        return []
    back = amount - cost
    own = LeaseMove(first, unit, available=back, reserved=-amount, spent=cost)
    return [own, *(LeaseMove(lease, unit, available=back, lent=-amount, spent=cost) for lease in rest)]


def _charged(unit: Unit, steps: Iterable[Sequence[Any]]) -> list[LeaseMove]:
    """Charge leases what they have of it: `steps` has what each gave, and what it lacked."""
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
        return []  # the row begins with it
    return [LeaseMove(ACCOUNT, data["unit"], granted=data["amount"], available=data["amount"])]


def _opened(data: Mapping[str, Any]) -> list[LeaseMove]:
    """Take what is set aside out of the lines above, and count caps and sharers as users of what they draw on."""
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
    """A handoff that narrows the money opens a cap."""
    return _opened(data) if "opens" in data else []


def closed_moves(data: Mapping[str, Any]) -> list[LeaseMove]:
    """Leave what was shared, and give back what is left of leases that close."""
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


def moves(event: Event | Unsealed) -> list[LeaseMove]:
    """Tell what an event adds to the figures of leases that are there before it."""
    found = MOVES.get(event.kind)
    return found(event.data) if found is not None else []


def opened_by(event: Event | Unsealed) -> list[Lease]:
    """List the leases that begin with an event."""
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
