"""What earlier runs of a task finished and this one never asked for: its program has changed since, or does not do the
same each time. It is told, so that somebody can see to it."""

from __future__ import annotations

import asyncio
from typing import cast

from remit.core.events import Event
from remit.core.kinds import CreditsSpent, FirstData, read, work_left
from remit.core.money import Unit, spelled
from remit.core.text import shown, summary
from remit.engine.attempt.live import LiveTask
from remit.engine.ground import Ground
from remit.errors import Conflict
from remit.ports import Decision, View

_BEGINS = ("task.started", "task.submitted")


async def tell_left_over(ground: Ground, live: LiveTask) -> None:
    """Record which delegations and payments of this turn are finished and were not asked for this time."""
    if live.lead is not None:  # what is led is led by its record, and not by a program
        return

    def decide(view: View) -> Decision[None]:
        live.must_own(view)
        left = _left_over(view, live)
        return Decision(None, (work_left(live.remit, left, ground.clock.now()),) if left else ())

    if await ground.store.read(lambda view: _left_over(view, live)):
        await ground.store.tx(live.operations.left_over, decide)


def _left_over(view: View, live: LiveTask) -> list[str]:
    operations = live.operations
    events = [event for prefix in operations.of_turn for event in view.done_under(prefix)]
    fresh = (one for one in events if not (operations.was_asked(one.op or "") or operations.was_given(one.task)))
    return [said for event in fresh if (said := _said(view, event))]


def amounts(data: CreditsSpent) -> str:
    return " and ".join(spelled(cast("Unit", unit), cost) for unit, cost in data["costs"].items())


async def must_not_differ(ground: Ground, live: LiveTask, op: str, why: str) -> None:
    """Refuse a payment that is not on record while one for the same is that this run has not come to: it may be that
    one with another amount. While other flows of the turn may still come to theirs nobody can know; then it is told at
    the end."""
    call = live.control.calls[-1].task if live.control.calls else None
    if live.elsewhere or live.doing or asyncio.current_task() is not call:
        return

    def look(view: View) -> CreditsSpent | None:
        if view.done(op) is not None:
            return None
        paid = [event for event in view.done_under(live.operations.of_turn[-1]) if event.kind == "credits.spent"]
        left = [read(event, CreditsSpent) for event in paid if not live.operations.was_asked(event.op or "")]
        return next((data for data in left if data["why"] == why), None)

    if (other := await ground.store.read(look)) is not None:
        error = Conflict(
            f"{amounts(other)} was paid for {shown(why)} when this task was run before; it is neither paid again nor "
            "taken for this payment: give the same amount each time the task is run, or payments a reason each"
        )
        error.retryable = False  # run again it would be the same
        raise error


def _said(view: View, event: Event) -> str:
    """Say what was finished; nothing if that was no part of the task, or did not complete."""
    if event.kind == "credits.spent":
        data = read(event, CreditsSpent)
        return f"{amounts(data)} paid" + (f" for {data['why']}" if data["why"] else "")
    if event.kind not in _BEGINS:
        return ""
    standing = view.standing(event.task)
    done = standing is not None and standing.state == "completed"
    return f"'{event.agent}' completed task {event.task}: {summary(read(event, FirstData)['task'])}" if done else ""
