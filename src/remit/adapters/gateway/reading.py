"""Reading a model's answer while its bytes pass through: its text, its tool calls and its usage, in any of the formats.

A program acts on a tool call when it has read the call, so the bytes of a finished call are held back until the answer
is on record. The same holds for the end of the answer: the next request must find this one paid.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple, cast

from remit.core.prices import Usage
from remit.core.values import INT_LIMIT, Json, decode, encode

MOST_EVENT: Final = 16 * 2**20  # bytes of one event, and of an answer that is not streamed
MOST_HOSTED: Final = 1_000  # tools that a provider ran for one answer
KEPT_RESULT: Final = 2_000  # characters of a tool result in the prompt of a later attempt
RESULT: Final = "function_call_output"  # the type of a recorded tool result
MOST_KEPT: Final = 4 * 2**20  # characters of text and arguments that are recorded

_BLANK: Final = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_LINE: Final = re.compile(rb"\r\n|\n|\r")


class AnswerTooLarge(ValueError):
    """An answer exceeds the limits of the gateway."""


class MadeCall(NamedTuple):
    """A tool call in an answer; `arguments` is JSON text, as the model wrote it."""

    id: str
    name: str
    arguments: str


class AnswerRead:
    """The part of an answer that has been read so far. `ended` is true if the answer is complete. `failed` is the
    provider's error, if it sent one instead."""

    def __init__(self) -> None:
        self.model = ""
        self.usage: Usage | None = None
        self.read = 0  # tokens of input that the provider has reported so far
        self.ended = False
        self.failed = ""
        self.hosted: list[str] = []  # the tools that the provider ran for this answer
        self._text: list[str] = []
        self._calls: dict[object, MadeCall] = {}
        self._size = 0
        self._told = 0  # pieces of text that `fresh` has returned

    @property
    def text(self) -> str:
        return "".join(self._text)

    @property
    def calls(self) -> tuple[MadeCall, ...]:
        return tuple(self._calls.values())

    @property
    def size(self) -> int:
        """The characters that the model has written so far."""
        return self._size

    def fresh(self) -> str:
        """Return the text that has come since the last call."""
        told, self._told = self._told, len(self._text)
        return "".join(self._text[told:])

    def say(self, text: object) -> None:
        """Add a piece of text; anything else is no text."""
        if isinstance(text, str):
            self._grow(len(text))
            self._text.append(text)

    def call(self, place: object, *, id_: object = None, name: object = None, arguments: object = None) -> None:
        """Add to the tool call at a place of the answer: its id, its name, or a piece of its arguments."""
        before = self._calls.get(place, MadeCall("", "", ""))
        more = arguments if isinstance(arguments, str) else ""
        self._grow(len(more))
        self._calls[place] = MadeCall(
            id_ if isinstance(id_, str) and id_ else before.id,
            name if isinstance(name, str) and name else before.name,
            before.arguments + more,
        )

    def set_call(self, place: object, id_: object, name: object, arguments: object) -> None:
        """Set the whole tool call at a place of the answer."""
        self._calls.pop(place, None)
        self.call(place, id_=id_, name=name, arguments=arguments)

    def use_hosted(self, name: object) -> None:
        """Record the use of a tool that the provider ran."""
        if isinstance(name, str) and len(self.hosted) < MOST_HOSTED:
            self.hosted.append(name)

    def items(self) -> list[Json]:
        """Return the answer as it is recorded: tools that the provider ran, its text, then its tool calls."""
        used: list[Json] = [{"type": "hosted_tool_call", "name": name, "arguments": ""} for name in self.hosted]
        said: list[Json] = [{"type": "message", "role": "assistant", "content": self.text}] if self.text else []
        return (
            used
            + said
            + [
                {"type": "function_call", "name": one.name, "arguments": one.arguments, "call_id": one.id}
                for one in self.calls
            ]
        )

    def _grow(self, by: int) -> None:
        self._size += by
        if self._size > MOST_KEPT:
            raise AnswerTooLarge(f"the model's answer has more than {MOST_KEPT:,} characters")


