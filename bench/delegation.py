"""What delegating costs in remit."""

import asyncio
import tracemalloc
from pathlib import Path

import remit
from measure import Effort, Samples, Skipped, each
from team import MEMORY, team


def _answers(where: str, agent: str, task: str, times: int) -> Samples:
    async def all_rounds() -> Samples:
        with team(where) as runtime:
            await runtime.run(agent, task)  # warm
            return [await runtime.run(agent, task) for _ in range(times)]

    return asyncio.run(all_rounds())


def in_memory(effort: Effort) -> Samples:
    return _answers(MEMORY, "sequence", str(effort.of(2_000)), effort.rounds)


def durable(effort: Effort) -> Samples:
    return _answers("file", "sequence", str(effort.of(500)), effort.rounds)


def _whole_runs(where: str, effort: Effort) -> Samples:
    """A run from start to end with one hop in it: the shape in which the peers can be measured too."""

    async def all_rounds() -> Samples:
        with team(where) as runtime:
            await runtime.run("lead", "go")  # warm
            return [await each(effort.of(200), lambda: runtime.run("lead", "go")) for _ in range(effort.rounds)]

    return asyncio.run(all_rounds())


def run_in_memory(effort: Effort) -> Samples:
    return _whole_runs(MEMORY, effort)


def run_durable(effort: Effort) -> Samples:
    return _whole_runs("file", effort)


def many_in_memory(effort: Effort) -> Samples:
    return _answers(MEMORY, "fan", f"sleeper {effort.of(1_000)}", effort.rounds)


def many_durable(effort: Effort) -> Samples:
    return _answers("file", "fan", f"sleeper {effort.of(1_000)}", effort.rounds)


def fan_out(effort: Effort) -> Samples:
    return _answers(MEMORY, "fan", "worker 50", effort.rounds * 3)


def scheduling(effort: Effort) -> Samples:
    return _answers(MEMORY, "planner", str(effort.of(1_000)), effort.rounds)


def in_flight(effort: Effort) -> Samples:
    """Kilobytes of Python objects that each of many delegations holds while it waits; SQLite's own are not seen."""
    times = effort.of(1_000)

    async def once() -> float:
        with team(MEMORY) as runtime:
            await runtime.run("fan", "sleeper 10")
            tracemalloc.start()
            before = tracemalloc.get_traced_memory()[0]
            work = asyncio.create_task(runtime.run("fan", f"sleeper {times}"))
            while runtime.running() <= times:  # noqa: ASYNC110 - nothing tells us when all of them wait
                await asyncio.sleep(0)
            held = tracemalloc.get_traced_memory()[0] - before
            tracemalloc.stop()
            await work
            return held / times / 1024

    return [asyncio.run(once()) for _ in range(min(3, effort.rounds))]


# -- a long session --------------------------------------------------------------------------------------


async def _one_by_one(runtime: remit.Runtime, session: str, times: int) -> tuple[float, float]:
    """Microseconds and bytes written for one delegation in that session."""
    before = _bytes_written()
    cost = float(await runtime.run("sequence", str(times), session=session))
    return cost, (_bytes_written() - before) / times


def _bytes_written() -> int:
    try:
        lines = Path("/proc/self/io").read_text().splitlines()
    except OSError as error:
        raise Skipped("this system does not count what a process writes") from error
    return next(int(line.split()[1]) for line in lines if line.startswith("wchar"))


def _long_to_short(effort: Effort, part: int) -> Samples:
    """How much dearer a delegation is with 1,000 earlier events in its session than with 10.

    The best of one is set against the best of the other: the best of many ratios would only be the
    luckiest pair.
    """

    async def once() -> tuple[float, float]:
        with team("file") as runtime:
            await runtime.run("sequence", "500", session="long")
            short = await _one_by_one(runtime, "short", 100)
            long = await _one_by_one(runtime, "long", 100)
            return short[part], long[part]

    pairs = [asyncio.run(once()) for _ in range(effort.rounds)]
    return [min(long for _, long in pairs) / min(short for short, _ in pairs)]


def long_session(effort: Effort) -> Samples:
    return _long_to_short(effort, 0)


def long_session_bytes(effort: Effort) -> Samples:
    return _long_to_short(effort, 1)
