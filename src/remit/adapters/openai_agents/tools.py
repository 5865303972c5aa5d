"""Function tools of this framework that are used through the turn, and the verbs as such tools."""

import json
from collections.abc import Awaitable, Callable, Iterable
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, Final, TypeAlias, cast

import anyio
from agents import Agent, Handoff, Tool, default_tool_error_function
from agents.tool import ApplyPatchTool, ComputerTool, CustomTool, FunctionTool, LocalShellTool, ShellTool
from agents.tool_context import ToolContext

from remit.adapters.guests import json_of, text_for_model, the_turn, verb_function
from remit.core.offers import Offers
from remit.core.trust import quoted
from remit.core.values import Json, encode
from remit.errors import BadInput
from remit.ports.models import Brought, ToolCall, ToolFunction
from remit.verbs import VERBS, Verb

Invoke: TypeAlias = Callable[[ToolContext[Any], str], Awaitable[Any]]

# These act on this machine, and the framework offers no way to intercept them.
_OUT_OF_REACH: Final = (ApplyPatchTool, ComputerTool, CustomTool, LocalShellTool, ShellTool)
_CALL, _HANDOFF = (next(verb for verb in VERBS if verb.name == name) for name in ("call_agent", "handoff"))
_INPUT: Final = "input"  # the default argument of an agent as a tool
_HANDS: Final = "transfer_to_"  # the framework's name of a handoff
_SHAPES: Final = frozenset(("text", "image", "file"))  # outputs that the framework sends as typed parts


def boxed(tool: Tool, *, inner: bool = False, allow: bool = False) -> Tool:
    """Return a tool that is used through the turn. Tools that run at the provider are unchanged: they are part of the
    answer.

    `inner` tools belong to an agent that a tool runs. With `allow`, tools that cannot be governed are unchanged;
    otherwise raise `BadInput` for them. Also raise it for a tool that needs an approval by the framework.
    """
    if isinstance(tool, _OUT_OF_REACH) and not allow:
        raise BadInput(
            f"'{tool.name}' is a {type(tool).__name__}, which remit cannot govern; make it a function tool, or pass "
            'ungoverned="allow"'
        )
    if not isinstance(tool, FunctionTool):
        return tool
    _refuse_approval(tool)
    own = raising(tool)

    def do(context: ToolContext[Any]) -> ToolFunction:
        async def use(arguments: dict[str, Any]) -> Json:
            seconds = tool.timeout_seconds  # limits the tool's own work, not the time for an approval
            with anyio.fail_after(seconds) if seconds is not None else nullcontext():
                return json_of(await own.on_invoke_tool(context, encode(arguments)))

        return use

    return _replaced(tool, _through(tool.name, do, inner=inner))


def delegating(tool: FunctionTool, to: str) -> Tool:
    """Return a copy of an agent's tool whose calls delegate to the member `to` of the team. The task is the text that
    the tool is given; if the tool takes anything else, it is all arguments as JSON."""
    _refuse_approval(tool)

    ask = verb_function(_CALL)

    async def use(arguments: dict[str, Any]) -> object:
        return await ask({"agent": to, "task": _task(arguments)})

    return _replaced(tool, _through(tool.name, lambda _: use, to=to))


def _task(arguments: dict[str, Any]) -> str:
    plain = arguments.keys() == {_INPUT} and isinstance(arguments[_INPUT], str)
    return arguments[_INPUT] if plain else encode(arguments)


def agent_of(tool: Tool) -> Agent[Any] | None:
    """Return the agent of a tool that `Agent.as_tool` made, or None for another tool."""
    found = getattr(tool, "_agent_instance", None) if getattr(tool, "_is_agent_tool", False) else None
    return cast("Agent[Any] | None", found)


def takes_input(tool: FunctionTool) -> bool:
    """Whether an agent as a tool takes only a text."""
    return set(tool.params_json_schema.get("properties", ())) == {_INPUT}


