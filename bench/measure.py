"""How a figure is taken: several rounds; the best tells what the code costs, the median what the machine
did to it."""

import asyncio
import gc
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from typing import NamedTuple, TypeAlias

Samples: TypeAlias = list[float]


class Skipped(Exception):
    """There is nothing to measure here, and the text says why."""


class Figure(NamedTuple):
    best: float
    median: float


class Effort(NamedTuple):
    """How hard to try: rounds per figure, and the share of the full load."""

    rounds: int
    share: float

    def of(self, load: int) -> int:
        return max(10, int(load * self.share))


FULL = Effort(7, 1.0)
QUICK = Effort(3, 0.1)


def figure(samples: Samples, *, more: bool) -> Figure:
    return Figure(max(samples) if more else min(samples), statistics.median(samples))


async def each(times: int, work: Callable[[], Awaitable[object]]) -> float:
    """Microseconds for one of `times`, one after the other."""
    gc.collect()
    start = time.perf_counter()
    for _ in range(times):
        await work()
    return (time.perf_counter() - start) / times * 1e6


async def together(times: int, work: Callable[[], Awaitable[object]]) -> float:
    """Milliseconds for all of `times` at once."""
    gc.collect()
    start = time.perf_counter()
    await asyncio.gather(*[work() for _ in range(times)])
    return (time.perf_counter() - start) * 1e3


def rounds(effort: Effort, once: Callable[[], float]) -> Samples:
    return [once() for _ in range(effort.rounds)]


def cpu_of(code: str) -> float:
    """Milliseconds of processor time that a process takes to run this code, from start to end."""
    # As users run it: with the bytecode of earlier runs at hand.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.DEVNULL, env=environment)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise Skipped("the process failed")
    return (usage.ru_utime + usage.ru_stime) * 1e3
