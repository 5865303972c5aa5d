"""Scripts: the answers of a scripted model, from a small file, so that a team can be tried without a key.

A scripted model answers from its lines, in their order. Everything around it is real: tools are called, other agents
are asked, and the run is recorded. Where pydantic-ai is installed, scripts run through it like every other model.
Otherwise remit runs the loop itself: choose the line, record the request, call the tool, until a line is text. So a
team can be tried after a plain `pip install remit`.
"""

import inspect
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any, Final, NamedTuple, cast

import anyio
from anyio import to_thread

from remit.core.patterns import pattern
from remit.core.prices import Usage
from remit.core.recovery import Choice, ModelFailure, ModelTry
from remit.core.values import decode, digest, encode, shown, tokens_in
from remit.errors import BadInput
from remit.ports.models import HandedOver, Hear, ModelAnswer, ModelCall, ToolCall, ToolFunction
from remit.ports.tools import Tool
from remit.ports.turn import TurnLike
from remit.verbs import VERBS, Verb

# -- lines ---------------------------------------------------------------------------------------------------


SCRIPT: Final = "script:"
_HOLE: Final = pattern(r"\{(\w+)\}")


class ScriptLine(NamedTuple):
    """One line: when it applies, and what it says or calls."""

    when: str = ""
    after: str = ""
    say: str = ""
    call: str = ""
    arguments: Mapping[str, Any] = {}

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> "ScriptLine":
        """Return the line of a table that was checked."""
        words = {name: str(table.get(name, "")) for name in ("when", "after", "say", "call")}
        return cls(**words, arguments=table.get("with", {}))

    def fits(self, task: str, after: str) -> bool:
        """Whether the line applies to this moment of this task."""
        return self.after == after and self.when.casefold() in task.casefold()


class ToldSoFar(NamedTuple):
    """The state of a conversation: the last result of each tool, the tool that has just returned, and how often it
    has."""

    results: Mapping[str, object] = {}
    after: str = ""
    times: int = 1


def matching_line(lines: Sequence[ScriptLine], task: str, so_far: ToldSoFar) -> ScriptLine | None:
    """Return the first line that applies, with its placeholders filled with the task and results, or None. When a tool
    returns for the second time, the second line that applies is used, and so on; the last one serves all that follow.
    """
    fitting = [line for line in lines if line.fits(task, so_far.after)]
    if not fitting:
        return None
    line = fitting[min(so_far.times, len(fitting)) - 1]
    known = {name: _text(value) for name, value in so_far.results.items()} | {"task": task}
    if so_far.after:
        known["result"] = known[so_far.after]
    return line._replace(say=_filled(line.say, known), arguments=_filled(line.arguments, known))


class FreeScripts:
    """The price list of a team that uses scripts only: they cost nothing. The price of any other model is unknown:
    None."""

    def cost(self, model: str, usage: Usage) -> int | None:
        return 0 if model.startswith(SCRIPT) else None

    def worst(self, model: str, input_tokens: int, max_output: int) -> int | None:
        return 0 if model.startswith(SCRIPT) else None


