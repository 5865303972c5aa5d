"""The team that is measured: agents that do nothing but what the job is about."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import remit
from remit.settings import Serving


@contextmanager
def runtime_at(folder: Path | None, hands: int = 100) -> Iterator[remit.Runtime]:
    """A runtime in memory, or on a new file in that folder."""
    bounds = remit.Bounds(tasks=1_000_000)  # runs that are larger than anyone would want them
    if folder is None:
        with remit.Runtime(bounds=bounds, serving=Serving(concurrency=hands)) as runtime:
            yield runtime
        return
    with (
        TemporaryDirectory(dir=folder) as place,
        remit.Runtime(Path(place) / "team.db", bounds=bounds, serving=Serving(concurrency=hands)) as runtime,
    ):
        yield runtime


@contextmanager
def team(folder: Path | None, hands: int = 100) -> Iterator[remit.Runtime]:
    """A team in memory, or on a file of its own in that folder."""
    with runtime_at(folder, hands) as runtime:
        _add_agents(runtime)
        yield runtime


def _add_agents(runtime: remit.Runtime) -> None:
    runtime.agent("worker")(_worker)
    runtime.agent("sequence", asks="*")(_sequence)
    runtime.agent("planner", asks="*")(_planner)


async def _worker(_turn: remit.Turn) -> str:
    return "ok"


async def _sequence(turn: remit.Turn) -> tuple[float, float]:
    """Delegates as often as its task says; answers the microseconds of one, by the clock and of processor time."""
    times = int(turn.task)
    wall, cpu = time.perf_counter(), time.process_time()
    for number in range(times):
        await turn.delegate("worker", f"go {number}")  # the very same would be a repeat
    return (time.perf_counter() - wall) / times * 1e6, (time.process_time() - cpu) / times * 1e6


async def _planner(turn: remit.Turn) -> float:
    """Its task is a number of steps: answers the microseconds that each costs beyond delegating it."""
    times = int(turn.task)
    start = time.perf_counter()
    await turn.delegate_all([("worker", "go")] * times, concurrency=5)
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
