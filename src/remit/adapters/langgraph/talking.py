"""Recorded conversations of langchain: messages and results as JSON and back, and the dialect."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, cast

from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    messages_from_dict,
)
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langgraph.types import Command, Send

from remit.adapters.guests import MOST_CALLS, clean, json_of, left_out, text_for_model, unlike, without
from remit.core.trust import quoted
from remit.core.values import Json, encode
from remit.errors import BadInput
from remit.ports.models import Brought, ModelAnswer, ToolCall

# -- messages and results as JSON and back -------------------------------------------------------------------


_MARK: Final = "langgraph"  # marks a result that is more than text


def recorded(result: ChatResult, taken: Iterable[str] = ()) -> tuple[str, ChatResult]:
    """Return the text of an answer, and the answer that the text stands for: without characters that no store can hold,
    and with a new id for each call whose id occurs twice, here or among those `taken` earlier in the conversation.
    Calls beyond the limit of one answer are left out, with a note."""
    told = [{"message": dumped(one.message), "info": one.generation_info} for one in result.generations]
    kept = cast("list[dict[str, Any]]", json_of(told))
    _use_few_calls(kept[0]["message"]["data"])
    ids = {*taken}
    for call in kept[0]["message"]["data"].get("tool_calls") or ():
        if isinstance(call.get("id"), str):
            call["id"] = unlike(call["id"], ids)
    text = encode(kept)
    return text, result if kept == told else restored(text)


def _use_few_calls(message: dict[str, Any]) -> None:
    """Drop calls beyond the limit, also where a provider's client has repeated them."""
    kinds = ("tool_calls", "invalid_tool_calls")
    calls: list[dict[str, Any]] = [call for kind in kinds for call in message.get(kind) or ()]
    more = calls[MOST_CALLS:]
    if not more:
        return
    used = {id(call) for call in calls[:MOST_CALLS]}
    ids = {call.get("id") for call in more} - {None, *(call.get("id") for call in calls[:MOST_CALLS])}
    for kind in kinds:
        message[kind] = [call for call in message.get(kind) or () if id(call) in used]
    also = cast("dict[str, Any]", message.get("additional_kwargs") or {})
    also.pop("tool_calls", None)
    content, note = message.get("content") or "", left_out(len(more))
    if isinstance(content, str):
        message["content"] = f"{content}\n{note}" if content else note
        return
    parts = cast("list[Any]", content)
    parts = [one for one in parts if isinstance(one, str) or not {one.get("id"), one.get("call_id")} & ids]
    message["content"] = [*parts, {"type": "text", "text": note}]


def restored(text: str) -> ChatResult:
    """Return the answer of a recorded text."""
    return ChatResult(
        generations=[
            ChatGeneration(message=message_of(one["message"]), generation_info=one["info"]) for one in json.loads(text)
        ]
    )


def dumped(message: BaseMessage) -> dict[str, Any]:
    return {"type": message.type, "data": message.model_dump(mode="json", exclude_unset=True)}


def message_of(data: Mapping[str, Any]) -> BaseMessage:
    return messages_from_dict([dict(data)])[0]


def chunk(generation: ChatGeneration) -> ChatGenerationChunk:
    """Return a whole answer as a stream of one piece."""
    message = generation.message
    assert isinstance(message, AIMessage)
    calls = [(call["name"], json.dumps(call["args"]), call["id"]) for call in message.tool_calls]
    calls += [(call["name"] or "", call["args"] or "", call["id"]) for call in message.invalid_tool_calls]
    made = AIMessageChunk(
        content=message.content,
        additional_kwargs=message.additional_kwargs,
        response_metadata=message.response_metadata,
        id=message.id,
        usage_metadata=message.usage_metadata,
        tool_call_chunks=[tool_call_chunk(name=n, args=a, id=i, index=at) for at, (n, a, i) in enumerate(calls)],
        chunk_position="last",
    )
    return ChatGenerationChunk(message=made, generation_info=generation.generation_info)


# -- results of tools ---------------------------------------------------------------------------------------------


def result_data(result: object) -> Json:
    """Return a tool's result as JSON: its text, or the whole result if it is more than text."""
    if isinstance(result, ToolMessage) and isinstance(result.content, str) and result.artifact is None:
        return clean(result.content)
    if isinstance(result, ToolMessage | Command | list):
        return {_MARK: _data(cast("object", result))}
    return json_of(result)


def quoted_result(value: Json) -> Json:
    """Return an untrusted tool result with its text quoted, and the text of every message in it."""
    if isinstance(value, dict) and value.keys() == {_MARK}:
        return {_MARK: _data(_with_quotes(_read(value[_MARK])))}
    return quoted(text_for_model(value))


