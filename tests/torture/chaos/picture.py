"""What is in the store, read by plain sqlite3 or psycopg. Nothing here knows remit."""

import json
import sqlite3
from contextlib import closing
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

SCHEMA = "remit"
COLUMNS = ("seq", "workspace", "kind", "at", "run", "session", "task", "agent", "data", "op", "answer", "hash")
ENDS = {"task.completed": "completed", "task.failed": "failed", "task.cancelled": "cancelled", "task.died": "dead"}
_BEGINNINGS = ("task.submitted", "task.started")

Row = dict[str, Any]


class Violation(NamedTuple):
    """A promise that does not hold: which class of them, what happened, and to which task."""

    kind: str
    sentence: str
    task: str = ""


class Event(NamedTuple):
    """A line of the journal, as it stands in its table."""

    seq: int
    workspace: str
    kind: str
    at: int
    run: str
    session: str
    task: str
    agent: str
    text: str
    op: str | None
    answer: str | None
    hash: str

    @property
    def data(self) -> Row:
        """What it says."""
        return json.loads(self.text)


class Picture:
    """The journal and the tables of tasks, messages, gaps and used keys, as of one moment."""

    def __init__(self, events: list[Event], tables: dict[str, list[Row]]) -> None:
        self.events = events
        self.tables = tables
        self.tasks: dict[str, Row] = {row["id"]: row for row in tables["task"]}
        self.messages = tables["message"]
        self.gaps: dict[int, tuple[int, int, str]] = {
            row["last"]: (row["first"], row["last"], row["hash"]) for row in tables["gap"]
        }

    @cached_property
    def began(self) -> dict[str, Row]:
        """What the first event of each task says, by the task's id; pruned ones are missing."""
        found = {event.task: event.data for event in self.events if event.kind in _BEGINNINGS}
        return {task: data for task, data in found.items() if task in self.tasks}

    @cached_property
    def ends(self) -> dict[str, list[Event]]:
        """The ends of each task; there should be one."""
        found: dict[str, list[Event]] = {}
        for event in self.events:
            if event.kind in ENDS:
                found.setdefault(event.task, []).append(event)
        return found

    @cached_property
    def pruned(self) -> set[str]:
        """The tasks whose records were deleted; of those that were long ago only what had a key or an op is known: the
        event that names the others is removed from the journal in its turn."""
        runs = [run for event in self.events if event.kind == "runs.pruned" for run in event.data["runs"]]
        keyed = {row["task"] for row in self.tables["used_key"] if row["state"]}
        answers = [json.loads(event.answer) for event in self.events if event.kind == "owner.acted" and event.answer]
        return (
            {task for run in runs for task in run["tasks"]}
            | keyed
            | {answer[1] for answer in answers} - self.tasks.keys()
        )

    def question(self, task: str) -> str:
        """Give what a task was asked; of a step of a plan its title."""
        return self.began.get(task, {}).get("task", "").partition("\n")[0].removeprefix("# Task: ")

    def story(self, task: str, most: int = 12) -> list[str]:
        """Tell the last events of a task, for people."""
        told = [event for event in self.events if event.task == task]
        return [f"{event.seq} {event.kind} {event.agent} {event.text[:160]}" for event in told[-most:]]

    def save(self, path: Path) -> None:
        """Keep it for when the server is gone."""
        path.write_text(json.dumps({"events": self.events, "tables": self.tables}))


def picture(folder: Path, store: str) -> Picture:
    """Look at the store; at what was kept of it if it is none that can be reached."""
    kept = folder / "picture.json"
    if not store and kept.exists():
        found = json.loads(kept.read_text())
        return Picture([Event(*row) for row in found["events"]], found["tables"])
    file = folder / "team.db"
    if file.exists():
        return _of_file(file)
    seen = _of_server(store)
    seen.save(kept)
    return seen


def _of_file(path: Path) -> Picture:
    with closing(sqlite3.connect(path)) as connection:
        damage = [line for (line,) in connection.execute("PRAGMA integrity_check") if line != "ok"]
        if damage:
            raise ValueError(f"the file itself is damaged: {damage[:3]}")
        return _seen(connection, "")


def _of_server(store: str) -> Picture:
    import psycopg  # noqa: PLC0415 - a file can be looked at without it

    with psycopg.connect(store) as connection:
        return _seen(connection, f"{SCHEMA}.")


def _seen(connection: Any, schema: str) -> Picture:
    events = connection.execute(f"SELECT {', '.join(COLUMNS)} FROM {schema}event ORDER BY seq").fetchall()
    tables: dict[str, list[Row]] = {}
    for table in ("task", "message", "gap", "used_key"):
        asked = connection.execute(f"SELECT * FROM {schema}{table}")
        names = [column[0] for column in asked.description]
        tables[table] = [dict(zip(names, row, strict=True)) for row in asked.fetchall()]
    return Picture([Event(*row) for row in events], tables)
