"""What a provider may answer at most, unpacked and in depth, for agents of every kind."""

import asyncio
import gzip
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

import httpx
import pytest

from adapters.places import KEY, KEY_NAME, KINDS, data_of, join, priced, served
from engine.helping import ends
from remit import Outcome
from remit.adapters.bodies import MOST_BYTES, MOST_DEPTH, UnreadableBody, bounded
from remit.testing import FakeClock

pytestmark = pytest.mark.anyio

kinds = pytest.mark.parametrize("kind", KINDS)
LONG = "its answer is longer than 16 MB"
DEEP = f"its answer has more than {MOST_DEPTH} lists and objects in each other"


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_NAME, KEY)


def answer(text: str, **more: Any) -> bytes:
    message = {"role": "assistant", "content": text, **more}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    usage = {"prompt_tokens": 5, "completion_tokens": 5, "total_tokens": 10}
    return json.dumps(
        {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}
    ).encode()


@asynccontextmanager
async def answering(body: bytes, **headers: str) -> AsyncIterator[str]:
    """A server that gives this to whatever it is asked."""
    said = {"content-type": "application/json", "content-length": str(len(body))}
    said |= {name.replace("_", "-"): value for name, value in headers.items()}
    head = "".join(f"{name}: {value}\r\n" for name, value in said.items())

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while asked := await reader.readuntil(b"\r\n\r\n"):
                size = re.search(rb"content-length: (\d+)", asked, re.IGNORECASE)
                await reader.readexactly(int(size[1]) if size else 0)
                writer.write(f"HTTP/1.1 200 OK\r\n{head}\r\n".encode() + body)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"


async def asked(clock: FakeClock, kind: str, body: bytes, **headers: str) -> tuple[Outcome, str]:
    """What comes of a task whose model answers with this, and what the failures of its requests say."""
    async with answering(body, **headers) as url, served([]) as place, priced(system={"clock": clock}) as rt:
        join(rt, kind, place.at(url))
        outcome = await ends(clock, await rt.submit("it", "go", attempts=1))
        failed = await data_of(rt, "model.failed")
        return outcome, str([outcome.error, failed])


@cache
def packed_bomb() -> bytes:
    return gzip.compress(answer("x" * 4 * MOST_BYTES), 1)


@pytest.mark.rule("input.answers")
@kinds
async def test_an_answer_that_is_too_long_is_read_no_further(kind: str, clock: FakeClock):
    outcome, why = await asked(clock, kind, answer("x" * MOST_BYTES))
    assert not outcome.ok
    assert LONG in why


@pytest.mark.rule("input.answers")
@kinds
async def test_an_answer_that_unpacks_to_more_than_anyone_says_is_unpacked_no_further(kind: str, clock: FakeClock):
    outcome, why = await asked(clock, kind, packed_bomb(), content_encoding="gzip")
    assert not outcome.ok
    assert LONG in why


@pytest.mark.rule("input.answers")
@kinds
@pytest.mark.parametrize("depth", [MOST_DEPTH, 100_000])
async def test_an_answer_that_is_too_deep_is_not_parsed(kind: str, depth: int, clock: FakeClock):
    outcome, why = await asked(clock, kind, answer("hello")[:-1] + b', "a": ' + b"[" * depth + b"]" * depth + b"}")
    assert not outcome.ok
    assert DEEP in why


def calls(count: int, arguments: str = "{}") -> list[dict[str, Any]]:
    function = {"name": "f", "arguments": arguments}
    return [{"id": str(number), "type": "function", "function": function} for number in range(count)]


def with_more(more: str) -> bytes:
    return answer("hello")[:-1] + f', "more": {more}}}'.encode()


