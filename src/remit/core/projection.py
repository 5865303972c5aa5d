"""What each event does to the tables. The stores and the check of the stores both read it from here,
so a table can hold nothing that the journal does not say."""

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Final, Literal, NamedTuple, TypeAlias, cast

from remit.core import lifecycle
from remit.core.events import Event
from remit.core.values import Json, encode

Table = Literal["task", "entry", "message", "breaker", "event"]
Verb = Literal["add", "put", "claim", "rest", "set", "end", "hand", "touch", "take", "drop", "empty"]
Key: TypeAlias = tuple[str, ...]
Row: TypeAlias = dict[str, Json]


class Change(NamedTuple):
    """One row: `add` and `put` write it whole, `drop` removes it, the other verbs change the columns given."""

    table: Table
    verb: Verb
    key: Key
    row: Row


def _started(event: Event) -> list[Change]:
    data = event.data
    row = _task(event)
    row |= {
        "status": "running",
        "way": data.get("way", "delegate"),
        "twin": data.get("twin", ""),
        "worker": data.get("worker", ""),
        "lead": data.get("lead", ""),
        "fence": 1,
        "attempt": 1,
        "claimed_at": event.at,
    }
    return [Change("task", "add", (event.task,), row)]


def _submitted(event: Event) -> list[Change]:
    data = event.data
    row = _task(event)
    row |= {name: data[name] for name in ("way", "ready_at", "twin")}
    row["tries"] = data.get("tries", 0)
    return [Change("task", "add", (event.task,), row)]


def _task(event: Event) -> Row:
    """A row as it is for a task that nobody has claimed yet."""
    bounds = cast("dict[str, Json]", event.data["bounds"])
    return {
        "id": event.task,
        "run": event.run,
        "parent": event.data["parent"],
        "session": event.session,
        "holder": event.agent,
        "status": "pending",
        "way": "",
        "lead": "",
        "worker": "",
        "fence": 0,
        "attempt": 0,
        "tries": 0,
        "asked_at": event.at,
        "ready_at": event.at,
        "claimed_at": None,
        "until": bounds["deadline"],
        "ended_at": None,
        "began": event.seq,
        "ended": None,
        "twin": "",
    }


def _claimed(event: Event) -> list[Change]:
    data = event.data
    row: Row = {
        "id": event.task,
        "status": "running",
        "worker": data["worker"],
        "fence": data["fence"],
        "attempt": data["attempt"],
        "claimed_at": event.at,
    }
    return [Change("task", "claim", (event.task,), row)]


def _rested(event: Event) -> list[Change]:
    row: Row = {"id": event.task, "status": "pending"}
    row |= {name: event.data[name] for name in ("worker", "fence", "ready_at", "attempt", "tries")}
    return [Change("task", "rest", (event.task,), row)]


def _set(event: Event) -> list[Change]:
    return [Change("task", "set", (event.task,), {"id": event.task, "status": lifecycle.lands(event.kind)})]


def _ended(event: Event) -> list[Change]:
    status = lifecycle.lands(event.kind)
    row: Row = {"id": event.task, "status": status, "ended_at": event.at, "ended": event.seq}
    return [Change("task", "end", (event.task,), row)]


def _pruned(event: Event) -> list[Change]:
    """The rows of the runs go, and what their events said; that they happened stays."""
    made: list[Change] = []
    for run in cast("list[dict[str, Json]]", event.data["runs"]):
        made += [Change("task", "drop", (task,), {"id": task}) for task in cast("list[str]", run["tasks"])]
        made.append(Change("event", "empty", (cast("str", run["id"]),), {"run": run["id"]}))
    return made


def _handed(event: Event) -> list[Change]:
    to = event.data["to"]
    if not isinstance(to, str):  # parts of it went to several; the holder is still the holder
        return []
    return [Change("task", "hand", (event.task,), {"id": event.task, "holder": to})]


def _breaker_set(event: Event) -> list[Change]:
    row: Row = {**event.data, "at": event.at}
    return [Change("breaker", "put", (cast("str", event.data["name"]),), row)]


