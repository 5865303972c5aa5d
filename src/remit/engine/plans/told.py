"""What became of a plan, as the journal has it."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from remit.core.kinds import EndData, StepTold, read
from remit.core.record import Record
from remit.core.schedule import StepState
from remit.core.values import Json, decode
from remit.engine.attempt import outcomes
from remit.engine.plans.running import PlanOutcome, StepOutcome
from remit.ports import View


def steps_told(view: View, record: Record) -> PlanOutcome | None:
    """Read what became of every step of a plan, with the results that their tasks gave; None if its end does not say
    so."""
    ended = view.event(record.ended or 0)
    if ended is None or "steps" not in ended.data:
        return None
    steps = (_outcome(view, step) for step in read(ended, EndData).get("steps", ()))
    return PlanOutcome({step.id: step for step in steps})


def _outcome(view: View, step: StepTold) -> StepOutcome:
    state, task = cast("StepState", step["state"]), step.get("task", "")
    outcome = StepOutcome(step["id"], step["title"], step["agent"], state, None, step.get("reason", ""), task)
    record = view.record(task) if task else None
    came = outcomes.of_record(view, record) if record is not None else None
    if came is None:
        return outcome
    value = _read(came.value, step) if state == "completed" else None
    return replace(outcome, value=value, trust=came.trust, retryable=came.error is not None and came.error.retryable)


def _read(value: Json, step: StepTold) -> Json:
    return decode(value) if step.get("payload") == "structured" and isinstance(value, str) else value
