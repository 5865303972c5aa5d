"""A reply on the wire, in one of four dialects: the parts that are sent, how slowly, and how they end."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Final, NamedTuple, cast

from remit.testing.models.answers import (
    ScriptedAnswer,
    ScriptedCall,
    ServerEvent,
    TokenCounts,
    answer,
    deltas,
    stream_event,
)
from remit.testing.models.gemini import TOO_LONG, gemini_error, gemini_events, gemini_whole
from remit.testing.models.http import LAST_CHUNK, chunk, head
from remit.testing.models.replies import (
    Calls,
    Cut,
    Empty,
    Fails,
    Garbage,
    ModelReply,
    Overflow,
    Reset,
    Says,
    Slow,
)
from remit.testing.models.requests import Dialect, ModelRequest

# -- POST /v1/chat/completions -------------------------------------------------------------------------------


def chat_whole(found: ScriptedAnswer) -> dict[str, Any]:
    """Return an answer as one object."""
    message: dict[str, Any] = {"role": "assistant", "content": found.text or None, "refusal": None}
    if found.calls:
        message["tool_calls"] = [_chat_call(call) for call in found.calls]
    elif not found.text:
        message["content"] = ""
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _chat_finish(found)}
    usage = _chat_usage(found)
    told = {} if usage is None else {"usage": usage}
    return {**_chat_envelope(found, "chat.completion"), "choices": [choice], **told}


def chat_events(found: ScriptedAnswer, request: ModelRequest) -> Iterator[ServerEvent]:
    """Yield an answer as a stream. Usage comes at the end, and only if the client asks for it."""
    options: Any = request.body.get("stream_options")
    asked = isinstance(options, dict) and bool(cast("dict[str, Any]", options).get("include_usage"))

    def event(choices: list[Any], usage: Mapping[str, Any] | None = None) -> ServerEvent:
        told = {"usage": usage} if asked else {}
        return "", json.dumps({**_chat_envelope(found, "chat.completion.chunk"), "choices": choices, **told})

    for delta in _chat_deltas(found):
        yield event([{"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}])
    yield event([{"index": 0, "delta": {}, "logprobs": None, "finish_reason": _chat_finish(found)}])
    usage = _chat_usage(found)
    if asked and usage is not None:
        yield event([], usage)
    yield "", "[DONE]"


def _chat_deltas(found: ScriptedAnswer) -> Iterator[dict[str, Any]]:
    yield {"role": "assistant", "content": ""}
    for part in deltas(found.text):
        yield {"content": part}
    for index, call in enumerate(found.calls):
        yield {"tool_calls": [{"index": index, **_chat_call(call._replace(arguments=""))}]}
        for part in deltas(call.arguments):
            yield {"tool_calls": [{"index": index, "function": {"arguments": part}}]}


def _chat_call(call: ScriptedCall) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.full_name, "arguments": call.arguments}}


def _chat_envelope(found: ScriptedAnswer, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{found.number}", "object": kind, "created": found.created, "model": found.model}


def _chat_finish(found: ScriptedAnswer) -> str:
    return "length" if found.limited else "tool_calls" if found.calls else "stop"


def _chat_usage(found: ScriptedAnswer) -> dict[str, Any] | None:
    if found.usage is None:
        return None
    asked, written, *_ = found.usage
    parts = {"prompt_tokens_details": _cached_parts(found.usage)} if any(found.usage[2:]) else {}
    return {"prompt_tokens": asked, "completion_tokens": written, "total_tokens": asked + written, **parts}


def _cached_parts(usage: TokenCounts) -> dict[str, int]:
    _asked, _written, cached, stored, _ = usage
    return {"cached_tokens": cached, **({"cache_write_tokens": stored} if stored else {})}


# -- POST /v1/responses --------------------------------------------------------------------------------------


def responses_whole(found: ScriptedAnswer) -> dict[str, Any]:
    """Return an answer as one object."""
    usage = _responses_usage(found)
    told: dict[str, Any] = {} if usage is None else {"usage": usage}
    if found.limited:
        told["incomplete_details"] = {"reason": "max_output_tokens"}
    return {**_responses_envelope(found, _responses_status(found)), "output": list(_responses_items(found)), **told}


def responses_events(found: ScriptedAnswer) -> Iterator[ServerEvent]:
    """Yield an answer as a stream of numbered events."""
    numbers = count()
    for event in _responses_events(found):
        yield stream_event({"type": event.pop("type"), "sequence_number": next(numbers), **event})


def _responses_events(found: ScriptedAnswer) -> Iterator[dict[str, Any]]:
    begun: dict[str, Any] = {**_responses_envelope(found, "in_progress"), "output": []}
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for index, item in enumerate(_responses_items(found)):
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
    yield {"type": f"response.{_responses_status(found)}", "response": responses_whole(found)}


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


def _responses_items(found: ScriptedAnswer) -> Iterator[dict[str, Any]]:
    if found.text:
        part: dict[str, Any] = {"type": "output_text", "text": found.text, "annotations": [], "logprobs": []}
        told = {"type": "message", "role": "assistant", "status": "completed", "content": [part]}
        yield {"id": f"msg_{found.number}", **told}
    for at, call in enumerate(found.calls):
        yield _responses_call(call, f"fc_{found.number}_{at}")


def _responses_call(call: ScriptedCall, name: str) -> dict[str, Any]:
    told = {"call_id": call.id, "name": call.name, "arguments": call.arguments}
    where = {"namespace": call.namespace} if call.namespace else {}
    return {"id": name, "type": "function_call", "status": "completed", **where, **told}


def _responses_status(found: ScriptedAnswer) -> str:
    return "incomplete" if found.limited else "completed"


def _responses_envelope(found: ScriptedAnswer, status: str) -> dict[str, Any]:
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


def _responses_usage(found: ScriptedAnswer) -> dict[str, Any] | None:
    if found.usage is None:
        return None
    asked, written, *_ = found.usage
    return {
        "input_tokens": asked,
        "input_tokens_details": _cached_parts(found.usage),
        "output_tokens": written,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": asked + written,
    }


# -- POST /v1/messages ---------------------------------------------------------------------------------------


def messages_whole(found: ScriptedAnswer) -> dict[str, Any]:
    """Return an answer as one object."""
    content: list[dict[str, Any]] = [{"type": "text", "text": found.text}] if found.text else []
    content += [{**_messages_call(call), "input": _messages_input(call.arguments)} for call in found.calls]
    told = {} if found.usage is None else {"usage": _messages_usage(found.usage)}
    return {**_messages_envelope(found), "content": content, "stop_reason": _messages_stop(found), **told}


def messages_events(found: ScriptedAnswer) -> Iterator[ServerEvent]:
    """Yield an answer as a stream of events."""
    begun = {} if found.usage is None else {"usage": _messages_usage(found.usage._replace(written=1))}
    message: dict[str, Any] = {**_messages_envelope(found), "content": [], "stop_reason": None, **begun}
    yield stream_event({"type": "message_start", "message": message})
    yield stream_event({"type": "ping"})
    for index, (block, parts) in enumerate(_messages_blocks(found)):
        yield stream_event({"type": "content_block_start", "index": index, "content_block": block})
        for delta in parts:
            yield stream_event({"type": "content_block_delta", "index": index, "delta": delta})
        yield stream_event({"type": "content_block_stop", "index": index})
    told = {} if found.usage is None else {"usage": {"output_tokens": found.usage.written}}
    yield stream_event(
        {"type": "message_delta", "delta": {"stop_reason": _messages_stop(found), "stop_sequence": None}, **told}
    )
    yield stream_event({"type": "message_stop"})


def _messages_blocks(found: ScriptedAnswer) -> Iterator[tuple[dict[str, Any], list[dict[str, str]]]]:
    if found.text:
        yield {"type": "text", "text": ""}, [{"type": "text_delta", "text": part} for part in deltas(found.text)]
    for call in found.calls:
        parts = [{"type": "input_json_delta", "partial_json": part} for part in deltas(call.arguments)]
        yield {**_messages_call(call), "input": {}}, parts


def _messages_call(call: ScriptedCall) -> dict[str, Any]:
    return {"type": "tool_use", "id": call.id, "name": call.full_name}


def _messages_input(arguments: str) -> Any:
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments  # invalid JSON, if the script wants that


def _messages_envelope(found: ScriptedAnswer) -> dict[str, Any]:
    told = {"role": "assistant", "model": found.model, "stop_sequence": None}
    return {"id": f"msg_{found.number}", "type": "message", **told}


def _messages_stop(found: ScriptedAnswer) -> str:
    return "max_tokens" if found.limited else "tool_use" if found.calls else "end_turn"


def _messages_usage(usage: TokenCounts) -> dict[str, Any]:
    """Return the usage; here the input is without its cached parts."""
    asked, written, cached, stored, hour = usage
    parts: dict[str, Any] = {}
    if cached or stored:
        parts = {"cache_read_input_tokens": cached, "cache_creation_input_tokens": stored}
    if stored:
        ages = {"ephemeral_5m_input_tokens": stored - hour, "ephemeral_1h_input_tokens": hour}
        parts["cache_creation"] = ages
    return {"input_tokens": asked - cached - stored, "output_tokens": written, **parts}


# -- errors of providers -------------------------------------------------------------------------------------


class _Told(NamedTuple):
    code: str | None
    type: str


_OPENAI: Final = {
    400: _Told(None, "invalid_request_error"),
    401: _Told("invalid_api_key", "invalid_request_error"),
    402: _Told("insufficient_quota", "insufficient_quota"),
    404: _Told("model_not_found", "invalid_request_error"),
    422: _Told(None, "invalid_request_error"),
    429: _Told("rate_limit_exceeded", "requests"),
}
_SERVER: Final = _Told(None, "server_error")
_ANTHROPIC: Final = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    422: "invalid_request_error",
    429: "rate_limit_error",
    529: "overloaded_error",
}
_TOO_LONG: Final = {
    "chat": "This model's maximum context length is 8192 tokens, and the messages have more.",
    "responses": "Your input exceeds the context window of this model.",
    "messages": "prompt is too long: 200001 tokens > 200000 maximum",
    "gemini": TOO_LONG,
}


def error(dialect: Dialect, status: int, code: str = "", message: str = "") -> dict[str, Any]:
    """Return the body of an error. Without a code it has the provider's usual one for that status."""
    message = message or f"the script answers with status {status}"
    if dialect == "gemini":
        return gemini_error(status, code, message)
    if dialect == "messages":
        kind = code or _ANTHROPIC.get(status, "api_error")
        return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}
    usual = _OPENAI.get(status, _SERVER)
    return {
        "error": {"message": message, "type": code or usual.type, "param": None, "code": code or usual.code},
    }


