"""Reading one HTTP request: with limits on size and time, and without ambiguous input."""

import asyncio
from http import HTTPStatus
from typing import Final, NamedTuple
from urllib.parse import parse_qs

HEAD_LIMIT: Final = 16_384  # bytes
BODY_LIMIT: Final = 131_072  # enough for an answer of 8,000 characters, form-encoded
_FIELDS: Final = 16
_ONCE: Final = ("content-length", "content-type")


class BadRequest(Exception):
    """A request that is answered with this status only."""

    def __init__(self, status: HTTPStatus) -> None:
        super().__init__(status.phrase)
        self.status = status


class PageRequest(NamedTuple):
    """A request. `fields` are those of the posted form, or of the address."""

    method: str
    path: str
    fields: dict[str, str]


async def read_request(reader: asyncio.StreamReader) -> PageRequest:
    """Return the next request. Raise `BadRequest` if it is invalid, and `EOFError` if none came."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError:
        raise BadRequest(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE) from None
    first, *rest = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    method, target = _target(first)
    path, _, query = target.partition("?")
    if method in ("GET", "HEAD"):
        return PageRequest(method, path, _fields(query))
    if method != "POST":
        raise BadRequest(HTTPStatus.METHOD_NOT_ALLOWED)
    body = await reader.readexactly(_length(_headers(rest)))
    try:
        return PageRequest(method, path, _fields(body.decode("ascii")))
    except UnicodeDecodeError:
        raise BadRequest(HTTPStatus.BAD_REQUEST) from None


def _target(first: str) -> tuple[str, str]:
    match first.split(" "):
        case [method, target, "HTTP/1.1" | "HTTP/1.0"] if target.startswith("/") and target.isascii():
            return method, target
        case _:
            raise BadRequest(HTTPStatus.BAD_REQUEST)


def _headers(lines: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        name = name.lower()
        if not colon or name != name.strip() or (name in found and name in _ONCE):
            raise BadRequest(HTTPStatus.BAD_REQUEST)
        found[name] = value.strip()
    return found


def _length(headers: dict[str, str]) -> int:
    length = headers.get("content-length", "")
    if "transfer-encoding" in headers or not (length.isascii() and length.isdigit()):
        raise BadRequest(HTTPStatus.LENGTH_REQUIRED)
    if len(length) > 9 or int(length) > BODY_LIMIT:
        raise BadRequest(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
    if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/x-www-form-urlencoded":
        raise BadRequest(HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
    return int(length)


def _fields(text: str) -> dict[str, str]:
    try:
        found = parse_qs(text, keep_blank_values=True, max_num_fields=_FIELDS, errors="strict")
    except ValueError:
        raise BadRequest(HTTPStatus.BAD_REQUEST) from None
    if any(len(values) > 1 for values in found.values()):
        raise BadRequest(HTTPStatus.BAD_REQUEST)
    return {name: values[0] for name, values in found.items()}