def recorded(items: list[Json]) -> str:
    """Return the record of a request or an answer, as text that every store can hold."""
    return encode(items).encode(errors="replace").decode()


def without_id(item: Json) -> Json:
    """Return a part of a request or an answer without the id of its tool call, which differs each time."""
    return {name: value for name, value in fields(item).items() if name != "call_id"}


def json_text(value: object) -> str:
    """Return the JSON text of a value that was read from JSON. NaN and Infinity, which Python reads, are written
    too."""
    return json.dumps(value, ensure_ascii=False)


def fields(value: object) -> dict[str, Any]:
    """Return a JSON object, or an empty one in place of any other value: what a provider sends is not trusted."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def items_of(value: object) -> list[Any]:
    """Return a JSON list, or an empty one in place of any other value."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def count(value: object) -> int:
    """Return a number of tokens; 0 for anything that cannot be one."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= INT_LIMIT else 0


def are_counted(usage: Mapping[str, Any], *names: str) -> bool:
    """Whether `usage` has a valid number of tokens under each of these names."""
    return all(isinstance(usage.get(name), int) and count(usage[name]) == usage[name] for name in names)


class EventSplitter:
    """Splits the bytes of a stream into its events, wherever the pieces are cut."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[tuple[bytes, str]]:
        """Yield each complete event: its bytes, and its data."""
        self._rest += data
        while found := _BLANK.search(self._rest):
            event, self._rest = self._rest[: found.end()], self._rest[found.end() :]
            yield event, _data(event)
        if len(self._rest) > MOST_EVENT:
            raise AnswerTooLarge(f"the model's answer has an event of more than {MOST_EVENT:,} bytes")

    def rest(self) -> bytes:
        """Return the bytes after the last complete event, and clear them."""
        rest, self._rest = self._rest, b""
        return rest


def _data(event: bytes) -> str:
    lines = [line for line in _LINE.split(event) if line.startswith(b"data:")]
    return "\n".join(line[5:].removeprefix(b" ").decode(errors="replace") for line in lines)


Take = Callable[[AnswerRead, dict[str, Any]], bool]
"""Reads one event into the answer. Returns whether it and all later ones are held back until the answer is recorded."""


class StreamedAnswer:
    """Reads a streamed answer. `feed` returns the bytes that may be passed on at once; `held` are the others."""

    def __init__(self, take: Take, *, drops_usage: bool = False) -> None:
        self.answer = AnswerRead()
        self.held = b""
        self._take = take
        self._drops_usage = drops_usage
        self._split = EventSplitter()
        self._holds = False

    def feed(self, data: bytes) -> bytes:
        passed: list[bytes] = []
        for event, text in self._split.feed(data):
            if text == "[DONE]":
                self._holds = self.answer.ended = True
            elif text:
                value = _json(text)
                self._holds = self._take(self.answer, value) or self._holds
                if self._drops_usage and value.get("choices") == [] and value.get("usage"):
                    continue
            if self._holds:
                self.held += event
            else:
                passed.append(event)
        return b"".join(passed)

    def finish(self) -> None:
        """Handle the end of the stream: hold back the bytes after the last complete event, too."""
        self.held += self._split.rest()


class WholeAnswer:
    """Reads an answer that is not streamed. All its bytes are held back until the answer is recorded."""

    def __init__(self, take: Take) -> None:
        self.answer = AnswerRead()
        self.held = b""
        self._take = take
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> bytes:
        self._size += len(data)
        if self._size > MOST_EVENT:
            raise AnswerTooLarge(f"the model's answer has more than {MOST_EVENT:,} bytes")
        self._parts.append(data)
        return b""

    def finish(self) -> None:
        """Read the whole answer."""
        self.held = b"".join(self._parts)
        self._take(self.answer, _json(self.held.decode(errors="replace")))


def _json(text: str) -> dict[str, Any]:
    try:
        return fields(decode(text))
    except (ValueError, RecursionError):
        return {}
