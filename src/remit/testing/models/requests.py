"""The requests to a scripted model, read from a body in one of four dialects, and the checks of strict providers:
calls without results, results without calls, and unknown fields and ids. A client that sends such a request works with
one provider and fails with the next."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, cast

from remit.testing.models.http import BadHttp, Incoming

Dialect: TypeAlias = Literal["chat", "responses", "messages", "gemini"]
JsonObject: TypeAlias = Mapping[str, Any]

PATHS: Final[dict[str, Dialect]] = {
    "/v1/chat/completions": "chat",
    "/v1/responses": "responses",
    "/v1/messages": "messages",
}
# Google's paths name the model, and whether the answer is streamed.
_GEMINI: Final = re.compile(r"/(?:v1|v1beta)/models/([^/:]+):(generateContent|streamGenerateContent)")
ALL_PATHS: Final = f"{', '.join(PATHS)}, /v1beta/models/MODEL:generateContent"
COUNT_PATH: Final = "/v1/messages/count_tokens"
_LIST: Final[dict[Dialect, str]] = {
    "chat": "messages",
    "responses": "input",
    "messages": "messages",
    "gemini": "contents",
}
_LIMIT: Final[dict[Dialect, tuple[str, ...]]] = {
    "chat": ("max_completion_tokens", "max_tokens"),
    "responses": ("max_output_tokens",),
    "messages": ("max_tokens",),
    "gemini": ("maxOutputTokens",),
}


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """A request as received. `key` is the client's key, `tools` the names of the offered tools, and `body` has the
    rest."""

    path: str
    dialect: Dialect
    model: str
    key: str
    messages: tuple[JsonObject, ...]
    tools: tuple[str, ...]
    max_tokens: int | None
    stream: bool
    body: JsonObject

    @property
    def text(self) -> str:
        """The text of the last message, or the result of the last tool."""
        last = self.messages[-1]
        return _text(last.get("content", last.get("parts", last.get("output", ""))))


def dialect_at(path: str) -> Dialect | None:
    """Return the dialect of requests to this path, or None if no model is there."""
    return PATHS.get(path) or ("gemini" if _GEMINI.fullmatch(path) else None)


def read(incoming: Incoming) -> ModelRequest:
    """Return the request. Raise `BadHttp` with the error, as a provider would."""
    dialect = dialect_at(incoming.path)
    assert dialect is not None
    body = _object(incoming.body)
    model, stream = _model_and_stream(incoming.path, body)
    if not isinstance(model, str) or not model:
        raise BadHttp(400, "the request names no model; give 'model' as text")
    if not isinstance(stream, bool):
        raise BadHttp(400, "'stream' is true or false")
    limits = cast("JsonObject", body.get("generationConfig") or {}) if dialect == "gemini" else body
    limit = next((limits[name] for name in _LIMIT[dialect] if limits.get(name) is not None), None)
    if (limit is None and dialect == "messages") or (limit is not None and not _is_count(limit)):
        raise BadHttp(400, f"'{_LIMIT[dialect][0]}' is a whole number of at least 1")
    return ModelRequest(
        path=incoming.path,
        dialect=dialect,
        model=model,
        key=_key(incoming.headers),
        messages=_messages(body.get(_LIST[dialect]), _LIST[dialect]),
        tools=tuple(name for tool in body.get("tools") or () for name in _tools(tool)),
        max_tokens=limit,
        stream=stream,
        body=body,
    )


def _model_and_stream(path: str, body: JsonObject) -> tuple[object, object]:
    """Return the model and the wish for a stream, from the path or from the body."""
    found = _GEMINI.fullmatch(path)
    if found is not None:
        return found[1], found[2] == "streamGenerateContent"
    return body.get("model"), body.get("stream") or False


def read_messages(incoming: Incoming) -> tuple[JsonObject, ...]:
    """Return the messages of a request that only has its tokens counted. Raise `BadHttp` with the error."""
    return _messages(_object(incoming.body).get("messages"), "messages")


def _object(body: bytes) -> dict[str, Any]:
    try:
        found: object = json.loads(body)
    except (ValueError, RecursionError):
        raise BadHttp(400, "the body of the request is no JSON") from None
    if not isinstance(found, dict):
        raise BadHttp(400, "the body of the request is no JSON object")
    return cast("dict[str, Any]", found)


def _messages(given: object, name: str) -> tuple[JsonObject, ...]:
    if isinstance(given, str) and given and name == "input":
        return ({"role": "user", "content": given},)
    listed = cast("list[object]", given) if isinstance(given, list) else []
    if not listed or not all(isinstance(one, dict) for one in listed):
        raise BadHttp(400, f"the request has no messages; give '{name}' as a list of objects")
    return tuple(cast("list[JsonObject]", listed))


def _tools(tool: object) -> Iterator[str]:
    found = cast("dict[str, Any]", tool) if isinstance(tool, dict) else {}
    if found.get("type") == "namespace":
        yield from (f"{found.get('name', '')}__{_tool(inner)}" for inner in _objects(found.get("tools")))
    elif "functionDeclarations" in found:
        yield from map(_tool, _objects(found["functionDeclarations"]))
    else:
        yield _tool(found) or next(iter(found), "")


def _tool(found: Mapping[str, Any]) -> str:
    name = found.get("name") or cast("dict[str, Any]", found.get("function") or {}).get("name")
    return name if isinstance(name, str) else str(found.get("type", ""))


def _key(headers: Mapping[str, str]) -> str:
    return (
        headers.get("x-api-key")
        or headers.get("x-goog-api-key")
        or headers.get("authorization", "").removeprefix("Bearer ")
    )


def _is_count(limit: object) -> bool:
    return isinstance(limit, int) and not isinstance(limit, bool) and limit >= 1


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    parts = cast("list[object]", content) if isinstance(content, list) else []
    objects = [cast("dict[str, Any]", part) for part in parts if isinstance(part, dict)]
    return "".join(_words(part) for part in objects)


def _words(part: dict[str, Any]) -> str:
    if "functionResponse" in part:
        return json.dumps(part["functionResponse"].get("response"))
    return _text(part.get("text", part.get("content", "")))


# -- the checks of strict providers --------------------------------------------------------------------------


_ANY_ID: Final = re.compile(r"[!-~]{1,64}")
_PLAIN_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_TEXT: Final = "text type"
_USER: Final = "role content name"

# The fields of a message, an item or a block, by its kind.
_FIELDS: Final[dict[Dialect, dict[str, str]]] = {
    "chat": {
        "system": _USER,
        "developer": _USER,
        "user": _USER,
        "assistant": f"{_USER} refusal audio tool_calls function_call",
        "tool": "role content tool_call_id",
    },
    "responses": {
        "message": "type role content id status phase",
        "function_call": "type call_id name arguments id status namespace",
        "function_call_output": "type call_id output id status",
        "reasoning": "type id summary content encrypted_content status",
    },
    "messages": {
        "text": f"{_TEXT} cache_control citations",
        "image": "type source cache_control",
        "document": "type source cache_control citations context title",
        "tool_use": "type id name input cache_control caller",
        "tool_result": "type tool_use_id content is_error cache_control",
        "thinking": "type thinking signature",
        "redacted_thinking": "type data",
    },
    "gemini": {"user": "role parts", "model": "role parts", "function": "role parts"},
}
_BODY: Final[dict[Dialect, str]] = {
    "chat": "model messages audio extra_body frequency_penalty logit_bias logprobs max_completion_tokens max_tokens "
    "metadata modalities n parallel_tool_calls prediction presence_penalty prompt_cache_key prompt_cache_retention "
    "reasoning_effort response_format safety_identifier seed service_tier stop store stream stream_options temperature "
    "tool_choice tools top_logprobs top_p user verbosity web_search_options",
    "responses": "model input background context_management conversation include instructions max_output_tokens "
    "max_tool_calls metadata parallel_tool_calls previous_response_id prompt prompt_cache_key prompt_cache_retention "
    "reasoning safety_identifier service_tier store stream stream_options temperature text tool_choice tools "
    "top_logprobs top_p truncation user",
    "messages": "model messages max_tokens cache_control container context_management inference_geo mcp_servers "
    "metadata output_config output_format service_tier stop_sequences stream system temperature thinking tool_choice "
    "tools top_k top_p",
    "gemini": "contents cachedContent generationConfig labels safetySettings systemInstruction toolConfig tools",
}
_ITEM_IDS: Final = {"message": "msg", "function_call": "fc", "function_call_output": "fc", "reasoning": "rs"}


def strict_refusal(request: ModelRequest) -> str:
    """Return why a strict provider refuses a request, or "" if it does not."""
    return next(_wrong(request), "")


def _wrong(request: ModelRequest) -> Iterator[str]:
    yield from _strangers(request.body, _BODY[request.dialect], "the request")
    for name in request.tools:
        if not _PLAIN_ID.fullmatch(name):
            yield f"the name of tool {name!r} is not one of letters, digits, _ and -"
    match request.dialect:
        case "chat":
            yield from _wrong_in_chat(request.messages)
        case "responses":
            yield from _wrong_in_responses(request.messages)
        case "gemini":
            yield from _wrong_in_gemini(request.messages)
        case _:
            yield from _wrong_in_messages(request.messages)


def _wrong_in_chat(messages: Sequence[JsonObject]) -> Iterator[str]:
    """Yield violations: the results of an answer's calls must follow it directly."""
    open_: list[str] = []
    for message in messages:
        role = message.get("role")
        yield from _unknown("chat", role, message)
        if role == "tool":
            call = str(message.get("tool_call_id"))
            if call not in open_:
                yield f"a message with role 'tool' has the result of call {call!r}, which does not precede it"
            else:
                open_.remove(call)
        elif open_:
            yield f"call {open_[0]!r} has no result"
        calls = _objects(message.get("tool_calls"))
        if message.get("tool_calls") == []:
            yield "'tool_calls' is an empty list"
        if role == "assistant" and not calls and message.get("content") is None and not message.get("refusal"):
            yield "an answer in the conversation has neither words nor calls"
        open_ += [str(call.get("id")) for call in calls]
        yield from _bad_ids([call.get("id") for call in calls], _ANY_ID)
    if open_:
        yield f"call {open_[0]!r} has no result"


