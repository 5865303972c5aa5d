"""Clauses on the queue: pending tasks, due tasks, running tasks, and processes."""

from collections.abc import Callable
from typing import Final

from anyio import to_thread

from remit.core.kinds.tasks import Begun, Claim, Queued, Requeue, claimed, moved, requeued, started, submitted
from remit.core.kinds.workspace import (
    hook_added,
    hook_removed,
    hook_rotated,
    schedule_fired,
    schedule_removed,
    schedule_set,
    schedule_skipped,
)
from remit.core.remit import place
from remit.core.times import SECOND, Schedule
from remit.core.values import Json
from remit.errors import Conflict
from remit.ports import Beat, Database, Decision, View
from remit.testing.clauses.making import (
    NOW,
    answer_or_error,
    append,
    child_remit,
    ending,
    equal,
    first_remit,
    hooking,
    ids,
    journal,
    look,
    must,
    queueing,
    record_of,
    scheduling,
    sound,
    starting,
)

_QUEUED: Final = Queued("submit", timeout=60 * SECOND, attempts=3, ready_at=NOW)


async def a_queued_task_is_kept_through_its_life(database: Database) -> None:
    """Submitted, claimed, requeued, claimed again by another worker, ended: the table is right each time."""
    store = database.store("one")
    work = first_remit("work", session="s", holder="helper")
    await store.tx("submit", queueing(work, queued=_QUEUED._replace(ready_at=NOW + 5, dedup_key="same")))
    record = await record_of(store, "work")
    equal(
        (record.state, record.asked_how, record.dedup_key), ("pending", "submit", "same"), "a task that was submitted"
    )
    equal(
        (record.worker, record.fence, record.attempt, record.failures), ("", 0, 0, 0), "who has a task nobody claimed"
    )
    equal((record.asked_at, record.ready_at, record.claimed_at), (NOW, NOW + 5, None), "its times")
    await append(store, "claim", claimed(place(work), "helper", NOW + 6, Claim("w1", 1, 1)))
    record = await record_of(store, "work")
    equal((record.state, record.worker, record.fence), ("running", "w1", 1), "a task that was claimed")
    equal((record.attempt, record.claimed_at), (1, NOW + 6), "how often, and when")
    requeue = Requeue("w2", 2, NOW + 20, 1, 1)
    await append(
        store, "requeue", requeued("task.retrying", place(work), "helper", NOW + 10, requeue, {"why": "again"})
    )
    record = await record_of(store, "work")
    equal((record.state, record.worker, record.fence), ("pending", "w2", 2), "a task that was requeued")
    equal((record.ready_at, record.attempt, record.failures), (NOW + 20, 1, 1), "from when, and how often it was tried")
    await append(store, "again", claimed(place(work), "helper", NOW + 21, Claim("w2", 3, 2)))
    await store.tx("end", ending(work, "task.completed", NOW + 30))
    record = await record_of(store, "work")
    equal((record.state, record.ended_at), ("completed", NOW + 30), "a task that was completed")
    late = claimed(place(work), "helper", NOW + 31, Claim("w3", 4, 3))
    error = await answer_or_error(store, "late", lambda _view: Decision(None, (late,)))
    must(isinstance(error, Conflict), f"a claim of a task that has ended raises Conflict, got {error!r}")
    equal(await record_of(store, "work"), record, "what has ended does not move again")
    await sound(store)


async def what_was_lost_is_found_by_how_often(database: Database) -> None:
    """`View.due` leaves out tasks that were lost more often than `losses`, and finds the others."""
    store = database.store("one")
    for name in ("often", "never"):
        await store.tx(name, queueing(first_remit(name, session="s", holder="helper")))
    often = place(first_remit("often", session="s", holder="helper"))
    await append(store, "claim", claimed(often, "helper", NOW, Claim("w1", 1, 1)))
    lost = requeued("task.lost", often, "helper", NOW, Requeue("", 2, 0, 0, 0), {"lost_by": "w1", "losses": 2})
    await append(store, "lose", lost)
    equal((await record_of(store, "often")).losses, 2, "how often a process died that had it")
    for losses, expected in ((2, ["often", "never"]), (1, ["never"])):
        found = await look(store, lambda view, losses=losses: ids(view.due("helper", "w2", NOW + 10, 10, losses)))
        equal(found, expected, f"what is due and was lost no more than {losses} times")
    await sound(store)


