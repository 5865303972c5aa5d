"""A provider's response: limits on its size and depth, for every HTTP client, and its error message, made fit to be
shown: short, on one line, and without secrets.

Clients read a whole body, at any depth, and unpack compressed data without a limit. Here each body is unpacked and
counted piece by piece, before a client sees it.
"""

import json
import re
import zlib
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from importlib import import_module
from typing import Any, Final, cast

import anyio.lowlevel

# -- limits --------------------------------------------------------------------------------------------------


MOST_BYTES: Final = 16 * 1_024 * 1_024  # of an answer, unpacked
# Of a stream, which repeats its text up to five times: in pieces, parts and as a whole.
_STREAMED: Final = 6 * MOST_BYTES
MOST_DEPTH: Final = 100  # lists and objects in each other
MOST_TEXT: Final = 6 * 1_024 * 1_024  # bytes of one text in an answer: parsing a longer one would hold the event loop
MOST_SIGNS: Final = 300_000  # JSON signs, also inside texts: a text may be JSON that is parsed when a tool is called
MOST_PARTS: Final = 256  # choices, blocks or items of an answer; a client creates an object for each
_PIECE: Final = 64 * 1_024  # bytes that are unpacked at once
_LINES: Final = 128  # of a stream that are read at once
_EVENT: Final = 2 * MOST_TEXT  # bytes of one event of a stream
_COPIED: Final = 4 * MOST_BYTES  # bytes that putting the lines of one event together may copy
_BLANK: Final = (b"\n", b"\r\n", b"\r")  # what ends an event
_LARGE: Final = 1_024 * 1_024  # bytes; counting in more takes a while
_NO_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))
_SIGNS: Final = (b'"', b"\\", b",", b"[", b"{")
_AT_ONCE: Final = 20_000  # brackets counted before other tasks get a turn
_COUNTED: Final[ContextVar[bool]] = ContextVar("remit.bodies", default=False)


class UnreadableBody(ValueError):
    """A response that exceeds a limit and is not read to its end."""


@contextmanager
def bounded(*clients: Any) -> Generator[None]:
    """Limit the size and the structure of the responses that these HTTP clients read inside the `with` block. A
    response that exceeds a limit raises `UnreadableBody`, which a provider's library may wrap: see `unreadable`. Other
    uses of the clients are not affected."""
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
    """Return why a body was not read, if that caused the error; otherwise ""."""
    seen: set[int] = set()
    at: BaseException | None = error
    while at is not None and id(at) not in seen:
        if isinstance(at, UnreadableBody):
            return str(at)
        seen.add(id(at))
        at = at.__cause__ or at.__context__
    return ""


def http_of(client: Any) -> Any:
    """Return the HTTP client inside a provider's client, where OpenAI, Anthropic and similar libraries keep it, or
    None."""
    return getattr(client, "_client", None)


async def _ask_plainly(request: Any) -> None:
    if _COUNTED.get():
        request.headers["accept-encoding"] = "gzip"  # gzip can be unpacked piece by piece


async def _count(response: Any) -> None:
    if not _COUNTED.get():
        return
    packed = response.headers.get("content-encoding", "identity").strip().lower()
    if packed not in ("identity", "gzip", ""):
        raise UnreadableBody("its answer is compressed in a way that remit did not ask for")
    response.headers.pop("content-encoding", None)
    streamed = response.headers.get("content-type", "").startswith("text/event-stream")
    most = _STREAMED if streamed else MOST_BYTES
    response.stream = _stream(type(cast("object", response)))(response.stream, packed == "gzip", most)
    if not streamed:
        await _check_form(await response.aread())


@cache
def _stream(of: type) -> Callable[[Any, bool, int], Any]:
    """Return a class that unpacks and counts a response's stream. `of` is the library's own class of such streams."""
    base: Any = import_module(of.__module__.partition(".")[0]).AsyncByteStream

    class Counted(base):
        def __init__(self, stream: Any, packed: bool, most: int) -> None:
            self._stream = stream
            self._packed = packed
            self._most = most

        async def __aiter__(self) -> AsyncIterator[bytes]:
            size, unpacked = 0, zlib.decompressobj(zlib.MAX_WBITS | 16) if self._packed else None
            event = _StreamEvent() if self._most == _STREAMED else None
            async for chunk in self._stream:
                for piece in _pieces(chunk, unpacked):
                    size += len(piece)
                    if size > self._most:
                        raise UnreadableBody(f"its answer is longer than {self._most // 1_024**2} MB")
                    for number, part in enumerate((piece,) if event is None else _lines_at_once(piece)):
                        if number:
                            # A client reads all available data without a pause, so yield here.
                            await anyio.lowlevel.checkpoint()
                        if event is not None:
                            event.take(part)
                        yield part

        async def aclose(self) -> None:
            await self._stream.aclose()

    return Counted


