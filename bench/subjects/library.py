"""What a library must be able to do to be measured, and the measures that are the same for all of them."""

import asyncio
import gc
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Protocol, TypeAlias

from measure import AsyncCosts, Cost, Load, Subject, Work, each, resident, together, written

# Awaited by a run at stage 0 before its lead asks, at 1 while its worker works, at 2 when its lead has the answer.
Pause: TypeAlias = Callable[[int], Awaitable[object]]
Making: TypeAlias = AbstractAsyncContextManager[Work]

MEMBERS, MEMBER_SECONDS = 50, 0.05
STAGE_SECONDS = 0.02
RUNS_AT_ONCE = 1_000


async def no_pause(_stage: int) -> None:
    """Go on at once."""


class Handoffs(Protocol):
    """Whole runs that go from one agent to the next so often; kept in a file of that folder if one is given."""

    def __call__(self, length: int, folder: Path | None = None, /) -> Making: ...


class Delegation(Protocol):
    """Whole runs in which a lead asks a worker and gives its answer."""

    def __call__(self, pause: Pause = no_pause, folder: Path | None = None, /) -> Making: ...


class FanOut(Protocol):
    """Whole runs in which a lead asks so many workers at once, each of which sleeps so many seconds."""

    def __call__(self, members: int, seconds: float, /) -> Making: ...


def handoff(make: Handoffs, length: int = 1) -> Subject:
    async def costs(load: Load) -> AsyncCosts:
        async with make(length) as work:
            await work()  # warm
            while True:
                yield await each(load.of(300), work)

    return costs


def durable_handoff(make: Handoffs) -> Subject:
    async def costs(load: Load) -> AsyncCosts:
        async with make(1, load.folder) as work:
            await work()
            while True:
                yield await each(load.of(300), work)

    return costs


def handoff_written(make: Handoffs) -> Subject:
    """Kilobytes that the process writes for a durable run with a handoff."""

    async def costs(load: Load) -> AsyncCosts:
        times = load.of(300)
        async with make(1, load.folder) as work:
            await work()
            while True:
                before = written()
                for _ in range(times):
                    await work()
                yield Cost((written() - before) / times / 1024)

    return costs


def delegation(make: Delegation) -> Subject:
    async def costs(load: Load) -> AsyncCosts:
        async with make() as work:
            await work()
            while True:
                yield await each(load.of(300), work)

    return costs


def fan_out(make: FanOut) -> Subject:
    """Milliseconds that a fan-out takes beyond its slowest member."""

    async def costs(load: Load) -> AsyncCosts:
        async with make(MEMBERS, MEMBER_SECONDS) as work:
            await work()
            while True:
                took = await each(load.of(10, 2), work)
                yield Cost(took.value / 1e3 - MEMBER_SECONDS * 1e3, (took.cpu or 0) / 1e3)

    return costs


def many(make: Delegation, *, durable: bool = False) -> Subject:
    """Milliseconds for a thousand runs begun at one moment, which sleep 20 ms three times each."""

    async def pause(_stage: int) -> None:
        await asyncio.sleep(STAGE_SECONDS)

    async def costs(load: Load) -> AsyncCosts:
        async with make(pause, load.folder if durable else None) as work:
            await together(10, work)
            while True:
                yield await together(load.of(RUNS_AT_ONCE), work)

    return costs


def in_flight(make: Delegation) -> Subject:
    """Kilobytes of this process for each of a thousand runs whose workers all work; good for one cost."""

    async def costs(load: Load) -> AsyncCosts:
        times, crowd = load.of(RUNS_AT_ONCE, 100), Crowd()
        async with make(crowd.pause) as work:
            crowd.gate.set()
            await asyncio.gather(*[work() for _ in range(10)])
            gc.collect()
            crowd.gate.clear()
            crowd.waiting, before = 0, resident()
            runs = [asyncio.ensure_future(work()) for _ in range(times)]
            while crowd.waiting < times:  # noqa: ASYNC110 - libraries differ in how they get there
                await asyncio.sleep(0.01)
            held = resident() - before
            crowd.gate.set()
            await asyncio.gather(*runs)
            yield Cost(held / times)

    return costs


class Crowd:
    """Holds all workers back until the gate is opened, and counts them."""

    def __init__(self) -> None:
        self.waiting = 0
        self.gate = asyncio.Event()

    async def pause(self, stage: int) -> None:
        if stage == 1:
            self.waiting += 1
            await self.gate.wait()
