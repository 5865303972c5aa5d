"""What the library does on a journal of some size: `python -m growing.looks BUILT ROUNDS`, as JSON on standard output.

It is a process of its own for each journal, so that its peak of memory is its own.
"""

import asyncio
import json
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import NamedTuple

import remit
from growing.building import RUNS_A_SESSION, Built, team
from remit.runtime.spending import audit_of
from remit.runtime.workspace import opening_of
from remit.settings import Serving

_PRUNED = 100
_DELEGATIONS = 50  # in one run
Deed = Callable[[], Awaitable[object]]


class Took(NamedTuple):
    """Milliseconds by the clock and of processor time, and megabytes at the peak."""

    wall: float
    cpu: float
    peak: float


def main() -> None:
    built, rounds = Built(**json.loads(sys.argv[1])), int(sys.argv[2])
    print(json.dumps({name: took._asdict() for name, took in asyncio.run(looked(built, rounds)).items()}))


async def looked(built: Built, rounds: int) -> dict[str, Took]:
    """Do everything that an owner and a team do, and tell what each costs."""
    found = {"open it": await _median(rounds, lambda: _opened(built.address))}
    with remit.Runtime(built.address, serving=Serving(concurrency=0)) as runtime:
        team(runtime)
        workspace = runtime.workspace
        await workspace.journal.read(lambda view: view.head())
        session = f"session {built.runs // RUNS_A_SESSION // 2}"
        end, middle = (
            datetime.fromtimestamp((built.first + built.runs * built.step // part) / 1e6, UTC) for part in (1, 2)
        )
        hour = timedelta(hours=1)
        deeds: dict[str, Deed] = {
            "newest 20 tasks": lambda: workspace.tasks.list(limit=20),
            "open tasks": lambda: workspace.tasks.list(state="open"),
            "tasks of a session": lambda: workspace.tasks.list(session=session),
            "tasks of an agent that never was": lambda: workspace.tasks.list(agent="nobody"),
            "history of an agent that never was": lambda: workspace.journal.history(agent="nobody", limit=100),
            "history of a rare kind": lambda: workspace.journal.history(kinds=frozenset(("breaker.set",)), limit=100),
            "history of the last hour": lambda: workspace.journal.history(since=end - hour, limit=100),
            "history of an hour in the middle": lambda: workspace.journal.history(
                since=middle, until=middle + hour, limit=100
            ),
            "spend": workspace.money.spend,
            "audit": lambda: workspace.journal.read(audit_of, long=True),
            "prune, nothing is old": lambda: workspace.prune(1_000),
        }
        for name, deed in deeds.items():
            await deed()  # what it reads is at hand from now on, on a large store as on a small one
            found[name] = await _median(rounds, deed)
        found |= await _written(runtime, rounds)
        found |= await _cancelled(runtime, rounds)
        found["prune 100 runs"] = await _pruned(runtime, built)
    return found


async def _opened(address: str) -> None:
    with remit.Workspace(address) as workspace:
        await workspace.journal.read(lambda view: view.head())


async def _written(runtime: remit.Runtime, rounds: int) -> dict[str, Took]:
    number = iter(range(1_000_000))

    async def sequence(turn: remit.Turn) -> None:
        for part in range(_DELEGATIONS):
            await turn.delegate("worker", f"part {part}")

    async def submit() -> None:
        await runtime.submit("worker", f"one more {next(number)}", key=f"{time.time_ns()}")

    runtime.agent("sequence", asks="*")(sequence)
    await runtime.run("sequence", "warm")
    await submit()
    runs = await _median(rounds, lambda: runtime.run("sequence", f"one more {next(number)}"))
    each = Took(runs.wall / _DELEGATIONS, runs.cpu / _DELEGATIONS, runs.peak)
    return {"delegation": each, "submit": await _median(rounds, submit, times=20)}


async def _cancelled(runtime: remit.Runtime, rounds: int) -> dict[str, Took]:
    """Cancel runs of eleven tasks, ten of which wait in the queue; then see that nothing of them is open."""
    ready: asyncio.Queue[str] = asyncio.Queue()

    async def spreader(turn: remit.Turn) -> None:
        for number in range(10):
            await turn.submit("worker", f"part {number} of {turn.task}")
        ready.put_nowait(turn.remit.root)
        await asyncio.Event().wait()

    runtime.agent("spreader", asks="*")(spreader)
    cancels, settles = [], []
    for number in range(rounds):
        running = asyncio.create_task(runtime.outcome("spreader", f"spread {number} of {time.time_ns()}"))
        run = await ready.get()
        cancels.append(await _took(partial(runtime.workspace.tasks.cancel, run)))
        await running
        settles.append(await _took(partial(runtime.workspace.wait_all, run)))
    return {"cancel 11 tasks": _middle(cancels), "settled": _middle(settles)}


async def _pruned(runtime: remit.Runtime, built: Built) -> Took:
    """Prune the next hundred runs; a journal that is too small for that, a quarter of its runs."""
    oldest = await _oldest(runtime, built)
    wanted = min(_PRUNED, built.runs // 4)
    days = built.days_since(oldest + wanted, opening_of(runtime.workspace).clock.now())
    took = await _took(lambda: runtime.workspace.prune(days))
    return Took(took.wall * _PRUNED / wanted, took.cpu * _PRUNED / wanted, took.peak)


async def _oldest(runtime: remit.Runtime, built: Built) -> int:
    """The number of the oldest run that is still there: an earlier measurement has pruned those before it."""
    low, high = 0, built.runs
    while low < high:
        middle = (low + high) // 2
        there = await runtime.workspace.tasks.list(session=f"session {middle // RUNS_A_SESSION}", limit=1)
        low, high = (low, middle) if there else (middle + 1, high)
    return low


async def _median(rounds: int, deed: Deed, *, times: int = 1) -> Took:
    return _middle([await _took(deed, times) for _ in range(rounds)])


async def _took(deed: Deed, times: int = 1) -> Took:
    _forget_peak()
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(times):
        await deed()
    return Took((time.perf_counter() - wall) / times * 1e3, (time.process_time() - cpu) / times * 1e3, _peak())


def _middle(tries: list[Took]) -> Took:
    return Took(*(statistics.median(values) for values in zip(*tries, strict=True)))


def _forget_peak() -> None:
    """Reset the peak memory of this process. Where that is impossible, later figures include the peak so far."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def _peak() -> float:
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM")), 0.0)


if __name__ == "__main__":
    main()
