"""For the tests of tasks that outlive a call: waiting without hoping, processes that are gone, and a sound store."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import anyio
import anyio.lowlevel

from inside import last_look
from remit import Card, Outcome, Runtime, Task, Turn
from remit.ports import View, Which
from remit.testing import FakeClock, Zombie, pass_time
from remit.testing.doubles import waits_for_store
from teams import team

T = TypeVar("T")

PATIENCE = 30  # seconds after which a test that would hang fails instead, also on a busy machine
_EAGER = 20
_MOMENT = 0.001
_IN_A_ROW = 3  # rounds of the loop in which nothing happens


class Shaky(Exception):
    """What a server that has too much to do raises; worth trying again."""

    status = 503


async def sound(*runtimes: Runtime) -> None:
    """Ask the doctor about the stores these work with."""
    for runtime in runtimes:
        health = await runtime.workspace.check()
        assert health.sound, [finding.sentence for finding in health.findings]


async def found(rt: Runtime, look: Callable[[View], T | None]) -> T:
    """Wait until `look` finds something in the store."""
    with anyio.fail_after(PATIENCE):
        async with rt.workspace.journal.follow() as follow:
            while (seen := await rt.workspace.journal.read(look)) is None:
                await follow.next()
            return seen


async def reached(rt: Runtime, task: str, state: str) -> None:
    """Wait until a task is in that state."""

    def look(view: View) -> bool | None:
        standing = view.standing(task)
        return True if standing is not None and standing.state == state else None

    await found(rt, look)


async def a_few_rounds(count: int = 5) -> None:
    """Let whoever is ready run so often: long enough for others to be at work beside whoever awaits this."""
    for _ in range(count):
        await anyio.lowlevel.checkpoint()


async def quiet() -> None:
    """Let everything happen that can: return once every task of this loop waits, and none of them for a store."""
    with anyio.fail_after(PATIENCE):
        rounds = 0
        while rounds < _IN_A_ROW:
            await anyio.lowlevel.checkpoint()
            others = asyncio.all_tasks() - {asyncio.current_task()}
            if any(waits_for_store(task) for task in others):  # it works in a thread
                await anyio.sleep(_MOMENT)
                rounds = 0
            else:
                rounds = 0 if any(_is_ready(task) for task in others) else rounds + 1


def _is_ready(task: "asyncio.Task[Any]") -> bool:
    """Whether a task goes on by itself: it waits for nothing, or what it waited for is there."""
    waiter = getattr(task, "_fut_waiter", None)
    return waiter is None or waiter.done()


async def until(true: Callable[[], object]) -> None:
    """Wait for what no event tells of: soon it is looked for less often, as others need the processor to do it."""
    with anyio.fail_after(PATIENCE):
        for _ in range(_EAGER):
            if true():
                return
            await anyio.lowlevel.checkpoint()
        while not true():  # noqa: ASYNC110
            await anyio.sleep(_MOMENT)


async def happened(event: anyio.Event) -> None:
    with anyio.fail_after(PATIENCE):
        await event.wait()


async def ends(clock: FakeClock, task: Task) -> Outcome:
    """Let time pass until a task has ended, and tell what came of it."""

    async def ended() -> bool:
        return (await task.status()).ended is not None

    await pass_time(clock, ended)
    return await task.wait()


async def life(rt: Runtime, task: str) -> list[str]:
    """List the moves of a task, without `task.`, in order."""
    events = await rt.workspace.journal.history(task=task)
    return [event.kind.removeprefix("task.") for event in events if event.kind.startswith("task.")]


def listening(rt: Runtime, *names: str) -> dict[str, list[str]]:
    """Agents that note what they are told and answer with their name."""
    told: dict[str, list[str]] = {name: [] for name in names}

    async def note(turn: Turn) -> str:
        told[turn.agent].append(turn.task)
        return f"result of {turn.agent}"

    for name in names:
        rt.add(Card(name, role=f"role of {name}", can=[f"job {name}"]), note)
    return told


async def kinds(rt: Runtime) -> list[str]:
    """List the kinds of all that happened, in order."""
    return [event.kind for event in await rt.workspace.journal.history()]


async def signed(turn: Turn) -> str:
    """An agent that says who answers."""
    return f"{turn.agent}: {turn.task}"


async def named(rt: Runtime, agent: str) -> str:
    """Give the id of the one task of this agent, once it is on record."""
    return await found(rt, lambda view: next((record.id for record, _ in view.tasks(Which(agent=agent))), None))


@asynccontextmanager
async def serving(*runtimes: Runtime) -> AsyncIterator[None]:
    """Lend hands, also for whoever lends none by itself."""
    async with AsyncExitStack() as stack:
        for runtime in runtimes:
            await stack.enter_async_context(runtime.serving())
        yield


def doomed(path: Any, clock: FakeClock, **how: Any) -> Runtime:
    """Make a process that says once that it is there and is never heard of again. Its code runs on."""
    database = Zombie.database(path) if isinstance(path, str | Path) else path
    return team(database, clock=Zombie.clock(clock), **how)


async def take_over(heir: Runtime, clock: FakeClock, dead: Runtime) -> None:
    """Let so much time pass that the heir takes over from the other, and carries on."""
    worker = dead.worker

    async def gone() -> bool:
        there = await heir.workspace.journal.read(
            lambda view: [*(beat.worker for beat in view.workers()), *view.unseen()]
        )
        return worker not in there

    heir.lend()
    with anyio.fail_after(6 * PATIENCE):
        while not await gone():
            clock.advance(1)
            with anyio.move_on_after(0.1):  # after a pause in polling, heartbeat timeouts restart
                await until(lambda: last_look(heir) == clock.ticks())
