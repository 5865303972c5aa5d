"""Responses of this framework as text and back, and as stream events."""

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final, cast

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

from remit.adapters.guests import MOST_CALLS, clean_json, json_of, left_out, unlike
from remit.core.values import encode

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
    """Return the response at the end of a stream."""
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
