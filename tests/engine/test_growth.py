"""What does not grow: what a step costs does not depend on how much else there is.

Counted, never timed: statements and rows are the same on every machine.
"""

import anyio
import pytest

from engine.growth import counted
from engine.helping import PATIENCE, happened
from remit import Card, Turn
from remit.core.lifecycle import TERMINAL
from remit.stores.sqlite.database import SqliteDatabase
from teams import echo, team

pytestmark = [pytest.mark.anyio, pytest.mark.long]


@pytest.mark.rule("queue.growth")
async def test_a_claim_does_not_look_at_every_queue():
    async def cost(agents: int) -> float:
        """Of one task, where so many agents have one pending each, and one is worked on at a time."""
        database, inside, go = SqliteDatabase(), anyio.Event(), anyio.Event()
        with team(database, hands=1) as rt:

            @rt.agent
            async def first(turn: Turn) -> None:
                inside.set()
                await go.wait()

            for number in range(agents):
                rt.add(Card(f"agent{number}"), echo)
            busy = await rt.submit("first", "wait")
            await happened(inside)
            tasks = [await rt.submit(f"agent{number}", "x") for number in range(agents)]
            with counted(database) as work:
                go.set()
                for task in (busy, *tasks):
                    await task.wait(PATIENCE)
            return work.steps / agents

    assert await cost(300) <= 1.1 * await cost(30)


@pytest.mark.rule("settled.growth")
async def test_waiting_for_all_that_a_run_submitted_does_not_read_its_tree_again_and_again():
    async def cost(parts: int) -> float:
        """Of one task that was submitted, for whoever waits until all of them have ended."""
        database, inside, go = SqliteDatabase(), anyio.Event(), anyio.Event()
        with team(database, hands=1) as rt:

            @rt.agent(asks="*")
            async def lead(turn: Turn) -> None:
                for number in range(parts):
                    await turn.submit("coder", str(number))

            @rt.agent
            async def coder(turn: Turn) -> None:
                inside.set()
                await go.wait()

            run = (await rt.outcome("lead", "go")).id
            await happened(inside)
            with counted(database) as work:
                go.set()
                await rt.workspace.wait_all(run)
            assert all(task.state in TERMINAL for task in await rt.workspace.tasks.list(run=run))
            return work.steps / parts

    assert await cost(300) <= 1.2 * await cost(30)
