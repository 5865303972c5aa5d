"""A conversation with a real model, converted to a script. Headers are never read, so the script contains no key."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any, NamedTuple, cast

from remit.testing.models.replies import Calls, Empty, Fails, ModelReply, Says, UsageGiven
from remit.testing.models.requests import JsonObject


class Exchange(NamedTuple):
    """The bodies of a request to `/v1/chat/completions` and of its response, as JSON, and the status."""

    request: JsonObject
    response: JsonObject
    status: int = 200


def recorded(exchanges: Iterable[tuple[JsonObject, JsonObject] | Exchange]) -> list[ModelReply]:
    """Return the script that replies as the model did. Plain pairs of request and response are enough unless one
    failed."""
    return [_reply(one if isinstance(one, Exchange) else Exchange(*one)) for one in exchanges]


def source(replies: Sequence[ModelReply]) -> str:
    """Return a script as a Python module, to be stored next to a test."""
    names = ", ".join(sorted({type(reply).__name__ for reply in replies}))
    lines = [f"    {_spelled(reply)}," for reply in replies]
    return "\n".join((f"from remit.testing.models import {names}", "", "SCRIPT = [", *lines, "]", ""))


def _reply(exchange: Exchange) -> ModelReply:
    if exchange.status != 200 or "error" in exchange.response:
        return _failure(exchange)
    message = cast("Mapping[str, Any]", exchange.response["choices"][0]["message"])
    text, usage = message.get("content") or "", _usage(exchange.response.get("usage"))
    calls = [_call(call) for call in message.get("tool_calls") or ()]
    if calls:
        first, *rest = calls
        return Calls(first.name, first.arguments, tuple(rest), first.id, text, usage)
    return Says(text, usage) if text else Empty(usage)


def _failure(exchange: Exchange) -> Fails:
    if exchange.status < 400:
        raise ValueError("a recorded failure needs its status: Exchange(request, response, 429)")
    error = cast("Mapping[str, Any]", exchange.response.get("error") or {})
    return Fails(exchange.status, error.get("code") or "", error.get("message") or "")


def _call(call: Mapping[str, Any]) -> Calls:
    return Calls(call["function"]["name"], call["function"]["arguments"], id=call["id"])


def _usage(given: Mapping[str, int] | None) -> UsageGiven:
    return "missing" if given is None else (given["prompt_tokens"], given["completion_tokens"])


def _spelled(reply: ModelReply) -> str:
    given: list[str] = []
    for field in fields(reply):
        value = getattr(reply, field.name)
        if field.default is MISSING:
            given.append(repr(value))
        elif field.name == "also" and value:
            given.append(f"also=[{', '.join(map(_spelled, value))}]")
        elif value != field.default:
            given.append(f"{field.name}={value!r}")
    return f"{type(reply).__name__}({', '.join(given)})"