def _filled(value: Any, known: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return _HOLE.sub(lambda hole: known.get(hole[1], hole[0]), value)
    if isinstance(value, dict):
        return {name: _filled(one, known) for name, one in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_filled(one, known) for one in cast("list[Any]", value)]
    return value


def _text(value: object) -> str:
    return value if isinstance(value, str) else encode(value)


# -- agents without a framework ------------------------------------------------------------------------------


MAX_TOKENS: Final = 4_096
_PACE: Final = 0.03  # seconds per word if the answer is streamed, so that a script looks like a model
_WORDS: Final = pattern(r"\s*\S+\s*")


@dataclass(frozen=True)
class ScriptedModel:
    """The scripted model of an agent, made from its lines in the script."""

    name: str
    agent: str
    lines: Sequence[ScriptLine]

    def answering(self, tools: Sequence[Any], *, verbs: bool, prompt: Callable[[TurnLike], Awaitable[str]]) -> Any:
        """Return the callable that runs the agent by the script, with these tools and, with `verbs`, the verbs of the
        turn. `prompt` returns the text of the first request."""
        found = {str(getattr(one, "name", None) or one.__name__): one for one in tools}
        offered = {verb.name: verb for verb in VERBS} if verbs else {}
        return _ScriptedAgent(self, found, offered, prompt)

    def line_for(self, task: str, so_far: ToldSoFar) -> ScriptLine:
        """Return the line for this moment of a task. Raise `BadInput` if there is none."""
        line = matching_line(self.lines, task, so_far)
        if line is None:
            moment = f"after {so_far.after}" if so_far.after else "to begin with"
            raise BadInput(
                f"{self.name} has no line for {self.agent} {moment} for {shown(task)}; add one without `when`"
            )
        return line


@dataclass(frozen=True)
class _ScriptedAgent:
    model: ScriptedModel
    tools: Mapping[str, Any]
    verbs: Mapping[str, Verb]
    prompt: Callable[[TurnLike], Awaitable[str]]

    @property
    def choices(self) -> tuple[Choice, ...]:
        """The only model of the agent."""
        return (Choice(self.model.name),)

    async def __call__(self, turn: TurnLike) -> Any:
        """Run the task. Return the final text of the script, or the command of a handoff."""
        told = [await self.prompt(turn)]
        results: dict[str, object] = {}
        times: Counter[str] = Counter()
        last = ""
        for number in count():
            so_far = ToldSoFar(dict(results), last, times[last] if last else 1)
            reply = await turn.model(self._call(turn, so_far, told, number))
            said = cast("dict[str, Any]", decode(reply.text))
            if not said["call"]:
                return said["say"]
            last = str(said["call"])
            call = ToolCall(last, said["with"], f"call-{number}")
            try:
                results[last] = await self._use_tool(turn, call)
            except HandedOver as handed:
                return handed.command
            times[last] += 1
            told.append(encode(results[last]))
        return None

    async def aclose(self) -> None:
        """Do nothing: there are no connections to close."""

    def _call(self, turn: TurnLike, so_far: ToldSoFar, told: Sequence[str], number: int) -> ModelCall:
        names = frozenset((*self.tools, *self.verbs))

        async def send(_how: ModelTry, _most: int, hear: Hear | None) -> ModelAnswer:
            line = self.model.line_for(turn.task, so_far)
            if hear is not None and not line.call:
                for words in _WORDS.findall(line.say) or [line.say]:
                    await anyio.sleep(_PACE)
                    hear(words)
            text = encode({"say": line.say, "call": line.call, "with": {**line.arguments}})
            usage = Usage(sum(map(tokens_in, told)), tokens_in(line.say or text))
            return ModelAnswer(text, self.model.name, usage, (line.call,) if line.call else ())

        def size(_trim: int) -> int:
            return sum(map(tokens_in, told))

        return ModelCall(
            digest=digest(encode([self.model.name, number, *told])),
            choices=self.choices,
            size=size,
            most=MAX_TOKENS,
            send=send,
            failure=_no_failure,
            tools=names,
        )

    async def _use_tool(self, turn: TurnLike, call: ToolCall) -> object:
        if call.name not in self.tools and call.name not in self.verbs:
            return f"there is no tool '{call.name}'; there are {', '.join(sorted((*self.tools, *self.verbs)))}"
        verb = self.verbs.get(call.name)
        do: ToolFunction = partial(verb.use, turn) if verb is not None else partial(_do, self.tools[call.name])
        return await turn.tool(call._replace(untrusted=getattr(self.tools.get(call.name), "untrusted", False)), do)


async def _do(tool: Any, arguments: dict[str, Any]) -> object:
    """Call a tool: one with a schema, or a function, which runs in a thread if it is not async."""
    if isinstance(tool, Tool):
        return await tool.call(arguments)
    if inspect.iscoroutinefunction(tool):
        return await tool(**arguments)
    found = await to_thread.run_sync(partial(tool, **arguments), abandon_on_cancel=True)
    return await found if inspect.isawaitable(found) else found


def _no_failure(_error: Exception) -> ModelFailure | None:
    return None
