"""What becomes of a task whose process is gone."""

from __future__ import annotations

from remit.core.events import Unsealed
from remit.core.kinds import Claim, FirstData, Requeue, fenced, read, requeued
from remit.core.record import Record
from remit.core.values import Json
from remit.engine.attempt.endings import AT_ONCE
from remit.engine.consequences import ended_unrun
from remit.engine.hops import LASTS, place_of
from remit.ports import View


def left_behind(view: View, record: Record, ending: set[str], now: int) -> list[Unsealed]:
    """Say what becomes of a task whose process is gone."""
    if record.state == "cancelling":
        return ended_when_alone(view, record.id, ending, now)
    if record.parent and record.asked_how == "delegate":
        parent = view.standing(record.parent)
        if parent is None or parent.state not in ("pending", "running", "waiting"):
            return [ended_unrun(record, "task.cancelled", "its asker ended without it", now)]
        return [fenced(place_of(record), record.holder, now, Claim("", record.fence + 1, record.attempt))]
    if record.led_as:
        return [ended_unrun(record, "task.failed", f"the process that ran this {record.led_as} is gone", now)]
    back = Requeue("", record.fence + 1, AT_ONCE, record.attempt, record.failures)
    data: dict[str, Json] = {"lost_by": record.worker}
    began = view.event(record.began)
    if record.asked_how == "delegate" and began is not None and "deadline" not in read(began, FirstData)["bounds"]:
        data["until"] = now + LASTS  # it stands in the queue now, which has nothing to do with the time of an attempt
    return [requeued("task.lost", place_of(record), record.holder, now, back, data)]


def not_run(view: View, record: Record, now: int) -> list[Unsealed]:
    """Say what becomes of a task that is on record as run by this process, and is not. Whoever waited for one that was
    delegated or run in the foreground was told that the store failed, so it is not run again."""
    if record.asked_how == "delegate" and record.state != "cancelling":
        return [ended_unrun(record, "task.failed", "the store was away, and its end could not be recorded", now)]
    return left_behind(view, record, set(), now)


def ended_when_alone(view: View, task: str, ending: set[str], now: int) -> list[Unsealed]:
    """Cancel a task, once nothing is left under it that is not ending with it."""
    first, *rest = view.below(task)
    if any(record.id not in ending for record in rest):
        return []
    ending.add(task)
    return [ended_unrun(first, "task.cancelled", "cancelled", now)]
