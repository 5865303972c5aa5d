"""What must hold after any crash, however often and wherever."""

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple, cast

import anyio
import psycopg

from bookkeeping import Books, hold_of, misbooked
from remit import Event, Runtime
from remit.core.lifecycle import TERMINAL
from remit.core.projection import Tables
from remit.ports import Span, View
from torture.scenarios import World

_TEXTS = ("task.submitted", "task.started")


class Death(NamedTuple):
    """What was on record when a process had died: none of it may happen again."""

    life: int
    completed: frozenset[str]  # the texts of tasks
    effects: frozenset[str]  # task and name
    turns: frozenset[tuple[str, str]]  # agent and task that were handed on
    cancelled: frozenset[str]


LONG_AGO = 10_000  # days


def recorded(path: Path) -> list[tuple[str, str, str, str]]:
    """Read a journal as any program would, without remit: kind, task, agent and data."""
    with closing(sqlite3.connect(path)) as connection:
        known = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'event'").fetchall()
        asked = "SELECT kind, task, agent, data FROM event ORDER BY seq"
        return connection.execute(asked).fetchall() if known else []


def recorded_on(address: str, workspace: str) -> list[tuple[str, str, str, str]]:
    """The same of a server."""
    with psycopg.connect(address) as connection:
        asked = "SELECT kind, task, agent, data FROM remit.event WHERE workspace = %s ORDER BY seq"
        return connection.execute(asked, (workspace,)).fetchall()


def death(rows: list[tuple[str, str, str, str]], life: int) -> Death:
    texts = {task: json.loads(data)["task"] for kind, task, _, data in rows if kind in _TEXTS}
    return Death(
        life,
        frozenset(texts[task] for kind, task, _, _ in rows if kind == "task.completed"),
        frozenset(f"{task}/{json.loads(data)['key']}" for kind, task, _, data in rows if kind == "effect.done"),
        frozenset(
            (agent, task)
            for kind, task, agent, data in rows
            if kind == "task.handed"
            and not {"payloads", "sent_back"} & json.loads(data).keys()  # of parts and reviews one hears again
        ),
        frozenset(task for kind, task, _, _ in rows if kind == "task.cancelled"),
    )


class Seen(NamedTuple):
    """One picture of a store."""

    tables: Tables
    events: list[Event]
    workers: int

    @property
    def texts(self) -> dict[str, str]:
        return {event.task: cast("str", event.data["task"]) for event in self.events if event.kind in _TEXTS}


def seen(view: View) -> Seen:
    return Seen(view.tables(), view.events(Span()), len(view.workers()))


def final(found: Seen) -> Any:
    """How it all ended, without what differs from run to run: ids, times, and which of several failed tries it was."""
    texts = found.texts
    ends = {event.task: event.data.get("result") for event in found.events if event.kind == "task.completed"}
    tasks = [
        [texts[key[0]], row["asked_how"], row["state"], ends.get(key[0])] for key, row in found.tables["task"].items()
    ]
    entries = [[*key, row["value"], row["version"]] for key, row in found.tables["entry"].items()]
    messages = [
        [texts[cast("str", row["about"])] if row["about"] else row["text"], row["taken_at"] is not None]
        for row in found.tables["message"].values()
    ]
    effects = [[texts[event.task], event.data["key"]] for event in found.events if event.kind == "effect.done"]
    questions = [[row["kind"], row["state"], row["used"]] for row in found.tables["question"].values()]
    paid = [[texts[event.task], event.data["why"]] for event in found.events if event.kind == "credits.spent"]
    told = {"tasks": tasks, "entries": entries, "messages": messages, "effects": effects}
    told |= {"questions": questions, "paid": paid}
    return {name: sorted(rows, key=repr) for name, rows in json.loads(json.dumps(told)).items()}


async def broken(rt: Runtime, world: World, deaths: list[Death], expected: Any) -> list[str]:
    """A sentence for each promise that does not hold."""
    await _looked_after(rt)
    await rt.workspace.prune(LONG_AGO)  # which sweeps what dead processes were writing
    found = await rt.workspace.journal.read(seen)
    health = await rt.workspace.check()
    return [
        *(finding.sentence for finding in health.findings),
        *_acknowledged(found, world),
        *_once(found, world),
        *_asked_once(found, world),
        *_cancelled(found, world),
        *_paid(found, world),
        *(sentence for one in deaths for sentence in _not_again(found, world, one)),
        *_same_end(final(found), expected),
    ]


async def _looked_after(rt: Runtime) -> None:
    """Have a worker look once more after those who are gone; it has a moment for it."""
    with anyio.move_on_after(2):
        async with rt.serving():
            while len(await rt.workspace.journal.read(lambda view: view.workers())) > 1:  # noqa: ASYNC110
                await anyio.sleep(0.01)  # no event tells of a process that is taken off the list


def _acknowledged(found: Seen, world: World) -> Iterator[str]:
    """Every acknowledged submit is there and has ended, and one key is one task."""
    told: dict[str, set[str]] = {}
    for _, key, task in world.notes("ack"):
        told.setdefault(key, set()).add(task)
        row = found.tables["task"].get((task,))
        if row is None:
            yield f"'{key}' was acknowledged as {task} and is not there"
    for key, tasks in told.items():
        if len(tasks) > 1 and key != "again":
            yield f"'{key}' was acknowledged as several tasks: {sorted(tasks)}"
    for key, row in found.tables["task"].items():
        if row["state"] not in TERMINAL:
            yield f"task {key[0]} ({found.texts[key[0]]!r}) is still {row['state']}"
    if found.workers > 1:
        yield f"{found.workers} processes are listed, and one is alive"


