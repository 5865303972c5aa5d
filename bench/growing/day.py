"""A day on a clock of its own: `python -m growing.day WHERE RUNS_A_MINUTE`, as JSON on standard output.

The load is steady: a run of six tasks, a submitted task, an entry for an hour and one that is overwritten each time.
What has ended is kept for two hours, and lines about it for two more: after that, memory and file should stay the same.
"""

import asyncio
import gc
import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import remit
from growing.building import team
from measure import resident
from remit.settings import Serving, System
from remit.testing import FakeClock

HOURS = 24
_KEPT_DAYS = 2 / 24


async def day(runs_a_minute: int, folder: Path | None, hours: int = HOURS) -> list[dict[str, float]]:
    """Live through a day; at each full hour tell the memory of the process, the bytes of the file and the runs kept."""
    clock = FakeClock()
    store = ":memory:" if folder is None else folder / "day.db"
    serving, system = Serving(keep_days=_KEPT_DAYS), System(clock=clock, check_clock=False)
    told: list[dict[str, float]] = []
    with remit.Runtime(store, serving=serving, system=system) as runtime:
        team(runtime)
        async with runtime.serving():
            for hour in range(hours):
                for minute in range(60):
                    await _minute(runtime, runs_a_minute, hour * 60 + minute)
                    clock.advance(60)
                gc.collect()
                told.append(
                    {
                        "hour": hour + 1,
                        "resident_mb": resident() / 1024,
                        "file_mb": _megabytes(folder) if folder else 0.0,
                        "runs": len(await runtime.workspace.tasks.runs(100_000)),
                    }
                )
    return told


def _megabytes(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.iterdir()) / 2**20


async def _minute(runtime: remit.Runtime, runs: int, minute: int) -> None:
    await asyncio.gather(
        *[runtime.run("lead", f"run {n} of minute {minute}", session=f"minute {minute}") for n in range(runs)]
    )
    context = runtime.workspace.context()
    for n in range(runs):
        await context.set("notes", f"minute {minute}, {n}", "of the last hour", ttl=3_600)
        await context.set("board", str(n), f"minute {minute}")
    tasks = [await runtime.submit("worker", f"task {n} of minute {minute}") for n in range(runs)]
    for task in tasks:
        await task.wait()


def main() -> None:
    where, runs = sys.argv[1], int(sys.argv[2])
    with TemporaryDirectory(prefix="remit-bench-") as folder:
        print(json.dumps(asyncio.run(day(runs, None if where == "memory" else Path(folder)))))


if __name__ == "__main__":
    main()
