"""Whoever waits is woken by an answer from another process, and not by a look now and then."""

import time
from typing import Any

import anyio
import pytest

from remit import Card, Runtime, Turn
from remit.settings import Pace
from remit.stores.opening import database_at
from remit.stores.postgres.database import PostgresDatabase
from teams import team
from workers.crew import PATIENCE, Crew, sound

pytestmark = pytest.mark.anyio

SELDOM = 3_600.0  # what would be noticed only by looking now and then is not noticed at all
PROMPT = 3  # seconds, on a machine that has much else to do; it takes a fraction of one


async def published(rt: Runtime, agent: str) -> None:
    """Wait until the other process has said that it has this agent."""
    with anyio.fail_after(PATIENCE):
        async with rt.workspace.journal.follow(after=0) as follow:
            while agent not in {card.name for card in await rt.workspace.agents.list()}:
                await follow.next()


@pytest.mark.rule("waking.processes")
@pytest.mark.parametrize("where", ["file", "postgres"])
@pytest.mark.parametrize("how", ["submit", "delegate", "person"])
async def test_a_caller_that_waits_for_another_process_is_woken_at_once(
    request: pytest.FixtureRequest, where: str, how: str
):
    crew: Crew = request.getfixturevalue("crew" if where == "postgres" else "crew_on_file")
    database: Any = PostgresDatabase(crew.address, poll=SELDOM) if where == "postgres" else database_at(crew.address)
    woken: list[int] = []

    async def waits(turn: Turn) -> str:
        if turn.task == "delegate":
            return await turn.delegate("inner", "submit")
        task = await turn.submit("gated", "gate")
        result = await task.result()
        woken.append(time.monotonic_ns())
        return result

    with team(database, pace=Pace(poll_interval=SELDOM)) as rt:
        await crew.ready(crew.start())
        rt.add(Card("outer", asks="*"), waits)
        rt.add(Card("inner", asks="*"), waits)
        await published(rt, "gated")
        task = await (rt.submit("gated", "gate") if how == "person" else rt.submit("outer", how))
        await crew.until("begun")
        crew.open("gate")
        with anyio.fail_after(PATIENCE):
            assert await task.result() == "gate"
        woken.append(time.monotonic_ns())
        [opened] = crew.lines("opened")
        assert woken[0] - opened.at < PROMPT * 1e9
        await sound(rt)


@pytest.mark.rule("waking.processes", "concurrency.wait")
@pytest.mark.parametrize("where", ["file", "postgres"])
async def test_a_task_that_waits_for_an_agent_busy_in_another_process_is_woken_too(
    request: pytest.FixtureRequest, where: str
):
    crew: Crew = request.getfixturevalue("crew" if where == "postgres" else "crew_on_file")

    async def here(turn: Turn) -> str:
        return f"here: {turn.task}"

    with team(crew.address, pace=Pace(poll_interval=SELDOM)) as rt:
        rt.add(Card("gated", concurrency=1), here)
        await crew.ready(crew.start("run", agent="gated", task="gate"))
        await crew.until("begun")
        got: list[str] = []

        async def run() -> None:
            got.append(await rt.run("gated", "second"))

        with anyio.fail_after(PATIENCE):
            async with anyio.create_task_group() as group:
                group.start_soon(run)
                await anyio.wait_all_tasks_blocked()
                assert not got
                crew.open("gate")
        assert got == ["here: second"]
        await sound(rt)
