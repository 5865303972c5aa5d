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
from remit.errors import BadInput
from remit.ports.models import Hear, ModelAnswer, TextChunk
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


@pytest.mark.rule("stream.order")
async def test_a_listener_that_joins_in_the_middle_of_an_answer_hears_the_rest_of_it(rt: Runtime):
    first, second = list[str](), list[str]()

    def hear(chunk: TextChunk) -> None:
        first.append(chunk.text)
        if chunk.text == "two ":
            rt.workspace.tasks.words(lambda later: second.append(later.text))
            stop()

    stop = rt.workspace.tasks.words(hear)
    asking(rt, Speaks("one two three four"))
    await rt.run("lead", "x")
    assert (first, second) == (["", "one ", "two "], ["three ", "four "])


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
