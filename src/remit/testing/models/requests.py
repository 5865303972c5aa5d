"""The requests to a scripted model, read from a body in one of three dialects."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, cast

from remit.testing.models.http import BadHttp, Incoming

Dialect: TypeAlias = Literal["chat", "responses", "messages"]
JsonObject: TypeAlias = Mapping[str, Any]

PATHS: Final[dict[str, Dialect]] = {
    "/v1/chat/completions": "chat",
    "/v1/responses": "responses",
    "/v1/messages": "messages",
}
_LIST: Final[dict[Dialect, str]] = {"chat": "messages", "responses": "input", "messages": "messages"}
_LIMIT: Final[dict[Dialect, tuple[str, ...]]] = {
    "chat": ("max_completion_tokens", "max_tokens"),
    "responses": ("max_output_tokens",),
    "messages": ("max_tokens",),
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
        return _text(last.get("content", last.get("output", "")))


def read(incoming: Incoming) -> ModelRequest:
    """Return the request. Raise `BadHttp` with the error, as a provider would."""
    dialect = PATHS[incoming.path]
    body = _object(incoming.body)
    model = body.get("model")
    if not isinstance(model, str) or not model:
        raise BadHttp(400, "the request names no model; give 'model' as text")
    stream = body.get("stream") or False
    if not isinstance(stream, bool):
        raise BadHttp(400, "'stream' is true or false")
    limit = next((body[name] for name in _LIMIT[dialect] if body.get(name) is not None), None)
    if (limit is None and dialect == "messages") or (limit is not None and not _is_count(limit)):
        raise BadHttp(400, f"'{_LIMIT[dialect][0]}' is a whole number of at least 1")
    return ModelRequest(
        path=incoming.path,
        dialect=dialect,
        model=model,
        key=_key(incoming.headers),
        messages=_messages(body.get(_LIST[dialect]), _LIST[dialect]),
        tools=tuple(_tool(tool) for tool in body.get("tools") or ()),
        max_tokens=limit,
        stream=stream,
        body=body,
    )


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


def _tool(tool: object) -> str:
    found = cast("dict[str, Any]", tool) if isinstance(tool, dict) else {}
    name = found.get("name") or cast("dict[str, Any]", found.get("function") or {}).get("name")
    return name if isinstance(name, str) else str(found.get("type", ""))


def _key(headers: Mapping[str, str]) -> str:
    return headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ")


def _is_count(limit: object) -> bool:
    return isinstance(limit, int) and not isinstance(limit, bool) and limit >= 1


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    parts = cast("list[object]", content) if isinstance(content, list) else []
    objects = [cast("dict[str, object]", part) for part in parts if isinstance(part, dict)]
    return "".join(_text(part.get("text", part.get("content", ""))) for part in objects)
