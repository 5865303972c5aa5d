"""Tasks that wait for a worker, who has them, and what is found by every way of asking for them."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from remit.core.events import Unsealed
from remit.core.kinds import (
    Claim,
    Queued,
    Requeue,
    claimed,
    ended,
    messages_taken,
    moved,
    place,
    requeued,
    runs_pruned,
    submitted,
)
from remit.core.message import Message
from remit.core.record import Record
from remit.core.times import SECOND
from remit.core.values import Json
from remit.errors import Conflict
from remit.ports import Beat, Database, Decision, Store, View, Which
from remit.testing.clauses.making import (
    NOW,
    answer_or_error,
    child_remit,
    ending,
    equal,
    first_remit,
    journal,
    must,
    pruned_run,
    sending,
    sound,
    starting,
    waiting_for,
)

T = TypeVar("T")

_QUEUED: Final = Queued("submit", timeout=60 * SECOND, attempts=3, ready_at=NOW)


async def a_queued_task_is_kept_through_its_life(database: Database) -> None:
    """Submitted, claimed, put back, claimed again by another, ended: what the table says at each turn."""
    store = database.store("one")
    work = first_remit("work", session="s", holder="helper")
    await store.tx("submit", waiting_for(work, queued=_QUEUED._replace(ready_at=NOW + 5, dedup_key="same")))
    found = await _record(store, "work")
    equal((found.state, found.asked_how, found.dedup_key), ("pending", "submit", "same"), "a task that was submitted")
    equal((found.worker, found.fence, found.attempt, found.failures), ("", 0, 0, 0), "who has a task nobody claimed")
    equal((found.asked_at, found.ready_at, found.claimed_at), (NOW, NOW + 5, None), "its times")
    await _do(store, "claim", claimed(place(work), "helper", NOW + 6, Claim("w1", 1, 1)))
    found = await _record(store, "work")
    equal((found.state, found.worker, found.fence), ("running", "w1", 1), "a task that was claimed")
    equal((found.attempt, found.claimed_at), (1, NOW + 6), "how often, and when")
    rest = Requeue("w2", 2, NOW + 20, 1, 1)
    await _do(store, "rest", requeued("task.retrying", place(work), "helper", NOW + 10, rest, {"why": "again"}))
    found = await _record(store, "work")
    equal((found.state, found.worker, found.fence), ("pending", "w2", 2), "a task that was put back")
    equal((found.ready_at, found.attempt, found.failures), (NOW + 20, 1, 1), "from when, and how often it was tried")
    await _do(store, "again", claimed(place(work), "helper", NOW + 21, Claim("w2", 3, 2)))
    await store.tx("end", ending(work, "task.completed", NOW + 30))
    found = await _record(store, "work")
    equal((found.state, found.ended_at), ("completed", NOW + 30), "a task that was completed")
    late = claimed(place(work), "helper", NOW + 31, Claim("w3", 4, 3))
    error = await answer_or_error(store, "late", lambda _view: Decision(None, (late,)))
    must(isinstance(error, Conflict), f"a claim of a task that has ended raises Conflict, got {error!r}")
    equal(await _record(store, "work"), found, "what has ended does not move again")
    await sound(store)


async def what_is_due_is_found_oldest_first(database: Database) -> None:
    """For one agent; not before its time; what is kept for one worker is found by no other."""
    store = database.store("one")
    works = [first_remit(f"work{9 - n}", session="s", holder="helper") for n in range(4)]
    for number, work in enumerate(works):
        await store.tx(work.id, waiting_for(work, queued=_QUEUED._replace(ready_at=NOW + 10 * (3 - number))))
    await store.tx("other", waiting_for(first_remit("other", session="s", holder="zoe")))
    equal(await _look(store, lambda view: view.queues()), ["helper", "zoe"], "the agents with something pending")

    def due(worker: str, at: int, limit: int = 10) -> Callable[[View], list[str]]:
        return lambda view: _ids(view.due("helper", worker, NOW + at, limit))

    for at, ids in ((-1, []), (0, ["work6"]), (10, ["work7", "work6"]), (30, ["work9", "work8", "work7", "work6"])):
        equal(await _look(store, due("w1", at)), ids, f"what is due after {at} µs, in the order it was asked for")
    equal(await _look(store, due("w1", 30, 2)), ["work9", "work8"], "the first two that are due")
    for at, when in ((-1, NOW), (0, NOW + 10), (29, NOW + 30), (30, None)):
        equal(await _look(store, lambda view, at=at: view.next_due(NOW + at)), when, f"what is due next after {at} µs")
    await _do(store, "claim", claimed(place(works[0]), "helper", NOW, Claim("w1", 1, 1)))
    await _do(
        store, "release", requeued("task.released", place(works[0]), "helper", NOW, Requeue("w1", 2, NOW, 1, 0), {})
    )
    equal(await _look(store, due("w1", 0)), ["work9", "work6"], "what is kept for a worker is due for it")
    equal(await _look(store, due("w2", 0)), ["work6"], "what is kept for a worker is not due for another")
    kept = await _look(store, lambda view: (view.resuming("*"), view.resuming("helper"), view.resuming("zoe")))
    equal(kept, (1, 1, 0), "how many are kept for a worker: of any agent, of this one, of another")
    for work in works:
        await store.tx(f"end {work.id}", ending(work, "task.cancelled"))
    equal(await _look(store, due("w1", 30)), [], "what has ended is not due")
    equal(await _look(store, lambda view: view.queues()), ["zoe"], "the agents that still have something pending")
    await sound(store)


async def queues_are_named_in_order_of_their_characters(database: Database) -> None:
    store = database.store("one")
    names = ("b", "a", "a-b", "a2", "zz", "b1", "a1")
    for name in names:
        await store.tx(name, waiting_for(first_remit(f"for {name}", session="s", holder=name)))
    equal(await _look(store, lambda view: view.queues()), sorted(names), "the agents with something pending")


async def what_is_late_is_found(database: Database) -> None:
    """Pending although its time is up; what is worked on is not late."""
    store = database.store("one")
    root = first_remit("root", session="s")
    parts = [child_remit(root, f"part{number}", holder="helper", seconds=1 + number) for number in range(3)]
    await store.tx("start", starting(root))
    await store.tx("submit", waiting_for(*parts))
    for at, late in ((0, []), (1, ["part0"]), (3, ["part0", "part1", "part2"])):
        found = await _look(store, lambda view, at=at: _ids(view.late(NOW + at * SECOND, 10)))
        equal(found, late, f"what is late after {at} s")
    equal(await _look(store, lambda view: _ids(view.late(NOW + 3 * SECOND, 1))), ["part0"], "the first that is late")
    await _do(store, "claim", claimed(place(parts[0]), "helper", NOW, Claim("w1", 1, 1)))
    found = await _look(store, lambda view: _ids(view.late(NOW + 3 * SECOND, 10)))
    equal(found, ["part1", "part2"], "what is worked on is not late")


async def who_works_on_what_is_counted(database: Database) -> None:
    """By worker; a task that waits is not worked on, unless for one that it delegated: that is done in its slot."""
    store = database.store("one")
    root = first_remit("root", session="s", holder="helper")
    work = child_remit(root, "work", holder="helper")
    await store.tx("start", starting(root))
    await store.tx("submit", waiting_for(work, queued=_QUEUED._replace(asked_how="spawn")))
    counts = await _look(store, lambda view: (view.working(), view.running("helper", NOW), view.spawned("root")))
    equal(counts, (0, 1, 1), "working, running and spawned before the claim")
    await _do(store, "claim", claimed(place(work), "helper", NOW, Claim("w1", 1, 1)))
    counts = await _look(store, lambda view: (view.working(), view.running("helper", NOW), view.spawned("root")))
    equal(counts, (1, 2, 1), "working, running and spawned after the claim")
    part = child_remit(work, "part", holder="another")
    await store.tx("delegate", starting(part))
    await _do(store, "wait", moved("task.waiting", place(work), "helper", NOW, {}))
    counts = await _look(
        store, lambda view: (view.working(), view.running("helper", NOW), view.running("another", NOW))
    )
    equal(counts, (1, 1, 1), "who waits for one it delegated does not run, and keeps the slot")
    await store.tx("end part", ending(part))
    equal(await _look(store, lambda view: view.working()), 0, "who waits for nothing that it delegated has no slot")
    await _do(store, "resume", moved("task.resumed", place(work), "helper", NOW, {}))
    counts = await _look(store, lambda view: (view.working(), view.running("helper", NOW)))
    equal(counts, (1, 2), "who is answered runs again")
    held = await _look(store, lambda view: (_ids(view.held("w1")), _ids(view.held("w2")), view.cancelling("w1")))
    equal([*held], [["work"], [], []], "what each worker has")
    await _do(store, "stop", moved("task.cancelling", place(work), "helper", NOW, {}))
    equal(await _look(store, lambda view: view.cancelling("w1")), ["work"], "what a worker is to stop")
    equal(await _look(store, lambda view: _ids(view.held("w1"))), ["work"], "what is to be stopped is still held")
    await store.tx("end work", ending(work, "task.cancelled"))
    counts = await _look(store, lambda view: (len(view.held("w1")), len(view.cancelling("w1")), view.working()))
    equal(counts, (0, 0, 0), "what a worker has when all has ended")
    equal(await _look(store, lambda view: view.spawned("root")), 0, "spawned, when all has ended")
    await sound(store)


async def what_is_below_a_task_is_found_from_the_top_down(database: Database) -> None:
    """Everything that has not ended, also under tasks that have."""
    store = database.store("one")
    root = first_remit("root", session="s")
    left, right = (child_remit(root, name, holder=name) for name in ("left", "right"))
    deep = child_remit(left, "deep", holder="deep")
    await store.tx("start", starting(root, left, right, first_remit("other", session="s")))
    await store.tx("submit", waiting_for(deep))
    for top, ids in (("root", ["root", "left", "right", "deep"]), ("left", ["left", "deep"]), ("none", [])):
        equal(await _look(store, lambda view, top=top: _ids(view.below(top))), ids, f"what is below {top}")
    await store.tx("end", ending(left))
    equal(await _look(store, lambda view: _ids(view.below("root"))), ["root", "right", "deep"], "what has not ended")
    equal(await _look(store, lambda view: _ids(view.below("left"))), ["deep"], "what is below one that has ended")
    found = await _look(store, lambda view: sorted(view.of_run("root")))
    expected = [("deep", "pending", None), ("left", "completed", NOW)]
    expected += [("right", "running", None), ("root", "running", None)]
    equal(found, expected, "every task of a run, with its state")


async def twins_are_found_newest_first(database: Database) -> None:
    store = database.store("one")
    for number in range(3):
        one = first_remit(f"work{number}", session="s", holder="helper")
        how = _QUEUED._replace(dedup_key="same" if number else "")
        await _do(store, f"op {number}", submitted(one, NOW + number, how))
    for dedup_key, since, ids in (
        ("same", NOW, ["work2", "work1"]),
        ("same", NOW + 1, ["work2"]),
        ("", 0, []),
        ("x", 0, []),
    ):
        found = await _look(
            store, lambda view, dedup_key=dedup_key, since=since: _ids(view.same_requests(dedup_key, since))
        )
        equal(found, ids, f"the twins {dedup_key!r} since {since}")


async def tasks_are_listed_by_every_condition(database: Database) -> None:
    """All conditions hold together, newest first, each with its text."""
    store = database.store("one")
    roots = [first_remit(f"run{n}", session=f"s{n % 2}") for n in range(3)]
    parts = [child_remit(root, f"{root.id}part", holder="helper") for root in roots]
    await store.tx("start", starting(*roots))
    await store.tx("submit", waiting_for(*parts))
    await store.tx("end", ending(parts[0], "task.failed"))
    every = {line[0].id: line for line in await _look(store, lambda view: view.tasks(Which()))}
    order = ["run2part", "run1part", "run0part", "run2", "run1", "run0"]
    equal([*every], order, "all tasks, newest first")
    equal(every["run1part"][1], parts[1].task, "a task with its text")
    equal(every["run1part"][0], await _record(store, "run1part"), "a task in the list is as it is alone")
    for which, ids in (
        (Which(session="s0"), ["run2part", "run0part", "run2", "run0"]),
        (Which(agent="helper"), ["run2part", "run1part", "run0part"]),
        (Which(state="pending"), ["run2part", "run1part"]),
        (Which(state="open", run="run0"), ["run0"]),
        (Which(state="failed"), ["run0part"]),
        (Which(parent="run1"), ["run1part"]),
        (Which(parent=""), ["run2", "run1", "run0"]),
        (Which(run="run2", agent="lead"), ["run2"]),
        (Which(limit=2), ["run2part", "run1part"]),
        (Which(session="none"), []),
    ):
        found = await _look(store, lambda view, which=which: [record.id for record, _ in view.tasks(which)])
        equal(found, ids, f"the tasks of {which}")


async def announcements_reach_the_task_that_asked(database: Database) -> None:
    """Not the agent's other tasks; those that nobody will read are found once the task has ended."""
    store = database.store("one")
    root = first_remit("root", session="s")
    await store.tx("start", starting(root))
    news = [Message(f"news{n}", "s", "helper", "lead", f"text {n}", NOW, "root", f"part{n}") for n in range(2)]
    letter = Message("letter", "s", "helper", "lead", "for any of its tasks", NOW)
    for message in (*news, letter):
        await store.tx(message.id, sending(message))
    for task, expected in (("root", [*news, letter]), ("other", [letter]), ("", [letter])):
        found = await _look(store, lambda view, task=task: view.waiting("s", "lead", task, 10))
        equal(found, expected, f"what waits for {task!r}")
    equal(await _look(store, lambda view: view.orphans(10)), [], "no announcement is an orphan while its reader lives")
    await _do(store, "take", messages_taken(["news0"], "lead", place(root), NOW))
    await store.tx("end", ending(root))
    equal(await _look(store, lambda view: view.orphans(10)), news[1:], "announcements that nobody will read")
    await sound(store)