async def what_is_due_is_found_oldest_first(database: Database) -> None:
    """`View.due` returns the tasks of one agent that may start now, in the order of their requests. A task that is kept
    for one worker is not due for others."""
    store = database.store("one")
    works = [first_remit(f"work{9 - n}", session="s", holder="helper") for n in range(4)]
    for number, work in enumerate(works):
        await store.tx(work.id, queueing(work, queued=_QUEUED._replace(ready_at=NOW + 10 * (3 - number))))
    await store.tx("other", queueing(first_remit("other", session="s", holder="zoe")))
    equal(await look(store, lambda view: view.queues()), ["helper", "zoe"], "the agents with something pending")
    for most in (2, 100):
        found = await look(store, lambda view, most=most: view.open_tasks(most))
        expected = {"pending": min(5, most), "running": 0, "waiting": 0, "cancelling": 0}
        equal(found, expected, f"the open tasks by state, counted up to {most}")

    def due(worker: str, at: int, limit: int = 10) -> Callable[[View], list[str]]:
        return lambda view: ids(view.due("helper", worker, NOW + at, limit))

    for at, expected in (
        (-1, []),
        (0, ["work6"]),
        (10, ["work7", "work6"]),
        (30, ["work9", "work8", "work7", "work6"]),
    ):
        equal(await look(store, due("w1", at)), expected, f"what is due after {at} µs, in the order it was asked for")
    equal(await look(store, due("w1", 30, 2)), ["work9", "work8"], "the first two that are due")
    for at, when in ((-1, NOW), (0, NOW + 10), (29, NOW + 30), (30, None)):
        equal(await look(store, lambda view, at=at: view.next_due(NOW + at)), when, f"what is due next after {at} µs")
    await append(store, "claim", claimed(place(works[0]), "helper", NOW, Claim("w1", 1, 1)))
    await append(
        store, "release", requeued("task.released", place(works[0]), "helper", NOW, Requeue("w1", 2, NOW, 1, 0), {})
    )
    equal(await look(store, due("w1", 0)), ["work9", "work6"], "what is kept for a worker is due for it")
    equal(await look(store, due("w2", 0)), ["work6"], "what is kept for a worker is not due for another")
    kept = await look(store, lambda view: (view.resuming("*"), view.resuming("helper"), view.resuming("zoe")))
    equal(kept, (1, 1, 0), "how many are kept for a worker: of any agent, of this one, of another")
    for work in works:
        await store.tx(f"end {work.id}", ending(work, "task.cancelled"))
    equal(await look(store, due("w1", 30)), [], "what has ended is not due")
    equal(await look(store, lambda view: view.queues()), ["zoe"], "the agents that still have something pending")
    await sound(store)


async def higher_priorities_are_due_first(database: Database) -> None:
    """In one queue and over all queues, tasks are due by priority, then in the order of their requests; delayed tasks
    too."""
    store = database.store("one")
    order: list[str] = []
    for number, (priority, ready_at) in enumerate(((0, 0), (-5, 0), (7, 0), (0, 0), (7, NOW), (100, NOW + 10), (7, 0))):
        work = first_remit(f"work{9 - number}", session="s", holder="helper")
        order.append(work.id)
        queued = _QUEUED._replace(ready_at=ready_at)
        await store.tx(work.id, queueing(work, queued=queued, begun=Begun(priority=priority)))
    zero, low, high, later_zero, delayed, highest, last = order
    first = [high, delayed, last, zero, later_zero, low]
    for at, expected in ((0, first), (10, [highest, *first])):
        for limit in (2, 10):
            found = await look(store, lambda view, at=at, limit=limit: ids(view.front(NOW + at, limit)))
            equal(found, expected[:limit], f"the first {limit} that are due after {at} µs in all queues")
            found = await look(store, lambda view, at=at, limit=limit: ids(view.due("helper", "w", NOW + at, limit)))
            equal(found, expected[:limit], f"the first {limit} that are due after {at} µs in one queue")
    equal((await record_of(store, highest)).priority, 100, "its priority")
    await sound(store)


