"""What of the queue this process can carry out: a plan needs all of its members here, as it delegates to them."""

from typing import Final

from remit.core.chain import STAND_IN
from remit.core.kinds import FirstData, read
from remit.core.lead import lead_restored
from remit.core.plan import Plan
from remit.core.record import Record
from remit.core.text import INT_LIMIT
from remit.engine.directory import Directory
from remit.errors import StoreError
from remit.ports import View

# What reading a damaged record raises.
UNREADABLE: Final = (ValueError, LookupError, TypeError, AttributeError, AssertionError, RecursionError, StoreError)
_LOOKED_AT: Final = 256  # plans in the queue; the first of them may all be for other processes


def due(view: View, directory: Directory, room: tuple[str, int], now: int, losses: int = INT_LIMIT) -> list[Record]:
    """List the tasks that are first in the queue of a holder, as far as it has room, and that this process can carry
    out; only those that were not lost more often than so."""
    holder, most = room
    if holder != STAND_IN:
        return view.due(holder, "", now, most, losses)
    ours: list[Record] = []
    for record in view.due(holder, "", now, _LOOKED_AT, losses):
        if len(ours) < most and _has_all(view, directory, record):
            ours.append(record)
    return ours


def is_here(view: View, directory: Directory, record: Record) -> bool:
    """Whether this process can carry out a task whose holder it has."""
    return record.holder != STAND_IN or _has_all(view, directory, record)


def has_members(directory: Directory, plan: Plan) -> bool:
    """Whether everyone who is to do a step of a plan is here."""
    return all(directory.get(step.agent) is not None for step in plan.steps)


def _has_all(view: View, directory: Directory, record: Record) -> bool:
    """Whether all members of a plan are here. What cannot be read is anybody's, who then says so and ends it."""
    try:
        began = view.event(record.began)
        assert began is not None  # a row points at the event that made it
        lead = lead_restored(read(began, FirstData)["lead"])  # pyright: ignore[reportTypedDictNotRequiredAccess] - it has one
        return lead.plan is None or has_members(directory, lead.plan)
    except UNREADABLE:
        return True
