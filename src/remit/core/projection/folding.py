"""How the tables are built from all events."""

from collections.abc import Iterable
from typing import TypeAlias, cast

from remit.core.events import Event
from remit.core.money import LeaseMove, moves
from remit.core.projection import ledger
from remit.core.projection.change import KEYS, Change, Key, Row, Table
from remit.core.projection.counts import Count, counted
from remit.core.projection.tables import changes

Tables: TypeAlias = dict[Table, dict[Key, Row]]


def fold(events: Iterable[Event]) -> Tables:
    """Build the tables as the journal tells them."""
    tables: Tables = {table: {} for table in KEYS}
    for event in events:
        fold_in(tables, event)
    return tables


def fold_in(tables: Tables, event: Event) -> None:
    """Change the tables as one event does."""
    for move in moves(event):
        _move(tables["lease"], move)
    for change in changes(event):
        if change.table in tables:
            _apply(tables[change.table], change)
    if (count := counted(event)) is not None:
        _add(tables["run"], event.run, count)


def _apply(rows: dict[Key, Row], change: Change) -> None:
    match change.verb:
        case "count":
            for key in ledger.counted_in(change.row):
                before = rows.get(key, {"spent": 0})
                columns = dict(zip(KEYS["meter"], key, strict=True))
                rows[key] = {**columns, "spent": cast("int", before["spent"]) + cast("int", change.row["spent"])}
        case "cut":  # of the meter, or what a run has asked for
            for key in [key for key in rows if _is_cut(key, change)]:
                del rows[key]
        case "add" | "put":
            rows[change.key] = dict(change.row)
        case "drop":
            rows.pop(change.key, None)
        case _:
            row = rows.get(change.key)
            if row is not None and _open(row, change):
                row.update(change.row)


def _is_cut(key: Key, change: Change) -> bool:
    return key[0] == change.key[0] if change.table == "ask" else key[-1] < cast("str", change.row["hour"])


def _move(rows: dict[Key, Row], move: LeaseMove) -> None:
    row = rows.get((move.lease, move.unit))
    if row is not None:
        for name, by in zip(LeaseMove._fields[2:], move[2:], strict=True):
            row[name] = cast("int", row[name]) + by


def _add(rows: dict[Key, Row], run: str, count: Count) -> None:
    before = rows.get((run,))
    added: Row = {**count._asdict()}
    if before is not None:
        added = {name: before[name] + value for name, value in count._asdict().items()}
    rows[run,] = {"id": run, **added}


def _open(row: Row, change: Change) -> bool:
    """A task ends once, does not move after that, and a message is taken once: the first one counts."""
    if change.table == "task":
        return row["ended"] is None
    if change.verb == "answer":
        return row["state"] == "open"
    return change.verb != "take" or row["taken_at"] is None
