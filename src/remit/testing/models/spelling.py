"""A reply on the wire: the parts that are sent, how slowly, and how they end."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from remit.testing.models import chat, messages, responses
from remit.testing.models.answers import ScriptedAnswer, ServerEvent, answer
from remit.testing.models.errors import error, too_long
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


def spelled(reply: ModelReply, request: ModelRequest, number: int, created: int) -> Spelled:
    """Return a reply in the dialect of the request."""
    match reply:
        case Slow():
            inner = spelled(reply.reply, request, number, created)
            return replace(inner, seconds=inner.seconds + reply.seconds)
        case Cut():
            return replace(spelled(reply.reply, request, number, created), whole=False)
        case Says() | Calls() | Empty():
            return _answered(answer(reply, request, number, created), request)
        case Reset():
            return Spelled()
        case _:
            return _unanswered(reply, request)


def _answered(found: ScriptedAnswer, request: ModelRequest) -> Spelled:
    match request.dialect:
        case "chat":
            return _stream(chat.events(found, request)) if request.stream else plain(200, chat.whole(found))
        case "responses":
            return _stream(responses.events(found)) if request.stream else plain(200, responses.whole(found))
        case _:
            return _stream(messages.events(found)) if request.stream else plain(200, messages.whole(found))


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
