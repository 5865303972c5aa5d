"""Requests that are nearly right: what the table takes, with small changes; and what must hold of every answer."""

import json
from collections import Counter
from random import Random  # noqa: TID251 - with a seed
from time import perf_counter
from typing import Any, Final

import httpx

from remit.server.calls import Row
from remit.server.routes import ROWS
from server.examples import EXAMPLES, example
from server.worlds import World

LONGEST: Final = 1.0  # second
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
_VALUES: Final = ("", "x", "-1", "0", "1", "1e3", "9" * 30, "%00", "%ff", "a,b", "task.completed", "true", "x" * 2_000)


def mutant(chance: Random, at: World) -> tuple[Row, dict[str, Any]]:
    """A request of a route, with none, one or two changes."""
    row = chance.choice(ROWS)
    asked = example(row, at) if row.name in EXAMPLES else None
    path = at.path(asked.path if asked else row.path, id=at.names["task"])
    body = asked.body if asked else None
    headers = {"content-type": "application/json"}
    content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    for _ in range(chance.choice((0, 1, 1, 1, 2))):
        match chance.choice(("body", "body", "bytes", "path", "query", "header")):
            case "body" if isinstance(body, dict):
                content = json.dumps(_changed(chance, body)).encode()
            case "bytes" if content:
                place = chance.randrange(len(content))
                content = content[:place] + chance.choice(_RAW) + content[place + chance.randrange(3) :]
            case "path":
                parts = path.split("/")
                parts[chance.randrange(1, len(parts))] = chance.choice(_VALUES).replace("/", "")
                path = "/".join(parts)
            case "query":
                name = chance.choice(("limit", "cursor", "after", "state", "kind", "since", "timeout", "format", "x"))
                path += f"{'&' if '?' in path else '?'}{name}={chance.choice(_VALUES)}"
            case _:
                name = chance.choice([*_HEADERS])
                headers[name] = chance.choice(_HEADERS[name])
    return row, {"method": row.method, "url": path, "content": content, "headers": headers}


def _changed(chance: Random, body: Any) -> Any:
    """A copy of a body in which one thing is different."""
    made = json.loads(json.dumps(body))
    name = chance.choice([*made, "x", "within", "sees", "meta", "tags", "session", "timeout"])
    if chance.random() < 0.2:
        made.pop(name, None)
    else:
        made[name] = chance.choice(_HOSTILE)
    return made


async def tried(http: httpx.AsyncClient, at: World, number: int, seed: int = 0) -> Counter[int]:
    """Send so many mutants, and return how often each status came. None may fail the server or hold it."""
    chance, seen = Random(seed), Counter[int]()
    for count in range(number):
        row, request = mutant(chance, at)
        if row.waits:
            request["url"] = request["url"].partition("?")[0] + "?timeout=0"
        began = perf_counter()
        got = await http.request(**request)
        took = perf_counter() - began
        assert got.status_code < 500, (seed, count, request, got.text)
        assert took < LONGEST * 20, (seed, count, request, took)  # a busy machine is not the server's fault
        if got.status_code >= 400:
            assert got.headers["content-type"] == "application/problem+json", (seed, count, request)
        seen[got.status_code] += 1
    return seen
