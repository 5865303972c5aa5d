"""Tasks and messages as the tables have them."""

from dataclasses import replace
from typing import Final

from remit.core.breaker import CLOSED, Breaker
from remit.core.kinds import Place, breaker_set, handed, messages_taken, refused, started
from remit.core.message import Message
from remit.core.record import Record, Standing
from remit.core.remit import Pass
from remit.core.values import Json
from remit.ports import Database, Decision, Store, View
from remit.testing.clauses.making import (
    NOW,
    child_remit,
    ending,
    equal,
    first_remit,
    sending,
    sound,
    starting,
)


async def a_task_is_kept_whole(database: Database) -> None:
    store = database.store("one")
    root = first_remit("root", session="s")
    child = child_remit(root, "child", holder="helper", seconds=1)
    await store.tx("start", starting(root, child))
    await store.tx("end", ending(child, "task.failed", NOW + 7))
    until = root.bounds.deadline or 0
    running = Record(
        id="root",
        run="root",
        parent="",
        session="s",
        holder="lead",
        state="running",
        asked_how="delegate",
        led_as="",
        worker="",
        fence=1,
        attempt=1,
        failures=0,
        asked_at=NOW,
        ready_at=NOW,
        claimed_at=NOW,
        until=until,
        ended_at=None,
        began=1,
        ended=None,
        dedup_key="",
    )
    equal(await store.read(lambda view: view.record("root")), running, "a running task")
    failed = replace(
        running,
        id="child",
        parent="root",
        holder="helper",
        state="failed",
        until=NOW + 1_000_000,
        ended_at=NOW + 7,
        began=2,
        ended=3,
    )
    equal(await store.read(lambda view: view.record("child")), failed, "a task that failed")
    standing = await store.read(lambda view: view.standing("child"))
    equal(standing, Standing("failed", 1, 0, "delegate"), "the standing of a task that failed")
    equal(
        await store.read(lambda view: (view.standing("none"), view.record("none"))),
        (None, None),
        "a task no one began",
    )
    await sound(store)


async def a_task_that_is_handed_on_has_its_new_holder(database: Database) -> None:
    store = database.store("one")
    root = first_remit("root", session="s")
    await store.tx("start", starting(root))
    await store.tx("hand", lambda _: Decision(None, (handed(root, "helper", NOW, {}),)))
    await store.tx("fan", lambda _: Decision(None, (handed(root, ["a", "b"], NOW, {}),)))
    record = await store.read(lambda view: view.record("root"))
    equal(record.holder if record else None, "helper", "the holder of a task that was handed on, and then in parts")
    await store.tx("end", ending(root, "task.completed", NOW))
    await sound(store)


async def a_breaker_is_kept_as_it_was_last_set(database: Database) -> None:
    store = database.store("one")
    equal(await store.read(lambda view: view.breaker("helper")), CLOSED, "the breaker of an agent that never failed")
    for number, breaker in enumerate(
        (Breaker("open", 3, NOW + 5, "", "why"), Breaker("half-open", 3, NOW + 9, "t", "why"))
    ):
        fact = breaker_set("helper", breaker, Place(), NOW + number)
        await store.tx(f"set {number}", lambda _, fact=fact: Decision(None, (fact,)))
        equal(await store.read(lambda view: view.breaker("helper")), breaker, "a breaker as it was last set")
        expected = [("helper", breaker, NOW + number)]
        equal(await store.read(lambda view: view.breakers()), expected, "all breakers, with the time they were set")
    await sound(store)


async def running_counts_who_is_running(database: Database) -> None:
    """By holder, and only until the task's time is up."""
    store = database.store("one")
    root = first_remit("root", session="s")
    parts = [child_remit(root, f"part{number}", holder="helper", seconds=1 + number) for number in range(3)]
    await store.tx("start", starting(root, *parts))
    for at, expected in ((0, 3), (999_999, 3), (1_000_000, 2), (2_000_000, 1), (3_000_000, 0)):
        found = await store.read(lambda view, now=NOW + at: view.running("helper", now))
        equal(found, expected, f"tasks of 'helper' running {at} µs after the start")
    for kind, part, left in (
        ("task.completed", parts[0], 2),
        ("task.failed", parts[1], 1),
        ("task.cancelled", parts[2], 0),
    ):
        await store.tx(f"end {part.id}", ending(part, kind))
        equal(await store.read(lambda view: view.running("helper", NOW)), left, f"running after one {kind[5:]}")
    equal(
        await store.read(lambda view: (view.running("lead", NOW), view.running("no-one", NOW))),
        (1, 0),
        "by holder",
    )
    await sound(store)


