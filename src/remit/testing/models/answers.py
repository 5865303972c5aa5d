"""The answers of a scripted model, before they are written in a dialect: text, tool calls and token counts."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from remit.core.prices import Usage
from remit.core.values import tokens_in
from remit.testing.models.replies import Calls, Empty, Says, UsageGiven
from remit.testing.models.requests import ModelRequest

PER_MESSAGE: Final = 3  # tokens around each message
_DELTAS: Final = 32  # parts that a text is streamed in, at most
_DELTA: Final = 8  # characters of one, at least

# One event of a stream: its name, if it has one there, and its data.
ServerEvent: TypeAlias = tuple[str, str]


class ScriptedCall(NamedTuple):
    """A tool call; `arguments` is JSON, or any text of the script."""

    id: str
    name: str
    arguments: str
    namespace: str = ""

    @property
    def full_name(self) -> str:
        """The name of the tool in formats without namespaces."""
        return f"{self.namespace}__{self.name}" if self.namespace else self.name


class TokenCounts(NamedTuple):
    """The token counts that a model reports. It read `asked` and wrote `written`. Of `asked`, `cached` came from a
    cache and `stored` went into a cache, `stored_1h` of them for an hour."""

    asked: int
    written: int
    cached: int = 0
    stored: int = 0
    stored_1h: int = 0


class ScriptedAnswer(NamedTuple):
    """A model's text, its tool calls, and its token count, if it reports one. `number` counts the requests of the
    server from 1; `created` is in seconds since 1970. `limited` says that the answer stopped at the limit of output
    tokens."""

    number: int
    created: int
    model: str
    text: str
    calls: Sequence[ScriptedCall]
    usage: TokenCounts | None
    limited: bool = False


def answer(reply: Says | Calls | Empty, request: ModelRequest, number: int, created: int) -> ScriptedAnswer:
    """Return the answer of a reply. Calls without an id are numbered by their answer."""
    text = reply.text if isinstance(reply, Says | Calls) else ""
    listed = [reply, *reply.also] if isinstance(reply, Calls) else []
    calls = [
        ScriptedCall(call.id or _call_id(number, at), call.name, _arguments(call.arguments), call.namespace)
        for at, call in enumerate(listed)
    ]
    written = text + "".join(call.name + call.arguments for call in calls)
    usage = _usage(reply.usage, request, written)
    return ScriptedAnswer(number, created, request.model, text, calls, usage, reply.limited)


def _call_id(number: int, at: int) -> str:
    return f"call_{number}_{at}" if at else f"call_{number}"


def _arguments(given: Mapping[str, Any] | str) -> str:
    return given if isinstance(given, str) else json.dumps(given)


def _usage(given: UsageGiven, request: ModelRequest, written: str) -> TokenCounts | None:
    if isinstance(given, Usage):
        parts = (given.cached_input, given.cache_written, given.cache_written_1h)
        return TokenCounts(given.input, given.output, *parts)
    match given:
        case "missing":
            return None
        case "negative":
            return TokenCounts(-5, -5)
        case "right":
            return TokenCounts(asked_tokens(request.messages), tokens_in(written))
        case _:
            return TokenCounts(*given)


def asked_tokens(messages: Iterable[Mapping[str, Any]]) -> int:
    """Return the tokens of a conversation, as the scripted model counts them."""
    return sum(tokens_in(json.dumps(message)) + PER_MESSAGE for message in messages)


def deltas(text: str) -> list[str]:
    """Return the text in the pieces that are streamed."""
    size = max(_DELTA, -(-len(text) // _DELTAS))
    return [text[at : at + size] for at in range(0, len(text), size)]


def stream_event(event: Mapping[str, Any]) -> ServerEvent:
    """Return a stream event, named by its type."""
    return event["type"], json.dumps(event)