def _once(found: Seen, world: World) -> Iterator[str]:
    """One end per task, one record per effect, one announcement per spawned task."""
    ends = Counter(event.task for event in found.events if f"{event.kind}" in _ENDS)
    effects = Counter((event.task, event.data["key"]) for event in found.events if event.kind == "effect.done")
    for what, count in (*ends.items(), *effects.items()):
        if count > 1:
            yield f"{what} is on record {count} times"
    told = Counter(row["about"] for row in found.tables["message"].values() if row["about"])
    for key, row in found.tables["task"].items():
        wanted = 1 if row["asked_how"] == "spawn" else 0
        if told[key[0]] != wanted:
            yield f"task {key[0]} ({row['asked_how']}) was announced {told[key[0]]} times"
    taken = Counter(
        one for event in found.events if event.kind == "messages.taken" for one in cast("list[str]", event.data["ids"])
    )
    yield from (f"message {one} was handed out {count} times" for one, count in taken.items() if count > 1)
    lives = len(world.notes("life"))  # a life is killed once, so what is not kept is done once more after it
    for what, count in Counter(what for _, what in world.notes("effect")).items():
        if count > lives:
            yield f"effect '{what}' was done {count} times in {lives} lives"


def _asked_once(found: Seen, world: World) -> Iterator[str]:
    """Each question is asked once, answered once and used once at most; what was acknowledged is its answer, and what
    was not approved is not used."""
    answers = {str(event.data["question"]): event.data for event in found.events if event.kind == "question.answered"}
    for _, question, state, by in world.notes("said"):
        kept = answers[question]["state"], answers[question]["by"]
        if kept != (state, by):
            yield f"question {question} was acknowledged as {state} by {by} and is {kept[0]} by {kept[1]}"
    for key, row in found.tables["question"].items():
        if row["used"] and row["state"] != "approved":
            yield f"question {key[0]} is {row['state']} and was used"
    for kind in ("question.asked", "question.answered", "question.used"):
        asked = Counter(str(event.data["question"]) for event in found.events if event.kind == kind)
        yield from (f"there are {count} {kind} of {one}" for one, count in asked.items() if count > 1)
    texts = Counter(str(event.data["text"]) for event in found.events if event.kind == "question.asked")
    yield from (f"people were asked {count} times: {text}" for text, count in texts.items() if count > 1)
    for key, row in found.tables["question"].items():
        if row["state"] == "open":
            yield f"question {key[0]} is open still"


_ENDS = frozenset(("task.completed", "task.failed", "task.cancelled", "task.died"))


def _cancelled(found: Seen, world: World) -> Iterator[str]:
    """Nothing is recorded in the name of a task after it was cancelled. After someone wanted it cancelled, only that it
    has stopped, and an effect that took place: a cancel does not undo it."""
    over: dict[str, str] = {}
    for event in found.events:
        withdrawn = event.kind == "question.answered" and event.data["state"] == "withdrawn"
        took_place = event.kind == "effect.done" and over.get(event.task) == "task.cancelling"
        if event.task in over and event.kind not in _FOLLOWS and not (withdrawn or took_place):
            yield f"event {event.seq} ({event.kind}) came after {over[event.task]} of its task"
        if event.kind in ("task.cancelling", "task.cancelled"):
            over[event.task] = event.kind
    for _, task in world.notes("cancelled"):
        if found.tables["task"][task,]["state"] != "cancelled":
            yield f"task {task} was acknowledged as cancelled and is {found.tables['task'][task,]['state']}"


_FOLLOWS = ("task.cancelled", "message.sent", "hold.settled", "hold.released", "hold.reconciled")


def _paid(found: Seen, world: World) -> Iterator[str]:
    """The books are right, what was sent is charged, and nothing is paid twice."""
    books = Books(found.tables, found.events)
    yield from misbooked(books)
    settled = {hold_of(event) for event in books.of("hold.settled")}
    yield from (f"call {hold} was sent and is not charged" for _, hold in world.notes("sent") if hold not in settled)
    bills = Counter(hold_of(event) for event in books.of("hold.reconciled"))
    yield from (f"the bill of call {hold} is on record {times} times" for hold, times in bills.items() if times > 1)
    costs = {hold_of(event): cast("dict[str, int]", event.data["costs"]) for event in books.of("hold.reconciled")}
    for _, hold, cost in world.notes("billed"):
        if costs[hold].get("credits") != cost:
            yield f"the bill of call {hold} was acknowledged as {cost} and is {costs[hold]}"
    paid = Counter(event.data["why"] for event in books.of("credits.spent"))
    yield from (f"'{why}' was paid {times} times" for why, times in paid.items() if times > 1)


def _not_again(found: Seen, world: World, before: Death) -> Iterator[str]:
    """What was on record when a process died was not done again after that."""
    for life, agent, text, task in world.notes("began"):
        if life <= before.life:
            continue
        if text in before.completed:
            yield f"'{text}' had completed before life {life} and was carried out again"
        if (agent, task) in before.turns:
            yield f"'{agent}' had handed on '{text}' before life {life} and got it again"
        if task in before.cancelled:
            yield f"'{text}' was cancelled before life {life} and was carried out"
    # Every effect is noted outside under its own name; which task and step that is says the record of the store.
    names = {f"{event.task}/{event.data['key']}" for event in found.events if event.kind == "effect.done"}
    if not before.effects <= names:
        yield f"effects are not on record any more: {sorted(before.effects - names)}"


def _same_end(got: Any, expected: Any) -> Iterator[str]:
    if expected is None:
        return
    for name, rows in expected.items():
        extra = [row for row in got[name] if row not in rows]
        missing = [row for row in rows if row not in got[name]]
        if extra or missing or len(rows) != len(got[name]):
            yield f"{name} differ from an undisturbed run: {extra} instead of {missing}"
