"""For the tests of tasks that outlive a call: waiting without hoping, processes that are gone, and a sound store."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

import anyio

from remit import Runtime
from remit.engine.attempt.live import LiveTasks
from remit.engine.presence.heartbeat import SILENCE_SECONDS
from remit.engine.queue.caretaker import Caretaker
from remit.engine.upkeep.doctor import examine
from remit.ports import View
from remit.testing import FakeClock

T = TypeVar("T")

PATIENCE = 5  # seconds after which a test that would hang fails instead


class Shaky(Exception):
    """What a server that has too much to do raises; worth trying again."""

    status = 503


async def sound(*runtimes: Runtime) -> None:
    """What the doctor says about the stores these work with."""
    for one in runtimes:
        health = await examine(one.database, one._clock.now())
        assert health.sound, [finding.sentence for finding in health.findings]


async def found(rt: Runtime, look: Callable[[View], T | None]) -> T:
    """What `look` finds in the store, as soon as it does."""
    with anyio.fail_after(PATIENCE):
        return await rt._services.bell.until("", look)


async def reached(rt: Runtime, task: str, state: str) -> None:
    """Until a task is in that state."""

    def look(view: View) -> bool | None:
        standing = view.standing(task)
        return True if standing is not None and standing.state == state else None

    await found(rt, look)


async def until(true: Callable[[], object]) -> None:
    """For what no event tells of."""
    with anyio.fail_after(PATIENCE):
        while not true():  # noqa: ASYNC110
            await anyio.sleep(0.001)


async def happened(event: anyio.Event) -> None:
    with anyio.fail_after(PATIENCE):
        await event.wait()


def later(rt: Runtime, clock: FakeClock, seconds: float) -> None:
    """Lets time pass, and has whoever waits look at the clock."""
    clock.advance(seconds)
    rt._services.bell.ring()


async def life(rt: Runtime, task: str) -> list[str]:
    """The moves of a task, without `task.`, in order."""
    events = await rt.history()
    return [one.kind.removeprefix("task.") for one in events if one.task == task and one.kind.startswith("task.")]


async def named(rt: Runtime, agent: str) -> str:
    """The id of the one task of this agent."""
    return next(one.id for one in await rt.tasks(agent=agent))


@asynccontextmanager
async def serving(*runtimes: Runtime) -> AsyncIterator[None]:
    """Hands, also for whoever lends none by itself."""
    async with anyio.create_task_group() as group:
        for one in runtimes:
            if one._lent.lend() is None:
                group.start_soon(one.serve)
        yield
        group.cancel_scope.cancel()


def doomed(path: object, clock: FakeClock, **how: object) -> Runtime:
    """A process that says once that it is there and is never heard of again. Its code runs on: it is a zombie."""
    runtime = Runtime(path, clock=clock, silence=1_000_000, **how)
    runtime._services.stops._runs = LiveTasks()  # it hears nothing either
    return runtime


async def take_over(heir: Runtime, clock: FakeClock, dead: Runtime) -> None:
    """The heir hears nothing of the other for too long, takes over from it, and carries on."""
    dead._services.presence._lasting = False  # a dead process says nothing
    if dead._lent.worker is not None:
        dead._lent.worker._draining = True  # and claims nothing
    watcher = Caretaker(heir._services, {}, None)
    await watcher.look()
    clock.advance(SILENCE_SECONDS + 1)
    await watcher.look()
    heir._lent.lend()
    heir._services.bell.ring()
