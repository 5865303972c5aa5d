"""The changes that events make to the tables of the ledger. The amounts that they add to leases are in `core.money`."""

from collections.abc import Mapping
from typing import Any, Final, cast

from remit.core.change import Change, Row
from remit.core.events import Event, read
from remit.core.kinds.money import AccountSet, HoldPlaced, HoldReconciled, HoldResolved, LedgerCarried
from remit.core.limits import TASKS
from remit.core.money import ACCOUNT, UNITS, Lease, opened_by, purse_text
from remit.core.times import hour_of
from remit.core.values import Json, encode

_PARTS: Final = ("available", "reserved", "lent", "spent")


def leases_begin(event: Event) -> list[Change]:
    return [_begins(lease) for lease in opened_by(event)]


def _begins(lease: Lease) -> Change:
    row: Row = {**lease._asdict(), "above": encode([*lease.above])}
    return Change("lease", "add", (lease.id, lease.unit), row)


def leases_closed(event: Event) -> list[Change]:
    """Return the changes for the leases that close with a task. A lease that other tasks still use is marked as
    closing."""
    data = cast("dict[str, Any]", event.data)
    closing = [
        Change("lease", "set", (id_, unit), {"id": id_, "unit": unit, "state": "closing"})
        for id_, unit in data.get("closing", ())
    ]
    closed = [
        Change("lease", "drop", (row[0], row[1]), {"id": row[0], "unit": row[1]}) for row in data.get("closes", ())
    ]
    return [*closing, *closed]


def account_set(event: Event) -> list[Change]:
    data = read(event, AccountSet)
    row: Row = {"id": ACCOUNT, "unit": data["unit"], "state": data["state"]}
    return [Change("lease", "set", (ACCOUNT, data["unit"]), row)]


def hold_placed(event: Event) -> list[Change]:
    data = read(event, HoldPlaced)
    row: Row = {
        "id": data["hold"],
        "task": event.task,
        "run": event.run,
        "session": event.session,
        "agent": event.agent,
        "fence": data["fence"],
        "state": data["state"],
        "credits": data["amounts"].get("credits", 0),
        "tokens": data["amounts"].get("tokens", 0),
        "purse": purse_text(data["purse"]),
        "until": data["until"],
        "hour": "",
        "why": data["why"],
        "model": data.get("model", ""),
        "own_key": data.get("own_key", ""),
        "billed": "",
        "person": data.get("person", ""),
    }
    return [Change("hold", "add", (data["hold"],), row)]


def hold_started(event: Event) -> list[Change]:
    hold = cast("str", event.data["hold"])
    return [Change("hold", "set", (hold,), {"id": hold, "state": "started"})]


def hold_settled(event: Event) -> list[Change]:
    data = read(event, HoldResolved)
    hold, hour = data["hold"], hour_of(event.at)
    if data.get("uncertain"):
        costs = data.get("costs", {})
        row: Row = {"id": hold, "state": "uncertain", "hour": hour, "task": event.task}
        row |= {"credits": costs.get("credits", 0), "tokens": costs.get("tokens", 0)}
        row["billed"] = encode(data["billed"]) if "billed" in data else ""
        changes = [Change("hold", "settle", (hold,), row)]
    else:
        changes = [Change("hold", "drop", (hold,), {"id": hold, "task": event.task})]
    return [*changes, *_metered(event, data.get("costs", {}), hour)]


def hold_released(event: Event) -> list[Change]:
    hold = cast("str", event.data["hold"])
    return [Change("hold", "drop", (hold,), {"id": hold, "task": event.task})]


def hold_reconciled(event: Event) -> list[Change]:
    data = read(event, HoldReconciled)
    charged, costs = data["charged"], data["costs"]
    differ = {unit: costs.get(unit, 0) - charged.get(unit, 0) for unit in UNITS}
    # The task's count of open holds stays: an uncertain hold was removed from it when it was charged.
    drop = Change("hold", "drop", (data["hold"],), {"id": data["hold"]})
    return [drop, *_metered(event, differ, data["hour"])]


def spent(event: Event) -> list[Change]:
    costs = cast("dict[str, int]", event.data["costs"])
    return _metered(event, costs, hour_of(event.at))


def tokens_used(event: Event) -> list[Change]:
    costs = {"tokens": cast("int", event.data["tokens"])}
    return _metered(event, costs, hour_of(event.at))


def _metered(event: Event, costs: dict[str, int], hour: str) -> list[Change]:
    """Return the changes that count a charge for the workspace, the agent, the session and the person, by the hour."""
    person = event.data.get("person", "")
    whose: Row = {"hour": hour, "agent": event.agent, "session": event.session, "person": person}
    return [
        Change("meter", "count", (), {**whose, "unit": unit, "spent": cost}) for unit, cost in costs.items() if cost
    ]


def task_counts(event: Event) -> list[Change]:
    """Return the change that counts a started task, for the limits on tasks."""
    person = event.data.get("by", "")
    row: Row = {"hour": hour_of(event.at), "agent": event.agent, "session": event.session, "person": person}
    return [Change("meter", "count", (), {**row, "unit": TASKS, "spent": 1})]


def counted_in(row: Row) -> list[tuple[str, ...]]:
    """Return the keys of the meter rows in which a charge counts."""
    unit, hour = cast("str", row["unit"]), cast("str", row["hour"])
    scopes = [("workspace", ""), *((scope, cast("str", row[scope])) for scope in ("agent", "session"))]
    if row["person"]:
        scopes.append(("person", cast("str", row["person"])))
    return [(scope, name, unit, hour) for scope, name in scopes]


def carried(event: Event) -> list[Change]:
    data = read(event, LedgerCarried)
    changes = [Change("lease", "put", (str(row["id"]), str(row["unit"])), {**row}) for row in data["leases"]]
    changes += [Change("hold", "put", (str(row["id"]),), {"billed": "", "person": "", **row}) for row in data["holds"]]
    for row in data["meters"]:
        key = (str(row["scope"]), str(row["name"]), str(row["unit"]), str(row["hour"]))
        changes.append(Change("meter", "put", key, {**row}))
    forgotten: dict[str, Json] = {"hour": data["forgotten"]}
    return [*changes, Change("meter", "cut", (), forgotten)]


def unbalanced(row: Mapping[str, Any]) -> str:
    """Return what is wrong with the figures of a lease's row, or "" if they balance."""
    name = f"lease {row['id']} of {row['unit']}"
    negative = [word for word in ("granted", *_PARTS, "overrun", "users") if row[word] < 0]
    if negative:
        return f"{name} has less than nothing in {', '.join(negative)}"
    parts = sum(row[word] for word in _PARTS)
    if parts != row["granted"]:
        return f"{name} does not balance: {' + '.join(_PARTS)} is {parts:,}, and {row['granted']:,} was granted"
    return ""
