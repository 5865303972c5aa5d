"""The dialect of pydantic-ai for recorded conversations."""

import copy
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from remit.adapters.guests import unlike
from remit.adapters.pydantic_ai.history import as_json, decoded, said_in
from remit.core.values import Json
from remit.ports.models import ModelAnswer

_MADE_BY: Final = "remit_model"  # metadata key: the model that gave the answer
_NOT_WRITTEN: Final = frozenset(("instructions", "timestamp", "run_id", "conversation_id"))
_SAID: Final = ("tool_name", "content", "args")
_STRANGE: Final = re.compile(r"[^A-Za-z0-9_-]")  # characters that some providers reject in a call id
_PLAIN_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,40}")
_LONGEST_ID: Final = 36  # with room for a number
_PROVIDERS: Final = ("id", "signature", "provider_name", "provider_details")


class PydanticDialect:
    """How pydantic-ai writes a conversation: requests and responses of several parts each."""

    framework: str = "pydantic-ai"

    def is_said(self, message: ModelMessage) -> bool:
        return isinstance(message, ModelResponse)

    def words(self, message: ModelMessage) -> Any:
        return said_in(message)

    def calls(self, message: ModelMessage) -> list[str]:
        return [part.tool_call_id for part in message.parts if isinstance(part, ToolCallPart)]

    def gist(self, messages: Sequence[ModelMessage]) -> Any:
        return [
            [part.part_kind, *(getattr(part, name, None) for name in _SAID)] for one in messages for part in one.parts
        ]

    def results(self, messages: Sequence[ModelMessage]) -> dict[str, Any]:
        return {part.tool_call_id: part for one in messages for part in one.parts if type(part) is ToolReturnPart}

    def written(self, messages: Sequence[ModelMessage], elsewhere: Collection[str]) -> Json:
        """Return messages as JSON, without instructions, of which only the next request's count, and without times and
        run ids."""
        return [as_json(_without(one, elsewhere) if elsewhere else one, _NOT_WRITTEN) for one in messages]

    def read(self, told: Any, results: Mapping[str, Any]) -> list[ModelMessage]:
        return [_with(one, results) for one in ModelMessagesTypeAdapter.validate_python(told)]

    def result(self, value: Any, call: str) -> Any:
        return value

    def with_results(self, messages: list[ModelMessage], results: Mapping[str, Any]) -> list[ModelMessage]:
        return [_with(one, results) for one in messages]

    def with_news(self, messages: list[ModelMessage], text: str) -> list[ModelMessage]:
        last = messages[-1] if messages else None
        if not isinstance(last, ModelRequest):
            return [*messages, ModelRequest([UserPromptPart(text)])]
        return [*messages[:-1], replace(last, parts=[*last.parts, UserPromptPart(text)])]

    def answer(self, reply: ModelAnswer) -> ModelResponse:
        return reply.response if isinstance(reply.response, ModelResponse) else decoded(reply.text)

    def said(self, answer: ModelResponse) -> list[ModelMessage]:
        return [answer]

    def asked(self, text: str) -> ModelMessage:
        return ModelRequest([UserPromptPart(text)])

    def replied(self, text: str) -> ModelMessage:
        return ModelResponse([TextPart(text)])

    def after(self, past: list[ModelMessage], messages: list[ModelMessage]) -> list[ModelMessage]:
        first = messages[0] if messages else None
        if not past or not isinstance(first, ModelRequest):
            return [*past, *messages]
        system = [part for part in first.parts if isinstance(part, SystemPromptPart)]
        rest = replace(first, parts=[part for part in first.parts if not isinstance(part, SystemPromptPart)])
        return [*([ModelRequest(system)] if system else []), *past, rest, *messages[1:]]

    def retold(self, messages: list[ModelMessage]) -> list[ModelMessage]:
        plain = [_without_system(one) if isinstance(one, ModelRequest) else one for one in messages]
        return [one for one in plain if one.parts]


