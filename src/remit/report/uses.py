"""What the models of a task did: which model was asked how often and for how much, and which tools were used."""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from remit.core import kinds
from remit.core.events import Event
from remit.core.kinds import ToolOutcome, read
from remit.report.figures import count, duration, money
from remit.report.looks import MODEL, TOOL, mark
from remit.report.printable import escaped

MODELS: Final = frozenset(("model.answered", "model.failed"))
TOOLS: Final = frozenset(("tool.done",))
# Verbs that ask another agent: the tree shows the task they began, so a call that went well is not drawn beside it.
ASKING_VERBS: Final = frozenset(("call_agent", "call_agent_async", "spawn_agent", "handoff"))

_NAME: Final = 48
_GIVEN: Final = 60
_RESULT: Final = 80
_ERROR: Final = 160
_SIGNS: Final = (MODEL, TOOL, mark("failed"))
_LISTED: Final = 3  # models of one task in a picture


class ModelUse(NamedTuple):
    """One model as one agent used it for a task. `calls` counts requests, `failed` those without an answer, `tokens`
    what the provider counted. `credits` leaves out calls whose price is unknown."""

    agent: str
    model: str
    calls: int = 0
    failed: int = 0
    tokens: int = 0
    credits: int = 0


class ToolUse(NamedTuple):
    """One call of a tool. `given` and `result` are shortened, `elapsed` is in microseconds, `place` is the line of code
    where the tool raised, and `turn` is how often the task had been handed over."""

    at: int
    agent: str
    tool: str
    given: str
    outcome: ToolOutcome
    result: str = ""
    elapsed: int = 0
    place: str = ""
    turn: int = 0

    @property
    def error(self) -> str:
        """Why the tool failed or was refused, without its name; empty if it did neither."""
        return "" if self.outcome == "done" else self.result.removeprefix(f"'{self.tool}' failed: ")


def add_model_call(uses: list[ModelUse], event: Event) -> None:
    """Count an answer, or a request without one, for the model that was asked."""
    model = read(event, kinds.ModelFailed)["model"]
    at = next((at for at, use in enumerate(uses) if (use.agent, use.model) == (event.agent, model)), -1)
    if at < 0:
        uses.append(ModelUse(event.agent, model))
    use = uses[at]
    if event.kind == "model.failed":
        uses[at] = use._replace(calls=use.calls + 1, failed=use.failed + 1)
        return
    data = read(event, kinds.ModelAnswered)
    usage, cost = data.get("usage", {}), data.get("cost", 0)
    tokens = usage.get("input", 0) + usage.get("output", 0)
    uses[at] = use._replace(calls=use.calls + 1, tokens=use.tokens + tokens, credits=use.credits + cost)


def models_in(events: Iterable[Event]) -> list[ModelUse]:
    """Count what each model was asked in these events of one task."""
    uses: list[ModelUse] = []
    for event in events:
        if event.kind in MODELS:
            add_model_call(uses, event)
    return uses


def tool_use(event: Event, turn: int) -> ToolUse:
    """Read the call of a tool from its event."""
    data = read(event, kinds.ToolDone)
    return ToolUse(
        event.at,
        event.agent,
        data["tool"],
        data["given"],
        data["outcome"],
        data.get("result", ""),
        data.get("elapsed", 0),
        data.get("place", ""),
        turn,
    )


# -- in words --------------------------------------------------------------------------------------------------------


def model_figures(use: ModelUse) -> list[str]:
    """2 calls, 1 failed; 1,234 tokens; $0.01"""
    calls = count(use.calls, "call") + (f", {use.failed:,} failed" if use.failed else "")
    tokens = [count(use.tokens, "token")] if use.tokens else []
    return [calls, *tokens, *([money(use.credits)] if use.credits else [])]


def titled(uses: Sequence[ModelUse]) -> list[ModelUse]:
    """Say whose each model was, if the task was in several hands: triage: openai:gpt-5"""
    if len({use.agent for use in uses}) < 2:
        return [*uses]
    return [use._replace(model=f"{use.agent}: {use.model}") for use in uses]


def model_name(use: ModelUse) -> str:
    return escaped(use.model, _NAME)


def tool_call(use: ToolUse) -> str:
    """lookup({"q":"lamp"})"""
    return f"{escaped(use.tool, _NAME)}({escaped(use.given, _GIVEN) if use.given != '{}' else ''})"


def tool_time(use: ToolUse) -> str:
    """12 ms; empty if the tool was not used"""
    return duration(use.elapsed) if use.elapsed else ""


def tool_result(use: ToolUse) -> str:
    """What the tool returned; or why it did not, and where: KeyError: 'lamp' (team.py:8 in lookup)"""
    if use.outcome == "done":
        return escaped(use.result, _RESULT)
    where = f" ({escaped(use.place, _GIVEN)})" if use.place else ""
    return escaped(use.error, _ERROR) + where


def uses_in_short(models: Sequence[ModelUse], tools: Sequence[ToolUse]) -> list[str]:
    """openai:gpt-5, 2 calls, 1,234 tokens, $0.01; 3 tool calls, 1 failed: a line for each model, one for all tools"""
    lines = [", ".join((use.model, *model_figures(use))) for use in models[:_LISTED]]
    if len(models) > _LISTED:
        lines.append(f"and {len(models) - _LISTED} more")
    wrong = [f"{number:,} {word}" for word in ("failed", "refused") if (number := _with(tools, word))]
    return [*lines, ", ".join([count(len(tools), "tool call"), *wrong])] if tools else lines


def uses_in_signs(models: Sequence[ModelUse], tools: Sequence[ToolUse]) -> str:
    """◆2 ◇3 ✗1: how often models and tools were called, and how many of the latter failed; empty if none were"""
    numbers = (sum(use.calls for use in models), len(tools), _with(tools, "failed"))
    return " ".join(f"{sign}{number:,}" for sign, number in zip(_SIGNS, numbers, strict=True) if number)


def _with(uses: Sequence[ToolUse], outcome: str) -> int:
    return sum(use.outcome == outcome for use in uses)
