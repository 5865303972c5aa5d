"""The journal as plain lines, for files and pipes."""

from collections.abc import Callable
from typing import Final, TypeAlias, cast

from remit.core.events import Event
from remit.core.times import iso
from remit.core.values import Json
from remit.report.printable import escaped
from remit.report.words import count

Data: TypeAlias = dict[str, Json]


def plain_line(event: Event) -> str:
    """2026-11-15T02:36:54.123Z task.started coder: write the auth module"""
    when = f"{iso(event.at)[:23]}Z"
    return f"{when} {event.kind} {event.agent or 'person'}{detail(event)}"


def detail(event: Event) -> str:
    """What an event says besides who did what; of one that was pruned, only that."""
    if not event.text:
        return " (pruned)"
    return escaped(_TOLD[event.kind](event.data), 240) if event.kind in _TOLD else ""


def _handed(data: Data) -> str:
    """to billing (phase refund)"""
    to, phase = data["to"], cast("dict[str, Json]", data["update"]).get("phase")
    whom = ", ".join(cast("list[str]", to)) if isinstance(to, list) else str(to)
    return f" to {whom}" + (f" (phase {phase})" if phase else "")


def _refused(data: Data) -> str:
    word = "handoff to " if data.get("handoff") else ""
    return f": {word}{data['to']} ({data['rule']}): {data['sentence']}"


def _planned(data: Data) -> str:
    steps = cast("list[dict[str, Json]]", data["steps"])
    return f": {len(steps)} steps: {', '.join(str(step['title']) for step in steps[:20])}"


def _breaker(data: Data) -> str:
    """: open after 3 failures: no disk"""
    failures = f" after {count(cast('int', data['failures']), 'failure')}" if data["failures"] else ""
    return f": {data['state']}{failures}" + (f": {data['why']}" if data["why"] else "")


def _submitted(data: Data) -> str:
    """: write the auth module (spawn)"""
    return f": {data['task']}" + (f" ({data['way']})" if data["asked_how"] != "submit" else "")


def _retrying(data: Data) -> str:
    """: attempt 1: 'coder' failed: OSError: no disk; again from 02:36:55.123Z"""
    return f": attempt {data['attempt']}: {data['error']}; again from {iso(cast('int', data['ready_at']))[11:23]}Z"


def _pruned(data: Data) -> str:
    """: 2 runs: 0123, 4567"""
    runs = cast("list[dict[str, Json]]", data["runs"])
    return f": {count(len(runs), 'run')}: {', '.join(str(run['id']) for run in runs[:5])}"


_TOLD: Final[dict[str, Callable[[Data], str]]] = {
    "task.started": lambda data: f": {data['task']}",
    "task.submitted": _submitted,
    "task.fenced": lambda _data: ": its process is gone; it waits for its asker",
    "task.claimed": lambda data: f": attempt {data['attempt']} on {data['worker']}",
    "task.waiting": lambda _: ": waits for a task it submitted",
    "task.resumed": lambda _: ": goes on",
    "task.queued": lambda _: ": waits for its turn to go on",
    "task.retrying": _retrying,
    "task.released": lambda _: ": its process stops; another carries it out",
    "task.lost": lambda data: f": the process that had it is gone: {data['lost_by']}",
    "task.cancelling": lambda data: f": {data['why']}",
    "task.died": lambda data: f": {data['error']}",
    "effect.done": lambda data: f": {data['key']}",
    "runs.pruned": _pruned,
    "task.completed": lambda data: f": {data['result']}",
    "task.failed": lambda data: f": {data['error']}",
    "task.cancelled": lambda data: f": {data['error']}",
    "task.handed": _handed,
    "hop.refused": _refused,
    "plan.started": _planned,
    "step.ended": lambda data: f": step {data['step']} {data['state']}: {data['reason']}",
    "breaker.set": _breaker,
    "entry.set": lambda data: f": {data['namespace']}/{data['key']} v{data['version']}",
    "message.sent": lambda data: f" to {data['to']}",
}