DIALECT: Final = PydanticDialect()


def made_by(answer: ModelResponse, model: str) -> ModelResponse:
    """Return an answer with a note of the model that gave it."""
    return _changed(answer, metadata={**(answer.metadata or {}), _MADE_BY: model})


def portable(messages: Sequence[ModelMessage], model: str) -> list[ModelMessage]:
    """Return a conversation for a model: answers of another model lose their ids, signatures and thoughts, which a
    provider does not accept from another, and some APIs of one provider do not accept from each other. Their calls get
    ids that every provider accepts."""
    if not any(isinstance(one, ModelResponse) and _is_foreign(one, model) for one in messages):
        return [*messages]
    seen = {call for one in messages for call in DIALECT.calls(one)}
    renamed: dict[str, str] = {}
    told: list[ModelMessage] = []
    for one in messages:
        if isinstance(one, ModelResponse):
            strange = [call for call in DIALECT.calls(one) if not _PLAIN_ID.fullmatch(call)]
            if _is_foreign(one, model):
                renamed |= {call: unlike(_STRANGE.sub("_", call)[:_LONGEST_ID], seen) for call in strange}
                one = _stripped(one, renamed)  # noqa: PLW2901
        elif renamed:
            one = _with_ids(one, renamed)  # noqa: PLW2901
        told.append(one)
    return told


def _is_foreign(answer: ModelResponse, model: str) -> bool:
    return (answer.metadata or {}).get(_MADE_BY, model) != model


def _stripped(answer: ModelResponse, renamed: Mapping[str, str]) -> ModelResponse:
    parts: list[Any] = []
    for part in answer.parts:
        if not isinstance(part, ThinkingPart):
            foreign: dict[str, Any] = {name: None for name in _PROVIDERS if getattr(part, name, None) is not None}
            if isinstance(part, ToolCallPart) and part.tool_call_id in renamed:
                foreign["tool_call_id"] = renamed[part.tool_call_id]
            parts.append(replace(part, **foreign) if foreign else part)
    return replace(answer, parts=parts, provider_name=None, provider_details=None, provider_response_id=None)


def _with_ids(message: ModelRequest, renamed: Mapping[str, str]) -> ModelRequest:
    """Return the results of calls with the new ids of the calls."""
    parts: list[Any] = []
    for part in message.parts:
        call = part.tool_call_id if isinstance(part, ToolReturnPart) else ""
        parts.append(replace(part, tool_call_id=renamed[call]) if call in renamed else part)
    return replace(message, parts=parts)


def _without_system(message: ModelRequest) -> ModelRequest:
    parts = [part for part in message.parts if not isinstance(part, SystemPromptPart)]
    return replace(message, parts=parts, instructions=None)


def _without(message: ModelMessage, elsewhere: Collection[str]) -> ModelMessage:
    if not isinstance(message, ModelRequest):
        return message
    parts = [
        _changed(part, content="") if type(part) is ToolReturnPart and part.tool_call_id in elsewhere else part
        for part in message.parts
    ]
    return _changed(message, parts=parts)


def _changed(thing: Any, **changes: Any) -> Any:
    """Return a copy with other values in some fields."""
    made = copy.copy(thing)
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def _with(message: ModelMessage, results: Mapping[str, Any]) -> ModelMessage:
    """Return the message with results in their places: the part of this run, or the recorded value."""
    if not isinstance(message, ModelRequest):
        return message
    parts: list[Any] = []
    for part in message.parts:
        if type(part) is not ToolReturnPart or part.tool_call_id not in results:
            parts.append(part)
        elif isinstance(found := results[part.tool_call_id], ToolReturnPart):
            parts.append(found)
        elif part.outcome == "retried":  # the framework's message for a call that it could not make
            parts.append(ToolReturnPart(part.tool_name, found, part.tool_call_id))
        else:
            parts.append(replace(part, content=found))
    return replace(message, parts=parts)
