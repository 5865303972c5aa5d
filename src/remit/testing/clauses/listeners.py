"""Clauses on sinks and listeners: sinks get committed events in order; listeners are woken when another process has
written."""

import asyncio
import logging
from collections.abc import Sequence
from typing import Final

from remit.core.entry import Draft
from remit.core.events import Event
from remit.core.values import Json
from remit.errors import Conflict
from remit.ports import Database, Decision, View
from remit.testing.clauses.making import (
    answer_or_error,
    entry_event,
    equal,
    first_remit,
    journal,
    putting,
    raising,
    sound,
    starting,
)


async def sinks_hear_everything_once_in_order(database: Database) -> None:
    """When a transaction returns, the sinks have its events: all of one transaction at once, in order."""
    store = database.store("one")
    heard: list[Sequence[Event]] = []
    stop = store.subscribe(lambda events: heard.append(tuple(events)))

    def two(view: View) -> Decision[Json]:
        return Decision(None, tuple(entry_event(view, Draft("notes", key, 1)) for key in "ab"))

    await store.tx("two", two)
    equal(
        [[event.seq for event in events] for events in heard],
        [[1, 2]],
        "what a sink heard of one transaction",
    )
    await asyncio.gather(*(store.tx(f"op {n}", putting(Draft("notes", f"key {n}", n))) for n in range(300)))
    equal(
        [event for events in heard for event in events],
        await journal(store),
        "a sink hears all events, in order",
    )
    count = len(heard)
    await store.tx("two", two)
    await answer_or_error(store, "raises", raising(Conflict("no")))
    await store.tx("looks", lambda _view: Decision(None))
    await database.store("two").tx("two", two)
    equal(
        len(heard),
        count,
        "nothing is heard of what was done before, failed, changed nothing or is another workspace's",
    )
    stop()
    await store.tx("unheard", putting(Draft("notes", "unheard", 1)))
    equal(len(heard), count, "a sink that was stopped hears nothing more")


async def a_failing_sink_harms_no_one(database: Database) -> None:
    """It affects neither the work nor the journal nor other sinks; not even if it modifies the events it is given."""
    store = database.store("one")
    before: list[Event] = []
    after: list[Event] = []

    def fails(_events: Sequence[Event]) -> None:
        raise RuntimeError("this sink fails on purpose")

    def takes_apart(events: Sequence[Event]) -> None:
        if isinstance(events, list):
            events.clear()
        raise RuntimeError("this sink fails on purpose")

    store.subscribe(before.extend)
    store.subscribe(fails)
    store.subscribe(takes_apart)
    store.subscribe(after.extend)
    logging.getLogger("remit").addFilter(_not_on_purpose)
    try:
        asked = (store.tx(f"op {n}", putting(Draft("notes", f"key {n}", n), answer=n)) for n in range(20))
        equal(await asyncio.gather(*asked), list(range(20)), "a failing sink does not fail the work")
    finally:
        logging.getLogger("remit").removeFilter(_not_on_purpose)
    equal(before, await journal(store), "a sink before a failing one hears everything")
    equal(after, await journal(store), "a sink after a failing one hears everything")
    await sound(store)


async def who_listens_is_told_in_vain_at_most(database: Database) -> None:
    """Starting and stopping to listen has no side effects. A listener may be called without a change, but never after
    it was stopped."""
    store = database.store("one")
    rung: list[int] = []
    stops = [store.listen(lambda number=number: rung.append(number)) for number in range(3)]
    await store.tx("op", starting(first_remit("root", session="s")))
    for stop in stops:
        stop()
    await asyncio.sleep(0)
    rung.clear()
    await store.tx("more", starting(first_remit("more", session="s")))
    await asyncio.sleep(0.3)
    equal(rung, [], "what rings after everyone has stopped listening")
    for stop in stops:
        stop()


def _not_on_purpose(record: logging.LogRecord) -> bool:
    """Whether a log record is not one that this clause provokes."""
    return not (record.exc_info and "on purpose" in str(record.exc_info[1]))


CLAUSES: Final = (
    sinks_hear_everything_once_in_order,
    a_failing_sink_harms_no_one,
    who_listens_is_told_in_vain_at_most,
)
