"""Clauses on operation ids: a repeated id returns the recorded answer and changes nothing."""

import asyncio
from typing import Final

from remit.core.entry import Draft
from remit.core.events import INLINE, Gap, Unsealed, blob_reference, is_blob
from remit.core.kinds import journal_cut
from remit.core.values import Json
from remit.errors import Conflict, StoreError
from remit.ports import Database, Decide, Decided, Decision, View
from remit.testing.clauses.making import (
    NOW,
    answer_or_error,
    equal,
    journal,
    look,
    must,
    putting,
    raising,
    sound,
    value_of,
)

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
        equal(await store.tx(f"op {number}", putting(draft, answer=answer)), answer, "the first answer")
    before = await journal(store)
    for number, answer in enumerate(_ANSWERS):
        other = putting(Draft("notes", f"key {number}", "written twice"), answer="another answer")
        again = await store.tx(f"op {number}", other)
        equal(again, answer, "the same operation id gives the same answer")
        equal(type(again), type(answer), "the same operation id gives an answer of the same type")
    equal(await journal(store), before, "the same operation id changes nothing the second time")
    await sound(store)


async def a_long_answer_is_kept_beside_its_event(database: Database) -> None:
    """Lists of events do not contain it, a repeated operation returns it, and it is deleted with its event."""
    store = database.store("one")
    long: Json = ["x" * INLINE, {"ü\0": "😀"}]
    equal(await store.tx("short", putting(Draft("notes", "a", 1), answer="x" * (INLINE - 2))), "x" * (INLINE - 2), "")
    equal(await store.tx("long", putting(Draft("notes", "a", 2), answer=long)), long, "the first answer")
    equal(await store.tx("long", putting(Draft("notes", "a", 3))), long, "the same operation id gives the same answer")
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
        again = await store.tx(f"op {number}", lambda _view: Decision[Json]("nothing to do"))
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
        equal(await store.tx("look", look), "seen", "an operation that changes nothing answers what it decided")
    equal(
        [event.op for event in await journal(store)],
        ["first"],
        "an operation that changes nothing leaves no event",
    )


async def what_raised_was_not_done(database: Database) -> None:
    """The operation id of a decision that raised can still be used."""
    store = database.store("one")
    error = Conflict("not now")
    equal(await answer_or_error(store, "op", raising(error)), error, "what decide raises reaches whoever asked")
    equal(
        await store.tx("op", putting(Draft("notes", "a", 1), answer="done")),
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

    answers = await asyncio.gather(*(store.tx(f"op {number % 10}", adding) for number in range(50)))
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

    first = await store.transact("op", decide)
    must(first.answer == "done" and first.aside is aside, f"the first time gives the aside itself, got {first}")

    def nothing(_view: View) -> Decision[Json]:
        return Decision("nothing to do", aside=aside)

    for again in (decide, raising(Conflict("too late")), nothing):
        equal(await store.transact("op", again), Decided("done"), "an operation that was done before has no aside")
    equal(await store.tx("op", decide), "done", "the answer alone")
    for _ in range(2):
        looked = await store.transact("look", lambda _view: Decision[Json](7, aside=aside))
        must(looked.answer == 7 and looked.aside is aside, f"what changes nothing gives its aside, got {looked}")
    must(all(event.answer in ('"done"', None) for event in await journal(store)), "an aside is not kept")
    await sound(store)


async def everyone_gets_the_own_aside(database: Database) -> None:
    """Among twice as many callers as operations, the first caller of each operation gets the aside, in any batch."""
    store = database.store("one")

    def decide(number: int) -> Decide[Json]:
        draft = Draft("notes", f"key {number}", number)
        return lambda view: putting(draft, answer=number)(view)._replace(aside=[number])

    both = await asyncio.gather(*(store.transact(f"op {n % 50}", decide(n % 50)) for n in range(100)))
    for number in range(50):
        expected = [Decided(number, [number]), Decided(number)]
        equal(both[number::50], expected, f"what the two callers of operation {number} get")


async def each_workspace_has_its_own_operations(database: Database) -> None:
    one, two = database.store("one"), database.store("two")
    await one.tx("op", putting(Draft("notes", "a", 1), answer="of one"))
    answer = await two.tx("op", putting(Draft("notes", "a", 2), answer="of two"))
    equal(answer, "of two", "an operation id used in one workspace is free in another")
    must(
        await value_of(two, "notes", "a") == 2,
        "an operation id used in one workspace was not done in another",
    )


async def those_whose_ids_begin_alike_are_found(database: Database) -> None:
    """Their first events, in order; none with another prefix or in another workspace."""
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
)
