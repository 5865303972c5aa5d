"""Live events: a reader gets every event once and in order, from wherever it begins, or is told what is missing."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress
from functools import partial
from socket import socket
from typing import Any

import anyio
import pytest

from engine.talking import Talk
from remit import Runtime, Turn, Workspace
from remit.core.recovery import ModelTry
from remit.core.times import SECOND
from remit.engine.ground import EXPECTED
from remit.errors import Conflict, TooMany, Unauthorised
from remit.ports.models import Hear, ModelAnswer, TextChunk
from remit.runtime.workspace import opening_of
from remit.server.app import Server
from remit.server.feed import WORDS_EVERY, FeedLimits, Feeds, StreamFilter, StreamReader
from remit.server.live import BEAT, STALLED, EventStream
from remit.server.serve import PortServer, listening
from remit.testing import FakeClock
from server.serving import app_of, client
from teams import echo, team

pytestmark = pytest.mark.anyio
PATIENCE = 30


@pytest.fixture
def rt(clock: FakeClock):
    with team(clock=clock, keep_days=None) as runtime:
        runtime.agent(echo)
        yield runtime


def frames(text: bytes) -> list[dict[str, Any]]:
    """Read server-sent events as a browser does."""
    found = []
    for block in text.decode().split("\n\n")[:-1]:
        frame: dict[str, Any] = {}
        for line in block.split("\n"):
            name, _, value = line.partition(": ")
            if name:
                frame[name] = json.loads(value) if name == "data" else value
        found.append(frame)
    return found


async def write(workspace: Workspace, count: int, key: str = "k") -> None:
    for number in range(count):
        await workspace.context().set("notes", f"{key}{number}", number)


async def read_until(reader: StreamReader, seq: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    with anyio.fail_after(PATIENCE):
        while reader.seq < seq:
            page = await reader.page()
            found += frames(page)
            if not page and reader.seq < seq:
                await reader.changed.wait()
    return found


async def head(workspace: Workspace) -> int:
    return await workspace.journal.read(lambda view: view.head().seq)


@pytest.mark.rule("http.live")
@pytest.mark.parametrize("after", [0, 3, 120, 249, 250])
async def test_a_reader_gets_every_event_once_from_where_it_begins(rt: Runtime, after: int):
    ws, feeds = rt.workspace, Feeds()
    await write(ws, 250)
    async with feeds.reader(ws, after=after) as reader:
        await write(ws, 30, "later")
        seen = await read_until(reader, await head(ws))
    journal = await ws.journal.history(after=after)
    assert [int(frame["id"]) for frame in seen] == [event.seq for event in journal]
    assert [frame["event"] for frame in seen] == [event.kind for event in journal]
    assert [frame["data"]["seq"] for frame in seen] == [event.seq for event in journal]


@pytest.mark.rule("http.live")
async def test_a_reader_that_falls_behind_what_is_kept_reads_from_the_store(rt: Runtime):
    ws, both = rt.workspace, Feeds(FeedLimits(kept=20))
    async with both.reader(ws) as quick, both.reader(ws) as slow:
        start = quick.seq
        for part in range(5):
            await write(ws, 50, f"p{part}-")
            await read_until(quick, await head(ws))
        assert slow.feed.kept_after(slow.seq) is None  # it is behind
        seen = await read_until(slow, await head(ws))
    assert [int(frame["id"]) for frame in seen] == [*range(start + 1, await head(ws) + 1)]


@pytest.mark.rule("http.live-filter")
async def test_a_filtered_reader_is_told_how_far_it_has_come(rt: Runtime):
    ws = rt.workspace
    async with Feeds(FeedLimits(skipped=40)).reader(ws, StreamFilter(kinds=frozenset(("task.completed",)))) as reader:
        start = reader.seq
        await write(ws, 100)
        await rt.run("echo", "hi")
        seen = await read_until(reader, await head(ws))
    assert [frame["event"] for frame in seen] == ["cursor", "cursor", "task.completed"]
    assert [int(frame["id"]) for frame in seen[:2]] == [start + 40, start + 80]


@pytest.mark.rule("http.live-gap")
@pytest.mark.parametrize("wanted", [StreamFilter(), StreamFilter(kinds=frozenset(("entry.set",)))])
async def test_a_reader_who_was_away_for_longer_than_the_journal_is_told_what_was_removed(
    rt: Runtime, clock: FakeClock, wanted: StreamFilter
):
    ws = rt.workspace
    for _ in range(4):
        await rt.run("echo", "old")
    last_seen = 2
    for _ in range(3):
        clock.advance(2 * 86_400)
        await ws.prune(1)
    await write(ws, 3)
    async with Feeds().reader(ws, wanted, after=last_seen) as reader:
        seen = await read_until(reader, await head(ws))
    gaps = [frame for frame in seen if frame["event"] == "gap"]
    assert gaps
    missing = {number for gap in gaps for number in range(gap["data"]["first"], gap["data"]["last"] + 1)}
    there = {event.seq for event in await ws.journal.history(after=last_seen)}
    assert missing | there >= {*range(last_seen + 1, await head(ws) + 1)}
    assert not missing & there
    assert [frame for frame in seen if frame["event"] not in ("gap", "cursor")]
    async with client(app_of(rt)) as http:
        page = (await http.get(f"/v1/events?after={last_seen}")).json()
    assert page["gaps"] == [[gap["data"]["first"], gap["data"]["last"]] for gap in gaps]
    assert [int(frame["id"]) for frame in seen] == sorted(int(frame["id"]) for frame in seen)


@pytest.mark.rule("http.live-beyond")
async def test_an_id_beyond_the_journal_is_refused(rt: Runtime):
    await write(rt.workspace, 3)
    with pytest.raises(Conflict, match="the journal ends at 3; was the store restored from a backup"):
        async with Feeds().reader(rt.workspace, after=4):
            pass


@pytest.mark.rule("http.live-many")
async def test_a_workspace_has_a_limited_number_of_streams(rt: Runtime):
    both = Feeds(FeedLimits(streams=2))
    async with both.reader(rt.workspace), both.reader(rt.workspace):
        with pytest.raises(TooMany, match="2 open streams"):
            async with both.reader(rt.workspace):
                pass
    async with both.reader(rt.workspace):
        pass


class Browser:
    """A reader at the other end of a stream: takes what is sent, or nothing, and leaves when told."""

    def __init__(self) -> None:
        self.got = b""
        self.status = 0
        self.arrived = asyncio.Event()
        self.gone = asyncio.Event()
        self.reads = asyncio.Event()
        self.reads.set()

    async def receive(self) -> dict[str, Any]:
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        await self.reads.wait()
        if message["type"] == "http.response.start":
            self.status = message["status"]
        else:
            self.got += message["body"]
        self.arrived.set()

    async def until(self, word: bytes, count: int = 1) -> None:
        with anyio.fail_after(PATIENCE):
            while self.got.count(word) < count:
                self.arrived.clear()
                await self.arrived.wait()


async def valid() -> None:
    """Any key counts."""


async def streaming(rt: Runtime, feeds: Feeds, browser: Browser, group: anyio.abc.TaskGroup, **how: Any) -> None:
    opened = AsyncExitStack()
    reader = await opened.enter_async_context(feeds.reader(rt.workspace, access=how.get("access", "")))
    stream = EventStream(reader, opened, opening_of(rt.workspace).clock, how.get("is_valid", valid))
    group.start_soon(stream, {"type": "http"}, browser.receive, browser.send)
    await browser.until(b"retry: 1000")


@pytest.fixture
async def group() -> AsyncIterator[anyio.abc.TaskGroup]:
    async with anyio.create_task_group() as group:
        with anyio.fail_after(PATIENCE):
            yield group


@pytest.mark.rule("http.live-beat")
async def test_a_quiet_stream_shows_that_it_is_alive_and_where_it_is(rt: Runtime, clock: FakeClock, group: Any):
    feeds, browser = Feeds(), Browser()
    await streaming(rt, feeds, browser, group)
    await write(rt.workspace, 2)
    await browser.until(b"event: entry.set", 2)
    clock.advance(BEAT)
    await browser.until(b": \nid: 2\n\n")
    clock.advance(BEAT)
    await browser.until(b": \nid: 2\n\n", 2)
    feeds.end()


@pytest.mark.rule("http.live-stalled")
async def test_a_reader_that_takes_nothing_is_let_go_and_holds_up_nobody(rt: Runtime, clock: FakeClock, group: Any):
    feeds, stalled, other = Feeds(), Browser(), Browser()
    await streaming(rt, feeds, stalled, group)
    await streaming(rt, feeds, other, group)
    stalled.reads.clear()
    await write(rt.workspace, 5)
    await other.until(b"event: entry.set", 5)
    clock.advance(STALLED)
    other.gone.set()  # the group ends when both streams have ended


@pytest.mark.rule("http.live-stalled")
async def test_the_connection_of_a_reader_that_takes_nothing_is_cut_with_what_waits_in_it(
    rt: Runtime, clock: FakeClock, caplog: pytest.LogCaptureFixture
):
    loop, size, count = asyncio.get_running_loop(), 10_000, 200
    with listening("127.0.0.1", 0) as own, socket() as reader, anyio.fail_after(PATIENCE):
        server = PortServer(app_of(rt))
        serving = asyncio.create_task(server.serve([own]))
        reader.setblocking(False)
        await loop.sock_connect(reader, own.getsockname())
        head = "host: x\r\nauthorization: Bearer key-ann\r\naccept: text/event-stream\r\n"
        await loop.sock_sendall(reader, f"GET /v1/events HTTP/1.1\r\n{head}\r\n".encode())
        got = len(await loop.sock_recv(reader, 1_000))
        for number in range(count):
            await rt.workspace.context().set("notes", f"k{number}", "x" * size)
        while server.server_state.connections:
            await asyncio.sleep(0.01)
            clock.advance(STALLED)
        with suppress(ConnectionResetError):
            while part := await loop.sock_recv(reader, 65_536):
                got += len(part)
        assert got < size * count / 2
        server.end()
        await serving
    assert not caplog.records


@pytest.mark.rule("http.live-revoked")
async def test_a_stream_ends_when_its_key_has_expired(rt: Runtime, clock: FakeClock, group: Any):
    is_expired = False

    async def is_valid() -> None:
        if is_expired:
            raise Unauthorised("this needs a valid key")

    browser = Browser()
    await streaming(rt, Feeds(), browser, group, is_valid=is_valid)
    clock.advance(BEAT)
    await browser.until(b": \nid: 0")
    is_expired = True
    clock.advance(BEAT)
    await browser.until(b"event: revoked")


async def test_streams_end_when_the_server_stops_and_the_last_reader_ends_the_feed(rt: Runtime, group: Any):
    feeds, browsers = Feeds(), [Browser() for _ in range(60)]
    for browser in browsers:
        await streaming(rt, feeds, browser, group)
    await write(rt.workspace, 1)
    for browser in browsers:
        await browser.until(b"event: entry.set")
    feeds.end()


async def asked(app: Server, browser: Browser, query: str = "", **headers: str) -> None:
    """Ask for a stream, as a browser does."""
    sent = {"authorization": "Bearer key-ann", "accept": "text/event-stream", **headers}
    pairs = [(name.replace("_", "-").encode(), value.encode()) for name, value in sent.items()]
    scope = {"type": "http", "method": "GET", "path": "/v1/events", "query_string": query.encode(), "headers": pairs}
    await app(scope, browser.receive, browser.send)


@pytest.mark.rule("http.live")
@pytest.mark.parametrize(
    ("query", "headers"), [("after=2", {}), ("", {"last_event_id": "2"}), ("after=9", {"last_event_id": "2"})]
)
async def test_a_stream_goes_on_after_the_last_event_that_its_reader_has(
    rt: Runtime, group: Any, query: str, headers: dict[str, str]
):
    app, browser = app_of(rt), Browser()
    await write(rt.workspace, 4)
    group.start_soon(partial(asked, app, browser, query, **headers))
    await browser.until(b"id: 4")
    await write(rt.workspace, 1, "later")
    await browser.until(b"id: 5")
    assert browser.status == 200
    assert [frame["id"] for frame in frames(browser.got) if "id" in frame] == ["3", "4", "5"]
    app.end_streams()


@pytest.mark.parametrize(
    ("query", "headers", "status", "says"),
    [
        ("limit=5", {}, 422, "a stream has no limit"),
        ("", {"last_event_id": "-1"}, 422, "the number of an event"),
        ("", {"last_event_id": "7"}, 409, "was the store restored from a backup"),
        ("kind=nothing", {}, 422, "kinds of events"),
        ("words=perhaps", {}, 422, "words"),
    ],
)
async def test_a_stream_that_cannot_be_is_a_problem_and_not_an_empty_stream(
    rt: Runtime, query: str, headers: dict[str, str], status: int, says: str
):
    browser = Browser()
    await asked(app_of(rt), browser, query, **headers)
    assert browser.status == status
    assert says in json.loads(browser.got)["detail"]


@pytest.mark.rule("http.live-words")
async def test_words_of_models_come_at_most_ten_times_a_second_before_the_answer_that_they_are_of(
    rt: Runtime, clock: FakeClock, group: Any
):
    said, go_on = asyncio.Event(), asyncio.Event()

    class Slow(Talk):
        async def send(self, attempt: ModelTry, most: int, hear: Hear | None) -> ModelAnswer:
            assert hear is not None, "somebody listens"
            hear("one ")
            hear("two")
            said.set()
            await go_on.wait()
            return await super().send(attempt, most, hear)

    talk = Slow("one two")

    @rt.agent
    async def coder(turn: Turn) -> str:
        return (await turn.model(talk.call("d", "big"))).text

    app, browser, deaf = app_of(rt), Browser(), Browser()
    group.start_soon(partial(asked, app, browser, "words=true&agent=coder"))
    group.start_soon(partial(asked, app, deaf, "words=true&agent=another"))
    await browser.until(b"retry: 1000")
    await deaf.until(b"retry: 1000")
    running = asyncio.ensure_future(rt.run("coder", "x"))
    await said.wait()
    await browser.until(b"event: task.started")
    assert b"event: words" not in browser.got
    clock.advance(WORDS_EVERY)
    await browser.until(b"event: words")
    go_on.set()
    await running
    await browser.until(b"event: task.completed")
    (words,) = (frame for frame in frames(browser.got) if frame.get("event") == "words")
    assert "id" not in words
    assert (words["data"]["agent"], words["data"]["text"], words["data"]["begins"]) == ("coder", "one two", True)
    assert browser.got.index(b"event: words") < browser.got.index(b"event: model.answered")
    assert b"event: words" not in deaf.got
    app.end_streams()


@pytest.mark.rule("http.live-words")
async def test_nobody_is_streamed_to_a_while_after_the_last_reader_of_words_has_left(rt: Runtime, clock: FakeClock):
    heard = []

    class Asked(Talk):
        async def send(self, attempt: ModelTry, most: int, hear: Hear | None) -> ModelAnswer:
            heard.append(hear)
            return await super().send(attempt, most, hear)

    talk = Asked("one", "two")

    @rt.agent
    async def coder(turn: Turn) -> str:
        return (await turn.model(talk.call("d", "big"))).text

    feeds = Feeds()
    async with feeds.reader(rt.workspace, words=True):
        await rt.run("coder", "x")
    clock.advance(EXPECTED / SECOND)
    await rt.run("coder", "y")
    assert [one is not None for one in heard] == [True, False]


@pytest.mark.rule("http.live-words")
async def test_words_of_an_answer_that_is_whole_are_not_sent_after_it(rt: Runtime, clock: FakeClock):
    chunks, talk = list[TextChunk](), Talk("one", "two")

    @rt.agent
    async def coder(turn: Turn) -> str:
        return "".join([(await turn.model(talk.call(turn.task + str(one), "big"))).text for one in range(2)])

    rt.workspace.tasks.words(chunks.append)
    async with Feeds().reader(rt.workspace, words=True) as reader:
        assert reader.words is not None
        await rt.run("coder", "x")
        first, second = chunks
        reader.words.hear(first._replace(text="one", begins=False))  # from another process, a little late
        await read_until(reader, await rt.workspace.journal.read(lambda view: view.head().seq))
        for late in (first, second):
            reader.words.hear(late._replace(text="late"))
        reader.words.hear(first._replace(text="of the next request", began=clock.now() + 1))
        await asyncio.sleep(0)
        clock.advance(WORDS_EVERY)
        found = frames(await reader.page())
    assert [frame["data"]["text"] for frame in found if frame["event"] == "words"] == ["of the next request"]
