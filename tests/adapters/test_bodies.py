"""What a provider may answer at most, unpacked and in depth, for agents of every kind."""

import asyncio
import gzip
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from adapters.places import KEY, KEY_NAME, KINDS, data_of, join, priced, served
from engine.helping import ends
from remit import Outcome
from remit.adapters.bodies import MOST_BYTES, MOST_DEPTH
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
        outcome = await ends(clock, await rt.submit("it", "go"))
        failed = await data_of(rt, "model.failed")
        return outcome, str([outcome.error, failed])


@pytest.mark.rule("input.answers")
@kinds
async def test_an_answer_that_is_too_long_is_read_no_further(kind: str, clock: FakeClock):
    outcome, why = await asked(clock, kind, answer("x" * MOST_BYTES))
    assert not outcome.ok
    assert LONG in why


@pytest.mark.rule("input.answers")
@kinds
async def test_an_answer_that_unpacks_to_more_than_anyone_says_is_unpacked_no_further(kind: str, clock: FakeClock):
    outcome, why = await asked(clock, kind, gzip.compress(answer("x" * 4 * MOST_BYTES)), content_encoding="gzip")
    assert not outcome.ok
    assert LONG in why


@pytest.mark.rule("input.answers")
@kinds
@pytest.mark.parametrize("depth", [MOST_DEPTH, 100_000])
async def test_an_answer_that_is_too_deep_is_not_parsed(kind: str, depth: int, clock: FakeClock):
    outcome, why = await asked(clock, kind, answer("hello")[:-1] + b', "a": ' + b"[" * depth + b"]" * depth + b"}")
    assert not outcome.ok
    assert DEEP in why


@pytest.mark.rule("input.answers")
@kinds
async def test_an_answer_that_was_packed_is_read_as_ever(kind: str, clock: FakeClock):
    said = 'brackets [{"' * 200
    outcome, _ = await asked(clock, kind, gzip.compress(answer(said)), content_encoding="gzip")
    assert outcome.value == said


@pytest.mark.rule("input.answers")
@pytest.mark.parametrize(
    ("packed", "why"), [("br", "packed in a way that it was not asked for"), ("gzip", "said to be packed and is not")]
)
async def test_an_answer_that_is_packed_in_another_way_is_refused(packed: str, why: str, clock: FakeClock):
    outcome, told = await asked(clock, "native", answer("hello"), content_encoding=packed)
    assert not outcome.ok
    assert why in told
