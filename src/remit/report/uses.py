"""The model requests and tool calls of a task."""

from collections.abc import Iterable, Sequence
from typing import Final

from remit.core.events import Event, read
from remit.core.kinds.models import ModelAnswered, ModelFailed, ToolDone, ToolOutcome
from remit.core.records import NamedTuple
from remit.report.figures import count, duration, money
from remit.report.looks import MODEL, TOOL, mark
from remit.report.printable import escaped

MODELS: Final = frozenset(("model.answered", "model.failed"))
TOOLS: Final = frozenset(("tool.done",))
# Verbs that delegate. The tree shows the resulting task, so a successful call is not drawn as well.
ASKING_VERBS: Final = frozenset(("call_agent", "call_agent_async", "spawn_agent", "handoff"))

_NAME: Final = 48
_GIVEN: Final = 60
_RESULT: Final = 80
_ERROR: Final = 160
_SIGNS: Final = (MODEL, TOOL, mark("failed"))
_LISTED: Final = 3  # models of one task in a picture


class ModelUse(NamedTuple):
    """One model as one agent used it for a task. `calls` counts requests, `failed` those without an answer, `tokens`
    the provider's count. `credits` leaves out calls with an unknown price."""

    agent: str
    model: str
    calls: int = 0
    failed: int = 0
    tokens: int = 0
    credits: int = 0


class ToolUse(NamedTuple):
    """One tool call. `given` and `result` are shortened, `elapsed` is in microseconds, `place` is the line of code
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
        """Why the call failed or was refused, without the tool's name; empty if it succeeded."""
        return "" if self.outcome == "done" else self.result.removeprefix(f"'{self.tool}' failed: ")


def add_model_call(uses: list[ModelUse], event: Event) -> None:
    """Count a request, answered or failed, for its model."""
    model = read(event, ModelFailed)["model"]
    at = next((at for at, use in enumerate(uses) if (use.agent, use.model) == (event.agent, model)), -1)
    if at < 0:
        uses.append(ModelUse(event.agent, model))
    use = uses[at]
    if event.kind == "model.failed":
        uses[at] = use._replace(calls=use.calls + 1, failed=use.failed + 1)
        return
    data = read(event, ModelAnswered)
    usage, cost = data.get("usage", {}), data.get("cost", 0)
    tokens = usage.get("input", 0) + usage.get("output", 0)
    uses[at] = use._replace(calls=use.calls + 1, tokens=use.tokens + tokens, credits=use.credits + cost)


def models_in(events: Iterable[Event]) -> list[ModelUse]:
    """Return the use of each model in the events of one task."""
    uses: list[ModelUse] = []
    for event in events:
        if event.kind in MODELS:
            add_model_call(uses, event)
    return uses


def tool_use(event: Event, turn: int) -> ToolUse:
    """Return the tool call of an event."""
    data = read(event, ToolDone)
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


# -- text ------------------------------------------------------------------------------------------------------------


def model_figures(use: ModelUse) -> list[str]:
    """Return figures such as "2 calls, 1 failed", "1,234 tokens", "$0.01"."""
    calls = count(use.calls, "call") + (f", {use.failed:,} failed" if use.failed else "")
    tokens = [count(use.tokens, "token")] if use.tokens else []
    return [calls, *tokens, *([money(use.credits)] if use.credits else [])]


def uses_by_holder(uses: Sequence[ModelUse]) -> list[ModelUse]:
    """Return the uses with the agent's name added to each model, if the task had several holders: triage:
    openai:gpt-5."""
    if len({use.agent for use in uses}) < 2:
        return [*uses]
    return [use._replace(model=f"{use.agent}: {use.model}") for use in uses]


def model_name(use: ModelUse) -> str:
    return escaped(use.model, _NAME)


def tool_call(use: ToolUse) -> str:
    """Return a call such as lookup({"q":"lamp"})."""
    return f"{escaped(use.tool, _NAME)}({escaped(use.given, _GIVEN) if use.given != '{}' else ''})"


def tool_time(use: ToolUse) -> str:
    """Return a duration such as 12 ms, or "" if the tool did not run."""
    return duration(use.elapsed) if use.elapsed else ""


def tool_result(use: ToolUse) -> str:
    """Return the result of the call; or the error and its place: KeyError: 'lamp' (team.py:8 in lookup)."""
    if use.outcome == "done":
        return escaped(use.result, _RESULT)
    where = f" ({escaped(use.place, _GIVEN)})" if use.place else ""
    return escaped(use.error, _ERROR) + where


def uses_in_short(models: Sequence[ModelUse], tools: Sequence[ToolUse]) -> list[str]:
    """Return a line for each model and one for all tools: openai:gpt-5, 2 calls, 1,234 tokens, $0.01; 3 tool calls, 1
    failed."""
    lines = [", ".join((use.model, *model_figures(use))) for use in models[:_LISTED]]
    if len(models) > _LISTED:
        lines.append(f"and {len(models) - _LISTED} more")
    wrong = [f"{number:,} {word}" for word in ("failed", "refused") if (number := _with(tools, word))]
    return [*lines, ", ".join([count(len(tools), "tool call"), *wrong])] if tools else lines


def uses_in_signs(models: Sequence[ModelUse], tools: Sequence[ToolUse]) -> str:
    """Return the number of model requests, tool calls and failed tool calls as ◆2 ◇3 ✗1, or "" if there are none."""
    numbers = (sum(use.calls for use in models), len(tools), _with(tools, "failed"))
    return " ".join(f"{sign}{number:,}" for sign, number in zip(_SIGNS, numbers, strict=True) if number)


def _with(uses: Sequence[ToolUse], outcome: str) -> int:
    return sum(use.outcome == outcome for use in uses)