async def old_runs_are_found_and_pruned(database: Database) -> None:
    """Their tasks go; that they happened stays, and the chain of hashes with it."""
    store = database.store("one")
    for number in range(3):
        root = first_remit(f"run{number}", session="s")
        await store.tx(f"start {number}", starting(root, child_remit(root, f"part{number}", holder="helper")))
        await _do(store, f"part {number}", ended(child_remit(root, f"part{number}", holder="helper"), *_end(number)))
        if number < 2:
            await _do(store, f"end {number}", ended(root, *_end(number)))
    for before, ids in ((NOW, []), (NOW + 1, ["run0"]), (NOW + 9, ["run0", "run1"])):
        equal(await _look(store, lambda view, before=before: view.old(before, 10)), ids, f"runs that ended by {before}")
    equal(await _look(store, lambda view: view.old(NOW + 9, 1)), ["run0"], "the first of the old runs")
    before = await journal(store)
    await _do(store, "prune", runs_pruned([pruned_run(first_remit("run0", session="s"), "part0")], NOW + 20))
    found = await _look(store, lambda view: (view.record("run0"), view.record("part0"), len(view.of_run("run0"))))
    equal(found, (None, None, 0), "the tasks of a run that was pruned")
    after = await journal(store)
    equal([event.hash for event in after[:-1]], [event.hash for event in before], "the hashes of a journal stay")
    told = [event.text for event in after if event.run == "run0"]
    must(bool(told) and not any(told), "what the events of a run that was pruned said is gone")
    must(bool(await _look(store, lambda view: view.record("run1"))), "other runs stay")


