"""Recorded conversations of openai-agents: responses as text and back, and as stream events, and the dialect."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias, cast

from agents import ModelResponse
from agents.exceptions import ModelBehaviorError
from agents.items import TResponseOutputItem, TResponseStreamEvent
from agents.models.fake_id import FAKE_RESPONSES_ID
from agents.usage import Usage, deserialize_usage, serialize_usage
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseFunctionToolCall,
    ResponseOutputItem,
    ResponseOutputItemDoneEvent,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseTextDeltaEvent,
    ResponseUsage,
)
from pydantic import BaseModel, TypeAdapter

from remit.adapters.guests import MOST_CALLS, clean_json, json_of, left_out, text_for_model, unlike, without
from remit.core.values import Json, encode
from remit.ports.models import ModelAnswer
from remit.ports.turn import Hops

# -- responses as text and back ------------------------------------------------------------------------------


_ITEM: Final[TypeAdapter[TResponseOutputItem]] = TypeAdapter(ResponseOutputItem)


def recorded(response: ModelResponse, taken: Iterable[str] = ()) -> tuple[str, ModelResponse]:
    """Return the text of a response, and the response that the text stands for: without characters that no store can
    hold, and with a new id for each call whose id occurs twice, here or among those `taken` earlier in the
    conversation. Calls beyond the limit of one answer are left out, with a note."""
    told: dict[str, Any] = {
        "output": [_dumped(item) for item in _with_few_calls(response.output)],
        "usage": serialize_usage(response.usage),
        "response_id": response.response_id,
        "request_id": response.request_id,
    }
    kept = cast("dict[str, Any]", json_of(told))
    ids = {*taken}
    for item in kept["output"]:
        if isinstance(item.get("arguments"), str):
            item["arguments"] = clean_json(item["arguments"])
        if isinstance(item.get("call_id"), str):
            item["call_id"] = unlike(item["call_id"], ids)
    text = encode(kept)
    same = kept == told and len(kept["output"]) == len(response.output)
    return text, response if same else restored(text)


def _with_few_calls(output: list[TResponseOutputItem]) -> list[TResponseOutputItem]:
    more = [id(item) for item in output if isinstance(item, ResponseFunctionToolCall)][MOST_CALLS:]
    if not more:
        return output
    unused = frozenset(more)
    said = ResponseOutputText(type="output_text", text=left_out(len(more)), annotations=[])
    note = ResponseOutputMessage(
        id=FAKE_RESPONSES_ID, type="message", role="assistant", status="completed", content=[said]
    )
    return [*(item for item in output if id(item) not in unused), note]


def _dumped(item: TResponseOutputItem | dict[str, Any]) -> dict[str, Any]:
    return item.model_dump(mode="json", exclude_unset=True) if isinstance(item, BaseModel) else item


def restored(text: str) -> ModelResponse:
    """Return the response of a recorded text."""
    told = cast("dict[str, Any]", json.loads(text))
    return ModelResponse(
        output=[_ITEM.validate_python(item) for item in told["output"]],
        usage=deserialize_usage(told["usage"]),
        response_id=told["response_id"],
        request_id=told["request_id"],
    )


def events(response: ModelResponse, model: str) -> Iterator[TResponseStreamEvent]:
    """Yield a whole response as a stream would: its text, its items, its end."""
    number = 0
    for at, item in enumerate(response.output):
        for index, text in _texts(item):
            yield ResponseTextDeltaEvent(
                type="response.output_text.delta",
                item_id=item.id or FAKE_RESPONSES_ID,
                output_index=at,
                content_index=index,
                delta=text,
                logprobs=[],
                sequence_number=number,
            )
            number += 1
        yield ResponseOutputItemDoneEvent(
            type="response.output_item.done", output_index=at, item=item, sequence_number=number
        )
        number += 1
    yield ResponseCompletedEvent(type="response.completed", response=_response(response, model), sequence_number=number)


def _texts(item: TResponseOutputItem) -> list[tuple[int, str]]:
    parts = item.content if isinstance(item, ResponseOutputMessage) else []
    return [(index, part.text) for index, part in enumerate(parts) if isinstance(part, ResponseOutputText)]


def _response(response: ModelResponse, model: str) -> Response:
    usage = response.usage
    return Response(
        id=response.response_id or FAKE_RESPONSES_ID,
        created_at=0,
        model=model,
        object="response",
        output=response.output,
        parallel_tool_calls=True,
        tool_choice="auto",
        tools=[],
        usage=ResponseUsage(
            input_tokens=usage.input_tokens,
            input_tokens_details=usage.input_tokens_details,
            output_tokens=usage.output_tokens,
            output_tokens_details=usage.output_tokens_details,
            total_tokens=usage.total_tokens,
        ),
    )


def completed(response: Response) -> ModelResponse:
    """Return the final response of a stream as a `ModelResponse`. Raise `ModelBehaviorError` if it has neither output
    nor usage."""
    told, usage = response.usage, Usage(requests=1)
    if told is None and not response.output:
        raise ModelBehaviorError("the stream said nothing")  # same error as for a stream that is not a model's
    if told is not None:
        usage = Usage(
            requests=1,
            input_tokens=told.input_tokens,
            input_tokens_details=told.input_tokens_details,
            output_tokens=told.output_tokens,
            output_tokens_details=told.output_tokens_details,
            total_tokens=told.total_tokens,
        )
    return ModelResponse(output=response.output, usage=usage, response_id=response.id)


# -- the dialect ---------------------------------------------------------------------------------------------


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

    def messages_json(self, messages: Sequence[Item], elsewhere: Collection[str]) -> Json:
        plain = [{**one, "output": ""} if one.get("call_id") in elsewhere else one for one in messages]
        return json_of(plain)

    def read(self, told: Any, results: Mapping[str, Any]) -> list[Item]:
        items = cast("list[Item]", told)
        if any("role" not in one and "type" not in one for one in items):
            raise ValueError("an item of a conversation has a role or a type")
        return [_with(one, results.get(str(one.get("call_id")))) for one in items]

    def result(self, value: Any, call: str) -> Any:
        return text_for_model(value)

    def with_results(self, messages: list[Item], results: Mapping[str, Any]) -> list[Item]:
        return [_with(one, results.get(str(one.get("call_id")))) for one in messages]

    def with_news(self, messages: list[Item], text: str) -> list[Item]:
        return [*messages, {"role": "user", "content": text}]

    def answer(self, reply: ModelAnswer) -> ModelResponse:
        return restored(reply.text) if reply.response is None else cast("ModelResponse", reply.response)

    def answer_messages(self, answer: ModelResponse) -> list[Item]:
        return cast("list[Item]", answer.to_input_items())

    def question_message(self, text: str) -> Item:
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
