"""Clauses on transactions: each commits as a whole or not at all, is answered from the record when its operation id is
repeated, and is serial: each of many callers gets its own answer, and no caller is affected by another."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Final

from remit.core.entry import Draft
from remit.core.events import INLINE, Gap, Unsealed, blob_reference, is_blob
from remit.core.kinds.tasks import started
from remit.core.kinds.upkeep import journal_cut
from remit.core.values import Json
from remit.errors import Conflict, StoreError
from remit.ports import Database, Decide, Decided, Decision, Store, View
from remit.testing.clauses.making import (
    NOW,
    Answer,
    answer_or_error,
    answer_to,
    child_remit,
    entry_event,
    equal,
    first_remit,
    journal,
    look,
    must,
    putting,
    raising,
    sound,
    value_of,
)

# -- operation ids -------------------------------------------------------------------------------------------


_ANSWERS: Final[tuple[Json, ...]] = (
    None,
    False,
    0,
    "",
    [],
    {},
    1.5,
    2**63 - 1,
    "text with 'quotes', \\ and \U0001f600",
    {"deep": [1, None, True, {"é": "e\u0301"}]},
)


async def answers_again(database: Database) -> None:
    """Every kind of answer, None included, is returned again; the second time nothing is written."""
    store = database.store("one")
    for number, answer in enumerate(_ANSWERS):
        draft = Draft("notes", f"key {number}", f"value {number}")
        equal((await store.tx(f"op {number}", putting(draft, answer=answer))).answer, answer, "the first answer")
    before = await journal(store)
    for number, answer in enumerate(_ANSWERS):
        other = putting(Draft("notes", f"key {number}", "written twice"), answer="another answer")
        again = (await store.tx(f"op {number}", other)).answer
        equal(again, answer, "the same operation id gives the same answer")
        equal(type(again), type(answer), "the same operation id gives an answer of the same type")
    equal(await journal(store), before, "the same operation id changes nothing the second time")
    await sound(store)


async def a_long_answer_is_kept_beside_its_event(database: Database) -> None:
    """Lists of events do not contain a long answer. A repeated operation returns it, and it is deleted with its
    event."""
    store = database.store("one")
    long: Json = ["x" * INLINE, {"ü\0": "😀"}]
    equal(
        (await store.tx("short", putting(Draft("notes", "a", 1), answer="x" * (INLINE - 2)))).answer,
        "x" * (INLINE - 2),
        "",
    )
    equal((await store.tx("long", putting(Draft("notes", "a", 2), answer=long))).answer, long, "the first answer")
    equal(
        (await store.tx("long", putting(Draft("notes", "a", 3)))).answer,
        long,
        "the same operation id gives the same answer",
    )
    equal(await look(store, lambda view: view.done("long")), (long,), "what is looked up")
    [short, event] = await journal(store)
    must(short.answer is not None and len(short.answer) == INLINE, "what is just short enough is part of its event")
    must(is_blob(event.answer) and len(event.answer or "") < 100, f"the event has a digest, got {event.answer!r}")
    kept = await look(store, lambda view: [view.blob(1), view.blob(2), view.blobs()])
    must(kept[0] is None and blob_reference(str(kept[1])) == event.answer and kept[2] == 1, "one is kept beside")
    bad = await answer_or_error(store, "bad", lambda _view: Decision(None, (Unsealed("task.started", NOW, {}),)))
    must(isinstance(bad, StoreError), "an event that no table can take")
    equal(await look(store, lambda view: view.done("long")), (long,), "what is looked up when something else failed")
    await sound(store)
    await store.tx("cut", lambda _view: Decision(None, (journal_cut([Gap(2, 2, event.hash)], [], 0, NOW),)))
    equal(await look(store, lambda view: (view.blob(2), view.blobs())), (None, 0), "what was kept beside a cut event")


async def answers_again_when_the_second_time_raises(database: Database) -> None:
    store = database.store("one")
    for number, answer in enumerate(("done", None)):
        await store.tx(f"op {number}", putting(Draft("notes", f"key {number}", 1), answer=answer))
        for error in (Conflict("too late"), KeyError("gone"), RuntimeError("broken")):
            again = await answer_or_error(store, f"op {number}", raising(error))
            sentence = f"an operation that was done answers again, though deciding now raises {type(error).__name__}"
            equal(again, answer, sentence)
    await sound(store)


async def answers_again_when_the_second_time_changes_nothing(database: Database) -> None:
    store = database.store("one")
    for number, answer in enumerate(("done", None)):
        await store.tx(f"op {number}", putting(Draft("notes", f"key {number}", 1), answer=answer))
        again = (await store.tx(f"op {number}", lambda _view: Decision[Json]("nothing to do"))).answer
        equal(again, answer, "an operation that was done answers again, though there is nothing to do now")
    equal(len(await journal(store)), 2, "the number of events")


async def what_changes_nothing_leaves_nothing(database: Database) -> None:
    """An operation without events is not recorded; on the same tables it returns the same answer again."""
    store = database.store("one")
    await store.tx("first", putting(Draft("notes", "a", "seen")))

    def look(view: View) -> Decision[Json]:
        entry = view.entry("notes", "a")
        return Decision(entry.value if entry else None)

    for _ in range(2):
        equal(
            (await store.tx("look", look)).answer, "seen", "an operation that changes nothing answers what it decided"
        )
    equal(
        [event.op for event in await journal(store)],
        ["first"],
        "an operation that changes nothing leaves no event",
    )


async def what_raised_was_not_done(database: Database) -> None:
    """The operation id of a decision that raised can still be used."""
    store = database.store("one")
    error = Conflict("not now")
    equal(await answer_or_error(store, "op", raising(error)), error, "the caller gets the exception that decide raises")
    equal(
        (await store.tx("op", putting(Draft("notes", "a", 1), answer="done"))).answer,
        "done",
        "an operation tried again",
    )
    equal(await value_of(store, "notes", "a"), 1, "an operation tried again is done")


async def asked_twice_at_once(database: Database) -> None:
    """Fifty callers with ten operation ids cause ten operations."""
    store = database.store("one")

    def adding(view: View) -> Decision[Json]:
        old = view.entry("notes", "total")
        total = old.value if old is not None and isinstance(old.value, int) else 0
        return putting(Draft("notes", "total", total + 1), answer=total + 1)(view)

    answers = await asyncio.gather(*(answer_to(store, f"op {number % 10}", adding) for number in range(50)))
    equal(
        await value_of(store, "notes", "total"),
        10,
        "operations asked for at the same time are done once",
    )
    for number in range(10):
        equal(len({str(answer) for answer in answers[number::10]}), 1, "callers of one operation get one answer")
    await sound(store)


async def what_is_said_aside_is_given_once(database: Database) -> None:
    """The aside goes to the caller as it is and is not recorded: a repeated operation returns none."""
    store = database.store("one")
    aside = object()

    def decide(view: View) -> Decision[Json]:
        return putting(Draft("notes", "a", 1), answer="done")(view)._replace(aside=aside)

    first = await store.tx("op", decide)
    must(first.answer == "done" and first.aside is aside, f"the first time gives the aside itself, got {first}")

    def nothing(_view: View) -> Decision[Json]:
        return Decision("nothing to do", aside=aside)

    for again in (decide, raising(Conflict("too late")), nothing):
        equal(await store.tx("op", again), Decided("done"), "an operation that was done before has no aside")
    equal((await store.tx("op", decide)).answer, "done", "the answer alone")
    for _ in range(2):
        looked = await store.tx("look", lambda _view: Decision[Json](7, aside=aside))
        must(looked.answer == 7 and looked.aside is aside, f"what changes nothing gives its aside, got {looked}")
    must(all(event.answer in ('"done"', None) for event in await journal(store)), "an aside is not kept")
    await sound(store)


async def everyone_gets_the_own_aside(database: Database) -> None:
    """Among twice as many callers as operations, the first caller of each operation gets the aside, in any batch."""
    store = database.store("one")

    def decide(number: int) -> Decide[Json]:
        draft = Draft("notes", f"key {number}", number)
        return lambda view: putting(draft, answer=number)(view)._replace(aside=[number])

    both = await asyncio.gather(*(store.tx(f"op {n % 50}", decide(n % 50)) for n in range(100)))
    for number in range(50):
        expected = [Decided(number, [number]), Decided(number)]
        equal(both[number::50], expected, f"what the two callers of operation {number} get")


async def each_workspace_has_its_own_operations(database: Database) -> None:
    one, two = database.store("one"), database.store("two")
    await one.tx("op", putting(Draft("notes", "a", 1), answer="of one"))
    answer = (await two.tx("op", putting(Draft("notes", "a", 2), answer="of two"))).answer
    equal(answer, "of two", "an operation id used in one workspace is free in another")
    must(
        await value_of(two, "notes", "a") == 2,
        "an operation id used in one workspace was not done in another",
    )


async def those_whose_ids_begin_alike_are_found(database: Database) -> None:
    """`View.done_under` returns the first event of each operation whose id begins with the prefix, in order. It returns
    no operation of another workspace."""
    store, other = database.store("one"), database.store("two")
    for op in ("a/2/x", "a/10/y", "a/10/x", "a", "a/1", "ab/10/x", "a0"):
        await store.tx(op, putting(Draft("notes", op, op)))
        await other.tx(op, putting(Draft("notes", op, op)))
    for prefix, expected in (
        ("a/", ["a/2/x", "a/10/y", "a/10/x", "a/1"]),
        ("a/10/", ["a/10/y", "a/10/x"]),
        ("a/3/", []),
        ("x", []),
    ):
        found = await store.read(lambda view, prefix=prefix: [event.op for event in view.done_under(prefix)])
        equal(found, expected, f"the operations whose id begins with {prefix!r}")


# -- atomicity -----------------------------------------------------------------------------------------------


async def what_raises_writes_nothing(database: Database) -> None:
    store = database.store("one")
    await store.tx("before", putting(Draft("notes", "before", 1)))
    before = await journal(store)
    for error in (Conflict("no"), ValueError("no"), RuntimeError("no"), ZeroDivisionError("no")):
        equal(
            await answer_or_error(store, "op", raising(error)),
            error,
            "the caller gets the exception that decide raises",
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
    """A transaction that fails after it has ended a chapter leaves the chapters as they were. They equal those of a
    workspace without this transaction, even if a kept operation of the same batch ended one."""
    store, spared = database.store("one"), database.store("two")
    twin = started(first_remit("twin", session="s"), NOW)
    for each in (store, spared):
        await each.tx("begin", lambda _view: Decision(None, (twin, *_of("a0", 1_000))))
    for name, count in (("few", 1), ("enough", 30)):
        failed = answer_or_error(store, f"{name} bad", lambda _: Decision(None, (*_of("undone", 1_100), twin)))
        answers = await asyncio.gather(*_appends(store, name, count), failed, *_appends(store, f"{name} after", count))
        must(isinstance(answers[2], StoreError), f"{name}: a second task with the same id, got {answers[2]!r}")
        await asyncio.gather(*_appends(spared, name, count), *_appends(spared, f"{name} after", count))
        expected = await spared.read(lambda view: view.chapters(0, 100))
        must(len(expected) >= (count > 1), f"{name}: a journal of more than 1,024 events has a chapter")
        equal(await store.read(lambda view: view.chapters(0, 100)), expected, f"{name}: the chapters")
    await sound(store)


def _appends(store: Store, name: str, count: int) -> list[Awaitable[Answer]]:
    return [
        answer_or_error(store, name, lambda _view: Decision(None, _of(name, count))),
        answer_or_error(store, f"{name} entry", putting(Draft(name, "key", 1))),
    ]


def _of(agent: str, count: int) -> list[Unsealed]:
    return [Unsealed("effect.done", NOW, {}, "run", "s", "run", agent) for _ in range(count)]


async def _among_good_ones(store: Store, name: str, bad: Unsealed, place: int) -> Answer:
    """Run an operation with a good and a bad event concurrently with two good operations; `place` is its position among
    the three. Check that it fails as a whole and affects neither of the others. Return its exception."""

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


# -- concurrency ---------------------------------------------------------------------------------------------


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

    answers = await asyncio.gather(*(answer_to(store, f"op {number}", count) for number in range(_MANY)))
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
            acknowledged = int(str((await store.tx(f"op {number}", both(number))).answer))

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
    """A long read sees one snapshot while other reads and writes continue. A store in memory may have only one
    connection, so it is skipped."""
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
    """If an operation raises, the others get their answers, even if the exception is one that a future cannot hold,
    such as StopIteration from a careless `next()`."""
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
        must(isinstance(answers.pop(10), Exception), f"{type(error).__name__} of decide reaches its caller as an error")
        equal(answers, list(range(20)), f"a neighbour that raises {type(error).__name__} hurts no one")
    await sound(store)


async def who_stops_waiting_hurts_no_one(database: Database) -> None:
    """The work of a cancelled caller is done as a whole or not at all, and the others get their answers."""
    store = database.store("one")
    tasks = [
        asyncio.ensure_future(
            answer_to(store, f"op {number}", putting(Draft("notes", f"key {number}", number), answer=number))
        )
        for number in range(_MANY)
    ]
    for step in range(4):
        await asyncio.sleep(0)
        for task in tasks[step::8]:
            task.cancel()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    for number, answer in enumerate(answers):
        if not isinstance(answer, BaseException):
            equal(answer, number, "a caller that waits on gets its own answer")
            equal(await value_of(store, "notes", f"key {number}"), number, "what was acknowledged is there")
        elif number % 8 > 3:
            must(held=False, sentence=f"caller {number}, who did not stop waiting, got {answer!r}")
    again = await asyncio.gather(
        *(answer_to(store, f"op {n}", putting(Draft("notes", f"key {n}", n), answer=n)) for n in range(_MANY))
    )
    equal(again, list(range(_MANY)), "an operation that someone stopped waiting for can be asked for again")
    equal(len(await journal(store)), _MANY, "the number of events after that: one for each operation")
    await sound(store)


CLAUSES: Final = (
    answers_again,
    a_long_answer_is_kept_beside_its_event,
    answers_again_when_the_second_time_raises,
    answers_again_when_the_second_time_changes_nothing,
    what_changes_nothing_leaves_nothing,
    what_raised_was_not_done,
    asked_twice_at_once,
    what_is_said_aside_is_given_once,
    everyone_gets_the_own_aside,
    each_workspace_has_its_own_operations,
    those_whose_ids_begin_alike_are_found,
    what_raises_writes_nothing,
    events_commit_together,
    what_cannot_be_written_is_not_half_written,
    what_the_tables_refuse_is_not_half_written,
    what_is_undone_is_in_no_chapter,
    everyone_gets_the_own_answer,
    one_after_the_other,
    reads_see_whole_transactions,
    a_long_look_holds_up_nothing,
    a_neighbour_that_raises_anything_hurts_no_one,
    who_stops_waiting_hurts_no_one,
)
