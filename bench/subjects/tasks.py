"""Tasks that nobody waits for, in one process: how many a second, how soon, and what they cost while they wait."""

import asyncio
import gc
import time
import tracemalloc
from collections.abc import Sequence
from itertools import count

import remit
from measure import AsyncCosts, Cost, Load, Subject
from remit.core.events import Event
from remit.runtime.workspace import subscribe
from subjects.team import team

AT_ONCE = 50  # coroutines that submit
HANDS = 1_000  # agents that do nothing need no one to hold them back
_NUMBERS = count()


class Count:
    """Sets `all` when so many tasks have completed."""

    def __init__(self, wanted: int) -> None:
        self._left = wanted
        self.all = asyncio.Event()

    def __call__(self, events: Sequence[Event]) -> None:
        self._left -= sum(event.kind == "task.completed" for event in events)
        if self._left <= 0:
            self.all.set()


async def submit(runtime: remit.Runtime, total: int) -> None:
    """Submit as many tasks, some at a time; the same words again would be the same task."""

    async def some(first: int) -> None:
        for _ in range(first, total, AT_ONCE):
            await runtime.submit("worker", f"task {next(_NUMBERS)} of {time.time_ns()}")

    await asyncio.gather(*(some(first) for first in range(AT_ONCE)))


async def _through(runtime: remit.Runtime, total: int) -> float:
    """Tasks a second, from the first submit to the last result."""
    count = Count(total)
    stop = subscribe(runtime.workspace, count)
    gc.collect()
    start = time.perf_counter()
    await submit(runtime, total)
    await count.all.wait()
    took = time.perf_counter() - start
    stop()
    await runtime.drain()
    return total / took


def no_ops(*, durable: bool) -> Subject:
    """Tasks a second that do nothing."""

    async def costs(load: Load) -> AsyncCosts:
        while True:
            with team(load.folder if durable else None, HANDS) as runtime:
                rate = await _through(runtime, load.of(5_000))
            yield Cost(rate)

    return costs


async def latency(load: Load) -> AsyncCosts:
    """Milliseconds from submit to result when nothing else goes on; the median."""
    with team(load.folder) as runtime:
        while True:
            took: list[float] = []
            for _ in range(load.of(300)):
                start = time.perf_counter()
                task = await runtime.submit("worker", f"one {next(_NUMBERS)}")
                await task.wait()
                took.append(time.perf_counter() - start)
            yield Cost(sorted(took)[len(took) // 2] * 1e3)


async def waiting(load: Load) -> AsyncCosts:
    """Kilobytes of this process for each task in flight: most wait in the file, a hundred are being carried out."""
    while True:
        with team(load.folder) as runtime:
            total = load.of(10_000)
            runtime.agent("stuck")(_stuck)
            await _through(runtime, 200)  # warm
            gc.collect()
            tracemalloc.start()
            before = tracemalloc.get_traced_memory()[0]
            await asyncio.gather(*(runtime.submit("stuck", f"wait {number}") for number in range(total)))
            gc.collect()
            held = tracemalloc.get_traced_memory()[0] - before
            tracemalloc.stop()
            await runtime.drain(0)
        yield Cost(held / total / 1024)


async def _stuck(_turn: remit.Turn) -> None:
    await asyncio.sleep(3_600)