def _wrong_in_responses(items: Sequence[JsonObject]) -> Iterator[str]:
    """Yield violations: each call must have a result after it, and each id must have the form of its kind."""
    open_: list[str] = []
    for item in items:
        kind = item.get("type") or "message"
        yield from _unknown("responses", kind, item)
        id_ = item.get("id")
        if id_ is not None and not str(id_).startswith(f"{_ITEM_IDS.get(str(kind), '')}_"):
            yield f"the id {id_!r} is not one of a {kind}"
        if kind == "function_call":
            open_.append(str(item.get("call_id")))
            yield from _bad_ids([item.get("call_id")], _ANY_ID)
        elif kind == "function_call_output":
            call = str(item.get("call_id"))
            if call not in open_:
                yield f"there is a result of call {call!r}, and no such call before it"
            else:
                open_.remove(call)
    if open_:
        yield f"call {open_[0]!r} has no result"


def _wrong_in_messages(messages: Sequence[JsonObject]) -> Iterator[str]:
    """Yield violations: the user must speak first, and the message after an answer must begin with the results of its
    calls."""
    if messages[0].get("role") != "user":
        yield "the first message is not the user's"
    open_: list[str] = []
    for message in messages:
        yield from _strangers(message, "role content", "a message")
        content = message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else _objects(content)
        if not blocks:
            yield "a message has no content"
        results = [str(one.get("tool_use_id")) for one in blocks if one.get("type") == "tool_result"]
        if missing := [call for call in open_ if call not in results]:
            yield f"call {missing[0]!r} has no result in the next message"
        if more := [call for call in results if call not in open_]:
            yield f"there is a result of call {more[0]!r}, and no such call in the message before"
        for block in blocks:
            yield from _unknown("messages", block.get("type"), block)
            if block.get("type") == "text" and not str(block.get("text", "")).strip():
                yield "a block of text has no words"
        open_ = [str(one.get("id")) for one in blocks if one.get("type") == "tool_use"]
        yield from _bad_ids(open_, _PLAIN_ID)
    if open_:
        yield f"call {open_[0]!r} has no result"


