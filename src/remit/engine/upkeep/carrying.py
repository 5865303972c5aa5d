"""Carrying the ledger over: what pruned runs have cost stays in the account and in the meters, stated as rows, when the
events that led to it are cut out of the journal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, cast

from remit.core.events import Event, Unsealed
from remit.core.kinds import Place, ledger_event
from remit.core.limits import LONGEST, TASKS, MeterUnit
from remit.core.money import ACCOUNT, UNITS, Hold, Lease
from remit.core.times import HOUR, hour_of
from remit.core.values import encode
from remit.ports import View

CHARGES: Final = frozenset(("hold.settled", "hold.reconciled", "credits.spent", "tokens.used", "account.set"))
_METERED: Final = LONGEST + 2  # hours


def carried(view: View, events: Iterable[Event], holds: Iterable[Hold], now: int) -> list[Unsealed]:
    """Give the event that states what these events have led to, if they have led to anything."""
    charges = [event for event in events if event.kind in CHARGES or "metered" in event.data]
    uncertain = [_hold_row(hold) for hold in holds]
    if not charges and not uncertain:
        return []
    forgotten = hour_of(now - _METERED * HOUR)
    data = {
        "leases": accounts(view),
        "holds": uncertain,
        "meters": [row for row in _meters(view, charges) if cast("str", row["hour"]) >= forgotten],
        "forgotten": forgotten,
    }
    return [ledger_event("ledger.carried", Place(), "", now, data)]


def counted_tasks(view: View, tasks: Iterable[str], now: int) -> list[Event]:
    """List the events with which those of these tasks began that still count for limits on tasks."""
    since = hour_of(now - _METERED * HOUR)
    if not view.metered("workspace", "", TASKS, since):
        return []  # nearly always: nothing limits how many tasks begin
    records = (view.record(task) for task in tasks)
    firsts = (view.event(record.began) for record in records if record is not None)
    return [event for event in firsts if event is not None and "metered" in event.data]


def carried_again(view: View, gone: Iterable[Event], now: int) -> list[Unsealed]:
    """State once more what events say that are carried and old: the account, and calls that are uncertain still."""
    old = [event for event in gone if event.kind == "ledger.carried"]
    if not old:
        return []
    named = [cast("str", row["id"]) for event in old for row in cast("list[dict[str, Any]]", event.data["holds"])]
    found = [hold for id_ in dict.fromkeys(named) if (hold := view.hold(id_)) is not None]
    data: dict[str, Any] = {"leases": accounts(view), "holds": [_hold_row(hold) for hold in found], "meters": []}
    data["forgotten"] = hour_of(now - _METERED * HOUR)
    return [ledger_event("ledger.carried", Place(), "", now, data)]


def accounts(view: View) -> list[dict[str, Any]]:
    """Give the rows of the account."""
    found = [view.lease(ACCOUNT, unit) for unit in UNITS]
    return [_lease_row(lease) for lease in found if lease is not None]


def is_metered(view: View, event: Event) -> bool:
    """Whether meters that a carried event states are still looked at."""
    meters = cast("list[dict[str, Any]]", event.data["meters"])
    latest = max(meters, key=lambda row: row["hour"], default=None)
    return (
        latest is not None and view.meter(latest["scope"], latest["name"], latest["unit"], latest["hour"]) is not None
    )


def _meters(view: View, charges: list[Event]) -> list[dict[str, Any]]:
    keys: dict[tuple[str, str, Any, str], None] = {}
    for event in charges:
        hour = cast("str", event.data.get("hour", "")) or hour_of(event.at)
        units: tuple[MeterUnit, ...] = (TASKS,) if "metered" in event.data else UNITS
        for scope, name in (("workspace", ""), ("agent", event.agent), ("session", event.session)):
            keys |= {(scope, name, unit, hour): None for unit in units}
    rows: list[dict[str, Any]] = []
    for scope, name, unit, hour in keys:
        spent = view.meter(scope, name, unit, hour)
        if spent is not None:
            rows.append({"scope": scope, "name": name, "unit": unit, "hour": hour, "spent": spent})
    return rows


def _lease_row(lease: Lease) -> dict[str, Any]:
    return {**lease._asdict(), "above": encode([*lease.above])}


def _hold_row(hold: Hold) -> dict[str, Any]:
    return hold._asdict()
