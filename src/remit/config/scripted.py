"""A scripted model for pydantic-ai, so that it is asked like every other model. Imported when it is used."""

from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from typing import Final

import anyio
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel

from remit.config.scripts import ScriptLine, ToldSoFar, matching_line
from remit.core.patterns import pattern
from remit.core.values import encode, shown
from remit.errors import BadInput
from remit.ports.turn import current_turn

_PACE: Final = 0.03  # seconds per word if the answer is streamed, so that a script looks like a model
_WORDS: Final = pattern(r"\s*\S+\s*")


def scripted(name: str, agent: str, lines: Sequence[ScriptLine]) -> FunctionModel:
    """Return the scripted model of an agent, made from its lines in the script."""

    def line_for(messages: list[ModelMessage]) -> ScriptLine:
        turn = current_turn()
        task = "" if turn is None else turn.task
        so_far = _so_far(messages)
        line = matching_line(lines, task, so_far)
        if line is None:
            moment = f"after {so_far.after}" if so_far.after else "to begin with"
            raise BadInput(f"{name} has no line for {agent} {moment} for {shown(task)}; add one without `when`")
        return line

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        line = line_for(messages)
        if line.call:
            return ModelResponse([ToolCallPart(line.call, {**line.arguments})])
        return ModelResponse([ToolCallPart(_form(info), line.say) if _form(info) else TextPart(line.say)])

    async def stream(
        messages: list[ModelMessage], info: AgentInfo
    ) -> AsyncGenerator[str | dict[int, DeltaToolCall], None]:
        line = line_for(messages)
        if line.call:
            yield {0: DeltaToolCall(line.call, encode({**line.arguments}))}
            return
        if form := _form(info):
            yield {0: DeltaToolCall(form, line.say)}
            return
        for words in _WORDS.findall(line.say) or [line.say]:
            await anyio.sleep(_PACE)
            yield words

    return FunctionModel(answer, stream_function=stream, model_name=name)


def _form(info: AgentInfo) -> str:
    """Return the name of the tool that submits a structured answer, or "" if the answer is text."""
    return "" if info.allow_text_output else next((tool.name for tool in info.output_tools), "")


def _so_far(messages: Sequence[ModelMessage]) -> ToldSoFar:
    results: dict[str, object] = {}
    times: Counter[str] = Counter()
    last = ""
    for message in messages:
        last = ""
        for part in message.parts if isinstance(message, ModelRequest) else ():
            if isinstance(part, ToolReturnPart):
                results[part.tool_name] = part.content
                times[part.tool_name] += 1
                last = part.tool_name
    return ToldSoFar(results, last, times[last] if last else 1)
