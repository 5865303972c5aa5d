"""Handles of tasks: what another server is given with a task, and shows when it asks something for that task.

A handle is the id of the task and a mark, which the task recorded as the result of an effect. It gives no rights; it
says which task a request belongs to.
"""

from hmac import compare_digest
from typing import NamedTuple

from remit.core.events import read
from remit.core.kinds.workspace import EffectDone
from remit.engine.attempt.replay import origin_of
from remit.ports import View
from remit.runtime.workspace import Workspace


class Held(NamedTuple):
    """Who holds a task, and whether it has ended."""

    holder: str
    is_over: bool


async def handle_holder(workspace: Workspace, task: str, effect: str, mark: str) -> Held | None:
    """Return the holder of a handle's task. Return None if there is no such task, or if the task did not record this
    mark under this effect."""

    def look(view: View) -> Held | None:
        record = view.record(task)
        if record is None:
            return None
        effects = (read(event, EffectDone) for event in view.done_under(f"{origin_of(record)}/effects/"))
        marks = [one.get("result") for one in effects if one["key"] == effect]
        if not any(isinstance(one, str) and compare_digest(one, mark) for one in marks):
            return None
        return Held(record.holder, record.ended is not None)

    return await workspace.journal.read(look)
