"""Requests that are nearly right: what the table takes, and what MCP and A2A take, with small changes; and what must
hold of every answer."""

import json
from collections import Counter
from random import Random  # noqa: TID251 - with a seed
from time import perf_counter, process_time
from typing import Any, Final, NamedTuple

import httpx

from remit.server.routes import ROWS
from server.examples import EXAMPLES, example
from server.strangers import Strangers
from server.worlds import World

LONGEST: Final = 1.0  # second
INTERNAL: Final = '"code":-32603'  # JSON-RPC: an internal error
_HOSTILE: Final[tuple[Any, ...]] = (
    *(None, True, 0, -1, 1, 2**63 - 1, 1e308, 0.5, "", "x", "x" * 300, "\x1b[2J", "\u202e", "\U0001f600"),
    *([], {}, [[]], {"a": None}, ["x"] * 2_000, "*", "group:none", "$1", "../..", "%00", "board:x", "'; --", "last"),
)
_RAW: Final = (
    *(b"\x00", b"\xff", b"NaN", b"1e999", b'"\\ud800"', b'"\\u0000"', b"[" * 200, b"9" * 30, b'{"a":1,"a":2}', b"}"),
)
_HEADERS: Final = {
    "idempotency-key": ("k", "k" * 200, "k" * 201, "", " "),
    "if-match": ('"1"', '"0"', "*", 'W/"1"', '"x"'),
    "if-none-match": ('"1"', "*", ""),
    "content-type": ("text/plain", "application/json; charset=utf-8", "application/json; charset=utf-7", ""),
    "last-event-id": ("1", "x", "-1"),
    "authorization": ("Bearer", "Bearer  ", "Basic a2V5", "Bearer key-ann x"),
}
_STRANGE: Final = {
    **_HEADERS,
    "accept": ("*/*", "application/json", "text/html", ""),
    "a2a-version": ("1.0", "0.3", "2.0", "x", ""),
    "a2a-extensions": ("urn:x", "," * 100),
    "mcp-protocol-version": ("2025-06-18", "2026-07-28", "x", ""),
    "mcp-session-id": ("x", "0" * 32, ""),
    "mcp-method": ("tools/list", "x", ""),
    "mcp-name": ("call_agent", "x", "=?base64?eA==?="),
}
_VALUES: Final = ("", "x", "-1", "0", "1", "1e3", "9" * 30, "%00", "%ff", "a,b", "task.completed", "true", "x" * 2_000)
_QUERY: Final = ("limit", "cursor", "after", "state", "kind", "since", "timeout", "format", "pageSize", "x")
_NAMES: Final = ("x", "within", "sees", "meta", "tags", "session", "timeout")


class Mutant(NamedTuple):
    """A request, and whether its answer may take its time."""

    method: str
    path: str
    content: bytes
    headers: dict[str, str]
    waits: bool = False


class Tried(NamedTuple):
    """How often each status came, how many requests were accepted, and the seconds of the slowest answer."""

    seen: Counter[int]
    accepted: int
    slowest: float


def of_the_table(chance: Random, at: World) -> Mutant:
    """A request of a route, with none, one or two changes."""
    row = chance.choice(ROWS)
    asked = example(row, at) if row.name in EXAMPLES else None
    path = at.path(asked.path if asked else row.path, id=at.names["task"])
    found = changed(chance, row.method, path, asked.body if asked else None, {"content-type": "application/json"})
    if "timeout" in row.query.model_fields:  # it would wait for what does not come
        return found._replace(path=found.path.partition("?")[0] + "?timeout=0", waits=True)
    return found._replace(waits=row.waits)


def changed(chance: Random, method: str, path: str, body: Any, headers: dict[str, str]) -> Mutant:
    """A request with none, one or two changes."""
    headers, known = dict(headers), _STRANGE if "accept" in headers else _HEADERS
    content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    for _ in range(chance.choice((0, 1, 1, 1, 2))):
        match chance.choice(("body", "body", "bytes", "path", "query", "header")):
            case "body" if isinstance(body, dict):
                content = json.dumps(_other(chance, body)).encode()
            case "bytes" if content:
                place = chance.randrange(len(content))
                content = content[:place] + chance.choice(_RAW) + content[place + chance.randrange(3) :]
            case "path":
                parts = path.split("/")
                parts[chance.randrange(1, len(parts))] = chance.choice(_VALUES).replace("/", "")
                path = "/".join(parts)
            case "query":
                path += f"{'&' if '?' in path else '?'}{chance.choice(_QUERY)}={chance.choice(_VALUES)}"
            case _:
                name = chance.choice([*known])
                headers[name] = chance.choice(known[name])
    return Mutant(method, path, content, headers)


def _other(chance: Random, body: Any) -> Any:
    """A copy of a body in which one thing is different, at the top or in one of its parts."""
    made = json.loads(json.dumps(body))
    place = made
    while chance.random() < 0.6:
        inner = [one for one in _parts(place) if isinstance(one, dict | list) and one]
        if not inner:
            break
        place = chance.choice(inner)
    if isinstance(place, list):
        place[chance.randrange(len(place))] = chance.choice(_HOSTILE)
        return made
    name = chance.choice([*place, *_NAMES])
    if chance.random() < 0.2:
        place.pop(name, None)
    else:
        place[name] = chance.choice(_HOSTILE)
    return made


def _parts(place: Any) -> list[Any]:
    return place if isinstance(place, list) else [*place.values()]


async def tried(
    http: httpx.AsyncClient, at: World, number: int, seed: int = 0, strangers: Strangers | None = None
) -> Tried:
    """Send so many mutants, of the table or of strangers. None may fail the server or hold it."""
    chance, seen, accepted, slowest = Random(seed), Counter[int](), 0, 0.0
    for count in range(number):
        one = of_the_table(chance, at) if strangers is None else changed(chance, *await strangers.request(chance))
        began, worked = perf_counter(), process_time()
        got = await http.request(one.method, one.path, content=one.content, headers=one.headers)
        took, worked = perf_counter() - began, process_time() - worked
        about = (seed, count, one, got.text[:1_000], took, worked)
        assert got.status_code < 500, about
        assert INTERNAL not in got.text.replace(" ", ""), about
        assert one.waits or worked < LONGEST, about
        assert took < LONGEST * 20, about  # a busy machine is not the server's fault
        if strangers is None and got.status_code >= 400:
            assert got.headers["content-type"] == "application/problem+json", about
        seen[got.status_code] += 1
        accepted += got.status_code < 300 and '"error":{"code"' not in got.text.replace(" ", "")
        slowest = max(slowest, worked)
    return Tried(seen, accepted, slowest)
