"""Task groups of an agent's own: when a member fails, asyncio cancels the task that the agent runs in."""

import asyncio

import anyio
import pytest

from engine.helping import happened, sound
from remit import Card, Runtime, Turn

pytestmark = [pytest.mark.anyio, pytest.mark.rule("truth.own-group")]


async def fails() -> None:
    raise ValueError("a member failed")


async def stays() -> None:
    await asyncio.Event().wait()


async def caught_at_the_end(turn: Turn) -> str:
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(fails())
            group.create_task(stays())
    except* ValueError:
        pass
    return "fine"


async def caught_in_the_body(turn: Turn) -> str:
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(fails())
            await stays()
    except* ValueError:
        pass
    return "fine"


async def caught_twice(turn: Turn) -> str:
    return await caught_at_the_end(turn) + await caught_at_the_end(turn)


async def caught_within(turn: Turn) -> str:
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(caught_at_the_end(turn))
            group.create_task(fails())
            group.create_task(caught_in_the_body(turn))
    except* ValueError:
        pass
    return await caught_at_the_end(turn)


HOWS = [caught_at_the_end, caught_in_the_body, caught_twice, caught_within]


@pytest.mark.parametrize("how", HOWS, ids=lambda how: how.__name__)
@pytest.mark.parametrize("levels", [1, 3])
async def test_an_agent_goes_on_after_it_caught_the_failure_of_its_group(rt: Runtime, how, levels: int):  # pyright: ignore[reportMissingParameterType, reportUnknownParameterType]
    names = [f"level{number}" for number in range(levels)]
    for name, below in zip(names, [*names[1:], ""], strict=True):

        async def agent(turn: Turn, below: str = below) -> str:
            if below:
                said = await turn.delegate(below, "x")
                assert said == await how(turn)
                return said
            return await how(turn)

        rt.add(Card(name, asks="*"), agent)

    outcome = await rt.outcome(names[0], "x")

    assert outcome.value in ("fine", "finefine")
    current = asyncio.current_task()
    assert current is not None
    assert current.cancelling() == 0, "whoever asked was not cancelled"
    await sound(rt)


@pytest.mark.parametrize("after", [False, True], ids=["at once", "after a failure of its group"])
async def test_a_cancel_from_outside_stops_an_agent_that_waits_for_its_group(rt: Runtime, after: bool):
    inside = anyio.Event()

    @rt.agent
    async def waits(turn: Turn) -> None:
        if after:
            await caught_at_the_end(turn)
        async with asyncio.TaskGroup() as group:
            group.create_task(stays())
            inside.set()

    task = await rt.submit("waits", "x")
    await happened(inside)
    await task.cancel("enough")

    assert (await task.wait()).state == "cancelled"
    await sound(rt)


async def test_a_cancel_while_a_failed_group_clears_up_counts(rt: Runtime):
    """The members of a group that has failed are still at it when someone cancels the task."""
    inside, clears, may_go = anyio.Event(), anyio.Event(), anyio.Event()

    async def slow() -> None:
        try:
            inside.set()
            await stays()
        finally:
            clears.set()
            await may_go.wait()

    @rt.agent
    async def lead(turn: Turn) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(slow())
                await asyncio.sleep(0)
                group.create_task(fails())
        except* ValueError:
            pass
        await stays()

    task = await rt.submit("lead", "x")
    await happened(inside)
    await happened(clears)
    cancelling = asyncio.create_task(task.cancel("enough"))
    may_go.set()
    await cancelling

    assert (await task.wait()).state == "cancelled"
    await sound(rt)
