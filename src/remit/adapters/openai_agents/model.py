"""Models of this framework whose requests all go through the turn."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any, Final, cast

from agents import Model, ModelProvider, ModelResponse, ModelSettings
from agents.agent_output import AgentOutputSchemaBase
from agents.exceptions import ModelBehaviorError
from agents.handoffs import Handoff
from agents.items import TResponseStreamEvent
from agents.models.chatcmpl_helpers import ChatCmplHelpers
from agents.models.openai_chatcompletions import OpenAIChatCompletionsModel
from agents.tool import FunctionTool, Tool
from openai.types.responses import ResponseCompletedEvent, ResponseFunctionToolCall, ResponseTextDeltaEvent

from remit.adapters.bodies import bounded, http_of
from remit.adapters.guests import (
    MAX_TOKENS,
    NextRequest,
    choice_of,
    conversed,
    failure_of,
    key_of,
    shortened,
    size_of,
    the_turn,
    usage_of,
)
from remit.adapters.openai_agents.talking import DIALECT, completed, events, hops_of, recorded
from remit.adapters.openai_agents.tools import is_shown
from remit.core.prices import Usage
from remit.core.recovery import ModelTry
from remit.ports.models import Hear, ModelAnswer, ModelCall

_SIGNATURE: Final = signature(Model.get_response)
_NEWER: Final = "max_completion_tokens"  # name of the limit in newer OpenAI models


class GovernedOpenAIModel(Model):
    """A model that is asked through the current turn: recorded, paid for, and not asked again when the task is
    rerun."""

    def __init__(self, inner: Model, max_tokens: int = MAX_TOKENS) -> None:
        self.inner = inner
        self.name = str(getattr(inner, "model", None) or type(inner).__name__)
        self._most = max_tokens

    async def get_response(self, *args: Any, **named: Any) -> ModelResponse:
        """Ask the model with the framework's arguments."""
        turn = the_turn(f"the model {self.name}")
        given = dict(_SIGNATURE.bind(self, *args, **named).arguments)
        del given["self"]
        tools: list[Tool] = given["tools"]
        offers = await turn.offers() if tools else None
        shown = tools if offers is None else [tool for tool in tools if is_shown(tool, offers)]

        def make(request: NextRequest[dict[str, Any]]) -> ModelCall:
            return self._call({**given, "input": request.messages}, request, shown)

        hops = hops_of({one.tool_name for one in given["handoffs"]})
        return await conversed(turn, DIALECT, _items(given["input"]), make, hops=hops)

    async def stream_response(self, *args: Any, **named: Any) -> AsyncIterator[TResponseStreamEvent]:
        """Ask the model, and yield the whole answer as a stream."""
        for event in events(await self.get_response(*args, **named), self.name):
            yield event

    async def close(self) -> None:
        """Close the inner model."""
        await self.inner.close()

    def _call(self, given: dict[str, Any], request: NextRequest[dict[str, Any]], shown: list[Tool]) -> ModelCall:
        """Return the call of a request. The model is shown the tools in `shown`, and may call all of them."""
        asked = _Asked.read(given)

        async def send(how: ModelTry, most: int, hear: Hear | None) -> ModelAnswer:
            changed = {"input": asked.shortened(how.trim), "model_settings": self._limited(asked.settings, most)}
            with bounded(http_of(getattr(self.inner, "_client", None))):
                response = await self._send_request({**given, **changed, "tools": shown}, hear)
                text, kept = recorded(response, request.ids)
            calls = tuple(item.name for item in kept.output if isinstance(item, ResponseFunctionToolCall))
            return ModelAnswer(text, self.name, _usage(response), calls, kept)

        def size(trim: int) -> int:
            return size_of([*asked.shortened(trim), *asked.frame])

        return ModelCall(
            digest="",
            choices=(choice_of(self.name, getattr(self.inner, "_client", None)),),
            size=size,
            most=self._max_tokens(asked.settings),
            send=send,
            failure=failure_of,
            tools=asked.names,
            ready=key_of(getattr(self.inner, "_client", None)),
            at=request.at,
        )

    async def _send_request(self, asked: dict[str, Any], hear: Hear | None) -> ModelResponse:
        """Send one request. With a listener it is streamed and collected here, so that a broken stream is a failed
        request."""
        if hear is None:
            return await self.inner.get_response(**asked)
        asked["model_settings"] = replace(asked["model_settings"], include_usage=True)
        stream = cast("AsyncGenerator[TResponseStreamEvent]", self.inner.stream_response(**asked))
        async with aclosing(stream):
            async for event in stream:
                if isinstance(event, ResponseTextDeltaEvent):
                    hear(event.delta)
                elif isinstance(event, ResponseCompletedEvent):
                    return completed(event.response)
        raise ModelBehaviorError("the stream ended before the answer did")

    def _max_tokens(self, settings: ModelSettings) -> int:
        return settings.max_tokens or (settings.extra_args or {}).get(_NEWER) or self._most

    def _limited(self, settings: ModelSettings, most: int) -> ModelSettings:
        """Return the settings with the output limit, under the name that the API expects."""
        extra: Mapping[str, Any] = settings.extra_args or {}
        if _NEWER in extra or (settings.max_tokens is None and _is_openai_chat(self.inner)):
            return replace(settings, max_tokens=None, extra_args={**extra, _NEWER: most})
        return replace(settings, max_tokens=most)


