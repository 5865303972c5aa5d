"""Ten thousand runs begun at one moment: `python -m growing.crowd WHERE RUNS`, as JSON on standard output.

Each is a run with a delegation whose agents do nothing, so what is waited for is remit, and the other runs.
"""

import asyncio
import gc
import json
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from measure import resident
from subjects.ours import delegation

RUNS = 10_000


async def crowd(runs: int, folder: Path | None) -> dict[str, float]:
    """Begin all of them, and tell how long a run took, how long all of them, and the memory of each at the peak."""
    async with delegation(_yielding, folder) as work:
        await asyncio.gather(*[work() for _ in range(10)])
        gc.collect()
        took: list[float] = []

        async def timed() -> None:
            begun = time.perf_counter()
            await work()
            took.append(time.perf_counter() - begun)

        before, peak = resident(), Peak()
        looking = asyncio.create_task(peak.look())
        wall, cpu = time.perf_counter(), time.process_time()
        await asyncio.gather(*[timed() for _ in range(runs)])
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        looking.cancel()
    took.sort()
    return {
        "p50_ms": took[runs // 2] * 1e3,
        "p99_ms": took[runs * 99 // 100] * 1e3,
        "all_ms": wall * 1e3,
        "cpu_us_a_run": cpu / runs * 1e6,
        "kb_a_run": (peak.most - before) / runs,
    }


async def _yielding(_stage: int) -> None:
    await asyncio.sleep(0)


class Peak:
    """The most memory that was seen."""

    def __init__(self) -> None:
        self.most = resident()

    async def look(self) -> None:
        while True:
            self.most = max(self.most, resident())
            await asyncio.sleep(0.02)


def main() -> None:
    where, runs = sys.argv[1], int(sys.argv[2])
    with TemporaryDirectory(prefix="remit-bench-") as folder:
        print(json.dumps(asyncio.run(crowd(runs, None if where == "memory" else Path(folder)))))


if __name__ == "__main__":
    main()