def _entry_set(event: Event) -> list[Change]:
    data = event.data
    value = data["value"]
    row: Row = {
        "namespace": data["namespace"],
        "key": data["key"],
        "form": "text" if isinstance(value, str) else "json",
        "value": value if isinstance(value, str) else encode(value),
        "agent": event.agent,
        "created_at": data["created_at"],
        "updated_at": event.at,
        "expires_at": data["expires_at"],
        "version": data["version"],
        "digest": data["digest"],
        "extension": data["extension"],
        "trust": data["trust"],
        "task": event.task,
        "chain": _chain(tuple(cast("list[str]", data["chain"]))),
    }
    return [Change("entry", "put", _address(data), row)]


@lru_cache(maxsize=1024)  # the entries of one run have few writers
def _chain(names: tuple[str, ...]) -> str:
    return encode(list(names))


def _entry_touched(event: Event) -> list[Change]:
    data = event.data
    row: Row = {"namespace": data["namespace"], "key": data["key"], "expires_at": data["expires_at"]}
    return [Change("entry", "touch", _address(data), row)]


def _entries_removed(event: Event) -> list[Change]:
    keys = cast("list[tuple[str, str]]", event.data["keys"])
    return [Change("entry", "drop", (ns, key), {"namespace": ns, "key": key}) for ns, key in keys]


def _message_sent(event: Event) -> list[Change]:
    row: Row = {
        "id": event.data["id"],
        "session": event.session,
        "sender": event.agent,
        "recipient": event.data["to"],
        "text": event.data["text"],
        "sent_at": event.at,
        "seq": event.seq,
        "taken_at": None,
        "taken_by": None,
        "reader": event.data.get("reader", ""),
        "about": event.data.get("about", ""),
    }
    return [Change("message", "add", (cast("str", event.data["id"]),), row)]


def _messages_taken(event: Event) -> list[Change]:
    ids = cast("list[str]", event.data["ids"])
    return [Change("message", "take", (one,), {"id": one, "taken_at": event.at, "taken_by": event.task}) for one in ids]


def _no_table(_event: Event) -> list[Change]:
    return []


def _address(data: dict[str, Json]) -> Key:
    return (cast("str", data["namespace"]), cast("str", data["key"]))


PROJECTION: Final[dict[str, Callable[[Event], list[Change]]]] = {
    "task.submitted": _submitted,
    "task.started": _started,
    "task.claimed": _claimed,
    "task.fenced": _claimed,
    "task.handed": _handed,
    "task.waiting": _set,
    "task.resumed": _set,
    "task.cancelling": _set,
    "task.queued": _rested,
    "task.retrying": _rested,
    "task.released": _rested,
    "task.lost": _rested,
    "task.completed": _ended,
    "task.failed": _ended,
    "task.cancelled": _ended,
    "task.died": _ended,
    "hop.refused": _no_table,
    "effect.done": _no_table,
    "plan.started": _no_table,
    "step.ended": _no_table,
    "runs.pruned": _pruned,
    "breaker.set": _breaker_set,
    "entry.set": _entry_set,
    "entry.touched": _entry_touched,
    "entries.removed": _entries_removed,
    "message.sent": _message_sent,
    "messages.taken": _messages_taken,
}


def changes(event: Event) -> list[Change]:
    return PROJECTION[event.kind](event) if event.text else []


Tables: TypeAlias = dict[Table, dict[Key, Row]]


def fold(events: Iterable[Event]) -> Tables:
    """The tables as the journal tells them."""
    tables: Tables = {"task": {}, "entry": {}, "message": {}, "breaker": {}}
    for event in events:
        for change in changes(event):
            if change.table != "event":
                _apply(tables[change.table], change)
    return tables


def _apply(rows: dict[Key, Row], change: Change) -> None:
    match change.verb:
        case "add" | "put":
            rows[change.key] = dict(change.row)
        case "drop":
            rows.pop(change.key, None)
        case _:
            row = rows.get(change.key)
            if row is not None and _open(row, change):
                row.update(change.row)


def _open(row: Row, change: Change) -> bool:
    """A task ends once, does not move after that, and a message is taken once: the first one counts."""
    if change.table == "task":
        return row["ended"] is None
    return change.verb != "take" or row["taken_at"] is None
