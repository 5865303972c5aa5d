"""Limits on how many tasks begin in a time. They are looked at in the decision that admits a task, and the task counts
in that very decision: two processes cannot both take the last one."""

from collections.abc import Iterable
from typing import Final

from remit.core.limits import TASKS, Limit, TasksUsedUp
from remit.core.remit import Remit
from remit.ports import View

LIMIT: Final = "limit"


def used_up(view: View, limits: Iterable[Limit], child: Remit, now: int) -> list[TasksUsedUp]:
    """List the limits that do not let this task begin."""
    found: list[TasksUsedUp] = []
    for limit in limits:
        metered = limit.meters(child.holder, child.session)
        if metered is None or limit.tasks is None:
            continue
        since = limit.since(now)
        begun = view.metered(metered.scope, metered.name, TASKS, since)
        if begun >= limit.tasks:
            hours = [(hour, count) for _, hour, count in view.meter_hours(metered.scope, metered.name, TASKS, since)]
            found.append(TasksUsedUp(limit, metered, begun, limit.room_at(TASKS, hours)))
    return found


def refusal(child: Remit, found: Iterable[TasksUsedUp], now: int, *, person: bool) -> str:
    """Say why the task may not begin: which limits there are, how many tasks count, and when there is room again."""
    why = "; ".join(one.sentence(now) for one in found)
    return f"'{child.holder}' was not asked: {why}; {_PERSON if person else _AGENT}"


_PERSON: Final = "ask again then, or raise the limit"
_AGENT: Final = "finish with what you have"
