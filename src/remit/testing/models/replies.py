"""The replies of a scripted model: small values, from an answer to a broken connection. A conversation with a real
model can be converted to such replies; headers are never read, so they contain no key."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Any, Final, Literal, NamedTuple, TypeAlias, cast

from remit.core.prices import Usage
from remit.testing.models.requests import JsonObject

UsageGiven: TypeAlias = Literal["right", "missing", "negative"] | tuple[int, int] | Usage
RIGHT: Final = "right"


@dataclass(frozen=True, slots=True)
class ModelReply:
    """A reply of a scripted model: one of the kinds below. A list of different kinds is a `list[ModelReply]`."""


@dataclass(frozen=True, slots=True)
class Says(ModelReply):
    """An answer in words. `usage` is counted from the request and the answer, unless it is set to missing, negative,
    these tokens of input and output, or a `Usage(...)` with cached parts. `limited` says that the answer stopped at the
    limit of output tokens."""

    text: str
    usage: UsageGiven = RIGHT
    limited: bool = False


@dataclass(frozen=True, slots=True)
class Calls(ModelReply):
    """An answer that calls a tool, and those in `also`. Arguments that are text are sent as they are, so they need not
    be JSON. Without an `id` a call is named by the number of its request: `call_1`, and `call_1_1` for the next in the
    same answer. `text` comes before the calls. `namespace` is the server of an MCP tool, such as `mcp__remit`:
    responses have a field for it, and in the other formats the tool's name begins with it: `mcp__remit__call_agent`."""

    name: str
    arguments: Mapping[str, Any] | str
    also: Sequence["Calls"] = ()
    id: str = ""
    text: str = ""
    usage: UsageGiven = RIGHT
    namespace: str = ""
    limited: bool = False


@dataclass(frozen=True, slots=True)
class Fails(ModelReply):
    """An HTTP error, such as `Fails(429, retry_after=7)` or `Fails(429, code="insufficient_quota")`. `retry_after` is
    in seconds; fractions are sent in `retry-after-ms`."""

    status: int
    code: str = ""
    message: str = ""
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class Overflow(ModelReply):
    """The provider's error for a context that is too long."""


@dataclass(frozen=True, slots=True)
class Empty(ModelReply):
    """A valid answer without content."""

    usage: UsageGiven = RIGHT
    limited: bool = False


@dataclass(frozen=True, slots=True)
class Garbage(ModelReply):
    """A response with status 200 that is not JSON. It has the content type that the client expects, unless
    `content_type` is set."""

    text: str = "<html>bad gateway</html>"
    content_type: str = ""


@dataclass(frozen=True, slots=True)
class Reset(ModelReply):
    """No response: the connection is reset after the request has been read."""


@dataclass(frozen=True, slots=True)
class Slow(ModelReply):
    """A reply that is sent slowly, over so many seconds."""

    reply: ModelReply
    seconds: float


@dataclass(frozen=True, slots=True)
class Cut(ModelReply):
    """A reply of which half is sent before the connection is closed."""

    reply: ModelReply


KINDS: Final = (Says, Calls, Fails, Overflow, Empty, Garbage, Reset, Slow, Cut)


# -- a recorded conversation as replies ----------------------------------------------------------------------


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
    counted = {"Usage" for reply in replies if isinstance(getattr(reply, "usage", None), Usage)}
    names = ", ".join(sorted({type(reply).__name__ for reply in replies} | counted))
    lines = [f"    {_constructor_text(reply)}," for reply in replies]
    return "\n".join((f"from remit.testing.models import {names}", "", "SCRIPT = [", *lines, "]", ""))


def _reply(exchange: Exchange) -> ModelReply:
    if exchange.status != 200 or "error" in exchange.response:
        return _failure(exchange)
    choice = cast("Mapping[str, Any]", exchange.response["choices"][0])
    message, limited = cast("Mapping[str, Any]", choice["message"]), choice.get("finish_reason") == "length"
    text, usage = message.get("content") or "", _usage(exchange.response.get("usage"))
    calls = [_call(call) for call in message.get("tool_calls") or ()]
    if calls:
        first, *rest = calls
        return Calls(first.name, first.arguments, tuple(rest), first.id, text, usage, limited=limited)
    return Says(text, usage, limited) if text else Empty(usage, limited)


def _failure(exchange: Exchange) -> Fails:
    if exchange.status < 400:
        raise ValueError("a recorded failure needs its status: Exchange(request, response, 429)")
    error = cast("Mapping[str, Any]", exchange.response.get("error") or {})
    return Fails(exchange.status, error.get("code") or "", error.get("message") or "")


def _call(call: Mapping[str, Any]) -> Calls:
    return Calls(call["function"]["name"], call["function"]["arguments"], id=call["id"])


def _usage(given: Mapping[str, Any] | None) -> UsageGiven:
    if given is None:
        return "missing"
    parts = cast("Mapping[str, int]", given.get("prompt_tokens_details") or {})
    cached = parts.get("cached_tokens") or 0
    read, written = given["prompt_tokens"], given["completion_tokens"]
    return Usage(read, written, cached) if cached else (read, written)


def _constructor_text(reply: ModelReply) -> str:
    given: list[str] = []
    for field in fields(reply):
        value = getattr(reply, field.name)
        if field.default is MISSING:
            given.append(repr(value))
        elif field.name == "also" and value:
            given.append(f"also=[{', '.join(map(_constructor_text, value))}]")
        elif value != field.default:
            given.append(f"{field.name}={value!r}")
    return f"{type(reply).__name__}({', '.join(given)})"
