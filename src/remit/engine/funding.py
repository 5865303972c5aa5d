"""The money of a task: decided at admission, and resolved when the task ends or is taken from its process."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple, cast

from remit.core.events import Unsealed
from remit.core.kinds import FirstData, Place, ledger_event
from remit.core.lifecycle import TERMINAL, Record, Standing
from remit.core.money import (
    ACCOUNT,
    NO_PURSE,
    UNITS,
    Book,
    Hold,
    Lease,
    LeaseOpening,
    Path,
    Purse,
    Unit,
    called,
    figures,
    first_line,
    out_of,
    owned,
    purse_data,
    purse_restored,
    shared,
    spelled,
)
from remit.core.remit import Pass, Remit
from remit.core.values import decode
from remit.errors import Refused
from remit.ports import View


class Funding(NamedTuple):
    """The purse of a task that is to start, and the leases that open with it; `lacks` says why it cannot be funded, by
    which `rule`."""

    purse: Purse = NO_PURSE
    opens: tuple[LeaseOpening, ...] = ()
    lacks: str = ""
    rule: str = "credits"

    @property
    def data(self) -> dict[str, Any] | None:
        """The money data of the task's first event, or None."""
        if not self.purse:
            return None
        funds: dict[str, Any] = {"purse": purse_data(self.purse)}
        if self.opens:
            funds["opens"] = [[*opening] for opening in self.opens]
        return funds


UNFUNDED: Final = Funding()
_ACCOUNT_ONLY: Final[Path] = ((ACCOUNT,),)


@lru_cache(maxsize=4096)
def purse_of(text: str) -> Purse:
    """Return the purse in a task's row."""
    return purse_restored(cast("dict[str, Any]", decode(text))) if text else NO_PURSE


def purse_in(view: View, task: str) -> Purse:
    """Return the paths along which a task pays."""
    standing = view.standing(task)
    return purse_of(standing.purse) if standing is not None else NO_PURSE


def account_purse(view: View) -> Purse:
    """Return the account as the source of money, for each unit that has a grant."""
    purse: dict[Unit, Path] = {}
    for unit in UNITS:
        if view.lease(ACCOUNT, unit) is not None:
            purse[unit] = _ACCOUNT_ONLY
    return purse or NO_PURSE


def funded(view: View, child: Remit, under: Remit, wish: Pass, lease: str) -> Funding:
    """Return what a task pays with: its asker's money, unless an amount is given. A reserved amount must be available;
    a narrower bound only limits the shared money. `lease` is the id of a new lease."""
    by_person = child is under or not under.id
    purse = account_purse(view) if by_person else purse_in(view, under.id)
    bounds = child.bounds
    limited = wish.credits is not None or bounds.credits is not None or bounds.tokens is not None
    opens = tuple(_openings(child, None if by_person else under, wish)) if limited else ()
    if not purse and not opens:
        return UNFUNDED
    return _opened(view, purse, opens, Begins(lease, wish.to, child.root))


def _openings(child: Remit, under: Remit | None, wish: Pass) -> list[LeaseOpening]:
    if wish.credits is not None:
        opens = [LeaseOpening("credits", "carve", wish.credits)]
    else:
        opens = (
            [] if _as_before(child, under, "credits") else [LeaseOpening("credits", "cap", child.bounds.credits or 0)]
        )
    if not _as_before(child, under, "tokens"):
        opens.append(LeaseOpening("tokens", "cap", child.bounds.tokens or 0))
    return opens


def _as_before(child: Remit, under: Remit | None, unit: Unit) -> bool:
    limit: int | None = getattr(child.bounds, unit)
    return limit is None or (under is not None and limit == getattr(under.bounds, unit))


class Begins(NamedTuple):
    """A task that is to start: the id of its own lease, its holder and its run."""

    lease: str
    to: str
    run: str


