"""The words of models in another process, on PostgreSQL: heard while somebody listens, sent to nobody else."""

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import ExitStack, asynccontextmanager, closing
from functools import partial
from typing import Any

import anyio
import psycopg
import pytest

from engine.talking import Talk
from remit import Runtime, Turn
from remit.core.recovery import ModelTry
from remit.engine.ground import Ears
from remit.ports.models import Hear, ModelAnswer, TextChunk
from remit.runtime.workspace import opening_of
from remit.stores.postgres.database import PostgresDatabase
from remit.stores.postgres.words import CHANNEL, MOST, Courier, WordsPace, WordsSender
from server.serving import app_of
from server.test_live_events import Browser, asked, frames
from teams import team
from workers.crew import PATIENCE, as_url, until

pytestmark = pytest.mark.anyio
LONG = "\x01ß🙂" * 3_000


class Says(Talk):
    """Says its answer word by word if anyone listens, and notes whether anyone does."""

    def __init__(self, *script: str) -> None:
        super().__init__(*script)
        self.heard: list[bool] = []

    async def send(self, attempt: ModelTry, most: int, hear: Hear | None) -> ModelAnswer:
        reply = await super().send(attempt, most, hear)
        self.heard.append(hear is not None)
        if hear is not None:
            for word in reply.text.split(" "):
                hear(f"{word} ")
        return reply


def ears(rt: Runtime) -> Ears:
    return opening_of(rt.workspace).ground.ears


@asynccontextmanager
async def two(address: str, talk: Talk) -> AsyncGenerator[tuple[Runtime, Runtime]]:
    """A process without hands, and one that works for it."""

    async def coder(turn: Turn) -> str:
        return (await turn.model(talk.call(turn.task, "big"))).text

    with ExitStack() as stack:
        reader, worker = (stack.enter_context(team(as_url(address), hands=hands)) for hands in (0, 2))
        for rt in (reader, worker):
            rt.agent("coder")(coder)
        serving = asyncio.create_task(worker.serve())
        try:
            with anyio.fail_after(PATIENCE):
                yield reader, worker
        finally:
            serving.cancel()
            await asyncio.wait([serving])


class Raw:
    """A connection that listens to the channel of words, and can say anything there."""

    def __init__(self, address: str) -> None:
        self.connection = psycopg.connect(address, autocommit=True)
        self.connection.execute(f"LISTEN {CHANNEL}")  # pyright: ignore[reportArgumentType, reportCallIssue]
        self.close: Callable[[], None] = self.connection.close

    def say(self, text: str, channel: str = CHANNEL) -> None:
        self.connection.execute("SELECT pg_notify(%s, %s)", (channel, text))

    def until(self, last: str) -> list[str]:
        """Return what came before this message, which the caller has sent."""
        found: list[str] = []
        for notice in self.connection.notifies(timeout=PATIENCE):
            if notice.payload == last:
                return found
            found.append(notice.payload)
        raise AssertionError(f"{last} did not arrive")


@pytest.mark.rule("words.elsewhere")
async def test_a_process_hears_the_words_of_models_in_another(address: str):
    talk, heard = Says("one two three", "four", "five"), list[TextChunk]()
    async with two(address, talk) as (reader, worker):
        stop = reader.workspace.tasks.words(heard.append)
        await until(lambda: ears(worker) or None)
        task = await reader.submit("coder", "x")
        assert await task.result() == "one two three"
        await until(lambda: "".join(one.text for one in heard) == "one two three " or None)
        assert [one.begins for one in heard] == [True, *[False] * (len(heard) - 1)]
        assert {one[:2] + one[4:] for one in heard} == {("coder", task.id, task.id, *heard[0][5:])}
        stop()
        stop()
        assert not ears(reader)


@pytest.mark.rule("words.elsewhere")
async def test_without_a_listener_no_model_is_asked_to_stream_and_nothing_is_sent(address: str):
    talk = Says("one", "two")
    with closing(Raw(address)) as raw:
        async with two(address, talk) as (reader, _):
            assert await (await reader.submit("coder", "x")).result() == "one"
            raw.say("end")
            assert await asyncio.to_thread(raw.until, "end") == []
    assert talk.heard == [False]


@pytest.mark.rule("words.elsewhere")
async def test_a_process_sends_nothing_to_itself_and_hears_its_own_words_once(address: str):
    talk, heard = Says("one two"), list[TextChunk]()
    with closing(Raw(address)) as raw:
        async with two(address, talk) as (_, worker):
            stop = worker.workspace.tasks.words(heard.append)
            raw.connection.execute("LISTEN remit")
            await asyncio.to_thread(lambda: next(raw.connection.notifies(timeout=PATIENCE)))
            assert await worker.run("coder", "x") == "one two"
            raw.say("end")
            found = await asyncio.to_thread(raw.until, "end")
            assert [one for one in found if one.startswith("{")] == []
            stop()
    assert [one.text for one in heard] == ["", "one ", "two "]


@pytest.mark.rule("words.elsewhere")
async def test_a_stream_of_a_server_without_hands_has_the_words_of_workers_elsewhere(address: str):
    browser, go_on = Browser(), asyncio.Event()

    class Waits(Says):
        async def send(self, attempt: ModelTry, most: int, hear: Hear | None) -> ModelAnswer:
            reply = await super().send(attempt, most, hear)
            await go_on.wait()
            return reply

    talk = Waits("one two")
    async with two(address, talk) as (reader, worker), anyio.create_task_group() as group:
        app = app_of(reader)
        group.start_soon(partial(asked, app, browser, "words=true&agent=coder"))
        await until(lambda: ears(worker) or None)
        task = await reader.submit("coder", "x")
        await browser.until(b"event: words")
        go_on.set()
        await task.result()
        first = next(frame for frame in frames(browser.got) if frame.get("event") == "words")
        assert "id" not in first
        assert (first["data"]["agent"], first["data"]["begins"]) == ("coder", True)
        app.end_streams()


