"""A run as lines of text: one for each task, handoff, refused hop and plan step."""

from collections.abc import Mapping
from typing import Final, TypeAlias

from remit.report.branches import Branch, Rest, branches, others
from remit.report.figures import duration
from remit.report.looks import AGAIN, ASKS, LOOKS, MODEL, TOOL, known_state, mark
from remit.report.printable import escaped
from remit.report.questions import AskedPerson
from remit.report.receipts import passed_on
from remit.report.summary import Subtotal, subtotals
from remit.report.tree import HandoffMade, Node, PlanStep, Refusal, Retry, Stay
from remit.report.uses import (
    ModelUse,
    ToolUse,
    model_figures,
    model_name,
    tool_call,
    tool_result,
    tool_time,
)
from remit.report.words import (
    ASKED,
    attempt_text,
    kept_from,
    notes,
    progress,
    reason,
    refused_word,
    saw,
    saw_in,
    spending_text,
    steps_first,
    subject_of,
    took,
    tries,
    waits,
)

_AGENT: Final = 32
_TASK: Final = 60
_SENTENCE: Final = 160
_STEPS: Final = 40  # the rest of a longer plan is counted
_TOOLS: Final = 12  # latest tool calls; earlier ones are counted
_RETRIES: Final = 8  # latest retries; earlier ones are counted
_GUIDES: Final = 96  # deeper branches keep only the nearest guides, or a deep chain would fill the screen with them


Whole: TypeAlias = Mapping[str, Subtotal]


def text(root: Node, now: int) -> str:
    """Return the tree with branches; safe to print whatever the agents wrote."""
    whole = subtotals(root)
    lines = [_task(root, now, whole)]
    waiting = _below(root, "", lines)
    while waiting:
        row, guides, last = waiting.pop()
        turn = "└" if last else "├"
        lines.append(f"{guides}{turn}{_dash(row)} {_line(row, now, whole)}")
        if isinstance(row, Node):
            waiting += _below(row, _nearest(guides + ("   " if last else "│  ")), lines)
    return "\n".join(lines) + "\n"


def _dash(row: Branch) -> str:
    """Return the line of a branch: broken for a refused hop, dotted for a task that its asker does not wait for."""
    if isinstance(row, Refusal):
        return "╌"
    return "┄" if isinstance(row, Node) and row.asked_how in ASKED else "─"


def _below(node: Node, guides: str, lines: list[str]) -> list[tuple[Branch, str, bool]]:
    """Write the plans of a task. Return its branches in reverse order, because the caller takes the next from the
    end."""
    rows = branches(node, tools=_TOOLS, retries=_RETRIES)
    margin = guides + ("│  " if rows else "   ")
    lines.extend(f"{margin}{line}" for plan in node.plans for line in _plan(plan))
    return [(row, guides, at == len(rows)) for at, row in enumerate(rows, 1)][::-1]


def _nearest(guides: str) -> str:
    return guides if len(guides) <= _GUIDES else f"⋯  {guides[6:]}"


def _line(row: Branch, now: int, whole: Whole) -> str:
    match row:
        case Node():
            return _task(row, now, whole)
        case ModelUse() | ToolUse() | AskedPerson() | Rest():
            return _note(row)
        case Refusal():
            return _refused(row)
        case Stay():
            along = [saw_in([row.receipt])] if passed_on(row.receipt) else []
            return " · ".join([_handoff_text(mark("handed"), row.came), duration(row.elapsed(now)), *along])
        case Retry():
            return f"{AGAIN} {escaped(attempt_text(row), _SENTENCE)}"
        case _:
            return _handoff_text("⇉", row)


def _note(row: ModelUse | ToolUse | AskedPerson | Rest) -> str:
    """Return a row such as ◇ lookup({"q":"lamp"}) · 12 ms · SHELF-THREE."""
    if isinstance(row, AskedPerson):
        return f"{ASKS} {waits(row)}"
    if isinstance(row, Rest):
        return f"… {row.text}"
    if isinstance(row, ModelUse):
        return f"{MODEL} {' · '.join((model_name(row), *model_figures(row)))}"
    sign = TOOL if row.outcome == "done" else mark(row.outcome)
    return f"{sign} {' · '.join(filter(None, (tool_call(row), tool_time(row), tool_result(row))))}"


def _task(node: Node, now: int, whole: Whole) -> str:
    head = f"{mark(node.state)} {escaped(node.first, _AGENT)}: {escaped(subject_of(node), _TASK)}"
    parts = [head, *notes(node), took(node, node.elapsed(now), now), saw(node)]
    if cost := spending_text(node, whole):
        parts.append(cost)
    if node.state not in LOOKS:
        parts.append(escaped(node.state, _AGENT))
    if node.error:
        parts.append(escaped(reason(node), _SENTENCE))
    return " · ".join(parts)


def _handoff_text(arrow: str, handoff: HandoffMade | None) -> str:
    """Return a handoff such as → billing (phase refund)."""
    assert handoff is not None  # every stay but the first began with one
    if handoff.sent_back:
        return f"{arrow} {escaped(handoff.to[0], _AGENT)} (sent back by {escaped(handoff.sent_back, _AGENT)})"
    phase = f" (phase {escaped(handoff.phase, _AGENT)})" if handoff.phase else ""
    return f"{arrow} {', '.join(escaped(name, _AGENT) for name in handoff.to[:8])}{phase}"


def _refused(refusal: Refusal) -> str:
    what = refused_word(refusal) if refusal.handoff else escaped(refusal.task, _TASK)
    head = f"{mark('refused')} {escaped(refusal.to, _AGENT)}: {what}"
    return f"{head} · {escaped(refusal.rule, _AGENT)}: {escaped(refusal.sentence, _SENTENCE)}"


def _plan(plan: list[PlanStep]) -> list[str]:
    shown, rest = steps_first(plan, _STEPS)
    lines = [f"plan: {progress(plan)}", *(f"  {_step(step)}" for step in shown)]
    return [*lines, *(f"  … {one.text}" for one in others(step.state for step in rest))]


def _step(step: PlanStep) -> str:
    """Return a step such as ✗ b: Compare prices · trader · after a · failed: OSError: no disk."""
    parts = [f"{mark(known_state(step.state))} {escaped(step.id, _AGENT)}: {escaped(step.title, _TASK)}"]
    parts.append(escaped(step.agent, _AGENT))
    if step.after:
        parts.append(f"after {escaped(', '.join(step.after), _TASK)}")
    if said := tries(step) or kept_from(step):
        parts.append(said)
    if step.reason:
        parts.append(escaped(step.reason, _SENTENCE))
    return " · ".join(parts)
