"""Tools of this framework that are used through the turn, and the verbs as such tools."""

from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from functools import partial, wraps
from typing import Any, Final, TypeVar, cast

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool

from remit.adapters.guests import from_thread, governing, json_of, text_for_model, the_turn, verb_function
from remit.adapters.langgraph.model import inside, is_inside, mixed
from remit.adapters.langgraph.talking import brought, quoted_result, result_data, result_of
from remit.core.values import Json
from remit.ports.models import ToolCall, ToolFunction
from remit.verbs import VERBS, Verb

ToolT = TypeVar("ToolT", bound=BaseTool)
_CALL: Final = "tool_call"


def boxed(tool: ToolT) -> ToolT:
    """Return a copy of a tool that is used through the current turn, also in a graph that a plain function runs. In a
    graph that is a member of a team, every tool is used through the turn anyway."""
    return tool if isinstance(tool, BoxedTool) else mixed(tool, BoxedTool)


def verb_tools() -> list[BaseTool]:
    """Return the verbs as tools, for a graph that is not made by `create_agent`: offer them to its model and put them
    into its ToolNode."""
    return [boxed(tool) for tool in bare_verbs()]


def bare_verbs() -> list[BaseTool]:
    """Return the verbs as tools for code that sends their calls through the turn itself, as `Middleware` does.
    `verb_tools` returns tools that do so on their own."""
    return [_verb_tool(verb) for verb in VERBS]


def _verb_tool(verb: Verb) -> BaseTool:
    do = verb_function(verb)

    async def use(**arguments: Any) -> str:
        return text_for_model((await do(arguments)).value)

    return VerbTool(name=verb.name, description=verb.sentence, args_schema=verb.schema, coroutine=use, do=do)


class VerbTool(StructuredTool):
    """A verb of the turn as a tool of this framework. The turn runs it, so hooks see its result as JSON and not as the
    text that the framework makes of it."""

    do: ToolFunction


class ExitProofTool(BaseTool):
    """A tool that raises `ToolExited` in place of SystemExit and KeyboardInterrupt. The framework runs a coroutine of a
    tool in an asyncio task of its own, and from there these exceptions would reach the event loop."""

    def __init_subclass__(cls, **how: Any) -> None:
        super().__init_subclass__(**how)
        if cls._arun is not BaseTool._arun:  # noqa: SLF001 - a subclass of it
            cls._arun = _exit_proof_run(cls._arun)


def exit_proof(tool: BaseTool) -> BaseTool:
    """Return the tool as an `ExitProofTool`: run it within `tool_errors`."""
    return tool if isinstance(tool, ExitProofTool) else mixed(tool, ExitProofTool)


class BoxedTool(ExitProofTool):
    """The methods that send a tool's calls through the turn; `mixed` puts them before the tool's own."""

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        use, by_model = super().ainvoke, _is_call(input)
        given: Mapping[str, Any] = input["args"] if by_model else _arguments_by_name(self, input)
        shown = {name: value for name, value in given.items() if name in self.args}  # the graph injects the rest
        mark = governing()
        inner = mark is not None and self.name not in mark.tools
        number = str(input.get("id") or "") if by_model else ""
        call = ToolCall(
            self.name, _checked(shown), number, inner, quote=quoted_result, brought=partial(brought, number)
        )

        async def do(arguments: dict[str, Any]) -> object:
            if isinstance(self, VerbTool):
                return await self.do(arguments)
            whole = {**{name: given[name] for name in given.keys() - shown.keys()}, **arguments}
            with tool_errors(), inside(self):
                return result_data(await use({**input, "args": whole} if by_model else whole, config, **kwargs))

        value = await the_turn(f"the tool '{self.name}'").tool(call, do)
        if isinstance(self, VerbTool) and not by_model:
            return text_for_model(value)  # a node gets text, as from the framework
        return result_of(value, call if by_model else None)

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        if is_inside(self):
            return super().invoke(input, config, **kwargs)
        return from_thread(self.ainvoke(input, config, **kwargs))


class ToolExited(Exception):
    """A tool raised `error`, which would end the process."""

    def __init__(self, error: SystemExit | KeyboardInterrupt) -> None:
        super().__init__(f"{type(error).__name__}: {error}")
        self.error = error


@contextmanager
def tool_errors() -> Generator[None]:
    """Raise the error of an `ExitProofTool` itself in place of `ToolExited`."""
    try:
        yield
    except ToolExited as exited:
        raise exited.error from None


def _exit_proof_run(run: Callable[..., Awaitable[Any]]) -> Callable[..., Any]:
    @wraps(run)
    async def run_caught(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return await run(self, *args, **kwargs)
        except (SystemExit, KeyboardInterrupt) as error:
            raise ToolExited(error) from error

    return run_caught


def _is_call(input: Any) -> bool:
    return isinstance(input, dict) and cast("dict[str, Any]", input).get("type") == _CALL


def _arguments_by_name(tool: BaseTool, input: Any) -> Mapping[str, Any]:
    """Return the arguments of a tool by name; a plain text becomes its only argument."""
    return cast("Mapping[str, Any]", input) if isinstance(input, Mapping) else {next(iter(tool.args), "input"): input}


def _checked(arguments: Mapping[str, Any]) -> dict[str, Json]:
    return cast("dict[str, Json]", json_of(arguments))