def _wrong_in_gemini(contents: Sequence[JsonObject]) -> Iterator[str]:
    """Yield violations: the content after an answer has as many results as the answer has calls."""
    open_ = 0
    for content in contents:
        yield from _unknown("gemini", content.get("role") or "user", content)
        parts = _objects(content.get("parts"))
        if not parts:
            yield "a content has no parts"
        results = sum("functionResponse" in part for part in parts)
        if results != open_:
            yield f"the answer before has {open_} calls, and this content has {results} results"
        open_ = sum("functionCall" in part for part in parts)
    if open_:
        yield f"{open_} calls have no result"


def _unknown(dialect: Dialect, kind: object, given: JsonObject) -> Iterator[str]:
    known = _FIELDS[dialect].get(str(kind))
    if known is None:
        yield f"there are no messages of kind {kind!r}"
    else:
        yield from _strangers(given, known, f"a message of kind {kind!r}")


def _strangers(given: Mapping[str, Any], known: str, what: str) -> Iterator[str]:
    yield from (f"{what} has an unknown field {name!r}" for name in given if name not in known.split())


def _bad_ids(ids: Sequence[object], allowed: re.Pattern[str]) -> Iterator[str]:
    seen: set[object] = set()
    for one in ids:
        if not isinstance(one, str) or not allowed.fullmatch(one):
            yield f"{one!r} is no id of a call"
        elif one in seen:
            yield f"two calls have the id {one!r}"
        seen.add(one)


def _objects(given: object) -> list[dict[str, Any]]:
    listed = cast("list[object]", given) if isinstance(given, list) else []
    return [cast("dict[str, Any]", one) for one in listed if isinstance(one, dict)]
