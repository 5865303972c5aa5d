"""The dialect of `POST /v1/responses`."""

from collections.abc import Iterator
from itertools import count
from typing import Any

from remit.testing.models.answers import ScriptedAnswer, ScriptedCall, ServerEvent, deltas, named


def whole(found: ScriptedAnswer) -> dict[str, Any]:
    """Return an answer as one object."""
    usage = _usage(found)
    told = {} if usage is None else {"usage": usage}
    return {**_envelope(found, "completed"), "output": list(_items(found)), **told}


def events(found: ScriptedAnswer) -> Iterator[ServerEvent]:
    """Yield an answer as a stream of numbered events."""
    numbers = count()
    for event in _events(found):
        yield named({"type": event.pop("type"), "sequence_number": next(numbers), **event})


def _events(found: ScriptedAnswer) -> Iterator[dict[str, Any]]:
    begun: dict[str, Any] = {**_envelope(found, "in_progress"), "output": []}
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for index, item in enumerate(_items(found)):
        place = {"item_id": item["id"], "output_index": index}
        told = _text_events(item, place) if item["type"] == "message" else _call_events(item, place)
        empty: dict[str, Any] = {"content": []} if item["type"] == "message" else {"arguments": ""}
        yield {
            "type": "response.output_item.added",
            "output_index": index,
            "item": {**item, **empty, "status": "in_progress"},
        }
        yield from told
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": "response.completed", "response": whole(found)}


def _text_events(item: dict[str, Any], place: dict[str, Any]) -> Iterator[dict[str, Any]]:
    part = item["content"][0]
    place = {**place, "content_index": 0}
    yield {"type": "response.content_part.added", **place, "part": {**part, "text": ""}}
    for delta in deltas(part["text"]):
        yield {"type": "response.output_text.delta", **place, "delta": delta, "logprobs": []}
    yield {"type": "response.output_text.done", **place, "text": part["text"], "logprobs": []}
    yield {"type": "response.content_part.done", **place, "part": part}


def _call_events(item: dict[str, Any], place: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for delta in deltas(item["arguments"]):
        yield {"type": "response.function_call_arguments.delta", **place, "delta": delta}
    done = {"name": item["name"], "arguments": item["arguments"]}
    yield {"type": "response.function_call_arguments.done", **place, **done}


def _items(found: ScriptedAnswer) -> Iterator[dict[str, Any]]:
    if found.text:
        part: dict[str, Any] = {"type": "output_text", "text": found.text, "annotations": [], "logprobs": []}
        told = {"type": "message", "role": "assistant", "status": "completed", "content": [part]}
        yield {"id": f"msg_{found.number}", **told}
    for at, call in enumerate(found.calls):
        yield _call(call, f"fc_{found.number}_{at}")


def _call(call: ScriptedCall, name: str) -> dict[str, Any]:
    told = {"call_id": call.id, "name": call.name, "arguments": call.arguments}
    return {"id": name, "type": "function_call", "status": "completed", **told}


def _envelope(found: ScriptedAnswer, status: str) -> dict[str, Any]:
    return {
        "id": f"resp_{found.number}",
        "object": "response",
        "created_at": found.created,
        "status": status,
        "model": found.model,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "parallel_tool_calls": True,
        "temperature": None,
        "tool_choice": "auto",
        "tools": [],
        "top_p": None,
    }


def _usage(found: ScriptedAnswer) -> dict[str, Any] | None:
    if found.usage is None:
        return None
    asked, written = found.usage
    return {
        "input_tokens": asked,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": written,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": asked + written,
    }