def raising(tool: FunctionTool) -> FunctionTool:
    """Return the tool with its errors raised to the turn, which reports them to the model in one form, unless the tool
    has its own error function."""
    said = getattr(tool, "_failure_error_function", None)
    plain = bool(getattr(tool, "_use_default_failure_error_function", False)) or said is default_tool_error_function
    silent = {"_use_default_failure_error_function": False, "_failure_error_function": None}
    return replace(tool, **(silent if plain else {}))


def _refuse_approval(tool: FunctionTool) -> None:
    if tool.needs_approval is not False:
        raise BadInput(
            f"'{tool.name}' needs approval by the framework, which ends its run; let remit ask: approve_tools="
        )


def _replaced(tool: FunctionTool, invoke: Invoke) -> Tool:
    through = {"on_invoke_tool": invoke, "timeout_seconds": None, "_is_agent_tool": False, "_agent_instance": None}
    return replace(tool, **through, output_json_schema=None, _output_type_adapter=None)


def verb_tools(verbs: Iterable[Verb]) -> list[Tool]:
    """Return the verbs as tools."""
    return [_verb_tool(verb) for verb in verbs]


def is_shown(tool: Tool, offers: Offers) -> bool:
    """Whether a model is shown a tool: only if it may use it and, for a verb, if it can succeed now."""
    if not isinstance(tool, FunctionTool):
        return offers.at_provider(tool.name)
    return offers.shows(tool.name) or (tool.name.startswith(_HANDS) and offers.shows(_HANDOFF.name))


def handoff_tool(agent: Agent[Any]) -> Tool:
    """Return the framework's handoff to this agent as a call of the verb: the team hands the task over, and a refusal
    goes to the model."""
    do = verb_function(_HANDOFF)
    schema = cast("dict[str, Any]", _HANDOFF.schema)

    async def invoke(context: ToolContext[Any], given: str) -> Any:
        return await hand_over(context, encode({**(_arguments(given) or {}), "agent": agent.name}))

    hand_over = _through(_HANDOFF.name, lambda _: do)
    return FunctionTool(
        name=Handoff.default_tool_name(agent),
        description=Handoff.default_tool_description(agent),
        params_json_schema={**schema, "properties": {"update": schema["properties"]["update"]}, "required": []},
        on_invoke_tool=invoke,
        strict_json_schema=False,
    )


def _verb_tool(verb: Verb) -> Tool:
    do = verb_function(verb)
    return FunctionTool(
        name=verb.name,
        description=verb.sentence,
        params_json_schema=cast("dict[str, Any]", verb.schema),
        on_invoke_tool=_through(verb.name, lambda _: do),
        strict_json_schema=False,
    )


def _through(name: str, do: Callable[[ToolContext[Any]], ToolFunction], *, inner: bool = False, to: str = "") -> Invoke:
    """Return a function that uses a tool through the turn; `to` is the member of the team that the tool asks, if
    any."""

    async def invoke(context: ToolContext[Any], given: str) -> Any:
        arguments = _arguments(given)
        if arguments is None:
            return f"the arguments of '{name}' are no JSON object; call it again with one"
        asks = (to, _task(arguments)) if to else None
        call = ToolCall(name, arguments, context.tool_call_id, inner, quote=_quoted, brought=_brought, asks=asks)
        value = await the_turn(f"the tool '{name}'").tool(call, do(context))
        return value if _is_shaped(value) else text_for_model(value)

    return invoke


def _arguments(given: str) -> dict[str, Json] | None:
    try:
        found = json_of(json.loads(given)) if given else {}
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _quoted(value: Json) -> Json:
    """Return an untrusted result with its text quoted; in a result with typed parts, only the text parts."""
    if not _is_shaped(value):
        return quoted(text_for_model(value))
    parts = cast("list[dict[str, Json]]", value if isinstance(value, list) else [value])
    return [{**one, "text": quoted(str(one.get("text", "")))} if one["type"] == "text" else one for one in parts]


def _brought(value: Json) -> Brought | None:
    return Brought(value) if _is_shaped(value) else None


def _is_shaped(value: Json) -> bool:
    parts = value if isinstance(value, list) else [value]
    return bool(parts) and all(isinstance(part, dict) and part.get("type") in _SHAPES for part in parts)
