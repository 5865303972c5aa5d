"""Clauses on concurrency: each caller gets its own answer, transactions are serial, and no caller is affected by
another."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Final

from remit.core.entry import Draft
from remit.core.values import Json
from remit.ports import Database, Decide, Decision, View
from remit.testing.clauses.making import (
    answer_or_error,
    entry_event,
    equal,
    journal,
    must,
    putting,
    raising,
    sound,
    value_of,
)

_MANY = 300
_PATIENCE: Final = 20.0


class _OwnError(Exception):
    """An error that carries the number of its caller."""


async def everyone_gets_the_own_answer(database: Database) -> None:
    """Some callers write, some only read, some raise; more than fit into one batch."""
    store = database.store("one")

    def decide(number: int) -> Decide[Json]:
        match number % 5:
            case 0:
                return raising(_OwnError(number))
            case 1:
                return lambda view: Decision(number if view.entry("notes", "none") is None else "wrong")
            case _:
                return putting(Draft("notes", f"key {number}", number), answer=number)

    asked = (answer_or_error(store, f"op {number}", decide(number)) for number in range(_MANY))
    for number, answer in enumerate(await asyncio.gather(*asked)):
        if number % 5 == 0:
            own = isinstance(answer, _OwnError) and answer.args == (number,)
            must(own, f"caller {number} of {_MANY} gets the own error, got {answer!r}")
        else:
            equal(answer, number, f"caller {number} of {_MANY} gets the own answer")
    expected = {f"op {number}" for number in range(_MANY) if number % 5 > 1}
    equal(
        {event.op for event in await journal(store)},
        expected,
        "what was acknowledged is in the journal, nothing else",
    )
    await sound(store)


async def one_after_the_other(database: Database) -> None:
    """Each transaction sees the writes of all earlier ones, so a counter is exact."""
    store = database.store("one")

    def count(view: View) -> Decision[Json]:
        old = view.entry("notes", "count")
        number = old.value + 1 if old is not None and isinstance(old.value, int) else 1
        return putting(Draft("notes", "count", number), answer=number)(view)

    answers = await asyncio.gather(*(store.tx(f"op {number}", count) for number in range(_MANY)))
    equal(
        sorted(map(str, answers)),
        sorted(map(str, range(1, _MANY + 1))),
        "each transaction sees all the earlier ones",
    )
    equal(await value_of(store, "notes", "count"), _MANY, "the count after all of them")
    await sound(store)


async def reads_see_whole_transactions(database: Database) -> None:
    """Two entries are always written together; a reader sees both or none, and every acknowledged write."""
    store = database.store("one")
    acknowledged = 0

    def both(number: int) -> Decide[Json]:
        def decide(view: View) -> Decision[Json]:
            return Decision(number, tuple(entry_event(view, Draft("notes", key, number)) for key in ("left", "right")))

        return decide

    def look(view: View) -> tuple[Json, Json]:
        left, right = view.entry("notes", "left"), view.entry("notes", "right")
        return left.value if left else 0, right.value if right else 0

    async def write() -> None:
        nonlocal acknowledged
        for number in range(1, 31):
            acknowledged = int(str(await store.tx(f"op {number}", both(number))))

    async def read(ask: Callable[[Callable[[View], tuple[Json, Json]]], Awaitable[tuple[Json, Json]]]) -> None:
        while acknowledged < 30:
            least = acknowledged
            left, right = await ask(look)
            equal(left, right, "a read sees whole transactions only")
            must(
                isinstance(left, int) and left >= least,
                f"a read sees what was acknowledged: {least}, got {left!r}",
            )
            await asyncio.sleep(0)

    await asyncio.gather(write(), read(store.read), read(store.read), read(store.browse))


async def a_long_look_holds_up_nothing(database: Database) -> None:
    """A long read sees one snapshot while other reads and writes continue. A store in memory is skipped, because no
    other process could continue there."""
    store = database.store("one")
    await store.tx("first", putting(Draft("notes", "a", "first"), answer=None))
    if not database.lasting:
        return
    began, loop_went_on = threading.Event(), threading.Event()

    def look(view: View) -> tuple[object, bool, object]:
        first = view.entry("notes", "a")
        began.set()
        went_on = loop_went_on.wait(_PATIENCE)
        return first, went_on, view.entry("notes", "a")

    async def go_on() -> None:
        await asyncio.to_thread(began.wait, _PATIENCE)
        await store.tx("second", putting(Draft("notes", "a", "second"), answer=None))
        equal(await value_of(store, "notes", "a"), "second", "a short look beside a long one")
        loop_went_on.set()

    (first, went_on, again), _ = await asyncio.gather(store.browse(look), go_on())
    must(went_on, "the loop goes on while a long look is under way")
    equal(again, first, "what a long look sees does not change")


async def a_neighbour_that_raises_anything_hurts_no_one(database: Database) -> None:
    """This includes exceptions that a future cannot hold, such as StopIteration from a careless `next()`."""
    store = database.store("one")
    for name, error in (
        ("stop", StopIteration("empty")),
        ("key", KeyError(1)),
        ("recursion", RecursionError("deep")),
    ):
        crowd = [
            answer_or_error(store, f"{name} {number}", putting(Draft(name, f"key {number}", number), answer=number))
            for number in range(20)
        ]
        crowd.insert(10, answer_or_error(store, name, raising(error)))
        answers = await asyncio.gather(*crowd)
        must(isinstance(answers.pop(10), Exception), f"whoever raises {type(error).__name__} gets an error")
        equal(answers, list(range(20)), f"a neighbour that raises {type(error).__name__} hurts no one")
    await sound(store)


async def who_stops_waiting_hurts_no_one(database: Database) -> None:
    """The work of a cancelled caller is done as a whole or not at all, and the others get their answers."""
    store = database.store("one")
    tasks = [
        asyncio.ensure_future(store.tx(f"op {number}", putting(Draft("notes", f"key {number}", number), answer=number)))
        for number in range(_MANY)
    ]
    for step in range(4):
        await asyncio.sleep(0)
        for task in tasks[step::8]:
            task.cancel()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    for number, answer in enumerate(answers):
        if not isinstance(answer, BaseException):
            equal(answer, number, "whoever waits on gets the own answer")
            equal(await value_of(store, "notes", f"key {number}"), number, "what was acknowledged is there")
        elif number % 8 > 3:
            must(held=False, sentence=f"caller {number}, who did not stop waiting, got {answer!r}")
    again = await asyncio.gather(
        *(store.tx(f"op {n}", putting(Draft("notes", f"key {n}", n), answer=n)) for n in range(_MANY))
    )
    equal(again, list(range(_MANY)), "an operation that someone stopped waiting for can be asked for again")
    equal(len(await journal(store)), _MANY, "the number of events after that: one for each operation")
    await sound(store)


CLAUSES: Final = (
    everyone_gets_the_own_answer,
    one_after_the_other,
    reads_see_whole_transactions,
    a_long_look_holds_up_nothing,
    a_neighbour_that_raises_anything_hurts_no_one,
    who_stops_waiting_hurts_no_one,
)
