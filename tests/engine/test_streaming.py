"""A run as it happens: `rt.stream`."""

import asyncio
from typing import Any

import anyio
import pytest

from engine.helping import PATIENCE, happened, sound
from engine.talking import Down, Talk
from remit import Outcome, Runtime, Turn
from remit.core.events import Event
from remit.core.recovery import ModelTry
from remit.core.times import SECOND
from remit.engine.ground import EXPECTED
from remit.errors import BadInput
from remit.ports.models import Hear, ModelAnswer, TextChunk
from remit.testing import FakeClock
from teams import team

pytestmark = pytest.mark.anyio


class Speaks(Talk):
    """Says its answers word by word if anyone listens."""

    async def send(self, attempt: ModelTry, most: int, hear: Hear | None) -> ModelAnswer:
        reply = await super().send(attempt, most, hear)
        if hear is not None:
            for word in reply.text.split():
                hear(f"{word} ")
        return reply


class Waits(Talk):
    """Says its second answer, and waits before it ends; notes which answers are streamed."""

    def __init__(self, *script: str) -> None:
        super().__init__(*script)
        self.streamed = list[bool]()
        self.said, self.go_on = asyncio.Event(), asyncio.Event()

    async def send(self, attempt: ModelTry, most: int, hear: Hear | None) -> ModelAnswer:
        reply = await super().send(attempt, most, hear)
        self.streamed.append(hear is not None)
        if hear is not None:
            hear(f"{reply.text} ")
            self.said.set()
            await self.go_on.wait()
        return reply


def asking(rt: Runtime, talk: Talk) -> None:
    @rt.agent(asks="*")
    async def lead(turn: Turn) -> str:
        return await turn.delegate("coder", "part")

    @rt.agent
    async def coder(turn: Turn) -> str:
        return (await turn.model(talk.call("d", "big", "small"))).text


@pytest.mark.rule("stream.order")
async def test_events_and_words_come_as_they_happen_and_the_outcome_is_last(rt: Runtime):
    asking(rt, Speaks("one two"))
    found: list[Any] = [one async for one in rt.stream("lead", "x")]
    outcome = found[-1]
    assert isinstance(outcome, Outcome)
    assert outcome.value == "one two"
    heard = [one for one in found if isinstance(one, TextChunk)]
    assert [(one.agent, one.text, one.begins) for one in heard] == [
        ("coder", "", True),
        ("coder", "one ", False),
        ("coder", "two ", False),
    ]
    kinds = [one.kind for one in found if isinstance(one, Event)]
    assert kinds == [
        "task.started",
        "task.started",
        "model.answered",
        "credits.spent",
        "task.completed",
        "task.completed",
    ]
    assert found.index(heard[-1]) < [isinstance(one, Event) and one.kind for one in found].index("model.answered")
    assert {one.run for one in found if isinstance(one, Event)} == {outcome.id}


@pytest.mark.rule("stream.begins")
async def test_a_try_that_failed_half_way_starts_again(rt: Runtime):
    def half(_attempt: ModelTry) -> Exception:
        return Down("connection")

    asking(rt, Speaks(half, "whole"))
    texts: list[str] = []
    async for one in rt.stream("lead", "x"):
        if isinstance(one, TextChunk):
            texts = [] if one.begins else [*texts, one.text]
    assert texts == ["whole "]


@pytest.mark.rule("stream.joined")
async def test_a_listener_that_joins_in_the_middle_of_an_answer_hears_what_was_said_and_the_rest(rt: Runtime):
    first, second = list[str](), list[tuple[str, bool]]()

    def hear(chunk: TextChunk) -> None:
        first.append(chunk.text)
        if chunk.text == "two ":
            rt.workspace.tasks.words(lambda later: second.append((later.text, later.begins)))
            stop()

    stop = rt.workspace.tasks.words(hear)
    asking(rt, Speaks("one two three four"))
    await rt.run("lead", "x")
    assert first == ["", "one ", "two "]
    assert second == [("one two ", True), ("three ", False), ("four ", False)]