def _opened(view: View, purse: Purse, opens: tuple[LeaseOpening, ...], task: Begins) -> Funding:
    book = Book(view.lease)
    rule, lacks = _nothing_left(book, purse, task)
    paths: dict[Unit, Path] = {**purse}
    for opening in opens:
        unit = opening.unit
        path = purse.get(unit, ())
        if opening.kind == "carve" and (short := book.shorts(path, unit, opening.amount)):
            what = "; ".join(figures(one, task.run) for one in short)
            lacks = lacks or f"'{task.to}' was not asked: {what}; give it less, or finish with what you have"
        paths[unit] = shared(path, opening, task.lease)
    return Funding(paths, opens, lacks, rule)


def _nothing_left(book: Book, purse: Purse, task: Begins) -> tuple[str, str]:
    """Return the rule and the reason if all money is spent, so that the agent could pay for nothing. Held money does
    not count as spent."""
    for unit, path in purse.items():
        for id_ in first_line(path):
            lease = book.lease(id_, unit)
            if lease is not None and _is_spent(lease):
                rule = "tier" if unit == "tokens" else "credits"
                return rule, f"{_spent(lease, task.run)}; '{task.to}' was not asked; finish with what you have"
    return "credits", ""


def _is_spent(lease: Lease) -> bool:
    return lease.state == "frozen" or (lease.granted > 0 and lease.spent == lease.granted)


def _spent(lease: Lease, run: str) -> str:
    if lease.state == "frozen":
        return f"the account is frozen, because {spelled(lease.unit, lease.overrun)} more was spent than it had"
    return f"{called(lease, run)} has used {out_of(lease.unit, lease.spent + lease.overrun, lease.granted)}"


def funded_again(view: View, record: Record, first: FirstData, lease: str) -> Funding:
    """Return what a task pays with that is retried by hand: the same amounts, from its nearest asker that still exists,
    or else from the account. Raise `Refused` if there is not enough."""
    opens = tuple(LeaseOpening(*cast("tuple[Any, Any, int]", tuple(one))) for one in first.get("opens", ()))
    funding = _opened(view, _nearest(view, record.parent), opens, Begins(lease, record.holder, record.run))
    if funding.lacks:
        raise Refused(funding.lacks, rule="credits")
    return funding


def _nearest(view: View, task: str) -> Purse:
    while task:
        record = view.record(task)
        if record is None:
            break
        if record.state not in TERMINAL:
            return purse_of(record.purse)
        task = record.parent
    return account_purse(view)


def holds_resolve(view: View, event: Unsealed, standing: Standing | None) -> Sequence[Unsealed]:
    """Return the events that end the open calls of a task: unsent ones are released, sent ones are charged in full as
    uncertain, because their cost can no longer be reported."""
    if standing is None or not standing.ties:
        return ()
    return [resolved(hold, event.at, "its task ended or was taken over") for hold in view.holds(event.task)]


def resolution(hold: Hold) -> dict[str, Any]:
    """Return the data that every event which ends a hold has."""
    purse = purse_data(purse_of(hold.purse))
    data: dict[str, Any] = {"hold": hold.id, "amounts": hold.amounts, "purse": purse, "why": hold.why}
    if hold.model:
        data["model"] = hold.model
    if hold.own_key:
        data["own_key"] = hold.own_key
    return data


def resolved(hold: Hold, now: int, why: str) -> Unsealed:
    """Return the event that ends a hold without a report of its cost."""
    data = resolution(hold)
    place = Place(hold.run, hold.session, hold.task)
    if hold.state == "held":
        return ledger_event("hold.released", place, hold.agent, now, {**data, "because": why})
    data |= {"costs": hold.amounts, "uncertain": True}
    return ledger_event("hold.settled", place, hold.agent, now, data)


def leases_close(book: Book, event: Unsealed, standing: Standing | None) -> dict[str, Any]:
    """Return which leases a task stops using and closes with its end, for its end event."""
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
    """Return the leases that a queued task shares: for each unit without a lease of its own, the first lease of another
    task. Leases that opened at a handoff come first and are its own."""
    found: list[tuple[str, Unit]] = []
    mine = set(owned(purse, task))
    for unit in UNITS:
        others = [lease for lease in first_line(purse.get(unit, ())) if (lease, unit) not in mine]
        if others and others[0] != ACCOUNT and (task, unit) not in mine:
            found.append((others[0], unit))
    return found
