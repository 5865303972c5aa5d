"""The dialect of langchain for recorded conversations."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, cast

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatResult

from remit.adapters.guests import json_of, without
from remit.adapters.langgraph.recording import dumped, message_of, restored, result_of
from remit.core.values import Json
from remit.ports.models import ModelAnswer, ToolCall


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

    def written(self, messages: Sequence[BaseMessage], elsewhere: Collection[str]) -> Json:
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

    def said(self, answer: ChatResult) -> list[BaseMessage]:
        return [answer.generations[0].message]

    def asked(self, text: str) -> BaseMessage:
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
