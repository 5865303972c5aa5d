"""`remit status`: one task and its history."""

import asyncio
from collections.abc import Iterator
from typing import Final

from rich.console import Console
from rich.text import Text

from remit.cli.completing import TaskId
from remit.cli.options import HERE, AsJson, Where, emit, opened_workspace, out
from remit.cli.ps import took, where, without_worker
from remit.cli.terminal import moment, outcome_text, state_text
from remit.core.times import is_schedule
from remit.core.values import Json
from remit.report import wire
from remit.report.detail import Detail, EarlierAttempt
from remit.report.figures import count, duration, money
from remit.report.printable import escaped
from remit.report.uses import tool_call, tool_result, uses_by_holder, uses_in_short
from remit.report.words import states, waits
from remit.runtime.looks import DetailLook
from remit.runtime.workspace import Workspace

_FAILED: Final = 3  # of the tool calls that failed, the latest


def status(task: TaskId = "last", *, place: Where = HERE, json: AsJson = False) -> None:
    """Show a task: its state, attempts, subtasks and result.

    Parameters
    ----------
    task
        Id of a run or a task, a unique prefix or suffix of it, or `last`.
    json
        Print JSON.
    """
    with opened_workspace(place) as workspace:
        seen, lacking = asyncio.run(_look(workspace, task))
    if json:
        emit(seen_data(seen))
        return
    _print(out(), seen)
    if lacking:
        out().print(Text(lacking, "yellow"))


async def _look(workspace: Workspace, task: str) -> tuple[DetailLook, str]:
    """Return a task, and a sentence if it stays pending because no worker has its agent, or ""."""
    seen = await workspace.looks.detail(task)
    return seen, without_worker([seen.record], seen.crew)


def seen_data(seen: DetailLook) -> dict[str, Json]:
    record, crew = seen.record, seen.crew
    return wire.task_detail(seen.detail, state=crew.state(record), where=where(record, crew))


def _print(console: Console, seen: DetailLook) -> None:
    detail, record = seen.detail, seen.record
    console.print(Text.assemble((record.id, "bold"), "  ", state_text(seen.crew.state(record))))
    for name, text in _lines(seen):
        console.print(Text.assemble((f"{name:<9}", "dim"), text))
    for number, attempt in enumerate(detail.earlier, 1):
        console.print(Text.assemble((f"{'earlier' if number == 1 else '':<9}", "dim"), _attempt(attempt)))
    if record.ended is None:
        return
    console.print()
    console.print(outcome_text(record.state, detail.result, detail.error))


def _lines(seen: DetailLook) -> Iterator[tuple[str, str]]:
    detail, record, now = seen.detail, seen.record, seen.crew.at
    yield "agent", escaped(record.holder, 64)
    yield "task", escaped(detail.task, 400)
    starter = escaped(detail.labels.by, 64) if is_schedule(detail.labels.by) else "a person"
    by = f"'{escaped(detail.asker, 64)}', as a subtask of {record.parent}" if record.parent else starter
    yield "asked", f"{moment(record.asked_at)} by {by}"
    yield "session", escaped(record.session, 80)
    yield from _label_lines(detail)
    if record.asked_how != "delegate":
        yield "attempt", f"{record.attempt} of {detail.attempts}{_place(seen)}"
    if record.state == "pending":
        yield "due", f"in {duration(record.ready_at - now)}" if record.ready_at > now else "now"
        if record.priority:
            yield "priority", str(record.priority)
    else:
        yield "took", took(record, now)
    if detail.why:
        yield "stopped", escaped(detail.why, 200)
    if detail.credits:
        yield "spent", money(detail.credits)
    yield from (("model", escaped(line, 120)) for line in uses_in_short(uses_by_holder(detail.models), ()))
    yield from (("tools", line) for line in uses_in_short((), detail.tools))
    for use in [use for use in detail.tools if use.outcome == "failed"][-_FAILED:]:
        yield "failed", f"{tool_call(use)}: {tool_result(use)}"
    for question in detail.questions:
        if question.is_open:
            yield "waits", waits(question).removeprefix("waits ")
    if detail.below:
        yield "subtasks", f"{count(detail.below.total(), 'task')}: {states(detail.below.elements())}"


def _label_lines(detail: Detail) -> Iterator[tuple[str, str]]:
    """Yield the labels of the run."""
    labels = detail.labels
    if labels.by:
        yield "by", escaped(labels.by, 64)
    if labels.tags:
        yield "tags", escaped(", ".join(labels.tags), 400)
    for name, value in labels.meta:
        yield "meta", escaped(f"{name}={value}", 400)


def _place(seen: DetailLook) -> str:
    """Return the place of a task, such as "; here 4711"; "" if the task has ended or no process has it."""
    if seen.record.ended is not None:
        return ""
    place = seen.crew.where(seen.record.worker)
    return {"": "", "gone": "; its process is dead"}.get(place, f"; {place}")


def _attempt(attempt: EarlierAttempt) -> str:
    after = f" after {duration(attempt.elapsed)}" if attempt.elapsed is not None else ""
    return f"{attempt.how}{after}" + (f": {escaped(attempt.error, 300)}" if attempt.error else "")
