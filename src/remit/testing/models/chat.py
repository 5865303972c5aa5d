"""The dialect of `POST /v1/chat/completions`."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, cast

from remit.testing.models.answers import ScriptedAnswer, ScriptedCall, ServerEvent, deltas
from remit.testing.models.requests import ModelRequest


def whole(found: ScriptedAnswer) -> dict[str, Any]:
    """Return an answer as one object."""
    message: dict[str, Any] = {"role": "assistant", "content": found.text or None, "refusal": None}
    if found.calls:
        message["tool_calls"] = [_call(call) for call in found.calls]
    elif not found.text:
        message["content"] = ""
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish(found)}
    usage = _usage(found)
    told = {} if usage is None else {"usage": usage}
    return {**_envelope(found, "chat.completion"), "choices": [choice], **told}


def events(found: ScriptedAnswer, request: ModelRequest) -> Iterator[ServerEvent]:
    """Yield an answer as a stream. Usage comes at the end, and only if the client asks for it."""
    options: Any = request.body.get("stream_options")
    asked = isinstance(options, dict) and bool(cast("dict[str, Any]", options).get("include_usage"))

    def event(choices: list[Any], usage: Mapping[str, int] | None = None) -> ServerEvent:
        told = {"usage": usage} if asked else {}
        return "", json.dumps({**_envelope(found, "chat.completion.chunk"), "choices": choices, **told})

    for delta in _deltas(found):
        yield event([{"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}])
    yield event([{"index": 0, "delta": {}, "logprobs": None, "finish_reason": _finish(found)}])
    usage = _usage(found)
    if asked and usage is not None:
        yield event([], usage)
    yield "", "[DONE]"


def _deltas(found: ScriptedAnswer) -> Iterator[dict[str, Any]]:
    yield {"role": "assistant", "content": ""}
    for part in deltas(found.text):
        yield {"content": part}
    for index, call in enumerate(found.calls):
        yield {"tool_calls": [{"index": index, **_call(call._replace(arguments=""))}]}
        for part in deltas(call.arguments):
            yield {"tool_calls": [{"index": index, "function": {"arguments": part}}]}


def _call(call: ScriptedCall) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _envelope(found: ScriptedAnswer, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{found.number}", "object": kind, "created": found.created, "model": found.model}


def _finish(found: ScriptedAnswer) -> str:
    return "tool_calls" if found.calls else "stop"


def _usage(found: ScriptedAnswer) -> dict[str, int] | None:
    if found.usage is None:
        return None
    asked, written = found.usage
    return {"prompt_tokens": asked, "completion_tokens": written, "total_tokens": asked + written}