def too_long(dialect: Dialect) -> dict[str, Any]:
    """Return the body of the error for a context that is too long; two providers have no code for it."""
    code = "" if dialect in ("messages", "gemini") else "context_length_exceeded"
    found = error(dialect, 400, code, _TOO_LONG[dialect])
    if code:
        found["error"]["type"] = "invalid_request_error"
    return found


# -- replies on the wire -------------------------------------------------------------------------------------


_PIECES: Final = 8  # that the body of a plain answer is sent in


@dataclass(frozen=True, slots=True)
class Spelled:
    """A reply on the wire. `parts` are sent over `seconds`, after the head. If `whole` is false, the connection is
    closed after half of them; without a head it is reset."""

    head: bytes = b""
    parts: tuple[bytes, ...] = ()
    seconds: float = 0.0
    whole: bool = True

    @property
    def sent(self) -> tuple[bytes, ...]:
        """The parts that are sent."""
        if self.whole:
            return self.parts
        body = b"".join(self.parts)
        return tuple(_pieces(body[: len(body) // 2], len(self.parts)))


def in_dialect(reply: ModelReply, request: ModelRequest, number: int, created: int) -> Spelled:
    """Return a reply in the dialect of the request."""
    match reply:
        case Slow():
            inner = in_dialect(reply.reply, request, number, created)
            return replace(inner, seconds=inner.seconds + reply.seconds)
        case Cut():
            return replace(in_dialect(reply.reply, request, number, created), whole=False)
        case Says() | Calls() | Empty():
            return _answered(answer(reply, request, number, created), request)
        case Reset():
            return Spelled()
        case _:
            assert isinstance(reply, Fails | Overflow | Garbage)
            return _unanswered(reply, request)


def _answered(found: ScriptedAnswer, request: ModelRequest) -> Spelled:
    match request.dialect:
        case "chat":
            return _stream(chat_events(found, request)) if request.stream else plain(200, chat_whole(found))
        case "responses":
            return _stream(responses_events(found)) if request.stream else plain(200, responses_whole(found))
        case "gemini":
            return _stream(gemini_events(found)) if request.stream else plain(200, gemini_whole(found))
        case _:
            return _stream(messages_events(found)) if request.stream else plain(200, messages_whole(found))


def _unanswered(reply: Fails | Overflow | Garbage, request: ModelRequest) -> Spelled:
    match reply:
        case Fails():
            return _failed(reply, request.dialect)
        case Overflow():
            return plain(400, too_long(request.dialect))
        case _:
            if request.stream and not reply.content_type:
                return _stream([("", reply.text)])
            kind = {"content-type": reply.content_type} if reply.content_type else {}
            return _body(200, reply.text.encode(), kind)


def _failed(reply: Fails, dialect: Dialect) -> Spelled:
    headers: dict[str, str] = {}
    if reply.retry_after is not None:
        exact = float(reply.retry_after).is_integer()
        name, times = ("retry-after", 1) if exact else ("retry-after-ms", 1_000)
        headers[name] = str(round(reply.retry_after * times))
    return plain(reply.status, error(dialect, reply.status, reply.code, reply.message), headers)


def plain(status: int, said: dict[str, Any], headers: dict[str, str] | None = None) -> Spelled:
    """Return a response that is one object."""
    return _body(status, json.dumps(said).encode(), headers or {})


def _body(status: int, body: bytes, headers: dict[str, str]) -> Spelled:
    told = {"content-type": "application/json", "content-length": str(len(body)), **headers}
    return Spelled(head(status, told), tuple(_pieces(body, _PIECES)))


def _stream(events: Iterable[ServerEvent]) -> Spelled:
    return Spelled(STREAM_HEAD, (*(streamed(event) for event in events), LAST_CHUNK))


STREAM_HEAD: Final = head(
    200, {"content-type": "text/event-stream", "cache-control": "no-cache", "transfer-encoding": "chunked"}
)


def streamed(event: ServerEvent) -> bytes:
    """Return one event of a stream as bytes."""
    name, data = event
    return chunk(f"event: {name}\ndata: {data}\n\n".removeprefix("event: \n").encode())


def _pieces(body: bytes, most: int) -> Iterator[bytes]:
    size = max(1, -(-len(body) // max(1, most)))
    return (body[at : at + size] for at in range(0, len(body), size))
