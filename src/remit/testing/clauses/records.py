"""Clauses on the task table."""

from dataclasses import replace
from typing import Final

from remit.core.kinds import handed
from remit.core.lifecycle import Record, Standing
from remit.ports import Database, Decision
from remit.testing.clauses.making import (
    NOW,
    child_remit,
    ending,
    equal,
    first_remit,
    sound,
    starting,
)

_RUNNING: Final = Record(
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
    until=NOW,
    ended_at=None,
    began=1,
    ended=None,
    dedup_key="",
    origin="",
)


async def a_task_is_kept_whole(database: Database) -> None:
    store = database.store("one")
    root = first_remit("root", session="s")
    child = child_remit(root, "child", holder="helper", seconds=1)
    await store.tx("start", starting(root, child))
    await store.tx("end", ending(child, "task.failed", NOW + 7))
    running = replace(_RUNNING, until=root.bounds.deadline or 0)
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


async def running_counts_who_is_running(database: Database) -> None:
    """By holder, and only until the task's time is up."""
    store = database.store("one")
    root = first_remit("root", session="s")
    parts = [child_remit(root, f"part{number}", holder="helper", seconds=1 + number) for number in range(3)]
    await store.tx("start", starting(root, *parts))
    for at, expected in ((0, 3), (999_999, 3), (1_000_000, 2), (2_000_000, 1), (3_000_000, 0)):
        count = await store.read(lambda view, now=NOW + at: view.running("helper", now))
        equal(count, expected, f"tasks of 'helper' running {at} µs after the start")
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


CLAUSES: Final = (
    a_task_is_kept_whole,
    a_task_that_is_handed_on_has_its_new_holder,
    running_counts_who_is_running,
)
