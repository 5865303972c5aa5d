"""What becomes of money when a task ends or is taken from whoever runs it: a part of the consequences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from remit.core.events import Unsealed
from remit.core.kinds import Place, ledger_event
from remit.core.money import ACCOUNT, UNITS, Book, Hold, Purse, Unit, first_line, owned, purse_data
from remit.core.record import Standing
from remit.engine.door.funding import purse_of
from remit.ports import View


def holds_resolve(view: View, event: Unsealed, standing: Standing | None) -> Sequence[Unsealed]:
    """End the calls that were under way: what had not left is released, what had is charged whole, as uncertain. The
    one who made the call cannot say any more what it cost."""
    if standing is None or not standing.ties:
        return ()
    return [resolved(hold, event.at, "its task ended or was taken over") for hold in view.holds(event.task)]


def resolution(hold: Hold) -> dict[str, Any]:
    """Tell of a hold what every event that ends it says."""
    purse = purse_data(purse_of(hold.purse))
    data: dict[str, Any] = {"hold": hold.id, "amounts": hold.amounts, "purse": purse, "why": hold.why}
    if hold.model:
        data["model"] = hold.model
    if hold.own_key:
        data["own_key"] = hold.own_key
    return data


def resolved(hold: Hold, now: int, why: str) -> Unsealed:
    """Make the event that ends a hold without a word from whoever made the call."""
    data = resolution(hold)
    place = Place(hold.run, hold.session, hold.task)
    if hold.state == "held":
        return ledger_event("hold.released", place, hold.agent, now, {**data, "because": why})
    data |= {"costs": hold.amounts, "uncertain": True}
    return ledger_event("hold.settled", place, hold.agent, now, data)


def leases_close(book: Book, event: Unsealed, standing: Standing | None) -> dict[str, Any]:
    """Tell which leases a task leaves and closes with its end, for the event that ends it."""
    if standing is None or not standing.purse:
        return {}
    purse = purse_of(standing.purse)
    own = owned(purse, event.task)
    closes: list[list[Any]] = []
    left = _shared(purse, event.task) if standing.asked_how != "delegate" else []
    for lease, unit in left:
        closes += book.leave(lease, unit)
    closing: list[list[str]] = []
    for lease, unit in own:
        closed = book.close(lease, unit)
        closes += closed
        if not closed and book.lease(lease, unit) is not None:
            book.owner_ended(lease, unit)
            closing.append([lease, unit])
    found = {"leaves": [[*one] for one in left], "closing": closing, "closes": closes}
    return {name: rows for name, rows in found.items() if rows}


def _shared(purse: Purse, task: str) -> list[tuple[str, Unit]]:
    """List what a task from the queue shares: of the units in which it began with no lease of its own, the first that
    is another's. What began when it was handed on stands before that, and is its own."""
    found: list[tuple[str, Unit]] = []
    mine = set(owned(purse, task))
    for unit in UNITS:
        others = [lease for lease in first_line(purse.get(unit, ())) if (lease, unit) not in mine]
        if others and others[0] != ACCOUNT and (task, unit) not in mine:
            found.append((others[0], unit))
    return found
