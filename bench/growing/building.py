"""Journals of a given size, made by running: every event went through the store's transactions like any other.

Runs have six tasks and sessions ten runs. They happen on a clock of their own, spread over the days before now, many at
a time, so that their changes are committed together.
"""

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import NamedTuple

import remit
from remit.settings import Serving, System
from remit.testing import FakeClock

DAYS = 10
TASKS, RUNS_A_SESSION = 6, 10
EVENTS_A_RUN = 2 * TASKS
WAITING = 20  # tasks that stay in the queue
_AT_ONCE = 256
_DAY = 86_400 * 1_000_000


class Built(NamedTuple):
    """A journal: where it is, how many runs it has, when the first ended and how far they lie apart, in microseconds;
    and what it took to build it."""

    address: str
    runs: int
    first: int
    step: int
    seconds: float
    cpu: float

    def days_since(self, run: int, now: int) -> float:
        """How many days before `now` all runs up to this one have ended, and no later one."""
        return (now - (self.first + run * self.step - self.step // 2)) / _DAY


def team(runtime: remit.Runtime) -> None:
    """The agents of these journals."""

    async def lead(turn: remit.Turn) -> str:
        for number in range(TASKS - 1):
            await turn.delegate("worker", f"part {number} of {turn.task}")
        return "all parts are done"

    async def worker(_turn: remit.Turn) -> str:
        return "this part is done"

    runtime.agent("lead", asks="*")(lead)
    runtime.agent("worker")(worker)


def build(address: str, events: int) -> Built:
    """Build a journal with about so many events, or find the one that was built there before."""
    kept = Path(f"{address}.json") if "://" not in address else None
    if kept is not None and kept.exists():
        return Built(**json.loads(kept.read_text()))
    runs = max(RUNS_A_SESSION, events // EVENTS_A_RUN)
    step = DAYS * _DAY // runs
    first = System().clock.now() - runs * step
    wall, cpu = time.perf_counter(), time.process_time()
    asyncio.run(_build(address, runs, FakeClock(first), step))
    built = Built(address, runs, first, step, time.perf_counter() - wall, time.process_time() - cpu)
    if kept is not None:
        kept.write_text(json.dumps(built._asdict()))
    return built


async def _build(address: str, runs: int, clock: FakeClock, step: int) -> None:
    system = System(clock=clock, check_clock=False)
    with remit.Runtime(address, serving=Serving(concurrency=0), system=system) as runtime:
        team(runtime)
        for done in range(0, runs, _AT_ONCE):
            now = range(done, min(runs, done + _AT_ONCE))
            await asyncio.gather(
                *[runtime.run("lead", f"task {n}", session=f"session {n // RUNS_A_SESSION}") for n in now]
            )
            clock.advance(step * len(now) / 1e6)
            if done % (_AT_ONCE * 10) == 0:
                print(f"  {done * EVENTS_A_RUN:,} of {runs * EVENTS_A_RUN:,} events", file=sys.stderr, flush=True)
        for number in range(WAITING):
            await runtime.submit("worker", f"waiting {number}")
