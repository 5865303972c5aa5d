"""What of the queue this process can carry out: a plan needs all of its members here, as it delegates to them."""

from typing import Final

from remit.core.chain import STAND_IN
from remit.core.kinds import FirstData, read
from remit.core.plan import Plan
from remit.core.record import Record
from remit.engine.directory import Directory
from remit.ports import View

_LOOKED_AT: Final = 256  # plans in the queue; the first of them may all be for other processes


def due(view: View, directory: Directory, holder: str, now: int, most: int) -> list[Record]:
    """List the tasks that are first in the queue of a holder, and that this process can carry out."""
    if holder != STAND_IN:
        return view.due(holder, "", now, most)
    ours: list[Record] = []
    for record in view.due(holder, "", now, _LOOKED_AT):
        if len(ours) < most and _is_ours(view, directory, record):
            ours.append(record)
    return ours


def has_members(directory: Directory, plan: Plan) -> bool:
    """Whether everyone who is to do a step of a plan is here."""
    return all(directory.get(step.agent) is not None for step in plan.steps)


def _is_ours(view: View, directory: Directory, record: Record) -> bool:
    began = view.event(record.began)
    lead = read(began, FirstData).get("lead") if began is not None else None
    steps = lead["plan"]["steps"] if lead is not None and "plan" in lead else ()
    return all(directory.get(step.get("agent", "")) is not None for step in steps)
