"""The dialect of `POST /v1/messages`."""

import json
from collections.abc import Iterator
from typing import Any

from remit.testing.models.answers import ScriptedAnswer, ScriptedCall, ServerEvent, deltas, named


def whole(found: ScriptedAnswer) -> dict[str, Any]:
    """Return an answer as one object."""
    content: list[dict[str, Any]] = [{"type": "text", "text": found.text}] if found.text else []
    content += [{**_call(call), "input": _input(call.arguments)} for call in found.calls]
    told = {} if found.usage is None else {"usage": _usage(*found.usage)}
    return {**_envelope(found), "content": content, "stop_reason": _stop(found), **told}


def events(found: ScriptedAnswer) -> Iterator[ServerEvent]:
    """Yield an answer as a stream of events."""
    begun = {} if found.usage is None else {"usage": _usage(found.usage[0], 1)}
    message: dict[str, Any] = {**_envelope(found), "content": [], "stop_reason": None, **begun}
    yield named({"type": "message_start", "message": message})
    yield named({"type": "ping"})
    for index, (block, parts) in enumerate(_blocks(found)):
        yield named({"type": "content_block_start", "index": index, "content_block": block})
        for delta in parts:
            yield named({"type": "content_block_delta", "index": index, "delta": delta})
        yield named({"type": "content_block_stop", "index": index})
    told = {} if found.usage is None else {"usage": {"output_tokens": found.usage[1]}}
    yield named({"type": "message_delta", "delta": {"stop_reason": _stop(found), "stop_sequence": None}, **told})
    yield named({"type": "message_stop"})


def _blocks(found: ScriptedAnswer) -> Iterator[tuple[dict[str, Any], list[dict[str, str]]]]:
    if found.text:
        yield {"type": "text", "text": ""}, [{"type": "text_delta", "text": part} for part in deltas(found.text)]
    for call in found.calls:
        parts = [{"type": "input_json_delta", "partial_json": part} for part in deltas(call.arguments)]
        yield {**_call(call), "input": {}}, parts


def _call(call: ScriptedCall) -> dict[str, Any]:
    return {"type": "tool_use", "id": call.id, "name": call.name}


def _input(arguments: str) -> Any:
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments  # invalid JSON, if the script wants that


def _envelope(found: ScriptedAnswer) -> dict[str, Any]:
    told = {"role": "assistant", "model": found.model, "stop_sequence": None}
    return {"id": f"msg_{found.number}", "type": "message", **told}


def _stop(found: ScriptedAnswer) -> str:
    return "tool_use" if found.calls else "end_turn"


def _usage(asked: int, written: int) -> dict[str, int]:
    return {"input_tokens": asked, "output_tokens": written}