class _StreamEvent:
    """The part of one stream event that has been read. Clients join its lines one by one and parse them at once."""

    __slots__ = ("_copied", "_parts", "_signs", "_size")

    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self._parts: list[bytes] = []
        self._size = self._signs = self._copied = 0

    def take(self, part: bytes) -> None:
        """Count the next part. Raise `UnreadableBody` if parsing the event would block the event loop."""
        lines = part.splitlines(keepends=True)
        if len(lines) == 1 and lines[0] not in _BLANK:  # nearly always a piece of one long line
            self._add(part)
            return
        for line in lines:
            if line in _BLANK:
                self._check()
                self._clear()
            else:
                self._copied += self._size
                self._add(line)

    def _add(self, line: bytes) -> None:
        self._parts.append(line)
        self._size += len(line)
        self._signs += sum(map(line.count, _SIGNS))
        if self._size > _EVENT or self._copied > _COPIED:
            raise UnreadableBody(f"its answer has an event of more than {_EVENT // 1_024**2} MB, or of too many lines")
        if self._signs > MOST_SIGNS:
            raise UnreadableBody(_too_many_signs())

    def _check(self) -> None:
        if self._signs > MOST_PARTS:
            text = b"".join(self._parts).removeprefix(b"event:")
            body = text[text.find(b"{") :]
            if body.count(b"{") > MOST_PARTS and _longest(body) > MOST_PARTS:
                raise UnreadableBody(_too_many_parts())


def _lines_at_once(piece: bytes) -> Iterable[bytes]:
    """Return a piece of a stream in groups of at most 128 lines, so that reading one group takes little time."""
    if piece.count(b"\n") + piece.count(b"\r") <= _LINES:
        return (piece,)
    lines = piece.splitlines(keepends=True)
    return (b"".join(lines[at : at + _LINES]) for at in range(0, len(lines), _LINES))


def _pieces(chunk: bytes, unpacked: Any) -> Iterator[bytes]:
    if unpacked is None:
        yield chunk
        return
    try:
        while chunk and not unpacked.eof:
            yield unpacked.decompress(chunk, _PIECE)
            chunk = unpacked.unconsumed_tail
    except zlib.error:
        raise UnreadableBody("its answer is declared as compressed and is not") from None


async def _check_form(body: bytes) -> None:
    """Raise `UnreadableBody` for JSON that is too deep, or has so many parts that parsing it would block the event
    loop. Text that is not JSON is left for the client to report."""
    signs: dict[bytes, int] = {}
    for sign in _SIGNS:
        signs[sign] = body.count(sign)
        if len(body) > _LARGE:
            await anyio.lowlevel.checkpoint()
    if sum(signs.values()) > MOST_SIGNS:
        raise UnreadableBody(_too_many_signs())
    if signs[b"["] + signs[b"{"] > MOST_DEPTH or len(body) > MOST_TEXT:
        await _check_depth(body)
    if signs[b"{"] > MOST_PARTS and _longest(body) > MOST_PARTS:
        raise UnreadableBody(_too_many_parts())


def _longest(body: bytes) -> int:
    """Return the length of the longest list that is a field of a JSON object, or of an object in one of its fields; 0
    if there is none, or if the body is not JSON."""
    try:
        answer: object = json.loads(body)
    except (ValueError, RecursionError):  # the client reports this
        return 0
    parts = _values(answer)
    every = (*parts, *(inner for part in parts for inner in _values(part)))
    return max((len(cast("list[object]", one)) for one in every if isinstance(one, list)), default=0)


def _values(given: object) -> tuple[object, ...]:
    return tuple(cast("dict[str, object]", given).values()) if isinstance(given, dict) else ()


async def _check_depth(body: bytes) -> None:
    """Raise `UnreadableBody` if lists and objects are nested too deeply, or a text is too long."""
    for escaped in (b"\\\\", b'\\"'):  # so that each remaining quote begins or ends a text
        body = body.replace(escaped, b"")
        await anyio.lowlevel.checkpoint()
    parts = body.split(b'"')
    if max(map(len, parts[1::2]), default=0) > MOST_TEXT:
        raise UnreadableBody(f"its answer has a text of more than {MOST_TEXT // 1_024**2} MB")
    depth = 0
    for number, bracket in enumerate(b"".join(parts[::2]).translate(None, _NO_BRACKETS)):
        if number % _AT_ONCE == _AT_ONCE - 1:
            await anyio.lowlevel.checkpoint()
        depth += 1 if bracket in b"[{" else -1
        if depth > MOST_DEPTH:
            raise UnreadableBody(_too_deep())


def _too_many_signs() -> str:
    return f"its answer has more than {MOST_SIGNS:,} quotes, commas, brackets and backslashes"