async def what_is_due_in_all_queues_is_found_together(database: Database) -> None:
    """`View.front` returns the due tasks of all queues, in the order of their requests. A delayed task is not due
    before its time."""
    store = database.store("one")
    equal(await look(store, lambda view: view.front(NOW, 10)), [], "what is due where nothing is queued")
    works = [first_remit(f"work{9 - n}", session="s", holder=("zoe", "helper")[n % 2]) for n in range(4)]
    for work, ready_at in zip(works, (0, NOW + 10, 0, NOW), strict=True):
        await store.tx(work.id, queueing(work, queued=_QUEUED._replace(ready_at=ready_at)))
    first = works[0]
    for at, expected in (
        (-1, ["work9", "work7"]),
        (0, ["work9", "work7", "work6"]),
        (10, ["work9", "work8", "work7", "work6"]),
    ):
        found = await look(store, lambda view, at=at: ids(view.front(NOW + at, 10)))
        equal(found, expected, f"what is due after {at} µs in all queues, in the order it was asked for")
    equal(
        await look(store, lambda view: ids(view.front(NOW + 10, 2))), ["work9", "work8"], "the first two that are due"
    )
    for holder, at, due in (("zoe", -1, True), ("helper", -1, False), ("helper", 0, True), ("nobody", 10, False)):
        has = await look(store, lambda view, holder=holder, at=at: view.has_due(holder, NOW + at))
        equal(has, due, f"whether anything is due for {holder} after {at} µs")
    await append(store, "claim", claimed(place(first), "zoe", NOW, Claim("w1", 1, 1)))
    back = Requeue("w1", 2, 0, 1, 0)
    await append(store, "release", requeued("task.released", place(first), "zoe", NOW, back, {}))
    equal(
        await look(store, lambda view: ids(view.front(NOW, 1))), ["work7"], "what is kept for a worker is not anyone's"
    )
    await sound(store)


async def queues_are_named_in_order_of_their_characters(database: Database) -> None:
    store = database.store("one")
    names = ("b", "a", "a-b", "a2", "zz", "b1", "a1")
    for name in names:
        await store.tx(name, queueing(first_remit(f"for {name}", session="s", holder=name)))
    equal(await look(store, lambda view: view.queues()), sorted(names), "the agents with something pending")


async def what_is_late_is_found(database: Database) -> None:
    """`View.late` returns the pending tasks whose expiry has passed. It returns no running task."""
    store = database.store("one")
    root = first_remit("root", session="s")
    parts = [child_remit(root, f"part{number}", holder="helper", seconds=1 + number) for number in range(3)]
    await store.tx("start", starting(root))
    await store.tx("submit", queueing(*parts))
    for at, late in ((0, []), (1, ["part0"]), (3, ["part0", "part1", "part2"])):
        tasks = await look(store, lambda view, at=at: ids(view.late(NOW + at * SECOND, 10)))
        equal(tasks, late, f"what is late after {at} s")
    equal(await look(store, lambda view: ids(view.late(NOW + 3 * SECOND, 1))), ["part0"], "the first that is late")
    await append(store, "claim", claimed(place(parts[0]), "helper", NOW, Claim("w1", 1, 1)))
    tasks = await look(store, lambda view: ids(view.late(NOW + 3 * SECOND, 10)))
    equal(tasks, ["part1", "part2"], "what is worked on is not late")


