"""Parking: a task without a process, in or below which a person has yet to answer, is not taken up before that."""

from __future__ import annotations

from typing import Final

from remit.core.events import Unsealed
from remit.core.kinds import Place, Requeue, requeued
from remit.core.record import Record
from remit.core.remit import LASTS, expires, restored
from remit.ports import View

AT_ONCE: Final = 0  # ready whatever the clock of whoever looks says


def has_question(view: View, event: Unsealed) -> bool:
    """Whether a person has yet to answer in a task, or in one that it delegated: nobody could go on with it."""
    asking = {question.task for question in view.questions_open_in(event.run)}
    if not asking:
        return False
    return event.task in asking or any(part.id in asking for part in parts(view, event.task))


def parts(view: View, task: str) -> list[Record]:
    """List what is delegated below a task and is open. What it only submitted goes on without it."""
    line = {task}
    found: list[Record] = []
    for record in view.below(task):
        if record.parent in line and is_part(record):
            line.add(record.id)
            found.append(record)
    return found


def is_part(record: Record) -> bool:
    """Whether a task is a part of what another does: whoever takes that up takes this up again."""
    return bool(record.parent) and record.asked_how == "delegate"


def parked(record: Record, now: int) -> Unsealed:
    """Make the event of a part whose process is gone, and whose asker is parked."""
    back = Requeue("", record.fence + 1, AT_ONCE, record.attempt, record.failures)
    return requeued("task.parked", Place(record.run, record.session, record.id), record.holder, now, back, {})


def unparked(view: View, task: str, now: int) -> list[Unsealed]:
    """Put whoever waits without a process for an answer in this task back into the queue."""
    events: list[Unsealed] = []
    record = view.record(task)
    while record is not None:
        if record.state == "waiting" and not record.worker and not is_part(record):
            events.append(_queued(view, record, now))
        record = view.record(record.parent) if is_part(record) else None
    return events


def _queued(view: View, record: Record, now: int) -> Unsealed:
    began = view.event(record.began)
    assert began is not None  # a row points at the event that made it
    back = Requeue("", record.fence, AT_ONCE, record.attempt, record.failures)
    place = Place(record.run, record.session, record.id)
    until = expires(restored(began).bounds, now, LASTS)
    return requeued("task.queued", place, record.holder, now, back, {"until": until})
