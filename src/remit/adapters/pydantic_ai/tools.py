"""Functions and verbs as tools of pydantic-ai whose calls go through the current turn.

A tool is governed by wrapping its function, once. The model's arguments go to the turn as JSON, and are validated
against the function's own schema again when it is called, because a hook or a person may have changed them.
"""

import copy
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial, wraps
from typing import Any, Final, TypeAlias, cast

import anyio
from anyio import to_thread
from pydantic_ai import Agent
from pydantic_ai.capabilities import CombinedCapability
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import ToolReturn, is_multi_modal_content
from pydantic_ai.tools import RunContext, Tool
from pydantic_ai.toolsets import FunctionToolset, ToolsetTool, WrapperToolset
from pydantic_ai.toolsets.function import FunctionToolsetTool
from pydantic_core import SchemaValidator, core_schema, to_json, to_jsonable_python

from remit.adapters.guests import on_loop_of_turn
from remit.adapters.pydantic_ai.clients import error_text
from remit.adapters.pydantic_ai.model import turn_under_way
from remit.core.checks import callable_
from remit.core.values import shown
from remit.errors import BadInput
from remit.ports.models import KEY, TOOL_KEY, ToolCall, ToolFunction
from remit.ports.tools import Tool as SharedTool
from remit.verbs import Verb

AnyTool: TypeAlias = Tool[Any]
ToolGiven: TypeAlias = Callable[..., Any] | AnyTool | SharedTool

_ENDLESS: Final = 1e9  # seconds; the tool has its own time limit inside
_ROOT: Final = "_root_capability"
_IDLE: Final = {"PendingMessageDrainCapability", "ToolSearch"}
_OBJECT: Final = SchemaValidator(core_schema.dict_schema(core_schema.str_schema()))


def governed(given: ToolGiven, seconds: float | None = None) -> AnyTool:
    """Return a tool, made from a function or a tool, whose calls go through the turn. The model sees the same as
    before. `seconds` limits the function's time unless the tool has a limit of its own."""
    if isinstance(given, SharedTool):
        return _shared_tool(given)
    tool = _tool(given)
    own = tool.function_schema
    limit = tool.timeout if tool.timeout is not None else seconds

    def read(arguments: Mapping[str, Any], context: RunContext[Any]) -> dict[str, Any]:
        return own.validator.validate_json(to_json(arguments), context=context.validation_context)

    async def run(context: RunContext[Any], arguments: dict[str, Any]) -> object:
        with anyio.fail_after(limit):  # around the function only: the time of an approval must not count
            return result_json(await _call_function(tool, context, read(arguments, context)), tool.name)

    async def function(context: RunContext[Any], /, **arguments: Any) -> Any:
        return await _through_turn(context, tool.name, arguments, partial(run, context))

    made = copy.copy(tool)
    made.function = function  # `takes_ctx` still describes the tool's own function
    made.function_schema = replace(
        own,
        function=function,
        validator=_checking(own.validator),
        takes_ctx=True,
        is_async=True,
        positional_fields=[],
        var_positional_field=None,
    )
    if limit is not None:
        made.timeout = _ENDLESS
    if (check := tool.args_validator) is not None:
        made.args_validator = _reading(check, read)
    return made


def verb_tools(verbs: Iterable[Verb]) -> list[AnyTool]:
    """Return verbs as tools."""
    return [_verb_tool(verb) for verb in verbs]


def define_once(agent: Agent[None, Any], retries: int) -> None:
    """Create the definitions of an agent's own tools once. The framework creates them again for every request, with a
    context for a `prepare` function, so an agent that has such a tool is left as it is."""
    mine = agent.toolsets[0]
    if not isinstance(mine, FunctionToolset) or any(tool.prepare is not None for tool in mine.tools.values()):
        return
    made: dict[str, ToolsetTool[None]] = {}
    for name, tool in mine.tools.items():
        shown = tool.tool_def
        kept = shown.return_schema if shown.include_return_schema else None  # otherwise the model is not shown it
        shown = replace(shown, toolset_id=mine.id, return_schema=kept)
        most = tool.max_retries if tool.max_retries is not None else retries
        made[name] = FunctionToolsetTool(
            toolset=mine,
            tool_def=shown,
            max_retries=most,
            args_validator=tool.function_schema.validator,
            args_validator_func=tool.args_validator,
            call_func=tool.function_schema.call,
            is_async=tool.function_schema.is_async,
            timeout=shown.timeout,
            original_name=name,
        )

    async def get_tools(ctx: RunContext[None]) -> dict[str, ToolsetTool[None]]:
        return made

    mine.get_tools = get_tools


def needs_run(tool: AnyTool) -> bool:
    """Whether any code of a tool uses the context of the framework's run, or the model finds the tool by a search."""
    given = tool.takes_ctx or tool.prepare is not None or tool.args_validator is not None
    return given or bool(tool.defer_loading)


def leave_out_idle(agent: Agent[None, Any]) -> None:
    """Remove the two capabilities that the framework gives to every agent: a queue for messages from code with the
    context of the run, and a search for tools that are loaded later. It calls each of them some thirty times in a run,
    every time with a copy of the context; that is an eighth of the processor time of a run with two requests. Only for
    an agent none of whose tools `needs_run`. The framework has no public way to do this."""
    if {type(one).__name__ for one in agent.root_capability.capabilities} == _IDLE and hasattr(agent, _ROOT):
        setattr(agent, _ROOT, CombinedCapability[None]([]))