async def who_works_on_what_is_counted(database: Database) -> None:
    """The store counts the tasks that workers run. A waiting task does not count, unless it waits for a task that it
    delegated, which runs in its slot."""
    store = database.store("one")
    root = first_remit("root", session="s", holder="helper")
    work = child_remit(root, "work", holder="helper")
    await store.tx("start", starting(root))
    await store.tx("submit", queueing(work, queued=_QUEUED._replace(asked_how="spawn")))
    counts = await look(store, lambda view: (view.working(), view.running("helper", NOW), view.spawned("root")))
    equal(counts, (0, 1, 1), "working, running and spawned before the claim")
    await append(store, "claim", claimed(place(work), "helper", NOW, Claim("w1", 1, 1)))
    counts = await look(store, lambda view: (view.working(), view.running("helper", NOW), view.spawned("root")))
    equal(counts, (1, 2, 1), "working, running and spawned after the claim")
    part = child_remit(work, "part", holder="another")
    await store.tx("delegate", starting(part))
    await append(store, "wait", moved("task.waiting", place(work), "helper", NOW, {}))
    counts = await look(store, lambda view: (view.working(), view.running("helper", NOW), view.running("another", NOW)))
    equal(counts, (1, 1, 1), "who waits for one it delegated does not run, and keeps the slot")
    await store.tx("end part", ending(part))
    equal(await look(store, lambda view: view.working()), 0, "who waits for nothing that it delegated has no slot")
    await append(store, "resume", moved("task.resumed", place(work), "helper", NOW, {}))
    counts = await look(store, lambda view: (view.working(), view.running("helper", NOW)))
    equal(counts, (1, 2), "who is answered runs again")
    held = await look(
        store, lambda view: (ids(view.tasks_of_worker("w1")), ids(view.tasks_of_worker("w2")), view.cancelling("w1"))
    )
    equal([*held], [["work"], [], []], "what each worker has")
    await append(store, "stop", moved("task.cancelling", place(work), "helper", NOW, {}))
    equal(await look(store, lambda view: view.cancelling("w1")), ["work"], "what a worker is to stop")
    equal(
        await look(store, lambda view: ids(view.tasks_of_worker("w1"))), ["work"], "what is to be stopped is still held"
    )
    await store.tx("end work", ending(work, "task.cancelled"))
    counts = await look(
        store, lambda view: (len(view.tasks_of_worker("w1")), len(view.cancelling("w1")), view.working())
    )
    equal(counts, (0, 0, 0), "what a worker has when all has ended")
    equal(await look(store, lambda view: view.spawned("root")), 0, "spawned, when all has ended")
    await sound(store)


async def workers_say_that_they_are_there(database: Database) -> None:
    """A heartbeat is no event. It is visible at once, can be written together with events, and is removed when its
    worker leaves."""
    store = database.store("one")

    def beat(count: int, worker: str = "w1", home: str = "here") -> Decision[Json]:
        return Decision(count, (), Beat(worker, home, count))

    equal((await store.tx("beat 1", lambda _: beat(1))).answer, 1, "what a heartbeat answers")
    await store.tx("beat 2", lambda _: beat(2))
    await store.tx("beat 3", lambda _: beat(1, "w0", "there"))
    expected = [Beat("w0", "there", 1), Beat("w1", "here", 2)]
    equal(await look(store, lambda view: view.workers()), expected, "the workers there are, by name")
    equal(await journal(store), [], "a heartbeat is no event")
    work = first_remit("work", session="s")
    event = submitted(work, NOW, _QUEUED)
    full = Beat("w1", "here", 3, 2, "[]", NOW, '["echo"]')
    await store.tx("both", lambda _: Decision(None, (event,), full))
    equal((await look(store, lambda view: view.workers()))[1], full, "a heartbeat with an event")
    await store.tx("leave", lambda _: beat(0))
    equal(await look(store, lambda view: view.workers()), expected[:1], "who left is not there")
    await sound(store)


async def heartbeats_come_from_threads_too(database: Database) -> None:
    """A heartbeat on its own connection is visible to all and does not wait for the event loop; a worker with tasks and
    no heartbeat is found."""
    store = database.store("one")
    pulse = database.pulse("one")
    must((pulse is not None) == database.lasting, "heartbeats are written where others could see them")
    work = first_remit("work", session="s")
    await store.tx("work", lambda _: Decision(None, (started(work, NOW, Begun("w1")),)))
    equal(await look(store, lambda view: view.unseen()), ["w1"], "who has something and never said that it is there")
    if pulse is None:
        await store.tx("beat", lambda _: Decision(None, (), Beat("w1", "here", 2, 3)))
    else:
        for count in (1, 2):
            await to_thread.run_sync(pulse.write, Beat("w1", "here", count, 3))
        pulse.close()
        await to_thread.run_sync(pulse.write, Beat("w1", "here", 2, 3))  # opened again
        pulse.close()
    equal(await look(store, lambda view: view.workers()), [Beat("w1", "here", 2, 3)], "the heartbeat that was written")
    equal(await look(store, lambda view: view.unseen()), [], "who says that it is there")
    await store.tx("end", ending(work))
    await store.tx("leave", lambda _: Decision(None, (), Beat("w1", "here", 0)))
    equal(await look(store, lambda view: view.unseen()), [], "who has nothing may leave")
    await sound(store)