async def the_newest_runs_first(database: Database) -> None:
    """Each with its task, and how many tasks and refusals it has."""
    store = database.store("one")
    for number in range(4):
        root = first_remit(f"run{number}", session=f"s{number % 2}")
        parts = [child_remit(root, f"run{number}part{part}", holder="helper") for part in range(number)]
        await store.tx(root.id, starting(root, *parts))
    no = refused(first_remit("run1", session="s1"), Pass("no-one", "work"), NOW, rule="unknown", sentence="no")
    await store.tx("refused", lambda _view: Decision(None, (no, no)))
    lines = await store.read(lambda view: view.runs(3))
    found = [(line.record.id, line.task, line.facts.tasks, line.facts.refusals) for line in lines]
    expected = [(f"run{n}", f"the work of run{n}", n + 1, 2 if n == 1 else 0) for n in (3, 2, 1)]
    equal(found, expected, "the newest three runs with their tasks and refusals")
    record = await store.read(lambda view: view.record("run3"))
    equal(lines[0].record, record, "the record of a run in the list of runs")


async def ids_by_their_beginning(database: Database) -> None:
    store = database.store("one")
    ids = ("abc", "abd", "ab_", "ab%", "b", "abcd")
    await store.tx("start", lambda _view: Decision(None, tuple(started(first_remit(i, session="s"), NOW) for i in ids)))
    for start in ("", "a", "ab", "abc", "ab%", "ab_", "x"):
        found = await store.read(lambda view, start=start: view.ids_like(start, 10))
        equal(found, sorted(i for i in ids if i.startswith(start)), f"the ids that begin with {start!r}")
    equal(
        await store.read(lambda view: view.ids_like("ab", 2)),
        ["ab%", "ab_"],
        "the first two ids that begin with 'ab'",
    )


async def messages_wait_until_they_are_taken(database: Database) -> None:
    """In the order they were sent, for one agent in one session; what is taken waits no more."""
    store = database.store("one")
    mail = [Message(f"m{9 - n}", "s", "lead", "helper", f"text {n} ü%'\U0001f600", NOW + n % 2) for n in range(4)]
    others = [Message("o1", "s", "lead", "another", "x", NOW), Message("o2", "t", "lead", "helper", "y", NOW)]
    for message in (*mail, *others):
        await store.tx(message.id, sending(message))
    equal(await _waiting(store, 10), mail, "messages in the order they were sent")
    equal(await _waiting(store, 2), mail[:2], "the first two messages")
    equal(
        await store.read(lambda view: view.waiting("s", "another", "", 10)),
        others[:1],
        "messages of another agent",
    )
    equal(
        await store.read(lambda view: view.waiting("t", "helper", "", 10)),
        others[1:],
        "messages of another session",
    )

    def take(view: View) -> Decision[Json]:
        ids = [one.id for one in view.waiting("s", "helper", "", 2)]
        return Decision(list(ids), (messages_taken(ids, "helper", Place("run", "s", "task"), NOW),))

    equal(await store.tx("take", take), ["m9", "m8"], "the messages taken")
    equal(await _waiting(store, 10), mail[2:], "what is taken waits no more")
    equal(
        await store.tx("take", take),
        ["m9", "m8"],
        "taking again under the same operation gives the same messages",
    )
    equal(await _waiting(store, 10), mail[2:], "taking again under the same operation takes nothing more")
    await sound(store)


async def _waiting(store: Store, limit: int) -> list[Message]:
    return await store.read(lambda view: view.waiting("s", "helper", "", limit))


CLAUSES: Final = (
    a_task_is_kept_whole,
    a_task_that_is_handed_on_has_its_new_holder,
    a_breaker_is_kept_as_it_was_last_set,
    running_counts_who_is_running,
    the_newest_runs_first,
    ids_by_their_beginning,
    messages_wait_until_they_are_taken,
)
