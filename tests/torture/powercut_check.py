"""Looks at what a power cut left, from outside: with SQLite and Python alone, not with what remit says of itself."""

import hashlib
import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

_STATES = {
    "task.submitted": "pending",
    "task.queued": "pending",
    "task.retrying": "pending",
    "task.released": "pending",
    "task.lost": "pending",
    "task.started": "running",
    "task.claimed": "running",
    "task.resumed": "running",
    "task.handed": "running",
    "task.fenced": "running",
    "task.waiting": "waiting",
    "task.cancelling": "cancelling",
    "task.cancelled": "cancelled",
    "task.completed": "completed",
    "task.failed": "failed",
    "task.died": "dead",
}
_BEGINNINGS = ("task.submitted", "task.started")
_FINAL = ("cancelled", "completed", "failed", "dead")


class Found(NamedTuple):
    """What is in a file."""

    events: list[tuple[Any, ...]]  # by place in the journal
    tasks: dict[str, str]  # id -> state
    entries: dict[tuple[str, str], tuple[str, int]]  # where -> value, version

    @property
    def ends(self) -> dict[str, str]:
        return {event[6]: _STATES[event[2]] for event in self.events if _STATES.get(event[2]) in _FINAL}


class Broken(NamedTuple):
    damaged: list[str]  # what is there is not sound
    lost: list[str]  # what someone was told is not there

    @property
    def all(self) -> list[str]:
        return [*self.damaged, *self.lost]


def looked_at(store: Path, said: list[list[Any]]) -> Broken:
    """A sentence for each promise that does not hold."""
    try:
        found, damaged = _found(store)
    except sqlite3.DatabaseError as error:
        return Broken([f"it cannot be read: {error}"], [])
    damaged += _chain(found)
    if damaged:  # what it says cannot be read as what was written
        return Broken(damaged, [])
    return Broken([*_folded(found), *_once(found)], list(_lost(found, said)))


def _found(store: Path) -> tuple[Found, list[str]]:
    if not store.exists():
        return Found([], {}, {}), []
    with closing(sqlite3.connect(store)) as connection:
        run = connection.execute
        damaged = [f"SQLite says: {row[0]}" for row in run("PRAGMA integrity_check") if row[0] != "ok"]
        tables = run("SELECT count(*) FROM sqlite_master WHERE name IN ('event', 'task', 'entry')").fetchone()[0]
        if tables != 3:
            made = [f"{tables} of 3 tables are there"] if tables else []
            return Found([], {}, {}), [*damaged, *made]
        asked = "workspace, seq, kind, at, run, session, task, agent, op, answer, data, hash"
        events = run(f"SELECT {asked} FROM event ORDER BY workspace, seq").fetchall()
        tasks = dict(run("SELECT id, state FROM task"))
        rows = run("SELECT namespace, key, value, version FROM entry")
        entries = {(space, key): (value, version) for space, key, value, version in rows}
        return Found(events, tasks, entries), damaged


def _chain(found: Found) -> Iterator[str]:
    """Every event has its place, and the hash of the one before it in its own."""
    last = "0" * 64
    for seq, event in enumerate(found.events, 1):
        workspace, place, kind, at, run, session, task, agent, op, answer, data, sealed = event
        lines = (workspace, place, kind, at, run, session, task, agent, repr(op), repr(answer), data, "")
        if place != seq:
            yield f"event {seq} is missing"
            return
        if hashlib.sha256((last + "\n".join(map(str, lines))).encode()).hexdigest() != sealed:
            yield f"event {seq} ({kind}) is not what was sealed there"
            return
        last = sealed


def _folded(found: Found) -> Iterator[str]:
    """The tables are what the journal says."""
    tasks: dict[str, str] = {}
    entries: dict[tuple[str, str], tuple[str, int]] = {}
    for _, _, kind, _, _, _, task, _, _, _, text, _ in found.events:
        if kind in _STATES:
            tasks[task] = _STATES[kind]
        elif kind == "entry.set":
            data = json.loads(text)
            entries[data["namespace"], data["key"]] = (data["value"], data["version"])
    for what, folded, there in (("task", tasks, found.tasks), ("entry", entries, found.entries)):
        for key in folded.keys() | there.keys():
            if folded.get(key) != there.get(key):
                yield f"{what} {key} is {there.get(key)!r}, and the journal says {folded.get(key)!r}"


def _once(found: Found) -> Iterator[str]:
    """A task ends once, and an effect is kept once."""
    ends = Counter(event[6] for event in found.events if _STATES.get(event[2]) in _FINAL)
    done = (json.loads(event[10]) | {"task": event[6]} for event in found.events if event[2] == "effect.done")
    effects = Counter((data["task"], data["key"], data["args"]) for data in done)  # each has a name of its own there
    yield from (f"{what} is on record {count} times" for what, count in (ends + effects).items() if count > 1)


def _lost(found: Found, said: list[list[Any]]) -> Iterator[str]:
    """What someone was told before the cut is there after it."""
    hashes = {event[1]: event[11] for event in found.events}
    texts = {event[6]: json.loads(event[10])["task"] for event in found.events if event[2] in _BEGINNINGS}
    effects = {(event[6], json.loads(event[10])["result"]) for event in found.events if event[2] == "effect.done"}
    ends = found.ends
    kept: dict[str, Callable[..., bool]] = {
        "journal": lambda seq, sealed: hashes.get(seq) == sealed,
        "submitted": lambda task, text: texts.get(task) == text,
        "cancelled": lambda task: found.tasks.get(task) in ("cancelling", "cancelled"),
        "ended": lambda task, state: ends.get(task) == state,
        "effect": lambda task, result: (task, result) in effects,
        "entry": lambda space, key, value: found.entries.get((space, key), ("", 0))[0] == value,
    }
    for what, *told in said:
        if not kept[what](*told):
            yield f"{what} {' '.join(map(str, told))} was told and is not there"