async def workers_say_that_they_are_there(database: Database) -> None:
    """A beat is no event; it is seen at once, comes along with facts, and goes when its worker leaves."""
    store = database.store("one")

    def beat(count: int, worker: str = "w1", home: str = "here") -> Decision[Json]:
        return Decision(count, (), Beat(worker, home, count))

    equal(await store.tx("beat 1", lambda _: beat(1)), 1, "what a beat answers")
    await store.tx("beat 2", lambda _: beat(2))
    await store.tx("beat 3", lambda _: beat(1, "w0", "there"))
    expected = [Beat("w0", "there", 1), Beat("w1", "here", 2)]
    equal(await _look(store, lambda view: view.workers()), expected, "the workers there are, by name")
    equal(await journal(store), [], "a beat is no event")
    work = first_remit("work", session="s")
    fact = submitted(work, NOW, _QUEUED)
    await store.tx("both", lambda _: Decision(None, (fact,), Beat("w1", "here", 3)))
    equal((await _look(store, lambda view: view.workers()))[1], Beat("w1", "here", 3), "a beat with a fact")
    await store.tx("leave", lambda _: beat(0))
    equal(await _look(store, lambda view: view.workers()), expected[:1], "who left is not there")
    await sound(store)


async def an_operation_and_an_event_are_found_again(database: Database) -> None:
    store = database.store("one")
    root = first_remit("root", session="s")
    await store.tx("none", lambda _: Decision(None, starting(root)(_).events))
    await store.tx("some", lambda _: Decision[Json]({"a": 1}, ending(root)(_).events))
    found = await _look(store, lambda view: (view.done("none"), view.done("some"), view.done("never")))
    equal(found, ((None,), ({"a": 1},), None), "what operations answered")
    events = await journal(store)
    found = await _look(store, lambda view: [view.event(1), view.event(2), view.event(3)])
    equal(found, [*events, None], "events by their place")

    def within(view: View) -> Decision[Json]:
        return Decision([view.done("some") is not None, view.done("within") is not None])

    equal(await store.tx("within", within), [True, False], "what operations answered, asked within a transaction")


