"""What a provider's answer may weigh and how deep it may go, whichever client reads it.

Clients read a body whole and as deep as it goes, and unpack what is compressed without a limit. Here each body is
unpacked and counted piece by piece, before a client sees it.
"""

import re
import zlib
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib import import_module
from typing import Any, Final, cast

import anyio.lowlevel

MOST_BYTES: Final = 16 * 1_024 * 1_024  # of an answer, unpacked
_STREAMED: Final = 6 * MOST_BYTES  # of a stream: it says each word up to five times, in pieces, parts and whole
MOST_DEPTH: Final = 100  # lists and objects in each other
_PIECE: Final = 64 * 1_024  # bytes that are unpacked at once
_STRUCTURE: Final = re.compile(r'"|\\[\s\S]|[\[{]|[\]}]')
_AT_ONCE: Final = 20_000  # of its marks that are read before others have their turn
_COUNTED: Final[ContextVar[bool]] = ContextVar("remit.bodies", default=False)


class UnreadableBody(ValueError):
    """An answer that is not read to its end."""


@contextmanager
def bounded(*clients: Any) -> Generator[None]:
    """Have whatever these HTTP clients read here bounded. What else their owner does with them is left alone."""
    for client in clients:
        hooks: dict[str, list[Any]] | None = getattr(client, "event_hooks", None)
        if hooks is not None and _count not in hooks["response"]:
            hooks["request"].append(_ask_plainly)
            hooks["response"].append(_count)
    token = _COUNTED.set(True)
    try:
        yield
    except RecursionError:
        raise UnreadableBody(_too_deep()) from None
    finally:
        _COUNTED.reset(token)


def unreadable(error: BaseException) -> str:
    """Say why a body was not read, if that is what an error came of; else nothing."""
    seen: set[int] = set()
    at: BaseException | None = error
    while at is not None and id(at) not in seen:
        if isinstance(at, UnreadableBody):
            return str(at)
        seen.add(id(at))
        at = at.__cause__ or at.__context__
    return ""


def http_of(client: Any) -> Any:
    """Give the HTTP client inside of a provider's client, where those of OpenAI, of Anthropic and those made like them
    have it."""
    return getattr(client, "_client", None)


async def _ask_plainly(request: Any) -> None:
    if _COUNTED.get():
        request.headers["accept-encoding"] = "gzip"  # which can be unpacked piece by piece


async def _count(response: Any) -> None:
    if not _COUNTED.get():
        return
    packed = response.headers.get("content-encoding", "identity").strip().lower()
    if packed not in ("identity", "gzip", ""):
        raise UnreadableBody("its answer is packed in a way that it was not asked for")
    response.headers.pop("content-encoding", None)
    streamed = response.headers.get("content-type", "").startswith("text/event-stream")
    most = _STREAMED if streamed else MOST_BYTES
    response.stream = _stream(type(cast("object", response)))(response.stream, packed == "gzip", most)
    if not streamed:
        await _check_depth(await response.aread())


@cache
def _stream(of: type) -> Callable[[Any, bool, int], Any]:
    """Make the kind of stream that a response of this library takes."""
    base: Any = import_module(of.__module__.partition(".")[0]).AsyncByteStream

    class Counted(base):
        def __init__(self, stream: Any, packed: bool, most: int) -> None:
            self._stream = stream
            self._packed = packed
            self._most = most

        async def __aiter__(self) -> AsyncIterator[bytes]:
            size, unpacked = 0, zlib.decompressobj(zlib.MAX_WBITS | 16) if self._packed else None
            async for chunk in self._stream:
                for piece in _pieces(chunk, unpacked):
                    size += len(piece)
                    if size > self._most:
                        raise UnreadableBody(f"its answer is longer than {self._most // 1_024**2} MB")
                    yield piece

        async def aclose(self) -> None:
            await self._stream.aclose()

    return Counted


def _pieces(chunk: bytes, unpacked: Any) -> Iterator[bytes]:
    if unpacked is None:
        yield chunk
        return
    try:
        while chunk and not unpacked.eof:
            yield unpacked.decompress(chunk, _PIECE)
            chunk = unpacked.unconsumed_tail
    except zlib.error:
        raise UnreadableBody("its answer is said to be packed and is not") from None


async def _check_depth(body: bytes) -> None:
    """Raise UnreadableBody for JSON that is deeper than anyone's. What is no JSON is for the client to say."""
    if body.count(b"[") + body.count(b"{") <= MOST_DEPTH:
        return
    depth, inside = 0, False
    for number, found in enumerate(_STRUCTURE.finditer(body.decode("latin-1"))):
        if number % _AT_ONCE == _AT_ONCE - 1:
            await anyio.lowlevel.checkpoint()
        mark = found[0]
        if mark == '"':
            inside = not inside
        elif not inside:
            depth += (mark in "[{") - (mark in "]}")
            if depth > MOST_DEPTH:
                raise UnreadableBody(_too_deep())


def _too_deep() -> str:
    return f"its answer has more than {MOST_DEPTH} lists and objects in each other"
