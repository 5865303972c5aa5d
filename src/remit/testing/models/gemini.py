"""A scripted answer in Google's dialect: whole, and as a stream of its parts. The model is in the path of a request."""

import json
from collections.abc import Iterator
from typing import Any, Final

from remit.testing.models.answers import ScriptedAnswer, ScriptedCall, ServerEvent, deltas

_STATUSES: Final = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
TOO_LONG: Final = "The input token count (1048577) exceeds the maximum number of tokens allowed (1048576)."


def gemini_whole(found: ScriptedAnswer) -> dict[str, Any]:
    """Return an answer as one object."""
    parts = [*([{"text": found.text}] if found.text else []), *map(_call, found.calls)]
    return _part(found, parts, _finish(found), ends=True)


def gemini_events(found: ScriptedAnswer) -> Iterator[ServerEvent]:
    """Yield an answer as a stream. A call is never split; usage comes with the last part."""
    for text in deltas(found.text):
        yield "", json.dumps(_part(found, [{"text": text}]))
    for call in found.calls:
        yield "", json.dumps(_part(found, [_call(call)]))
    yield "", json.dumps(_part(found, [{"text": ""}], _finish(found), ends=True))


def gemini_error(status: int, code: str, message: str) -> dict[str, Any]:
    """Return the body of an error."""
    return {"error": {"code": status, "message": message, "status": code or _STATUSES.get(status, "UNKNOWN")}}


def _part(found: ScriptedAnswer, parts: list[Any], finish: str = "", *, ends: bool = False) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
    if finish:
        candidate["finishReason"] = finish
    told = _usage(found) if ends else {}
    named = {"modelVersion": found.model, "responseId": f"resp_{found.number}"}
    return {"candidates": [candidate], **told, **named}


def _call(call: ScriptedCall) -> dict[str, Any]:
    try:
        arguments = json.loads(call.arguments)
    except ValueError:
        arguments = call.arguments  # invalid, if the script wants that
    return {"functionCall": {"id": call.id, "name": call.full_name, "args": arguments}}


def _finish(found: ScriptedAnswer) -> str:
    return "MAX_TOKENS" if found.limited else "STOP"


def _usage(found: ScriptedAnswer) -> dict[str, Any]:
    if found.usage is None:
        return {}
    asked, written, cached, *_ = found.usage
    parts = {"cachedContentTokenCount": cached} if cached else {}
    counts = {"promptTokenCount": asked, "candidatesTokenCount": written, "totalTokenCount": asked + written}
    return {"usageMetadata": {**counts, **parts}}
