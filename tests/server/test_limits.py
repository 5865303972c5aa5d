"""How much of a server one caller gets, and what a connection may send."""

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest

from remit.adapters.guard import HEAD, HEADERS
from remit.errors import TooMany
from remit.server.app import ServerSettings
from remit.server.limits import FairTurns, RateLimits, RequestRates
from remit.server.serve import PortServer, listening
from remit.server.strict import BodyLimits
from server.serving import app_of, client
from teams import team

pytestmark = pytest.mark.anyio


@pytest.mark.rule("http.rate")
def test_a_key_and_a_workspace_have_a_rate_and_a_burst():
    now = [0.0]
    rates = RequestRates(RateLimits(access=1, workspace=3), lambda: now[0])
    for _ in range(2):
        rates.admit("ann", "one")
    with pytest.raises(TooMany, match="this key") as no:
        rates.admit("ann", "one")
    assert no.value.seconds == 1
    for access in ("bob", "cid", "dan", "eve"):
        rates.admit(access, "one")
    with pytest.raises(TooMany, match="this workspace"):
        rates.admit("fay", "one")
    rates.admit("ann", "two")
    now[0] = 1.0
    rates.admit("ann", "one")
    with pytest.raises(TooMany):
        rates.admit("ann", "one")


@pytest.mark.rule("http.rate")
async def test_too_many_requests_are_told_when_to_come_again():
    with team() as rt:
        app = app_of(rt, settings=ServerSettings(rates=RateLimits(access=0.001)))
        async with client(app) as http:
            assert (await http.get("/v1/tasks")).status_code == 200
            got = await http.get("/v1/tasks")
            assert (got.status_code, got.json()["code"], got.json()["retryable"]) == (429, "too-many", True)
            assert int(got.headers["retry-after"]) > 1


@pytest.mark.rule("http.fair")
async def test_a_burst_of_one_workspace_delays_another_by_one_turn():
    turns, done = FairTurns(RateLimits(turns=4, least=2)), list[str]()
    release = asyncio.Semaphore(0)

    async def request(workspace: str, name: str) -> None:
        async with turns.turn(workspace):
            await release.acquire()
            done.append(name)

    async with asyncio.TaskGroup() as group:
        for number in range(20):
            group.create_task(request("noisy", f"noisy {number}"))
        await anyio.wait_all_tasks_blocked()
        for number in range(3):
            group.create_task(request("quiet", f"quiet {number}"))
        await anyio.wait_all_tasks_blocked()
        for _ in range(23):
            release.release()
            await anyio.wait_all_tasks_blocked()
    assert {f"quiet {number}" for number in range(3)} <= {*done[:9]}, done
    assert len(done) == 23


@pytest.mark.rule("http.fair")
async def test_a_workspace_has_all_turns_again_a_second_after_the_last_request_of_another():
    now = [0.0]
    turns, held, go = FairTurns(RateLimits(turns=64, beside=2), lambda: now[0]), list[int](), asyncio.Event()

    async def request(number: int) -> None:
        async with turns.turn("one"):
            held.append(number)
            await go.wait()

    async with turns.turn("other"):
        pass
    async with asyncio.TaskGroup() as group:
        for number in range(10):
            group.create_task(request(number))
        await anyio.wait_all_tasks_blocked()
        assert len(held) == 4  # the least that a workspace has
        now[0] = 2.0
        group.create_task(request(10))
        await anyio.wait_all_tasks_blocked()
        assert len(held) == 11
        go.set()


@pytest.mark.rule("http.fair")
async def test_a_workspace_that_is_alone_has_all_turns_and_waits_only_so_long():
    turns = FairTurns(RateLimits(turns=3, waiting=1))
    held, go = list[int](), asyncio.Event()

    async def request(number: int) -> None:
        async with turns.turn("one"):
            held.append(number)
            await go.wait()

    async with asyncio.TaskGroup() as group:
        waiting = [group.create_task(request(number)) for number in range(4)]
        await anyio.wait_all_tasks_blocked()
        assert held == [0, 1, 2]
        with pytest.raises(TooMany, match="wait already"):
            async with turns.turn("one"):
                raise AssertionError
        waiting[3].cancel()
        await anyio.wait_all_tasks_blocked()
        another = group.create_task(request(5))
        go.set()
        await another
    assert held == [0, 1, 2, 5]


@asynccontextmanager
async def on_a_port(*, head_seconds: float = 60, body: int = 2**21) -> AsyncIterator[int]:
    with team() as rt, listening("127.0.0.1", 0) as socket:
        settings = ServerSettings(body=BodyLimits(size=body))
        server = PortServer(app_of(rt, settings=settings), head_seconds=head_seconds)
        serving = asyncio.create_task(server.serve([socket]))
        yield socket.getsockname()[1]
        server.end()
        await serving


async def told(port: int, *parts: bytes, until_closed: bool = True) -> bytes:
    """What the server answers to these bytes, until it closes the connection or has answered once."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    got = b""
    try:
        with anyio.fail_after(60):
            for part in parts:
                writer.write(part)
                await writer.drain()
            while data := await reader.read(65_536):
                got += data
                if not until_closed and b"\r\n\r\n" in got:
                    break
    except ConnectionError:
        pass
    writer.close()
    return got


@pytest.mark.rule("http.head")
async def test_a_head_has_a_size_a_number_of_lines_and_a_time():
    ask = b"GET /healthz HTTP/1.1\r\nhost: x\r\n"
    async with on_a_port() as port:
        assert b" 200 OK" in await told(port, ask + b"x: 1  \t \r\n\r\n", until_closed=False)
        many = b"".join(b"h%d: 1\r\n" % number for number in range(HEADERS))
        assert b" 431 " in await told(port, ask + many + b"\r\n")
        assert b" 431 " in await told(port, ask + b"x: " + b"y" * HEAD + b"\r\n\r\n")
        assert b" 431 " in await told(port, b"GET /" + b"y" * HEAD + b" HTTP/1.1\r\n\r\n")
        assert b" 400 " in await told(port, b"\x16\x03\x01\x02\x00")
        endless = [ask + b"x: ", *([b"y" * 65_536] * 100)]
        assert b" 200 " not in await told(port, *endless)
    async with on_a_port(head_seconds=0.01) as port:
        assert b" 408 " in await told(port, b"GET /heal")
        assert await told(port) == b""


@pytest.mark.rule("http.head")
async def test_white_space_after_a_key_does_not_count_and_a_large_body_gets_its_answer():
    head = (
        b"POST /v1/tasks HTTP/1.1\r\nhost: x\r\nauthorization: Bearer key-ann \t\r\ncontent-type: application/json\r\n"
    )
    async with on_a_port(body=1_000) as port:
        got = await told(port, head + b"content-length: 2\r\n\r\n{}", until_closed=False)
        assert b" 422 " in got, got
        chunk = b"10000\r\n" + b"x" * 65_536 + b"\r\n"
        got = await told(
            port, head + b"transfer-encoding: chunked\r\n\r\n", *[chunk] * 50, b"0\r\n\r\n", until_closed=False
        )
        assert b" 413 " in got, got


@pytest.mark.rule("http.garbage")
async def test_a_server_keeps_collections_of_garbage_short_while_it_serves():
    usual = gc.get_threshold()
    async with on_a_port() as port:
        await told(port, b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n", until_closed=False)
        assert gc.get_freeze_count() > 1_000
        assert gc.get_threshold() != usual
    assert gc.get_threshold() == usual
