"""A journal that a team has really written: every event has the shape of its kind, and every reader can read it."""

import asyncio

import pytest

from core.shapes import event_faults
from remit import Runtime
from remit.cli.demo import approving
from remit.cli.demo_team import team
from remit.core.events import Event
from remit.report import flow, wire
from remit.report.lines import plain_line
from remit.report.stats import stats
from remit.report.tree import tree


async def recorded(rt: Runtime) -> list[Event]:
    """The demo, and what an owner does besides: tasks in the queue, entries, a breaker."""
    script = asyncio.create_task(approving(rt.workspace, 0))
    await rt.outcome("lead", "build the login of the shop")
    script.cancel()
    await (await rt.submit("speller", "check this page")).wait(10)
    await (await rt.submit("archivist", "look for it", attempts=1)).wait(10)
    owner = rt.workspace
    await owner.context().set("notes", "a", {"x": [1]}, ttl=60)
    await owner.context().touch("notes", "a", ttl=600)
    await owner.context().remove("notes", "a")
    await owner.agents.trip("speller", "on holiday", by="ann")
    await owner.agents.reset("speller")
    return await owner.journal.history()


@pytest.mark.anyio
async def test_what_a_team_writes_has_the_shapes_that_its_kinds_say():
    with team(":memory:", 0) as rt:
        events = await recorded(rt)
        await rt.drain(0)

    assert [fault for event in events for fault in event_faults(event)] == []
    assert {event.kind for event in events} >= {
        "task.started",
        "task.handed",
        "task.completed",
        "task.failed",
        "task.died",
        "hop.refused",
        "plan.started",
        "breaker.set",
        "entry.set",
        "entry.touched",
        "entries.removed",
        "message.sent",
        "messages.taken",
    }
    assert all(plain_line(event).isprintable() for event in events)
    assert wire.stats(stats(events))["runs"] == {"completed": 2, "dead": 1}
    root = tree(event for event in events if event.run == events[0].run)
    assert root is not None
    assert flow.text(root, events[-1].at).startswith("✓ lead: build the login of the shop")
