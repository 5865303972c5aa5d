"""The team that is measured: agents that do nothing but what the job is about."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import remit
from remit.settings import Serving

MEMORY = ":memory:"


@contextmanager
def team(where: str, hands: int = 100) -> Iterator[remit.Runtime]:
    """A team in memory, or on a file of its own if `where` is anything else."""
    with TemporaryDirectory() as folder:
        store = MEMORY if where == MEMORY else Path(folder) / "team.db"
        bounds = remit.Bounds(tasks=1_000_000)  # runs that are larger than anyone would want them
        with remit.Runtime(store, bounds=bounds, serving=Serving(hands=hands)) as runtime:
            _add_agents(runtime)
            yield runtime


def _add_agents(runtime: remit.Runtime) -> None:
    runtime.agent("worker")(_worker)
    runtime.agent("sleeper")(_sleeper)
    runtime.agent("sequence", asks="*")(_sequence)
    runtime.agent("fan", asks="*")(_fan)
    runtime.agent("lead", asks="*")(_lead)
    runtime.agent("planner", asks="*")(_planner)


async def _worker(_turn: remit.Turn) -> str:
    return "ok"


async def _lead(turn: remit.Turn) -> str:
    return await turn.delegate("worker", "go")


async def _sleeper(_turn: remit.Turn) -> str:
    await asyncio.sleep(0.02)
    return "ok"


async def _sequence(turn: remit.Turn) -> float:
    """Delegates as often as its task says; answers the microseconds of one."""
    times = int(turn.task)
    start = time.perf_counter()
    for number in range(times):
        await turn.delegate("worker", f"go {number}")  # the very same would be a repeat
    return (time.perf_counter() - start) / times * 1e6


async def _fan(turn: remit.Turn) -> float:
    """Its task is "worker 50": asks as many at once; answers the milliseconds of all."""
    who, times = turn.task.split()
    start = time.perf_counter()
    outcomes = await turn.delegate_all([(who, "go")] * int(times))
    assert all(outcome.ok for outcome in outcomes)
    return (time.perf_counter() - start) * 1e3


async def _planner(turn: remit.Turn) -> float:
    """Its task is a number of steps: answers the microseconds that each costs beyond delegating it."""
    times = int(turn.task)
    start = time.perf_counter()
    await turn.delegate_all([("worker", "go")] * times, at_once=5)
    middle = time.perf_counter()
    await turn.run_plan(_lattice(times))
    end = time.perf_counter()
    return ((end - middle) - (middle - start)) / times * 1e6


def _lattice(times: int) -> remit.Plan:
    """Chains, diamonds and width: every step waits for the one five and, if there is one, the one eight before it."""
    steps = [
        remit.Step(str(n), f"step {n}", agent="worker", after=tuple(str(n - back) for back in (5, 8) if n >= back))
        for n in range(times)
    ]
    return remit.Plan(tuple(steps))
