"""The journal as plain lines, for files and pipes."""

from collections.abc import Callable
from typing import Final

from remit.core import kinds
from remit.core.events import Event
from remit.core.kinds import read
from remit.core.times import iso
from remit.report.figures import count
from remit.report.printable import escaped

_STEPS: Final = 20  # of a plan that are named
_RUNS: Final = 5  # of those pruned that are named


def plain_line(event: Event) -> str:
    """2026-11-15T02:36:54.123Z task.started coder: write the auth module"""
    when = f"{iso(event.at)[:23]}Z"
    return f"{when} {event.kind} {event.agent or 'person'}{detail(event)}"


def detail(event: Event) -> str:
    """Write the end of an event's line: what it was about, as ": 2 runs: 0123, 4567"; nothing if the kind says it."""
    return escaped(_SAID[event.kind](event), 240) if event.kind in _SAID else ""


# -- one reader for each kind of event -----------------------------------------------------------------------


def _started(event: Event) -> str:
    return f": {read(event, kinds.FirstData)['task']}"


def _submitted(event: Event) -> str:
    """: write the auth module (spawn)"""
    data = read(event, kinds.FirstData)
    asked_how = data.get("asked_how", "submit")
    return f": {data['task']}" + (f" ({asked_how})" if asked_how != "submit" else "")


def _claimed(event: Event) -> str:
    data = read(event, kinds.ClaimData)
    return f": attempt {data['attempt']} on {data['worker']}"


def _retrying(event: Event) -> str:
    """: attempt 1: 'coder' failed: OSError: no disk; again from 02:36:55.123Z"""
    data = read(event, kinds.Retrying)
    return f": attempt {data['attempt']}: {data.get('error', '')}; again from {iso(data['ready_at'])[11:23]}Z"


def _lost(event: Event) -> str:
    return f": the process that had it is gone: {read(event, kinds.Retrying).get('lost_by', '')}"


def _cancelling(event: Event) -> str:
    return f": {read(event, kinds.Cancelling)['why']}"


def _completed(event: Event) -> str:
    return f": {read(event, kinds.Completed)['result']}"


def _failed(event: Event) -> str:
    return f": {read(event, kinds.FailedData)['error']}"


def _handed(event: Event) -> str:
    """to billing (phase refund)"""
    data = read(event, kinds.Handed)
    to, phase = data["to"], data["update"].get("phase")
    whom = to if isinstance(to, str) else ", ".join(to)
    return f" to {whom}" + (f" (phase {phase})" if phase else "")


def _refused(event: Event) -> str:
    data = read(event, kinds.HopRefused)
    word = "handoff to " if data.get("handoff") else ""
    return f": {word}{data['to']} ({data['rule']}): {data['sentence']}"


def _planned(event: Event) -> str:
    steps = read(event, kinds.PlanStarted)["steps"]
    return f": {len(steps)} steps: {', '.join(step['title'] for step in steps[:_STEPS])}"


def _accepted(event: Event) -> str:
    steps = read(event, kinds.TeamPlanned)["plan"]["steps"]
    return f": the plan is accepted: {count(len(steps), 'step')}"


def _step(event: Event) -> str:
    data = read(event, kinds.StepEnded)
    return f": step {data['step']} {data['state']}: {data['reason']}"


def _breaker(event: Event) -> str:
    """: open after 3 failures: no disk"""
    data = read(event, kinds.BreakerSet)
    failures = f" after {count(data['failures'], 'failure')}" if data["failures"] else ""
    return f": {data['state']}{failures}" + (f": {data['why']}" if data["why"] else "")


def _entry(event: Event) -> str:
    data = read(event, kinds.EntrySet)
    return f": {data['namespace']}/{data['key']} v{data['version']}"


def _pruned(event: Event) -> str:
    """: 2 runs: 0123, 4567"""
    runs = read(event, kinds.RunsPruned)["runs"]
    return f": {count(len(runs), 'run')}: {', '.join(run['id'] for run in runs[:_RUNS])}"


def _cut(event: Event) -> str:
    """: up to event 4,711, in 2 places"""
    gaps = read(event, kinds.JournalCut)["gaps"]
    places = f", in {len(gaps):,} places" if len(gaps) > 1 else ""
    return f": up to event {max((last for _, last, _ in gaps), default=0):,}{places}"


_SAID: Final[dict[str, Callable[[Event], str]]] = {
    "task.started": _started,
    "task.submitted": _submitted,
    "task.fenced": lambda _: ": its process is gone; it waits for its asker",
    "task.claimed": _claimed,
    "task.waiting": lambda _: ": waits for a task it submitted",
    "task.resumed": lambda _: ": goes on",
    "task.queued": lambda _: ": waits for its turn to go on",
    "task.retrying": _retrying,
    "task.released": lambda _: ": its process stops; another carries it out",
    "task.lost": _lost,
    "task.cancelling": _cancelling,
    "task.completed": _completed,
    "task.failed": _failed,
    "task.cancelled": _failed,
    "task.died": _failed,
    "task.handed": _handed,
    "hop.refused": _refused,
    "tokens.used": lambda event: f": {read(event, kinds.TokensUsed)['tokens']:,}",
    "effect.done": lambda event: f": {read(event, kinds.EffectDone)['key']}",
    "plan.started": _planned,
    "team.planned": _accepted,
    "step.ended": _step,
    "breaker.set": _breaker,
    "entry.set": _entry,
    "message.sent": lambda event: f" to {read(event, kinds.MessageSent)['to']}",
    "runs.pruned": _pruned,
    "keys.kept": lambda event: f": {count(len(read(event, kinds.KeysKept)['keys']), 'idempotency key')}",
    "journal.cut": _cut,
}