TOO_MUCH = {
    "text": (answer("x" * 7_000_000), "has a text of more than 6 MB"),
    "newlines": (answer("\n" * 400_000), "has more than 300,000 quotes, commas, brackets and backslashes"),
    "escapes": (answer("\u00e9" * 400_000), "has more than 300,000 quotes"),
    "numbers": (with_more(f"[{'1,' * 400_000}1]"), "has more than 300,000 quotes"),
    "objects": (with_more(f"[{'{},' * 200_000}1]"), "has more than 300,000 quotes"),
    "arguments": (answer("", tool_calls=calls(1, f"[{'1,' * 400_000}1]")), "has more than 300,000 quotes"),
    "calls": (answer("", tool_calls=calls(20_000)), "has more than 300,000 quotes"),
    "choices": (answer("hello").replace(b'"choices": [', b'"choices": [' + b"{}, " * 60_000), "more than 256 parts"),
}


@pytest.mark.rule("input.answers")
@pytest.mark.parametrize("what", TOO_MUCH)
async def test_an_answer_that_would_take_long_to_parse_is_not_parsed(what: str):
    body, why = TOO_MUCH[what]
    with pytest.raises(UnreadableBody, match=why):
        await read_bounded(body, content_type="application/json")


@pytest.mark.rule("input.answers")
@kinds
async def test_no_kind_of_agent_parses_what_takes_long(kind: str, clock: FakeClock):
    body = answer("hello").replace(b'"choices": [', b'"choices": [' + b"{}, " * 300)
    outcome, told = await asked(clock, kind, body)
    assert not outcome.ok
    assert "its answer has a list of more than 256 parts" in told


def events(*datas: str, end: str = "\n\n") -> bytes:
    return "".join(f"data: {data}{end}" for data in datas).encode()


STREAMS = {
    "lines": (b"data: {}\n" * 100_000, "has an event of more than 12 MB, or of too many lines"),
    "long": (events('{"a": "' + "x" * 13_000_000), "has an event of more than 12 MB"),
    "numbers": (events(f"[{'1,' * 500_000}1]"), "has more than 300,000 quotes"),
    "choices": (events('{"choices": [' + "{}, " * 50_000 + "{}]}"), "has a list of more than 256 parts"),
    "nested": (events('{"response": {"output": [' + "{}, " * 300 + "{}]}}"), "has a list of more than 256 parts"),
}


async def read_bounded(body: bytes, content_type: str = "text/event-stream") -> bytes:
    """Read an answer as clients do, with the bounds."""
    async with answering(body, content_type=content_type) as url, httpx.AsyncClient() as client:
        with bounded(client):
            async with client.stream("POST", url) as response:
                return b"".join([piece async for piece in response.aiter_bytes()])


@pytest.mark.rule("input.answers")
@pytest.mark.parametrize("what", STREAMS)
async def test_an_event_of_a_stream_that_would_take_long_to_read_is_not_handed_on(what: str):
    body, why = STREAMS[what]
    with pytest.raises(UnreadableBody, match=why):
        await read_bounded(body)


@pytest.mark.rule("input.answers")
@pytest.mark.parametrize("end", ["\n\n", "\r\n\r\n", "\r\r", "\nid: 5\n\n"])
async def test_a_stream_of_many_events_is_read_as_it_is_and_others_have_their_turn(end: str):
    body = events(*(f'{{"number": {number}, "text": "a, [b"}}' for number in range(20_000)), end=end)
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    beside = asyncio.create_task(others())
    assert await read_bounded(body) == body
    beside.cancel()
    assert turns > 20_000 * len(end.splitlines()) / 128


@pytest.mark.rule("input.answers")
@kinds
async def test_an_answer_that_was_packed_is_read_as_ever(kind: str, clock: FakeClock):
    said = 'brackets [{"' * 200
    outcome, _ = await asked(clock, kind, gzip.compress(answer(said)), content_encoding="gzip")
    assert outcome.value == said


@pytest.mark.rule("input.answers")
@pytest.mark.parametrize(
    ("packed", "why"),
    [("br", "compressed in a way that remit did not ask for"), ("gzip", "declared as compressed and is not")],
)
async def test_an_answer_that_is_packed_in_another_way_is_refused(packed: str, why: str, clock: FakeClock):
    outcome, told = await asked(clock, "native", answer("hello"), content_encoding=packed)
    assert not outcome.ok
    assert why in told