def _with_quotes(value: Any) -> Any:
    if isinstance(value, BaseMessage):
        content = cast("Any", value).content
        text = content if isinstance(content, str) else encode(json_of(content))
        return value.model_copy(update={"content": quoted(text)})
    if isinstance(value, Command):
        return replace(cast("Any", value), update=_with_quotes(cast("Any", value).update))
    if isinstance(value, list):
        return [_with_quotes(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {key: _with_quotes(item) for key, item in cast("dict[str, Any]", value).items()}
    return value


def result_of(value: Json, call: ToolCall | None) -> Any:
    """Return the object with which the framework continues: a message for the model that called, or a change of the
    graph's state. If no model called, return the value itself."""
    if isinstance(value, dict) and value.keys() == {_MARK}:
        return _read(value[_MARK])
    return value if call is None else ToolMessage(text_for_model(value), name=call.name, tool_call_id=call.id)


def brought(call: str, value: Json) -> Brought | None:
    """Return the content of a tool result that is more than text, or None. A command that names the next nodes passes
    the work on to them. Of messages, only the answer to this call counts: the others were in the state before, or come
    from it."""
    if not isinstance(value, dict) or value.keys() != {_MARK}:
        return None
    given = _read(value[_MARK])
    if isinstance(given, Command) and (goto := cast("Any", given).goto):
        return Brought(json_of([one.node if isinstance(one, Send) else one for one in _as_list(goto)]), hands_on=True)
    return Brought(json_of(_of_call(call, given)))


def _of_call(call: str, value: Any) -> Any:
    if isinstance(value, Command):
        return _of_call(call, cast("Any", value).update)
    if isinstance(value, ToolMessage):
        return [cast("object", value.content), cast("object", value.artifact)] if value.tool_call_id == call else None
    if isinstance(value, BaseMessage):
        return None
    if isinstance(value, Mapping):
        return {str(key): _of_call(call, item) for key, item in cast("Mapping[object, Any]", value).items()}
    if isinstance(value, list | tuple):
        found = (_of_call(call, item) for item in cast("Sequence[Any]", value))
        return [one for one in found if one is not None]
    return value


def _as_list(value: Any) -> list[Any]:
    return [*cast("Sequence[Any]", value)] if isinstance(value, list | tuple) else [value]


def _data(value: object) -> Json:
    if isinstance(value, BaseMessage):
        return {"message": json_of(dumped(value))}
    if isinstance(value, Command):
        if value.resume is not None:
            raise BadInput("a tool's Command may update the state and name the next nodes, not resume a graph")
        goto = cast("object", cast("Any", value).goto)
        return {"command": {"update": _data(value.update), "goto": _data(goto), "graph": value.graph}}
    if isinstance(value, Send):
        return {"send": {"node": value.node, "arg": _data(cast("object", value.arg))}}
    if isinstance(value, Mapping):
        pairs = cast("Mapping[object, object]", value).items()
        return {"object": {str(key): _data(item) for key, item in pairs}}
    if isinstance(value, list | tuple):
        return [_data(item) for item in cast("Sequence[object]", value)]
    return json_of(value)


def _read(value: Any) -> Any:
    if isinstance(value, list):
        return [_read(item) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    ((kind, inner),) = cast("dict[str, Any]", value).items()
    if kind == "message":
        return message_of(inner)
    if kind == "command":
        return Command(**{name: _read(part) for name, part in inner.items()})
    if kind == "send":
        return Send(inner["node"], _read(inner["arg"]))
    return {key: _read(item) for key, item in inner.items()}


# -- the dialect ---------------------------------------------------------------------------------------------


class LangChainDialect:
    """How langchain writes a conversation: messages, without those of the system."""

    framework: str = "langchain"

    def is_said(self, message: BaseMessage) -> bool:
        return isinstance(message, AIMessage)

    def words(self, message: BaseMessage) -> Any:
        """Return the content of a message, without its own id, which differs in every run."""
        calls = [[call["name"], call["args"], call["id"]] for call in _calls(message)]
        return [*_words(message, calls), getattr(message, "tool_call_id", None)]

    def calls(self, message: BaseMessage) -> list[str]:
        return [str(call["id"]) for call in _calls(message)]

    def gist(self, messages: Sequence[BaseMessage]) -> Any:
        return [_words(one, [[call["name"], call["args"]] for call in _calls(one)]) for one in messages]

    def results(self, messages: Sequence[BaseMessage]) -> dict[str, Any]:
        return {one.tool_call_id: one for one in messages if isinstance(one, ToolMessage)}

    def messages_json(self, messages: Sequence[BaseMessage], elsewhere: Collection[str]) -> Json:
        return json_of([dumped(_without(one, elsewhere)) for one in messages])

    def read(self, told: Any, results: Mapping[str, Any]) -> list[BaseMessage]:
        return self.with_results([message_of(one) for one in told], results)

    def result(self, value: Any, call: str) -> Any:
        found = result_of(value, ToolCall("", {}, call))
        return found if isinstance(found, ToolMessage) else ToolMessage(str(found), tool_call_id=call)

    def with_results(self, messages: list[BaseMessage], results: Mapping[str, Any]) -> list[BaseMessage]:
        return [results.get(one.tool_call_id, one) if isinstance(one, ToolMessage) else one for one in messages]

    def with_news(self, messages: list[BaseMessage], text: str) -> list[BaseMessage]:
        return [*messages, HumanMessage(text)]

    def answer(self, reply: ModelAnswer) -> ChatResult:
        return restored(reply.text) if reply.response is None else cast("ChatResult", reply.response)

    def answer_messages(self, answer: ChatResult) -> list[BaseMessage]:
        return [answer.generations[0].message]

    def question_message(self, text: str) -> BaseMessage:
        return HumanMessage(text)

    def replied(self, text: str) -> BaseMessage:
        return AIMessage(text)

    def after(self, past: list[BaseMessage], messages: list[BaseMessage]) -> list[BaseMessage]:
        return [*past, *messages]

    def retold(self, messages: list[BaseMessage]) -> list[BaseMessage]:
        return [one for one in messages if not isinstance(one, SystemMessage)]


DIALECT: Final = LangChainDialect()


def _calls(message: BaseMessage) -> list[Any]:
    return getattr(message, "tool_calls", [])


def _words(message: BaseMessage, calls: list[Any]) -> list[Any]:
    return [message.type, without(cast("object", message.content), ("id", "index")), calls]


def _without(message: BaseMessage, elsewhere: Collection[str]) -> BaseMessage:
    if isinstance(message, ToolMessage) and message.tool_call_id in elsewhere:
        return message.model_copy(update={"content": "", "artifact": None})
    return message