@pytest.mark.rule("words.hostile")
async def test_what_is_no_message_of_this_workspace_is_ignored(address: str, caplog: pytest.LogCaptureFixture):
    heard, good = list[str](), dict.fromkeys(("by", "agent", "task", "text", "run", "session"), "x")
    with closing(PostgresDatabase(address)) as database, closing(Raw(address)) as raw:
        line, broken = database.words("w"), database.words("w")

        def fails(_chunk: TextChunk) -> None:
            raise ValueError("no")

        stops = [broken.hear(fails), line.hear(lambda chunk: heard.append(chunk.text))]
        fits: dict[str, Any] = {**good, "workspace": line.workspace, "begins": False}
        raw.connection.execute("LISTEN remit")
        await asyncio.to_thread(lambda: next(raw.connection.notifies(timeout=PATIENCE)))  # it listens
        wrong = [{**fits, "workspace": "another"}, {**fits, "begins": 1}, {**fits, "text": None}, {**fits, "run": []}]
        wrong += [{**fits, "by": line.name, "text": "own"}, good, {**fits, "text": "\ud800"}]
        for text in ("", "nonsense", "[1]", "[" * 7_000, "null", *map(json.dumps, wrong)):
            raw.say(text)
        for text in ("words ", "words x", f"words {line.workspace} {'y' * 5_000}"):
            raw.say(text, "remit")
        raw.say(json.dumps({**fits, "text": "good"}))
        await until(lambda: "good" in heard or None)
        for stop in stops:
            stop()
    assert heard == ["good"]
    assert "a listener to the words of models failed: ValueError: no" in caplog.text


@pytest.mark.rule("words.size")
def test_a_long_piece_is_sent_in_order_in_messages_of_seven_kilobytes_at_most(address: str):
    with closing(PostgresDatabase(address)) as database:
        line = database.words("w")
        sender = WordsSender(line, bool)
        sender.hear(TextChunk("a", "t", "unwanted", begins=True))
        assert sender.take() == []
        sender.until = float("inf")
        sender.hear(TextChunk("a", "t", begins=True))
        for piece in ("one ", "two ", LONG, "\ud800"):
            sender.hear(TextChunk("a", "t", piece))
        sender.hear(TextChunk("a", "other", "z", begins=True))
        found = list[str]()
        while messages := sender.take():
            found += messages
        sender.hear(TextChunk("a" * MOST, "t", "a name that leaves no room"))
        assert sender.take() == []
    read = [json.loads(one) for one in found]
    assert max(len(one.encode()) for one in found) <= MOST
    mine = [one for one in read if one["task"] == "t"]
    assert "".join(one["text"] for one in mine) == f"one two {LONG}?"
    assert [one["begins"] for one in mine] == [True, *[False] * (len(mine) - 1)]
    assert len(set(found)) == len(found)


class Watched(Ears):
    """Notes when a listener leaves."""

    def __init__(self) -> None:
        super().__init__(time.monotonic_ns)
        self.left = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def remove(self, hear: Callable[[TextChunk], None]) -> None:
        super().remove(hear)
        if not self.left.is_set():  # a second time may come when the loop has ended
            self._loop.call_soon_threadsafe(self.left.set)


@pytest.mark.rule("words.elsewhere")
async def test_words_are_sent_no_longer_than_a_while_after_the_last_announcement(address: str):
    with closing(PostgresDatabase(address)) as database:
        line, listeners = database.words("w"), Watched()
        line.carry(listeners)
        courier = Courier(lambda: None, WordsPace(wanted=0.05))
        courier.start_sending([line])
        (hear,) = listeners.hearing
        hear(TextChunk("a", "t", "lost: there is no connection", begins=True))
        with anyio.fail_after(PATIENCE):
            await listeners.left.wait()
        assert not listeners
        courier.start_sending([line])
        assert len(listeners) == 1
        courier.stop()
        assert not listeners


@pytest.mark.rule("words.elsewhere")
async def test_a_process_that_comes_in_the_middle_of_an_answer_hears_it_from_its_beginning(address: str):
    first, second, go_on, said = list[TextChunk](), list[TextChunk](), asyncio.Event(), asyncio.Event()

    class Waits(Talk):
        async def send(self, attempt: ModelTry, most: int, hear: Hear | None) -> ModelAnswer:
            assert hear is not None, "somebody listens"
            hear("one ")
            said.set()
            await go_on.wait()
            hear("two")
            return await super().send(attempt, most, hear)

    async with two(address, Waits("one two")) as (reader, worker):
        reader.workspace.tasks.words(first.append)
        await until(lambda: ears(worker) or None)
        task = await reader.submit("coder", "x")
        await said.wait()
        await until(lambda: "".join(one.text for one in first) == "one " or None)
        with team(as_url(address), hands=0) as later:
            later.workspace.tasks.words(second.append)
            await until(lambda: "".join(one.text for one in second) == "one " or None)
            go_on.set()
            assert await task.result() == "one two"
            await until(lambda: "".join(one.text for one in second) == "one two" or None)
        assert [one.begins for one in second] == [True, *[False] * (len(second) - 1)]
        assert second[0].began
