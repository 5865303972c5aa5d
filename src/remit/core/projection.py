"""What each event does to the tables. The stores and the check of the stores both read it from here,
so a table can hold nothing that the journal does not say."""

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Final, Literal, NamedTuple, TypeAlias, cast

from remit.core import lifecycle
from remit.core.events import Event
from remit.core.values import Json, encode

Table = Literal["task", "entry", "message", "breaker"]
Verb = Literal["add", "put", "end", "hand", "touch", "take", "drop"]
Key: TypeAlias = tuple[str, ...]
Row: TypeAlias = dict[str, Json]


class Change(NamedTuple):
    """One row: `add` and `put` write it whole, `drop` removes it, the other verbs change the columns given."""

    table: Table
    verb: Verb
    key: Key
    row: Row


def _started(event: Event) -> list[Change]:
    bounds = cast("dict[str, Json]", event.data["bounds"])
    row: Row = {
        "id": event.task,
        "run": event.run,
        "parent": event.data["parent"],
        "session": event.session,
        "holder": event.agent,
        "status": "running",
        "started_at": event.at,
        "until": bounds["deadline"],
        "ended_at": None,
        "began": event.seq,
        "ended": None,
    }
    return [Change("task", "add", (event.task,), row)]


def _ended(event: Event) -> list[Change]:
    status = lifecycle.after("running", event.kind)
    row: Row = {"id": event.task, "status": status, "ended_at": event.at, "ended": event.seq}
    return [Change("task", "end", (event.task,), row)]


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
    "task.started": _started,
    "task.completed": _ended,
    "task.failed": _ended,
    "task.cancelled": _ended,
    "task.handed": _handed,
    "hop.refused": _no_table,
    "plan.started": _no_table,
    "step.ended": _no_table,
    "breaker.set": _breaker_set,
    "entry.set": _entry_set,
    "entry.touched": _entry_touched,
    "entries.removed": _entries_removed,
    "message.sent": _message_sent,
    "messages.taken": _messages_taken,
}


def changes(event: Event) -> list[Change]:
    return PROJECTION[event.kind](event)


Tables: TypeAlias = dict[Table, dict[Key, Row]]


def fold(events: Iterable[Event]) -> Tables:
    """The tables as the journal tells them."""
    tables: Tables = {"task": {}, "entry": {}, "message": {}, "breaker": {}}
    for event in events:
        for change in changes(event):
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
            if row is not None and _open(row, change.verb):
                row.update(change.row)


def _open(row: Row, verb: Verb) -> bool:
    """A task ends once, is not handed on after that, and a message is taken once: the first one counts."""
    return (verb not in ("end", "hand") or row["status"] == "running") and (verb != "take" or row["taken_at"] is None)
