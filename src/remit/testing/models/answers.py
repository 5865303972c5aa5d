"""An answer of a model before it is written in a dialect, and shared code of all dialects."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

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


class ScriptedAnswer(NamedTuple):
    """A model's text, its tool calls, and its token count, if it reports one."""

    number: int
    created: int
    model: str
    text: str
    calls: Sequence[ScriptedCall]
    usage: tuple[int, int] | None


def answer(reply: Says | Calls | Empty, request: ModelRequest, number: int, created: int) -> ScriptedAnswer:
    """Return the answer of a reply. Calls without an id are numbered by their answer."""
    text = reply.text if isinstance(reply, Says | Calls) else ""
    listed = [reply, *reply.also] if isinstance(reply, Calls) else []
    calls = [
        ScriptedCall(call.id or f"call_{number}" + (f"_{at}" if at else ""), call.name, _arguments(call.arguments))
        for at, call in enumerate(listed)
    ]
    written = text + "".join(call.name + call.arguments for call in calls)
    return ScriptedAnswer(number, created, request.model, text, calls, _usage(reply.usage, request, written))


def _arguments(given: Mapping[str, Any] | str) -> str:
    return given if isinstance(given, str) else json.dumps(given)


def _usage(given: UsageGiven, request: ModelRequest, written: str) -> tuple[int, int] | None:
    if given == "missing":
        return None
    if given == "negative":
        return -5, -5
    if given == "right":
        asked = sum(tokens_in(json.dumps(message)) + PER_MESSAGE for message in request.messages)
        return asked, tokens_in(written)
    return given


def deltas(text: str) -> list[str]:
    """Return the text in the pieces that are streamed."""
    size = max(_DELTA, -(-len(text) // _DELTAS))
    return [text[at : at + size] for at in range(0, len(text), size)]


def named(event: Mapping[str, Any]) -> ServerEvent:
    """Return a stream event, named by its type."""
    return event["type"], json.dumps(event)