async def a_schedule_moves_on_and_the_earliest_is_due_first(database: Database) -> None:
    store = database.store("one")
    names = [("b", NOW + 5), ("a", NOW + 5), ("c", NOW + 1)]
    await append(store, "set", *(schedule_set(scheduling(name, planned), NOW) for name, planned in names))
    equal([one.name for one in await look(store, lambda view: view.schedules())], ["a", "b", "c"], "all, by name")
    equal(await look(store, lambda view: view.next_planned()), NOW + 1, "the earliest planned time")
    due = await look(store, lambda view: view.schedules_due(NOW + 5, 2))
    equal([one.name for one in due], ["c", "a"], "those that are due, the earliest first")
    fired = scheduling("c", NOW + 9)._replace(last=NOW + 1, last_task="t1", runs=1)
    await append(store, "fire", schedule_fired(fired, None, NOW + 2))
    found = (await store.tx("look", lambda view: Decision([*(view.schedule("c") or ())]))).answer
    equal(found, [*fired._replace(began=3, moved=4)], "one that has run, within a decision")
    await append(store, "skip", schedule_skipped(fired._replace(next=None), NOW + 9, "late", NOW + 10))
    await append(store, "rest", schedule_removed("a", "ann", NOW), schedule_set(_paused("b"), NOW))
    equal(await look(store, lambda view: view.next_planned()), None, "none is planned")
    equal(await look(store, lambda view: view.schedules_due(NOW + 99, 9)), [], "none is due")
    states = [(one.name, one.state, one.runs, one.began) for one in await look(store, lambda view: view.schedules())]
    equal(states, [("b", "paused", 0, 7), ("c", "active", 1, 3)], "those that are left")
    await sound(store)


def _paused(name: str) -> Schedule:
    return scheduling(name, NOW)._replace(state="paused", next=None)


async def a_hook_is_kept_with_its_latest_secret_until_it_is_removed(database: Database) -> None:
    store = database.store("one")
    await append(store, "add", *(hook_added(hooking(hook), NOW) for hook in ("b", "a")), hook_added(_OF_RUN, NOW))
    await append(store, "rotate", hook_rotated("a", 2, "ann", NOW + 1))
    await append(store, "remove", hook_removed("b", "ann", NOW + 2), hook_removed("none", "ann", NOW + 2))
    found = (await store.tx("look", lambda view: Decision([*(view.hook("a") or ())]))).answer
    rotated = hooking("a")._replace(generation=2, rotated_at=NOW + 1, began=2, moved=4)
    equal(found, [*rotated], "one that was rotated, within a decision")
    equal(await look(store, lambda view: view.hook("b")), None, "one that was removed")
    equal(
        await look(store, lambda view: view.hooks()), [rotated, _OF_RUN._replace(began=3, moved=3)], "all that are left"
    )
    equal(await look(database.store("two"), lambda view: view.hooks()), [], "those of another workspace")
    await sound(store)


_OF_RUN: Final = hooking("c", run="r1")._replace(task="t1")


CLAUSES: Final = (
    a_queued_task_is_kept_through_its_life,
    what_is_due_is_found_oldest_first,
    what_is_due_in_all_queues_is_found_together,
    higher_priorities_are_due_first,
    a_schedule_moves_on_and_the_earliest_is_due_first,
    a_hook_is_kept_with_its_latest_secret_until_it_is_removed,
    what_was_lost_is_found_by_how_often,
    queues_are_named_in_order_of_their_characters,
    what_is_late_is_found,
    who_works_on_what_is_counted,
    workers_say_that_they_are_there,
    heartbeats_come_from_threads_too,
)