def _too_many_parts() -> str:
    return f"its answer has a list of more than {MOST_PARTS} parts"


def _too_deep() -> str:
    return f"its answer has more than {MOST_DEPTH} lists and objects in each other"


# -- error messages ------------------------------------------------------------------------------------------


LONGEST: Final = 300  # characters
_HIDDEN: Final = "[secret]"
_SHORTEST: Final = 6  # characters; a shorter secret would match parts of words
_WORD: Final = re.compile(r"[\w+/=*.-]+")
_PREFIXES: Final = tuple(f"{name}{mark}" for name in ("sk", "pk", "rk", "gsk", "xai", "hf", "ghp") for mark in "-_")
_ANNOUNCED: Final = ("key", "bearer", "token")  # words before a key
_LONG: Final = 32  # characters; a mix of letters and digits this long must be a key
_HEADERS: Final = ("authorization", "x-api-key", "api-key", "x-goog-api-key")  # headers with keys
_UNPRINTABLE: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]+")


def provider_words(error: BaseException, secrets: Iterable[str] = ()) -> str:
    """Return the provider's message in an error, on one line and without `secrets` and the keys of the request. If no
    provider answered, return a sentence with its address; "" if the error has neither."""
    text = _message(getattr(error, "body", None))
    if text:
        return shown_words(text, [*secrets, *_keys_sent(error)])
    address = _address(error) if getattr(error, "status_code", None) is None else ""
    return f"{address} did not answer" if address else ""


def shown_words(text: str, secrets: Iterable[str] = ()) -> str:
    """Return the text on one line of at most 300 characters, without secrets."""
    for secret in secrets:
        if len(secret) >= _SHORTEST:
            text = text.replace(secret, _HIDDEN)
    text = _without_keys(text[: 10 * LONGEST])
    text = " ".join(_UNPRINTABLE.sub(" ", text).replace('"', "'").split())
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _without_keys(text: str) -> str:
    """Return the text without anything that looks like a key, whole or partly masked: providers often quote the key."""
    before = ""

    def shown(found: re.Match[str]) -> str:
        nonlocal before
        word, earlier = found[0], before
        before = word.lower()
        if not _is_key(word.lower(), earlier):
            return word
        return _HIDDEN + ("." if word.endswith(".") else "")  # keep the full stop of the sentence

    return _WORD.sub(shown, text)


def _is_key(word: str, before: str) -> bool:
    if "***" in word or (word.startswith(_PREFIXES) and len(word) >= 9) or (word.startswith("aiza") and len(word) > 13):
        return True
    for announced in _ANNOUNCED:
        rest = word if before == announced else word.removeprefix(announced)[1:] if word.startswith(announced) else ""
        if len(rest) >= _SHORTEST and any(letter.isdigit() or letter == "*" for letter in rest):
            return True
    return any(len(part) >= _LONG and _is_mixed(part) for part in word.split("."))


def _is_mixed(word: str) -> bool:
    return any(letter.isdigit() for letter in word) and any(letter.isalpha() for letter in word)


def _message(body: object) -> str:
    """Return the message in the body of an error: under `message`, `error` or `detail`, as providers write it. Return
    "" if there is none, or if it is HTML or JSON."""
    for _ in range(3):
        if isinstance(body, list) and body:
            body = cast("list[object]", body)[0]
        if not isinstance(body, Mapping):
            break
        found = cast("Mapping[str, Any]", body)
        body = found.get("message") or found.get("error") or found.get("detail")
    text = body.strip() if isinstance(body, str) else ""
    return "" if text.startswith(("<", "{")) else text  # a page or JSON is nothing for people


def _keys_sent(error: BaseException) -> Iterator[str]:
    """Yield the keys in the headers of an error's requests, and "" for each header that is missing."""
    for request in _requests(error):
        headers = cast("Mapping[str, str]", getattr(request, "headers", None) or {})
        for name in _HEADERS:
            yield headers.get(name, "").removeprefix("Bearer ")


def _address(error: BaseException) -> str:
    """Return scheme, host and port of the first request in an error and its causes, or ""."""
    for request in _requests(error):
        url = getattr(request, "url", None)
        if url is not None and getattr(url, "host", ""):
            port = f":{url.port}" if url.port else ""
            return f"{url.scheme}://{url.host}{port}"
    return ""


def _requests(error: BaseException) -> Iterator[Any]:
    """Yield the requests in a client's error and its causes, and None for an error without one."""
    seen: set[int] = set()
    at: BaseException | None = error
    while at is not None and id(at) not in seen:
        seen.add(id(at))
        for holder in (at, getattr(at, "response", None)):
            with suppress(RuntimeError):  # httpx raises if the error has no request
                yield getattr(holder, "request", None)
        at = at.__cause__ or at.__context__