@dataclass
class GovernedToolset(WrapperToolset[Any]):
    """Tools that are found while an agent runs, such as those of a server: each call goes through the turn. `inner`
    tools belong to an agent that a tool runs."""

    inner: bool = False

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        arguments = cast("dict[str, Any]", to_jsonable_python(tool_args, serialize_unknown=True))

        async def run(changed: dict[str, Any]) -> object:
            # Compare repr too, because in Python 1, 1.0 and True are equal.
            same = changed == arguments and repr(changed) == repr(arguments)
            read = tool_args if same else tool.args_validator.validate_python(changed)
            return result_json(await self.wrapped.call_tool(name, read, ctx, tool), name)

        through = _through_turn(ctx, name, arguments, run, inner=self.inner)
        return await (on_loop_of_turn(through) if self.inner else through)


def result_json(value: object, name: str) -> object:
    """Return a tool's result as JSON, for the record and for the model. Raise `BadInput` if it cannot be recorded."""
    if isinstance(value, ToolReturn):
        if value.content:
            raise BadInput(f"{name} returned content beside its value, which cannot be recorded; return one value")
        value = cast("object", value.return_value)
    files = cast("list[object]", value) if isinstance(value, list | tuple) else [value]
    if any(map(is_multi_modal_content, files)):
        raise BadInput(f"{name} returned a file, which cannot be recorded; return text or JSON")
    return to_jsonable_python(value)


def _tool(given: Callable[..., Any] | AnyTool) -> AnyTool:
    if isinstance(given, Tool):
        return cast("AnyTool", given)
    callable_(given, "a tool is a function, or a Tool of pydantic-ai")
    try:
        return Tool(_with_key(given))
    except UserError as error:
        raise BadInput(f"a tool cannot be made of {shown(given)}: {error_text(error)}") from None


def _with_key(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function with the idempotency key of its call filled in; the model does not see that parameter."""
    takes = inspect.signature(function)
    if KEY not in takes.parameters:
        return function

    @wraps(function)
    def plain(*args: Any, **named: Any) -> Any:
        return function(*args, **named, **{KEY: TOOL_KEY.get()})

    @wraps(function)
    async def waiting(*args: Any, **named: Any) -> Any:
        return await function(*args, **named, **{KEY: TOOL_KEY.get()})

    keyed: Any = waiting if inspect.iscoroutinefunction(function) else plain
    shown_parameters = [one for name, one in takes.parameters.items() if name != KEY]
    keyed.__signature__ = takes.replace(parameters=shown_parameters)
    keyed.__annotations__ = {name: kind for name, kind in function.__annotations__.items() if name != KEY}
    return keyed


async def _through_turn(
    context: RunContext[Any],
    name: str,
    arguments: Mapping[str, Any],
    do: ToolFunction,
    *,
    inner: bool = False,
    untrusted: bool = False,
) -> Any:
    name = context.tool_name or name
    turn = turn_under_way(f"tool {name}")
    found = await turn.tool(ToolCall(name, arguments, context.tool_call_id or "", inner, untrusted), do)
    return "[]" if found == [] else found  # the framework would show an empty list as no text


async def _call_function(tool: AnyTool, context: RunContext[Any], arguments: dict[str, Any]) -> object:
    """Call a tool's own function; in a thread if it would block the event loop."""
    schema = tool.function_schema
    given: list[Any] = [context] if schema.takes_ctx else []
    given += [arguments.pop(field) for field in schema.positional_fields]
    if schema.var_positional_field:
        given += arguments.pop(schema.var_positional_field)
    if schema.is_async:
        return await schema.function(*given, **arguments)
    found = await to_thread.run_sync(partial(schema.function, *given, **arguments), abandon_on_cancel=True)
    return await found if inspect.isawaitable(found) else found


def _checking(validator: SchemaValidator) -> SchemaValidator:
    """Return a validator that rejects the same arguments as `validator`, and returns all others unchanged."""

    def check(arguments: Any, info: core_schema.ValidationInfo) -> Any:
        validator.validate_json(to_json(arguments), context=cast("Any", info.context))
        return arguments

    return SchemaValidator(core_schema.with_info_plain_validator_function(check))


def _reading(check: Callable[..., Any], read: Callable[..., dict[str, Any]]) -> Callable[..., Any]:
    """Return a function that calls `check`, a tool's `args_validator`, with arguments of the types that the tool's
    function takes. `read` converts them."""

    async def checked(context: RunContext[Any], /, **arguments: Any) -> None:
        found = check(context, **read(arguments, context))
        if inspect.isawaitable(found):
            await found

    return checked


def _shared_tool(tool: SharedTool) -> AnyTool:
    """Return a tool of pydantic-ai for a tool that every framework can use, such as a program or a tool of an MCP
    server."""

    async def use(arguments: dict[str, Any]) -> object:
        value = await tool.call(arguments)
        return value if isinstance(value, str) else to_jsonable_python(value)

    async def function(context: RunContext[Any], /, **arguments: Any) -> Any:
        return await _through_turn(context, tool.name, arguments, use, untrusted=tool.untrusted)

    return _by_schema(function, tool.name, tool.told, tool.told_schema)


def _verb_tool(verb: Verb) -> AnyTool:
    async def function(context: RunContext[Any], /, **arguments: Any) -> Any:
        turn = turn_under_way(f"tool {verb.name}")
        return await _through_turn(context, verb.name, arguments, partial(verb.use, turn))

    return _by_schema(function, verb.name, verb.sentence, dict(verb.schema))


def _by_schema(function: Callable[..., Any], name: str, sentence: str, schema: dict[str, Any]) -> AnyTool:
    made: AnyTool = Tool.from_schema(function, name, sentence, schema, takes_ctx=True)
    made.function_schema = replace(made.function_schema, validator=_OBJECT)
    made.takes_ctx = False  # the inner function does not get the context
    return made