async def who_listens_is_told_in_vain_at_most(database: Database) -> None:
    """Listening and ceasing to listen never harms; a bell may ring for nothing, but not after it was stopped."""
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


def _end(number: int) -> tuple[str, int, dict[str, Json]]:
    return "task.completed", NOW + number, {"result": "done"}


async def _do(store: Store, op: str, *facts: Unsealed) -> None:
    await store.tx(op, lambda _view: Decision(None, facts))


async def _look(store: Store, look: Callable[[View], T]) -> T:
    return await store.read(look)


async def _record(store: Store, task: str) -> Record:
    found = await store.read(lambda view: view.record(task))
    if found is None:
        raise AssertionError(f"there is no task {task}")
    return found


def _ids(records: Sequence[Record]) -> list[str]:
    return [record.id for record in records]


CLAUSES: Final = (
    a_queued_task_is_kept_through_its_life,
    what_is_due_is_found_oldest_first,
    queues_are_named_in_order_of_their_characters,
    what_is_late_is_found,
    who_works_on_what_is_counted,
    what_is_below_a_task_is_found_from_the_top_down,
    twins_are_found_newest_first,
    tasks_are_listed_by_every_condition,
    announcements_reach_the_task_that_asked,
    old_runs_are_found_and_pruned,
    workers_say_that_they_are_there,
    an_operation_and_an_event_are_found_again,
    who_listens_is_told_in_vain_at_most,
)