@pytest.mark.rule("stream.joined")
async def test_answers_are_streamed_for_a_while_after_the_last_listener_has_left(rt: Runtime, clock: FakeClock):
    late, talk = list[str](), Waits("one two", "three", "four")
    asking(rt, talk)
    await rt.run("lead", "x")
    rt.workspace.tasks.words(lambda _: None)()
    running = asyncio.ensure_future(rt.run("lead", "y"))
    await talk.said.wait()
    stop = rt.workspace.tasks.words(lambda chunk: late.append(chunk.text))
    talk.go_on.set()
    await asyncio.wait_for(running, PATIENCE)
    stop()
    clock.advance(EXPECTED / SECOND)
    await rt.run("lead", "z")
    assert late == ["three "]
    assert talk.streamed == [False, True, False]


@pytest.mark.rule("stream.secrets")
@pytest.mark.parametrize(
    ("pieces", "told"),
    [
        (["my key is hunt", "er2hun", "ter2, no"], "my key is [secret], no"),
        (["hunter2h", "unter1 and hunter2hunter", "2"], "hunter2hunter1 and [secret]"),
        (["it is hunter2hunter"], "it is hunter2hunter"),
        (["hunter2hunter2", "-long", "er"], "[secret]er"),
        (["xx", "abcabc", "hunter2hunter2"], "[secret][secret]"),
    ],
)
async def test_a_secret_in_two_pieces_of_an_answer_is_not_told(clock: FakeClock, pieces: list[str], told: str):
    heard, given = list[str](), ["hunter2hunter2", "hunter2hunter2-long", "xxabcabc", "abchunte1"]

    class Tells(Talk):
        async def send(self, attempt: ModelTry, most: int, hear: Hear | None) -> ModelAnswer:
            assert hear is not None, "somebody listens"
            for piece in pieces:
                hear(piece)
            return await super().send(attempt, most, hear)

    with team(clock=clock, secrets=given) as rt:
        asking(rt, Tells("".join(pieces)))
        rt.workspace.tasks.words(lambda chunk: heard.append(chunk.text))
        assert await rt.run("lead", "x") == told
    assert "".join(heard) == told
    assert not any(part in "".join(heard) for part in given)


@pytest.mark.rule("stream.leave")
async def test_leaving_the_stream_stops_the_run(clock):
    inside, stopped = anyio.Event(), anyio.Event()
    with team(clock=clock) as rt:

        @rt.agent
        async def coder(turn: Turn) -> None:
            inside.set()
            try:
                await anyio.sleep_forever()
            finally:
                stopped.set()

        stream = rt.stream("coder", "x")
        async for _ in stream:
            await happened(inside)
            break
        await stream.aclose()
        assert stopped.is_set()
        (task,) = await rt.workspace.tasks.list()
        assert task.state == "cancelled"
        await sound(rt)


@pytest.mark.rule("stream.order")
async def test_only_the_run_itself_is_heard(rt: Runtime):
    asking(rt, Speaks("mine", "theirs"))
    other = asyncio.ensure_future(rt.outcome("lead", "other"))
    found: list[Any] = [one async for one in rt.stream("lead", "x")]
    outcome = await asyncio.wait_for(other, PATIENCE)
    assert {one.run for one in found if isinstance(one, Event)} == {found[-1].id}
    assert outcome.id != found[-1].id
    assert sum(isinstance(one, TextChunk) for one in found) == 2


@pytest.mark.rule("stream.order")
async def test_a_refused_run_is_only_an_outcome_and_a_wrong_word_is_told_at_once(rt: Runtime):
    (outcome,) = [one async for one in rt.stream("nobody", "x")]
    assert isinstance(outcome, Outcome)
    assert outcome.state == "refused"
    with pytest.raises(BadInput, match="stream takes|run takes no"):
        rt.stream("nobody", "x", tmeout=3)  # pyright: ignore[reportCallIssue]
