"""Clauses on atomicity: a transaction commits as a whole or not at all."""

import asyncio
from collections.abc import Awaitable
from typing import Final

from remit.core.entry import Draft
from remit.core.events import Unsealed
from remit.core.kinds import started
from remit.core.values import Json
from remit.errors import Conflict, StoreError
from remit.ports import Database, Decision, Store, View
from remit.testing.clauses.making import (
    NOW,
    Answer,
    answer_or_error,
    child_remit,
    entry_event,
    equal,
    first_remit,
    journal,
    must,
    putting,
    raising,
    sound,
    value_of,
)


async def what_raises_writes_nothing(database: Database) -> None:
    store = database.store("one")
    await store.tx("before", putting(Draft("notes", "before", 1)))
    before = await journal(store)
    for error in (Conflict("no"), ValueError("no"), RuntimeError("no"), ZeroDivisionError("no")):
        equal(
            await answer_or_error(store, "op", raising(error)),
            error,
            "what decide raises reaches whoever asked",
        )
    equal(await journal(store), before, "a decision that raises writes nothing")
    await store.tx("after", putting(Draft("notes", "after", 2)))
    equal(await value_of(store, "notes", "after"), 2, "after a decision that raised, the store goes on")
    await sound(store)


async def events_commit_together(database: Database) -> None:
    """All events of a transaction are adjacent in the journal, and the first has the operation id."""
    store = database.store("one")

    def several(number: int) -> Decision[Json]:
        root = first_remit(f"task{number}-0", session="s")
        parts = (child_remit(root, f"task{number}-{part}", holder="helper") for part in range(1, 5))
        return Decision(number, tuple(started(remit, NOW) for remit in (root, *parts)))

    await asyncio.gather(*(store.tx(f"op {n}", lambda _view, n=n: several(n)) for n in range(40)))
    events = await journal(store)
    equal(len(events), 200, "the number of events of 40 transactions with 5 events each")
    for start in range(0, 200, 5):
        number = events[start].task.removeprefix("task").removesuffix("-0")
        own = [(event.task, event.op) for event in events[start : start + 5]]
        op = f"op {number}"
        expected = [(f"task{number}-{part}", op if part == 0 else None) for part in range(5)]
        equal(own, expected, "the events of one transaction follow each other")
    await sound(store)


async def what_cannot_be_written_is_not_half_written(database: Database) -> None:
    """Events that are not JSON or have an unknown kind are refused as a whole, and other operations are not
    affected."""
    store = database.store("one")
    bad = (
        Unsealed("entry.set", NOW, {"value": "half a pair: \ud800"}),
        Unsealed("hop.refused", NOW, {"number": 2**80}),
        Unsealed("no.such.kind", NOW, {}),
        Unsealed("entry.set", NOW, {"key": "and nothing else"}),
    )
    for number, event in enumerate(bad):
        for place in range(3):
            await _among_good_ones(store, f"unwritable {number} at {place}", event, place)
    await sound(store)


async def what_the_tables_refuse_is_not_half_written(database: Database) -> None:
    """A second task with the same id violates a constraint of the tables."""
    store = database.store("one")
    remit = first_remit("twin", session="s")
    await store.tx("twin", lambda _view: Decision(None, (started(remit, NOW),)))
    for place in range(3):
        error = await _among_good_ones(store, f"refused at {place}", started(remit, NOW), place)
        must(
            isinstance(error, StoreError),
            f"what the tables refuse is a StoreError, got {type(error).__name__}",
        )
    await sound(store)


async def what_is_undone_is_in_no_chapter(database: Database) -> None:
    """A transaction that fails after it has ended a chapter leaves the chapters as they were. The chapters are those of
    a workspace in which nobody tried it, even if a kept operation of the same batch ended one."""
    store, spared = database.store("one"), database.store("two")
    twin = started(first_remit("twin", session="s"), NOW)
    for each in (store, spared):
        await each.tx("begin", lambda _view: Decision(None, (twin, *_of("a0", 1_000))))
    for name, count in (("few", 1), ("enough", 30)):
        failed = answer_or_error(store, f"{name} bad", lambda _: Decision(None, (*_of("undone", 1_100), twin)))
        answers = await asyncio.gather(*_kept(store, name, count), failed, *_kept(store, f"{name} after", count))
        must(isinstance(answers[2], StoreError), f"{name}: a second task with the same id, got {answers[2]!r}")
        await asyncio.gather(*_kept(spared, name, count), *_kept(spared, f"{name} after", count))
        expected = await spared.read(lambda view: view.chapters(0, 100))
        must(len(expected) >= (count > 1), f"{name}: a journal of more than 1,024 events has a chapter")
        equal(await store.read(lambda view: view.chapters(0, 100)), expected, f"{name}: the chapters")
    await sound(store)


def _kept(store: Store, name: str, count: int) -> list[Awaitable[Answer]]:
    return [
        answer_or_error(store, name, lambda _view: Decision(None, _of(name, count))),
        answer_or_error(store, f"{name} entry", putting(Draft(name, "key", 1))),
    ]


def _of(agent: str, count: int) -> list[Unsealed]:
    return [Unsealed("effect.done", NOW, {}, "run", "s", "run", agent) for _ in range(count)]


async def _among_good_ones(store: Store, name: str, bad: Unsealed, place: int) -> Answer:
    """Request a good and a bad event in one operation, at this place between two good operations."""

    def spoiled(view: View) -> Decision[Json]:
        return Decision("done", (entry_event(view, Draft(name, "half", "written")), bad))

    keys = ["left", "right"]
    asked = [answer_or_error(store, f"{name} {key}", putting(Draft(name, key, key), answer=key)) for key in keys]
    asked.insert(place, answer_or_error(store, name, spoiled))
    answers = await asyncio.gather(*asked)
    failure = answers.pop(place)
    must(isinstance(failure, Exception), f"{name}: what cannot be written raises, got {failure!r}")
    equal(answers, keys, f"{name}: a transaction that fails hurts no other")
    equal(await value_of(store, name, "half"), None, f"{name}: nothing is half-written")
    ops = [event.op for event in await journal(store)]
    must(name not in ops, f"{name}: nothing is half-written into the journal")
    for key in keys:
        equal(await value_of(store, name, key), key, f"{name}: what was acknowledged is there")
    again = await answer_or_error(store, name, putting(Draft(name, "half", "whole"), answer="whole"))
    equal(again, "whole", f"{name}: an operation that failed can be tried again")
    return failure


CLAUSES: Final = (
    what_raises_writes_nothing,
    events_commit_together,
    what_cannot_be_written_is_not_half_written,
    what_the_tables_refuse_is_not_half_written,
    what_is_undone_is_in_no_chapter,
)