class GovernedProvider(ModelProvider):
    """Returns governed models by name, so that agents in handoffs are governed too."""

    def __init__(self, inner: ModelProvider, max_tokens: int = MAX_TOKENS) -> None:
        self.inner = inner
        self._most = max_tokens

    def get_model(self, model_name: str | None) -> Model:
        """Return the governed model of this name."""
        return governed(self.inner.get_model(model_name), self._most)

    async def aclose(self) -> None:
        """Close the inner provider."""
        await self.inner.aclose()


def governed(model: Model, max_tokens: int = MAX_TOKENS) -> GovernedOpenAIModel:
    """Return the model as a governed one; a governed model is returned as it is."""
    return model if isinstance(model, GovernedOpenAIModel) else GovernedOpenAIModel(model, max_tokens)


def _is_openai_chat(model: Model) -> bool:
    client = getattr(model, "_client", None)
    return isinstance(model, OpenAIChatCompletionsModel) and client is not None and ChatCmplHelpers.is_openai(client)


def _usage(response: ModelResponse) -> Usage | None:
    told = response.usage
    details = told.input_tokens_details
    written = getattr(details, "cache_write_tokens", 0) or 0
    return usage_of(told.input_tokens, told.output_tokens, details.cached_tokens or 0, written)


def _items(said: str | list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"role": "user", "content": said}] if isinstance(said, str) else said


@dataclass(frozen=True, slots=True)
class _Asked:
    """The content of a request: `items` is the conversation, `frame` everything that is sent with it, and `names` the
    tools that may be called."""

    items: list[dict[str, Any]]
    settings: ModelSettings
    frame: list[object]
    names: frozenset[str]

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> "_Asked":
        items: list[dict[str, Any]] = given["input"]
        tools: list[Tool] = given["tools"]
        handoffs: list[Handoff[Any, Any]] = given["handoffs"]
        names = frozenset((*(tool.name for tool in tools), *(one.tool_name for one in handoffs)))
        instructions, output = given["system_instructions"] or "", _schema(given["output_schema"])
        frame: list[object] = [instructions, output, *map(_described, tools)]
        frame += [[one.tool_name, one.tool_description, one.input_json_schema] for one in handoffs]
        return cls(items, given["model_settings"], frame, names)

    def shortened(self, trim: int) -> list[dict[str, Any]]:
        """Return the conversation with tool results shortened to level `trim`; 0 changes nothing."""
        results = [item for item in self.items if isinstance(item.get("output"), str)]
        texts = shortened([one["output"] for one in results], trim)
        cut = {id(item): text for item, text in zip(results, texts, strict=True)}
        return [{**item, "output": cut[id(item)]} if id(item) in cut else item for item in self.items]


def _schema(output: AgentOutputSchemaBase | None) -> Any:
    return None if output is None or output.is_plain_text() else output.json_schema()


def _described(tool: Tool) -> object:
    if isinstance(tool, FunctionTool):
        return [tool.name, tool.description, tool.params_json_schema]
    return tool.name
