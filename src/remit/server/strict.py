"""The body of a request, read with limits on size and time, and parsed in one place.

`StrictBody` stands before applications of other libraries: they get the bytes that remit encoded again, so what they
parse is what remit parsed.
"""

import asyncio
from typing import Final, NamedTuple

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from remit.codec import encode
from remit.codec.strict import parse
from remit.core.values import Json
from remit.errors import Malformed, TooLarge, TooSlow, WrongType

_LENGTH_DIGITS: Final = 15


class BodyLimits(NamedTuple):
    """How large a body may be, and how long it may take to arrive."""

    size: int = 2 * 1024 * 1024
    seconds: float = 10.0


USUAL: Final = BodyLimits()
_HEADERS: Final = "remit.headers"
_TWICE: Final = bytes(bytearray(b"twice"))  # an object of its own, which no header is


async def read_bytes(scope: Scope, receive: Receive, limits: BodyLimits = USUAL) -> bytes:
    """Return the whole body. Raise `TooLarge` or `TooSlow` as soon as that is certain."""
    _must_fit(_length(scope), limits)
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(limits.seconds):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ClientDisconnect
                part: bytes = message.get("body", b"")
                size += len(part)
                _must_fit(size, limits)
                parts.append(part)
                if not message.get("more_body", False):
                    return b"".join(parts)
    except TimeoutError:
        raise TooSlow(f"the body did not arrive within {limits.seconds:g} seconds") from None


async def read_json(scope: Scope, receive: Receive, limits: BodyLimits = USUAL) -> Json:
    """Return the JSON of a body, as `parsed` does."""
    return parsed(scope, await read_bytes(scope, receive, limits))


def parsed(scope: Scope, text: bytes) -> Json:
    """Return the JSON of a body; an empty body is an empty object. Raise `WrongType` if the headers of the request say
    that it is something else, and `Malformed` if it is not JSON."""
    if not text:
        return {}
    must_be_json(scope)
    return parse(text)


def must_be_json(scope: Scope) -> None:
    """Raise `WrongType` unless the headers say that the body is plain JSON in UTF-8."""
    if header(scope, b"content-encoding"):
        raise WrongType("the body must not be compressed; leave out Content-Encoding")
    kind, _, parameters = header(scope, b"content-type").lower().partition(";")
    kind = kind.strip()
    is_json = kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json"))
    if not is_json or parameters.replace(" ", "").replace('"', "") not in ("", "charset=utf-8"):
        raise WrongType("the body is JSON in UTF-8; send it with `Content-Type: application/json`")


def header(scope: Scope, name: bytes) -> str:
    """Return a header as text, "" if there is none. Raise `Malformed` if it is there twice."""
    sent = scope["headers"]
    known = scope.get(_HEADERS)
    if known is None or known[0] is not sent:  # a request is asked for several headers, and a copy of it has others
        known = scope[_HEADERS] = (sent, _by_name(sent))
    value = known[1].get(name)
    if value is None:
        return ""
    if value is _TWICE:
        raise Malformed(f"the header {name.decode()} is there twice")
    return value.decode("latin-1").strip()


def _by_name(sent: list[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = {}
    for name, value in sent:
        found[name] = _TWICE if name in found else value
    return found


class StrictBody:
    """An ASGI application behind the strict parser. `scope["remit.body"]` is the parsed body."""

    def __init__(self, app: ASGIApp, limits: BodyLimits = USUAL) -> None:
        self._app = app
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not _has_body(scope):
            await self._app(scope, receive, send)
            return
        value = await read_json(scope, receive, self._limits)
        canonical = encode(value).encode()
        headers = [(name, text) for name, text in scope["headers"] if name not in _REPLACED]
        headers += [(b"content-length", str(len(canonical)).encode())]
        await self._app({**scope, "headers": headers, "remit.body": value}, _replay(canonical, receive), send)


_REPLACED: Final = (b"content-length", b"transfer-encoding")


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that gives this body first, and then whatever comes."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return waiting.pop() if waiting else await receive()

    return again


def _has_body(scope: Scope) -> bool:
    return any(
        name == b"transfer-encoding" or (name == b"content-length" and value.strip() not in (b"", b"0"))
        for name, value in scope["headers"]
    )


def _length(scope: Scope) -> int:
    """Return the length that the headers announce, 0 if they do not."""
    told = header(scope, b"content-length")
    if not told:
        return 0
    if not (told.isascii() and told.isdigit()) or len(told) > _LENGTH_DIGITS:
        raise Malformed("the header content-length is not a number of bytes")
    return int(told)


def _must_fit(size: int, limits: BodyLimits) -> None:
    if size > limits.size:
        raise TooLarge(f"the body has more than {limits.size:,} bytes")
