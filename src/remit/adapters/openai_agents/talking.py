"""The dialect of openai-agents for recorded conversations."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, TypeAlias, cast

from agents import ModelResponse

from remit.adapters.guests import json_of, told, without
from remit.adapters.openai_agents.recording import restored
from remit.core.values import Json
from remit.ports.models import ModelAnswer
from remit.ports.turn import Hops

Item: TypeAlias = dict[str, Any]

# Ids and states of items differ from run to run; a call is identified by its `call_id`, which is stable.
PASSING: Final = frozenset(("id", "status", "provider_data"))
_IDS: Final = PASSING | {"call_id"}
_SYSTEM: Final = ("system", "developer")


class OpenAIDialect:
    """How openai-agents writes a conversation: a list of items, several of which may be one answer."""

    framework: str = "openai-agents"

    def is_said(self, message: Item) -> bool:
        kind = str(message.get("type", ""))
        return message.get("role") == "assistant" or kind == "reasoning" or kind.endswith("_call")

    def words(self, message: Item) -> Any:
        return message.get("call_id") or without(message, PASSING)

    def calls(self, message: Item) -> list[str]:
        return [str(message["call_id"])] if message.get("call_id") else []

    def gist(self, messages: Sequence[Item]) -> Any:
        return [without(one, _IDS) for one in messages]

    def results(self, messages: Sequence[Item]) -> dict[str, Any]:
        return {str(one["call_id"]): one for one in messages if "output" in one and one.get("call_id")}

    def written(self, messages: Sequence[Item], elsewhere: Collection[str]) -> Json:
        plain = [{**one, "output": ""} if one.get("call_id") in elsewhere else one for one in messages]
        return json_of(plain)

    def read(self, told: Any, results: Mapping[str, Any]) -> list[Item]:
        items = cast("list[Item]", told)
        if any("role" not in one and "type" not in one for one in items):
            raise ValueError("an item of a conversation has a role or a type")
        return [_with(one, results.get(str(one.get("call_id")))) for one in items]

    def result(self, value: Any, call: str) -> Any:
        return told(value)

    def with_results(self, messages: list[Item], results: Mapping[str, Any]) -> list[Item]:
        return [_with(one, results.get(str(one.get("call_id")))) for one in messages]

    def with_news(self, messages: list[Item], text: str) -> list[Item]:
        return [*messages, {"role": "user", "content": text}]

    def answer(self, reply: ModelAnswer) -> ModelResponse:
        return restored(reply.text) if reply.response is None else cast("ModelResponse", reply.response)

    def said(self, answer: ModelResponse) -> list[Item]:
        return cast("list[Item]", answer.to_input_items())

    def asked(self, text: str) -> Item:
        return {"role": "user", "content": text}

    def replied(self, text: str) -> Item:
        return {"role": "assistant", "content": text}

    def after(self, past: list[Item], messages: list[Item]) -> list[Item]:
        return [*past, *messages]

    def retold(self, messages: list[Item]) -> list[Item]:
        return [one for one in messages if one.get("role") not in _SYSTEM]


DIALECT: Final = OpenAIDialect()


def hops_of(names: Collection[str]) -> Hops | None:
    """Return a function that lists the handoffs in an answer, or None if no handoff can be called."""
    return (lambda answer: [one["name"] for one in answer if one.get("name") in names]) if names else None


def _with(item: Item, found: Any) -> Item:
    if found is None:
        return item
    return {**item, "output": found} if isinstance(found, str) else found
